"""The benchmark's networks, each written once.

A network is a list of layers with their shapes. From it come Lockstep's definition (definitions.py
writes bench/nets/*.prototxt), the peer's model (peer/model.py) and the cost of a sample, so that
both sides train the same network and are measured by the same ruler.

SPDX-License-Identifier: BSD-2-Clause
"""

import copy

import sequences
from network import Network

# ---- Small pictures ----------------------------------------------------------------------------


def lenet():
    """LeNet as Caffe's MNIST example has it."""
    n = Network("lenet", 64, (1, 28, 28))
    x = n.pooling("pool1", n.convolution("conv1", "data", 20, 5), "MAX", 2, 2)
    x = n.pooling("pool2", n.convolution("conv2", x, 50, 5), "MAX", 2, 2)
    x = n.relu(n.inner_product("ip1", x, 500))
    n.output(n.inner_product("ip2", x, 10))
    return n


def cifar10_quick(batch=100):
    """Caffe's quick network for CIFAR-10."""
    n = Network("cifar10_quick", batch, (3, 32, 32))
    x = n.relu(n.pooling("pool1", n.convolution("conv1", "data", 32, 5, pad=2), "MAX", 3, 2))
    x = n.relu(n.convolution("conv2", x, 32, 5, pad=2))
    x = n.pooling("pool2", x, "AVE", 3, 2)
    x = n.relu(n.convolution("conv3", x, 64, 5, pad=2))
    x = n.pooling("pool3", x, "AVE", 3, 2)
    n.output(n.inner_product("ip2", n.inner_product("ip1", x, 64), 10))
    return n


def cifar10_full():
    """Caffe's full network for CIFAR-10, with normalisation within channels."""
    n = Network("cifar10_full", 100, (3, 32, 32))
    x = n.relu(n.pooling("pool1", n.convolution("conv1", "data", 32, 5, pad=2), "MAX", 3, 2))
    x = n.lrn("norm1", x, 3, 5e-5, "WITHIN_CHANNEL")
    x = n.relu(n.convolution("conv2", x, 32, 5, pad=2))
    x = n.lrn("norm2", n.pooling("pool2", x, "AVE", 3, 2), 3, 5e-5, "WITHIN_CHANNEL")
    x = n.relu(n.convolution("conv3", x, 64, 5, pad=2))
    x = n.pooling("pool3", x, "AVE", 3, 2)
    n.output(n.inner_product("ip1", x, 10))
    return n


def tf_cifar10():
    """The network of TensorFlow's CIFAR-10 tutorial, with normalisation over 9 channels."""
    n = Network("tf_cifar10", 128, (3, 24, 24))
    x = n.relu(n.convolution("conv1", "data", 64, 5, pad=2))
    x = n.lrn("norm1", n.pooling("pool1", x, "MAX", 3, 2), 9, 0.001)
    x = n.lrn("norm2", n.relu(n.convolution("conv2", x, 64, 5, pad=2)), 9, 0.001)
    x = n.pooling("pool2", x, "MAX", 3, 2)
    x = n.relu(n.inner_product("local3", x, 384))
    x = n.relu(n.inner_product("local4", x, 192))
    n.output(n.inner_product("softmax_linear", x, 10))
    return n


# ---- Sequences ---------------------------------------------------------------------------------


def lstm():
    """An LSTM of 128 cells over sequences of 100 steps of 64 numbers, classified by the last state."""
    n = Network("lstm", 64, (1, 100, 64))
    n.output(n.inner_product("scores", n.lstm("lstm1", "data", 128), 10))
    return n


# ---- Residual networks -------------------------------------------------------------------------


def convolution_bn(n, name, x, outputs, kernel, stride=1, groups=1):
    x = n.convolution(name, x, outputs, kernel, stride, kernel // 2, groups, bias=False)
    return n.batch_norm(x)


def residual_block(n, name, x, branch, outputs, stride):
    """x plus its branch; x goes through a projection where its shape changes."""
    if stride != 1 or n.shapes[x][0] != outputs:
        x = convolution_bn(n, name + "_proj", x, outputs, 1, stride)
    return n.relu(n.sum(name, x, branch))


def resnet20(group=0):
    """ResNet-20 for CIFAR-10 (He et al. 2016, section 4.2), with projections."""
    n = Network("resnet20_groups" if group else "resnet20", 128, (3, 32, 32), group=group)
    x = n.relu(convolution_bn(n, "conv1", "data", 16, 3))
    for stage, outputs in enumerate((16, 32, 64)):
        for block in range(3):
            name = f"res{stage + 2}{'abc'[block]}"
            stride = 2 if stage > 0 and block == 0 else 1
            y = n.relu(convolution_bn(n, name + "_1", x, outputs, 3, stride))
            y = convolution_bn(n, name + "_2", y, outputs, 3)
            x = residual_block(n, name, x, y, outputs, stride)
    n.output(n.inner_product("fc", n.global_pooling("pool", x), 10))
    return n


def resnet50(group=0):
    """ResNet-50 (He et al. 2016, table 1); the 3 x 3 convolution of a block has its stride."""
    n = Network("resnet50_groups" if group else "resnet50", 16, (3, 224, 224), 1000, group)
    x = n.relu(convolution_bn(n, "conv1", "data", 64, 7, 2))
    x = n.pooling("pool1", x, "MAX", 3, 2)
    for stage, blocks in enumerate((3, 4, 6, 3)):
        inner = 64 << stage
        for block in range(blocks):
            name = f"res{stage + 2}{'abcdef'[block]}"
            stride = 2 if stage > 0 and block == 0 else 1
            y = n.relu(convolution_bn(n, name + "_1", x, inner, 1))
            y = n.relu(convolution_bn(n, name + "_2", y, inner, 3, stride))
            y = convolution_bn(n, name + "_3", y, 4 * inner, 1)
            x = residual_block(n, name, x, y, 4 * inner, stride)
    n.output(n.inner_product("fc", n.global_pooling("pool5", x), 1000))
    return n


# ---- Large pictures ----------------------------------------------------------------------------


def caffenet():
    """Caffe's form of AlexNet."""
    # Two micro-batches for two workers: the weights are read once for each of them.
    n = Network("caffenet", 32, (3, 227, 227), 1000, micro_batch=16)
    x = n.relu(n.convolution("conv1", "data", 96, 11, 4))
    x = n.lrn("norm1", n.pooling("pool1", x, "MAX", 3, 2), 5, 0.0001)
    x = n.relu(n.convolution("conv2", x, 256, 5, pad=2, groups=2))
    x = n.lrn("norm2", n.pooling("pool2", x, "MAX", 3, 2), 5, 0.0001)
    x = n.relu(n.convolution("conv3", x, 384, 3, pad=1))
    x = n.relu(n.convolution("conv4", x, 384, 3, pad=1, groups=2))
    x = n.relu(n.convolution("conv5", x, 256, 3, pad=1, groups=2))
    x = n.pooling("pool5", x, "MAX", 3, 2)
    x = n.dropout(n.relu(n.inner_product("fc6", x, 4096)), 0.5)
    x = n.dropout(n.relu(n.inner_product("fc7", x, 4096)), 0.5)
    n.output(n.inner_product("fc8", x, 1000))
    return n


def vgg16():
    """VGG-16 (Simonyan, Zisserman 2014, configuration D)."""
    n = Network("vgg16", 8, (3, 224, 224), 1000, micro_batch=4)  # as caffenet
    x = "data"
    for stage, (outputs, count) in enumerate(((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))):
        for i in range(count):
            x = n.relu(n.convolution(f"conv{stage + 1}_{i + 1}", x, outputs, 3, pad=1))
        x = n.pooling(f"pool{stage + 1}", x, "MAX", 2, 2)
    x = n.dropout(n.relu(n.inner_product("fc6", x, 4096)), 0.5)
    x = n.dropout(n.relu(n.inner_product("fc7", x, 4096)), 0.5)
    n.output(n.inner_product("fc8", x, 1000))
    return n


def inception(n, name, x, one, reduce3, three, reduce5, five, projection):
    a = n.relu(n.convolution(name + "/1x1", x, one, 1))
    b = n.relu(n.convolution(name + "/3x3_reduce", x, reduce3, 1))
    b = n.relu(n.convolution(name + "/3x3", b, three, 3, pad=1))
    c = n.relu(n.convolution(name + "/5x5_reduce", x, reduce5, 1))
    c = n.relu(n.convolution(name + "/5x5", c, five, 5, pad=2))
    d = n.pooling(name + "/pool", x, "MAX", 3, 1, 1)
    d = n.relu(n.convolution(name + "/pool_proj", d, projection, 1))
    return n.concat(name + "/output", a, b, c, d)


def auxiliary(n, name, x):
    """A classifier half way up, in training only."""
    x = n.pooling(name + "/pool", x, "AVE", 5, 3, train_only=True)
    x = n.convolution(name + "/conv", x, 128, 1, train_only=True)
    x = n.add("ReLU", x + "/relu", [x], n.shapes[x], top=x, train_only=True)
    x = n.inner_product(name + "/fc", x, 1024, train_only=True)
    x = n.add("ReLU", x + "/relu", [x], n.shapes[x], top=x, train_only=True)
    x = n.dropout(x, 0.7, train_only=True)
    n.output(n.inner_product(name + "/classifier", x, 1000, train_only=True), 0.3)


def googlenet():
    """GoogLeNet (Szegedy et al. 2014, table 1), with both auxiliary classifiers."""
    n = Network("googlenet", 16, (3, 224, 224), 1000)
    x = n.relu(n.convolution("conv1", "data", 64, 7, 2, 3))
    x = n.lrn("norm1", n.pooling("pool1", x, "MAX", 3, 2), 5, 0.0001)
    x = n.relu(n.convolution("conv2_reduce", x, 64, 1))
    x = n.lrn("norm2", n.relu(n.convolution("conv2", x, 192, 3, pad=1)), 5, 0.0001)
    x = n.pooling("pool2", x, "MAX", 3, 2)
    x = inception(n, "3a", x, 64, 96, 128, 16, 32, 32)
    x = inception(n, "3b", x, 128, 128, 192, 32, 96, 64)
    x = n.pooling("pool3", x, "MAX", 3, 2)
    x = inception(n, "4a", x, 192, 96, 208, 16, 48, 64)
    auxiliary(n, "aux1", x)
    x = inception(n, "4b", x, 160, 112, 224, 24, 64, 64)
    x = inception(n, "4c", x, 128, 128, 256, 24, 64, 64)
    x = inception(n, "4d", x, 112, 144, 288, 32, 64, 64)
    auxiliary(n, "aux2", x)
    x = inception(n, "4e", x, 256, 160, 320, 32, 128, 128)
    x = n.pooling("pool4", x, "MAX", 3, 2)
    x = inception(n, "5a", x, 256, 160, 320, 32, 128, 128)
    x = inception(n, "5b", x, 384, 192, 384, 48, 128, 128)
    x = n.dropout(n.global_pooling("pool5", x), 0.4)
    n.output(n.inner_product("classifier", x, 1000))
    return n


def mobilenet():
    """MobileNet (Howard et al. 2017, table 1), width 1."""
    n = Network("mobilenet", 16, (3, 224, 224), 1000)
    x = n.relu(convolution_bn(n, "conv1", "data", 32, 3, 2))
    blocks = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)]
    blocks += 5 * [(512, 1)] + [(1024, 2), (1024, 1)]
    for i, (outputs, stride) in enumerate(blocks):
        channels = n.shapes[x][0]
        x = n.relu(convolution_bn(n, f"conv{i + 2}/dw", x, channels, 3, stride, channels))
        x = n.relu(convolution_bn(n, f"conv{i + 2}/pw", x, outputs, 1))
    n.output(n.inner_product("fc", n.global_pooling("pool", x), 1000))
    return n


# ---- Volumes -----------------------------------------------------------------------------------


def unet3d():
    """A small 3-D U-Net (Cicek et al. 2016, without batch norm): three levels, two classes."""
    n = Network("unet3d", 4, (1, 32, 32, 32), 2, dense_labels=True)

    def twice(name, x, outputs):
        x = n.relu(n.convolution(name + "_1", x, outputs, 3, pad=1))
        return n.relu(n.convolution(name + "_2", x, outputs, 3, pad=1))

    top = twice("down1", "data", 16)
    middle = twice("down2", n.pooling("pool1", top, "MAX", 2, 2), 32)
    x = twice("bottom", n.pooling("pool2", middle, "MAX", 2, 2), 64)
    x = n.concat("join2", middle, n.relu(n.deconvolution("rise2", x, 32, 2, 2)))
    x = twice("up2", x, 32)
    x = n.concat("join1", top, n.relu(n.deconvolution("rise1", x, 16, 2, 2)))
    x = twice("up1", x, 16)
    n.output(n.convolution("score", x, 2, 1))
    return n


def resnet20_groups():
    """ResNet-20 for CIFAR-10, batch statistics over groups of 16 samples."""
    return resnet20(16)


def resnet50_groups():
    """ResNet-50, batch statistics over groups of 4 samples."""
    return resnet50(4)


ALL = (lenet, cifar10_quick, cifar10_full, tf_cifar10, resnet20, resnet20_groups, caffenet, vgg16,
       googlenet, resnet50, resnet50_groups, mobilenet, unet3d, lstm, *sequences.ALL)


def by_name(name):
    return next(network for network in (make() for make in ALL) if network.name == name)


def with_batch(network, batch):
    """The same network for another batch, in as many micro-batches where it names their size."""
    other = copy.copy(network)
    other.batch = batch
    if network.micro_batch:
        other.micro_batch = max(1, batch * network.micro_batch // network.batch)
    return other
