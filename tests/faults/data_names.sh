#!/bin/bash
# Data layers without a name, and two of one name: each brings what it says, as with other names.
# SPDX-License-Identifier: BSD-2-Clause
. "${LOCKSTEP_SOURCE:?}/tests/support/faults.sh" || exit 1

idx_images 40 3 >small
idx_images 40 90 >large
solver() {
    echo 'max_iter: 3 base_lr: 0.0001 lr_policy: "fixed" random_seed: 1 snapshot_prefix: "s"'
}
# two_layers A B: a net with two data layers, each with such a line for its name.
two_layers() {
    cat <<END
layer { $1 type: "Data" top: "x" data_param { backend: IDX source: "small" batch_size: 8 } }
layer { $2 type: "Data" top: "y" data_param { backend: IDX source: "large" batch_size: 8 } }
layer { name: "a" type: "InnerProduct" bottom: "x" top: "a"
  inner_product_param { num_output: 4 weight_filler { type: "gaussian" std: 0.01 } } }
layer { name: "b" type: "InnerProduct" bottom: "y" top: "b"
  inner_product_param { num_output: 4 weight_filler { type: "gaussian" std: 0.01 } } }
layer { name: "loss" type: "EuclideanLoss" bottom: "a" bottom: "b" top: "loss" }
END
}
solver >solver.prototxt
echo 'net: "net.prototxt"' >>solver.prototxt
two_layers 'name: "first"' 'name: "second"' >net.prototxt
train 0 'Optimization Done'
sed -n 's/^Hash of the weights: //p' log >wanted
[ -s wanted ] || fail "there is no hash of the weights"
for names in 'name: "d"/name: "d"' '/' 'name: "d"/' '/name: "d"'; do
    two_layers "${names%/*}" "${names#*/}" >net.prototxt
    expect 0 "^Hash of the weights: $(cat wanted)" -- "$LOCKSTEP" train --overwrite \
        --solver solver.prototxt
    rm -f s_iter_*
    expect 0 -- "$LOCKSTEP" train --solver solver.prototxt --iterations 2
    expect 0 "^Hash of the weights: $(cat wanted)" -- "$LOCKSTEP" train --solver solver.prototxt \
        --resume auto
    expect 0 -- "$LOCKSTEP" plan --solver solver.prototxt
    expect 0 -- "$LOCKSTEP" check --solver solver.prototxt
done

# Layers whose samples differ in size: the message names what has no name.
mkdir p
grey 12 12 10 >p/a.png
grey 9 14 20 >p/b.png
pictures='data_param { backend: IMAGES source: "list" batch_size: 2 is_color: false }'
printf 'p/a.png 0\np/b.png 1\n' >list
cat >net.prototxt <<END
layer { type: "Data" top: "x" $pictures }
layer { type: "Data" top: "y" $pictures }
layer { name: "a" type: "EuclideanLoss" bottom: "x" bottom: "y" top: "loss" }
END
train 3 "net.prototxt:2:[0-9]*: \(unnamed\): its samples differ in size, and so do those of layer '\(unnamed\)'"
finish
