#!/bin/bash
# Plugins: the example trains the same bits in every form; plugins with mistakes (tests/plugins) are
# told with what is wrong, and never crash the program.
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck source=tests/support/faults.sh
. "${LOCKSTEP_SOURCE:?}/tests/support/faults.sh" || exit 1
plugins=${LOCKSTEP_BUILD:?}/plugins
good=$plugins/shrink.so

# plugin_net LAYER: the small net with a layer called "p" between its pool and its inner product.
plugin_net() {
    small_net | sed "s/^  name: \"ip\" .*/  name: \"p\" bottom: \"pool\" top: \"p\" $1\n}\nlayer {\n\
  name: \"ip\" type: \"InnerProduct\" bottom: \"p\" top: \"ip\"/"
}

# trains STATUS PLUGIN [TEXT...]: trains with it, over what was there before.
trains() {
    local status=$1 plugin=$2
    shift 2
    expect "$status" "$@" -- "$LOCKSTEP" train --overwrite --solver solver.prototxt --workers 2 --plugin "$plugin"
}

plugin_net 'type: "Shrink" plugin_param { threshold: 0.02 }' >net.prototxt
small_solver 'test_interval: 10' >solver.prototxt
expect 0 '!differ' -- "$LOCKSTEP" verify --solver solver.prototxt --plugin "$good" --workers 1,2,3,5 \
    --ranks 1,2 --memory full,least --resume random --iterations 8
expect 0 '!differ' -- "$LOCKSTEP" verify --solver solver.prototxt --plugin "$good" --device reference \
    --workers 1,3 --iterations 3
trains 0 "$good"
expect 0 'accuracy = ' -- "$LOCKSTEP" test --model net.prototxt --weights s_iter_20.safetensors -plugin="$good"
expect 0 'Shrink' -- "$LOCKSTEP" plan --plugin "$good" --plugin "$good" --solver solver.prototxt
cp "$good" here.so # a name without a slash is a file, as elsewhere
trains 0 here.so

# The plugin belongs to what a training's bits depend on.
cp "$good" other.so
printf 'x' >>other.so
expect 8 'plugin Shrink' -- "$LOCKSTEP" train --overwrite --solver solver.prototxt --plugin ./other.so \
    --resume s_iter_10.safetensors

# What the definition says wrong.
trains 2 ./missing.so 'missing.so'
trains 2 "$LOCKSTEP_SOURCE/README.md" 'README.md: .*invalid ELF header'
expect 2 'plugin' -- "$LOCKSTEP" plan --solver solver.prototxt --plugin
expect 3 "there is no layer type 'Shrink'.*plugin" -- "$LOCKSTEP" plan --solver solver.prototxt
plugin_net 'type: "Shrink" plugin_param { treshold: 1 }' >net.prototxt
trains 3 "$good" 'net.prototxt:21:[0-9]+: p: Shrink has no setting treshold'
plugin_net 'type: "Shrink" plugin_param { threshold: -1 }' >net.prototxt
trains 3 "$good" 'p: threshold must be a number of at least 0'
plugin_net 'type: "Shrink" bottom: "conv"' >net.prototxt
trains 3 "$good" 'its type Shrink takes 1 bottom, not 2'

# It may mix samples; then a batch is one micro-batch.
plugin_net 'type: "BatchCentre"' >net.prototxt
trains 0 "$good" "'p' \(BatchCentre\) mixes the samples"
expect 0 '!differ' -- "$LOCKSTEP" verify --solver solver.prototxt --plugin "$good" --workers 1,3 --iterations 3
sed -i 's/name: "p" //' net.prototxt
trains 0 "$good" "'\(unnamed\)' \(BatchCentre\) mixes the samples"
expect 0 "\(unnamed\)" -- "$LOCKSTEP" plan --solver solver.prototxt --plugin "$good"

# Plugins that cannot be loaded.
plugin_net 'type: "Twice"' >net.prototxt
trains 0 "$plugins/faulty_0.so"
trains 2 "$plugins/faulty_1.so" 'built for version 77 of the interface, and this is 1'
trains 2 "$plugins/faulty_2.so" 'does not export lockstep_plugin'
trains 2 "$plugins/faulty_3.so" 'lists no layer types'
trains 2 "$plugins/faulty_4.so" "there is a layer type 'Convolution' already"
trains 2 "$plugins/faulty_5.so" "'Twice' lacks setup or forward"
expect 2 "there is a layer type 'Twice' already" -- "$LOCKSTEP" plan --solver solver.prototxt \
    --plugin "$plugins/faulty_0.so" --plugin "$plugins/faulty_6.so"
# What a plugin sets in the floating-point unit is undone: all else has the bits of the one that sets nothing.
weights_of() { # weights_of PLUGIN
    rm -f s_iter_*
    "$LOCKSTEP" train --overwrite --solver solver.prototxt --workers 2 --plugin "$1" 2>&1 | grep -o 'Hash of the weights: .*'
}
plain=$(weights_of "$plugins/faulty_0.so")
changed=$(weights_of "$plugins/faulty_21.so")
[ -n "$plain" ] || fail "a training told no hash"
[ "$plain" = "$changed" ] || fail "a plugin that changes the rounding changed other layers: $plain, $changed"
# Layers that cannot be set up.
trains 3 "$plugins/faulty_6.so" 'net.prototxt:20:1: p: not today'
trains 3 "$plugins/faulty_7.so" 'p: axis 0 of top 0 has [0-9]+ rows for [0-9]+ samples.*mistake of the plugin'
trains 3 "$plugins/faulty_8.so" 'p: the shape of blob 0 cannot be'
trains 3 "$plugins/faulty_18.so" 'p: x{255}'
trains 3 "$plugins/faulty_19.so" 'p: a layer cannot have 18446744073709551615 bytes of scratch'
trains 3 "$plugins/faulty_20.so" 'p: blob 0 begins with a number that is not finite'
# And what goes wrong in a pass.
trains 3 "$plugins/faulty_9.so" "p: forward of plugin '.*faulty_9.so' failed: the moon is full" '!Snapshotting'
trains 3 "$plugins/faulty_10.so" "p: backward of plugin .* failed: it does not say why"
trains 3 "$plugins/faulty_11.so" 'p: forward of plugin .* not finite of numbers that are'
# checks STATUS FAULT [TEXT...]: the types of a plugin with a mistake are tested.
checks() {
    local status=$1 plugin=$plugins/faulty_$2.so
    shift 2
    expect "$status" "$@" -- "$LOCKSTEP" check-plugin "$plugin"
}
expect 0 '^Shrink: .*for each sample by itself, [1-9]' '^BatchCentre: .*mixes samples, [1-9]' -- \
    "$LOCKSTEP" check-plugin "$good" --bottom 6x2x3
expect 0 '^Shrink' '!BatchCentre' -- "$LOCKSTEP" check-plugin "$good" --type Shrink --set threshold=0.3
expect 8 'Shrink has no setting x' -- "$LOCKSTEP" check-plugin "$good" --type Shrink --set x=0.3
expect 2 "it has no type 'Shrunk'" -- "$LOCKSTEP" check-plugin "$good" --type Shrunk
expect 2 "'4x' is no shape" -- "$LOCKSTEP" check-plugin "$good" --bottom 4x
expect 2 "'1048576x1048576x1048576x16' is no shape" -- "$LOCKSTEP" check-plugin "$good" \
    --bottom 1048576x1048576x1048576x16
expect 2 "'x' is no setting" -- "$LOCKSTEP" check-plugin "$good" --set x
expect 2 'it does not take 2 bottoms' -- "$LOCKSTEP" check-plugin "$good" --bottom 4x3 --bottom 4x3
checks 0 0 '^Twice'
checks 8 6 'Twice: its setup refuses: not today'
checks 8 7 'Twice: axis 0 of top 0'
checks 8 19 'Twice: a layer cannot have 18446744073709551615 bytes of scratch'
checks 8 9 'Twice: forward the moon is full'
checks 8 10 'Twice: backward fails'
checks 8 11 'Twice: forward makes a number that is not finite'
checks 8 12 'Twice: forward gives other rows for a sample by itself'
checks 8 13 'Twice: backward gives .*, but differences of forward give'
checks 8 14 'Twice: forward gives other bits for the same numbers'
checks 8 15 'Twice: forward writes to what it should only read'
checks 8 16 'Twice: forward writes behind the end'
checks 8 17 'Twice: forward leaves elements of its output out'
plugin_net 'type: "Twice"' >twice.prototxt
for fault in 22 23 24; do
    checks 8 $fault 'Twice: ends the process, or its thread, with code 0'
    expect 7 'code of a plugin, or of a library, has ended the program' -- \
        "$LOCKSTEP" plan --plugin "$plugins/faulty_$fault.so" --model twice.prototxt
done
checks 8 25 'Twice: crashes: Segmentation fault'
finish
