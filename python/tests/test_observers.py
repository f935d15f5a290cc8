"""What a training writes beside its snapshots: logs, reports, TensorBoard, metrics, traces.
SPDX-License-Identifier: BSD-2-Clause"""
import json
import os
import unittest
import warnings

import lockstep
from support import Case

TIMES = {"time", "elapsed", "seconds", "samples_per_second", "workers", "memory"}


def lines_of(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def without_times(event):
    return {name: value for name, value in event.items() if name not in TIMES}


class Files(Case):
    def train(self, **options):
        return lockstep.train("solver.prototxt", job=None, overwrite=True, **options)

    def test_the_log_is_that_of_the_command_line(self):
        self.program("train", "--solver", "solver.prototxt", "--log-json", "theirs.json",
                     "--statistics", "--workers", "1")
        self.write("ours.json", "an old line\n")
        self.train(log_json="ours.json", statistics=True, workers=1)
        theirs, ours = lines_of("theirs.json"), lines_of("ours.json")
        self.assertEqual([e["event"] for e in ours], [e["event"] for e in theirs])
        for a, b in zip(ours, theirs):
            self.assertEqual(list(a), list(b))  # the same names in the same order
            if a["event"] != "start":  # lines for people: workers, memory
                # as text, so that whole numbers have no ".0"
                self.assertEqual(json.dumps(without_times(a)), json.dumps(without_times(b)))

    def test_a_resumed_log_goes_on(self):
        self.train(log_json="log.json", iterations=10)
        count = len(lines_of("log.json"))
        with open("log.json", "a", encoding="utf-8") as file:
            file.write('{"event": "cut o')
        self.train(log_json="log.json", resume="net_iter_10.safetensors")
        with open("log.json", encoding="utf-8") as file:
            lines = file.read().splitlines()
        self.assertGreater(len(lines), 2 * count)
        self.assertEqual(lines[count], '{"event": "cut o')
        json.loads(lines[count + 1])

    def test_statistics_are_events(self):
        found = []
        self.train(statistics=True, on_event=found.append)
        found = [e for e in found if isinstance(e, lockstep.events.Statistics)]
        self.assertEqual([e.iteration for e in found], [1, 11, 21])
        by_name = {p.name: p for p in found[0].parameters}
        self.assertEqual(set(by_name), {"conv.weight", "conv.bias", "ip.weight", "ip.bias"})
        weight = by_name["ip.weight"]
        self.assertEqual(sum(weight.weights.counts), weight.size)
        self.assertEqual(len(weight.gradient.edges), len(weight.gradient.counts) + 1)
        self.assertGreater(found[0].update_norm, 0)

    def test_report_board_metrics_and_trace(self):
        self.train(report="report", tensorboard="board", metrics="here.prom", trace="trace.json",
                   workers=2)
        with open("report/report.html", encoding="utf-8") as file:
            page = file.read()
        self.assertIn('content="lockstep"', page)
        self.assertIn("InnerProduct", page)  # the definition
        self.assertNotIn('http-equiv="refresh"', page)  # it is over
        self.assertEqual(lines_of("report/log.json")[-1]["event"], "end")
        self.assertEqual(len(os.listdir("board")), 1)
        with open("here.prom", encoding="utf-8") as file:
            self.assertIn("lockstep_iteration 30", file.read())
        with open("trace.json", encoding="utf-8") as file:
            self.assertTrue(json.load(file)["traceEvents"])

    def test_files_that_are_not_ours_stay(self):
        os.mkdir("report")
        self.write("report/report.html", "<html>mine</html>")
        with self.assertRaises(lockstep.UsageError):
            lockstep.Trainer("solver.prototxt", report="report")
        self.write("report/report.html", "")
        self.write("report/log.json", "no events\n")
        with self.assertRaises(lockstep.DataError):
            lockstep.Trainer("solver.prototxt", report="report")
        with open("report/log.json", encoding="utf-8") as file:
            self.assertEqual(file.read(), "no events\n")
        with self.assertRaises(OSError):
            lockstep.Trainer("solver.prototxt", log_json="no/folder/log.json")
        with self.assertRaises(ValueError):
            lockstep.Trainer("solver.prototxt", trace_limit=1 << 20)

    @unittest.skipUnless(os.path.exists("/dev/full"), "needs /dev/full")
    def test_a_full_disk_is_a_warning(self):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            result = self.train(log_json="/dev/full")
        self.assertEqual(result.iteration, 30)
        self.assertEqual([w.category for w in said], [RuntimeWarning])


if __name__ == "__main__":
    unittest.main()
