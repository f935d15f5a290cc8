#!/bin/bash
# Installs the packages of a folder in a bare Debian, uses what they bring and removes them:
# package_check.sh FOLDER, as root, in a system that has nothing of Lockstep; tools/fresh.sh --packages
# makes one. FOLDER has the .deb files, examples/mnist and examples/library/train.c.
# SPDX-License-Identifier: BSD-2-Clause
set -euo pipefail
folder=$(realpath "$1")
work=$(mktemp -d)
chmod 755 "$work"
cd "$work"
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
    as_trainer "$@" lockstep train --solver "$folder/examples/mnist/lenet_solver.prototxt" --dummy-data \
        --workers "$workers" --iterations 4 --snapshot-prefix "$name" >log 2>&1 || fail "$name: $(cat log)"
    sha256sum <"run/${name}_iter_4.safetensors" >"$name.sum"
}

get "$(deb lockstep)"
lockstep --version | grep -i '^lockstep [0-9]' >log || fail "no version"
train one 1
dpkg -L lockstep >log
for file in $(grep -E '/man[1-9]/.*\.gz$' log); do
    gzip -t "$file" || fail "$file"
done
for file in $(grep '/bash-completion/completions/' log); do
    bash -n "$file" || fail "$file"
done

get "$(deb lockstep-caffe)"
caffe -version | grep '^caffe version' >log || fail "caffe -version"

for kind in openmpi mpich; do
    launcher=openmpi-bin
    [ $kind = openmpi ] || launcher=mpich
    get "$(deb lockstep-$kind)" $launcher
    train $kind 2 "mpirun.$kind" -n 2
    cmp one.sum $kind.sum || fail "$kind: two ranks train other weights"
done

get "$(deb liblockstep0)" "$(deb liblockstep-dev)" gcc libc6-dev pkg-config
ldconfig -p | grep 'liblockstep.so.0 ' >log || fail "the linker does not know the library"
# shellcheck disable=SC2046 # flags are words
{
    cc "$folder/examples/library/train.c" -o shared $(pkg-config --cflags --libs lockstep)
    cc "$folder/examples/library/train.c" -o static $(pkg-config --cflags lockstep) -Wl,-Bstatic -llockstep \
        -Wl,-Bdynamic $(pkg-config --static --libs lockstep | sed 's/-llockstep//')
}
ldd shared | grep 'liblockstep.so.0 => /' >log || fail "not linked with the shared library"
! ldd static | grep liblockstep || fail "not linked with the static library"
for kind in shared static; do
    status=0
    "./$kind" /no/such/solver.prototxt 1 1 model >log 2>&1 || status=$?
    { [ $status != 0 ] && grep -q /no/such/solver.prototxt log; } || fail "$kind: $(cat log)"
done

step "Removing all"
DEBIAN_FRONTEND=noninteractive apt-get -q -y purge lockstep lockstep-caffe lockstep-openmpi lockstep-mpich \
    liblockstep0 liblockstep-dev >log 2>&1 || fail "$(tail -n 20 log)"
left=$(find /usr /etc /var/lib/dpkg/info -iname '*lockstep*')
[ -z "$left" ] || fail "left behind: $left"
echo "installed, used and removed: $(cat one.sum)"
