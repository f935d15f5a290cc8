#!/bin/bash
# Curves in the terminal: what is drawn of a log to the letter, and what is refused.
# SPDX-License-Identifier: BSD-2-Clause
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
unset LC_ALL LC_CTYPE LANG
fail() { echo "FAILED: $*"; exit 1; }
for i in 1 2 3 4 5 6 7 8 9; do
    echo '{"event":"progress","iteration":'$i',"data_loss":'$((10 - i))',"loss":'$((10 - i))',"learning_rate":0.1}'
done >falls.json
for i in 1 2 3 4 5 6 7 8 9; do
    echo '{"event":"progress","iteration":'$i',"data_loss":'$i',"loss":'$i',"learning_rate":0.1}'
done >rises.json

"$LOCKSTEP" plot falls.json --fields loss --width 20 --height 3 >got
cat >wanted <<'T'
loss
        9 |***
          |   ****
        1 |       **
          +---------
           1       9
* falls  1
T
diff wanted got || fail "a falling curve"

"$LOCKSTEP" plot falls.json rises.json --fields loss --width 20 --height 3 >got
cat >wanted <<'T'
loss
        9 |***   +++
          |  ++++*
        1 |++     **
          +---------
           1       9
* falls  1
+ rises  9
T
diff wanted got || fail "two curves"

# The scale is that of what is drawn, means of many updates, not of a single large figure; numbers
# beside the axis that are near to each other differ.
for i in $(seq 1 400); do
    value=0.$((99970000 + 10 * i))
    [ "$i" != 7 ] || value=2
    echo '{"event":"progress","iteration":'$i',"data_loss":'$value',"loss":'$value',"learning_rate":0.1}'
done >near.json
"$LOCKSTEP" plot near.json --fields loss --width 80 --height 9 --ascii >got
[ "$(grep -c '^ *[0-9.]* |' got)" = 9 ] || fail "a plot of near numbers"
! grep -q '^ *2 |' got || fail "the scale is that of a single figure"
tail -n 390 near.json >nearer.json
"$LOCKSTEP" plot nearer.json --fields loss --width 80 --height 9 --ascii >got
grep -o '^ *[0-9.][0-9.]* |' got | sort >labels
[ -z "$(uniq -d labels)" ] && [ "$(wc -l <labels)" = 5 ] || fail "labels: $(cat labels)"
grep -q '^\* nearer  ' got || fail "the name of a run is not short"

LANG=en_US.UTF-8 "$LOCKSTEP" plot falls.json --fields loss --width 20 --height 2 >got
LC_ALL=C grep -q "$(printf '\xe2\xa0')" got || fail "no braille in UTF-8"
LANG=en_US.UTF-8 "$LOCKSTEP" plot falls.json --ascii --width 20 >got
! LC_ALL=C grep -q "$(printf '\xe2')" got || fail "--ascii is not ASCII"
"$LOCKSTEP" plot falls.json --log --fields loss,lr >got
grep -q '^loss (logarithmic)$' got || fail "no logarithm"
grep -q '^learning_rate (logarithmic)$' got || fail "lr is not the learning rate"
awk 'length > 80 { exit 1 }' got || fail "lines of more than 80 columns"

refuses() {
    local text=$1 status=0
    shift
    "$LOCKSTEP" plot "$@" >got 2>log || status=$?
    [ $status != 0 ] || fail "plot $* is taken"
    grep -qF -- "$text" log || fail "plot $*: $(cat log)"
}
refuses "did you mean 'loss'?" falls.json --fields los
refuses "there are loss" falls.json --fields nothing
refuses "needs a terminal" falls.json --follow
refuses "there is no event in this file" wanted
refuses "nowhere.json" nowhere.json
refuses "at most 8 logs" 1 2 3 4 5 6 7 8 9
refuses "not both" falls.json --ascii --braille

# Figures that are none, a line without an end, controls of a terminal in a name.
printf '{"event":"progress","iteration":1,"data_loss":null,"loss":null,"learning_rate":1e300}\n{"event":"prog' >bad.json
"$LOCKSTEP" plot bad.json --fields lr >got || fail "a log that is cut off"
mv bad.json "$(printf 'a\033[31mb.json')"
"$LOCKSTEP" plot "$(printf 'a\033[31mb.json')" --fields lr >got
! grep -q "$(printf '\033')" got || fail "a control character was written"
echo "curves are drawn as their logs say"
