#!/bin/bash
# What terminals see: the live line of a training at several widths and while the width changes,
# nothing of it in files and on terminals that cannot, colours by one switch, and --quiet.
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck source=tests/support/faults.sh
. "${LOCKSTEP_SOURCE:?}/tests/support/faults.sh"
command -v script >/dev/null || { echo "skipped: there is no script(1)"; exit 77; }
unset NO_COLOR CLICOLOR_FORCE FORCE_COLOR COLORTERM TMUX XTERM_VERSION
export TERM=xterm-256color
escape=$(printf '\033')

cat >net.prototxt <<'T'
name: "terminal"
layer { name: "data" type: "DummyData" top: "data" top: "label"
  dummy_data_param {
    shape { dim: 8 dim: 4 } shape { dim: 8 }
    data_filler { type: "uniform" } data_filler { type: "constant" value: 1 } } }
layer { name: "score" type: "InnerProduct" bottom: "data" top: "score"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "accuracy" type: "Accuracy" bottom: "score" bottom: "label" top: "accuracy" include { phase: TEST } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "score" bottom: "label" top: "loss" }
T
cat >solver.prototxt <<'T'
net: "net.prototxt" base_lr: 0.01 lr_policy: "fixed" max_iter: 1000 random_seed: 1
test_iter: 1 test_interval: 1000 snapshot_prefix: "s"
T
train="'$LOCKSTEP' train --solver solver.prototxt --overwrite --workers 1"

# on_terminal COLUMNS COMMAND: what a terminal of that width gets, in the file `screen`.
on_terminal() {
    timeout 60 script -qec "stty cols $1 rows 24; $2" /dev/null >screen </dev/null ||
        fail "on a terminal of $1 columns: $2: $(cat screen)"
}
# Live lines begin with a carriage return and end with ESC [ K or ESC [ J.
live_lines() {
    tr '\r' '\n' <screen | sed -nE "s/^($escape\[[0-9]+A)?(.*[^ ].*)$escape\[[KJ].*/\2/p"
}
# narrow COLUMNS: no live line takes more than that, less three, or has other characters than ASCII.
narrow() {
    live_lines >lines
    [ -s lines ] || fail "no live line at $1 columns: $(cat -v screen)"
    awk -v most=$(($1 - 3)) 'length > most { exit 1 }' lines ||
        fail "a live line is too wide for $1 columns: $(cat lines)"
    ! grep -q '[^ -~]' lines || fail "a live line is not plain: $(cat -v lines)"
}

for columns in 80 40 20; do
    on_terminal $columns "$train --iterations 200"
    narrow $columns
    grep -q '[0-9]%  loss' lines || fail "$columns columns: $(cat lines)"
    # It goes before anything else is written.
    sed 's/\r$//' screen | awk -F '\r' '$NF ~ /\033/ && $NF !~ /^\033\[K[^\033]/ { exit 1 }' ||
        fail "$columns columns: $(cat -v screen)"
done

# A terminal that gets narrower while it trains: later lines are narrow, and what it has wrapped goes.
on_terminal 100 "tty=\$(tty); (sleep 0.3; stty cols 30 <\$tty; touch narrow) & $train --set max_iter=1000000 --set test_interval=1000000 & \
    while [ ! -e narrow ]; do sleep 0.05; done; sleep 0.5; kill -INT \$!; wait \$!; [ \$? = 75 ]"
live_lines >lines
awk 'length > 60 { wide = NR } length <= 27 { narrow = NR } END { exit !(wide > 0 && narrow > wide) }' lines ||
    fail "the live line does not follow the width: $(cat lines)"
grep -q "$escape\[[1-9]A" screen || fail "what was wrapped is left: $(cat -v screen)"
grep -q "To go on:" screen || fail "no word of how to go on"

# Files, pipes and terminals that are dumb get lines, with the time left.
eval "$train" >log 2>&1 || fail "into a file: $(cat log)"
check_output "a file" "!$escape" 'iters, [0-9]+s left\), loss = '
on_terminal 80 "TERM=dumb $train"
! grep -q "$escape" screen || fail "a dumb terminal: $(cat -v screen)"

# Colours: where the stream is a terminal, unless an option or the environment says otherwise.
wrong="'$LOCKSTEP' trian || true"
coloured() {
    on_terminal 80 "$2 $wrong"
    local found=wrong
    ! grep -q "$escape\[1;31mlockstep:$escape\[0m .*$escape\[1;36mhint:$escape\[0m" screen || found=yes
    grep -q "$escape" screen || found=no
    [ "$found" = "$1" ] || fail "colours with '$2': $(cat -v screen)"
}
coloured yes ""
coloured no NO_COLOR=1
coloured yes NO_COLOR=
coloured no TERM=dumb
coloured yes "TERM=dumb CLICOLOR_FORCE=1"
head -c 784 /dev/zero | tr '\0' '\200' >pixels
{ printf '\0\0\10\3\0\0\0\1\0\0\0\34\0\0\0\34'; cat pixels; } >one-idx3-ubyte
expect 0 "!$escape" -- "$LOCKSTEP" show --draw one-idx3-ubyte
expect 0 "$escape\[38;5;" -- "$LOCKSTEP" show --draw --color=always one-idx3-ubyte
expect 0 "$escape\[38;5;" -- env FORCE_COLOR=1 "$LOCKSTEP" show --draw one-idx3-ubyte
expect 0 "!$escape" -- env FORCE_COLOR=1 "$LOCKSTEP" show --draw --color=never one-idx3-ubyte

# Quiet: the result.
for stream in terminal file; do
    if [ $stream = file ]; then eval "$train --quiet" >screen 2>&1; else on_terminal 80 "$train -q"; fi
    tr -d '\r' <screen >log
    check_output "quiet on a $stream" "!$escape" '!^Solver|left|Optimization' 'accuracy = [01]' \
        '^Iteration 999, loss = ' '^Snapshotting to s_iter_1000.safetensors$'
    [ "$(wc -l <log)" -le 6 ] || fail "quiet on a $stream: $(cat log)"
done

# Tables fit the terminal; a file gets all of their columns.
for columns in 100 80 40; do
    on_terminal $columns "'$LOCKSTEP' plan --solver solver.prototxt; '$LOCKSTEP' show s_iter_1000.safetensors; \
        '$LOCKSTEP' list s"
    tr -d '\r' <screen | grep -E '^(layer|step of|score|data|  tensor|  score|Iteration|  parameters|  total) ' >table
    [ "$(wc -l <table)" -ge 12 ] || fail "tables of $columns columns: $(cat screen)"
    awk -v most="$columns" 'length >= most { exit 1 }' table || fail "tables of $columns columns: $(cat table)"
done
"$LOCKSTEP" plan --solver solver.prototxt | grep -q '^layer  .* output  *kept  *scratch  *parameters  *gradients  *optimizer$' ||
    fail "a file does not get all columns"

export HOME=$work
# init asks again where an answer leads nowhere, and takes an end of the input for none.
for i in $(seq 200); do echo "line $i of a text"; done >text.txt
ask() {
    printf '%b' "$1" | timeout 60 script -qec "stty cols 40 rows 24; '$LOCKSTEP' init" /dev/null >screen
}
ask 'nowhere\n\n  ~/text.txt \nno/where\nmade\n' 2>&1 || fail "init: $(cat -v screen)"
grep -q 'nowhere: No such file' screen || fail "init takes a wrong path: $(cat -v screen)"
[ "$(grep -o 'Path of the data:' screen | wc -l)" = 3 ] || fail "init does not ask again: $(cat -v screen)"
[ "$(grep -o 'Folder for the definitions:' screen | wc -l)" = 2 ] || fail "init: $(cat -v screen)"
[ -s made/solver.prototxt ] || fail "init wrote nothing"
ask 'text.txt\nmade\n\004' && fail "init ends well although a file is there"
for text in 'nothing is overwritten' 'there is no answer; nothing is written'; do
    grep -q "$text" screen || fail "init: $(cat -v screen)"
done
grep -q '^    pictures with a sub-folder for each' screen || fail "init does not end lines at 40 columns"

# plot --follow waits for a log that is begun anew, and draws anew where the size has changed.
event() { echo '{"event":"progress","iteration":'"$1"',"data_loss":1,"loss":1,"learning_rate":0.1}'; }
event 1 >log.json
{ event 1; event 2; echo '{"event":"end","iteration":2,"iteration_end":2}'; } >again.json
on_terminal 60 "tty=\$(tty); '$LOCKSTEP' plot --follow log.json & \
    sleep 0.4; : >log.json; sleep 1.2; stty cols 40 <\$tty; cat again.json >log.json; wait \$!"
grep -q 'waiting: log.json: the log is empty' screen || fail "plot does not wait: $(cat -v screen)"
grep -q "$escape\[H$escape\[2J" screen || fail "plot does not draw anew: $(cat -v screen)"
tail -n 2 screen | grep -q 'log  1' || fail "plot does not draw the new log: $(cat -v screen)"
# It may be started before the training, and waits for the log then.
on_terminal 60 "'$LOCKSTEP' plot --follow later/log.json & \
    sleep 0.4; mkdir later; cp again.json later/log.json; wait \$!"
grep -q 'waiting: later/log.json: cannot open' screen || fail "plot does not wait: $(cat -v screen)"
tail -n 2 screen | grep -q 'later  1' || fail "plot does not find the log: $(cat -v screen)"
finish
