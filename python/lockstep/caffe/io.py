"""caffe.io: pictures as nets take them.
SPDX-License-Identifier: BSD-2-Clause"""
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple

import numpy


def load_image(path: Any, color: bool = True) -> Any:
    """A picture as [height, width, 3] (or 1) of 0..1, red first. Reads with Pillow."""
    try:
        from PIL import Image
    except ImportError as missing:
        raise ImportError("load_image reads pictures with Pillow: pip install pillow; or "
                          "lockstep.Net(...).predict_picture(path) reads them itself") from missing
    with Image.open(path) as picture:
        array = numpy.asarray(picture.convert("RGB" if color else "L"), numpy.float32) / 255
    return array if color else array[:, :, None]


def resize_image(picture: Any, size: Sequence[int]) -> Any:
    """[height, width, channels] to another height and width, by linear interpolation."""
    picture = numpy.asarray(picture, numpy.float32)
    places = []
    for old, new in zip(picture.shape, size):
        place = numpy.clip((numpy.arange(new) + 0.5) * old / new - 0.5, 0, old - 1)
        low = place.astype(int)
        places.append((low, numpy.minimum(low + 1, old - 1), (place - low).astype(numpy.float32)))
    (top, bottom, down), (left, right, across) = places
    down, across = down[:, None, None], across[None, :, None]
    upper = picture[top][:, left] * (1 - across) + picture[top][:, right] * across
    lower = picture[bottom][:, left] * (1 - across) + picture[bottom][:, right] * across
    return upper * (1 - down) + lower * down


def oversample(pictures: Any, crop_dims: Sequence[int]) -> Any:
    """Of each picture [height, width, channels] ten parts: corners and middle, and their mirrors."""
    high, wide = int(crop_dims[0]), int(crop_dims[1])
    parts = []
    for picture in pictures:
        height, width = picture.shape[:2]
        below, right = height - high, width - wide
        if below < 0 or right < 0:
            raise ValueError(f"a picture of {height} x {width} has no part of {high} x {wide}")
        places = [(top, left) for top in (0, below) for left in (0, right)]
        crops = [picture[top:top + high, left:left + wide]
                 for top, left in places + [(below // 2, right // 2)]]
        parts += crops + [crop[:, ::-1] for crop in crops]
    return numpy.stack(parts).astype(numpy.float32, copy=False)


def blobproto_to_array(blob: Any, return_diff: bool = False) -> Any:
    """The numbers of a BlobProto (of Caffe's caffe_pb2), with its shape."""
    legacy = [getattr(blob, name, 0) for name in ("num", "channels", "height", "width")]
    shape = legacy if any(legacy) else list(blob.shape.dim)
    return numpy.array(blob.diff if return_diff else blob.data, numpy.float32).reshape(shape)


def datum_to_array(datum: Any) -> Any:
    """The numbers of a Datum (of Caffe's caffe_pb2) [channels, height, width]."""
    shape = (datum.channels, datum.height, datum.width)
    if len(datum.data):
        return numpy.frombuffer(datum.data, numpy.uint8).reshape(shape)
    return numpy.array(datum.float_data, float).reshape(shape)


class Transformer:
    """Brings pictures to the form of a net's inputs: Transformer({"data": net.blobs["data"].shape}).
    The order is Caffe's: size, axes, channels, raw scale, mean, input scale."""

    def __init__(self, inputs: Mapping[str, Sequence[int]]) -> None:
        self.inputs: Dict[str, Tuple[int, ...]] = {n: tuple(s) for n, s in inputs.items()}
        self.transpose: Dict[str, Tuple[int, ...]] = {}
        self.channel_swap: Dict[str, Tuple[int, ...]] = {}
        self.raw_scale: Dict[str, float] = {}
        self.mean: Dict[str, Any] = {}
        self.input_scale: Dict[str, float] = {}

    def _known(self, name: str) -> Tuple[int, ...]:
        if name not in self.inputs:
            raise ValueError(f"'{name}' is no input: {', '.join(self.inputs)}")
        return self.inputs[name]

    def set_transpose(self, name: str, order: Sequence[int]) -> None:
        """(2, 0, 1): channels to the front."""
        if len(order) != len(self._known(name)) - 1:
            raise ValueError("the order has an axis for each of the input's but the first")
        self.transpose[name] = tuple(order)

    def set_channel_swap(self, name: str, order: Sequence[int]) -> None:
        """(2, 1, 0): blue first."""
        if len(order) != self._known(name)[1]:
            raise ValueError("the order has an entry for each channel")
        self.channel_swap[name] = tuple(order)

    def set_raw_scale(self, name: str, scale: float) -> None:
        """A factor before the mean is taken off: 255 for pictures of 0..1."""
        self._known(name)
        self.raw_scale[name] = scale

    def set_mean(self, name: str, mean: Any) -> None:
        """What is taken off: a number for each channel, or a picture of the input's size."""
        shape, mean = self._known(name), numpy.asarray(mean, numpy.float32)
        if mean.ndim == 1:
            if mean.shape[0] != shape[1]:
                raise ValueError("the mean has a number for each channel")
            mean = mean[:, None, None]
        elif mean.shape[-2:] != shape[-2:]:
            raise ValueError(f"the mean has the size {mean.shape[-2:]}, the input {shape[-2:]}")
        self.mean[name] = mean

    def set_input_scale(self, name: str, scale: float) -> None:
        """A factor after the mean was taken off."""
        self._known(name)
        self.input_scale[name] = scale

    def preprocess(self, name: str, picture: Any) -> Any:
        """[height, width, channels] to what the input takes."""
        shape = self._known(name)
        made = numpy.asarray(picture, numpy.float32)
        if made.shape[:2] != shape[2:]:
            made = resize_image(made, shape[2:])
        if name in self.transpose:
            made = made.transpose(self.transpose[name])
        if name in self.channel_swap:
            made = made[list(self.channel_swap[name])]
        made = made * numpy.float32(self.raw_scale.get(name, 1))
        if name in self.mean:
            made = made - self.mean[name]
        return made * numpy.float32(self.input_scale.get(name, 1))

    def deprocess(self, name: str, values: Any) -> Any:
        """The way back, but for the size."""
        self._known(name)
        made = numpy.squeeze(numpy.asarray(values, numpy.float32)).copy()
        if made.ndim == 2:
            made = made[None]
        made = made / numpy.float32(self.input_scale.get(name, 1))
        if name in self.mean:
            made = made + self.mean[name]
        made = made / numpy.float32(self.raw_scale.get(name, 1))
        if name in self.channel_swap:
            made = made[list(numpy.argsort(self.channel_swap[name]))]
        if name in self.transpose:
            made = made.transpose(numpy.argsort(self.transpose[name]))
        return made


def __getattr__(name: str) -> Optional[Any]:
    hint = {"array_to_blobproto": "'lockstep mean' writes mean files; lockstep.Net(..., mean=path) "
                                  "takes one",
            "array_to_datum": "train on arrays: lockstep.Trainer(solver, data={...})"}.get(name)
    raise AttributeError(f"lockstep.caffe.io has no '{name}'" + (f": {hint}" if hint else ""))
