#!/bin/bash
# --trace: a file for Perfetto with all threads, the same bytes as without it, a limit that is told.
# SPDX-License-Identifier: BSD-2-Clause
. "${LOCKSTEP_SOURCE:?}/tests/support/faults.sh" || exit 1
small_net >net.prototxt
small_solver "display: 5 micro_batch: 3" >solver.prototxt
train 0 -- --snapshot-prefix plain
train 0 '!warning' -- --snapshot-prefix traced --trace trace.json
cmp plain_iter_20.safetensors traced_iter_20.safetensors || fail "other bytes than without a trace"
for text in '"name":"worker 0"' '"name":"worker 1"' '"name":"prefetcher"' '"cat":"forward"' \
    '"cat":"backward"' '"cat":"weights"' '"cat":"snapshot"' '"cat":"decode"' '^\]}$'; do
    grep -q -e "$text" trace.json || fail "no word of $text in the trace"
done
[ "$(grep -c '"cat":"update"' trace.json)" = 20 ] || fail "not a slice for each update"
train 0 'warning: the trace has reached its limit' -- --trace trace.json --trace-limit 200KiB
tail -n 1 trace.json | grep -q '^\]}$' || fail "a limited trace has no end"
expect 7 'none/trace.json' -- "$LOCKSTEP" train --overwrite --solver solver.prototxt --trace none/trace.json
expect 2 '\-\-trace-limit needs --trace' -- "$LOCKSTEP" train --solver solver.prototxt --trace-limit 1MiB
finish
