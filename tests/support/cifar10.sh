# CIFAR-10 in a folder of a test's own, into which it goes. Sourced by tests/compat/*.sh, with
# $LOCKSTEP_SOURCE the tree; a machine without the data skips the test.
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
set -eu
data=${LOCKSTEP_DATA:-$LOCKSTEP_SOURCE/../shared/data}/cifar10
if [ ! -r "$data/data_batch_1.bin.xz" ] && [ ! -r "$data/data_batch_1.bin" ]; then
    echo "skipped: no CIFAR-10 in $data (LOCKSTEP_DATA says where data are)"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
# fail TEXT: ends the test with the end of the file `log`.
fail() {
    tail -n 20 log
    echo "FAILED: $*"
    exit 1
}

# One training file, which is enough, and the test file.
for name in data_batch_1 test_batch; do
    if [ -r "$data/$name.bin" ]; then
        ln -s "$data/$name.bin" $name.bin
    else
        xz -dc "$data/$name.bin.xz" >$name.bin
    fi
done
