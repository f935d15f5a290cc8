"""Blobs of an update and their gradients, against NumPy.
SPDX-License-Identifier: BSD-2-Clause"""
import unittest

import lockstep
from support import NET, Case, sha256

try:
    import numpy
    from lockstep import caffe
except ImportError:
    numpy = None


@unittest.skipIf(numpy is None, "needs NumPy")
class Blobs(Case):
    def check(self, trainer, samples):
        """The last layer and the loss, computed from what lies before them."""
        conv = trainer.blobs["conv"].reshape(samples, -1).astype(float)
        ip, labels = trainer.blobs["ip"], trainer.blobs["label"].astype(int)
        weight = trainer.parameters["ip.weight"]
        self.assertLess(abs(conv @ weight.T + trainer.parameters["ip.bias"] - ip).max(), 1e-5)
        shares = numpy.exp(ip - ip.max(1, keepdims=True))
        shares /= shares.sum(1, keepdims=True)
        picked = shares[numpy.arange(samples), labels]
        self.assertAlmostEqual(float(trainer.blobs["loss"]), -numpy.log(picked).mean(), 5)
        shares[numpy.arange(samples), labels] -= 1
        slope = trainer.blob_gradients["ip"]
        self.assertLess(abs(slope - shares / samples).max(), 1e-7)
        self.assertLess(abs(slope.T @ conv - trainer.gradients["ip.weight"]).max(), 1e-6)
        below = (slope @ weight).reshape(samples, 4, 12, 12)
        self.assertLess(abs(below - trainer.blob_gradients["conv"]).max(), 1e-7)

    def test_against_numpy(self):
        for workers, size in ((1, 1), (3, 2)):
            with lockstep.Trainer("solver.prototxt", blobs=True, workers=workers,
                                  set={"iter_size": size}) as trainer:
                self.assertEqual(list(trainer.blobs), ["data", "label", "conv", "ip", "loss"])
                self.assertEqual(list(trainer.blob_gradients), ["conv", "ip"])
                with self.assertRaises(lockstep.UsageError):
                    trainer.blobs["ip"]  # nothing was computed
                loss = trainer.compute_gradients()
                self.assertAlmostEqual(loss, float(trainer.blobs["loss"]), 6)
                self.check(trainer, 20 * size)

    def test_nothing_depends_on_it(self):
        with lockstep.Trainer("solver.prototxt", workers=2) as plain:
            plain.step(4)
            wanted = plain.hash()
            plain.snapshot("plain.safetensors")
            with self.assertRaises(KeyError):
                plain.blobs["ip"]
            with self.assertRaises(lockstep.UsageError):
                lockstep.Trainer("solver.prototxt", data_gradients=True)
            with self.assertRaises(lockstep.UsageError):
                lockstep.Trainer("solver.prototxt", blobs=True, memory=1 << 30)
        with lockstep.Trainer("solver.prototxt", blobs=True, data_gradients=True) as trainer:
            first = None
            for _ in range(4):
                before = trainer.compute_gradients()
                gradient = trainer.gradients["conv.weight"]
                self.assertEqual(trainer.step(1), before)  # of the same data
                self.assertTrue((gradient == trainer.gradients["conv.weight"]).all())
                first = first if first is not None else trainer.blobs["data"]
            self.assertFalse((first == trainer.blobs["data"]).all())
            self.assertEqual(trainer.hash(), wanted)
            trainer.snapshot("watched.safetensors")
        self.assertEqual(sha256("watched.safetensors"), sha256("plain.safetensors"))

    def test_gradients_of_data(self):
        """Through a net of one layer, and by finite differences through two."""
        self.write("net.prototxt", NET.replace('bottom: "conv" top: "ip"',
                                               'bottom: "data" top: "ip"'))
        with lockstep.Trainer("solver.prototxt", blobs=True, data_gradients=True) as trainer:
            trainer.compute_gradients()
            slope = trainer.blob_gradients["ip"] @ trainer.parameters["ip.weight"]
            self.assertLess(abs(trainer.blob_gradients["data"].reshape(20, -1) - slope).max(), 1e-7)
        random = numpy.random.default_rng(2)
        x, y = random.random((20, 1, 28, 28), numpy.float32), random.integers(0, 10, 20)
        layer = NET[NET.index("layer {"):NET.index('layer { name: "conv"')]
        self.write("net.prototxt", NET.replace(layer, 'layer { name: "data" type: "MemoryData" '
                   'top: "data" top: "label" memory_data_param { batch_size: 20 channels: 1 '
                   "height: 28 width: 28 } }\n"))

        def look(values):
            with lockstep.Trainer("solver.prototxt", data={"data": values, "label": y},
                                  test_data={"data": values, "label": y}, blobs=True,
                                  data_gradients=True) as trainer:
                loss = trainer.compute_gradients()
                return loss, trainer.blob_gradients["data"]

        slope = look(x)[1]
        way = numpy.sign(slope) * numpy.float32(0.002)
        change = look(x + way)[0] - look(x - way)[0]
        self.assertAlmostEqual(change / (2 * (way * slope).sum()), 1, 2)

    def test_caffe(self):
        solver = caffe.SGDSolver("solver.prototxt")
        figures = solver.net.forward()
        solver.net.backward()
        self.assertEqual(list(figures), ["loss"])
        self.assertEqual(list(solver.net.blobs), ["data", "label", "conv", "ip", "loss"])
        ip = solver.net.blobs["ip"]
        self.assertEqual((ip.shape, ip.data.shape, ip.diff.shape), ((20, 10),) * 3)
        self.assertEqual(solver.net.params["ip"][0].diff.shape, (10, 576))
        self.check(solver.trainer, 20)
        with self.assertRaises(AttributeError):
            solver.net.blobs["data"].diff
        self.assertEqual(float(figures["loss"]), numpy.float32(solver.step(1)))
        solver.net.params["ip"][0].data[...] = 0
        solver.net.params["ip"][1].data[...] = 0
        self.assertAlmostEqual(float(solver.net.forward()["loss"]), numpy.log(10), 5)

    def test_sharing(self):
        solver = caffe.SGDSolver("solver.prototxt")
        self.write("deploy.prototxt", NET.split("layer {", 2)[0] + 'layer { name: "data" type: '
                   '"Input" top: "data" input_param { shape { dim: 2 dim: 1 dim: 28 dim: 28 } } }'
                   + "layer {" + "layer {".join(NET.split("layer {")[2:5]))
        net = caffe.Net("deploy.prototxt", caffe.TEST)
        net.share_with(solver.net)
        x = numpy.random.default_rng(1).random((2, 1, 28, 28), numpy.float32)
        first = net.forward(data=x)["ip"].copy()
        solver.step(3)
        second = net.forward(data=x)["ip"].copy()
        self.assertFalse((first == second).all())
        solver.trainer.snapshot("three.safetensors")
        same = lockstep.Net("deploy.prototxt", "three.safetensors").forward({"data": x})["ip"]
        self.assertTrue((second == same).all())


if __name__ == "__main__":
    unittest.main()
