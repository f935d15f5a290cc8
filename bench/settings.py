"""The peer's best settings for a network: precision, compiled or not, threads, memory format, one
process or two.

They are searched once and kept in a file, because they belong to the peer's version, the machine and
the network, not to a run of the benchmark.

SPDX-License-Identifier: BSD-2-Clause
"""

import json
import os

from arms import Failed

FORMATS = ("contiguous", "channels_last")
# fp32; fp32 whose products may be computed from bf16 (set_float32_matmul_precision); autocast.
PRECISIONS = ("fp32", "medium", "bf16")
# What a figure of Lockstep's is held against: the best of these precisions of the peer's.
CLASSES = {"FP32": ("fp32",), "BF16": ("medium", "bf16"), "any": PRECISIONS}


def cores():
    return len(os.sched_getaffinity(0))


def thread_counts():
    """1, 2, 4 ... and all cores."""
    counts = [1]
    while 2 * counts[-1] < cores():
        counts.append(2 * counts[-1])
    return sorted({*counts, cores()})


def name_of(setting):
    text = f"{setting['threads']} threads" if setting["threads"] > 1 else "1 thread"
    if setting["processes"] > 1:
        text = f"{setting['processes']} processes x {text}"
    compiled = ", compiled" if setting["compile"] else ""
    return f"{setting['precision']}, {text}, {setting['format']}{compiled}"


class Settings:
    def __init__(self, peer, path, say):
        self.peer, self.path, self.say = peer, path, say
        self.known = {}
        if os.path.exists(path):
            with open(path) as file:
                self.known = json.load(file)

    def rate(self, network, mode, setting):
        """Iterations a second; 0 if the peer cannot do it."""
        try:
            arm = self.peer.start(network, mode, setting, network.batch)
        except Failed as failure:
            self.say(f"  {name_of(setting)}: not possible ({str(failure).splitlines()[-1]})")
            return 0.0
        count = arm.iterations_for(0.6)
        rate = max(count / arm.run(count) for _ in range(3))  # what disturbs makes it slower only
        arm.stop()
        self.say(f"  {name_of(setting)}: {rate * network.batch:.4g} samples/s")
        return rate

    def search(self, network, mode, precision):
        """The format with all cores; in that format fewer threads, then two processes; and the best
        of these once more, compiled."""
        def better(candidates, best):
            for setting in candidates:
                rate = self.rate(network, mode, setting)
                best = max(best, (rate, setting), key=lambda pair: pair[0])
            return best

        whole = {"precision": precision, "threads": cores(), "format": FORMATS[0], "processes": 1,
                 "compile": False}
        formats = FORMATS if len(network.shape) > 2 else FORMATS[:1]
        best = better([{**whole, "format": format} for format in formats], (0.0, whole))
        format = best[1]["format"]
        rest = [{**whole, "threads": n, "format": format} for n in thread_counts()[:-1]]
        if cores() > 1 and network.batch > 1:
            rest.append({**whole, "threads": cores() // 2, "format": format, "processes": 2})
        best = better(rest, best)
        return better([{**best[1], "compile": True}], best)

    def best_of(self, network, mode, precision):
        """Rate and setting for one precision of the peer's."""
        key = f"{self.peer.name} {cores()} cores {network.name} {network.batch} {mode} {precision}"
        if key not in self.known:
            self.say(f"{network.name} ({network.batch}) {mode}: the best setting of "
                     f"{self.peer.name} in {precision}")
            self.known[key] = self.search(network, mode, precision)
            with open(self.path + ".tmp", "w") as file:
                json.dump(self.known, file, indent=1)
            os.replace(self.path + ".tmp", self.path)
        return self.known[key]

    def best(self, network, mode, against="any"):
        """The fastest setting among CLASSES[against]."""
        found = [self.best_of(network, mode, precision) for precision in CLASSES[against]]
        rate, setting = max(found, key=lambda pair: pair[0])
        if not rate > 0:
            raise Failed(f"{self.peer.name} cannot do it in any of {', '.join(CLASSES[against])}")
        return setting
