#!/bin/bash
# Completion in bash, zsh and fish, and the manual pages: bash's function is called as bash calls
# it; what zsh and fish read is parsed by them, and fish is asked, where they are there; no page
# gives a warning of mandoc or groff.
# SPDX-License-Identifier: BSD-2-Clause
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $*"; exit 1; }
for shell in bash zsh fish; do
    "$LOCKSTEP" completion $shell >"$work/$shell" || fail "no script for $shell"
done
"$LOCKSTEP" completion tcsh 2>"$work/log" && fail "a script for tcsh"
grep -q "hint: bash, zsh or fish" "$work/log" || fail "no hint for tcsh"

# shellcheck disable=SC1091 # it was just written
source "$work/bash"
cd "$work"
mkdir data && touch 'a net.prototxt' 'data/other'

# complete WORD...: what bash offers for the last word, in one line.
complete_words() {
    COMP_WORDS=("$@")
    COMP_CWORD=$(($# - 1))
    COMPREPLY=()
    _lockstep
    printf '%s|' "${COMPREPLY[@]}"
}
# offers WANTED WORD...
offers() {
    local wanted=$1 got
    shift
    got=$(complete_words "$@")
    [ "$got" = "$wanted" ] || fail "'$*' gives '$got', not '$wanted'"
}
offers 'train|' lockstep tra
offers '--solver|' lockstep train --sol
offers 'avx2|avx512|avx512_bf16|' lockstep train --isa avx
offers 'avx2|avx512|avx512_bf16|' lockstep train --isa = avx
offers 'cpu|reference|cuda|' lockstep train --device ''
offers 'json|jsonl|' lockstep predict --format j
offers 'a net.prototxt|' lockstep train --solver a
offers 'gpt2|' lockstep train --map g
offers 'a net.prototxt|' lockstep predict a
offers 'static|' lockstep train --solver x --balance s
offers 'IDX|IMAGES|IMAGE_PAIRS|' lockstep convert --backend I
offers 'bash|zsh|fish|' lockstep completion ''
offers 'tokenize|' lockstep help toke
offers 'a net.prototxt|' lockstep test --plugin a
offers '|' lockstep train --workers ''

# Every option of every command is completed; those of every command are looked at once.
for command in $("$LOCKSTEP" help | awk '/^commands:/ { on = 1; next } !NF { on = 0 } on { print $1 }'); do
    "$LOCKSTEP" help "$command" >listed
    [ "$command" = train ] || sed -i '/^options of every command:/,$d' listed
    while read -r option; do
        complete_words lockstep "$command" "$option" | grep -qF -- "$option|" ||
            fail "bash does not complete $command $option"
        grep -qE -- "'[*]?${option}[=[]" zsh || fail "zsh does not know $option"
        grep -qE -- "from $command' -l ${option#--} " fish || fail "fish does not know $option"
    done < <(grep -oE '^  --[a-z-]+' listed)
done

if command -v zsh >/dev/null; then
    zsh -n zsh || fail "zsh cannot read its script"
    cat >ask.zsh <<'Z'
autoload -Uz compinit && compinit -u -d "$1/dump" && source "$1/zsh" || exit 1
# _arguments checks each specification as it is called.
for command in ${=2}; do
    _arguments() { local one; for one in "$@"; do [[ -n $one ]] || exit 1; done; print -r -- $# }
    words=(lockstep $command --) CURRENT=3
    _lockstep || exit 1
done
Z
    zsh -f ask.zsh "$work" "train predict help completion" >asked || fail "zsh: $(cat asked)"
    [ "$(wc -l <asked)" = 4 ] || fail "zsh: $(cat asked)"
fi
if command -v fish >/dev/null; then
    export HOME=$work XDG_CONFIG_HOME=$work
    got=$(fish -c 'source fish; complete -C "lockstep train --isa avx"' | cut -f1 | sort | tr '\n' '|')
    [ "$got" = 'avx2|avx512|avx512_bf16|' ] || fail "fish: $got"
    got=$(fish -c 'source fish; complete -C "lockstep toke"' | cut -f1)
    [ "$got" = tokenize ] || fail "fish: $got"
fi

"$LOCKSTEP" help --man-pages man1
"$LOCKSTEP" help --man train | cmp - man1/lockstep-train.1 || fail "two pages of train"
"$LOCKSTEP" help --man | cmp - man1/lockstep.1 || fail "two pages of the program"
for name in caffe convert_imageset; do
    "$LOCKSTEP" help --man $name | cmp - man1/$name.1 || fail "two pages of $name"
    head -n 3 man1/$name.1 | grep -q "^$name .- " || fail "not a page of $name"
done
grep -q '^caffe: the command lines' <("$LOCKSTEP" help caffe) || fail "no help of caffe"
"$LOCKSTEP" help --man-pages no/where 2>log && fail "pages nowhere"
grep -q 'cannot make the folder' log || fail "no word of the folder"
for page in man1/*.1; do
    if command -v mandoc >/dev/null; then
        mandoc -T lint -W warning "$page" | grep -v 'missing date' >log || true
        [ ! -s log ] || fail "$page: $(cat log)" # pages of one version are the same on all days
    fi
    if command -v groff >/dev/null; then
        groff -man -Tutf8 -ww "$page" 2>log >text
        [ ! -s log ] || fail "$page: $(cat log)"
    fi
done
grep -q '^\\fB\\-\\-solver\\fR \\fIFILE\\fR$' man1/lockstep-train.1 || fail "no --solver"
echo "completion and manual pages are as the tables of options say"
