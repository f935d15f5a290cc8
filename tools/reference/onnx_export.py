#!/usr/bin/env python3
"""Exported models against Lockstep's own predictions: tools/reference/onnx_export.py PROGRAM
LIBRARY FOLDER WORK [NET.prototxt...]

Each net gets random weights and inputs, is exported by PROGRAM, checked by onnx.checker, and run by
onnxruntime with another number of samples than the definition's; its outputs must be those that
LIBRARY (liblockstep.so) predicts, to 1e-5 of the largest (each net can say another bound). FOLDER
is where the small nets are, tests/compat/onnx/*.prototxt; their first line may say what they need:
"# opset 13 batch 2 bound 1e-4 low 0 high 9 words" (whole numbers), "whole" (for whole batches). Nets that are named are checked, too, with
their data layers replaced by inputs; NET=OTHER compares with what OTHER predicts with these weights.
SPDX-License-Identifier: BSD-2-Clause"""
import ctypes
import glob
import json
import os
import re
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime

program, library, folder, work = sys.argv[1:5]
lockstep = ctypes.CDLL(library)
for name in ("lockstep_error_new", "lockstep_error_text", "lockstep_model_input_name"):
    getattr(lockstep, name).restype = ctypes.c_void_p
for name in ("lockstep_model_input_size", "lockstep_model_input_count",
             "lockstep_model_output_size"):
    getattr(lockstep, name).restype = ctypes.c_size_t


def run(*arguments):
    done = subprocess.run([program, *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(arguments)}: {done.stderr}")
    return done.stdout


def without_data(text, shapes):
    """The definition with Input layers in the place of its data layers."""
    out, at, gone = "", 0, set()
    for match in re.finditer(r"^layer\s*\{", text, re.M):
        end, depth = match.end(), 1
        while depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        if re.search(r'type:\s*"(Data|HDF5Data|ImageData|AnnotatedData)"',
                     text[match.start():end]):
            out += text[at:match.start()]
            at = end
            gone.add(re.search(r'name:\s*"([^"]*)"', text[match.start():end])[1])
    out += text[at:]
    for layer in shapes["layers"]:
        if layer["name"] in gone:
            for top in layer["tops"]:
                dims = " ".join(f"dim: {d}" for d in top["shape"])
                axis = " sample_axis: 1" if top.get("sample_axis") == 1 else ""
                out = (f'layer {{ name: "{top["name"]}" type: "Input" top: "{top["name"]}" '
                       f"input_param {{ shape {{ {dims} }}{axis} }} }}\n") + out
    return out


def write_weights(shapes, path, random):
    """Random weights of a size that keeps numbers near 1, as safetensors."""
    header, data, at = {}, b"", 0
    for layer in shapes["layers"]:
        for parameter in layer["parameters"] if not layer["shares"] else []:
            shape = parameter["shape"]
            fan = np.prod(shape[1:]) if len(shape) > 1 else 4
            numbers = random.normal(size=shape, scale=1 / np.sqrt(fan))
            if parameter["name"] in ("variance", "factor", "mean_factor") or \
                    layer["type"] in ("Scale", "LayerNorm", "RMSNorm", "BN") and len(shape) == 1:
                numbers = 0.5 + random.random(shape)
            raw = numbers.astype("<f4").tobytes()
            header[f"{layer['name']}.{parameter['name']}"] = {
                "dtype": "F32", "shape": shape, "data_offsets": [at, at + len(raw)]}
            at += len(raw)
            data += raw
    head = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(len(head).to_bytes(8, "little") + head + data)


def load(net, weights):
    options = (ctypes.c_char * 512)()
    lockstep.lockstep_model_options_init(options)
    error = ctypes.c_void_p(lockstep.lockstep_error_new())
    model = ctypes.c_void_p()
    if lockstep.lockstep_model_load(net.encode(), weights.encode(), options,
                                    ctypes.byref(model), error) != 0:
        raise SystemExit(ctypes.string_at(lockstep.lockstep_error_text(error)).decode())
    return model, error


def predict(model, error, inputs, count):
    """`inputs` by name, each with samples first; one row of the output a sample."""
    total = lockstep.lockstep_model_input_count(model)
    names = [ctypes.string_at(lockstep.lockstep_model_input_name(model, ctypes.c_size_t(i))).decode()
             for i in range(total)]
    arrays = []
    for i, name in enumerate(names):
        size = lockstep.lockstep_model_input_size(model, ctypes.c_size_t(i))
        array = inputs.get(name, np.zeros((count, size), "f4"))
        arrays.append(np.ascontiguousarray(array, "f4").reshape(count, -1))
    pointers = (ctypes.c_void_p * total)(*[a.ctypes.data for a in arrays])
    out = np.zeros((count, lockstep.lockstep_model_output_size(model)), "f4")
    if lockstep.lockstep_model_predict_inputs(model, pointers, ctypes.c_size_t(count),
                                              ctypes.c_void_p(out.ctypes.data), error) != 0:
        raise SystemExit(ctypes.string_at(lockstep.lockstep_error_text(error)).decode())
    return out


def check_pixels(path, weights, base):
    """With preprocessing, the model takes the pixels of a sample of the net's own data."""
    model = base + "_pixels.onnx"
    run("export", "--onnx", "--model", path, "--weights", weights, "-o", model,
        "--with-preprocessing")
    handle, error = load(path, weights)
    shape, label = (ctypes.c_int64 * 3)(), ctypes.c_int()
    pixels = np.zeros(1 << 20, "f4")
    ours = np.zeros((1, lockstep.lockstep_model_output_size(handle)), "f4")
    if lockstep.lockstep_model_predict_sample(
            handle, ctypes.c_int64(1), shape, ctypes.c_void_p(pixels.ctypes.data),
            ctypes.byref(label), ctypes.c_void_p(ours.ctypes.data), error) != 0:
        raise SystemExit(ctypes.string_at(lockstep.lockstep_error_text(error)).decode())
    lockstep.lockstep_model_free(handle)
    size = [1, *shape]
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    theirs = session.run(None, {"data": pixels[:np.prod(size)].reshape(size)})[0].reshape(1, -1)
    worst = np.abs(ours - theirs).max() / np.abs(theirs).max()
    assert worst <= 1e-5, f"{path}: of pixels, outputs differ by {worst}"
    print(f"{os.path.basename(base)}: of pixels, outputs agree to {worst:.1e}", flush=True)


def settings(text):
    """What the first line of a net says: opset, batch, bound, low and high of inputs, words."""
    line = text.split("\n", 1)[0]
    found = dict(re.findall(r"\b(opset|batch|bound|low|high) ([\d.e-]+)", line)) \
        if line.startswith("#") else {}
    return found, line.startswith("#") and "words" in line.split(), \
        line.startswith("#") and "whole" in line.split()


def check(path, random):
    path, _, other = path.partition("=")
    text = open(path).read()
    said, words, whole = settings(text)
    name = os.path.splitext(os.path.basename(path))[0]
    base = os.path.join(work, name)
    shapes = json.loads(run("shapes", "--model", path, "--json"))
    net, weights, model = base + ".prototxt", base + ".safetensors", base + ".onnx"
    with open(net, "w") as file:
        file.write(without_data(text, shapes))
    write_weights(shapes, weights, random)
    arguments = ["export", "--onnx", "--model", net, "--weights", weights, "-o", model,
                 "--opset", said.get("opset", "17"), "--batch", said.get("batch", "dynamic")]
    run(*arguments)
    first = open(model, "rb").read()
    run(*arguments)
    assert first == open(model, "rb").read(), f"{name}: other bytes the second time"
    loaded = onnx.load(model)
    onnx.checker.check_model(loaded, full_check=True)
    assert loaded.SerializeToString(deterministic=True) == first, f"{name}: not as onnx writes it"
    quiet = onnxruntime.SessionOptions()
    quiet.log_severity_level = 3
    quiet.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, quiet, providers=["CPUExecutionProvider"])
    count = int(said.get("batch", 3))
    feeds, samples = {}, {}
    for value in session.get_inputs():
        shape = [count if isinstance(d, str) and d == "N" else d for d in value.shape]
        low, high = float(said.get("low", -1)), float(said.get("high", 1))
        numbers = random.uniform(low, high, shape)
        rows = re.search(r"\binput_dim: (\d+)", text)
        if rows and "token" in value.name and "high" not in said:
            numbers = random.integers(0, int(rows[1]), shape)
        elif words or re.search("token|label|index|segment|position|mask|length|cont", value.name):
            numbers = np.floor(random.uniform(0, float(said.get("high", 2)), shape))
        if "rois" in value.name:  # picture, left, top, right, bottom
            corners = np.sort(random.integers(0, 40, (shape[0], 2, 2)), axis=1).reshape(-1, 4)
            numbers = np.concatenate([random.integers(0, 2, (shape[0], 1)), corners], axis=1)
        if "cont" in value.name:  # behind the first step a sequence goes on
            numbers[1:] = 1
        kind = {"tensor(float)": "f4", "tensor(int32)": "i4"}[value.type]
        feeds[value.name] = numbers.astype(kind)
        axis = next((i for i, d in enumerate(value.shape) if isinstance(d, str)),
                    1 if re.search(f'top: "{value.name}".*sample_axis: 1', text) else 0)
        samples[value.name] = np.moveaxis(feeds[value.name], axis, 0)
    if whole:  # a net that mixes the samples of a batch predicts for batches
        samples, count = {name: feed[None] for name, feed in feeds.items()}, 1
    handle, error = load(other or net, weights)
    ours = predict(handle, error, samples, count)
    lockstep.lockstep_model_free(handle)
    output = session.get_outputs()[0]
    theirs = session.run([output.name], feeds)[0]
    axis = next((i for i, d in enumerate(output.shape) if isinstance(d, str)),
                1 if "sample_axis: 1" in text else 0)
    theirs = (theirs if whole else np.moveaxis(theirs, axis, 0)).reshape(count, -1)
    assert np.isfinite(theirs).all() and np.ptp(theirs) > 0, f"{name}: outputs say nothing"
    worst = np.abs(ours - theirs).max() / max(np.abs(theirs).max(), 1e-30)
    print(f"{name}: {len(loaded.graph.node)} nodes, outputs agree to {worst:.1e}", flush=True)
    assert worst <= float(said.get("bound", 1e-5)), f"{name}: outputs differ by {worst}"
    if "SYNTHETIC" in text and "transform_param" in text:
        check_pixels(path, weights, base)


def main():
    failed = []
    for path in sys.argv[5:] or sorted(glob.glob(os.path.join(folder, "*.prototxt"))):
        try:
            check(path, np.random.default_rng(1))
        except (Exception, SystemExit) as problem:  # all nets, then the verdict
            failed.append(path)
            print(f"{path}: {type(problem).__name__}: {problem}", flush=True)
    if failed:
        raise SystemExit(f"{len(failed)} of the nets failed")


main()
