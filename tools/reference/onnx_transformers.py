#!/usr/bin/env python3
"""Transformers, exported to ONNX by torch and imported, predict and train here as in PyTorch.

    onnx_transformers.py PROGRAM LIBRARY [--steps 20] [--all] [CASE ...]

Each case is a small model with random weights and a way to export it. It is imported by PROGRAM;
its outputs by LIBRARY (liblockstep.so) must be PyTorch's to 1e-5 of the largest, attention must
have become Attention layers, the losses of 20 steps of SGD must be PyTorch's to 1e-4, and the net
that is exported again must give the same outputs in onnxruntime. Without names, one export of each
model is tried; --all tries every exporter. Needs torch, torchvision, onnx, onnxscript and
onnxruntime; transformers for the cases that begin with hf_.

SPDX-License-Identifier: BSD-2-Clause
"""
import argparse
import contextlib
import ctypes
import io
import json
import logging
import math
import os
import re
import subprocess
import sys
import tempfile
import warnings

sys.path.pop(0)  # a script beside this one is called transformers, too

import numpy
import onnxruntime
import torch
import torchvision
from torch import nn
from torch.nn import functional

BATCH, CLASSES, WORDS, PLACES = 4, 10, 30, 6
LEARNING_RATE = 0.05
SOLVER = """net: "net_train_test.prototxt"
base_lr: %g
lr_policy: "fixed"
max_iter: %d
display: 1
snapshot_prefix: "net"
"""
# Exporter, version of the operators, and whether the number of samples is open.
USUAL = {"dynamo": ("dynamo", 18, True), "script": ("script", 17, True)}
EXPORTS = dict(USUAL, **{"script13": ("script", 13, False), "script14": ("script", 14, False),
                         "script20": ("script", 20, True), "dynamo20": ("dynamo", 20, False),
                         "training": ("training", 17, False)})


class Attention(nn.Module):
    """Heads of one product, as small GPTs are often written."""

    def __init__(self, width, heads, places, explicit):
        super().__init__()
        self.heads, self.explicit = heads, explicit
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        if explicit:
            self.register_buffer("mask", torch.tril(torch.ones(places, places))[None, None])

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = (part.view(n, t, self.heads, c // self.heads).transpose(1, 2)
                   for part in self.c_attn(x).split(c, dim=2))
        if self.explicit:
            scores = (q @ k.transpose(-2, -1)) * (1 / math.sqrt(k.shape[-1]))
            scores = scores.masked_fill(self.mask[:, :, :t, :t] == 0, float("-inf"))
            y = functional.softmax(scores, dim=-1) @ v
        else:
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).contiguous().view(n, t, c))


class Block(nn.Module):
    def __init__(self, width, heads, places, explicit, function):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = Attention(width, heads, places, explicit)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(approximate=function),
                                 nn.Linear(2 * width, width))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt(nn.Module):
    def __init__(self, explicit=False, tied=False, function="none", width=16, places=8):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(WORDS, width), nn.Embedding(places, width)
        self.h = nn.ModuleList(Block(width, 2, places, explicit, function) for _ in range(2))
        self.ln_f, self.lm_head = nn.LayerNorm(width), nn.Linear(width, WORDS, bias=False)
        if tied:
            self.lm_head.weight = self.wte.weight

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


class Encoder(nn.Module):
    """torch's own layers; their inputs may have the places first."""

    def __init__(self, first, function="gelu", norm_first=False):
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, activation=function,
                                           batch_first=first, norm_first=norm_first)
        self.first = first
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.fc = nn.Linear(16, CLASSES)

    def forward(self, x):
        x = x if self.first else x.transpose(0, 1)
        x = self.layers(x)
        x = x if self.first else x.transpose(0, 1)
        return self.fc(x.mean(1))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerDecoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.fc = nn.Linear(16, CLASSES)

    def forward(self, x, memory):
        return self.fc(self.layer(x, memory).mean(1))


class Gated(nn.Module):
    """RMSNorm, and a product gated by SiLU."""

    def __init__(self):
        super().__init__()
        self.norm = nn.RMSNorm(16)
        self.gate, self.up = nn.Linear(16, 32, bias=False), nn.Linear(16, 32, bias=False)
        self.down, self.fc = nn.Linear(32, 16, bias=False), nn.Linear(16, CLASSES)

    def forward(self, x):
        y = self.norm(x)
        return self.fc((x + self.down(functional.silu(self.gate(y)) * self.up(y))).mean(1))


class Words(nn.Module):
    """The outputs of a model of the transformers package."""

    def __init__(self, model):
        super().__init__()
        self.m = model

    def forward(self, ids):
        return self.m(ids).logits


class MaskedWords(Words):
    def forward(self, ids, mask):
        return self.m(input_ids=ids, attention_mask=mask).logits


def hugging(kind, attention="sdpa"):
    import transformers
    shape = dict(num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, hidden_size=16,
                 attn_implementation=attention)
    if kind == "vit":
        return Words(transformers.ViTForImageClassification(transformers.ViTConfig(
            image_size=16, patch_size=4, num_labels=CLASSES, **shape)))
    if kind == "gpt2":
        return Words(transformers.GPT2LMHeadModel(transformers.GPT2Config(
            vocab_size=WORDS, n_positions=8, n_embd=16, n_layer=2, n_head=2, use_cache=False,
            attn_implementation=attention)))
    model = transformers.BertForSequenceClassification(transformers.BertConfig(
        vocab_size=WORDS, max_position_embeddings=8, num_labels=CLASSES, **shape))
    return (MaskedWords if kind == "masked" else Words)(model)


def vision():
    model = torchvision.models.VisionTransformer(
        image_size=16, patch_size=4, num_layers=2, num_heads=2, hidden_dim=16, mlp_dim=32,
        num_classes=CLASSES)
    nn.init.normal_(model.class_token)
    return model


def convnext():
    config = torchvision.models.convnext.CNBlockConfig
    return torchvision.models.ConvNeXt([config(8, 16, 1), config(16, None, 1)],
                                       num_classes=CLASSES)


PICTURES, SEQUENCES, IDS = "pictures", "sequences", "ids"
CASES = {  # model, inputs, exports
    "vit": (vision, [PICTURES], "dynamo script script14 training"),
    "gpt": (Gpt, [IDS], "script dynamo script14 training"),
    "gpt_explicit": (lambda: Gpt(explicit=True, function="tanh"), [IDS],
                     "dynamo script script13 script20 dynamo20"),
    "gpt_tied": (lambda: Gpt(tied=True), [IDS], "training dynamo script"),
    "encoder": (lambda: Encoder(True), [SEQUENCES], "dynamo script script14"),
    "encoder_places_first": (lambda: Encoder(False, "relu", True), [SEQUENCES], "script dynamo"),
    "decoder": (Decoder, [SEQUENCES, SEQUENCES], "dynamo script"),
    "gated": (Gated, [SEQUENCES], "dynamo dynamo20"),
    "convnext": (convnext, [PICTURES], "dynamo script"),
    "hf_vit": (lambda: hugging("vit"), [PICTURES], "script dynamo"),
    "hf_vit_eager": (lambda: hugging("vit", "eager"), [PICTURES], "dynamo script14"),
    "hf_bert": (lambda: hugging("bert"), [IDS], "script dynamo"),
    "hf_bert_masked": (lambda: hugging("masked", "eager"), [IDS, "mask"],
                       "dynamo script training"),
    "hf_bert_masked_sdpa": (lambda: hugging("masked"), [IDS, "mask"], "script dynamo"),
    "hf_gpt2": (lambda: hugging("gpt2"), [IDS], "dynamo"),
    "hf_gpt2_eager": (lambda: hugging("gpt2", "eager"), [IDS], "dynamo dynamo20"),
}


def make_model(name):
    torch.manual_seed(1)
    model = CASES[name][0]()
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        if isinstance(module, torchvision.ops.StochasticDepth):
            module.p = 0.0
    for parameter in model.parameters():  # zeros are left out by torch.export, equal ones joined
        if parameter.std() < 0.1:
            nn.init.normal_(parameter, mean=parameter.mean().item(), std=0.1)
    return model.eval()


def make_inputs(kinds, count):
    generator = torch.Generator().manual_seed(2)
    inputs = []
    for kind in kinds:
        if kind == PICTURES:
            inputs.append(torch.randn(count, 3, 16, 16, generator=generator))
        elif kind == SEQUENCES:
            inputs.append(torch.randn(count, PLACES - len(inputs), 16, generator=generator))
        elif kind == IDS:  # 0 is padding, whose row of BERT does not learn in PyTorch
            inputs.append(torch.randint(1, WORDS, (count, PLACES), generator=generator))
        else:
            lengths = torch.randint(2, PLACES + 1, (count, 1), generator=generator)
            inputs.append((torch.arange(PLACES)[None] < lengths).long())
    return inputs


def export(model, inputs, path, way):
    exporter, opset, is_open = EXPORTS[way]
    names = ["x%d" % i for i in range(len(inputs))]
    options = {"opset_version": opset, "input_names": names}
    if exporter == "dynamo":
        options.update(dynamo=True, external_data=False)
        if is_open:
            axis = torch.export.Dim("N", min=1, max=64)
            options["dynamic_shapes"] = tuple({0: axis} for _ in inputs)
    else:
        options["dynamo"] = False
        if is_open:
            options["dynamic_axes"] = {name: {0: "N"} for name in names}
    if exporter == "training":
        options.update(training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False)
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        torch.onnx.export(model, tuple(inputs), path, **options)


class Library:
    """Predictions of nets by liblockstep.so."""

    def __init__(self, path):
        self.c = ctypes.CDLL(path)
        for name in ("error_new", "error_text", "model_input_name"):
            getattr(self.c, "lockstep_" + name).restype = ctypes.c_void_p
        for name in ("model_input_count", "model_output_size"):
            getattr(self.c, "lockstep_" + name).restype = ctypes.c_size_t

    def predict(self, net, weights, inputs):
        error = ctypes.c_void_p(self.c.lockstep_error_new())
        options, model = (ctypes.c_char * 512)(), ctypes.c_void_p()
        self.c.lockstep_model_options_init(options)
        if self.c.lockstep_model_load(net.encode(), weights.encode(), options,
                                      ctypes.byref(model), error) != 0:
            sys.exit(ctypes.string_at(self.c.lockstep_error_text(error)).decode())
        names = [ctypes.string_at(self.c.lockstep_model_input_name(
            model, ctypes.c_size_t(i))).decode()
                 for i in range(self.c.lockstep_model_input_count(model))]
        arrays = [numpy.ascontiguousarray(inputs[int(name[1:])].numpy(), "f4") for name in names]
        count = len(arrays[0])
        out = numpy.zeros((count, self.c.lockstep_model_output_size(model)), "f4")
        pointers = (ctypes.c_void_p * len(arrays))(*[a.ctypes.data for a in arrays])
        if self.c.lockstep_model_predict_inputs(model, pointers, ctypes.c_size_t(count),
                                                ctypes.c_void_p(out.ctypes.data), error) != 0:
            sys.exit(ctypes.string_at(self.c.lockstep_error_text(error)).decode())
        self.c.lockstep_model_free(model)
        return out


def run(program, folder, *arguments):
    done = subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit("%s: %s" % (" ".join(arguments), done.stderr))


def distance(a, b):
    a, b = a.reshape(-1), b.reshape(-1)
    return float(numpy.abs(a - b).max() / numpy.abs(b).max())


def train_there(model, inputs, labels, steps):
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
    losses = []
    for step in range(steps):
        part = slice(step * BATCH, (step + 1) * BATCH)
        scores = model(*[values[part] for values in inputs])
        loss = functional.cross_entropy(scores.flatten(0, -2), labels[part].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def train_here(program, folder, steps):
    path = os.path.join(folder, "net_train_test.prototxt")
    with open(path) as file:
        text = file.read()
    with open(path, "w") as file:
        file.write(text.replace("batch_size: 32", "batch_size: %d" % BATCH)
                   .replace("shuffle: true", "shuffle: false"))
    with open(os.path.join(folder, "solver.prototxt"), "w") as file:
        file.write(SOLVER % (LEARNING_RATE, steps))
    run(program, folder, "train", "--solver", "solver.prototxt", "--weights", "net.safetensors",
        "--log-json", "log.jsonl", "--workers", "1")
    with open(os.path.join(folder, "log.jsonl")) as file:
        events = [json.loads(line) for line in file]
    return [event["loss"] for event in events if event["event"] == "progress"][:steps]


def write_arrays(folder, inputs, labels):
    for phase in ("train", "test"):
        os.mkdir(os.path.join(folder, phase))
        for i, values in enumerate(inputs):
            kind = "f4" if values.is_floating_point() else "i4"
            numpy.save(os.path.join(folder, phase, "x%d.npy" % i), values.numpy().astype(kind))
        numpy.save(os.path.join(folder, phase, "label.npy"), labels.numpy().astype("i4"))


def export_again(program, folder, inputs, expected):
    """How far the outputs of the net's own ONNX model are away."""
    run(program, folder, "export", "--onnx", "--model", "net_deploy.prototxt", "--weights",
        "net.safetensors", "-o", "again.onnx")
    session = onnxruntime.InferenceSession(os.path.join(folder, "again.onnx"),
                                           providers=["CPUExecutionProvider"])
    feeds = {value.name: inputs[int(value.name[1:])].numpy().astype("f4")
             for value in session.get_inputs()}
    return distance(session.run(None, feeds)[0], expected)


def compare(program, library, name, way, steps):
    model = make_model(name)
    inputs = make_inputs(CASES[name][1], steps * BATCH)
    few = [values[:BATCH] for values in inputs]
    with torch.no_grad():
        expected = model(*few).numpy()
    shape = expected.shape[1:-1]
    labels = torch.randint(0, expected.shape[-1], (steps * BATCH, *shape),
                           generator=torch.Generator().manual_seed(3))
    with tempfile.TemporaryDirectory() as folder:
        export(model, few, os.path.join(folder, "net.onnx"), way)
        model.eval()
        run(program, folder, "import", "-o", "net", "--loss", "softmax", "net.onnx")
        net = os.path.join(folder, "net_deploy.prototxt")
        with open(net) as file:
            layers = re.findall(r'type: "(\w+)"', file.read())
        write_arrays(folder, inputs, labels)
        off = distance(library.predict(net, os.path.join(folder, "net.safetensors"), few), expected)
        again = export_again(program, folder, few, expected)
        here = train_here(program, folder, steps)
    there = train_there(model, inputs, labels, steps)
    apart = max(abs(a - b) for a, b in zip(here, there)) if len(here) == steps else math.inf
    plain = name in ("convnext", "gated")
    found = plain or (layers.count("Attention") == 2 and "MatMul" not in layers)
    good = off <= 1e-5 and again <= 1e-5 and apart <= 1e-4 and found
    print("%-22s %-8s outputs %.1e, exported %.1e; losses %.4f to %.4f, %.1e%s%s"
          % (name, way, off, again, there[0], there[-1], apart,
             "" if found else "; " + " ".join(layers), "" if good else "  WRONG"), flush=True)
    return good


def main():
    logging.disable(logging.CRITICAL)
    warnings.filterwarnings("ignore")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("library")
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_intermixed_args()
    torch.set_num_threads(1)
    program, library = os.path.abspath(options.program), Library(os.path.abspath(options.library))
    good = True
    for name in options.cases or CASES:
        ways = CASES[name][2].split()
        for way in ways if options.all else ways[:1]:
            good = compare(program, library, name, way, options.steps) and good
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
