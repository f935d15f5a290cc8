#!/bin/bash
# The commands of README's tour and of its section on BF16 do what they say, in their order, in a folder
# that has the examples alone. Here the solver of the digits makes 10 updates in place of 1000.
# SPDX-License-Identifier: BSD-2-Clause
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
ln -s "$LOCKSTEP" "$work/bin/lockstep"
ln -s "$LOCKSTEP_BUILD/caffe" "$work/bin/caffe"
export PATH=$work/bin:$PATH
cp -r "$LOCKSTEP_SOURCE/examples" "$work/examples"
cd "$work" || exit 1
sed -i -e 's/^max_iter: 1000$/max_iter: 10/' -e 's/^test_interval: .*/test_interval: 10/' \
    examples/digits/lenet_solver.prototxt
# Ten updates more become two, test data 200 digits, and what may be tried out many times is tried once.
sed -i 's/count: 10000/count: 200/; s/count: 60000/count: 640/; s/first: 60000/first: 640/' \
    examples/digits/lenet_train_test.prototxt
shorten='s/1200/12/g; s/1000/10/g; s/ time .*_solver.prototxt/& --iterations 1/; s/ tune .*/& --seconds 0.1 --batch 64 --micro-batch 8/'

# Commands of the sections, without comments, a line each.
awk '/^## /{ on = /^## A tour/ || /^## BF16/ } on && /^    (lockstep|caffe) /,!/\\$/' "$LOCKSTEP_SOURCE/README.md" |
    sed -e ':join; /\\$/{ N; s/\\\n *//; b join }' -e 's/^ *//' -e 's/ *#.*//' -e "$shorten" >commands
count=0
while read -r command; do
    status=0
    bash -c "$command" >log 2>&1 </dev/null || status=$?
    expected=0
    case $command in
    "lockstep diff"*) expected=8 ;;
    esac
    if [ $status != $expected ]; then
        cat log
        echo "FAILED: '$command' in README.md has exit status $status"
        exit 1
    fi
    count=$((count + 1))
done <commands
[ $count -ge 25 ] || { cat commands; echo "FAILED: only $count commands were found"; exit 1; }
