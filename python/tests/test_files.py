"""Files of models, to and from other formats.
SPDX-License-Identifier: BSD-2-Clause"""
import unittest
import warnings

import lockstep
from support import Case


class Files(Case):
    def setUp(self):
        super().setUp()
        lockstep.train("solver.prototxt", iterations=2)
        self.weights = "net_iter_2.safetensors"

    def test_onnx(self):
        lockstep.export_onnx("net.prototxt", self.weights, "net.onnx", opset=13)
        self.program("export", "--onnx", "--model", "net.prototxt", "--weights", self.weights,
                     "--opset", "13", "-o", "program.onnx")
        with open("net.onnx", "rb") as ours, open("program.onnx", "rb") as program:
            self.assertEqual(ours.read(), program.read())
        with self.assertRaises(lockstep.UsageError):
            lockstep.export_onnx("net.prototxt", self.weights, "net.onnx", opset=3)
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # its convolution has a bias, and no batch norm behind
            with self.assertRaisesRegex(RuntimeWarning, "BatchNorm"):
                lockstep.import_onnx("net.onnx", "again")
            warnings.simplefilter("ignore")
            written = lockstep.import_onnx("net.onnx", "again", loss="softmax", solver=True)
        self.assertIn("again_train_test.prototxt", written)
        with open("again_train_test.prototxt", encoding="utf-8") as file:
            self.assertIn("shape { dim: 1 dim: 28 dim: 28 }", file.read())

    def test_weights(self):
        self.assertEqual(lockstep.convert_weights(self.weights, "net.h5"), [])
        self.assertEqual(lockstep.diff(self.weights, self.weights), [])
        lockstep.train("solver.prototxt", iterations=3, snapshot_prefix="other")
        self.assertTrue(any("ip.weight" in line for line in
                            lockstep.diff(self.weights, "other_iter_3.safetensors")))
        with self.assertRaises(lockstep.LockstepError):
            lockstep.diff(self.weights, "none.safetensors")

    def test_what_the_program_does(self):
        for name in ("verify", "generate", "plan", "export"):
            with self.assertRaisesRegex(AttributeError, ":"):
                getattr(lockstep, name)


if __name__ == "__main__":
    unittest.main()
