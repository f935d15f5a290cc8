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
. "$LOCKSTEP_SOURCE/tests/support/nets.sh" || exit 1
seeds="1 2 3"

for algorithm in DIRECT WINOGRAD; do
    test_net winograd_cifar10 algorithm=$algorithm >$algorithm.net
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
