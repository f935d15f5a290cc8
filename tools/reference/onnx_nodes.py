#!/usr/bin/env python3
"""Every node test of the ONNX package through Lockstep's import: onnx_nodes.py LIBRARY WORK
[--verbose] [NAME...]

A test is a model of one operator, with inputs and the outputs that the standard asks for. It is
imported in two forms: with its first input as the net's input and all others as weights, and with
all of them as inputs. Each form is refused by the import, or gives the outputs that are asked for.
Another output, or a net that the import made and that cannot be loaded, is a fault; so is an
operator of EXPECTED of which no test passes. NAME restricts the tests to those whose names have it.
Needs numpy and onnx.
SPDX-License-Identifier: BSD-2-Clause"""
import ctypes
import os
import re
import sys
import warnings

import numpy as np

warnings.simplefilter("ignore")
import onnx  # noqa: E402
from onnx import numpy_helper  # noqa: E402
from onnx.backend.test.case.utils import import_recursive  # noqa: E402
import onnx.backend.test.case.node as nodes  # noqa: E402

EXPECTED = set("""Abs Add AveragePool BatchNormalization Clip Concat Conv ConvTranspose Div Elu Exp Flatten Gather Gelu Gemm GlobalAveragePool GlobalMaxPool GroupNormalization HardSigmoid
HardSwish InstanceNormalization LRN LSTM LayerNormalization LeakyRelu Log LogSoftmax MatMul
Max MaxPool Mish Mul Neg Pad Pow Reciprocal ReduceMean ReduceSum Relu Reshape Resize Selu
Sigmoid Slice Softmax Softplus Split Sqrt Squeeze Sub Sum Tanh Transpose Unsqueeze""".split())
# Batch norms of training forms learn here, and predict by their averages; a net that is a dropout
# and nothing else is empty in tests.
OTHERWISE = ("batchnorm_example_training_mode", "batchnorm_epsilon_training_mode",
             "dropout_default", "dropout_default_mask", "dropout_default_old",
             "dropout_random_old")

lockstep = None


class Refused(Exception):
    """The import says no."""


class Fault(Exception):
    """The import says yes, and what it made is wrong."""


def open_library(path):
    global lockstep
    lockstep = ctypes.CDLL(path)
    for name in ("lockstep_error_new", "lockstep_error_text", "lockstep_model_input_name"):
        getattr(lockstep, name).restype = ctypes.c_void_p
    for name in ("lockstep_model_input_size", "lockstep_model_input_count",
                 "lockstep_model_output_size"):
        getattr(lockstep, name).restype = ctypes.c_size_t


def said(error):
    return ctypes.string_at(lockstep.lockstep_error_text(error)).decode().strip()


def import_model(model, prefix):
    path, error = prefix + ".onnx", ctypes.c_void_p(lockstep.lockstep_error_new())
    for end in ("_deploy.prototxt", ".safetensors"):
        if os.path.exists(prefix + end):
            os.unlink(prefix + end)
    with open(path, "wb") as file:
        file.write(model.SerializeToString())
    try:
        options = (ctypes.c_char * 512)()
        lockstep.lockstep_import_options_init(options)
        if lockstep.lockstep_import_onnx(path.encode(), prefix.encode(), options, None, None,
                                         error) != 0:
            raise Refused(said(error))
    finally:
        lockstep.lockstep_error_free(error)
    return open(prefix + "_deploy.prototxt").read()


def load(prefix):
    options = (ctypes.c_char * 512)()
    lockstep.lockstep_model_options_init(options)
    error, model = ctypes.c_void_p(lockstep.lockstep_error_new()), ctypes.c_void_p()
    weights = prefix + ".safetensors"
    if not os.path.exists(weights):  # a net without weights cannot be loaded: it gets one
        with open(prefix + "_deploy.prototxt", "a") as file:
            file.write('layer { name: "one" type: "Parameter" top: "one" '
                       "parameter_param { shape { dim: 1 } } }\n"
                       'layer { name: "none" type: "Silence" bottom: "one" }\n')
        head = b'{"one.parameter":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
        with open(weights, "wb") as file:
            file.write(len(head).to_bytes(8, "little") + head + bytes(4))
    if lockstep.lockstep_model_load((prefix + "_deploy.prototxt").encode(),
                                    weights.encode(), options,
                                    ctypes.byref(model), error) != 0:
        raise Fault("the net is not loaded: " + said(error))
    return model, error


def predict(prefix, text, feeds):
    """The output by sample. `feeds` by the names that the net gives to inputs."""
    model, error = load(prefix)
    shapes = {top: tuple(int(d) for d in re.findall(r"dim: (\d+)", rest)) for top, rest in
              re.findall(r'type: "Input"\s+top: "(\w+)"\s+input_param \{([^\n]*)', text)}
    arrays, count = [], None
    for i in range(lockstep.lockstep_model_input_count(model)):
        name = ctypes.string_at(lockstep.lockstep_model_input_name(model, ctypes.c_size_t(i)))
        name = name.decode()
        feed = np.asarray(feeds[name], "f4")
        if feed.shape != shapes[name]:  # of steps first, the net has samples first
            feed = np.moveaxis(feed, 1, 0)
        count = len(feed) if count is None else count
        if len(feed) != count:
            lockstep.lockstep_model_free(model)
            raise Refused("its inputs have not the same number of samples")
        arrays.append(np.ascontiguousarray(feed))
    pointers = (ctypes.c_void_p * len(arrays))(*[a.ctypes.data for a in arrays])
    out = np.zeros((count, lockstep.lockstep_model_output_size(model)), "f4")
    status = lockstep.lockstep_model_predict_inputs(model, pointers, ctypes.c_size_t(count),
                                                    ctypes.c_void_p(out.ctypes.data), error)
    text = said(error) if status != 0 else None
    lockstep.lockstep_model_free(model)
    lockstep.lockstep_error_free(error)
    if text is not None:
        raise Fault("the net does not predict: " + text)
    return out


def is_same(ours, theirs, rtol, atol=2e-6):
    """Samples lie along whatever axis of the output has as many places, or some for each."""
    theirs = np.asarray(theirs, "f8")
    for axis, extent in enumerate(theirs.shape):
        if extent % len(ours) != 0 or (axis > 0 and extent != len(ours)):
            continue
        rows = np.moveaxis(theirs, axis, 0).reshape(len(ours), -1)
        if rows.shape == ours.shape and np.allclose(ours, rows, rtol=rtol, atol=atol,
                                                    equal_nan=True):
            return True
    return False


def form_of(case, first_alone, inputs, output):
    """The test's model with one output, and its other inputs as weights, where they shall be."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    graph, feeds = model.graph, {}
    kept = [value for i, value in enumerate(graph.input) if i == 0 or not first_alone]
    for value, array in zip(graph.input, inputs):
        if value in kept:
            feeds[re.sub(r"[^0-9A-Za-z]", "_", value.name)] = array
        else:
            graph.initializer.append(numpy_helper.from_array(array, value.name))
    out = graph.output[output]
    del graph.input[:], graph.output[:]
    graph.input.extend(kept)
    graph.output.append(out)
    return model, feeds


def run_form(case, first_alone, inputs, outputs, output, prefix):
    model, feeds = form_of(case, first_alone, inputs, output)
    if np.asarray(outputs[output]).size == 0 or any(array.size == 0 for array in feeds.values()):
        raise Refused("there are no numbers")
    text = import_model(model, prefix)
    ours = predict(prefix, text, feeds)
    if not is_same(ours, outputs[output], case.rtol):
        raise Fault("other outputs than those that are asked for")


def run_case(case, prefix):
    """[(form, None, or why it is refused, or its fault)]"""
    found = []
    for inputs, outputs in case.data_sets:
        if not all(isinstance(a, np.ndarray) and a.dtype.kind in "fiub"
                   for a in list(inputs) + list(outputs)) or not inputs:
            continue
        for first_alone in (True, False) if len(inputs) > 1 else (True,):
            for output in range(len(outputs)):
                form = "%s, output %d" % ("first input" if first_alone else "all inputs", output)
                try:
                    run_form(case, first_alone, inputs, outputs, output, prefix)
                    found.append((form, None))
                except (Refused, Fault) as problem:
                    found.append((form, problem))
    return found


def main():
    arguments = [a for a in sys.argv[1:] if a != "--verbose"]
    library, work, names = arguments[0], arguments[1], arguments[2:]
    verbose = "--verbose" in sys.argv
    open_library(os.path.abspath(library))
    import_recursive(nodes)
    cases = [case for case in nodes._NodeTestCases
             if not names or any(name in case.name for name in names)]
    passed, refused, faults, done = 0, 0, 0, set()
    for case in cases:
        operators = {node.op_type for node in case.model.graph.node}
        if len(operators) > 1 or case.name[5:] in OTHERWISE:  # an operator written out in others: those have tests of their own
            continue
        for form, problem in run_case(case, os.path.join(work, "node")):
            passed += problem is None
            refused += isinstance(problem, Refused)
            faults += isinstance(problem, Fault)
            if problem is None:
                done |= operators
            if isinstance(problem, Fault) or verbose:
                print("%s (%s): %s" % (case.name, form, problem or "passed"), flush=True)
    print("%d node tests: %d forms give the outputs, %d are refused, %d are wrong"
          % (len(cases), passed, refused, faults))
    missing = set() if names else EXPECTED - done
    if missing:
        print("no test passes of: " + " ".join(sorted(missing)))
    sys.exit(1 if faults or missing else 0)


if __name__ == "__main__":
    main()
