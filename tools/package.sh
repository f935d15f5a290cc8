#!/bin/bash
# Packages for Debian of a build: package.sh BUILD FOLDER. BUILD has been configured with the prefix
# /usr and holds program, libraries and modules for MPI; FOLDER gets the .deb files:
#
#     lockstep            the program, its maps of weights, man pages and completions, documentation, examples
#     lockstep-caffe      links by the names of Caffe's programs, with man pages
#     lockstep-openmpi, lockstep-mpich   the modules for MPI, of which one or both may be missing
#     liblockstep0        the shared library
#     liblockstep-dev     headers, static library, files for pkg-config and CMake
#
# and lockstep.cdx.json, a list of components (tools/sbom.sh), which the first package has, too.
#
# What each depends on follows from the libraries that its files need (dpkg-shlibdeps). The same
# build gives the same bytes: times are that of the commit, or $SOURCE_DATE_EPOCH. $DEBFULLNAME and
# $DEBEMAIL are the maintainer.
# SPDX-License-Identifier: BSD-2-Clause
set -euo pipefail
umask 022
export LC_ALL=C DPKG_DEB_THREADS_MAX=1 # the compressor's blocks do not depend on the machine
build=$(realpath "$1")
mkdir -p "$2"
result=$(realpath "$2")
cd "$(dirname "$0")/.."
die() {
    printf 'package: %s\n' "$*" >&2
    exit 1
}

version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$build/CMakeCache.txt")
prefix=$(sed -n 's/^CMAKE_INSTALL_PREFIX:PATH=//p' "$build/CMakeCache.txt")
[ -n "$version" ] || die "$build is no build of Lockstep"
[ "$prefix" = /usr ] || die "$build installs to '$prefix', not to /usr"
revision=$version-1
soversion=${version%%.*}
architecture=$(dpkg --print-architecture)
maintainer="${DEBFULLNAME:-The Lockstep developers} <${DEBEMAIL:-lockstep@lockstep.invalid}>"
if [ -z "${SOURCE_DATE_EPOCH:-}" ]; then
    SOURCE_DATE_EPOCH=$({ command -v git >/dev/null && git log -1 --format=%ct 2>/dev/null; } ||
        stat -c %Y CHANGELOG.md)
fi
export SOURCE_DATE_EPOCH

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
all=$work/all
DESTDIR=$all cmake --install "$build" >"$work/log" 2>&1 || die "$(cat "$work/log")"
libraries=$(dirname "$(cd "$all" && find usr -name liblockstep.so)")
rm -f "$all/usr/share/doc/lockstep/LICENSE" # the file `copyright` has it

# move PACKAGE PATH...: what exists of the paths, which are patterns, goes to the package's tree.
move() {
    local package=$1 path
    shift
    for path in "$@"; do
        (cd "$all" && compgen -G "$path") || true
    done | while IFS= read -r path; do
        mkdir -p "$work/$package/$(dirname "$path")"
        mv "$all/$path" "$work/$package/$path"
    done
}

# control PACKAGE SECTION DEPENDS TITLE FIELD...: the text of the description comes from stdin; in
# DEPENDS, @shlibs@ is what the libraries say. FIELDs are further lines.
control() {
    local package=$1 section=$2 depends=$3 title=$4 tree=$work/$1 binaries=() shlibs=""
    shift 4
    mapfile -t binaries < <(find "$tree" -type f \( -name '*.so*' -o -path '*/bin/*' \))
    if [ ${#binaries[@]} != 0 ]; then
        strip --strip-unneeded --remove-section=.comment "${binaries[@]}"
        mkdir -p "$work/debian"
        printf 'Source: lockstep\n\nPackage: %s\nArchitecture: any\n' "$package" >"$work/debian/control"
        shlibs=$(cd "$work" && dpkg-shlibdeps -O "${binaries[@]}" 2>"$work/log") || die "$(cat "$work/log")"
        shlibs=${shlibs#shlibs:Depends=}
    fi
    depends=${depends/@shlibs@/$shlibs}
    mkdir -p "$tree/DEBIAN"
    {
        printf 'Package: %s\nSource: lockstep\nVersion: %s\n' "$package" "$revision"
        printf 'Architecture: %s\nMaintainer: %s\n' "$architecture" "$maintainer"
        printf 'Installed-Size: %s\n' "$(find "$tree" -type f -not -path '*/DEBIAN/*' -printf '%s\n' |
            awk '{ n += int(($1 + 1023) / 1024) } END { print n + 0 }')"
        [ -z "$depends" ] || printf 'Depends: %s\n' "$depends"
        [ $# = 0 ] || printf '%s\n' "$@"
        printf 'Section: %s\nPriority: optional\nDescription: %s\n' "$section" "$title"
        sed 's/^/ /; s/^ $/ ./'
    } >"$tree/DEBIAN/control"
}

copyright() {
    cat <<'TEXT'
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: Lockstep

Files: *
Copyright: 2026, the Lockstep developers
License: BSD-2-Clause

License: BSD-2-Clause
TEXT
    sed -n '/^Redistribution/,$p' LICENSE | sed 's/^/ /; s/^ $/ ./'
}

# What all packages have, checksums, and the archive.
archive() {
    local package=$1 tree=$work/$1 doc=$work/$1/usr/share/doc/$1
    mkdir -p "$doc"
    copyright >"$doc/copyright"
    printf 'lockstep (%s) unstable; urgency=medium\n\n  * See changelog.gz.\n\n -- %s  %s\n' "$revision" \
        "$maintainer" "$(date -u -R -d "@$SOURCE_DATE_EPOCH")" | gzip -9n >"$doc/changelog.Debian.gz"
    gzip -9n <CHANGELOG.md >"$doc/changelog.gz"
    # No package of Debian's archive: there is no request for one that it could close.
    mkdir -p "$tree/usr/share/lintian/overrides"
    echo "$package: initial-upload-closes-no-bugs" >"$tree/usr/share/lintian/overrides/$package"
    find "$tree" -type d -exec chmod 755 {} +
    find "$tree" -type f -not -path '*/bin/*' -exec chmod 644 {} +
    (cd "$tree" && find usr -type f -print0 | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
    chmod 644 "$tree/DEBIAN/md5sums"
    dpkg-deb --root-owner-group -Zxz --build "$tree" \
        "$result/${package}_${revision}_$architecture.deb" >"$work/log" || die "$(cat "$work/log")"
    printf '%s\n' "$result/${package}_${revision}_$architecture.deb"
}

about="Lockstep trains neural networks data-parallel on processors. The bits of
the trained weights depend on the definition, the data and the seed, not on
the number of workers, threads or machines. Definitions are Caffe's, and a
superset of these."

find "$all/usr/share/man" -name '*.[1-9]' -exec gzip -9n {} + 2>/dev/null || true

find "$all/usr/bin" -type l -printf '%f\n' | while IFS= read -r name; do
    move lockstep-caffe "usr/bin/$name" "usr/share/man/man1/$name.1.gz"
done
move lockstep usr/bin/lockstep 'usr/share/[!d]*' usr/share/doc/lockstep
move lockstep-openmpi "$libraries/lockstep/liblockstep_openmpi.so"
move lockstep-mpich "$libraries/lockstep/liblockstep_mpich.so"
move liblockstep$soversion "$libraries/liblockstep.so.*"
move liblockstep-dev usr/include/lockstep "$libraries/liblockstep.a" "$libraries/liblockstep.so" \
    "$libraries/pkgconfig/lockstep.pc" "$libraries/cmake/lockstep"
strip --strip-debug --remove-section=.comment --enable-deterministic-archives \
    "$work/liblockstep-dev/$libraries/liblockstep.a"
left=$(cd "$all" && find . -not -type d)
[ -z "$left" ] || die "installed, but in no package: $left"

# Documentation and examples, as they lie here, so that links hold; without what a training has left.
doc=$work/lockstep/usr/share/doc/lockstep
mkdir -p "$doc/docs"
cp README.md "$doc"
cp docs/*.md "$doc/docs"
find examples -type f -regextype egrep -regex '.*\.(c|md|prototxt|py|sbatch|yaml)' -print0 |
    xargs -0 cp --parents -t "$doc"
sbom=$work/lockstep.cdx.json
tools/sbom.sh "$build" >"$sbom" || die "the list of components could not be made"
cp "$sbom" "$doc"
rm -f "$result"/*.deb "$result"/*.json
cp "$sbom" "$result"

control lockstep science @shlibs@ "training of neural networks with the same bits on any number of workers" \
    "Suggests: lockstep-openmpi, lockstep-mpich" <<TEXT
$about

This package has the program.
TEXT
archive lockstep

control lockstep-caffe science "lockstep (= $revision)" "Lockstep by the names of Caffe's programs" \
    "Conflicts: caffe-tools-cpu, caffe-tools-cuda" <<TEXT
$about

This package has links by the names of Caffe's programs: caffe,
convert_imageset and others, which take the same arguments.
TEXT
archive lockstep-caffe

for kind in openmpi mpich; do
    [ -e "$work/lockstep-$kind" ] || continue
    name="Open MPI" launcher=openmpi-bin
    [ $kind = openmpi ] || name=MPICH launcher=mpich
    control lockstep-$kind science "lockstep (= $revision) | liblockstep$soversion (= $revision), @shlibs@" \
        "Lockstep on several machines, with $name" "Recommends: $launcher" "Provides: lockstep-mpi" <<TEXT
$about

This package has the module with which ranks that $name has started talk to
each other.
TEXT
    archive lockstep-$kind
done

control liblockstep$soversion libs @shlibs@ "training of neural networks, shared library" <<TEXT
$about

This package has the shared library.
TEXT
printf 'activate-noawait ldconfig\n' >"$work/liblockstep$soversion/DEBIAN/triggers"
printf 'liblockstep %s liblockstep%s (>= %s)\n' "$soversion" "$soversion" "$version" \
    >"$work/liblockstep$soversion/DEBIAN/shlibs"
{
    printf 'liblockstep.so.%s liblockstep%s #MINVER#\n' "$soversion" "$soversion"
    printf '* Build-Depends-Package: liblockstep-dev\n'
    nm -D --defined-only "$work/liblockstep$soversion/$libraries/liblockstep.so.$version" |
        awk -v version="$version" '$3 ~ /^lockstep_/ { print " " $3 "@Base " version }' | sort
} >"$work/liblockstep$soversion/DEBIAN/symbols"
archive liblockstep$soversion

# The packages of the libraries that pkg-config asks for, and a static link.
control liblockstep-dev libdevel "liblockstep$soversion (= $revision), libprotobuf-c-dev, libjpeg-dev,\
 libpng-dev, zlib1g-dev, libpcre2-dev, libutf8proc-dev, libhdf5-dev, libdnnl-dev, libsleef-dev, liblmdb-dev" \
    "training of neural networks, headers and static library" <<TEXT
$about

This package has headers, the static library, and files for pkg-config
and CMake.
TEXT
archive liblockstep-dev
