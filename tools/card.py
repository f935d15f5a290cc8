#!/usr/bin/env python3
"""What is to be done on a machine with a card, in ten minutes: ./run card.

    card.py [--json FILE] [--minutes M] [--only STEP]... [--stand-in] [--debs FOLDER] [--build FOLDER]
            [--peer PYTHON]

The steps, in this order; one that fails does not keep the next ones from being tried:

    build     the program, the module of the CUDA device, the tests that run on a card
    query     lockstep device_query: card, driver, libraries
    kernels   every kind of op, sums, updates and products on the card against the reference device
    bits      a portable net trained on the card and on the CPU: the same weights, bit for bit
    verify    lockstep verify with --gpu 0, 0,0 and 0,0,0, in FP32, TF32 and BF16
    sanitize  compute-sanitizer: memcheck, racecheck, initcheck, synccheck of a short training
    bench     bench/cards.py: against PyTorch on the same card

The results go to FILE (results/card.json) after each step, so that what is known is kept when time
runs out: for each step its status, its seconds, and the end of what it said.

--stand-in does all of this without a card, on the stand-in of the tests: whether this script works.
--debs FOLDER: packages of Debian that are unpacked for the build where no network is (tools/card_debs.sh
collects them). The exit status is 0 if no step failed.

SPDX-License-Identifier: BSD-2-Clause
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
STEPS = ("build", "query", "kernels", "bits", "verify", "sanitize", "bench")
# Seconds that a step may take of ten minutes.
PATIENCE = {"build": 240, "query": 20, "kernels": 90, "bits": 45, "verify": 90, "sanitize": 90,
            "bench": 300}
TARGETS = ("lockstep_program", "lockstep_cuda", "bench_worker", "cuda_card_tests")
STAND_IN_TARGETS = ("lockstep_program", "ls_cuda_standin", "bench_worker", "cuda_test_ops")
TAIL = 3000  # characters of what a step said that are kept

NET = """
layer {{ name: "data" type: "DummyData" top: "data" top: "label" dummy_data_param {{
  shape {{ dim: {batch} dim: 3 dim: 16 dim: 16 }} shape {{ dim: {batch} }}
  data_filler {{ type: "gaussian" std: 1 }} data_filler {{ type: "constant" value: 3 }} }} }}
layer {{ name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param {{ num_output: 16 kernel_size: 3 pad: 1 weight_filler {{ type: "xavier" }} }} }}
layer {{ name: "norm" type: "BatchNorm" bottom: "conv" top: "norm" }}
layer {{ name: "scale" type: "Scale" bottom: "norm" top: "norm" scale_param {{ bias_term: true }} }}
layer {{ name: "relu" type: "ReLU" bottom: "norm" top: "norm" }}
layer {{ name: "pool" type: "Pooling" bottom: "norm" top: "pool"
  pooling_param {{ pool: MAX kernel_size: 2 stride: 2 }} }}
layer {{ name: "drop" type: "Dropout" bottom: "pool" top: "drop" }}
layer {{ name: "ip" type: "InnerProduct" bottom: "drop" top: "ip"
  inner_product_param {{ num_output: 10 weight_filler {{ type: "xavier" }} }} }}
layer {{ name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }}
"""
SOLVER = """base_lr: 0.01 momentum: 0.9 lr_policy: "fixed" max_iter: {updates} random_seed: 1
display: {updates} snapshot: {updates} micro_batch: {micro_batch} {more}
net_param {{ name: "card" {net} }}
"""


class Failed(Exception):
    """A step that did not do what it should, with what was said."""


class Day:
    def __init__(self, options):
        self.options = options
        self.end = time.monotonic() + 60 * options.minutes
        self.build = os.path.abspath(options.build)
        self.folder = os.path.join(self.build, "card")
        os.makedirs(self.folder, exist_ok=True)
        self.program = os.path.join(self.build, "lockstep")
        self.environment = dict(os.environ)
        if options.stand_in:
            self.environment["LOCKSTEP_CUDA_MODULE"] = os.path.join(
                self.build, "tests", "standin", "liblockstep_cuda.so")

    def run(self, command, seconds, fails=True, **more):
        """What a command says, both streams as one."""
        left = min(seconds, self.end - time.monotonic())
        if left <= 1:
            raise Failed("the time is over")
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  errors="replace", timeout=left, env=self.environment,
                                  stdin=subprocess.DEVNULL, **more)
        except subprocess.TimeoutExpired as late:
            said = late.stdout or b""
            said = said.decode(errors="replace") if isinstance(said, bytes) else said
            raise Failed(f"{command[0]}: not done in {left:.0f} s\n{said[-TAIL:]}") from None
        if fails and done.returncode != 0:
            raise Failed(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout[-TAIL:]}")
        return done.stdout

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(text)
        return path

    def solver(self, name, more="", batch=8, updates=2, micro_batch=2):
        net = NET.format(batch=batch)
        return self.write(name, SOLVER.format(updates=updates, micro_batch=micro_batch, more=more,
                                              net=net))

    # ---- Steps: each returns what it found

    def step_build(self, seconds):
        said = self.unpack_debs(seconds) if self.options.debs else ""
        os.makedirs(self.build, exist_ok=True)
        more = [] if self.options.stand_in else ["-DLOCKSTEP_CUDA=ON"]
        said += self.run(["cmake", "-S", ROOT, "-B", self.build, "-G", "Ninja",
                          "-DCMAKE_BUILD_TYPE=Release", *more], seconds)
        targets = STAND_IN_TARGETS if self.options.stand_in else TARGETS
        said += self.run(["ninja", "-C", self.build, *targets], seconds)
        return {"said": said}

    def unpack_debs(self, seconds):
        """Packages lie in a folder of the build, where CMake, the compiler and the loader find them."""
        prefix = os.path.join(self.folder, "debs")
        said = ""
        for name in sorted(os.listdir(self.options.debs)):
            if name.endswith(".deb"):
                said += self.run(["dpkg", "-x", os.path.join(self.options.debs, name), prefix], seconds)
        usr = os.path.join(prefix, "usr")
        libraries = os.path.join(usr, "lib", "x86_64-linux-gnu")
        for name, value in (("CMAKE_PREFIX_PATH", usr), ("LD_LIBRARY_PATH", libraries),
                            ("LIBRARY_PATH", libraries), ("PATH", os.path.join(usr, "bin")),
                            ("CPATH", os.path.join(usr, "include")),
                            ("PKG_CONFIG_PATH", os.path.join(libraries, "pkgconfig"))):
            self.environment[name] = value + os.pathsep + self.environment.get(name, "")
        self.environment["PKG_CONFIG_SYSROOT_DIR"] = prefix
        return said

    def step_query(self, seconds):
        said = self.run([self.program, "device_query", "--json"], seconds)
        return {"said": said, "version": self.run([self.program, "--version"], seconds)}

    def step_kernels(self, seconds):
        if self.options.stand_in:
            self.environment["LOCKSTEP_TEST_FILTER"] = "*softmax*"  # all take a minute there
        programs = ["cuda_test_ops"] if self.options.stand_in else [
            name for name in sorted(os.listdir(os.path.join(self.build, "tests")))
            if name.startswith("cuda_card_")]
        said, failed = "", []
        for name in programs:
            try:
                said += self.run([os.path.join(self.build, "tests", name)], seconds)
            except Failed as failure:
                failed.append(name)
                said += str(failure)
        self.environment.pop("LOCKSTEP_TEST_FILTER", None)
        lines = [line for line in said.splitlines() if "FAILED" in line]
        if failed or "[       OK ]" not in said:
            raise Failed("\n".join(lines) + "\n" + said[-TAIL:])
        return {"said": said, "passed": said.count("[       OK ]")}

    def train(self, solver, prefix, seconds, *more):
        self.run([self.program, "train", "--solver", solver, "--overwrite", "--quiet",
                  "--snapshot-prefix", os.path.join(self.folder, prefix), *more], seconds)

    def step_bits(self, seconds):
        solver = self.solver("portable.prototxt", "algorithm: PORTABLE")
        for where, prefix in (((), "on_cpu"), (("--gpu", "0"), "on_card")):
            self.train(solver, prefix, seconds, *where)
        said = self.run([self.program, "diff", *(os.path.join(
            self.folder, f"{name}_iter_2.safetensors") for name in ("on_cpu", "on_card"))], seconds)
        return {"said": said}

    def step_verify(self, seconds):
        found = {}
        for precision in ("FP32", "TF32", "BF16"):
            solver = self.solver(f"verify_{precision}.prototxt", f"precision: {precision}")
            try:
                found[precision] = self.run([self.program, "verify", "--solver", solver, "--gpu", "0",
                                             "--gpu", "0,0", "--gpu", "0,0,0"], seconds)
            except Failed as failure:
                found[precision] = "FAILED: " + str(failure)
        if any(text.startswith("FAILED") for text in found.values()):
            raise Failed(json.dumps(found, indent=1))
        return {"said": found["FP32"], "by_precision": found}

    def step_sanitize(self, seconds):
        tool = shutil.which("compute-sanitizer", path=os.pathsep.join(
            (self.environment["PATH"], "/usr/local/cuda/bin")))
        if self.options.stand_in or tool is None:
            return {"said": "skipped: no compute-sanitizer, or nothing that it could look at"}
        solver = self.solver("sanitize.prototxt", batch=4, updates=2)
        found = {}
        for kind in ("memcheck", "racecheck", "initcheck", "synccheck"):
            said = self.run([tool, "--tool", kind, "--error-exitcode", "9", self.program, "train",
                             "--solver", solver, "--overwrite", "--gpu", "0", "--snapshot-prefix",
                             os.path.join(self.folder, "sanitize")], seconds, fails=False)
            errors = re.search(r"ERROR SUMMARY: (\d+) error", said)
            found[kind] = int(errors.group(1)) if errors else said[-TAIL:]
        if any(errors != 0 for errors in found.values()):
            raise Failed(json.dumps(found, indent=1))
        return {"said": "", "errors": found}

    def step_bench(self, seconds):
        rows = os.path.join(self.folder, "bench.json")
        more = ["--small", "--rounds", "1"] if self.options.stand_in else []
        left = min(seconds, self.end - time.monotonic()) - 20
        said = self.run([sys.executable, os.path.join(ROOT, "bench", "cards.py"), "--build", self.build,
                         "--json", rows, "--peer", self.options.peer, "--budget", str(max(left, 10)),
                         *more], seconds)
        with open(rows) as file:
            return {"said": said, "rows": json.load(file)}


def arguments():
    parser = argparse.ArgumentParser(prog="./run card", description="The checks of a day with a card.")
    parser.add_argument("--json", default=os.path.join(ROOT, "results", "card.json"))
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--only", action="append", choices=STEPS, help="this step")
    parser.add_argument("--stand-in", action="store_true", help="without a card, on the tests' stand-in")
    parser.add_argument("--debs", help="a folder of packages to build with, for want of a network")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--peer", default=os.environ.get("LOCKSTEP_PEER_PYTHON", "python3"))
    return parser.parse_args()


def take(day, name):
    """A step's result, as the JSON has it."""
    begin = time.monotonic()
    try:
        found = {"status": "passed", **getattr(day, "step_" + name)(PATIENCE[name])}
        if found["said"].startswith("skipped"):
            found["status"] = "skipped"
        found["said"] = found["said"][-TAIL:]
    except Failed as failure:
        found = {"status": "failed", "said": str(failure)[-4 * TAIL:]}
    return {"step": name, "seconds": round(time.monotonic() - begin, 1), **found}


def main():
    options = arguments()
    day, results = Day(options), []
    os.makedirs(os.path.dirname(os.path.abspath(options.json)), exist_ok=True)
    for name in STEPS:
        if options.only and name not in options.only:
            continue
        print(f"== {name}", flush=True)
        results.append(take(day, name))
        if results[-1]["status"] != "passed":
            print(results[-1]["said"], flush=True)
        print(f"{name}: {results[-1]['status']}, {results[-1]['seconds']} s", flush=True)
        with open(options.json, "w") as file:
            json.dump({"stand_in": options.stand_in, "steps": results}, file, indent=1)
    print(f"Results: {options.json}")
    sys.exit(any(result["status"] == "failed" for result in results))


if __name__ == "__main__":
    main()
