"""The peer's arm of the benchmark: PyTorch training or testing one network when it is told to.

    worker.py NETWORK MODE --batch N --threads N --format contiguous|channels_last --processes N
              [--precision fp32|medium|tf32|bf16] [--compile] [--files FOLDER] [--device cpu|cuda]

Answers each line "run N" of standard input with a line "seconds MiB", as bench_worker.c does; MiB is
the peak of resident memory of all its processes, or, with --device cuda, of the card's memory. The
first line comes after one iteration. On a card, --compile captures CUDA graphs, too.

Input is made once and stays in memory; with --files each batch is cut from the records of files,
which stay in memory as bytes, with the transformations of bench/files.py.

SPDX-License-Identifier: BSD-2-Clause
"""

import argparse
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
NETNS = os.path.join(HERE, "..", "..", "tools", "netns.sh")
sys.path.insert(0, os.path.join(HERE, ".."))


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("network")
    parser.add_argument("mode", choices=("train", "test"))
    parser.add_argument("--batch", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--format", choices=("contiguous", "channels_last"), default="contiguous")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--precision", choices=("fp32", "medium", "tf32", "bf16"), default="fp32",
                        help="medium: fp32 with products of bf16; tf32: of a card; bf16: autocast")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--compile", action="store_true", help="torch.compile")
    parser.add_argument("--files")
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--meeting", help="file in which the processes find each other")
    parser.add_argument("--network-name", help="process i is node i of this network (tools/netns.sh)")
    return parser.parse_args()


def settle(a):
    """Threads and cores, before PyTorch is loaded."""
    cores = sorted(os.sched_getaffinity(0))
    os.environ["OMP_NUM_THREADS"] = str(a.threads)
    if a.processes > 1:
        os.sched_setaffinity(0, cores[a.rank * a.threads:(a.rank + 1) * a.threads] or cores)


def start_others():
    """The other processes of a job of several."""
    others = []
    for rank in range(1, a.processes):
        command = [sys.executable, *sys.argv, "--rank", str(rank)]
        if a.network_name:
            command = [NETNS, "run", a.network_name, str(rank), *command]
        others.append(subprocess.Popen(command, stdin=subprocess.DEVNULL))
    return others


a = arguments()
OTHERS = start_others() if a.rank == 0 else []  # before this one keeps to its own cores
settle(a)

import torch  # noqa: E402
from torch import nn  # noqa: E402

import networks  # noqa: E402
import sequences  # noqa: E402
from model import Model  # noqa: E402


def peak_memory():
    if a.device == "cuda":
        return torch.cuda.max_memory_reserved() / 1048576
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return 0.0


def random_tokens(network, batch):
    """One batch of rows of tokens, each with the token behind it, or with a class for the row."""
    rows = torch.randint(0, network.vocabulary, (batch, network.shape[0] + 1))
    if network.next_token:
        return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()
    segment = (torch.arange(network.shape[0]) >= network.shape[0] // 2).long().repeat(batch, 1)
    return (rows[:, :-1].contiguous(), segment, torch.ones_like(segment),
            torch.randint(0, network.classes, (batch,)))


def random_input(network, batch):
    """One batch of input and labels."""
    if getattr(network, "vocabulary", 0):
        return random_tokens(network, batch)
    data = torch.rand(batch, *network.shape) * 2 - 1
    places = network.shape[1:] if network.dense_labels else ()
    return data, torch.randint(0, network.classes, (batch, *places))


class Arm:
    """A model with what an iteration needs."""

    def __init__(self, network, batch):
        self.network, self.train = network, a.mode == "train"
        self.format = torch.contiguous_format
        if a.format == "channels_last":
            volume = len(network.shape) == 4
            self.format = torch.channels_last_3d if volume else torch.channels_last
        self.model = Model(network, self.train).train(self.train).to(
            a.device, memory_format=self.format)
        self.loss = nn.CrossEntropyLoss()
        self.run = self.model
        if a.compile:
            mode = "reduce-overhead" if a.device == "cuda" else "default"
            self.run = torch.compile(self.model, mode=mode)
        if self.train and a.processes > 1:
            self.run = nn.parallel.DistributedDataParallel(
                self.run, gradient_as_bucket_view=True, static_graph=True)
        if self.train and isinstance(network, sequences.Transformer):
            self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=True)
        elif self.train:
            self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-4, momentum=0.9,
                                             weight_decay=5e-4, fused=True)
        if a.files:
            import files
            self.next = files.Reader(network, batch, a.files, a.rank, a.processes).next
        else:
            batch = [part.to(a.device) for part in random_input(network, batch)]
            self.next = lambda: batch

    @staticmethod
    def precision():
        return torch.autocast(a.device, torch.bfloat16, enabled=a.precision == "bf16")

    def outputs(self):
        """What the model makes of a batch, and the labels."""
        *data, labels = self.next()
        if data[0].dim() == len(self.network.shape) + 1 > 3:
            data[0] = data[0].contiguous(memory_format=self.format)
        if "label" in self.network.inputs:
            return self.run(*data, labels), None
        return self.run(*data), labels

    def train_once(self):
        with self.precision():
            outputs, labels = self.outputs()
            loss = outputs[0] if labels is None else sum(
                weight * self.loss(scores, labels)
                for scores, (_, weight) in zip(outputs, self.network.outputs))
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def test_once(self):
        with torch.inference_mode(), self.precision():
            (scores, *_), labels = self.outputs()
            if labels is None:
                return scores
            loss = self.loss(scores, labels)
            return loss, (scores.argmax(1) == labels).float().mean()

    def iterate(self, count):
        for _ in range(count):
            if a.compile and a.device == "cuda":
                torch.compiler.cudagraph_mark_step_begin()
            self.train_once() if self.train else self.test_once()
        if a.device == "cuda":
            torch.cuda.synchronize()


def together(number=0):
    """The other processes' turn begins and ends with the first's; returns its number."""
    if a.processes == 1:
        return number
    box = torch.tensor([number])
    torch.distributed.broadcast(box, 0)
    return int(box)


def total_memory():
    box = torch.tensor([peak_memory()], dtype=torch.float64)
    if a.processes > 1:
        torch.distributed.all_reduce(box)
    return float(box)


def serve(arm):
    """Turns as long as standard input asks for them; other processes follow the first."""
    count = 1
    while True:
        start = time.perf_counter()
        arm.iterate(together(count))
        together()
        seconds, memory = time.perf_counter() - start, total_memory()
        if a.rank == 0:
            print(f"{seconds:.9f} {memory:.3f}", flush=True)
            words = sys.stdin.readline().split()
            count = int(words[1]) if len(words) == 2 else 0
        if together(count if a.rank == 0 else 0) == 0:
            return


def main():
    torch.set_flush_denormal(True)
    torch.set_num_threads(a.threads)
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("medium" if a.precision == "medium" else "highest")
    if a.device == "cuda":
        torch.backends.cuda.matmul.allow_tf32 = a.precision == "tf32"
        torch.backends.cudnn.allow_tf32 = a.precision == "tf32"
        torch.backends.cudnn.benchmark = True
    if a.processes > 1:
        torch.distributed.init_process_group("gloo", init_method="file://" + a.meeting,
                                             rank=a.rank, world_size=a.processes)
    network = networks.by_name(a.network)
    batch = a.batch or network.batch
    share = batch * (a.rank + 1) // a.processes - batch * a.rank // a.processes
    serve(Arm(network, share))
    if a.processes > 1:
        torch.distributed.destroy_process_group()
    for other in OTHERS:
        other.wait()


if __name__ == "__main__":
    main()
