#!/bin/bash
# bench/sameness.sh, Lockstep's part, on a few made-up pictures: all forms of a training have one
# hash, and a training that differs is found.
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck source=tests/support/faults.sh
. "${LOCKSTEP_SOURCE:?}/tests/support/faults.sh" || exit 1
sanitized && {
    echo "skipped: eight trainings of ResNet-20 take too long with a sanitizer"
    exit 77
}
export LIMIT=300
mkdir data
cifar_records 44 >data/data_batch_1.bin
cp data/data_batch_1.bin data/test_batch.bin
real=$LOCKSTEP
cat >other <<TEXT
#!/bin/bash
case " \$* " in
*" train "*" --workers 7 "*) set -- "\$@" --set random_seed=2 ;;
esac
exec "$real" "\$@"
TEXT
chmod +x other
export LOCKSTEP=$work/other
expect 1 'the last of an epoch: 4' '2 hashes: the promise is broken' -- \
    bash "$LOCKSTEP_SOURCE/bench/sameness.sh" --only lockstep --epochs 1 --records 44 --tests 10 \
    --batch 8 --data data
hash=$(sed -n 's/^| 1 worker |[^0-9a-f]*\([0-9a-f]*\).*/\1/p' log)
ways=$(grep -c '^| .*[0-9] |$' log)
others=$(grep '^| .*[0-9] |$' log | grep -vc "\`$hash\`")
[ ${#hash} = 64 ] || fail "no hash in the page"
[ "$ways" -ge 6 ] || fail "$ways ways"
[ "$others" = 1 ] || fail "$others ways differ from 1 worker"
grep '^| 7 workers' log | grep -q "$hash" && fail "7 workers have the hash of another training"
[ "$failures" = 0 ] || cat log
finish
