"""Data from the program's memory, and forward passes. Without NumPy numbers are Tensors.
SPDX-License-Identifier: BSD-2-Clause"""
import random
import threading
import unittest

import lockstep
from lockstep.arrays import to_tensor
from support import Case, sha256

try:
    import numpy
except ImportError:
    numpy = None

LAYERS = """
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "relu" }
layer { name: "ip" type: "InnerProduct" bottom: "relu" top: "ip"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy"
  include { phase: TEST } }
"""
MEMORY = """
layer {{ name: "data" type: "MemoryData" top: "data" top: "label" include {{ phase: {phase} }}
  memory_data_param {{ batch_size: 10 channels: 1 height: 6 width: 6 }} }}
"""
SOLVER = """
net: "memory.prototxt" base_lr: 0.05 lr_policy: "fixed" max_iter: 40 test_interval: 20
snapshot_prefix: "memory"
"""


def make(count):
    """Pictures of three kinds of brightness, and which."""
    generator = random.Random(1)
    labels = [generator.randrange(3) for _ in range(count)]
    pictures = [[[[generator.gauss(label, 1) for _ in range(6)] for _ in range(6)]]
                for label in labels]
    return to_tensor(pictures), to_tensor(labels)


class Pairs:
    """Items as those of PyTorch's datasets."""

    def __len__(self):
        return 3

    def __getitem__(self, index):
        return [float(index)] * 4, index


class Records:
    """Brings records one by one."""

    def __init__(self, values, bad=-1):
        self.values, self.bad = to_tensor(values).tolist(), bad
        self.threads = set()

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        self.threads.add(threading.get_ident())
        if index == self.bad:
            raise OverflowError("of record %d" % index)
        return self.values[index]


class Memory(Case):
    def setUp(self):
        super().setUp()
        self.write("memory.prototxt",
                   MEMORY.format(phase="TRAIN") + MEMORY.format(phase="TEST") + LAYERS)
        self.write("solver.prototxt", SOLVER)
        self.data, self.label = make(120)
        self.test = dict(zip(("data", "label"), make(50)))

    def given(self, **changes):
        return {"data": dict({"data": self.data, "label": self.label}, **changes),
                "test_data": self.test, "overwrite": True}

    def test_memory_data(self):
        first = lockstep.train("solver.prototxt", workers=1, **self.given())
        self.assertGreater(first["accuracy"], 0.5)
        self.assertEqual(first.tests[0]["accuracy"].values[0], first["accuracy"])
        digest = sha256(first.snapshot)
        records = Records(self.data)
        again = lockstep.train("solver.prototxt", workers=3, **self.given(data=records))
        self.assertTrue(records.threads)
        self.assertEqual(sha256(again.snapshot), digest)

    def test_records_that_fail(self):
        with self.assertRaises(OverflowError) as caught:
            lockstep.train("solver.prototxt", **self.given(data=Records(self.data, bad=77)))
        self.assertIsInstance(caught.exception.__cause__, lockstep.DataError)

    def test_what_cannot_be(self):
        for kind, changes in ((lockstep.UsageError, {"other": self.label}),
                              (lockstep.DefinitionError, {"data": self.label}),
                              (lockstep.DataError, {"label": make(50)[1]})):
            with self.assertRaises(kind):
                lockstep.Trainer("solver.prototxt", **self.given(**changes))
        with self.assertRaises(lockstep.UsageError):
            lockstep.Trainer("solver.prototxt", data={"data": self.data}, test_data=self.test)
        with self.assertRaisesRegex(lockstep.DefinitionError, "test_data"):
            lockstep.Trainer("solver.prototxt", data={"data": self.data, "label": self.label})
        with self.assertRaises(TypeError):
            lockstep.Trainer(lockstep.Solver("solver.prototxt", data={
                "data": self.data, "label": self.label}, test_data=self.test), data={})

    def test_labels_that_are_no_whole_numbers(self):
        half = to_tensor([0.5] * 120)
        with self.assertRaisesRegex(lockstep.DataError, "label 0.5 .*classes are whole numbers"):
            lockstep.train("solver.prototxt", **self.given(label=half))

    def test_items_of_several_parts(self):
        for data in (Pairs(), iter([Pairs()[0]]), {"data": Pairs(), "label": self.label}):
            with self.assertRaisesRegex(TypeError, "for x, y in loader"):
                lockstep.Trainer("solver.prototxt", data=data, test_data=self.test)

    @unittest.skipIf(numpy is None, "NumPy is not installed")
    def test_generators_and_types(self):
        data, label = numpy.asarray(self.data), numpy.asarray(self.label).astype("u1")
        first = lockstep.train("solver.prototxt", **self.given(data=data, label=label))
        digest = sha256(first.snapshot)
        given = self.given()
        given["data"] = ({"data": data[i:i + 7], "label": label[i:i + 7]}
                         for i in range(0, len(data), 7))
        self.assertEqual(sha256(lockstep.train("solver.prototxt", **given).snapshot), digest)
        double = lockstep.train("solver.prototxt",
                                **self.given(data=data.astype("f8"), label=label))
        self.assertEqual(sha256(double.snapshot), digest)
        with self.assertRaises(TypeError):
            lockstep.Solver("solver.prototxt", data={"data": data.astype("c8"), "label": label})
        with self.assertRaises(ValueError):
            lockstep.Solver("solver.prototxt", data=iter([]))

    @unittest.skipIf(numpy is None, "NumPy is not installed")
    def test_arrays_are_the_files_of_the_command_line(self):
        """Arrays in place of .npy files: the same bytes, with the definition as it is."""
        data = ('layer {{ name: "data" type: "Data" top: "data" top: "label" '
                'include {{ phase: {0} }} data_param {{ backend: NPY source: "{0}_x.npy" '
                'source: "{0}_y.npy" batch_size: 10 shuffle: true }} }}\n')
        self.write("memory.prototxt", data.format("TRAIN") + data.format("TEST") + LAYERS)
        arrays = {"TRAIN_x.npy": numpy.asarray(self.data),
                  "TRAIN_y.npy": numpy.asarray(self.label).astype("i8"),
                  "TEST_x.npy": numpy.asarray(self.test["data"]),
                  "TEST_y.npy": numpy.asarray(self.test["label"])}
        ours = lockstep.train("solver.prototxt", workers=3, arrays=arrays)
        for name, values in arrays.items():
            numpy.save(name, values)
        self.program("train", "--solver", "solver.prototxt", "--snapshot-prefix", "program",
                     "--workers", "1")
        self.assertEqual(sha256(ours.snapshot), sha256("program_iter_40.safetensors"))
        with self.assertRaises(lockstep.UsageError):
            lockstep.Trainer("solver.prototxt", arrays=dict(arrays, other=arrays["TEST_y.npy"]))


class Forward(Case):
    def setUp(self):
        super().setUp()
        self.write("memory.prototxt", MEMORY.format(phase="TRAIN") + MEMORY.format(phase="TEST")
                   + LAYERS)
        self.write("solver.prototxt", SOLVER)
        self.write("deploy.prototxt", 'layer { name: "data" type: "Input" top: "data" '
                   'input_param { shape { dim: 1 dim: 1 dim: 6 dim: 6 } } }'
                   + LAYERS[:LAYERS.index('layer { name: "loss"')]
                   + 'layer { name: "prob" type: "Softmax" bottom: "ip" top: "prob" }')
        self.data, self.label = make(60)
        given = {"data": self.data, "label": self.label}
        self.weights = lockstep.train("solver.prototxt", data=given, test_data=given).snapshot

    def test_forward(self):
        net = lockstep.Net("deploy.prototxt", self.weights, workers=2)
        self.assertEqual(net.inputs, [lockstep.Blob("data", (1, 1, 6, 6), 0)])
        self.assertEqual(net.output, lockstep.Blob("prob", (1, 3), 0))
        blobs = net.forward({"data": self.data}, ["conv", "relu", "ip", "prob"])
        shapes = {name: tuple(values.shape) for name, values in blobs.items()}
        self.assertEqual(shapes, {"conv": (60, 4, 4, 4), "relu": (60, 4, 4, 4), "ip": (60, 3),
                                  "prob": (60, 3)})
        before, after = blobs["conv"].tolist(), blobs["relu"].tolist()
        self.assertEqual(after[7][1][2][3], max(0, before[7][1][2][3]))
        self.assertTrue(any(v < 0 for v in before[0][0][0] + before[1][0][0] + before[2][0][0]))
        rows = blobs["prob"].tolist()
        for row in rows:
            self.assertAlmostEqual(sum(row), 1, places=5)
        right = sum(row.index(max(row)) == label
                    for row, label in zip(rows, self.label.tolist()))
        self.assertGreater(right, 30)
        self.assertEqual(net.predict(self.data).tolist(), rows)
        trained = lockstep.Net("memory.prototxt", self.weights)  # its label is not needed
        self.assertEqual(trained.predict(self.data).tolist(), rows)

    def test_parameters(self):
        net = lockstep.Net("deploy.prototxt", self.weights)
        before = net.forward({"data": self.data}, ["ip", "prob"])["ip"].tolist()
        bias = net.parameters["ip.bias"].tolist()
        net.parameters["ip.bias"] = [value + 1 for value in bias]
        after = net.forward({"data": self.data}, ["ip"])["ip"].tolist()
        self.assertAlmostEqual(after[0][0], before[0][0] + 1, places=5)
        net.save("changed.safetensors")
        again = lockstep.Net("deploy.prototxt", "changed.safetensors")
        self.assertEqual(again.forward({"data": self.data}, ["ip"])["ip"].tolist(), after)
        self.assertEqual(net.parameters.shape("conv.weight"), (4, 1, 3, 3))

    def test_what_cannot_be(self):
        net = lockstep.Net("deploy.prototxt", self.weights)
        for bad in ({}, {"none": self.data}):
            with self.assertRaises(KeyError):
                net.forward(bad)
        with self.assertRaises(ValueError):
            net.forward({"data": self.label})
        with self.assertRaises(lockstep.UsageError):
            net.forward({"data": self.data}, ["none"])
        with self.assertRaises(lockstep.WeightsError):
            lockstep.Net("deploy.prototxt", "none.safetensors")
        net.close()
        with self.assertRaises(ValueError):
            net.predict(self.data)


class OwnData(Case):
    def test_the_figures_of_the_trainer(self):
        result = lockstep.train("solver.prototxt", set={"test_iter": 10})
        with lockstep.Net("net.prototxt", result.snapshot) as net:
            tested = net.test()
            self.assertEqual(tested.samples, 200)
            self.assertEqual(tested["accuracy"], result["accuracy"])
            self.assertEqual(net.parameters.shape("ip.bias"), (10,))


if __name__ == "__main__":
    unittest.main()
