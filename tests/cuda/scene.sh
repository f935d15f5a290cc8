# What the scripts of this folder share: a small training, on the fake's cards. To be sourced.
# SPDX-License-Identifier: BSD-2-Clause
set -euo pipefail
[ -f "$LOCKSTEP_CUDA_MODULE" ] || {
    echo "skipped: the stand-in of the cards was not built"
    exit 77
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
never="the CUDA device has been tested on a stand-in only, never on a card"

fail() {
    echo "FAILED: $*" >&2
    cat out err >&2 2>/dev/null || true
    exit 1
}

# run STATUS ARGUMENTS...: the program, with its output in `out` and `err`.
run() {
    local wanted=$1 status=0
    shift
    "$LOCKSTEP" "$@" >out 2>err </dev/null || status=$?
    [ "$status" = "$wanted" ] || fail "lockstep $*: status $status, not $wanted"
}
says() { # says FILE TEXT
    grep -qF -- "$2" "$1" || fail "'$2' is not said in $1"
}
# 24 pictures of 12 x 12 and their labels, in MNIST's format.
awk 'BEGIN {
    seed = 7
    for (i = 0; i < 24 * 144; i++) {
        seed = (seed * 1103515245 + 12345) % 2147483648
        printf "\\%03o", int(seed / 8388608)
    }
}' >pixels
{
    printf '\000\000\010\003\000\000\000\030\000\000\000\014\000\000\000\014'
    # shellcheck disable=SC2059 # escapes are what it is for
    printf "$(cat pixels)"
} >images
{
    printf '\000\000\010\001\000\000\000\030'
    printf '\001\002\003\004\005\006\007\010\011\000\001\002\003\004\005\006\007\010\011\000\001\002\003\004'
} >labels
# shellcheck source=tests/support/nets.sh
. "$LOCKSTEP_SOURCE/tests/support/nets.sh"
test_net rank_threads directory="$folder" batch=8 >net.prototxt
cat >solver.prototxt <<TEXT
net: "net.prototxt" base_lr: 0.05 lr_policy: "fixed" momentum: 0.9 max_iter: 6 display: 2 snapshot: 3
snapshot_prefix: "out" micro_batch: 2 random_seed: 3
TEXT
