"""Training from files: the files, Lockstep's input from them, and the peer's.

Both sides read the same files and do the same to each picture. The files are noise in MNIST's and in
CIFAR-10's formats.

SPDX-License-Identifier: BSD-2-Clause
"""

import os
import random

# What happens to the pictures of each network.
TRANSFORM = {
    "lenet": {"scale": 1 / 256},
    "cifar10_quick": {"mean": 120.0, "scale": 1.0},
    "resnet20": {"mean": 120.0, "scale": 0.016, "pad": 4},  # and a random crop and flip
}
RECORDS = 20000


def names(network):
    """Files of pictures and labels; CIFAR-10's hold both."""
    return ("images", "labels") if network.shape[0] == 1 else ("pictures.bin",)


def write(network, folder):
    os.makedirs(folder, exist_ok=True)
    paths = [os.path.join(folder, name) for name in names(network)]
    if all(os.path.exists(path) for path in paths):
        return
    noise = random.Random(1)
    labels = bytes(noise.randrange(10) for _ in range(RECORDS))
    size = network.shape[0] * network.shape[1] * network.shape[2]
    if len(paths) == 1:
        with open(paths[0], "wb") as file:
            for label in labels:
                file.write(bytes([label]) + noise.randbytes(size))
        return
    for path, extents, data in ((paths[0], (RECORDS, 28, 28), None), (paths[1], (RECORDS,), labels)):
        with open(path, "wb") as file:
            file.write(bytes([0, 0, 8, len(extents)]))
            for extent in extents:
                file.write(extent.to_bytes(4, "big"))
            file.write(data if data is not None else noise.randbytes(RECORDS * size))


def input_text(network, folder):
    """The data layer of Lockstep's definition."""
    how = TRANSFORM[network.name]
    transform = f"scale: {how['scale']}"
    if "mean" in how:
        transform += f" mean_value: {how['mean']}"
    if "pad" in how:
        transform += f" pad: {how['pad']} crop_size: {network.shape[1]} mirror: true"
    paths = [os.path.join(folder, name) for name in names(network)]
    source = f'backend: CIFAR source: "{paths[0]}"'
    if len(paths) == 2:
        source = f'backend: IDX source: "{paths[0]}" label_source: "{paths[1]}"'
    return (f'layer {{\n  name: "data" type: "Data" top: "data" top: "label"\n'
            f'  transform_param {{ {transform} }}\n'
            f'  data_param {{ {source} batch_size: {network.batch} shuffle: true }}\n}}\n')


class Reader:
    """The peer's batches: whole batches are cut, cropped and flipped at once from bytes in memory,
    without a process between, which is the fastest way for pictures as small as these."""

    def __init__(self, network, batch, folder, rank, ranks):
        import numpy
        import torch
        self.torch, self.network, self.batch = torch, network, batch
        self.how = TRANSFORM[network.name]
        paths = [os.path.join(folder, name) for name in names(network)]
        bytes = [torch.from_numpy(numpy.fromfile(path, dtype=numpy.uint8)) for path in paths]
        if len(paths) == 1:
            records = bytes[0].view(RECORDS, -1)
            self.labels, self.data = records[:, 0].long(), records[:, 1:]
        else:
            self.data, self.labels = bytes[0][16:], bytes[1][8:].long()
        self.data = self.data.reshape(RECORDS, *network.shape)
        self.rank, self.ranks = rank, ranks
        self.order, self.at = None, RECORDS

    def indices(self):
        """The next records of a permutation that is drawn anew every epoch."""
        if self.at + self.batch > RECORDS // self.ranks:
            self.order, self.at = self.torch.randperm(RECORDS)[self.rank::self.ranks], 0
        self.at += self.batch
        return self.order[self.at - self.batch:self.at]

    def crop(self, data, pad):
        """Each picture padded, cut at a random place, and half of them mirrored."""
        torch, side = self.torch, self.network.shape[1]
        data = torch.nn.functional.pad(data, (pad, pad, pad, pad))
        n = data.shape[0]
        y = torch.randint(0, 2 * pad + 1, (n, 1)) + torch.arange(side)
        x = torch.randint(0, 2 * pad + 1, (n, 1)) + torch.arange(side)
        x = torch.where(torch.rand(n, 1) < 0.5, x, x.flip(1))
        return data[torch.arange(n)[:, None, None], :, y[:, :, None], x[:, None, :]].permute(
            0, 3, 1, 2)

    def next(self):
        index = self.indices()
        data = self.data[index]
        if "pad" in self.how:
            data = self.crop(data, self.how["pad"])
        data = data.float()
        if "mean" in self.how:
            data = data - self.how["mean"]
        return data * self.how["scale"], self.labels[index]
