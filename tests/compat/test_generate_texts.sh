#!/bin/bash
# Texts that nets write as they were trained, with a Data layer and a loss: with keys and values that
# are kept, and for the whole window; characters, bytes, and tokens of a tokenizer; what ends them;
# and what is refused.
# SPDX-License-Identifier: BSD-2-Clause
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat "$LOCKSTEP_SOURCE"/docs/*.md | tr 'A-Z' 'a-z' | tr -cd 'a-z. \n' | head -c 20000 >text

fail()
{
    echo "FAILED: $*"
    exit 1
}

# net DATA ATTENTION LAYER: a GPT with one block, which reads DATA, with these fields of its Attention
# layer (of which `extra` stands for bottoms) and a layer between.
net()
{
    local extra
    extra=$(grep -o 'extra: [A-Z_]*' <<<"$2" | sed 's/.*: \(.*\)/bottom: "\L\1"/; s/segments/segment/; s/positions/position/;
        s/key_mask/mask/' | tr '\n' ' ')
    cat <<EOF
layer { name: "text" type: "Data" $1 }
layer { name: "wte" type: "Embed" bottom: "tokens" top: "token" param { name: "wte" } embed_param { input_dim: 40
  num_output: 32 bias_term: false weight_filler { type: "gaussian" std: 0.3 } } }
layer { name: "place" type: "Positions" bottom: "tokens" top: "place" positions_param { offset: 1 } }
layer { name: "wpe" type: "Embed" bottom: "place" top: "where" embed_param { input_dim: 101 num_output: 32
  bias_term: false weight_filler { type: "gaussian" std: 0.3 } } }
layer { name: "embedding" type: "Eltwise" bottom: "token" bottom: "where" top: "x" }
layer { name: "ln" type: "RMSNorm" bottom: "x" top: "ln" rms_norm_param { axis: -1 } }
layer { name: "qkv" type: "InnerProduct" bottom: "ln" top: "qkv" inner_product_param { num_output: 64 axis: 2
  weight_filler { type: "gaussian" std: 0.3 } } }
layer { name: "attn" type: "Attention" bottom: "qkv" $extra top: "attn" attention_param { num_heads: 4 num_kv_heads: 2
  $2 } }
layer { name: "out" type: "InnerProduct" bottom: "attn" top: "out" inner_product_param { num_output: 32 axis: 2
  weight_filler { type: "gaussian" std: 0.3 } } }
layer { name: "add" type: "Eltwise" bottom: "x" bottom: "out" top: "y" }
layer { name: "gelu" type: "GELU" bottom: "y" top: "z" }
${3:-}
layer { name: "loss" type: "LinearSoftmaxLoss" bottom: "z" bottom: "target" top: "loss" param { name: "wte" }
  linear_softmax_loss_param { num_output: 40 } loss_param { ignore_label: -1 } }
EOF
}

# train NAME SOLVER: two updates of NAME.prototxt.
train()
{
    echo "net: \"$1.prototxt\" type: \"Adam\" base_lr: 0.01 lr_policy: \"fixed\" max_iter: 2 test_iter: 1
          test_interval: 2 snapshot_prefix: \"$1\" ${2:-}" >solver.prototxt
    "$LOCKSTEP" train --solver solver.prototxt >log 2>&1 || { cat log; fail "$1 is not trained"; }
}

generate()
{
    local net=$1
    shift
    "$LOCKSTEP" generate --model "$net.prototxt" --weights "${net}_iter_2.safetensors" "$@"
}

# same NAME: texts longer than the window are the same in all ways to compute them.
same()
{
    local prompt="a text that is there, of more than one word. "
    prompt=${prompt//,/}
    generate "$1" --prompt "$prompt$prompt" --length 150 --samples 3 --seed 5 --workers 1 >kept 2>notes
    [ ! -s notes ] || fail "$1: $(cat notes)"
    for options in --whole '--whole --workers 2' '--workers 2' '--workers 3' '--device reference'; do
        generate "$1" --prompt "$prompt$prompt" --length 150 --samples 3 --seed 5 $options >other 2>notes
        cmp kept other || fail "$1: other texts with $options"
    done
    for count in 1 7 8 64 65; do
        generate "$1" --prompt "$(head -c $count text)" --length 20 >kept
        generate "$1" --prompt "$(head -c $count text)" --length 20 --whole >other
        cmp kept other || fail "$1: another text behind $count characters"
    done
}

data='top: "tokens" top: "target" data_param { backend: TEXT source: "text" batch_size: 4
  text_param { window: 100 } }'
packed='top: "tokens" top: "target" top: "position" top: "segment" top: "mask" data_param { backend: TEXT
  source: "text" batch_size: 4 tensor { } tensor { } tensor { } tensor { } tensor { name: "mask" }
  text_param { window: 100 documents: WHOLE lengths: PACK separator: 46 ignore_label: -1 } }'
net "$data" 'causal: true' >plain.prototxt
net "$data" 'causal: true window: 9 rotary { }' >near.prototxt
net "$packed" 'causal: true rotary { } extra: SEGMENTS extra: POSITIONS extra: KEY_MASK' >packed.prototxt
net "${data/\}*/unit: BYTE \} \}}" 'causal: true' | sed 's/: 40/: 256/' >bytes.prototxt
net "$data" 'causal: true' '' >bf16.prototxt
sed -i 's/window: 100 }/window: 100 unit: BYTE }/' bytes.prototxt
for name in plain near packed bytes; do
    train $name
    same $name
done
train bf16 'precision: BF16'
generate bf16 --prompt 'some text' --length 120 >kept
generate bf16 --prompt 'some text' --length 120 --whole >other
cmp kept other || fail "bf16: another text with kept keys and values"

# Documents end with what separates them; --ignore-end goes on.
generate packed --prompt 'a' --length 400 --no-prompt --seed 1 >ended
grep -qF . ended && fail "a text goes on behind what separates texts"
[ "$(wc -c <ended)" -lt 400 ] || fail "a text does not end"
generate packed --prompt 'a' --length 400 --no-prompt --seed 1 --ignore-end >longer
[ "$(wc -m <longer)" = 401 ] || fail "--ignore-end: $(wc -m <longer) characters"
cmp <(head -c "$(($(wc -c <ended) - 1))" ended) <(head -c "$(($(wc -c <ended) - 1))" longer) ||
    fail "--ignore-end writes another text"
generate packed --length 5 --seed 2 >out || fail "without a prompt texts begin with what separates them"
generate plain --prompt 'a' --length 300 --no-prompt --seed 1 >longer
text=$(cat longer)
stop=${text:40:3}
generate plain --prompt 'a' --length 300 --no-prompt --seed 1 --stop "$stop" --stop 'no such' >out
[ "$(cat out)" = "${text%%"$stop"*}" ] || fail "--stop '$stop': '$(cat out)'"

# Other nets tell why they take longer, and texts do not depend on it.
net "$data" 'causal: true' '
  layer { name: "shift" type: "Pad" bottom: "z" top: "p" pad_param { axis: 1 before: 1 } }
  layer { name: "cut" type: "Slice" bottom: "p" top: "s" top: "last" slice_param { axis: 1 slice_point: 100 } }
  layer { name: "none" type: "Silence" bottom: "last" }' |
    sed 's/bottom: "z" bottom: "target"/bottom: "s" bottom: "target"/' >shift.prototxt
train shift
generate shift --prompt 'some text' --length 5 >out 2>notes
grep -q "each new token takes as long as 100 of them: layer 'shift' (Pad)" notes || fail "$(cat notes)"

# refuse STATUS MESSAGE ARGUMENTS...
refuse()
{
    local status=$1 message=$2 got=0
    shift 2
    "$@" >out 2>notes || got=$?
    [ $got = "$status" ] || fail "exit code $got, not $status: $* $(cat notes)"
    grep -qe "$message" notes || fail "no '$message' in: $(cat notes)"
    [ ! -s out ] || fail "something was written: $*"
}
refuse 2 "character 3 of the text, 'Q', is none" generate plain --prompt 'abQ'
refuse 2 'byte FF behind 1 characters of the text begins no character' generate plain --prompt $'a\xff'
refuse 2 'byte C3 behind 1 characters' generate plain --prompt $'a\xc3'
refuse 2 'a control character' generate plain --prompt $'a\x01'
for t in inf nan -1 1e400 x ''; do
    refuse 2 'emperature' generate plain --prompt a --temperature "$t"
done
for p in 0 -1 1.5 nan inf x; do
    refuse 2 'top.p' generate plain --prompt a --top-p "$p"
done
refuse 2 'top-k' generate plain --prompt a --top-k 0
refuse 2 '' generate plain --prompt a --top-k -1
refuse 2 'samples' generate plain --prompt a --samples 0
refuse 2 '--stop has an empty value' generate plain --prompt a --stop ''
[ "$(generate plain --prompt a --length 0)" = a ] || fail "no tokens are not the prompt"
generate plain --prompt-file /dev/null --length 9 --seed 3 >out
generate plain --length 9 --seed 3 >other
cmp out other || fail "an empty file is not no prompt"
generate plain --prompt '' --length 9 --seed 3 >out
cmp out other || fail "an empty prompt is not no prompt"
generate plain --prompt a --length 30 --temperature 0 >out
generate plain --prompt a --length 30 --greedy >other
cmp out other || fail "a temperature of 0 is not --greedy"
generate plain --prompt a --length 30 --seed 4 --top-p 1 >out
generate plain --prompt a --length 30 --seed 4 >other
cmp out other || fail "--top-p 1 is not all tokens"
head -c 5000 text >long
generate plain --prompt-file long --greedy --length 9 --no-prompt >out
tail -c 100 long >tail
generate plain --prompt-file tail --greedy --length 9 --no-prompt --whole >other
cmp out other || fail "of a long prompt other tokens count than the last 100"

# Tokens of a tokenizer.
cat >tokenizer.json <<'EOF'
{ "version": "1.0", "added_tokens": [{ "id": 0, "content": "<|endoftext|>", "special": true, "single_word": false,
  "lstrip": false, "rstrip": false, "normalized": false }], "normalizer": null,
  "pre_tokenizer": { "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true },
  "post_processor": null, "decoder": { "type": "ByteLevel" },
  "model": { "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null, "end_of_word_suffix": null,
  "fuse_unk": false, "vocab": { "<|endoftext|>": 0, "a": 1, "b": 2, "Ġ": 3, "Ã": 4, "©": 5, "¤": 6, "ab": 7, "Ġa": 8 },
  "merges": [["a", "b"], ["Ġ", "a"]] } }
EOF
printf 'ab abéaäb%.0s' $(seq 300) >accents
"$LOCKSTEP" tokenize --tokenizer tokenizer.json accents -o ids.bin --separator '<|endoftext|>' >log 2>&1 || { cat log; fail "tokenize"; }
tokens='top: "tokens" top: "target" data_param { backend: TOKENS source: "ids.bin" batch_size: 4
  tokens_param { window: 100 } }'
net "$tokens" 'causal: true' >tokens.prototxt
train tokens
same_tokens()
{
    generate tokens --tokenizer tokenizer.json "$@" >kept
    generate tokens --tokenizer tokenizer.json --whole "$@" >other
    cmp kept other || fail "tokens: another text with kept keys and values"
}
same_tokens --prompt 'ab aé' --length 120 --ignore-end
grep -q '^ab aé' kept || fail "the prompt is not what the text begins with: $(head -c 20 kept)"
iconv -f UTF-8 -t UTF-8 kept >other && cmp kept other || fail "the text is no UTF-8"
same_tokens --length 60 # from <|endoftext|>, up to it
refuse 2 'it is not known what' generate tokens --prompt ab
refuse 2 'not those of a tokenizer' generate plain --tokenizer tokenizer.json --prompt ab
refuse 4 '' generate tokens --tokenizer no-such.json --prompt ab
refuse 2 'not both' generate tokens --tokenizer tokenizer.json --ids --prompt 1
sed 's/"added_tokens": \[/&{ "id": 45, "content": "<x>", "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false }, /' \
    tokenizer.json >large.json
refuse 2 'the tokenizer has 46 tokens, but the net only 40' generate tokens --tokenizer large.json --prompt ab
sed 's/"©": 5, "¤": 6/"¤": 5, "©": 6/' tokenizer.json >swapped.json
refuse 2 'trained on the ids of another tokenizer' generate tokens --tokenizer swapped.json --prompt ab
echo "texts are the same with keys and values that are kept and without, for characters, bytes and tokens"
