#!/bin/bash
# Texts: an LSTM and a GPT are trained on a few characters and write texts, which are the same on any
# number of workers, on both devices, and token by token as for the whole window; and what is
# refused.
# SPDX-License-Identifier: BSD-2-Clause
set -eu
command -v python3 >/dev/null || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat "$LOCKSTEP_SOURCE"/docs/*.md | tr 'A-Z' 'a-z' | tr -cd 'a-z \n' | head -c 60000 >text
python3 - <<'EOF'
# Record w 32 + n is window w of stream n, 64 characters, as arrays of NumPy.
data = open("text", "rb").read()
ids = [b - 95 if b > 32 else b // 32 for b in data]
for phase, part in ("train", ids[:54000]), ("test", ids[54000:]):
    length = (len(part) - 1) // 32
    rows = [n * length + w * 64 for w in range(length // 64) for n in range(32)]
    for name, make in (("text", lambda at: part[at:at + 64]), ("next", lambda at: part[at + 1:at + 65]),
                       ("cont", lambda at: [at % length > 0] + [1] * 63)):
        header = "{'descr': '|u1', 'fortran_order': False, 'shape': (%d, 64), }" % len(rows)
        header += " " * (-(len(header) + 11) % 64) + "\n"
        with open(f"{phase}_{name}.npy", "wb") as file:
            file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode())
            for at in rows:
                file.write(bytes(make(at)))
EOF

fail()
{
    echo "FAILED: $*"
    exit 1
}

# data AXIS TOPS...: Data layers of both phases; the array of top t is t.npy.
data()
{
    local axis=$1 phase top
    shift
    for phase in TRAIN TEST; do
        echo "layer { name: \"data\" type: \"Data\" include { phase: $phase } data_param {"
        echo "  backend: NPY batch_size: 32"
        for top in "$@"; do
            echo "  source: \"${phase,,}_$top.npy\" tensor { sample_axis: $axis }"
        done
        echo "} $(printf ' top: "%s"' "$@") }"
    done
}

lstm='
layer { name: "embedding" type: "Embed" bottom: "text" top: "x" embed_param { input_dim: 40
  num_output: 16 bias_term: false weight_filler { type: "gaussian" std: 0.1 } } }
layer { name: "lstm" type: "LSTM" bottom: "x" bottom: "cont" top: "h" recurrent_param { num_output: 24
  weight_filler { type: "uniform" min: -0.2 max: 0.2 } } }
layer { name: "gru" type: "GRU" bottom: "h" bottom: "cont" top: "g" recurrent_param { num_output: 24
  weight_filler { type: "uniform" min: -0.2 max: 0.2 } } }
layer { name: "norm" type: "LayerNorm" bottom: "g" top: "n" layer_norm_param { axis: -1 } }
layer { name: "scores" type: "InnerProduct" bottom: "n" top: "scores" inner_product_param {
  num_output: 40 axis: 2 algorithm: PORTABLE weight_filler { type: "gaussian" std: 0.1 } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "scores" bottom: "next" top: "loss"
  softmax_param { axis: 2 } }'
gpt='
layer { name: "wte" type: "Embed" bottom: "text" top: "token" param { name: "wte" } embed_param {
  input_dim: 40 num_output: 32 bias_term: false weight_filler { type: "gaussian" std: 0.1 } } }
layer { name: "place" type: "Positions" bottom: "text" top: "place" }
layer { name: "wpe" type: "Embed" bottom: "place" top: "position" embed_param { input_dim: 64
  num_output: 32 bias_term: false weight_filler { type: "gaussian" std: 0.1 } } }
layer { name: "embedding" type: "Eltwise" bottom: "token" bottom: "position" top: "x" }
layer { name: "ln" type: "LayerNorm" bottom: "x" top: "ln" layer_norm_param { axis: -1 } }
layer { name: "qkv" type: "InnerProduct" bottom: "ln" top: "qkv" inner_product_param { num_output: 96
  axis: 2 algorithm: PORTABLE weight_filler { type: "gaussian" std: 0.1 } } }
layer { name: "attn" type: "Attention" bottom: "qkv" top: "attn" attention_param { num_heads: 4
  causal: true } }
layer { name: "add" type: "Eltwise" bottom: "x" bottom: "attn" top: "y" }
layer { name: "loss" type: "LinearSoftmaxLoss" bottom: "y" bottom: "next" top: "loss"
  param { name: "wte" } linear_softmax_loss_param { num_output: 40 } }'

{ data 1 text cont next; echo "$lstm"; } >lstm_train.prototxt
{ data 0 text next; echo "$gpt"; } >gpt_train.prototxt
cat >lstm.prototxt <<EOF
layer { name: "in" type: "Input" top: "text" top: "cont" top: "next"
  input_param { shape { dim: 64 dim: 1 } sample_axis: 1 } } $lstm
EOF
cat >gpt.prototxt <<EOF
layer { name: "in" type: "Input" top: "text" top: "next" input_param { shape { dim: 1 dim: 64 } } } $gpt
EOF
for net in lstm gpt; do
    echo "net: \"${net}_train.prototxt\" type: \"Adam\" base_lr: 0.01 lr_policy: \"fixed\"
          max_iter: 40 test_iter: 1 test_interval: 40 snapshot_prefix: \"$net\"" >solver.prototxt
    "$LOCKSTEP" train --solver solver.prototxt >log 2>&1 || { cat log; exit 1; }
done

generate()
{
    local net=$1
    shift
    "$LOCKSTEP" generate --model "$net.prototxt" --weights "${net}_iter_40.safetensors" --ids "$@"
}

for net in lstm gpt; do
    # More tokens than the window of 64, and a prompt of a chunk and more for the LSTM.
    prompt=$(seq 1 25)\ $(seq 1 25)\ $(seq 1 25)
    [ $net = gpt ] && prompt="1 2 3"
    generate $net --prompt "$prompt" --length 90 --samples 3 --seed 5 --workers 1 >one 2>notes
    [ "$(wc -l <one)" = 3 ] || fail "$net: not three texts"
    [ "$(sort -u one | wc -l)" = 3 ] || fail "$net: texts are the same"
    for options in '--workers 2' '--workers 3' '--device reference'; do
        generate $net --prompt "$prompt" --length 90 --samples 3 --seed 5 $options >other 2>notes
        cmp one other || fail "$net: other texts with $options"
    done
    generate $net --prompt "$prompt" --length 90 --seed 5 >other 2>notes
    cmp <(head -1 one) other || fail "$net: the first text depends on how many there are"
    generate $net --prompt "$prompt" --length 90 --seed 6 >other 2>notes
    cmp -s <(head -1 one) other && fail "$net: the seed changes nothing"
    generate $net --prompt "$prompt" --length 90 --greedy >other 2>notes
    generate $net --prompt "$prompt" --length 90 --temperature 3 --top-k 1 --seed 9 >more 2>notes
    cmp other more || fail "$net: --top-k 1 is not --greedy"
    first=$(generate $net --prompt "$prompt" --length 1 --no-prompt --greedy 2>notes)
    [ -z "$(generate $net --prompt "$prompt" --no-prompt --greedy --stop "$first" 2>notes)" ] ||
        fail "$net: --stop does not end the text"
done

# Within the window a net that goes token by token writes what the whole window does.
for net in lstm gpt; do
    generate $net --prompt '1 2 3' --length 60 --samples 2 --seed 4 >steps 2>notes
    [ -s notes ] && fail "$net does not go token by token: $(cat notes)"
    generate $net --prompt '1 2 3' --length 60 --samples 2 --seed 4 --whole >whole
    cmp steps whole || fail "$net: token by token other texts are written than for the whole window"
done
generate gpt --prompt-file - --length 5 <<<'1, 2
3' >one 2>notes
generate gpt --prompt '1 2 3' --length 5 >other 2>notes
cmp one other || fail "standard input is another prompt"

# refuse STATUS MESSAGE ARGUMENTS...
refuse()
{
    local status=$1 message=$2 got=0
    shift 2
    "$@" >out 2>notes || got=$?
    [ $got = "$status" ] || fail "exit code $got, not $status: $* $(cat notes)"
    grep -qe "$message" notes || fail "no '$message' in: $(cat notes)"
}
refuse 2 'token 40 of the prompt (number 2) is none' generate gpt --prompt '1 40'
refuse 2 'is no part of a number' generate gpt --prompt '1 -2'
refuse 2 'the prompt has no tokens, and it is not known what' generate gpt
refuse 2 'is no number of at least 0' generate gpt --prompt 1 --temperature 1e9
refuse 2 'cannot be chosen from' generate gpt --prompt 1 --top-p 0
refuse 2 'it is not known what' "$LOCKSTEP" generate --model gpt.prototxt \
    --weights gpt_iter_40.safetensors --prompt abc
refuse 5 '' "$LOCKSTEP" generate --model gpt.prototxt --weights lstm_iter_40.safetensors --ids \
    --prompt 1
refuse 3 'reads no text and no tokens' "$LOCKSTEP" generate --model gpt_train.prototxt \
    --weights gpt_iter_40.safetensors --ids --prompt 1
sed 's/causal: true/causal: false/' gpt.prototxt >both.prototxt
refuse 3 'depends on the tokens behind it' "$LOCKSTEP" generate --model both.prototxt \
    --weights gpt_iter_40.safetensors --ids --prompt 1
refuse 3 "no blob 'nothing'" generate lstm --prompt 1 --output nothing
echo "texts are the same on 1 to 3 workers and both devices, token by token and for the window"
