"""The text of layers of bench/sequences.py, and what their networks read.

SPDX-License-Identifier: BSD-2-Clause
"""

import os
import struct

SMALL = 'weight_filler { type: "gaussian" std: 0.02 }'


def line(kind, name, bottoms, top, fields="", more=""):
    read = "".join(f' bottom: "{bottom}"' for bottom in bottoms)
    tops = "".join(f' top: "{one}"' for one in ([top] if isinstance(top, str) else top))
    head = f'name: "{name}" type: "{kind}"{read}{tops}{more}'
    return f"layer {{\n  {head}\n  {fields}\n}}\n" if fields else f"layer {{ {head} }}\n"


def embed(network, layer, more):
    tied = any(other.set.get("tied") == layer.name for other in network.layers)
    if tied:
        more += f' param {{ name: "{layer.name}" }}'
    return line("Embed", layer.name, layer.bottoms, layer.top,
                f"embed_param {{ input_dim: {layer.set['input_dim']} num_output: "
                f"{layer.set['num_output']} bias_term: false {SMALL} }}", more)


def positions(network, layer, more):
    return line("Bias", layer.name, layer.bottoms, layer.top, "bias_param { axis: 1 num_axes: 2 "
                'filler { type: "gaussian" std: 0.02 } }', more)


def layer_norm(network, layer, more):
    return line("LayerNorm", layer.name, layer.bottoms, layer.top,
                "layer_norm_param { axis: -1 }", more)


def linear(network, layer, more):
    return line("InnerProduct", layer.name, layer.bottoms, layer.top,
                f"inner_product_param {{ num_output: {layer.set['num_output']} axis: "
                f"{layer.set['axis']} {SMALL} }}", more)


def attention(network, layer, more):
    fields = f"num_heads: {layer.set['num_heads']}"
    fields += " causal: true" if layer.set["causal"] else ""
    fields += " extra: KEY_MASK" if len(layer.bottoms) > 1 else ""
    return line("Attention", layer.name, layer.bottoms, layer.top,
                f"attention_param {{ {fields} }}", more)


def gelu(network, layer, more):
    tanh = layer.set["approximate"] == "TANH"
    return line("GELU", layer.name, layer.bottoms, layer.top,
                "gelu_param { approximate: TANH }" if tanh else "", more)


def first(network, layer, more):
    name = layer.name
    return (line("Slice", name + "/slice", layer.bottoms, [name + "/row", name + "/others"],
                 "slice_param { axis: 1 slice_point: 1 }") +
            line("Silence", name + "/unused", [name + "/others"], []) +
            line("Flatten", name, [name + "/row"], layer.top))


def mean(network, layer, more):
    name = layer.name
    return (line("Permute", name + "/channels", layer.bottoms, name + "/channels",
                 "permute_param { order: [0, 2, 1] }") +
            line("Pooling", name + "/pool", [name + "/channels"], name + "/pool",
                 "pooling_param { pool: AVE global_pooling: true }", more) +
            line("Flatten", name, [name + "/pool"], layer.top))


def patches(network, layer, more):
    name, channels = layer.name, layer.shape_in[0]
    return (line("Reshape", name + "/rows", layer.bottoms, name + "/rows",
                 f"reshape_param {{ shape {{ dim: [0, {channels}, -1] }} }}") +
            line("Permute", name, [name + "/rows"], layer.top, "permute_param { order: [0, 2, 1] }"))


def language_model(network, layer, more):
    more += f' param {{ name: "{layer.set["tied"]}" }}'
    return line("LinearSoftmaxLoss", layer.name, layer.bottoms, layer.top,
                f"linear_softmax_loss_param {{ num_output: {layer.set['num_output']} {SMALL} }}",
                more)


LAYERS = {"Embed": embed, "Bias": positions, "LayerNorm": layer_norm, "InnerProduct": linear,
          "Attention": attention, "GELU": gelu, "First": first, "Mean": mean, "Patches": patches,
          "LinearSoftmaxLoss": language_model}


def text(network, layer, precision):
    """The layer's text, or None where it is one of definitions.py."""
    make = LAYERS.get(layer.type)
    if make is None or layer.type == "InnerProduct" and "axis" not in layer.set:
        return None
    return make(network, layer, f" precision: {precision}" if precision else "")


# ---- Input -------------------------------------------------------------------------------------


def tensors(network):
    """The arrays that a network of tokens reads: names, whether they are of whole numbers."""
    return ["tokens", "target"] if network.next_token else ["tokens", "segment", "mask", "class"]


def input_text(network):
    tops = {"tokens": "data", "target": "label", "class": "label"}
    names = tensors(network)
    read = "".join(f' top: "{tops.get(name, name)}"' for name in names)
    sources = "".join(f' source: "{network.name}/{name}.npy"' for name in names)
    chosen = "".join(f' tensor {{ name: "{name}" }}' for name in names)
    return (f'layer {{\n  name: "data" type: "Data"{read}\n'
            f"  data_param {{\n    backend: NPY batch_size: {network.batch} cache: true\n"
            f"   {sources}\n   {chosen}\n  }}\n}}\n")


def numbers(count, below, state):
    """Whole numbers of a generator with 64 bits of state (Knuth's MMIX)."""
    for _ in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        yield (state >> 33) % below


def write_array(path, rows, columns, values):
    shape = f"({rows}, {columns})" if columns else f"({rows},)"
    head = f"{{'descr': '<i4', 'fortran_order': False, 'shape': {shape}, }}"
    head = head.ljust(128 - 11) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        file.write(struct.pack(f"<{rows * max(columns, 1)}i", *values))


def write_input(network, folder):
    """One batch, in a folder of the network's name."""
    folder = os.path.join(folder, network.name)
    os.makedirs(folder, exist_ok=True)
    rows, columns = network.batch, network.shape[0]
    count = rows * columns
    marks = [int(i >= columns // 2) for i in range(columns)] * rows
    arrays = {"tokens": numbers(count, network.vocabulary, 1),
              "target": numbers(count, network.vocabulary, 2),
              "segment": marks, "mask": [1] * count, "class": numbers(rows, network.classes, 3)}
    for name in tensors(network):
        values = list(arrays[name])
        write_array(os.path.join(folder, name + ".npy"), rows, columns if name != "class" else 0,
                    values)
