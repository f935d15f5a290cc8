"""Threads, forks, the end of the program, arrays of every form, jobs, and NULL.
SPDX-License-Identifier: BSD-2-Clause"""
import ctypes
import gc
import os
import shutil
import subprocess
import sys
import threading
import unittest

import lockstep
from lockstep import _declarations as c
from lockstep._library import library
from support import NET, Case, sha256

try:
    import numpy
except ImportError:
    numpy = None


def script(*lines, before=(), timeout=120, **options):
    """Another Python that runs these lines: its output, and how it ended."""
    done = subprocess.run([*before, sys.executable, "-c", "\n".join(lines)], timeout=timeout,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          **options)
    return done.stdout, done.returncode


class Threads(Case):
    def test_two_trainers_at_once(self):
        hashes, failures = {}, []

        def train(name, workers):
            try:
                with lockstep.Trainer("solver.prototxt", snapshot_prefix=name, workers=workers,
                                      overwrite=True) as trainer:
                    trainer.run()
                    hashes[name] = trainer.hash()
            except BaseException as failure:  # pylint: disable=broad-except
                failures.append(failure)

        threads = [threading.Thread(target=train, args=(name, workers))
                   for name, workers in (("one", 1), ("two", 3))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        self.assertEqual(hashes["one"], hashes["two"])

    def test_another_thread_cannot_disturb(self):
        begun, go_on, failures = threading.Event(), threading.Event(), []

        def wait(_update):
            begun.set()
            go_on.wait(60)

        with lockstep.Trainer("solver.prototxt", overwrite=True, on_update=wait) as trainer:
            thread = threading.Thread(target=trainer.run)
            thread.start()
            begun.wait(60)
            for call in (trainer.step, trainer.run, trainer.evaluate, trainer.snapshot,
                         trainer.hash, trainer.close):
                try:
                    call()
                except RuntimeError as failure:
                    failures.append(str(failure))
            go_on.set()
            thread.join()
            after = trainer.hash()
        self.assertEqual(len(failures), 6)
        with lockstep.Trainer("solver.prototxt", overwrite=True) as trainer:
            trainer.run()
            self.assertEqual(trainer.hash(), after)

    def test_calls_of_callbacks(self):
        text, code = script(
            "import lockstep, os, signal",
            "def act(event):",
            "    if what == 'close': trainer.close()",
            "    if what == 'evaluate': trainer.evaluate()",
            "    if what == 'interrupt': os.kill(os.getpid(), signal.SIGINT); trainer.evaluate()",
            "for what in ('evaluate', 'close', 'interrupt'):",
            "    trainer = lockstep.Trainer('solver.prototxt', overwrite=True, on_update=act)",
            "    try: trainer.run()",
            "    except (RuntimeError, KeyboardInterrupt) as failure: print(repr(failure))",
            "    print(what, signal.getsignal(signal.SIGINT) is signal.default_int_handler)",
            "    trainer.close()")
        self.assertEqual((text, code), (
            "evaluate True\n"
            "RuntimeError('this trainer is at work: its callbacks cannot do that')\n"
            "close True\nKeyboardInterrupt()\ninterrupt True\n", 0))

    def test_numbers_without_room(self):
        for options in ({"workers": 2**32 + 1}, {"memory": -1}, {"memory": 2**64},
                        {"trace": "trace.json", "trace_limit": -5}, {"audit": float("nan")}):
            with self.assertRaises(ValueError, msg=str(options)):
                lockstep.Trainer("solver.prototxt", overwrite=True, **options)
        with lockstep.Trainer("solver.prototxt", overwrite=True) as trainer:
            for iterations in (-1, 2**63, 2**64 + 3):
                with self.assertRaises(ValueError):
                    trainer.run(iterations)

    def test_modules_that_come_with_the_package(self):
        text, code = script(
            "import lockstep",
            "print(lockstep.notebook.LiveCurves().loss, lockstep.job.current())")
        self.assertEqual((text, code), ("[] None\n", 0))

    def test_the_program_ends_while_a_thread_trains(self):
        text, code = script(
            "import lockstep, threading, time",
            "begun = threading.Event()",
            "def run():",
            "    try:",
            "        lockstep.train('solver.prototxt', set={'max_iter': 10**7, 'display': 0},",
            "                       on_update=lambda e: begun.set())",
            "    except BaseException as failure: print('raised', failure)",
            "threading.Thread(target=run, daemon=True).start()",
            "begun.wait(60)")
        self.assertEqual((text, code), ("", 0))
        self.assertTrue([n for n in os.listdir(".") if n.endswith(".safetensors")])

    @unittest.skipUnless(hasattr(os, "fork"), "needs fork")
    def test_a_child_cannot_use_what_its_parent_made(self):
        text, code = script(
            "import lockstep, os, sys, warnings",
            "warnings.simplefilter('ignore', DeprecationWarning)  # of fork with threads",
            "trainer = lockstep.Trainer('solver.prototxt', workers=2)",
            "trainer.step(2)",
            "child = os.fork()",
            "if child == 0:",
            "    try: trainer.step(1)",
            "    except RuntimeError as failure: print(failure, flush=True)",
            "    del trainer",
            "    sys.exit(3)",
            "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)",
            "trainer.step(1)")
        self.assertEqual(code, 0, text)
        self.assertIn("belongs to the process that this one was forked from", text)
        self.assertIn("\n3\n", text)


@unittest.skipIf(numpy is None, "needs NumPy")
class Arrays(Case):
    def setUp(self):
        super().setUp()
        layer = NET[NET.index("layer {"):NET.index("layer { name: \"conv\"")]
        self.write("net.prototxt", NET.replace(layer, 'layer { name: "data" type: "MemoryData" '
                   'top: "data" top: "label" memory_data_param { batch_size: 20 channels: 1 '
                   "height: 28 width: 28 } }\n"))
        random = numpy.random.default_rng(5)
        self.x = random.random((60, 1, 28, 28), numpy.float32)
        self.y = random.integers(0, 10, 60)

    def hash_of(self, x, y, steps=4):
        with lockstep.Trainer("solver.prototxt", data={"data": x, "label": y},
                              test_data={"data": self.x, "label": self.y}) as trainer:
            del x, y
            gc.collect()
            trainer.step(steps)
            return trainer.hash()

    def test_every_form_of_the_same_numbers(self):
        wanted = self.hash_of(self.x, self.y)
        wide = numpy.zeros((60, 1, 28, 56), numpy.float32)
        wide[..., ::2] = self.x
        read_only = self.x.copy()
        read_only.flags.writeable = False
        swapped = self.x.astype(">f4")
        for x in (numpy.asfortranarray(self.x), wide[..., ::2], self.x[::-1].copy()[::-1],
                  read_only, swapped, self.x.astype(float)):
            self.assertEqual(self.hash_of(x, self.y), wanted)
        for kind in ("i8", "u1", "f4", "i4"):
            self.assertEqual(self.hash_of(self.x, self.y.astype(kind)), wanted)

    def test_predictions_of_several_threads(self):
        self.write("deploy.prototxt", 'layer { name: "data" type: "Input" top: "data" input_param '
                   "{ shape { dim: 1 dim: 4 } } }\n"
                   'layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" '
                   "inner_product_param { num_output: 3 } }\n")
        with open("weights.safetensors", "wb") as file:
            header = ('{"ip.weight": {"dtype": "F32", "shape": [3, 4], "data_offsets": [0, 48]}, '
                      '"ip.bias": {"dtype": "F32", "shape": [3], "data_offsets": [48, 60]}}')
            file.write(len(header).to_bytes(8, "little") + header.encode())
            file.write(numpy.arange(15, dtype="<f4").tobytes())
        given = numpy.arange(2000, dtype=numpy.float32).reshape(500, 4)
        wrong = []
        with lockstep.Net("deploy.prototxt", "weights.safetensors") as net:
            wanted = net.predict(given)

            def predict():
                wrong.extend(i for i in range(20) if (net.predict(given) != wanted).any())

            threads = [threading.Thread(target=predict) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(wrong, [])

    def test_what_cannot_be(self):
        for x, y in ((self.x[:0], self.y[:0]), (self.x[:30], self.y),
                     (self.x[..., 1:], self.y), (self.x.astype(complex), self.y),
                     (self.x.astype(object), self.y), (self.x, self.y + 100),
                     (numpy.full_like(self.x, numpy.nan), self.y)):
            with self.assertRaises((lockstep.LockstepError, TypeError)):
                self.hash_of(x, y)

    def test_parameters_in_every_form(self):
        with lockstep.Trainer("solver.prototxt", data={"data": self.x, "label": self.y},
                              test_data={"data": self.x, "label": self.y}) as trainer:
            weight = trainer.parameters["ip.weight"]
            for values in (numpy.asfortranarray(weight), weight.astype(float), weight.tolist(),
                           weight[::-1].copy()[::-1]):
                trainer.parameters["ip.weight"] = 0 * weight
                trainer.parameters["ip.weight"] = values
                self.assertTrue((trainer.parameters["ip.weight"] == weight).all())
            for values in (weight[:, 1:], weight[:0], weight.T):
                with self.assertRaises(ValueError):
                    trainer.parameters["ip.weight"] = values
        self.assertEqual(weight.shape, (10, 576))  # it outlives the trainer
        weight += 1
        with self.assertRaises(ValueError):
            trainer.parameters["ip.weight"]


class Null(Case):
    """Arguments that are NULL where something is loaded are errors, not crashes."""

    def test_loading(self):
        options = {}
        for kind in ("model", "net", "generator", "train", "show", "page"):
            options[kind] = getattr(c, f"lockstep_{kind}_options")()
            getattr(library, f"lockstep_{kind}_options_init")(ctypes.byref(options[kind]))
        made = ctypes.c_void_p()
        to, names = ctypes.byref(made), (ctypes.c_char_p * 1)()
        log = ctypes.c_void_p()
        library.lockstep_log_new(ctypes.byref(log), None)
        self.addCleanup(library.lockstep_log_free, log)
        path = b"net.prototxt"
        for name, *arguments in (
                ("solver_load", None, names, 0, to), ("solver_of_net", None, 0, names, 0, to),
                ("model_load", None, b"w", options["model"], to),
                ("model_load", path, None, options["model"], to), ("model_load", path, b"w", None, to),
                ("net_load", None, options["net"], to), ("net_load", path, None, to),
                ("generator_load", path, None, options["generator"], to),
                ("generator_load", None, b"w", options["generator"], to),
                ("trainer_create", None, options["train"], to),
                ("tokenizer_load", None, to), ("log_read", log, None),
                ("tensorboard_new", None, to), ("metrics_new", None, to),
                ("show", None, options["show"]), ("show", path, None),
                ("page_write", None, None, 0, options["page"])):
            error = library.lockstep_error_new()
            status = getattr(library, "lockstep_" + name)(
                *[ctypes.byref(a) if isinstance(a, ctypes.Structure) else a for a in arguments],
                error)
            text = library.lockstep_error_text(error).decode()
            library.lockstep_error_free(error)
            self.assertEqual((status, made.value), (2, None), name + ": " + text)
            self.assertRegex(text, "NULL", name)
            # A caller need not take the error.
            self.assertEqual(getattr(library, "lockstep_" + name)(
                *[ctypes.byref(a) if isinstance(a, ctypes.Structure) else a for a in arguments],
                None), 2)

    def test_objects(self):
        for name in [n for n in c.FUNCTIONS if n.endswith("_free")]:
            getattr(library, name)(None)


MODULE = os.path.join(os.path.dirname(os.environ.get("LOCKSTEP_LIBRARY", "")),
                      "liblockstep_openmpi.so")


@unittest.skipUnless(shutil.which("mpirun.openmpi") and os.path.exists(MODULE),
                     "needs Open MPI, and the module for it")
class Jobs(Case):
    def mpirun(self, *lines):
        before = ("mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none",
                  "-np", "2")
        return script(*lines, before=before, env=dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1",
                                                      OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1"))

    def test_the_same_bytes(self):
        text, code = self.mpirun(
            "import lockstep",
            "result = lockstep.train('solver.prototxt', workers=1, log_json='log.json')",
            "job = lockstep.job.current()",
            "print(job.rank, job.size, result.iteration)")
        self.assertEqual(code, 0, text)
        self.assertEqual(sorted(text.splitlines()), ["0 2 30", "1 2 30"])
        with open("log.json", encoding="utf-8") as file:
            self.assertIn('"ranks": 2', file.read())
        lockstep.train("solver.prototxt", snapshot_prefix="alone")
        self.assertEqual(sha256("net_iter_30.safetensors"), sha256("alone_iter_30.safetensors"))

    def test_a_rank_that_raises_ends_all(self):
        text, code = self.mpirun(
            "import lockstep",
            "trainer = lockstep.Trainer('solver.prototxt', workers=1)",
            "trainer.step(2)",
            "if lockstep.job.current().rank == 1: raise ValueError('mine')",
            "trainer.run()")
        self.assertNotEqual(code, 0, text)
        self.assertIn("ValueError: mine", text)


if __name__ == "__main__":
    unittest.main()
