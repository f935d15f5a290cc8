#!/bin/bash
# ResNet-20 as the example defines it, on CIFAR-10: it learns, and its snapshots are the same
# bytes on any number of workers, with batches and groups that divide each other and that do not,
# and after a resume. (A full training is in docs/performance.md.)
# SPDX-License-Identifier: BSD-2-Clause
. "${LOCKSTEP_SOURCE:?}/tests/support/cifar10.sh" || exit 1
examples=$LOCKSTEP_SOURCE/examples/cifar10
for i in 2 3 4 5; do
    ln -s data_batch_1.bin data_batch_$i.bin
done

# write_solver NAME GROUP BATCH LINES: the example's net with another group and batch.
write_solver() {
    sed -e "s/batch_norm_param {/& group: $2/" -e "s/batch_size: 128/batch_size: $3/" \
        "$examples/resnet20_train_test.prototxt" >"$1_net.prototxt"
    cat >"$1.prototxt" <<END
net: "$1_net.prototxt"
type: "Nesterov"
base_lr: 0.05
lr_policy: "fixed"
momentum: 0.9
weight_decay: 0.0005
random_seed: 1
display: 1
solver_mode: CPU
$4
END
}

# train NAME ITERATIONS WORKERS PREFIX OPTIONS...
train() {
    local name=$1 iterations=$2 workers=$3 prefix=$4
    shift 4
    "$LOCKSTEP" train --overwrite --solver "$name.prototxt" --workers "$workers" --snapshot-prefix "$prefix" \
        --iterations "$iterations" "$@" >log 2>&1 ||
        fail "train $name on $workers workers: exit status $?"
}

write_solver learn 0 128 "max_iter: 60"
train learn 60 2 learn
loss=$(sed -n 's/^Iteration 59.*, loss = //p' log)
awk -v loss="$loss" 'BEGIN { exit !(loss > 0 && loss < 2) }' || fail "the loss is $loss"
"$LOCKSTEP" test --model learn_net.prototxt --weights learn_iter_60.safetensors --iterations 10 \
    >log 2>&1 || fail "test: exit status $?"
accuracy=$(sed -n 's/.*accuracy = \([0-9.]*\).*/\1/p' log | tail -n 1)
awk -v accuracy="$accuracy" 'BEGIN { exit !(accuracy > 0.2) }' || fail "the accuracy is $accuracy"

# Each of these is trained for 3 updates by 1 worker, by others, and by two numbers of workers with a
# stop in between; each group with one of the batches, or, with $LOCKSTEP_ALL, with both.
number=0
for batch in 128 100; do
    for group in 0 32 20 16; do
        name=b${batch}_g$group
        case ${LOCKSTEP_ALL:+all}$name in b128_g20 | b128_g16 | b100_g0 | b100_g32) continue ;; esac
        iter_size=$((1 + number % 2))
        more=$((2 + number % 4)) # 2, 3, 4, 5 workers
        write_solver $name $group $batch "max_iter: 3 iter_size: $iter_size"
        train $name 3 1 ${name}_1
        train $name 3 $more ${name}_more
        cmp ${name}_1_iter_3.safetensors ${name}_more_iter_3.safetensors ||
            fail "$name: 1 and $more workers differ"
        train $name 1 3 ${name}_cut
        train $name 3 2 ${name}_cut --resume ${name}_cut_iter_1.safetensors
        cmp ${name}_1_iter_3.safetensors ${name}_cut_iter_3.safetensors ||
            fail "$name: a stop and a resume change the bytes"
        number=$((number + 1))
    done
done
echo "loss $loss after 60 updates, accuracy $accuracy; the same bytes in $number trainings"
