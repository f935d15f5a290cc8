#!/usr/bin/env python3
"""Lockstep on several ranks: against one rank, against PyTorch's DistributedDataParallel, and against
what `lockstep plan --ranks` says.

    ranks.py --build FOLDER [--peer PYTHON] [--only NET]... [--mpi KIND] [--rate RATE]... [--no-one]
             [--no-peer] [--latency TIME] [--pairs N] [--seconds S] [--json FILE]

Two ranks share the cores of this machine, half of them each.

1. Two ranks on this machine against one rank with all cores (cifar10_quick and ResNet-20).
2. Two ranks in network namespaces, whose links have a rate as `tc` writes it (1gbit; none: no
   limit), against two processes of PyTorch with gloo on the same links. Beside the time of an
   update: what is waited for, how long gradients and weights are under way, what a rank sends, and
   what the plan predicts. Left out where namespaces are not allowed (tools/netns.sh).

Arms take turns as in bench.py.

SPDX-License-Identifier: BSD-2-Clause
"""

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import networks
from arms import Arm, Failed, Machine
from bench import Rounds, path_of, say
from settings import cores

HERE = os.path.dirname(os.path.abspath(__file__))
NETNS = os.path.join(HERE, "..", "tools", "netns.sh")
RANKS = 2
ONE_MACHINE = ("cifar10_quick", "resnet20")
FIGURES = ("small", "wait_sums", "wait_weights", "transfer", "sums", "weights", "factors",
           "small_bytes")

# As tests/support/mpi.sh: many ranks on few cores, also as root.
ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "OMPI_MCA_rmaps_base_oversubscribe": "1",
               "OMPI_MCA_hwloc_base_binding_policy": "none",
               "OMPI_MCA_mpi_yield_when_idle": "1",
               "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
               "OMPI_MCA_btl_base_warn_component_unused": "0"}


class Job(Arm):
    """Several ranks; figures of its turns are added up."""

    def __init__(self, command, turns, build, kind):
        self.turns, self.updates, self.sums = turns, 0, [0.0] * len(FIGURES)
        module = os.path.join(build, f"liblockstep_{kind}.so")
        super().__init__(command, LOCKSTEP_MPI=module, **ENVIRONMENT)

    def run(self, count):
        seconds = super().run(count)
        self.updates += count
        self.sums = [a + b for a, b in zip(self.sums, self.more)]
        return seconds

    def forget(self):
        self.updates, self.sums = 0, [0.0] * len(FIGURES)

    def figures(self):
        """Of an update."""
        return {name: sum / max(1, self.updates) for name, sum in zip(FIGURES, self.sums)}

    def stop(self):
        super().stop()
        shutil.rmtree(self.turns, ignore_errors=True)


class Network:
    """Namespaces, one for each rank, for as long as this lives."""

    def __init__(self):
        self.name = f"lsb{os.getpid()}"
        made = subprocess.run([NETNS, "up", self.name, str(RANKS)], capture_output=True, text=True)
        self.problem = made.stderr.strip() if made.returncode != 0 else None

    def rate(self, rate):
        subprocess.run([NETNS, "rate", self.name, rate], check=True)

    def down(self):
        if self.problem is None:
            subprocess.run([NETNS, "down", self.name], check=False)


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.machine = Machine(options.build)
        self.pairs = Rounds(self.machine, options.pairs, options.seconds)
        self.workers = max(1, cores() // RANKS)

    def program(self):
        return os.path.join(self.options.build, "bench", "bench_worker")

    def job(self, network, name=None):
        """A job of two ranks, here or in namespaces."""
        turns = tempfile.mkdtemp(dir=self.folder)
        rank = [self.program(), "job", path_of(network.name, "solver"), turns, str(self.workers)]
        kind = self.options.mpi
        if name is None:
            return Job([f"mpirun.{kind}", "-n", str(RANKS), *rank], turns, self.options.build, kind)
        return Job([NETNS, "mpi", name, kind, *rank], turns, self.options.build, kind)

    def one(self, network):
        all = Arm([self.program(), "train", path_of(network.name, "solver"), str(cores())])
        job = self.job(network)
        (alone, ranks), _, again = self.pairs.run((all, job))
        all.stop(), job.stop()
        alone, ranks = (statistics.median(rates) for rates in (alone, ranks))
        say(f"{network.name:16} {network.batch * alone:10.4g} {network.batch * ranks:10.4g} "
            f"{100 * ranks / alone:7.1f} %")
        return {"network": network.name, "one_rank_samples_per_s": network.batch * alone,
                "two_ranks_samples_per_s": network.batch * ranks, "ratio": ranks / alone,
                "repeated_pairs": again}

    # ---- On links

    def peer(self, network, name):
        meeting = os.path.join(self.folder, f"meeting-{time.monotonic_ns()}")
        return Arm([NETNS, "run", name, "0", self.options.peer,
                    os.path.join(HERE, "peer", "worker.py"), network.name, "train", "--threads",
                    str(self.workers), "--format", "channels_last", "--processes", str(RANKS),
                    "--meeting", meeting, "--network-name", name], GLOO_SOCKET_IFNAME="link0")

    def predicted(self, network, rate):
        """The plan's row: of as many plans as ranks, made at once because ranks share caches and memory,
        the one that other jobs disturbed least."""
        link = "100Gbps" if rate == "none" else rate.replace("bit", "bps")
        command = [os.path.join(self.options.build, "lockstep"), "plan", "--solver",
                   path_of(network.name, "solver"), "--ranks", f"1,{RANKS}", "--workers",
                   str(self.workers), "--link", f"{link},{self.options.latency}", "--json"]
        plans = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
                 for _ in range(RANKS)]
        rows = [json.loads(plan.communicate()[0])["rows"][1] for plan in plans]
        return min(rows, key=lambda row: row["seconds"])

    def link(self, network, name, rate):
        arms = [self.job(network, name)]
        if not self.options.no_peer:
            arms.append(self.peer(network, name))
        for arm in arms:
            arm.iterations_for(self.options.seconds / 2)
        arms[0].forget()
        rates, _, again = self.pairs.run(arms)
        figures = arms[0].figures()
        for arm in arms:
            arm.stop()
        plan = self.predicted(network, rate)
        row = {"network": network.name, "rate": rate, "mpi": self.options.mpi,
               "seconds": 1 / statistics.median(rates[0]), "predicted": plan["seconds"],
               "plan": plan, **figures, "repeated_pairs": again}
        if len(rates) > 1:
            row["peer_seconds"] = 1 / statistics.median(rates[1])
        return row


def print_link_head():
    say(f"\n{'network':16} {'rate':>7} {'update':>9} {'plan':>9} {'of it':>6} {'small':>8} "
        f"{'sums':>8} {'weights':>8} {'transfer':>9} {'sent KiB':>9} {'peer':>9} {'ratio':>6}"
        f"   (milliseconds)")


def print_link(row):
    sent = sum(row[kind] for kind in ("sums", "weights", "factors", "small_bytes"))
    peer = row.get("peer_seconds")
    say(f"{row['network']:16} {row['rate']:>7} {1e3 * row['seconds']:9.2f} "
        f"{1e3 * row['predicted']:9.2f} {row['seconds'] / row['predicted']:6.2f} "
        f"{1e3 * row['small']:8.2f} {1e3 * row['wait_sums']:8.2f} {1e3 * row['wait_weights']:8.2f} "
        f"{1e3 * row['transfer']:9.2f} {sent / 1024:9.1f} "
        + (f"{1e3 * peer:9.2f} {peer / row['seconds']:6.2f}" if peer else f"{'-':>9} {'-':>6}"))


def arguments():
    names = [make().name for make in networks.ALL]
    parser = argparse.ArgumentParser(prog="bench --ranks", description="Lockstep on two ranks.")
    parser.add_argument("--build", required=True, help="the build folder of Lockstep")
    parser.add_argument("--peer", help="a Python interpreter that has PyTorch")
    parser.add_argument("--json", help="where to write the rows")
    parser.add_argument("--only", action="append", choices=names, help="this network")
    parser.add_argument("--mpi", choices=("openmpi", "mpich"), default="openmpi")
    parser.add_argument("--rate", action="append", help="of links: none, 1gbit; default: both")
    parser.add_argument("--latency", default="50us,5us",
                        help="of links between namespaces and of a message, as plan has them")
    parser.add_argument("--no-one", action="store_true", help="not against one rank")
    parser.add_argument("--no-peer", action="store_true", help="not against PyTorch")
    parser.add_argument("--pairs", type=int, default=5, help="pairs of turns")
    parser.add_argument("--seconds", type=float, default=2.0, help="length of a turn, about")
    options = parser.parse_args()
    options.only = options.only or names
    options.rate = options.rate or ["none", "1gbit"]
    options.no_peer |= options.peer is None
    return options


def on_links(bench, network_of_ranks, options, rows, failed):
    print_link_head()
    for rate in options.rate:
        network_of_ranks.rate(rate)
        for name in options.only:
            try:
                rows.append(bench.link(networks.by_name(name), network_of_ranks.name, rate))
                print_link(rows[-1])
            except Failed as failure:
                failed.append(f"{name}, {rate}: {failure}")


def measure(bench, options, rows, failed):
    if not options.no_one:
        say(f"{'network':16} {'1 rank':>10} {'2 ranks':>10}   (samples/s)")
        for name in ONE_MACHINE:
            if name in options.only:
                rows.append(bench.one(networks.by_name(name)))
    network = Network()
    if network.problem is not None:
        say(network.problem)
        return
    try:
        on_links(bench, network, options, rows, failed)
    finally:
        network.down()


def main():
    options, rows, failed = arguments(), [], []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that no namespaces are left
    with tempfile.TemporaryDirectory(prefix="lockstep-ranks-") as folder:
        bench = Bench(options, folder)
        for _ in range(3):
            bench.machine.probe()
        measure(bench, options, rows, failed)
    if options.json:
        with open(options.json, "w") as file:
            file.write("[\n " + ",\n ".join(json.dumps(row) for row in rows) + "\n]\n")
    if failed:
        raise SystemExit("bench: not measured: " + "; ".join(failed))


if __name__ == "__main__":
    main()
