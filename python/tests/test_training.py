"""Trainings from Python: the bytes of the command line's, events, exceptions, Ctrl-C, threads.
SPDX-License-Identifier: BSD-2-Clause"""
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import unittest
import warnings

import lockstep
from lockstep import events
from support import Case, sha256


class Training(Case):
    def test_the_bytes_of_the_command_line(self):
        self.program("train", "--solver", "solver.prototxt", "--workers", "2",
                     "--snapshot-prefix", "program")
        result = lockstep.train("solver.prototxt", workers=1, snapshot_prefix="python")
        self.assertEqual(result.snapshot, "python_iter_30.safetensors")
        self.assertEqual(sha256(result.snapshot), sha256("program_iter_30.safetensors"))
        self.assertEqual(result.iteration, 30)
        self.assertGreater(result["accuracy"], 0.2)
        self.assertNotIn("history", repr(result))
        self.assertLess(len(repr(result)), 300)
        self.assertEqual([e.iteration for e in result.history], [1, 11, 21])

    def test_steps_are_the_same_training(self):
        lockstep.train("solver.prototxt", workers=1)
        with lockstep.Trainer("solver.prototxt", workers=3) as trainer:
            for count in (1, 9, 20):
                loss = trainer.step(count)
            self.assertEqual(loss, trainer.loss)
            self.assertEqual(trainer.iteration, 30)
            self.assertEqual(trainer.snapshot("stepped.safetensors"), "stepped.safetensors")
            self.assertEqual(trainer.test_count, 1)
            outputs = trainer.evaluate()
        self.assertEqual(set(outputs), {"accuracy", "loss"})
        accuracy = outputs["accuracy"]
        self.assertIsInstance(accuracy, float)
        self.assertEqual((accuracy, accuracy.values), (accuracy.value, (accuracy.value,)))
        self.assertEqual(repr(accuracy), repr(accuracy.value))
        self.assertEqual(pickle.loads(pickle.dumps(accuracy)).name, "accuracy")
        self.assertEqual(repr(events.Output("AP", (0.5, 0.25))), "Output('AP', 2 values)")
        self.assertEqual(outputs["loss"].loss_weight, 1)
        self.program("diff", "stepped.safetensors", "net_iter_30.safetensors")
        with self.assertRaises(ValueError):
            trainer.step()

    def test_events(self):
        seen, updates, tests = [], [], []
        lockstep.train("solver.prototxt", on_event=seen.append, on_update=updates.append,
                       on_test=tests.append)
        self.assertEqual([e.iteration for e in updates], list(range(1, 31)))
        self.assertEqual([e.iteration for e in tests], [0, 15, 30])
        self.assertEqual(tests[1]["accuracy"], tests[1].outputs["accuracy"].values[0])
        self.assertEqual(tests[0].samples, 100)
        run, = (e for e in seen if isinstance(e, events.Run))
        self.assertEqual((run.figures["batch"], run.figures["seed"]), (20, 3))
        self.assertEqual(run.figures["solver"], "SGD")
        self.assertIsInstance(seen[-1], events.Ended)
        self.assertTrue(any(isinstance(e, events.Start) and e.text for e in seen))
        self.assertAlmostEqual(updates[0].learning_rate, 0.05)

    def test_callbacks_of_a_trainer(self):
        updates, displays, tests = [], [], []
        with lockstep.Trainer("solver.prototxt", on_update=updates.append,
                              on_display=displays.append, on_test=tests.append) as trainer:
            trainer.run()
        self.assertEqual([e.iteration for e in updates], list(range(1, 31)))
        self.assertEqual({type(e) for e in displays}, {events.Display})
        self.assertEqual([e.iteration for e in tests], [0, 15, 30])

    def test_set_and_resume(self):
        lockstep.train("solver.prototxt", set={"max_iter": 10, "snapshot_after_train": True})
        result = lockstep.train("solver.prototxt", resume="auto", set=["max_iter=30"])
        self.assertEqual(result.iteration, 30)
        lockstep.train("solver.prototxt", snapshot_prefix="whole")
        self.program("diff", "whole_iter_30.safetensors", "net_iter_30.safetensors")

    def test_an_exception_of_a_callback(self):
        class Mine(Exception):
            pass

        def fail(event):
            if isinstance(event, events.Update) and event.iteration == 7:
                raise Mine

        with self.assertRaises(Mine):
            lockstep.train("solver.prototxt", on_event=fail)
        self.assertTrue(os.path.exists("net_iter_7.safetensors"))

    def test_stop(self):
        trainer = lockstep.Trainer("solver.prototxt")
        trainer.add_listener(lambda e: trainer.stop() if e.iteration == 12 else None)
        result = trainer.run()
        self.assertEqual((result.iteration, result.snapshot), (12, "net_iter_12.safetensors"))

    def test_other_threads_run_meanwhile(self):
        updates = []
        trainer = lockstep.Trainer("solver.prototxt", set={"max_iter": 1000000},
                                   on_event=updates.append)
        thread = threading.Thread(target=trainer.run)
        thread.start()
        while len(updates) < 50:  # the other thread does not keep the interpreter's lock
            time.sleep(0.001)
        trainer.stop()
        thread.join()
        self.assertGreaterEqual(len(updates), 50)


SCRIPT = """
import lockstep, os, signal
def press(event):
    if isinstance(event, lockstep.events.Update) and event.iteration == 5:
        os.kill(os.getpid(), signal.SIGINT)
try:
    if {step}:
        trainer = lockstep.Trainer("solver.prototxt", set={{"max_iter": 1000000}})
        trainer.step(3)
        os.kill(os.getpid(), signal.SIGINT)
    else:
        lockstep.train("solver.prototxt", set={{"max_iter": 1000000}}, on_event=press)
except KeyboardInterrupt:
    print("interrupted")
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
"""


class Interrupt(Case):
    def run_script(self, step):
        return subprocess.run([sys.executable, "-c", SCRIPT.format(step=step)],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False)

    def test_ctrl_c_writes_a_snapshot(self):
        done = self.run_script(False)
        self.assertEqual((done.returncode, done.stdout), (0, "interrupted\n"))
        self.assertTrue(os.path.exists("net_iter_5.safetensors"))

    def test_ctrl_c_while_it_steps(self):
        script = ("import lockstep\n"
                  "trainer = lockstep.Trainer('solver.prototxt')\n"
                  "print('ready', flush=True)\n"
                  "try:\n    trainer.step(10**9)\n"
                  "except KeyboardInterrupt:\n"
                  "    print(trainer.iteration)\n")
        with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE,
                              text=True) as process:
            self.assertEqual(process.stdout.readline(), "ready\n")
            # Before the loop has begun this is an ordinary KeyboardInterrupt.
            timer = threading.Timer(0.5, process.send_signal, [signal.SIGINT])
            timer.start()
            iteration = process.stdout.read().strip()
        self.assertEqual(process.returncode, 0)
        self.assertTrue(os.path.exists(f"net_iter_{iteration}.safetensors"), iteration)


class Errors(Case):
    def test_classes_and_places(self):
        with self.assertRaises(lockstep.DefinitionError) as caught:
            lockstep.Trainer("none.prototxt")
        self.assertEqual(caught.exception.place, "none.prototxt")
        self.assertEqual(caught.exception.status, 3)
        self.assertIsInstance(caught.exception, ValueError)
        self.write("bad.prototxt", 'net: "net.prototxt"\nbase_lrr: 1\nmomentun: 2 max_iter: 1\n')
        with self.assertRaises(lockstep.DefinitionError) as caught:
            lockstep.Trainer("bad.prototxt")
        places = [p.place for p in caught.exception.problems]
        self.assertEqual(places, ["bad.prototxt:2:1", "bad.prototxt:3:1"])
        self.assertIn("base_lr", str(caught.exception))
        with self.assertRaises(lockstep.WeightsError):
            lockstep.Trainer("solver.prototxt", weights="none.safetensors")
        with self.assertRaises(lockstep.UsageError) as caught:
            lockstep.Trainer("solver.prototxt", workers=-1)
        self.assertTrue(caught.exception.hint)
        self.write("missing.prototxt", 'layer { name: "d" type: "Data" top: "data" top: "label" '
                   'data_param { source: "nowhere" backend: LMDB batch_size: 1 } }'
                   'layer { name: "l" type: "SoftmaxWithLoss" bottom: "data" bottom: "label" }')
        with self.assertRaises(lockstep.DataError):
            lockstep.Trainer("solver.prototxt", set={"net": "missing.prototxt"})

    def test_snapshots_in_the_way(self):
        lockstep.train("solver.prototxt", set={"max_iter": 1})
        with self.assertRaises(lockstep.UsageError):
            lockstep.train("solver.prototxt", set={"max_iter": 1})
        lockstep.train("solver.prototxt", set={"max_iter": 1}, overwrite=True)

    def test_strings(self):
        with self.assertRaises(ValueError):
            lockstep.Trainer("a\0b")
        with self.assertRaises(TypeError):
            lockstep.Trainer("solver.prototxt", no_such_option=1)

    def test_divergence(self):
        with self.assertRaises(lockstep.DivergedError):
            lockstep.train("solver.prototxt", set={"base_lr": 1e30})


class Parameters(Case):
    def test_reading_and_writing(self):
        trainer = lockstep.Trainer("solver.prototxt")
        self.assertEqual(list(trainer.parameters),
                         ["conv.weight", "conv.bias", "ip.weight", "ip.bias"])
        self.assertEqual(trainer.parameters.shape("conv.weight"), (4, 1, 5, 5))
        trainer.step()
        bias = trainer.parameters.tensor("ip.bias").tolist()
        gradient = trainer.gradients.tensor("ip.bias").tolist()
        for before, slope in zip(bias, gradient):  # one step from 0
            self.assertAlmostEqual(before, -0.05 * slope, places=6)
        before = trainer.hash()
        trainer.parameters["ip.bias"] = [float(i) for i in range(10)]
        self.assertEqual(trainer.parameters.tensor("ip.bias").tolist(), list(range(10)))
        self.assertNotEqual(trainer.hash(), before)
        with self.assertRaises(ValueError):
            trainer.parameters["ip.bias"] = [1.0]
        with self.assertRaises(KeyError):
            trainer.parameters["none"]
        with self.assertRaises(TypeError):
            trainer.gradients["ip.bias"] = [0.0] * 10


class Pixels(Case):
    """Of a net that was trained on pixels / 256, in its deploy form."""

    def setUp(self):
        super().setUp()
        lockstep.train("solver.prototxt", set={"max_iter": 1})
        with open("net.prototxt", encoding="utf-8") as file:
            text = file.read()
        layers = text[text.index('layer { name: "conv"'):text.index('layer { name: "accuracy"')]
        self.write("deploy.prototxt", 'layer { name: "data" type: "Input" top: "data" '
                   "input_param { shape { dim: [1, 1, 28, 28] } } }\n" + layers)
        self.net = lockstep.Net("deploy.prototxt", "net_iter_1.safetensors")
        self.addCleanup(self.net.close)

    def test_transform(self):
        pixels = [[[[float((i * j) % 256) for i in range(28)] for j in range(28)]]]
        made = self.net.transform(pixels).tolist()
        self.assertEqual(made, [[[[x / 256 for x in row] for row in plane] for plane in picture]
                                for picture in pixels])
        self.assertEqual(self.net.transform(pixels[0]).tolist(), made[0])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.net.predict(made)
        with self.assertRaises(lockstep.DataError):
            self.net.transform([[[[1.0] * 20] * 20]])

    def test_pixels_that_were_transformed_before(self):
        pixels = [[[[float(i * j % 256) for i in range(28)] for j in range(28)]]]
        with self.assertWarnsRegex(UserWarning, "0 to 255"):
            self.net.transform(self.net.transform(pixels))

    def test_pixels_as_they_are(self):
        pixels = [[[[255.0] * 28] * 28]]
        with self.assertWarnsRegex(UserWarning, "transform"):
            self.net.predict(pixels)
        with warnings.catch_warnings():  # once is enough
            warnings.simplefilter("error")
            self.net.predict(pixels)


class Dummy(Case):
    def test_dummy_data(self):
        self.write("missing.prototxt", 'layer { name: "d" type: "Data" top: "data" top: "label" '
                   'data_param { source: "nowhere" backend: LMDB batch_size: 4 } }'
                   'layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" '
                   'inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }'
                   'layer { name: "l" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" }')
        solver = lockstep.Solver("solver.prototxt", set={"net": "missing.prototxt"})
        told = []
        solver.use_dummy_data(["data=4,1,6,6"], tell=told.append)
        self.assertTrue(told)
        before = sorted(os.listdir("."))
        trainer = lockstep.Trainer(solver)
        trainer.step(2)
        self.assertEqual(trainer.parameters.shape("ip.weight"), (3, 36))
        trainer.close()
        self.assertEqual(sorted(os.listdir(".")), before)  # it writes nothing


if __name__ == "__main__":
    unittest.main()
