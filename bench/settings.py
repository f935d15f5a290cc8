"""The peer's best setting for a network: threads, memory format, one process or two.

It is searched once and kept in a file, because it belongs to the peer's version, the machine and the
network, not to a run of the benchmark.

SPDX-License-Identifier: BSD-2-Clause
"""

import json
import os

from arms import Failed

FORMATS = ("contiguous", "channels_last")


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
    return f"{text}, {setting['format']}"


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
            arm = self.peer.start(network, mode, setting)
        except Failed as failure:
            self.say(f"  {name_of(setting)}: not possible ({str(failure).splitlines()[-1]})")
            return 0.0
        count = arm.iterations_for(0.6)
        rate = max(count / arm.run(count) for _ in range(3))  # what disturbs makes it slower only
        arm.stop()
        self.say(f"  {name_of(setting)}: {rate * network.batch:.4g} samples/s")
        return rate

    def search(self, network, mode):
        """The format with all cores; then fewer threads, then two processes, in that format."""
        def better(candidates, best):
            for setting in candidates:
                rate = self.rate(network, mode, setting)
                best = max(best, (rate, setting), key=lambda pair: pair[0])
            return best

        whole = {"threads": cores(), "format": FORMATS[0], "processes": 1}
        best = better([{**whole, "format": format} for format in FORMATS], (0.0, whole))
        format = best[1]["format"]
        rest = [{**whole, "threads": n, "format": format} for n in thread_counts()[:-1]]
        if cores() > 1 and network.batch > 1:
            rest.append({"threads": cores() // 2, "format": format, "processes": 2})
        return better(rest, best)[1]

    def best(self, network, mode):
        key = f"{self.peer.name} {cores()} cores {network.name} {network.batch} {mode}"
        if key not in self.known:
            self.say(f"{network.name} {mode}: the best setting of {self.peer.name}")
            self.known[key] = self.search(network, mode)
            with open(self.path + ".tmp", "w") as file:
                json.dump(self.known, file, indent=1)
            os.replace(self.path + ".tmp", self.path)
        return self.known[key]
