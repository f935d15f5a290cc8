"""A net of a definition: its layers for a phase, its data, its parameters, its forward pass.

SPDX-License-Identifier: BSD-2-Clause
"""

import math
import os

import numpy as np
import torch

import forks
import functions
import generator
import language
import layers
import normalization
import pairs
import recurrent
import sequences

LOSSES = {
    "EuclideanLoss",
    "MultiBoxLoss",
    "MultinomialLogisticLoss",
    "SigmoidCrossEntropyLoss",
    "SoftmaxWithLoss",
} | pairs.LOSSES | language.LOSSES


class Parameter:
    def __init__(self, name, shape, spec, fixed):
        self.name = name
        self.shape = shape
        self.rate = 0.0 if fixed else spec.get("lr_mult", 1.0)
        self.decay = spec.get("decay_mult", 1.0)
        self.value = self.start = None  # set by fill


class Source:
    """The records of a Data layer, as arrays of all samples, transformed."""

    def __init__(self, layer, files, dtype):
        p = layer.sub("data_param")
        self.batch = p.get("batch_size")
        if p.get("backend") == "CIFAR":
            records = np.concatenate([files[os.path.basename(s)] for s in p.all("source")])
            labels = records[:, 0]
            pixels = records[:, 1:].reshape(-1, 3, 32, 32)
        else:
            pixels = files[p.get("source")]
            labels = files[p.get("label_source")] if p.has("label_source") else None
            if pixels.ndim == 3:
                pixels = pixels[:, None]
        self.data = torch.tensor(self.transform(layer, pixels.astype(np.float64)), dtype=dtype)
        self.labels = None if labels is None else torch.tensor(labels, dtype=dtype)
        self.count = len(pixels)

    def transform(self, layer, pixels):
        p = layer.sub("transform_param")
        if set(p.fields) - {"scale", "mean_value"}:
            raise ValueError("a transformation that is not here")
        mean = np.array(p.all("mean_value") or [0.0], dtype=np.float32).astype(np.float64)
        return (pixels - mean.reshape(1, -1, 1, 1)) * p.get("scale", 1.0)


class Net:
    def __init__(self, definition, phase, files, gains, dtype=torch.float64, noise=0.0, shared=None):
        self.phase = phase
        self.gains = gains  # factors on the weights of some layers
        self.dtype = dtype
        self.noise = noise  # random error of each layer's tops, against their root mean square
        self.layers = [l for l in definition.all("layer") if self.wanted(l)]
        self.sources = {
            id(l): Source(l, files, dtype) for l in self.layers if l.get("type") == "Data"
        }
        self.parameters = shared if shared is not None else {}
        self.owned = {}  # the parameters of each layer

    def wanted(self, layer):
        rules = layer.all("include")
        return not rules or any(r.get("phase", self.phase) == self.phase for r in rules)

    @property
    def batch(self):
        return next(iter(self.sources.values())).batch

    @property
    def count(self):
        return next(iter(self.sources.values())).count

    # ---- Parameters ---------------------------------------------------------------------------

    def shapes(self, layer, bottoms):
        """Names and shapes of a layer's parameters."""
        kind, x = layer.get("type"), bottoms[0] if bottoms else None
        if kind in recurrent.SHAPES:
            return recurrent.SHAPES[kind](layer, bottoms)
        if kind in normalization.SHAPES:
            return normalization.SHAPES[kind](layer, x)
        if kind == "Parameter":
            shape = layer.sub("parameter_param").sub("shape").all("dim")
            return [("parameter", tuple(shape))]
        if kind in functions.SHAPES:
            return functions.SHAPES[kind](layer, x)
        if kind in pairs.SHAPES:
            return pairs.SHAPES[kind](layer, x)
        if kind in language.SHAPES:
            return language.SHAPES[kind](layer, x)
        if kind in sequences.SHAPES:
            return sequences.SHAPES[kind](layer, x)
        if kind in forks.SHAPES:
            return forks.SHAPES[kind](layer, x)
        if kind in ("Convolution", "ConvolutionDepthwise", "Deconvolution", "DepthwiseConvolution"):
            p = layer.sub("convolution_param")
            axis = p.get("axis", 1) % x.dim()
            pair = [x.shape[axis], p.get("num_output")]
            if kind != "Deconvolution":
                pair.reverse()
            kernel = layers.window(p, "kernel_size", x.dim() - axis - 1)
            group = p.get("group", x.shape[axis] if kind == "ConvolutionDepthwise" else 1)
            shapes = [(pair[0], pair[1] // group) + kernel]
        elif kind == "InnerProduct":
            p = layer.sub("inner_product_param")
            inputs = math.prod(x.shape[p.get("axis", 1) % x.dim() :])
            shapes = [(p.get("num_output"), inputs)]
            if p.get("transpose", False):
                shapes[0] = shapes[0][::-1]
        else:
            return []
        bias = [("bias", (p.get("num_output"),))] if p.get("bias_term", True) else []
        return [("weight", shapes[0])] + bias

    def parameters_of(self, layer, x):
        """The layer's values; made at the first pass, found by name if others share them."""
        found = []
        specs = layer.all("param")
        for i, (name, shape) in enumerate(self.shapes(layer, x)):
            spec = specs[i] if i < len(specs) else type(layer)()
            own = "%s.%s" % (layer.get("name"), name)
            key = spec.get("name", own)
            if key not in self.parameters:
                fixed = normalization.is_fixed(layer, name)
                self.parameters[key] = Parameter(own, shape, spec, fixed)
                self.fill(self.parameters[key], layer)
            found.append(self.parameters[key])
        self.owned[layer.get("name")] = found
        return [parameter.value for parameter in found]

    def fill(self, parameter, layer):
        """Weights up to the largest power of two below xavier's bound, times the gain; factors,
        and variances with what they are divided by, around 1."""
        size = math.prod(parameter.shape)
        kind = parameter.name.split(".")[-1]
        around = 1.0 if kind in ("scale", "variance", "factor") else 0.0
        if kind != "weight":
            scale = 0.5 if around != 0 else 0.125
        else:
            scale = 2.0 ** math.floor(math.log2(math.sqrt(3 / (size // parameter.shape[0]))))
            scale *= self.gains.get(layer.get("name"), 1.0)
        parameter.scale, parameter.around = scale, around
        value = around + generator.weights(parameter.name, size, scale)
        value = value.astype(np.float32).astype(np.float64).reshape(parameter.shape)
        parameter.value = torch.tensor(value, dtype=self.dtype, requires_grad=parameter.rate != 0)
        parameter.start = parameter.value.detach()

    # ---- Passes -------------------------------------------------------------------------------

    def forward(self, positions):
        """Values of all blobs for the samples at these positions."""
        blobs = {}
        for layer in self.layers:
            if layer.get("type") == "Data":
                source = self.sources[id(layer)]
                tops = [source.data[positions]]
                tops += [source.labels[positions]] if source.labels is not None else []
            else:
                x = [blobs[name] for name in layer.all("bottom")]
                values = self.parameters_of(layer, x)
                tops = layers.TYPES[layer.get("type")](layer, x, values, self)
                if self.noise > 0 and layer.get("type") != "Filter":  # labels stay whole
                    tops = [top + self.noise * self.error(top) if top.is_floating_point() else top
                            for top in tops]
            blobs.update(zip(layer.all("top"), tops))
        return blobs

    def error(self, top):
        return top.detach().square().mean().sqrt() * torch.randn_like(top)

    def loss(self, blobs):
        total = 0.0
        for layer in self.layers:
            weights = layer.all("loss_weight")
            if not weights and layer.get("type") in LOSSES:
                weights = [1.0]
            for name, weight in zip(layer.all("top"), weights):
                total = total + weight * blobs[name].sum()
        return total

    def outputs(self, blobs):
        """Tops that no layer reads and that are no data: losses, accuracies."""
        read = {name for l in self.layers for name in l.all("bottom")}
        made = [n for l in self.layers if l.get("type") != "Data" for n in l.all("top")]
        return {n: blobs[n] for n in made if n not in read and blobs[n].dim() < 2}
