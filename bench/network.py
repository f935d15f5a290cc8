"""A network of the benchmark: layers with their shapes, and what they cost.

SPDX-License-Identifier: BSD-2-Clause
"""

import math
from dataclasses import dataclass, field


@dataclass
class Layer:
    """A layer in Caffe's terms; `set` holds its parameters by their names in the definition."""

    type: str
    name: str
    bottoms: list
    top: str
    set: dict = field(default_factory=dict)
    train_only: bool = False
    shape_in: tuple = ()  # of one sample of the first bottom
    shape_out: tuple = ()


class Network:
    """Layers are added by the methods below; each returns the name of its top."""

    def __init__(self, name, batch, shape, classes=10, group=0, micro_batch=0, dense_labels=False):
        self.name, self.batch, self.shape, self.classes = name, batch, tuple(shape), classes
        self.group = group  # samples that batch statistics are of; 0: the whole batch
        self.micro_batch = micro_batch  # 0: Lockstep's rule
        self.dense_labels = dense_labels  # a label for each position
        self.inputs = ["data"]
        self.layers = []
        self.shapes = {"data": self.shape}
        self.outputs = []  # (scores, weight of the loss), the main one last

    def add(self, type, name, bottoms, shape_out, top=None, train_only=False, **set):
        top = top or name
        layer = Layer(type, name, list(bottoms), top, set, train_only)
        layer.shape_in, layer.shape_out = self.shapes[bottoms[0]], tuple(shape_out)
        self.layers.append(layer)
        self.shapes[top] = layer.shape_out
        return top

    # ---- Layers that compute

    def convolution(self, name, x, outputs, kernel, stride=1, pad=0, groups=1, bias=True, **more):
        extents = [(i + 2 * pad - kernel) // stride + 1 for i in self.shapes[x][1:]]
        return self.add("Convolution", name, [x], [outputs] + extents, num_output=outputs,
                        kernel_size=kernel, stride=stride, pad=pad, group=groups, bias_term=bias,
                        **more)

    def deconvolution(self, name, x, outputs, kernel, stride):
        extents = [(i - 1) * stride + kernel for i in self.shapes[x][1:]]
        return self.add("Deconvolution", name, [x], [outputs] + extents, num_output=outputs,
                        kernel_size=kernel, stride=stride, pad=0, group=1, bias_term=True)

    def inner_product(self, name, x, outputs, **more):
        return self.add("InnerProduct", name, [x], [outputs], num_output=outputs, bias_term=True,
                        **more)

    def lstm(self, name, x, outputs):
        """The last state of cells that see the rows of a picture as steps, one after the other."""
        return self.add("LSTM", name, [x], [outputs], num_output=outputs)

    # ---- Layers between them

    def relu(self, x):
        return self.add("ReLU", x + "/relu", [x], self.shapes[x], top=x)

    def dropout(self, x, ratio, **more):
        return self.add("Dropout", x + "/dropout", [x], self.shapes[x], top=x,
                        dropout_ratio=ratio, **more)

    def pooling(self, name, x, method, kernel, stride=1, pad=0, **more):
        def extent(i):  # windows may hang over the end, but not begin behind it
            out = math.ceil((i + 2 * pad - kernel) / stride) + 1
            return out - 1 if pad > 0 and (out - 1) * stride >= i + pad else out

        extents = [extent(i) for i in self.shapes[x][1:]]
        return self.add("Pooling", name, [x], [self.shapes[x][0]] + extents, pool=method,
                        kernel_size=kernel, stride=stride, pad=pad, **more)

    def global_pooling(self, name, x):
        return self.add("Pooling", name, [x], [self.shapes[x][0], 1, 1], pool="AVE",
                        global_pooling=True)

    def lrn(self, name, x, size, alpha, region="ACROSS_CHANNELS"):
        return self.add("LRN", name, [x], self.shapes[x], local_size=size, alpha=alpha, beta=0.75,
                        norm_region=region)

    def batch_norm(self, x):
        """Batch norm with scale and bias, in place."""
        more = {"group": self.group} if self.group else {}
        self.add("BatchNorm", x + "/bn", [x], self.shapes[x], top=x, moving_average_fraction=0.9,
                 **more)
        return self.add("Scale", x + "/scale", [x], self.shapes[x], top=x, bias_term=True)

    def concat(self, name, *xs):
        channels = sum(self.shapes[x][0] for x in xs)
        return self.add("Concat", name, xs, [channels, *self.shapes[xs[0]][1:]])

    def sum(self, name, a, b):
        return self.add("Eltwise", name, [a, b], self.shapes[a])

    def output(self, x, weight=1.0):
        """Scores of the classes, which a softmax with log loss compares with the labels."""
        self.outputs.append((x, weight))

    # ---- Cost

    def macs(self, layer):
        """Multiply-adds of one sample in a layer's forward pass."""
        if layer.type == "InnerProduct":
            return math.prod(layer.shape_in) * layer.set["num_output"]
        if layer.type == "LSTM":
            _, steps, inputs = layer.shape_in
            return steps * (inputs + layer.set["num_output"]) * 4 * layer.set["num_output"]
        window = layer.set.get("kernel_size", 0) ** (len(layer.shape_out) - 1)
        if layer.type == "Convolution":
            return math.prod(layer.shape_out) * window * layer.shape_in[0] // layer.set["group"]
        if layer.type == "Deconvolution":
            return math.prod(layer.shape_in) * window * layer.shape_out[0]
        return 0

    def flops(self, mode):
        """Operations of one sample: 2 a multiply-add, nothing for what is not a product. Training
        is a forward pass and the gradients of weights and data, but not of the input."""
        total = 0
        for layer in self.layers:
            macs = self.macs(layer)
            if mode == "train":
                total += 2 * macs * (2 if "data" in layer.bottoms else 3)
                if layer.type == "LSTM":  # its state has a gradient in any case
                    total += 2 * layer.shape_in[1] * 4 * layer.set["num_output"] ** 2
            elif not layer.train_only:
                total += 2 * macs
        return total
