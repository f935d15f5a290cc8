"""Caffe's names: what an old script does.
SPDX-License-Identifier: BSD-2-Clause"""
import os
import unittest

from support import Case

try:
    import numpy
except ImportError:
    raise unittest.SkipTest("NumPy is not installed") from None

from lockstep import caffe

DEPLOY = """
layer { name: "data" type: "Input" top: "data"
  input_param { shape { dim: 2 dim: 1 dim: 28 dim: 28 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 4 kernel_size: 5 stride: 2 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "ip" type: "InnerProduct" bottom: "conv" top: "ip"
  inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
layer { name: "prob" type: "Softmax" bottom: "ip" top: "prob" }
"""


class Scripts(Case):
    def setUp(self):
        super().setUp()
        self.write("deploy.prototxt", DEPLOY)
        caffe.set_mode_cpu()
        caffe.set_mode_gpu()
        caffe.set_device(0)

    def test_training(self):
        solver = caffe.get_solver("solver.prototxt")
        self.assertEqual(solver.iter, 0)
        weights = solver.net.params["ip"][0].data
        before = weights.copy()
        loss = solver.step(5)
        self.assertEqual(float(solver.net.blobs["loss"].data), numpy.float32(loss))
        self.assertFalse((weights == before).all())  # the array shows what was learned
        self.assertEqual(solver.net.params["ip"][1].diff.shape, (10,))
        figures = solver.test_nets[0].forward()
        self.assertEqual(float(solver.test_nets[0].blobs["accuracy"].data),
                         float(figures["accuracy"]))
        weights[...] = 0
        solver.net.params["ip"][1].data[...] = 0
        self.assertAlmostEqual(float(solver.test_nets[0].forward()["loss"]), numpy.log(10), 4)
        solver.snapshot()
        again = caffe.SGDSolver("solver.prototxt")
        again.restore("net_iter_5.safetensors")
        self.assertEqual(again.iter, 5)
        self.assertFalse(again.net.params["ip"][0].data.any())
        again.solve()
        self.assertEqual(again.iter, 30)
        self.assertTrue(os.path.exists("net_iter_30.safetensors"))

    def test_nets(self):
        caffe.SGDSolver("solver.prototxt").solve()
        weights = "net_iter_30.safetensors"
        net = caffe.Net("deploy.prototxt", weights, caffe.TEST)
        self.assertEqual((net.inputs, net.outputs), (["data"], ["prob"]))
        self.assertEqual(list(net.blobs), ["data", "conv", "ip", "prob"])
        self.assertEqual(net._layer_names[0], "data")
        pictures = numpy.random.default_rng(1).random((3, 1, 28, 28), dtype=numpy.float32)
        net.blobs["data"].reshape(3, 1, 28, 28)
        net.blobs["data"].data[...] = pictures
        prob = net.forward()["prob"]
        self.assertEqual(prob.shape, (3, 10))
        scores = net.blobs["ip"].data
        ours = numpy.maximum(net.blobs["conv"].data, 0).reshape(3, -1)
        ours = ours @ net.params["ip"][0].data.T + net.params["ip"][1].data
        numpy.testing.assert_allclose(scores, ours, rtol=1e-4, atol=1e-5)
        self.assertEqual((net.blobs["conv"].num, net.blobs["conv"].channels), (3, 4))
        net.params["ip"][1].data[:] += 1
        numpy.testing.assert_allclose(net.blobs["ip"].data, scores + 1, rtol=1e-4, atol=1e-5)
        net.save("changed.caffemodel")
        other = caffe.Net("deploy.prototxt", caffe.TEST, weights="changed.caffemodel")
        self.assertTrue((other.forward_all(data=pictures)["prob"] == prob).all()
                        or numpy.allclose(other.forward_all(data=pictures)["prob"], prob))
        other.copy_from(weights)
        numpy.testing.assert_array_equal(other.forward(blobs=["ip"])["ip"], scores)

    def test_a_net_without_weights(self):
        net = caffe.Net("deploy.prototxt", caffe.TEST)
        self.assertTrue(net.params["conv"][0].data.any())
        net.forward(data=1)
        self.assertEqual(net.blobs["conv"].data.shape, (2, 4, 12, 12))

    def test_what_cannot_be_says_what_instead(self):
        net = caffe.Net("deploy.prototxt", caffe.TEST)
        solver = caffe.SGDSolver("solver.prototxt")
        for what in (lambda: caffe.Classifier, lambda: caffe.nothing, lambda: net.backward(),
                     lambda: net.blobs["conv"].diff, lambda: net.params["ip"][0].diff,
                     lambda: net.blobs["conv"].reshape(1), lambda: net.forward(start="conv"),
                     lambda: solver.net.layers, lambda: solver.apply_update(),
                     lambda: caffe.io.array_to_datum):
            with self.assertRaises(AttributeError):
                what()
        with self.assertRaises(ValueError):
            caffe.Net("deploy.prototxt", caffe.TRAIN)
        with self.assertRaises(ValueError):
            net.blobs["ip"].data  # before forward()
        with self.assertRaises(ValueError):
            solver.net.blobs["conv"].data  # the same

    def test_seeds(self):
        caffe.set_random_seed(7)
        try:
            first = caffe.SGDSolver("solver.prototxt").net.params["conv"][0].data
        finally:
            caffe.settings.seed = None
        self.assertFalse((first == caffe.SGDSolver("solver.prototxt")
                          .net.params["conv"][0].data).all())


class Pictures(unittest.TestCase):
    def test_transformer(self):
        transformer = caffe.io.Transformer({"data": (1, 3, 4, 6)})
        transformer.set_transpose("data", (2, 0, 1))
        transformer.set_channel_swap("data", (2, 1, 0))
        transformer.set_raw_scale("data", 255)
        transformer.set_mean("data", numpy.array([1, 2, 3]))
        transformer.set_input_scale("data", 0.5)
        picture = numpy.random.default_rng(1).random((4, 6, 3), dtype=numpy.float32)
        made = transformer.preprocess("data", picture)
        self.assertAlmostEqual(made[0, 1, 2], (255 * picture[1, 2, 2] - 1) / 2, places=4)
        numpy.testing.assert_allclose(transformer.deprocess("data", made), picture, rtol=1e-5,
                                      atol=1e-6)
        self.assertEqual(transformer.preprocess("data", picture[:2, :3]).shape, (3, 4, 6))
        for bad in (lambda: transformer.set_mean("data", numpy.zeros(2)),
                    lambda: transformer.set_transpose("data", (0, 1)),
                    lambda: transformer.preprocess("none", picture)):
            with self.assertRaises(ValueError):
                bad()

    def test_resizing(self):
        picture = numpy.arange(12, dtype=numpy.float32).reshape(3, 4, 1)
        numpy.testing.assert_array_equal(caffe.io.resize_image(picture, (3, 4)), picture)
        self.assertAlmostEqual(float(caffe.io.resize_image(picture, (1, 1))[0, 0, 0]), 5.5)


if __name__ == "__main__":
    unittest.main()
