"""Layers whose tops depend on several samples of a batch, and learnable tops, in PyTorch.

The bins of regions are those of Fast R-CNN's roi_pooling_layer and R-FCN's psroi_pooling_layer,
computed in fp32 as they compute them. Numbers of rows, pictures and positions are whole, so that noise
on them (make.py) is rounded away.
SPDX-License-Identifier: BSD-2-Clause
"""

import numpy as np
import torch

F32 = np.float32


def rounded(number):
    """To the nearest integer, halves away from zero."""
    return np.copysign(np.floor(np.abs(F32(number)) + F32(0.5)), F32(number))


def clipped(low, high, size):
    return min(max(int(low), 0), size), min(max(int(high), 0), size)


def max_bin(first, last, scale, bins, i, size):
    """Positions [begin, end) of bin i along an axis, for ROIPooling."""
    begin, end = int(rounded(F32(first) * F32(scale))), int(rounded(F32(last) * F32(scale)))
    step = F32(max(end - begin + 1, 1)) / F32(bins)
    low, high = np.floor(F32(i) * step), np.ceil(F32(i + 1) * step)
    return clipped(begin + int(low), begin + int(high), size)


def average_bin(first, last, scale, bins, i, size):
    """The same for PSROIPooling."""
    begin = rounded(first) * F32(scale)
    end = (rounded(last) + F32(1)) * F32(scale)
    step = max(end - begin, F32(0.1)) / F32(bins)
    return clipped(np.floor(F32(i) * step + begin), np.ceil(F32(i + 1) * step + begin), size)


def pooled(x, regions, bins, channels, scale, edges, value):
    """value(part, picture, i, j) of each bin, whose part of a picture is [:, height, width]."""
    rows = []
    for region in regions.detach().round().reshape(-1, 5).tolist():
        picture = x[int(region[0])]
        cells = []
        for i in range(bins[0]):
            top, bottom = edges(region[2], region[4], scale, bins[0], i, picture.shape[1])
            for j in range(bins[1]):
                left, right = edges(region[1], region[3], scale, bins[1], j, picture.shape[2])
                part = picture[:, top:bottom, left:right]
                empty = part.shape[1] == 0 or part.shape[2] == 0
                cells.append(x.new_zeros(channels) if empty else value(part.flatten(1), i, j))
        rows.append(torch.stack(cells, 1).reshape(channels, *bins))
    return torch.stack(rows)


def roi_pooling(layer, x, parameters, net):
    p = layer.sub("roi_pooling_param")
    bins = p.get("pooled_h"), p.get("pooled_w")
    value = lambda part, i, j: part.max(1).values
    channels = x[0].shape[1]
    return [pooled(x[0], x[1], bins, channels, p.get("spatial_scale", 1.0), max_bin, value)]


def ps_roi_pooling(layer, x, parameters, net):
    p = layer.sub("psroi_pooling_param")
    group, channels = p.get("group_size"), p.get("output_dim")

    def value(part, i, j):
        return part.mean(1).reshape(channels, group, group)[:, i, j]

    scale = p.get("spatial_scale")
    return [pooled(x[0], x[1], (group, group), channels, scale, average_bin, value)]


def box_annotator_ohem(layer, x, parameters, net):
    """Picture by picture; Python's sort keeps the order of equal losses."""
    p = layer.sub("box_annotator_ohem_param")
    pictures = x[0][:, 0].detach().round().long().reshape(-1).tolist()
    losses = x[1].detach().reshape(-1).tolist()
    labels = torch.full_like(x[2], p.get("ignore_label", -1))
    weights = torch.zeros_like(x[3])
    for picture in set(pictures):
        mine = [i for i, number in enumerate(pictures) if number == picture]
        for i in sorted(mine, key=lambda i: -losses[i])[: p.get("roi_per_img")]:
            labels[i], weights[i] = x[2][i], x[3][i]
    return [labels, weights]


def batch_reindex(layer, x, parameters, net):
    return [x[0][x[1].round().long()]]


def filtered(layer, x, parameters, net):
    """Rows whose selector is not 0, as Caffe's tops have them."""
    chosen = x[-1].reshape(-1).round() != 0
    return [one[chosen] for one in x[:-1]]


def parameter(layer, x, parameters, net):
    return [parameters[0]]


TYPES = {
    "BatchReindex": batch_reindex,
    "BoxAnnotatorOHEM": box_annotator_ohem,
    "Filter": filtered,
    "PSROIPooling": ps_roi_pooling,
    "Parameter": parameter,
    "ROIPooling": roi_pooling,
}
