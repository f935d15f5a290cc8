# Lockstep in Debian 12, with MPI, for an ordinary user, from this checkout:
#
#     docker build -t lockstep .
#     docker run --rm -v "$PWD:/work" lockstep train --solver solver.prototxt
#
# The first stage builds the packages, the second one installs them and nothing else.
FROM debian:12-slim AS build
COPY . /src
WORKDIR /src
RUN ./run package

FROM debian:12-slim
COPY --from=build /src/build-package/debian/*.deb /packages/
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        /packages/lockstep_*.deb /packages/lockstep-openmpi_*.deb openmpi-bin \
    && rm -rf /packages /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 lockstep \
    && install -d -o lockstep -g lockstep /work
USER lockstep
WORKDIR /work
ENTRYPOINT ["lockstep"]
CMD ["help"]
