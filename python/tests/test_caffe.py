"""Caffe's names: what an old script does.
SPDX-License-Identifier: BSD-2-Clause"""
import os
import types
import unittest

from support import Case

try:
    import numpy
except ImportError:
    raise unittest.SkipTest("NumPy is not installed") from None

import lockstep
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
        from lockstep.caffe import layers as L, params as P
        from lockstep.caffe.proto import caffe_pb2
        for what in (lambda: caffe.Classifier, lambda: net.backward(),
                     lambda: caffe.NetSpec(), lambda: L.Convolution, lambda: P.Pooling.MAX,
                     lambda: caffe_pb2.NetParameter(), lambda: caffe.layer_type_list(),
                     lambda: net.blobs["conv"].diff, lambda: net.params["ip"][0].diff,
                     lambda: net.blobs["conv"].reshape(1), lambda: net.forward(start="conv"),
                     lambda: solver.test_nets[0].forward(start="conv"),
                     lambda: solver.test_nets[0].blobs["label"], lambda: solver.param,
                     lambda: solver.net.forward(end="ip"), lambda: solver.add_callback(None, None),
                     lambda: solver.apply_update(), lambda: caffe.io.array_to_datum):
            with self.assertRaisesRegex(AttributeError, ":"):
                what()
        with self.assertRaises(AttributeError):
            caffe.nothing
        with self.assertRaisesRegex(ValueError, "SGDSolver"):
            caffe.Net("deploy.prototxt", caffe.TRAIN)

    def test_before_the_first_pass(self):
        net = caffe.Net("deploy.prototxt", caffe.TEST)
        solver = caffe.SGDSolver("solver.prototxt")
        self.assertEqual({name: blob.data.shape for name, blob in net.blobs.items()},
                         {"data": (2, 1, 28, 28), "conv": (2, 4, 12, 12), "ip": (2, 10),
                          "prob": (2, 10)})
        self.assertEqual(solver.net.blobs["ip"].data.shape, (20, 10))
        self.assertFalse(solver.net.blobs["ip"].diff.any())
        solver.step(1)
        self.assertTrue(solver.net.blobs["ip"].data.any())

    def test_a_net_with_data_layers(self):
        caffe.SGDSolver("solver.prototxt").solve()
        net = caffe.Net("net.prototxt", "net_iter_30.safetensors", caffe.TEST)
        figures = net.forward()  # over all its data
        own = lockstep.Net("net.prototxt", "net_iter_30.safetensors").test()
        self.assertEqual(float(figures["accuracy"]), numpy.float32(own["accuracy"]))
        self.assertEqual(float(net.blobs["loss"].data), float(figures["loss"]))
        with self.assertRaises(AttributeError):
            net.blobs["ip"].data
        pictures = numpy.ones((3, 1, 28, 28), numpy.float32)
        net.blobs["data"].reshape(3, 1, 28, 28)
        net.blobs["label"].reshape(3)
        self.assertEqual(net.forward(data=pictures, blobs=["ip"])["ip"].shape, (3, 10))

    def test_zeros_are_numbers_once_a_net_was_given_some(self):
        caffe.SGDSolver("solver.prototxt").solve()
        net = caffe.Net("net.prototxt", "net_iter_30.safetensors", caffe.TEST)
        zeros = numpy.zeros((3, 1, 28, 28), numpy.float32)
        scores = net.forward_all(["ip"], data=zeros, label=numpy.zeros(3))
        self.assertEqual(scores["ip"].shape, (3, 10))  # not a test over its own data
        self.assertNotIn("accuracy", scores)
        net.blobs["data"].data[...] = 0
        self.assertEqual(net.forward(["ip"])["ip"].shape, (3, 10))

    def test_names(self):
        net = caffe.Net("deploy.prototxt", caffe.TEST)
        solver = caffe.SGDSolver("solver.prototxt")
        self.assertEqual(net.top_names["conv"], ["conv"])
        self.assertEqual(net.bottom_names["ip"], ["conv"])
        self.assertIn("loss", solver.net._layer_names)
        self.assertEqual([layer.type for layer in solver.net.layers][-1], "SoftmaxWithLoss")
        self.assertNotIn("accuracy", solver.net.top_names)
        self.assertIn("accuracy", solver.test_nets[0].top_names)

    def test_files(self):
        solver = caffe.SGDSolver("solver.prototxt")
        solver.step(1)
        solver.snapshot()
        weights = solver.net.params["ip"][0].data
        net = caffe.Net("deploy.prototxt", "net_iter_1.caffemodel", caffe.TEST)
        numpy.testing.assert_array_equal(net.params["ip"][0].data, weights)
        net.save_hdf5("net.h5")
        other = caffe.Net("deploy.prototxt", caffe.TEST)
        other.load_hdf5("net.h5")
        numpy.testing.assert_array_equal(other.params["ip"][0].data, weights)

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

    def test_parts(self):
        picture = numpy.arange(20, dtype=numpy.float32).reshape(4, 5, 1)
        parts = caffe.io.oversample([picture, picture], (2, 3))
        self.assertEqual(parts.shape, (20, 2, 3, 1))
        numpy.testing.assert_array_equal(parts[3, :, :, 0], [[12, 13, 14], [17, 18, 19]])
        numpy.testing.assert_array_equal(parts[4], picture[1:3, 1:4])
        numpy.testing.assert_array_equal(parts[5], parts[0][:, ::-1])

    def test_messages(self):
        datum = types.SimpleNamespace(channels=1, height=2, width=2, data=b"\1\2\3\4")
        self.assertEqual(caffe.io.datum_to_array(datum)[0, 1, 0], 3)
        datum.data, datum.float_data = b"", [1.5, 2, 3, 4]
        self.assertEqual(caffe.io.datum_to_array(datum)[0, 0, 0], 1.5)
        blob = types.SimpleNamespace(num=0, channels=0, height=0, width=0, data=[1, 2], diff=[3, 4],
                                     shape=types.SimpleNamespace(dim=[2, 1]))
        self.assertEqual(caffe.io.blobproto_to_array(blob).shape, (2, 1))
        blob.num = blob.channels = blob.height = 1
        blob.width = 2
        self.assertEqual(caffe.io.blobproto_to_array(blob, True)[0, 0, 0, 1], 4)

    def test_resizing(self):
        picture = numpy.arange(12, dtype=numpy.float32).reshape(3, 4, 1)
        numpy.testing.assert_array_equal(caffe.io.resize_image(picture, (3, 4)), picture)
        self.assertAlmostEqual(float(caffe.io.resize_image(picture, (1, 1))[0, 0, 0]), 5.5)


if __name__ == "__main__":
    unittest.main()
