#!/bin/bash
# Installs the packages of a folder in a bare Debian, uses what they bring and removes them:
# package_check.sh FOLDER, as root, in a system that has nothing of Lockstep; tools/fresh.sh --packages
# makes one. FOLDER has the .deb files.
# SPDX-License-Identifier: BSD-2-Clause
set -euo pipefail
folder=$(realpath "$1")
work=$(mktemp -d)
chmod 755 "$work"
cd "$work"
examples=/usr/share/doc/lockstep/examples # of the documentation
step() { printf '== %s\n' "$*"; }
fail() {
    printf 'FAILED: %s\n' "$*" >&2
    exit 1
}
get() {
    step "Installing $*"
    DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install "$@" >log 2>&1 </dev/null ||
        fail "$(tail -n 20 log)"
}
deb() { echo "$folder/$1"_[0-9]*.deb; }

useradd --create-home --shell /bin/bash trainer
install -d -o trainer run
# as_trainer COMMAND...: by an ordinary user, in a folder of his own.
as_trainer() { (cd run && env HOME=/home/trainer setpriv --reuid trainer --regid trainer --clear-groups "$@"); }
# train NAME WORKERS COMMAND...: 4 updates of LeNet on random pictures; NAME.sum is the hash.
train() {
    local name=$1 workers=$2
    shift 2
    as_trainer "$@" lockstep train --solver "$examples/mnist/lenet_solver.prototxt" --dummy-data \
        --workers "$workers" --iterations 4 --snapshot-prefix "$name" >log 2>&1 || fail "$name: $(cat log)"
    sha256sum <"run/${name}_iter_4.safetensors" >"$name.sum"
}

get "$(deb lockstep)" bash-completion man-db
lockstep --version | grep -i '^lockstep [0-9]' >log || fail "no version"
train one 1
dpkg -L lockstep >log
for file in $(grep -E '/man[1-9]/.*\.gz$' log); do
    gzip -t "$file" || fail "$file"
done
# Bash loads the file when `lockstep` is first completed.
bash -c '. /usr/share/bash-completion/bash_completion && { _completion_loader lockstep || [ $? = 124 ]; } &&
    COMP_WORDS=(lockstep train --sol) COMP_CWORD=2 && _lockstep && [ "${COMPREPLY[*]}" = --solver ]' 2>log ||
    fail "completion: $(cat log)"
page() { MANPAGER=cat MANWIDTH=200 MAN_DISABLE_SECCOMP=1 man "$1" 2>&1 | grep -q "^ *$1 - ." || fail "man $1"; }
page lockstep
page lockstep-train
# With real pictures, in the user's folder, and looked at.
as_trainer lockstep train --solver $examples/digits/lenet_solver.prototxt --iterations 20 --report report \
    >log 2>&1 || fail "digits: $(cat log)"
ls run/digits_iter_20.safetensors run/report/report.html >log || fail "no snapshot, or no report"
lockstep plot run/report/log.json >log || fail "plot: $(cat log)"

get "$(deb lockstep-caffe)"
caffe -version | grep '^caffe version' >log || fail "caffe -version"
page caffe
page convert_imageset

for kind in openmpi mpich; do
    launcher=openmpi-bin
    [ $kind = openmpi ] || launcher=mpich
    get "$(deb lockstep-$kind)" $launcher
    train $kind 2 "mpirun.$kind" -n 2
    cmp one.sum $kind.sum || fail "$kind: two ranks train other weights"
done

get "$(deb liblockstep0)" "$(deb liblockstep-dev)" gcc libc6-dev pkg-config cmake make
ldconfig -p | grep 'liblockstep.so.0 ' >log || fail "the linker does not know the library"
# shellcheck disable=SC2046 # flags are words
{
    cc $examples/library/train.c -o shared $(pkg-config --cflags --libs lockstep)
    cc $examples/library/train.c -o static $(pkg-config --cflags lockstep) -Wl,-Bstatic -llockstep \
        -Wl,-Bdynamic $(pkg-config --static --libs lockstep | sed 's/-llockstep//')
}
ldd shared | grep 'liblockstep.so.0 => /' >log || fail "not linked with the shared library"
! ldd static | grep liblockstep || fail "not linked with the static library"
mkdir cmake
cat >cmake/CMakeLists.txt <<CMAKE
cmake_minimum_required(VERSION 3.16)
project(foreign C)
find_package(lockstep 0 REQUIRED)
add_executable(foreign $examples/library/train.c)
target_link_libraries(foreign PRIVATE lockstep::lockstep)
add_library(shrink MODULE $examples/plugin/shrink.c)
set_target_properties(shrink PROPERTIES PREFIX "")
target_include_directories(shrink PRIVATE \$<TARGET_PROPERTY:lockstep::lockstep,INTERFACE_INCLUDE_DIRECTORIES>)
CMAKE
{ cmake -S cmake -B cmake/build && cmake --build cmake/build; } >log 2>&1 || fail "CMake: $(cat log)"
lockstep check-plugin cmake/build/shrink.so >log 2>&1 || fail "plugin: $(cat log)"
cp cmake/build/foreign built
for kind in shared static built; do
    status=0
    "./$kind" /no/such/solver.prototxt 1 1 model >log 2>&1 || status=$?
    { [ $status != 0 ] && grep -q /no/such/solver.prototxt log; } || fail "$kind: $(cat log)"
done
as_trainer ../built $examples/digits/lenet_solver.prototxt 3 1 built.safetensors >log 2>&1 ||
    fail "a program with the library does not train: $(cat log)"

step "Removing all"
DEBIAN_FRONTEND=noninteractive apt-get -q -y purge lockstep lockstep-caffe lockstep-openmpi lockstep-mpich \
    liblockstep0 liblockstep-dev >log 2>&1 || fail "$(tail -n 20 log)"
left=$(find /usr /etc /var/lib/dpkg/info -iname '*lockstep*')
[ -z "$left" ] || fail "left behind: $left"
echo "installed, used and removed: $(cat one.sum)"
