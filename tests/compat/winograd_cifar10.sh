#!/bin/bash
# Winograd's algorithm trains to the same result: on CIFAR-10, a net whose convolutions have 64
# channels is trained with DIRECT and with WINOGRAD from some seeds. The accuracies differ by no more
# than those of the seeds do. (More seeds and updates are in docs/performance.md.)
# SPDX-License-Identifier: BSD-2-Clause
set -eu
if ! "$LOCKSTEP" --version | grep -q '^onednn=2\..* avx512$'; then
    echo "skipped: oneDNN has Winograd's algorithm in version 2 for AVX-512"
    exit 77
fi
. "${LOCKSTEP_SOURCE:?}/tests/support/cifar10.sh" || exit 1
seeds="1 2 3"

# convolution NAME BOTTOM FIELDS, with a ReLU
convolution() {
    cat <<END
layer {
  name: "$1" type: "Convolution" bottom: "$2" top: "$1"
  convolution_param {
    num_output: 64 kernel_size: 3 pad: 1 weight_filler { type: "msra" } $3
  }
}
layer { name: "relu_$1" type: "ReLU" bottom: "$1" top: "$1" }
END
}
# pooling NAME BOTTOM
pooling() {
    echo "layer { name: \"$1\" type: \"Pooling\" bottom: \"$2\" top: \"$1\""
    echo "  pooling_param { kernel_size: 2 stride: 2 } }"
}
# write_net ALGORITHM
write_net() {
    cat <<END
layer {
  name: "train" type: "Data" top: "data" top: "label" include { phase: TRAIN }
  transform_param { mean_value: 120 scale: 0.0157 mirror: true }
  data_param { backend: CIFAR source: "data_batch_1.bin" batch_size: 64 shuffle: true }
}
layer {
  name: "test" type: "Data" top: "data" top: "label" include { phase: TEST }
  transform_param { mean_value: 120 scale: 0.0157 }
  data_param { backend: CIFAR source: "test_batch.bin" batch_size: 100 }
}
END
    convolution c1 data "stride: 2"
    convolution c2 c1 "algorithm: $1"
    pooling p2 c2
    convolution c3 p2 "algorithm: $1"
    pooling p3 c3
    cat <<END
layer {
  name: "ip" type: "InnerProduct" bottom: "p3" top: "ip"
  inner_product_param { num_output: 10 weight_filler { type: "xavier" } }
}
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
layer {
  name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy"
  include { phase: TEST }
}
END
}

for algorithm in DIRECT WINOGRAD; do
    write_net $algorithm >$algorithm.net
    cat >$algorithm.solver <<END
net: "$algorithm.net"
base_lr: 0.01 momentum: 0.9 weight_decay: 0.0005 lr_policy: "fixed" solver_mode: CPU
max_iter: 150 micro_batch: 16
test_interval: 150 test_iter: 30 test_initialization: false
END
    for seed in $seeds; do
        "$LOCKSTEP" train --overwrite --solver $algorithm.solver --workers 2 --set random_seed=$seed >log 2>&1 ||
            fail "$algorithm from seed $seed: exit status $?"
        accuracy=$(sed -n 's/.*accuracy = \([0-9.]*\).*/\1/p' log | tail -n 1)
        echo "$algorithm $seed ${accuracy:-none}" | tee -a accuracies
    done
done
cmp -s DIRECT_iter_150.safetensors WINOGRAD_iter_150.safetensors &&
    fail "the algorithms give the same bytes: there was only one"

# The means differ by less than the best and the worst seed of one algorithm do.
awk '{
    if (!($3 > 0.3)) { print "an accuracy of " $3; bad = 1 }
    sum[$1] += $3; count[$1]++
    if (count[$1] == 1 || $3 < low[$1]) low[$1] = $3
    if (count[$1] == 1 || $3 > high[$1]) high[$1] = $3
} END {
    difference = sum["DIRECT"] / count["DIRECT"] - sum["WINOGRAD"] / count["WINOGRAD"]
    spread = high["DIRECT"] - low["DIRECT"]
    if (high["WINOGRAD"] - low["WINOGRAD"] > spread) spread = high["WINOGRAD"] - low["WINOGRAD"]
    printf "the means differ by %.4f, seeds by up to %.4f\n", difference, spread
    exit bad || count["DIRECT"] != count["WINOGRAD"] || spread <= 0 || difference > spread ||
        -difference > spread
}' accuracies || fail "the algorithms do not train to the same result"
