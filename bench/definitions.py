#!/usr/bin/env python3
"""Writes the definitions of the benchmark's networks: definitions.py [FOLDER], default bench/nets.
With --check it only says whether those in bench/nets are what it would write.

SPDX-License-Identifier: BSD-2-Clause
"""

import os
import sys
import tempfile

import networks
import sequence_definitions
import sequences

PARAMETER = {"Convolution": "convolution_param", "Deconvolution": "convolution_param",
             "InnerProduct": "inner_product_param", "Pooling": "pooling_param",
             "LRN": "lrn_param", "Dropout": "dropout_param", "BatchNorm": "batch_norm_param",
             "Scale": "scale_param"}
ENUMS = {"pool", "norm_region"}
# What need not be said because it is the default.
DEFAULT = {"stride": 1, "pad": 0, "group": 1, "norm_region": "ACROSS_CHANNELS"}
FILLER = {"Convolution": "msra", "Deconvolution": "msra", "InnerProduct": "xavier"}


def text_of(field, value):
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if field in ENUMS or not isinstance(value, str) else f'"{value}"'


def fields_of(network, layer):
    """The fields of a layer's parameter message, on one line."""
    fields = []
    for field, value in layer.set.items():
        if field == "bias_term" and value and layer.type != "Scale":
            continue
        if DEFAULT.get(field) == value and layer.type not in ("BatchNorm",):
            continue
        fields.append(f"{field}: {text_of(field, value)}")
    if layer.type in FILLER:
        fields.append(f'weight_filler {{ type: "{FILLER[layer.type]}" }}')
    return " ".join(fields)


def lstm_text(network, layer, precision):
    """The rows of a picture become steps; sequences begin with the first, and their last state is
    taken."""
    _, steps, inputs = layer.shape_in
    x, name, outputs = layer.bottoms[0], layer.name, layer.set["num_output"]
    head = f" precision: {precision}" if precision else ""

    def one(kind, suffix, bottoms, tops, fields, more=""):
        read = "".join(f' bottom: "{b}"' for b in bottoms) + "".join(f' top: "{t}"' for t in tops)
        tail = f"\n  {fields}\n" if fields else " "
        gap = "\n  " if fields else " "
        return f'layer {{{gap}name: "{name}{suffix}" type: "{kind}"{read}{more}{tail}}}\n'

    def dummy(suffix, columns, value):
        return one("DummyData", suffix, [], [name + suffix],
                   f"dummy_data_param {{ shape {{ dim: {network.batch} dim: {columns} }} "
                   f'data_filler {{ type: "constant" value: {value} }} }}')

    text = one("Reshape", "/rows", [x], [name + "/rows"],
               f"reshape_param {{ shape {{ dim: [0, {steps}, {inputs}] }} }}")
    text += one("Permute", "/steps", [name + "/rows"], [name + "/steps"],
                "permute_param { order: [1, 0, 2] }")
    text += dummy("/begins", 1, 0) + dummy("/goes_on", steps - 1, 1)
    text += one("Concat", "/marks", [name + "/begins", name + "/goes_on"], [name + "/marks"],
                "concat_param { axis: 1 }")
    text += one("Permute", "/cont", [name + "/marks"], [name + "/cont"],
                "permute_param { order: [1, 0] }")
    text += one("LSTM", "", [name + "/steps", name + "/cont"], [name + "/all"],
                f"recurrent_param {{ num_output: {outputs} weight_filler {{ "
                'type: "uniform" min: -0.08 max: 0.08 } }', head)
    text += one("Slice", "/last", [name + "/all"], [name + "/before", name + "/last"],
                f"slice_param {{ axis: 0 slice_point: {steps - 1} }}")
    text += one("Silence", "/unused", [name + "/before"], [], "")
    return text + one("Reshape", "/state", [name + "/last"], [layer.top],
                      f"reshape_param {{ shape {{ dim: [-1, {outputs}] }} }}")


def layer_text(network, layer, precision=None):
    if layer.type == "LSTM":
        return lstm_text(network, layer, precision)
    if isinstance(network, sequences.Transformer):
        text = sequence_definitions.text(network, layer, precision)
        if text is not None:
            return text
    bottoms = "".join(f' bottom: "{bottom}"' for bottom in layer.bottoms)
    head = f'  name: "{layer.name}" type: "{layer.type}"{bottoms} top: "{layer.top}"'
    head += f" precision: {precision}" if precision else ""
    if layer.train_only:
        head += " include { phase: TRAIN }"
    fields = fields_of(network, layer)
    if not fields:
        return f"layer {{{head[1:]} }}\n"
    return f"layer {{\n{head}\n  {PARAMETER[layer.type]} {{ {fields} }}\n}}\n"


def input_text(network):
    """Input and labels that are made once and stay in memory: drawings of digits, as large as the
    network wants them. A volume is a stack of drawings; its labels say where there is ink."""
    if getattr(network, "vocabulary", 0):
        return sequence_definitions.input_text(network)
    shape = network.shape
    channels, height, width = shape if len(shape) == 3 else shape[1:]
    tops = 'top: "stack"' if network.dense_labels else 'top: "data" top: "label"'
    text = (f'layer {{\n  name: "data" type: "Data" {tops}\n'
            f'  transform_param {{ mean_value: 64 scale: 0.0125 }}\n'
            f'  data_param {{\n    backend: SYNTHETIC batch_size: {network.batch} cache: true\n'
            f'    synthetic_param {{ count: {network.batch} channels: {channels} '
            f'height: {height} width: {width} }}\n  }}\n}}\n')
    if not network.dense_labels:
        return text
    dims = " ".join(f"dim: {d}" for d in (0, *shape))
    return text + (f'layer {{\n  name: "volume" type: "Reshape" bottom: "stack" top: "data"\n'
                   f'  reshape_param {{ shape {{ {dims} }} }}\n}}\n'
                   f'layer {{ name: "label" type: "Threshold" bottom: "data" top: "label" }}\n')


def output_text(network):
    """Losses, and the accuracy in the test phase."""
    text = ""
    if "label" in network.inputs:  # the loss is a layer
        return text
    for scores, weight in network.outputs:
        main = scores == network.outputs[-1][0]
        name = "loss" if main else f"{scores}/loss"
        tail = "" if main else f" loss_weight: {weight} include {{ phase: TRAIN }}"
        text += (f'layer {{ name: "{name}" type: "SoftmaxWithLoss" bottom: "{scores}" '
                 f'bottom: "label" top: "{name}"{tail} }}\n')
    return text + (f'layer {{\n  name: "accuracy" type: "Accuracy" bottom: "{scores}" '
                   f'bottom: "label" top: "accuracy" include {{ phase: TEST }}\n}}\n')


def net_text(network, about, data, precision):
    text = f'# {about} Written by bench/definitions.py.\nname: "{network.name}"\n'
    text += data or input_text(network)
    for layer in network.layers:
        text += layer_text(network, layer, precision)
    return text + output_text(network)


def solver_text(network):
    text = f'net: "{network.name}_train_test.prototxt"\n'
    if isinstance(network, sequences.Transformer):
        text += 'type: "AdamW" base_lr: 0.0001 lr_policy: "fixed" weight_decay: 0.01\n'
        text += "momentum: 0.9 momentum2: 0.999 delta: 1e-8\n"
    else:
        text += 'base_lr: 0.0001 lr_policy: "fixed" momentum: 0.9 weight_decay: 0.0005\n'
    text += "max_iter: 1000000 test_iter: 10 test_interval: 1000000 test_initialization: false\n"
    text += "snapshot_after_train: false random_seed: 1 solver_mode: CPU\n"
    if network.group:
        text += "follow_groups: true\n"
    if network.micro_batch:
        text += f"micro_batch: {network.micro_batch}\n"
    return text


def write(network, about, folder, data=None, precision=None):
    """The net and its solver, whose path is returned, and what they read. `data`: the text of another
    data layer; `precision`: that of all layers, where it is not the default."""
    if getattr(network, "vocabulary", 0):
        sequence_definitions.write_input(network, folder)
    return write_texts(network, about, folder, data, precision)


def write_texts(network, about, folder, data=None, precision=None):
    texts = {"train_test": net_text(network, about, data, precision), "solver": solver_text(network)}
    for ending, text in texts.items():
        path = os.path.join(folder, f"{network.name}_{ending}.prototxt")
        with open(path, "w") as file:
            file.write(text)
    return path


def differences(written, kept):
    """Names of the files that are not the same in both folders."""
    def read(folder, name):
        path = os.path.join(folder, name)
        if not os.path.exists(path):
            return None
        with open(path) as file:
            return file.read()

    names = {*os.listdir(written), *os.listdir(kept)}
    return sorted(name for name in names if read(written, name) != read(kept, name))


def write_all(folder):
    os.makedirs(folder, exist_ok=True)
    for make in networks.ALL:
        write_texts(make(), make.__doc__.split("\n")[0], folder)


def main():
    kept = os.path.join(os.path.dirname(os.path.abspath(__file__)), "nets")
    if sys.argv[1:] != ["--check"]:
        write_all(sys.argv[1] if len(sys.argv) > 1 else kept)
        return
    with tempfile.TemporaryDirectory() as folder:
        write_all(folder)
        wrong = differences(folder, kept)
    if wrong:
        sys.exit("run bench/definitions.py: not as it writes them: " + " ".join(wrong))


if __name__ == "__main__":
    main()
