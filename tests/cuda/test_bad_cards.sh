#!/bin/bash
# What is wrong with cards, lists of them, modules and drivers is said in clear words; a card that fails
# in mid-run leaves snapshots that are good.
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck source=tests/cuda/scene.sh
. "$(dirname "$0")/scene.sh"
export LOCKSTEP_FAKE_CARDS=2

# ---- Lists ----
for list in 0,,1 0, ,0 -1 x 0x1 '0 1' alle; do
    run 2 train --solver solver.prototxt --gpu="$list"
    says err "'$list' is no list of cards"
done
for list in 2 0,7 99999999999 99999999999999999999999; do
    run 2 train --solver solver.prototxt --gpu "$list"
    says err "there is no card ${list#0,}. hint: there are 2, 0 to 1"
done
for options in '' --json; do
    for list in 0,,1 '0,' '0,,' -1 x 0x1 alle; do
        run 2 device_query --gpu="$list" ${options:+"$options"}
        says err "'$list' is no list of cards"
    done
    for list in 9 0,9 99999999999999999999999; do
        run 2 device_query --gpu "$list" ${options:+"$options"}
        says err "there is no card ${list#0,}. hint: there are 2, 0 to 1"
        [ ! -s out ] || fail "cards are shown, and one of the list is missing"
    done
done
run 2 caffe device_query -gpu 9
says err "there is no card 9"
run 2 caffe device_query -gpu x
says err "'x' is no list of cards"
run 2 train --solver solver.prototxt --gpu "$(printf '0,%.0s' {1..64})0"
says err "at most 64 cards"
run 2 train --solver solver.prototxt --gpu "$(printf '0,%.0s' {1..999})0"
says err "the list is too long"
run 2 train --solver solver.prototxt --gpu ''
run 2 train --solver solver.prototxt --gpu 0 --device cpu
says err "leave --device out"
run 2 train --solver solver.prototxt --device reference --gpu 0
says err "leave --device out"
run 2 verify --solver solver.prototxt --device cpu --gpu 0
says err "leave --device out"
for command in "time --solver solver.prototxt" "plan --solver solver.prototxt"; do
    # shellcheck disable=SC2086 # words
    run 2 $command --gpu 0,1
    says err "computes on one card, not on 2"
done
run 2 train --solver solver.prototxt --gpu 0 --isa avx2
says err "the device cuda has no instruction sets"
run 2 train --solver solver.prototxt --device cudo
says err "cpu, reference, cuda"

# ---- No module, another build's, one that is none ----
LOCKSTEP_CUDA_MODULE=$folder/missing.so run 7 train --solver solver.prototxt --gpu 0
says err "there is no file '$folder/missing.so'"
cp "$LOCKSTEP" lockstep # where there is no module beside it
if [ ! -e /usr/local/lib/lockstep/liblockstep_cuda.so ]; then
    LOCKSTEP_CUDA_MODULE='' ./lockstep train --solver solver.prototxt --gpu 0 >out 2>err &&
        fail "a build without the module trains on a card"
    says err "this build has no device for NVIDIA's cards"
    says err "build Lockstep where CUDA's toolkit is"
    LOCKSTEP_CUDA_MODULE='' ./lockstep --version >out
    says out "cuda=none"
fi
mkfifo fifo # nothing is opened that could wait for ever
for path in fifo "$folder" /dev/zero; do
    LOCKSTEP_CUDA_MODULE=$path run 7 train --solver solver.prototxt --gpu 0
    says err "'$path' is no regular file"
done
# A name without a slash is that of a file here, not one that the loader looks for elsewhere.
cp "$LOCKSTEP_CUDA_MODULE" here.so
LOCKSTEP_CUDA_MODULE=here.so run 0 plan --solver solver.prototxt --gpu 0
echo "no object" >text.so
LOCKSTEP_CUDA_MODULE=$folder/text.so run 7 train --solver solver.prototxt --gpu 0
says err "the device for NVIDIA's cards cannot be loaded"
LOCKSTEP_CUDA_MODULE=$LOCKSTEP_BUILD/liblockstep.so run 7 train --solver solver.prototxt --gpu 0
says err "is no device of Lockstep's"
# Another interface: its hash in the module is changed.
interface=$(grep -ao 'interface [0-9a-f]\{16\}' "$LOCKSTEP_CUDA_MODULE" | head -n 1)
sed "s/$interface/interface 0123456789abcdef/g" "$LOCKSTEP_CUDA_MODULE" >stale.so
for module in "$folder/stale.so" stale.so; do
    LOCKSTEP_CUDA_MODULE=$module run 7 train --solver solver.prototxt --gpu 0
    says err "it is of another build"
done
says err "interface 0123456789abcdef"
says err "build program and module together"

# ---- Drivers and cards ----
LOCKSTEP_FAKE_CARDS=0 run 7 train --solver solver.prototxt --gpu all
says err "there is no card of NVIDIA's here"
LOCKSTEP_FAKE_CARDS=0 run 7 device_query --gpu 0
says err "there is no card of NVIDIA's here"
LOCKSTEP_FAKE_CARDS=0 run 0 device_query
says out "No card: there is no card of NVIDIA's here"
LOCKSTEP_FAKE_DRIVER=11040 run 7 train --solver solver.prototxt --gpu 0
says err "NVIDIA's driver is too old: it knows CUDA 11.4, and Lockstep was built with CUDA"
LOCKSTEP_FAKE_OLD=1 run 7 train --solver solver.prototxt --gpu 0,1
says err "card 1 (Fake card, compute capability 7.5) is too old"
LOCKSTEP_FAKE_OLD=1 run 0 device_query --gpu 1
says out "no: it needs 8.0 or more"

# ---- Memory ----
LOCKSTEP_FAKE_BYTES=20000 run 7 train --solver solver.prototxt --gpu 0
says err "of the device's memory"
[ ! -e out_iter_3.safetensors ] || fail "a training that does not fit has begun"

# ---- A card that fails in mid-run ----
run 0 train --solver solver.prototxt --gpu 0 --snapshot-prefix whole
for list in 0 0,1; do
    for pieces in 40 400 900 1600; do
        rm -f out_*
        status=0
        LOCKSTEP_FAKE_BREAK=0,$pieces "$LOCKSTEP" train --solver solver.prototxt --gpu "$list" >out 2>err ||
            status=$?
        [ "$status" != 0 ] || continue # it was over before
        # Memory that a broken card does not give is told as memory that is missing.
        [ "$status" != 7 ] || grep -q "out of memory .*: card 0 gives no [0-9]* bytes: an illegal memory access" err ||
            fail "status 7 after $pieces pieces, and no card"
        [ "$status" != 7 ] || continue
        [ "$status" = 1 ] || [ "$status" = 9 ] || fail "status $status after $pieces pieces on $list"
        grep -qE "card 0 could not .*: an illegal memory access" err || fail "the card is not named"
        run 0 train --solver solver.prototxt --gpu 1 --resume auto
        cmp whole_iter_6.safetensors out_iter_6.safetensors ||
            fail "what goes on behind a failure has other bits ($list, $pieces)"
        echo "$list: good behind $pieces pieces"
    done
done
echo "bad cards: good"
