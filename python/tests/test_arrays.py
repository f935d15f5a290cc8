"""Numbers between Python and the library: views, DLPack, what callers hand in.
SPDX-License-Identifier: BSD-2-Clause"""
import array
import gc
import unittest

from lockstep import arrays
from lockstep.arrays import Tensor, to_tensor

try:
    import numpy
except ImportError:
    numpy = None
try:
    import torch
except ImportError:
    torch = None


class Views(unittest.TestCase):
    def test_views_share_memory(self):
        tensor = Tensor((2, 3))
        tensor.memoryview()[1, 2] = 5
        self.assertEqual(tensor.tolist(), [[0, 0, 0], [0, 0, 5]])
        self.assertEqual((tensor.size, tensor.ndim, len(tensor)), (6, 2, 2))
        self.assertEqual(Tensor(()).tolist(), 0)
        self.assertEqual(float(Tensor(())), 0)
        self.assertEqual(Tensor((0, 3)).size, 0)
        with self.assertRaises(TypeError):
            float(tensor)

    def test_lists(self):
        self.assertEqual(to_tensor([[1, 2], [3, 4.5]]).tolist(), [[1, 2], [3, 4.5]])
        self.assertEqual(to_tensor(3).shape, ())
        for bad in ([[1], [2, 3]], [1, [2]], [[1], 2]):
            with self.assertRaises(ValueError):
                to_tensor(bad)

    def test_buffers(self):
        given = array.array("f", [1, 2, 3])
        made = to_tensor(given)
        self.assertEqual(made.shape, (3,))
        self.assertEqual(list(made.memoryview()), [1, 2, 3])

    @unittest.skipIf(numpy is None, "NumPy is not installed")
    def test_numpy(self):
        tensor = Tensor((2, 3))
        view = arrays.result(tensor)
        view[0, 1] = 7
        self.assertEqual(tensor.memoryview()[0, 1], 7)
        source = numpy.arange(6, dtype=numpy.float32).reshape(2, 3)
        self.assertEqual(to_tensor(source).__array_interface__["data"][0], source.ctypes.data)
        self.assertEqual(to_tensor(source.T).tolist(), source.T.tolist())
        self.assertEqual(to_tensor(source.astype("i1")).tolist(), source.tolist())
        source.setflags(write=False)
        self.assertEqual(to_tensor(source).tolist(), source.tolist())
        self.assertEqual(to_tensor(numpy.zeros((0, 2))).shape, (0, 2))
        self.assertEqual(to_tensor(numpy.float32(2)).shape, ())

    @unittest.skipIf(numpy is None or not hasattr(numpy, "from_dlpack"), "NumPy lacks DLPack")
    def test_dlpack(self):
        tensor = Tensor((2, 3))
        view = numpy.from_dlpack(tensor)
        tensor.memoryview()[1, 0] = 3
        self.assertEqual(view[1, 0], 3)
        self.assertTrue(arrays._lent)
        del view, tensor
        gc.collect()
        self.assertFalse(arrays._lent)
        Tensor((1,)).__dlpack__()  # which is not taken
        gc.collect()
        self.assertFalse(arrays._lent)
        with self.assertRaises(BufferError):
            Tensor((1,)).__dlpack__(dl_device=(2, 0))

    @unittest.skipIf(torch is None, "PyTorch is not installed")
    def test_torch(self):
        tensor = Tensor((2,))
        view = torch.from_dlpack(tensor)
        view[1] = 4
        self.assertEqual(tensor.tolist(), [0, 4])
        self.assertEqual(to_tensor(torch.ones(2, 2)).tolist(), [[1, 1], [1, 1]])


if __name__ == "__main__":
    unittest.main()
