#!/usr/bin/env python3
"""Lockstep against PyTorch, network by network, on this machine.

    bench.py --build FOLDER --peer PYTHON [--json FILE] [--only NET]... [--pairs N] [--seconds S]
             [--no-extras]

Both arms of a network are processes that wait while the other runs. They take turns of about S
seconds, N pairs of turns; the peak of multiply-adds and the bandwidth of memory are probed before
and after each pair, and a pair in a slow phase of the machine is run again. Medians are printed.

Extras: workers 1 against all, training from files, batches of 1 to 2048, and the time from the start
of a process to the end of its first iteration.

SPDX-License-Identifier: BSD-2-Clause
"""

import argparse
import json
import os
import statistics
import tempfile

import definitions
import files
import networks
from arms import Failed, Lockstep, Machine, Peer
from settings import Settings, cores, name_of

HERE = os.path.dirname(os.path.abspath(__file__))
REPEATS = 5  # at most so many pairs of a network are run again
WORKERS = ("cifar10_quick", "resnet20")  # one worker against all
SCALED = "cifar10_quick"  # with batches of many sizes


def say(text=""):
    print(text, flush=True)


def path_of(name, kind):
    return os.path.join(HERE, "nets", f"{name}_{kind}.prototxt")


class Pairs:
    """Turns of two arms, with what the machine could do meanwhile."""

    def __init__(self, machine, count, seconds):
        self.machine, self.count, self.seconds = machine, count, seconds

    def turn(self, arm, iterations):
        """Seconds of a turn, and whether others kept the arm from its cores."""
        before = arm.waited()
        seconds = arm.run(iterations)
        return seconds, arm.waited() - before > 0.1 * seconds * cores()

    def run(self, arms):
        """For each arm the iterations a second of each pair; the peak of each pair; how many pairs
        were run again."""
        iterations = [arm.iterations_for(self.seconds) for arm in arms]
        rates, peaks, again = [[] for _ in arms], [], 0
        before = self.machine.probe()
        while len(peaks) < self.count:
            turns = [self.turn(arm, n) for arm, n in zip(arms, iterations)]
            after = self.machine.probe()
            slow = (self.machine.is_slow(before) or self.machine.is_slow(after) or
                    any(kept for _, kept in turns))
            probes, before = (before, after), after
            if slow and again < REPEATS:
                again += 1
                continue
            for rate, n, (seconds, _) in zip(rates, iterations, turns):
                rate.append(n / seconds)
            peaks.append(statistics.mean(flops for flops, _ in probes))
        return rates, peaks, again


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.machine = Machine(options.build)
        self.lockstep = Lockstep(options.build, folder)
        self.peer = Peer(options.peer, folder)
        kept = os.path.join(options.build, "bench", "peer_settings.json")
        self.settings = Settings(self.peer, kept, say)
        self.pairs = Pairs(self.machine, options.pairs, options.seconds)

    def setting(self, network, mode):
        return self.settings.best(network, mode)

    def start_lockstep(self, network, mode):
        """An arm, and batches in one of its iterations."""
        solver = path_of(network.name, "solver")
        if mode == "train":
            return self.lockstep.train(solver), 1
        batches = max(1, round(1e11 / (network.batch * network.flops(mode))))
        return self.lockstep.test(path_of(network.name, "train_test"), solver, batches), batches

    def row(self, network, mode):
        """A network in a mode, as the JSON has it."""
        setting = self.setting(network, mode)
        ours, batches = self.start_lockstep(network, mode)
        theirs = self.peer.start(network, mode, setting)
        (our_rates, their_rates), peaks, again = self.pairs.run((ours, theirs))
        ours.stop(), theirs.stop()
        our_rates = [rate * batches * network.batch for rate in our_rates]
        their_rates = [rate * network.batch for rate in their_rates]
        mine, other = statistics.median(our_rates), statistics.median(their_rates)
        shares = [rate * network.flops(mode) / peak for rate, peak in zip(our_rates, peaks)]
        return {"network": network.name, "batch": network.batch, "mode": mode,
                "lockstep_samples_per_s": round(mine, 3), "peer_samples_per_s": round(other, 3),
                "ratio": round(mine / other, 3), "lockstep_rss_mb": round(ours.memory, 1),
                "peer_rss_mb": round(theirs.memory, 1),
                "peak_share": round(statistics.median(shares), 4),
                "peer": f"{self.peer.name}, {name_of(setting)}",
                "lockstep_start_s": round(ours.start_seconds, 3),
                "peer_start_s": round(theirs.start_seconds, 3), "repeated_pairs": again}

    # ---- Extras, each of them figures of a row of training

    def workers(self, network):
        """Speed-up from one worker to as many as there are cores."""
        arms = [self.lockstep.train(path_of(network.name, "solver"), n) for n in (1, cores())]
        rates, _, _ = self.pairs.run(arms)
        for arm in arms:
            arm.stop()
        one, all = (statistics.median(rate) * network.batch for rate in rates)
        say(f"{network.name}: 1 worker {one:.4g} samples/s, {cores()} workers {all:.4g}: "
            f"{100 * all / one / cores():.1f} % of {cores()} times as many")
        return {"one_worker_samples_per_s": round(one, 3), "all_workers_samples_per_s":
                round(all, 3), "efficiency": round(all / one / cores(), 4)}

    def from_files(self, network):
        """Training with the input read from files and transformed."""
        folder = os.path.join(self.options.build, "bench", "files", network.name)
        files.write(network, folder)
        data = files.input_text(network, folder)
        solver = definitions.write(network, "From files.", self.folder, data)
        ours = self.lockstep.train(solver)
        theirs = self.peer.start(network, "train", self.setting(network, "train"), files=folder)
        (our_rates, their_rates), _, _ = self.pairs.run((ours, theirs))
        ours.stop(), theirs.stop()
        mine, other = (statistics.median(rates) * network.batch
                       for rates in (our_rates, their_rates))
        say(f"{network.name} from files: {mine:.4g} samples/s, peer {other:.4g}: "
            f"{mine / other:.2f}")
        return {"lockstep_samples_per_s": round(mine, 3), "peer_samples_per_s": round(other, 3),
                "ratio": round(mine / other, 3)}

    def batches(self):
        """Throughput and memory of both over sizes of the batch."""
        say(f"\n{SCALED}, batches of many sizes (samples/s, MiB)\n"
            f"{'batch':>6} {'lockstep':>10} {'peer':>10} {'ratio':>6} {'memory':>8} {'peer':>8}")
        rows, size = [], 1
        while size <= 2048:
            rows.append(self.one_batch(networks.cifar10_quick(size)))
            row = rows[-1]
            say(f"{size:6d} {row['lockstep_samples_per_s']:10.4g} {row['peer_samples_per_s']:10.4g}"
                f" {row['ratio']:6.2f} {row['lockstep_rss_mb']:8.1f} {row['peer_rss_mb']:8.1f}")
            size *= 2
        return rows

    def one_batch(self, network):
        setting = {**self.setting(networks.by_name(SCALED), "train")}
        if setting["processes"] > 1:
            setting.update(processes=1, threads=cores())
        few = network.batch <= 16 and cores() > 1  # then one thread may be the better setting
        candidates = [setting, {**setting, "threads": 1}] if few else [setting]
        solver = definitions.write(network, "A batch of another size.", self.folder)
        arms = [self.lockstep.train(solver)]
        arms += [self.peer.start(network, "train", each, network.batch) for each in candidates]
        rates, _, _ = Pairs(self.machine, 3, 0.7).run(arms)
        for arm in arms:
            arm.stop()
        mine, *others = (statistics.median(rate) * network.batch for rate in rates)
        best = max(range(len(others)), key=others.__getitem__)
        return {"batch": network.batch, "lockstep_samples_per_s": round(mine, 3),
                "peer_samples_per_s": round(others[best], 3), "ratio": round(mine / others[best], 3),
                "lockstep_rss_mb": round(arms[0].memory, 1),
                "peer_rss_mb": round(arms[1 + best].memory, 1)}

    def extras(self, rows):
        trained = {row["network"]: row for row in rows if row["mode"] == "train"}
        say()
        for name in WORKERS:
            if name in trained:
                trained[name]["workers"] = self.workers(networks.by_name(name))
        for name in files.TRANSFORM:
            if name in trained:
                trained[name]["from_files"] = self.from_files(networks.by_name(name))
        if SCALED in trained:
            trained[SCALED]["batches"] = self.batches()


def print_head():
    say(f"{'network':16} {'batch':>5} {'mode':5} {'samples/s':>10} {'peer':>10} {'ratio':>6} "
        f"{'of peak':>8} {'MiB':>7} {'peer':>7} {'start':>6} {'peer':>6}  setting of the peer")


def print_row(row):
    note = f"  ({row['repeated_pairs']} pairs again)" if row["repeated_pairs"] else ""
    say(f"{row['network']:16} {row['batch']:5d} {row['mode']:5} "
        f"{row['lockstep_samples_per_s']:10.4g} {row['peer_samples_per_s']:10.4g} "
        f"{row['ratio']:6.2f} {100 * row['peak_share']:6.1f} % {row['lockstep_rss_mb']:7.0f} "
        f"{row['peer_rss_mb']:7.0f} {row['lockstep_start_s']:6.2f} {row['peer_start_s']:6.2f}  "
        f"{row['peer'].split(', ', 1)[1]}{note}")


def arguments():
    names = [make().name for make in networks.ALL]
    parser = argparse.ArgumentParser(prog="bench", description="Lockstep against PyTorch.")
    parser.add_argument("--build", required=True, help="the build folder of Lockstep")
    parser.add_argument("--peer", required=True, help="a Python interpreter that has PyTorch")
    parser.add_argument("--json", help="where to write the rows")
    parser.add_argument("--only", action="append", choices=names, help="this network")
    parser.add_argument("--mode", choices=("train", "test"), help="this mode only")
    parser.add_argument("--pairs", type=int, default=5, help="pairs of turns of a network")
    parser.add_argument("--seconds", type=float, default=2.0, help="length of a turn, about")
    parser.add_argument("--no-extras", action="store_true", help="the table only")
    options = parser.parse_args()
    options.only = options.only or names
    if options.pairs < 1 or not 0 < options.seconds <= 600:
        parser.error("at least one pair, and turns of at most 600 seconds")
    return options


def write_json(path, rows):
    if path:
        with open(path, "w") as file:
            file.write("[\n " + ",\n ".join(json.dumps(row) for row in rows) + "\n]\n")


def measure(bench, options):
    rows, failed = [], []
    for name in options.only:
        for mode in (options.mode,) if options.mode else ("train", "test"):
            try:
                rows.append(bench.row(networks.by_name(name), mode))
            except Failed as failure:
                failed.append(f"{name} {mode}: {failure}")
                say(f"{name} {mode}: failed: {failure}")
                continue
            print_row(rows[-1])
            write_json(options.json, rows)
    if not options.no_extras:
        bench.extras(rows)
        write_json(options.json, rows)
    return failed


def main():
    options = arguments()
    with tempfile.TemporaryDirectory(prefix="lockstep-bench-") as folder:
        bench = Bench(options, folder)
        for _ in range(5):
            bench.machine.probe()
        say(f"{cores()} cores: {bench.machine.flops / 1e9:.0f} GFLOP/s of multiply-adds, "
            f"{bench.machine.bytes / 1e9:.1f} GB/s of memory. Peer: {bench.peer.name}. Medians of "
            f"{options.pairs} pairs of turns of {options.seconds:g} s.\n")
        print_head()
        failed = measure(bench, options)
    if failed:
        raise SystemExit("bench: not measured: " + "; ".join(failed))


if __name__ == "__main__":
    main()
