# What the tests of faults share: a folder of their own, small definitions, and what a command must
# end with. Sourced by tests/faults/*.sh, with $LOCKSTEP the program and $LOCKSTEP_SOURCE the tree.
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
set -u
export LC_ALL=C
# shellcheck source=tests/support/nets.sh
. "${LOCKSTEP_SOURCE:?}/tests/support/nets.sh" || exit 1
work=$(mktemp -d)
failures=0
undo="" # commands that must run before the folder is removed
clean_up() {
    eval "$undo"
    rm -rf "$work"
}
trap clean_up EXIT
cd "$work" || exit 1
chmod 755 "$work"

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# The last line of a test.
finish() {
    [ "$failures" = 0 ] || echo "$failures checks failed"
    [ "$failures" = 0 ]
    exit
}

# check_output NAME [TEXT...]: what the file `log` must hold; TEXT is an extended regular
# expression, with ! in front of it what must not be there. Reports of sanitizers always fail.
check_output() {
    local name=$1 text
    shift
    for text in '!Sanitizer' '!runtime error:' "$@"; do
        if [ "${text#!}" != "$text" ]; then
            ! grep -qE -e "${text#!}" log || {
                fail "$name: '${text#!}' was said:"
                tail -n 30 log | cut -c 1-400
            }
        elif ! grep -qE -e "$text" log; then
            fail "$name: no word of '$text':"
            tail -n 30 log | cut -c 1-400
        fi
    done
}

# expect STATUS [TEXT...] -- COMMAND...: runs the command; its output is in the file `log`.
expect() {
    local wanted=$1 status=0 texts=()
    shift
    while [ "$1" != -- ]; do
        texts+=("$1")
        shift
    done
    shift
    timeout -k 5 "${LIMIT:-120}" "$@" >log 2>&1 </dev/null || status=$?
    if [ "$status" != "$wanted" ]; then
        fail "status $status instead of $wanted: $*"
        tail -n 30 log | cut -c 1-400
    fi
    check_output "$*" ${texts[@]+"${texts[@]}"}
}

# Whether the program is built with a sanitizer, whose memory no limit fits.
sanitized() {
    grep -qa '__asan_init\|__tsan_init\|__msan_init' "$LOCKSTEP"
}

# An unsigned number as four bytes, the most significant first.
be32() {
    # shellcheck disable=SC2059 # the format is made of escapes
    printf "$(printf '\\x%02x\\x%02x\\x%02x\\x%02x' $(($1 >> 24 & 255)) $(($1 >> 16 & 255)) \
        $(($1 >> 8 & 255)) $(($1 & 255)))"
}

# byte VALUE...
byte() {
    local value
    for value in "$@"; do
        # shellcheck disable=SC2059
        printf "$(printf '\\x%02x' "$value")"
    done
}

# poke FILE OFFSET: overwrites bytes with those of the standard input.
poke() {
    dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# The same bytes on every system: COUNT of them.
noise() {
    seq 1000000 | tr -d '\n' | head -c "$1"
}

# idx_images COUNT SIDE, idx_labels COUNT: files of MNIST's format.
idx_images() {
    byte 0 0 8 3
    be32 "$1"
    be32 "$2"
    be32 "$2"
    noise $(($1 * $2 * $2))
}
idx_labels() {
    local i
    byte 0 0 8 1
    be32 "$1"
    for ((i = 0; i < $1; i++)); do
        byte $((i % 10))
    done
}

# cifar_records COUNT: CIFAR-10's binary version.
cifar_records() {
    local i
    for ((i = 0; i < $1; i++)); do
        byte $((i % 10))
        noise 3072
    done
}

# chunk TYPE: the standard input as a part of a PNG file: size, type, bytes, checksum (gzip's own).
chunk() {
    { printf '%s' "$1"; cat; } >chunk
    be32 $(($(stat -c %s chunk) - 4))
    cat chunk
    gzip -nc chunk | tail -c 8 | head -c 4 | od -An -tu1 | {
        read -r a b c d
        byte "$d" "$c" "$b" "$a"
    }
}

# png HEIGHT WIDTH TYPE BITS BYTES LABEL: a PNG file of one colour, BYTES bytes a pixel, each LABEL.
png() {
    local height=$1 width=$2 type=$3 bits=$4 bytes=$5 label=$6 row a=1 b=0 i
    row=$((1 + width * bytes))
    printf '\x89PNG\r\n\x1a\n'
    { be32 "$width"; be32 "$height"; byte "$bits" "$type" 0 0 0; } | chunk IHDR
    {
        byte 120 1 1 $((row * height & 255)) $((row * height >> 8)) \
            $((255 - (row * height & 255))) $((255 - (row * height >> 8)))
        for ((i = 0; i < row * height; i++)); do
            local value=$((i % row == 0 ? 0 : label))
            a=$(((a + value) % 65521))
            b=$(((b + a) % 65521))
        done
        for ((i = 0; i < height; i++)); do
            byte 0
            head -c $((row - 1)) /dev/zero | tr '\0' "\\$(printf '%03o' "$label")"
        done
        be32 $((b << 16 | a))
    } | chunk IDAT
    chunk IEND </dev/null
}
grey() { png "$1" "$2" 0 8 1 "$3"; }

# small_net [DATA [TEST_DATA]]: a small classifier. DATA is what stands in data_param besides
# batch_size; synthetic digits unless it is given.
small_net() {
    local synthetic="backend: SYNTHETIC synthetic_param { count: 300 height: 12 width: 12 }"
    local data=${1:-$synthetic shuffle: true} test=${2:-${1:-$synthetic}}
    test_net small "data=$data" "test_data=$test"
}

# small_solver [FIELDS]: trains net.prototxt for 20 updates with a snapshot every 10.
small_solver() {
    cat <<TEXT
net: "net.prototxt"
base_lr: 0.01
momentum: 0.9
lr_policy: "fixed"
max_iter: 20
snapshot: 10
snapshot_prefix: "s"
random_seed: 3
${1:-}
TEXT
}

# train STATUS [TEXT...] [-- OPTIONS...]: trains with solver.prototxt, over what was there before.
train() {
    local wanted=$1 texts=()
    shift
    while [ $# != 0 ] && [ "$1" != -- ]; do
        texts+=("$1")
        shift
    done
    [ $# = 0 ] || shift
    expect "$wanted" ${texts[@]+"${texts[@]}"} -- "$LOCKSTEP" train --overwrite --solver solver.prototxt \
        --workers 2 "$@"
}

small_net >net.prototxt
small_solver >solver.prototxt
