#!/usr/bin/env python3
"""Lockstep on one card of NVIDIA's against PyTorch on the same card, network by network.

    cards.py --build FOLDER [--peer PYTHON] [--json FILE] [--only NET]... [--card N] [--seconds S]
             [--rounds N] [--budget S] [--small]

The arms of a network are, in FP32, TF32 and BF16, Lockstep and two settings of the peer's: eager with
channels_last, and compiled with CUDA graphs. They are processes that take turns; medians are printed,
and a row in JSON is written behind each network, so that what was measured is kept if time runs out.
Input lies in the card's memory. A batch is one micro-batch, as it is the peer's.

--small takes batches of two and turns of one iteration: whether all of this works, without a card,
on the stand-in of the tests. Without a peer that has CUDA, Lockstep's speeds are all there is.

SPDX-License-Identifier: BSD-2-Clause
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import definitions
import networks
from arms import Arm, Failed, Peer

# The networks and how many samples an update of theirs has on a card.
BATCHES = {"lenet": 512, "cifar10_quick": 512, "resnet20": 512, "resnet50": 128, "vgg16": 64,
           "mobilenet": 128, "gpt2_1024": 8}
SMALL = ("lenet", "cifar10_quick")  # that the stand-in computes in some seconds
PRECISIONS = ("FP32", "TF32", "BF16")
PEER_SETTINGS = {"eager": {"format": "channels_last"},
         "graphs": {"format": "channels_last", "compile": True}}


def say(text=""):
    print(text, flush=True)


def peer_of(python, folder):
    """The peer, or None where the interpreter has no PyTorch that sees a card."""
    ask = "import torch, sys; sys.exit(0 if torch.cuda.is_available() else 1)"
    if not python or subprocess.run([python, "-c", ask], capture_output=True).returncode != 0:
        return None
    return Peer(python, folder)


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.peer = peer_of(options.peer, folder)
        self.program = os.path.join(options.build, "bench", "bench_worker")
        self.end = time.monotonic() + options.budget

    def network(self, name):
        network = networks.by_name(name)
        batch = 2 if self.options.small else BATCHES[name]
        network = networks.with_batch(network, batch)
        network.micro_batch = batch
        return network

    def start_lockstep(self, network, precision):
        folder = os.path.join(self.folder, network.name, precision)
        os.makedirs(folder, exist_ok=True)
        text = precision if precision != "FP32" else None
        solver = definitions.write(network, "For a benchmark.", folder, precision=text)
        return Arm([self.program, "train", solver, "1", f"cuda:{self.options.card}"])

    def start_peer(self, network, precision, setting):
        return self.peer.start(network, "train", {"threads": 1, "processes": 1, "device": "cuda",
                                                  "precision": precision.lower(), **setting},
                               network.batch)

    def start_arms(self, network, precision):
        """By name, the arms that could be started, and why others could not."""
        starts = {"lockstep": lambda: self.start_lockstep(network, precision)}
        for name, setting in PEER_SETTINGS.items() if self.peer else ():
            starts[name] = lambda setting=setting: self.start_peer(network, precision, setting)
        arms, failures = {}, {}
        for name, start in starts.items():
            try:
                arms[name] = start()
            except Failed as failure:
                failures[name] = str(failure)
                say(f"{network.name} {precision}, {name}: {str(failure).splitlines()[-1]}")
        return arms, failures

    def measure(self, network, precision):
        """A row of the table."""
        arms, failures = self.start_arms(network, precision)
        row = {"network": network.name, "batch": network.batch, "precision": precision}
        try:
            rates = self.take_turns(arms)
        finally:
            for arm in arms.values():
                arm.stop()
        for name, arm in arms.items():
            row[name] = {"samples_per_s": round(statistics.median(rates[name]) * network.batch, 2),
                         "rounds": [round(rate * network.batch, 2) for rate in rates[name]],
                         "mib": round(arm.memory, 1), "start_s": round(arm.start_seconds, 3)}
        row["failed"] = failures
        others = [row[name]["samples_per_s"] for name in PEER_SETTINGS if name in row]
        if others and "lockstep" in row:
            row["ratio"] = round(row["lockstep"]["samples_per_s"] / max(others), 3)
        return row

    def take_turns(self, arms):
        if self.options.small:
            counts = {name: 1 for name in arms}
        else:
            counts = {name: arm.iterations_for(self.options.seconds) for name, arm in arms.items()}
        rates = {name: [] for name in arms}
        for _ in range(self.options.rounds):
            for name, arm in arms.items():
                rates[name].append(counts[name] / arm.run(counts[name]))
        return rates

    def rows(self):
        """The rows of all networks, until the time is over."""
        for name in self.options.only:
            for precision in PRECISIONS:
                if time.monotonic() > self.end:
                    say(f"{name} {precision}: not measured, the time is over")
                    yield {"network": name, "precision": precision, "failed": {"all": "no time"}}
                    continue
                yield self.measure(self.network(name), precision)


def best_of_all_precisions(rows):
    """Each network's ratio to the peer's best setting of any precision."""
    best = {}
    for row in rows:
        for name in PEER_SETTINGS:
            speed = row.get(name, {}).get("samples_per_s", 0)
            best[row["network"]] = max(speed, best.get(row["network"], 0))
    for row in rows:
        if best.get(row["network"]) and "lockstep" in row:
            row["ratio_to_best"] = round(row["lockstep"]["samples_per_s"] / best[row["network"]], 3)


def print_row(row):
    cells = [f"{row.get(name, {}).get('samples_per_s', float('nan')):12.5g}"
             for name in ("lockstep", *PEER_SETTINGS)]
    ratio = f"{row['ratio']:7.2f}" if "ratio" in row else "      -"
    say(f"{row['network']:14} {row.get('batch', 0):5d} {row['precision']:5}" + "".join(cells) + ratio)


def arguments():
    parser = argparse.ArgumentParser(prog="cards", description="Lockstep against PyTorch on a card.")
    parser.add_argument("--build", required=True, help="the build folder of Lockstep")
    parser.add_argument("--peer", default="python3", help="a Python interpreter that has PyTorch")
    parser.add_argument("--json", help="where to write the rows")
    parser.add_argument("--only", action="append", choices=list(BATCHES), help="this network")
    parser.add_argument("--card", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=3, help="rounds of turns of a network")
    parser.add_argument("--seconds", type=float, default=0.7, help="length of a turn, about")
    parser.add_argument("--budget", type=float, default=360, help="seconds for all of it")
    parser.add_argument("--small", action="store_true", help="on the stand-in of the tests")
    options = parser.parse_args()
    options.only = options.only or list(SMALL if options.small else BATCHES)
    if options.rounds < 1 or not 0 < options.seconds <= 600:
        parser.error("at least one round, and turns of at most 600 seconds")
    return options


def write_json(path, rows):
    if path:
        with open(path, "w") as file:
            file.write("[\n " + ",\n ".join(json.dumps(row) for row in rows) + "\n]\n")


def main():
    options, rows = arguments(), []
    with tempfile.TemporaryDirectory(prefix="lockstep-cards-") as folder:
        bench = Bench(options, folder)
        say(f"Peer: {bench.peer.name if bench.peer else 'none that sees a card'}. Samples a second, "
            f"medians of {options.rounds} rounds.\n")
        say(f"{'network':14} {'batch':>5} {'':5}{'Lockstep':>12}{'eager':>12}{'graphs':>12}  ratio")
        for row in bench.rows():
            rows.append(row)
            best_of_all_precisions(rows)
            print_row(row)
            write_json(options.json, rows)
    if not any("lockstep" in row for row in rows):
        sys.exit("cards: nothing was measured")


if __name__ == "__main__":
    main()
