#!/bin/bash
# Invalid definitions: all problems are reported together, each with its place, before anything is
# trained or written.
# SPDX-License-Identifier: BSD-2-Clause
. "${LOCKSTEP_SOURCE:?}/tests/support/faults.sh" || exit 1

# bad SED TEXT...: the small net, changed, must be refused.
bad() {
    local change=$1
    shift
    small_net | sed "$change" >net.prototxt
    train 3 '!Iteration' "$@"
}
at='^lockstep: net.prototxt:[0-9]+:[0-9]+: '

bad 's/kernel_size: 3/kernal_size: 3/' \
    "^lockstep: net.prototxt:14:37: unknown field 'kernal_size' in ConvolutionParameter of layer 'conv' \(Convolution\); did you \
mean 'kernel_size'\?$"
bad '/name: "conv"/i layer { }' "${at}unknown field 'layer'.*is a '}' missing in front of it"
bad 's/"Pooling"/"Poolin"/' "${at}pool: there is no layer type 'Poolin'.*did you mean 'Pooling'"
bad 's/type: "Pooling" //' "${at}pool: "
bad 's/type: "Pooling"/type: "DenseCRF"/' "${at}pool: there is no layer type 'DenseCRF'.*DeepLab"
bad 's/kernel_size: 3/kernel_size: 13/' "${at}conv: the kernel covers 13 positions, .* 12"
bad 's/kernel_size: 2/kernel_size: 20/' "${at}pool: kernel_size 20 is larger than .* input 10"
bad 's/num_output: 4/num_output: 0/' "${at}conv: num_output must be at least 1"
bad 's/num_output: 4/num_output: -4/' "${at}the value -4 of field 'num_output' is out of range"
bad 's/num_output: 4/num_output: 4.5/' "${at}field 'num_output' takes a whole number"
bad 's/num_output: 4/num_output: 99999999999/' "${at}the value 99999999999 .* out of range"
bad 's/"xavier"/"xavyer"/' "${at}conv: weight filler: unknown filler 'xavyer'.*xavier, msra"
bad '1i layer { name: "p" type: "Parameter" top: "p"\
  parameter_param { shape { dim: 2 } blob_filler { type: "zap" } } }' \
    "${at}p: parameter filler: unknown filler 'zap'"
bad 's/type: "xavier"/type: "uniform" min: 2/' "${at}conv: weight filler: .*min 2 to max 1"
bad 's/type: "xavier"/type: "gaussian" std: -1/' "${at}conv: weight filler: .*std -1"
bad 's/type: "xavier"/value: nan/' "${at}conv: weight filler: .*nan"
bad 's/bottom: "conv"/bottom: "cnov"/' "${at}pool: .*bottom 'cnov'.*did you mean 'conv'"
bad 's/bottom: "label"/bottom: "data"/' "${at}loss: 'data' has"
bad 's/bottom: "label"//' "${at}loss: its type SoftmaxWithLoss takes 2 to 3 bottoms, not 1"
bad 's/top: "pool"/top: "conv2" top: "pool"/' "${at}(pool|ip): "
bad 's/batch_size: 16/batch_size: 0/' "${at}d: a batch of 0 samples is not possible"
bad 's/batch_size: 16//' "${at}d: batch_size is missing"
bad 's/batch_size: 16/batch_size: 4294967295/' "${at}d: a batch of 4294967295 samples is too large"
bad 's/SYNTHETIC/LEVELDB/' "${at}.*d.*backend" '!is a directory'
bad 's/SYNTHETIC/SYNTETIC/' "${at}.*SYNTETIC"
bad 's/count: 300/count: 0/' "${at}"
bad 's/height: 12/height: 4294967295/' "${at}"
bad 's/scale: 0.00390625/crop_size: 13/' "${at}.*crop_size 13 is larger than the records"
bad 's/scale: 0.00390625/mean_value: 1 mean_value: 2/' "${at}.*one mean_value"
bad 's/top: "ip"$/top: "ip" loss_weight: nan/' "${at}ip: loss_weight must be a finite number"
bad '/loss/d' 'net.prototxt.*: the train net has no loss.*add a loss layer'
bad '/TRAIN/,/^}/d' 'net.prototxt'
bad 's/top: "ip"$/top: "ip" param { lr_mult: 0 } param { lr_mult: 0 }/;
     s/top: "conv"$/top: "conv" param { lr_mult: 0 } param { lr_mult: 0 }/' \
    'the train net has nothing to learn'
bad 's/top: "conv"$/top: "conv" param { } param { } param { }/' "${at}conv: has 3 param blocks"

# A layer of the wrong phase, two layers of one name, a parameter of two shapes.
bad 's/name: "ip"/name: "conv"/' "${at}conv: another layer of this phase has the same name"
bad 's/top: "conv"$/top: "conv" param { name: "w" }/; s/top: "ip"$/top: "ip" param { name: "w" }/' \
    "${at}ip: shares 'conv.weight' of layer 'conv', whose shape is"
bad 's/include { phase: TEST }/include { phase: TEST } exclude { phase: TRAIN }/' "${at}"

# Several problems in one go, each of them once, in train and test net alike.
bad 's/"Pooling"/"Poolin"/; s/"xavier"/"xavyer"/; s/batch_size: 16/batch_size: 0/; s/"label"$/"lab"/;
     s/num_output: 10/num_output: 0/; s/bottom: "ip" bottom/bottom: "pi" bottom/' \
    "net.prototxt:5:[0-9]+: d: a batch of 0" "net.prototxt:17:[0-9]+: pool: " \
    "net.prototxt:14:[0-9]+: conv: weight filler" "net.prototxt:[0-9]+:[0-9]+: loss: .*'pi'"
[ "$(sort log | uniq -d | wc -l)" = 0 ] || fail "a problem was told twice: $(sort log | uniq -d)"
bad 's/kernel_size: 3/kernal_size: 3/; s/stride: 2/stride: 2.5/; s/"Pooling"/Pooling/;
     s/name: "ip"/nam: "ip"/; s/crop/x/; s/num_output: 10/num_output: "10"/' \
    "net.prototxt:14:37: unknown field 'kernal_size'" "net.prototxt:18:[0-9]+: .*'2.5'" \
    "net.prototxt:17:[0-9]+: field 'type' takes a string" "unknown field 'nam'.*'name'" \
    "net.prototxt:22:[0-9]+: "

# An unknown field hides neither a type that is not there nor what is wrong elsewhere; what it may
# have led to is not told.
bad 's/kernel_size: 3/kernal_size: 3/; s/"Pooling"/"Poolin"/; s/num_output: 10/num_output: 0/' \
    "net.prototxt:14:37: unknown field 'kernal_size'" "pool: there is no layer type 'Poolin'" '!kernel_size is' \
    '!no layer above'
# Nor does a Data layer that could not be read, or whose type is another fork's.
bad 's/batch_size: 16/batch_sise: 16/; s/"Pooling"/"Poolin"/' "unknown field 'batch_sise'.*'batch_size'" \
    "there is no layer type 'Poolin'" '!no layer that brings data' '!batch_size is missing'
bad 's/type: "Data"/type: "AnnotatedDatas"/; s/num_output: 10/num_output: 0/' \
    "there is no layer type 'AnnotatedDatas'" '!no layer that brings data'
# Parameters of another type, and fields of forks that change nothing, are warnings.
small_net | sed 's/name: "pool"/& lrn_param { } quantization_param { x: 1 }/' >net.prototxt
expect 0 "warning: net.prototxt:17:[0-9]+: fields of forks .* quantization_param \(Ristretto; 1 time\)" \
    "warning: net.prototxt:17:[0-9]+: pool: lrn_param is ignored: layers of type Pooling do not read it" \
    -- "$LOCKSTEP" train --solver solver.prototxt
rm ./*.safetensors

# Problems of the solver and of its net.
small_net | sed 's/kernel_size: 3/kernal_size: 3/' >net.prototxt
small_solver | sed 's/momentum: 0.9/momentum: 1.5/; s/"fixed"/"fixt"/' >solver.prototxt
train 3 'solver.prototxt:3:1: momentum must be at least 0 and below 1, not 1.5' \
    "solver.prototxt:4:1: unknown lr_policy 'fixt'; did you mean 'fixed'" \
    "net.prototxt:14:37: unknown field 'kernal_size'"
small_net | sed 's/"Pooling"/"Poolin"/' >net.prototxt
train 3 'solver.prototxt:3:1: momentum' "solver.prototxt:4:1: .*'fixt'" "net.prototxt:17:[0-9]+: "
# A misspelt Data layer is one mistake; what else is wrong is told with it.
small_net | sed 's/"Data"/"Dota"/; s/bottom: "pool"/bottom: "pol"/' >net.prototxt
train 3 '!no layer that brings data' "there is no layer type 'Dota'.*did you mean 'Data'" "its bottom 'pol'"
small_net >net.prototxt
# Names of layers do not steer the terminal that a table is written to.
small_net | sed "s/name: \"conv\"/name: \"c\\\\033[2Jv\"/" >named.prototxt
expect 0 '!'$'\033' 'c\?\[2Jv' -- "$LOCKSTEP" plan --model named.prototxt

# solver TEXT REGEX...: one more line of the solver.
solver() {
    small_solver "$1" >solver.prototxt
    shift
    train 3 '!Iteration' "$@"
}
solver 'displai: 5' "^lockstep: solver.prototxt:9:1: unknown field 'displai'.*'display'"
solver 'display: -5' '^lockstep: solver.prototxt:9:1: display must be at least 0'
solver 'iter_size: 0' '^lockstep: solver.prototxt:9:1: iter_size must be at least 1'
solver 'micro_batch: -1' '^lockstep: solver.prototxt:9:1: micro_batch must be'
solver 'iter_size: 2000000000' 'net.prototxt.*micro-batches; at most 4096'
solver 'weight_decay: nan' '^lockstep: solver.prototxt:9:1: weight_decay must be'
solver 'weight_decay: -inf' '^lockstep: solver.prototxt:9:1: weight_decay must be'
solver 'clip_gradients: 0' '^lockstep: solver.prototxt:9:1: clip_gradients 0'
solver 'type: "Adamm"' "^lockstep: solver.prototxt:9:1: unknown solver type 'Adamm'.*'Adam'"
solver 'type: "AdaGrad"' "momentum cannot be used with type 'AdaGrad'"
solver 'type: "RMSProp"' "momentum cannot be used with type 'RMSProp'"
solver 'max_epoch: 3' 'both max_iter and max_epoch are given'
solver 'momentum: 0.9' "field 'momentum' is given twice; .* solver.prototxt:3:1"
solver 'test_interval: 10 snapshot_best: "accurasy"' \
    "solver.prototxt:9:19: .*no output 'accurasy'.*did you mean 'accuracy'"
small_net | sed 's/top: "accuracy"/& top: "accuracy_of_class"/' >net.prototxt
solver 'test_interval: 10 snapshot_best: "accuracy_of_class"' \
    "solver.prototxt:9:19: snapshot_best: output 'accuracy_of_class' has 10 values.*hint: name"
small_net >net.prototxt
solver 'net_param { }' 'solver.prototxt'
solver 'test_state { stage: "a" }' 'solver.prototxt'
solver 'average_loss: 0' 'average_loss must be at least 1'
solver 'step_epoch: 1 stepsize: 3' 'both stepsize and step_epoch'
solver '}' "solver.prototxt:9:1: expected the name of a field, found '}'"
solver 'type: "SGD' 'solver.prototxt:9:'
solver 'base_lr' 'solver.prototxt:'
small_solver | sed '/max_iter/d' >solver.prototxt
train 3 'the solver does not say how long to train.*max_iter'
small_solver | sed '/base_lr/d' >solver.prototxt
train 3 'solver.prototxt.*base_lr'

# Text that is none, and text without end.
: >solver.prototxt
train 3 'solver.prototxt'
noise 5000 >solver.prototxt
train 3 'solver.prototxt'
head -c 5000 "$LOCKSTEP" >solver.prototxt
train 3 'solver.prototxt'
for ((i = 0; i < 100000; i++)); do printf 'net_param { '; done >solver.prototxt
train 3 'solver.prototxt:1:[0-9]+: expected fewer messages within messages'
for ((i = 0; i < 300; i++)); do printf 'train_state { stage: "a" '; done >solver.prototxt
train 3 'solver.prototxt:1:'
head -c 3000000 /dev/zero | tr '\0' '[' >solver.prototxt
train 3 'solver.prototxt:1:1: '
{
    printf 'net: "'
    head -c 3000000 /dev/zero | tr '\0' 'x'
    printf '"'
} >solver.prototxt
train 3 'solver.prototxt:1:'
for ((i = 0; i < 30000; i++)); do echo "unknown_$i: $i"; done >solver.prototxt
train 3 'solver.prototxt:1:1: unknown field' 'more\)'
printf 'net: "a\\0b" max_iter: 3 base_lr: 1 lr_policy: "fixed"' >solver.prototxt
train 3 "solver.prototxt:1:[0-9]+: field 'net': a zero byte in a string"
printf 'net: "net.prototxt" # \377\376\200\n max_iterr: 3' >solver.prototxt
train 3 'solver.prototxt:2:2: unknown field'
printf 'net: "net.prototxt" # \033[31m\n' >solver.prototxt
train 3 'solver.prototxt: ' "!$(printf '\033')"

# A layer that no kernel can do.
small_solver >solver.prototxt
bad 's/num_output: 4/num_output: 100000000/' "${at}conv: .*too large"
# A name that no tensor of a snapshot can have: before the training, not at its end.
bad 's/name: "conv"/name: "\\377"/' 'net.prototxt: layer .*: its name is not UTF-8'
# Less memory than any micro-batch needs: each that is tried is given back.
small_net >net.prototxt
train 7 'training needs at least .* no smaller micro_batch would fit' -- --memory 100KiB
[ -z "$(ls ./*.safetensors 2>/dev/null)" ] || fail "something was written: $(ls)"

# Two nets, or data, of one name: which one is meant is said.
small_solver >solver.prototxt
mkdir other
cp solver.prototxt other
ln net.prototxt other/net.prototxt
expect 0 '!working directory' -- "$LOCKSTEP" plan --solver other/solver.prototxt
sed 's/num_output: 4/num_output: 5/' net.prototxt >other/new
mv other/new other/net.prototxt
expect 0 "warning: other/solver.prototxt:[0-9]+:[0-9]+: the net is 'net.prototxt' of the working directory, not \
'other/net.prototxt'" -- "$LOCKSTEP" plan --solver other/solver.prototxt
idx_images 20 12 | tee images >other/images
idx_labels 20 >labels
small_net "backend: IDX source: 'images' label_source: 'labels'" >other/net.prototxt
rm net.prototxt
expect 0 "warning: other/net.prototxt:.*layer 'd': its data are 'images' of the working directory, not 'other/images'" \
    -- "$LOCKSTEP" plan --solver other/solver.prototxt
finish
