"""The two sides of the benchmark as processes that run when they are told to, and the probe of what
the machine can do meanwhile.

SPDX-License-Identifier: BSD-2-Clause
"""

import glob
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))


class Failed(Exception):
    """An arm that cannot do what is asked."""


class Arm:
    """A process that answers "run N" with its seconds, the peak of its memory, and maybe more."""

    def __init__(self, command, **environment):
        begin = time.perf_counter()
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.errors, text=True,
                                        env={**os.environ, **environment})
        self.memory = 0.0  # peak so far, MiB
        first = self._answer()
        self.start_seconds = time.perf_counter() - begin  # to the end of the first iteration
        self.ready_seconds = self.start_seconds - first  # to its beginning

    def _answer(self):
        words = self.process.stdout.readline().split()
        if len(words) < 2:
            self.stop()
            self.errors.seek(0)
            raise Failed(self.errors.read().strip() or "the process has ended")
        self.memory = float(words[1])
        self.more = [float(word) for word in words[2:]]
        return float(words[0])

    def run(self, count):
        """Seconds of `count` iterations."""
        self.process.stdin.write(f"run {count}\n")
        self.process.stdin.flush()
        return self._answer()

    def iterations_for(self, seconds):
        """How many iterations take about so long, found by running some."""
        count, took = 1, self.run(1)
        while took < seconds / 5 and count < 1 << 20:
            count = max(2 * count, int(count * 0.3 * seconds / max(took, 1e-6)))
            took = self.run(count)
        return max(1, round(count * seconds / took))

    def waited(self):
        """Seconds that the threads of the process have waited for a core so far."""
        total = 0.0
        for path in glob.glob(f"/proc/{self.process.pid}/task/*/schedstat"):
            try:
                with open(path) as file:
                    total += int(file.read().split()[1]) * 1e-9
            except (OSError, IndexError):
                pass  # the thread has ended
        return total

    def stop(self):
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Machine:
    """Peak of multiply-adds and bandwidth of memory, now and the best that was ever seen."""

    def __init__(self, build):
        self.program = os.path.join(build, "bench", "bench_probe")
        self.flops = self.bytes = 0.0

    def probe(self):
        words = subprocess.run([self.program], capture_output=True, text=True, check=True).stdout
        flops, bytes = (float(word) * 1e9 for word in words.split())
        self.flops, self.bytes = max(self.flops, flops), max(self.bytes, bytes)
        return flops, bytes

    def is_slow(self, probe):
        return probe[0] < 0.93 * self.flops or probe[1] < 0.75 * self.bytes


class Lockstep:
    """How Lockstep's arms are started."""

    def __init__(self, build, folder):
        self.program = os.path.join(build, "bench", "bench_worker")
        self.folder = folder  # of what is written for a run

    def train(self, solver, workers=0):
        return Arm([self.program, "train", solver, str(workers)])

    def test(self, net, solver, batches):
        """Tests weights of one update. One iteration is `batches` batches."""
        weights = os.path.join(self.folder, "weights.safetensors")
        made = subprocess.run([self.program, "weights", solver, weights], capture_output=True,
                              text=True)
        if made.returncode != 0:
            raise Failed(made.stderr.strip())
        try:
            return Arm([self.program, "test", net, weights, str(batches)])
        finally:
            os.unlink(weights)


class Peer:
    """How the peer's arms are started: PyTorch under one interpreter."""

    def __init__(self, python, folder):
        self.python, self.folder = python, folder
        ask = "import torch; print(torch.__version__)"
        told = subprocess.run([python, "-c", ask], capture_output=True, text=True)
        if told.returncode != 0:
            sys.exit(f"bench: {python} has no PyTorch:\n{told.stderr}")
        self.name = "PyTorch " + told.stdout.strip()

    def start(self, network, mode, setting, batch=0, files=None):
        command = [self.python, os.path.join(HERE, "peer", "worker.py"), network.name, mode]
        for option, value in setting.items():
            if not isinstance(value, bool):
                command += ["--" + option, str(value)]
            elif value:
                command.append("--" + option)
        command += ["--batch", str(batch)] if batch else []
        command += ["--files", files] if files else []
        if setting["processes"] > 1:  # a file that does not exist yet
            meeting = os.path.join(self.folder, f"meeting-{time.monotonic_ns()}")
            command += ["--meeting", meeting]
        return Arm(command)
