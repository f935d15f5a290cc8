#!/bin/bash
# The whole program on the stand-in's cards: --gpu of every command that has it, what solver_mode asks
# for, what device_query lists; the same snapshots on any list of cards.
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck source=tests/cuda/scene.sh
. "$(dirname "$0")/scene.sh"
export LOCKSTEP_FAKE_CARDS=3

# ---- Training: one card, several, one with two ranks, all; the first line says what was tested ----
run 0 train --solver solver.prototxt --gpu 0 --snapshot-prefix one
weights=$(grep -o 'Hash of the weights: [0-9a-f]*' out)
head -n 1 out | grep -qF "Computing on card 0 (Fake card); $never" || fail "the first line"
run 0 train --solver solver.prototxt --gpu 2,0 --iterations 1 --snapshot-prefix several
head -n 1 out | grep -qF "Computing on cards 2,0 (Fake card); $never" || fail "the first line with several cards"
rm -f several_*
seed=1
for list in 2 0,1 0,0 all; do
    LOCKSTEP_FAKE_SEED=$((seed++)) run 0 train --solver solver.prototxt --gpu "$list" \
        --snapshot-prefix other --overwrite
    head -n 1 out | grep -qF "$never" || fail "the first line of $list"
    cmp one_iter_6.safetensors other_iter_6.safetensors || fail "cards $list give other bits"
done
run 0 train --solver solver.prototxt --device cuda:1 --snapshot-prefix other --overwrite
cmp one_iter_6.safetensors other_iter_6.safetensors || fail "--device cuda:1 gives other bits"

# --memory is of each card; ranks that have one share it.
run 0 train --solver solver.prototxt --gpu 0,1 --memory 1000KiB --snapshot-prefix other --overwrite
cmp one_iter_6.safetensors other_iter_6.safetensors || fail "a limit on memory gives other bits"
run 7 train --solver solver.prototxt --gpu 0,0 --memory 1000KiB --snapshot-prefix other --overwrite
run 7 train --solver solver.prototxt --gpu 0,0 --memory 1 --snapshot-prefix other --overwrite

# A training goes on on other cards, and the line that says how names them.
run 0 train --solver solver.prototxt --gpu 0,1 --snapshot-prefix half --iterations 3
says out "--gpu 0,1"
run 0 train --solver solver.prototxt --gpu 2 --snapshot-prefix half --resume auto
cmp one_iter_6.safetensors half_iter_6.safetensors || fail "a resume on another card gives other bits"
# The snapshot names the device: the CPU's bits are others.
run 8 train --solver solver.prototxt --snapshot-prefix half --resume half_iter_3.safetensors

# ---- verify: lists of cards are compared as workers and ranks are ----
run 0 verify --solver solver.prototxt --gpu 0 --gpu 0,0 --gpu 0,1,2 --iterations 3
says err "$never"
says out "card 0: 1 worker"
says out "cards 0,0: 2 ranks of 1 worker"
says out "cards 0,1,2: 3 ranks of 1 worker"
run 0 verify --solver solver.prototxt --gpu 1 --workers 1,2 --iterations 3
says out "card 1: 2 workers"
run 2 verify --solver solver.prototxt --gpu 0 --ranks 1,2

# ---- The others ----
run 0 test --model net.prototxt --weights one_iter_6.safetensors --gpu 1
says out "accuracy"
says err "$never"
cp out on_card_1
run 0 test --model net.prototxt --weights one_iter_6.safetensors --gpu 0
cmp out on_card_1 || fail "two cards give other figures"
run 0 time --solver solver.prototxt --gpu 2 --iterations 2
says out "with 1 worker," # as a training on a card
says out "conv"
says out "What the card itself can do is not measured"
! grep -qE "core|of peak|of the limit|Winograd" out || fail "a card is compared with the processor"
run 0 time --solver solver.prototxt --gpu 2 --iterations 2 --json
says out '"flops"'
! grep -qE "machine_before|share_of_peak" out || fail "a card is compared with the processor (JSON)"
run 0 time --solver solver.prototxt --device cpu --iterations 2 --json
says out '"share_of_peak"'
run 0 plan --solver solver.prototxt --gpu 0
says out "lockstep:cuda"
says out "Memory of the card with 1 worker"
says out "total of the host"
run 0 plan --solver solver.prototxt --gpu 0 --json
python3 - <<'PYTHON' || fail "the total is not that of the card"
import json
m = json.load(open("out"))["memory"]
card = m["arena"] * m["workers"] + m["stashed"] * m["stashes"]
card += sum(m[k] for k in ("parameters", "views", "gradients", "optimizer", "averages", "statistics",
                           "sample_states", "device_data", "staging"))
assert m["total"] == card, m
assert m["host"] == sum(m[k] for k in ("data", "snapshot", "code", "runtime")) > 0, m
PYTHON
run 0 plan --solver solver.prototxt --gpu 0 --memory 100MiB
LOCKSTEP_FAKE_BYTES=600000000 run 0 plan --solver solver.prototxt --gpu 0

# ---- device_query ----
run 0 device_query --gpu 0,2
says out "Card:                          2"
says out "Compute capability:            9.0"
says out "Multiprocessors:               4"
says out "UUID:                          GPU-03000000-0000-0000-0000-000000000000"
says out "cuda.driver="
says out "$never"
! grep -q "^Card: *1$" out || fail "a card that was not asked for"
run 0 device_query --json
python3 - <<'PYTHON' || fail "the JSON"
import json
found = json.load(open("out"))
assert [c["card"] for c in found["cards"]] == [0, 1, 2], found
assert found["cards"][0]["runs"] is True and found["cards"][0]["memory"] == 1 << 30, found
assert "nccl" in found["libraries"] and "never on a card" in found["tested"], found
PYTHON
run 0 --version
says out "cuda=a module ($never)"
says out "cuda.code=sm_80 sm_90 compute_90"

# ---- What the solver asks for ----
run 0 train --solver solver.prototxt --set solver_mode=GPU --set device_id=2 --snapshot-prefix mode
says out "Computing on card 2"
cmp one_iter_6.safetensors mode_iter_6.safetensors || fail "solver_mode gives other bits than --gpu"
run 0 train --solver solver.prototxt --set solver_mode=GPU --set device_id=7 --snapshot-prefix mode --overwrite
says out "solver_mode GPU: using the CPU, because there is no card 7"
LOCKSTEP_CUDA_MODULE=$folder/none.so \
    run 0 train --solver solver.prototxt --set solver_mode=GPU --snapshot-prefix mode --overwrite
says out "solver_mode GPU: using the CPU, because"
run 0 train --solver solver.prototxt --set solver_mode=GPU --device cpu --snapshot-prefix mode --overwrite
says out "solver_mode GPU: using the CPU, because another device was asked for"
run 0 train --solver solver.prototxt --snapshot-prefix mode --overwrite # GPU is Caffe's default
! grep -q "card" out || fail "a solver that says nothing computes on a card"

# ---- Caffe's command lines ----
run 0 caffe train -solver solver.prototxt -gpu 0,1
says err "Using GPUs 0,1"
says err "$weights"
run 0 caffe device_query -gpu 1
says err "Card:                          1"
run 0 caffe test -model net.prototxt -weights one_iter_6.safetensors -gpu 1,2 -iterations 2
says err "Using GPUs 1;"
echo "the whole program on the stand-in: good"
