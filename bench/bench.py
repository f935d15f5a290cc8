#!/usr/bin/env python3
"""Lockstep against PyTorch, network by network, on this machine.

    bench.py --build FOLDER --peer PYTHON [--json FILE] [--only NET]... [--rounds N] [--seconds S]
             [--no-extras]

The arms of a network are Lockstep in FP32 and in BF16, the peer's best setting in fp32, its best
with products of bf16, and so its best of all (settings.py). All are processes that wait while
another runs. They take turns of about S seconds, N rounds of turns; the peak of multiply-adds and
the bandwidth of memory are probed before and after each round, and a round in a slow phase of the
machine is run again. Medians are printed.

Extras: workers 1 against all, training from files, batches of many sizes, and the time from the
start of a process to the beginning of its first iteration ("ready"), and to its end ("start").

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
REPEATS = 5  # at most so many rounds of a network are run again
WORKERS = ("cifar10_quick", "resnet20")  # one worker against all
# Networks with batches of many sizes, from the first to the second, each twice the one before.
SCALED = {"cifar10_quick": (1, 2048), "resnet20": (8, 256), "resnet50": (8, 256), "vgg16": (8, 256)}
PRECISIONS = ("FP32", "BF16")  # Lockstep's


def say(text=""):
    print(text, flush=True)


def path_of(name, kind):
    return os.path.join(HERE, "nets", f"{name}_{kind}.prototxt")


class Rounds:
    """Turns of some arms, with what the machine could do meanwhile."""

    def __init__(self, machine, count, seconds):
        self.machine, self.count, self.seconds = machine, count, seconds

    def turn(self, arm, iterations):
        """Seconds of a turn, and whether others kept the arm from its cores."""
        before = arm.waited()
        seconds = arm.run(iterations)
        return seconds, arm.waited() - before > 0.1 * seconds * cores()

    def run(self, arms):
        """For each arm the iterations a second of each round; the peak of each round; how many rounds
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
        self.rounds = Rounds(self.machine, options.rounds, options.seconds)

    def start_lockstep(self, network, mode, precision):
        """An arm, and batches in one of its iterations."""
        folder = os.path.join(self.folder, precision)
        os.makedirs(folder, exist_ok=True)
        text = precision if precision != "FP32" else None
        solver = definitions.write(network, "For a benchmark.", folder, precision=text)
        if mode == "train":
            return self.lockstep.train(solver), 1
        batches = max(1, round(1e11 / (network.batch * network.flops(mode))))
        net = solver.replace("_solver.", "_train_test.")
        return self.lockstep.test(net, solver, batches), batches

    def start_arms(self, network, mode):
        """By name, each arm with the samples of one of its iterations and its setting: Lockstep's by
        precision, and the peer's best by class of precision."""
        arms = {}
        for precision in PRECISIONS:
            arm, batches = self.start_lockstep(network, mode, precision)
            arms[precision] = (arm, batches * network.batch, None)
        for against in PRECISIONS:
            setting = self.settings.best(network, mode, against)
            arm = self.peer.start(network, mode, setting, network.batch)
            arms["peer " + against] = (arm, network.batch, setting)
        return arms

    def compare(self, arms, rounds):
        """Samples a second of each arm, by name; rates of each round; peaks; rounds run again."""
        try:
            rates, peaks, again = rounds.run([arm for arm, _, _ in arms.values()])
        finally:
            for arm, _, _ in arms.values():
                arm.stop()
        rates = {name: [rate * samples for rate in one]
                 for one, (name, (_, samples, _)) in zip(rates, arms.items())}
        return {name: statistics.median(one) for name, one in rates.items()}, rates, peaks, again

    def row(self, network, mode):
        """A network in a mode, as the JSON has it."""
        arms = self.start_arms(network, mode)
        speed, rates, peaks, again = self.compare(arms, self.rounds)
        best = max(("peer FP32", "peer BF16"), key=speed.get)
        row = {"network": network.name, "batch": network.batch, "mode": mode,
               "peer_best": f"{self.peer.name}, {name_of(arms[best][2])}",
               "peer_best_samples_per_s": round(speed[best], 3), "repeated_rounds": again}
        for name in PRECISIONS:
            arm, (peer, _, setting) = arms[name][0], arms["peer " + name]
            shares = [rate * network.flops(mode) / peak for rate, peak in zip(rates[name], peaks)]
            row[name] = {"lockstep_samples_per_s": round(speed[name], 3),
                         "peer_samples_per_s": round(speed["peer " + name], 3),
                         "ratio": round(speed[name] / speed["peer " + name], 3),
                         "ratio_to_best": round(speed[name] / speed[best], 3),
                         "peak_share": round(statistics.median(shares), 4),
                         "lockstep_rss_mb": round(arm.memory, 1), "peer_rss_mb":
                         round(peer.memory, 1), "lockstep_ready_s": round(arm.ready_seconds, 3),
                         "peer_ready_s": round(peer.ready_seconds, 3),
                         "lockstep_start_s": round(arm.start_seconds, 3),
                         "peer_start_s": round(peer.start_seconds, 3),
                         "peer": f"{self.peer.name}, {name_of(setting)}"}
        return row

    # ---- Extras, each of them figures of a row of training

    def workers(self, network):
        """Speed-up from one worker to as many as there are cores."""
        arms = [self.lockstep.train(path_of(network.name, "solver"), n) for n in (1, cores())]
        rates, _, _ = self.rounds.run(arms)
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
        setting = self.settings.best(network, "train", "FP32")
        theirs = self.peer.start(network, "train", setting, files=folder)
        (our_rates, their_rates), _, _ = self.rounds.run((ours, theirs))
        ours.stop(), theirs.stop()
        mine, other = (statistics.median(rates) * network.batch
                       for rates in (our_rates, their_rates))
        say(f"{network.name} from files: {mine:.4g} samples/s, peer {other:.4g}: "
            f"{mine / other:.2f}")
        return {"lockstep_samples_per_s": round(mine, 3), "peer_samples_per_s": round(other, 3),
                "ratio": round(mine / other, 3)}

    def batches(self, name):
        """Throughput and memory of all arms over sizes of the batch."""
        say(f"\n{name}, batches of many sizes (samples/s; MiB of FP32, BF16, peer)\n"
            f"{'batch':>6} {'FP32':>9} {'BF16':>9} {'peer fp32':>9} {'peer bf16':>9} "
            f"{'FP32/best':>9} {'BF16/best':>9} {'memory':>7} {'':>7} {'':>7}")
        rows, (size, last) = [], SCALED[name]
        while size <= last:
            try:
                rows.append(self.one_batch(networks.by_name(name), size))
            except Failed as failure:
                say(f"{size:6d} not measured: {str(failure).splitlines()[-1]}")
            size *= 2
        return rows

    def one_batch(self, network, size):
        arms = self.start_arms(networks.with_batch(network, size), "train")
        speed, _, _, _ = self.compare(arms, Rounds(self.machine, 3, 0.7))
        best = max(("peer FP32", "peer BF16"), key=speed.get)
        row = {"batch": size, "samples_per_s": {n: round(rate, 3) for n, rate in speed.items()},
               "ratio_to_best": {n: round(speed[n] / speed[best], 3) for n in PRECISIONS},
               "rss_mb": {n: round(arm.memory, 1) for n, (arm, _, _) in arms.items()}}
        say(f"{size:6d} " + " ".join(f"{speed[n]:9.4g}" for n in arms) + " " +
            " ".join(f"{row['ratio_to_best'][n]:9.2f}" for n in PRECISIONS) + " " +
            " ".join(f"{row['rss_mb'][n]:7.0f}" for n in (*PRECISIONS, best)))
        return row

    def extras(self, rows):
        trained = {row["network"]: row for row in rows if row["mode"] == "train"}
        say()
        for name in WORKERS:
            if name in trained:
                trained[name]["workers"] = self.workers(networks.by_name(name))
        for name in files.TRANSFORM:
            if name in trained:
                trained[name]["from_files"] = self.from_files(networks.by_name(name))
        for name in SCALED:
            if name in trained:
                trained[name]["batches"] = self.batches(name)


def print_head():
    say(f"{'network':16} {'batch':>5} {'mode':5} {'':4} {'samples/s':>10} {'peer':>10} {'ratio':>6} "
        f"{'to best':>7} {'of peak':>8} {'MiB':>7} {'peer':>7} {'ready':>6} {'start':>6} {'peer':>6}  "
        "setting of the peer")


def print_row(row):
    """A line for each precision: against the peer in this precision, and against its best of all."""
    note = f"  ({row['repeated_rounds']} rounds again)" if row["repeated_rounds"] else ""
    for name in PRECISIONS:
        one = row[name]
        head = f"{row['network']:16} {row['batch']:5d} {row['mode']:5}"
        say(f"{head if name == PRECISIONS[0] else '':28} {name:4} "
            f"{one['lockstep_samples_per_s']:10.4g} {one['peer_samples_per_s']:10.4g} "
            f"{one['ratio']:6.2f} {one['ratio_to_best']:7.2f} {100 * one['peak_share']:6.1f} % "
            f"{one['lockstep_rss_mb']:7.0f} {one['peer_rss_mb']:7.0f} "
            f"{one['lockstep_ready_s']:6.2f} {one['lockstep_start_s']:6.2f} "
            f"{one['peer_start_s']:6.2f}  "
            f"{one['peer'].split(', ', 1)[1]}{note}")
        note = ""


def arguments():
    names = [make().name for make in networks.ALL]
    parser = argparse.ArgumentParser(prog="bench", description="Lockstep against PyTorch.")
    parser.add_argument("--build", required=True, help="the build folder of Lockstep")
    parser.add_argument("--peer", required=True, help="a Python interpreter that has PyTorch")
    parser.add_argument("--json", help="where to write the rows")
    parser.add_argument("--only", action="append", choices=names, help="this network")
    parser.add_argument("--mode", choices=("train", "test"), help="this mode only")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of turns of a network")
    parser.add_argument("--seconds", type=float, default=2.0, help="length of a turn, about")
    parser.add_argument("--no-extras", action="store_true", help="the table only")
    options = parser.parse_args()
    options.only = options.only or names
    if options.rounds < 1 or not 0 < options.seconds <= 600:
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
            f"{options.rounds} rounds of turns of {options.seconds:g} s.\n")
        print_head()
        failed = measure(bench, options)
    if failed:
        raise SystemExit("bench: not measured: " + "; ".join(failed))


if __name__ == "__main__":
    main()
