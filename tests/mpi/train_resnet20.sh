#!/bin/bash
# ResNet-20 with batch statistics over the whole batch, which lies on several ranks: the same
# bytes.
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck source=tests/support/ranks.sh
. "${LOCKSTEP_SOURCE:?}/tests/support/ranks.sh" || exit 1
cifar10_folder 120
sed 's/batch_size: 128/batch_size: 72/' \
    "$LOCKSTEP_SOURCE/examples/cifar10/resnet20_train_test.prototxt" >resnet20_train_test.prototxt
cat >solver.prototxt <<TEXT
net: "resnet20_train_test.prototxt"
type: "Nesterov"
base_lr: 0.05
lr_policy: "fixed"
momentum: 0.9
weight_decay: 0.0005
random_seed: 1
max_iter: 2
TEXT

alone 2
jobs
for kind in "${kinds[@]}"; do
    uneven "$kind" 3 1
done
finish
