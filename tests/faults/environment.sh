#!/bin/bash
# Resuming in another numeric environment: with another instruction set, after another version of
# Lockstep, or from an invalid one. The environment is adopted or refused, and the log and later
# snapshots keep its history.
# SPDX-License-Identifier: BSD-2-Clause
. "${LOCKSTEP_SOURCE:?}/tests/support/faults.sh" || exit 1
snapshot() { echo "$1_iter_$2.safetensors"; }

# note FILE KEY: a note of a snapshot, as it stands in the file.
note() {
    grep -aoE "\"$2\":\"([^\"\\\\]|\\\\.)*\"" "$1" | head -n 1
}

# forge FILE OLD NEW: changes a note to one of the same length, and removes the checksum, which would
# not fit any more.
forge() {
    grep -qaF -e "$2" "$1" || fail "$1 has no '$2'"
    sed -i "s/${2//\\/\\\\}/${3//\\/\\\\}/g; s/lockstep\.checksum/it.was.left.out../" "$1"
}

small_solver | sed 's/max_iter: 20/max_iter: 40/' >solver.prototxt
train 0 'Bits depend on oneDNN.s version and the CPU.s type \(.+ here\) through' \
    '!Numeric environments of this training' -- --snapshot-prefix pure
train 0 -- --snapshot-prefix narrow --isa sse41
widest=$("$LOCKSTEP" --version | sed -n 's/^isa=//p')
now=$("$LOCKSTEP" --version | grep -o 'numerics=[0-9]*')
[ "$(note "$(snapshot pure 40)" numerics)" = "\"numerics\":\"${now#*=}\"" ] || fail "no note of the numerics"
[ "$(note "$(snapshot pure 40)" history | grep -o numerics= | wc -l)" = 1 ] ||
    fail "a run that was never moved has had $(note "$(snapshot pure 40)" history)"

# What Lockstep's own kernels give is the same with every instruction set.
own=$(note "$(snapshot pure 40)" environment | grep -o 'own=[0-9a-f]*')
for isa in generic sse41 avx2 avx512 avx512_bf16 amx; do
    "$LOCKSTEP" --version | grep -q "^isa=$isa" || "$LOCKSTEP" plan --solver solver.prototxt \
        --isa $isa >/dev/null 2>&1 || continue
    train 0 -- --snapshot-prefix "own_$isa" --isa $isa --iterations 1
    [ "$(note "$(snapshot "own_$isa" 1)" environment | grep -o 'own=[0-9a-f]*')" = "$own" ] ||
        fail "own kernels give something else with $isa"
done

if [ "$widest" != sse41 ] && [ "$widest" != generic ]; then
    # ---- The instruction set of the snapshot is taken over, silent bits or not ----------------
    cmp -s "$(snapshot pure 40)" "$(snapshot narrow 40)" && fail "both sets give the same file"
    train 0 -- --snapshot-prefix moved --isa sse41 --iterations 20
    train 0 "The instruction set is the snapshot's, sse41 \(this processor also has $widest\)" \
        '!Numeric environments of this training' -- --snapshot-prefix moved --resume auto
    cmp "$(snapshot moved 40)" "$(snapshot narrow 40)" || fail "taken over: not the bits of sse41"
    train 0 "The instruction set is the snapshot's, sse41" -- --snapshot-prefix named \
        --resume "$(snapshot narrow 10)"
    cmp "$(snapshot named 40)" "$(snapshot narrow 40)" || fail "by name: not the bits of sse41"

    # ---- Another one that is pinned is refused, and nothing is written --------------------------
    rm -f moved_iter_[34]0.safetensors
    train 8 "moved_iter_20.safetensors: was made in another numeric environment" \
        "isa sse41, here $widest" 'hint: --isa sse41' 'allow-other-numerics' '!Iteration' -- \
        --snapshot-prefix moved --resume auto --isa "$widest"
    [ ! -e "$(snapshot moved 30)" ] || fail "a refused resume has written"

    # ---- Or allowed: every snapshot from there on says so ---------------------------------------
    train 0 "going on in another numeric environment, .*isa sse41, here $widest" \
        "Numeric environments of this training: isa=sse41.* until 20; isa=$widest" -- \
        --snapshot-prefix moved --resume auto --isa "$widest" --allow-other-numerics \
        --iterations 30
    train 0 "Numeric environments of this training: isa=sse41.* until 20; isa=$widest" \
        "!going on in another" -- --snapshot-prefix moved --resume auto --isa "$widest"
    note "$(snapshot moved 40)" history | grep -q 'isa=sse41.*\\n20 .*isa='"$widest" ||
        fail "the last snapshot does not know: $(note "$(snapshot moved 40)" history)"
    # Again, twice; the second time nothing was trained in between.
    rm "$(snapshot moved 40)"
    train 0 "until 20; isa=$widest.* until 30; isa=sse41" -- --snapshot-prefix moved \
        --resume auto --isa sse41 --allow-other-numerics
    note "$(snapshot moved 40)" history >three
    [ "$(grep -o numerics= three | wc -l)" = 3 ] || fail "three environments: $(cat three)"
    expect 0 'trained in several numeric environments: isa=sse41' -- "$LOCKSTEP" test \
        --model net.prototxt --weights "$(snapshot moved 40)"
    # The history is a function of what was done: the same course gives the same file.
    cp "$(snapshot moved 40)" first
    train 0 -- --snapshot-prefix moved --resume "$(snapshot moved 30)" --isa sse41 \
        --allow-other-numerics
    cmp "$(snapshot moved 40)" first || fail "the same course gives another file"
fi

# ---- Another version of Lockstep ------------------------------------------------------------------
train 0 -- --snapshot-prefix v --iterations 20
mv "$(snapshot v 20)" whole
cp whole old
forge old 'version":"0.1.0"' 'version":"0.0.9"'
train 0 'The snapshot was written by Lockstep 0.0.9; this is 0.1.0' -- --snapshot-prefix v \
    --resume old
cmp "$(snapshot v 40)" "$(snapshot pure 40)" || fail "another version: other bits"
cp whole old
forge old "$now" 'numerics=0'
train 8 "numerics 0, here ${now#*=}" 'hint: that version of Lockstep trained other bits' -- \
    --snapshot-prefix v --resume old
train 0 "numerics=0 until 20; $now" -- --snapshot-prefix v --resume old \
    --allow-other-numerics

# ---- Libraries, caches, what kernels give ---------------------------------------------------------
for key in onednn cache net own functions; do
    cp whole old
    digit=$(note whole environment | grep -oE "$key=." | tail -c 2)
    case $digit in 1) other=2 ;; *) other=1 ;; esac
    forge old "$key=$digit" "$key=$other"
    train 8 "another numeric environment.*: $key" -- --snapshot-prefix v --resume old
done

# ---- Notes that are none --------------------------------------------------------------------------
cp whole old
forge old 'history":"0 ' 'history":"x '
train 5 'its note of the numeric environments so far is damaged' -- --snapshot-prefix v --resume old
finish
