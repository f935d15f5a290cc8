"""What the tests share: a folder of their own with a net of random digits, and the command line.
SPDX-License-Identifier: BSD-2-Clause"""
import hashlib
import os
import shutil
import subprocess
import tempfile
import unittest

PROGRAM = os.environ.get("LOCKSTEP", "lockstep")

NET = """
name: "Digits"
layer { name: "data" type: "Data" top: "data" top: "label"
  data_param { backend: SYNTHETIC batch_size: 20 synthetic_param { count: 200 } }
  transform_param { scale: 0.00390625 } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 4 kernel_size: 5 stride: 2 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "ip" type: "InnerProduct" bottom: "conv" top: "ip"
  inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy"
  include { phase: TEST } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
"""
SOLVER = """
net: "net.prototxt"
base_lr: 0.05 momentum: 0.9 weight_decay: 0.0005 lr_policy: "fixed"
max_iter: 30 display: 10 test_iter: 5 test_interval: 15
snapshot_prefix: "net"
random_seed: 3
"""


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


class Case(unittest.TestCase):
    """Runs in a folder of its own with net.prototxt and solver.prototxt."""

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        self.write("net.prototxt", NET)
        self.write("solver.prototxt", SOLVER)

    def write(self, name, text):
        with open(name, "w", encoding="utf-8") as file:
            file.write(text)

    def program(self, *arguments):
        """What `lockstep` prints; it must succeed."""
        done = subprocess.run((PROGRAM,) + arguments, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout
