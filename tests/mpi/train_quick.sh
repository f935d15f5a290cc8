#!/bin/bash
# Caffe's quick network for CIFAR-10 on several ranks: the same bytes for any number of ranks and
# workers, different numbers of workers, a work queue, and a resume on other ranks.
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck source=tests/support/ranks.sh
. "${LOCKSTEP_SOURCE:?}/tests/support/ranks.sh" || exit 1
cifar10_folder 120
cp "$LOCKSTEP_SOURCE/examples/cifar10/cifar10_quick_train_test.prototxt" .
sed '/test_interval/d; s/^snapshot:.*/snapshot: 1/' \
    "$LOCKSTEP_SOURCE/examples/cifar10/cifar10_quick_solver.prototxt" >solver.prototxt

alone 3
cp alone_iter_1.safetensors first.safetensors
jobs
for kind in "${kinds[@]}"; do
    uneven "$kind" 1 3
    uneven "$kind" 2 1 3
    job "$kind" 3 2 --balance dynamic
    job "$kind" 2 2 --resume first.safetensors
done
finish
