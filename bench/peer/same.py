"""PyTorch's part of bench/sameness.sh: one training in several ways, to the bit.

    same.py --train FILE --test FILE --epochs N --batch N

ResNet-20 as bench/networks.py has it, trained as the example's solver says: Nesterov's momentum, one
epoch of warm-up, a cosine. All switches for determinism are on; every way begins with the same
weights and sees the same pictures, crops and flips in the same order, in the same global batches,
the smaller last one of an epoch included. Losses are sums divided by the global batch's true count, so
that no share weighs too much. Prints a table in Markdown: SHA-256 of the trained state, the first
update after which parameters differ from those of one thread, and the accuracy on the test file.

SPDX-License-Identifier: BSD-2-Clause
"""

import argparse
import hashlib
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
RECORD = 3073  # a label and 3 x 32 x 32 bytes
MEAN, SCALE = (125.3, 123.0, 113.9), 0.016
BASE_LR, MOMENTUM, DECAY = 0.1, 0.9, 0.0005

# Name, and what is not as with one thread.
WAYS = (
    ("1 thread", {}),
    ("1 thread, again", {}),
    ("2 threads", {"threads": 2}),
    ("1 thread, 2 accumulated parts a batch", {"parts": 2}),
    ("2 processes", {"processes": 2}),
    ("2 processes with SyncBatchNorm", {"processes": 2, "sync": 1}),
)


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--train", required=True)
    parser.add_argument("--test", required=True)
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--result", help="of one way, which is then all that is trained: a file")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--parts", type=int, default=1)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--sync", type=int, default=0)
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--meeting", default="")
    return parser.parse_args()


# ---- One way, in a process of its own ----------------------------------------------------------


def pictures(torch, path):
    """Labels and bytes of a file."""
    records = torch.frombuffer(bytearray(open(path, "rb").read()), dtype=torch.uint8)
    records = records.view(-1, RECORD)
    return records[:, 0].long(), records[:, 1:].reshape(-1, 3, 32, 32)


def normal(torch, data):
    return (data.float() - torch.tensor(MEAN).view(1, 3, 1, 1)) * SCALE


def augmented(torch, data, draws):
    """Padded by 4, cut at a drawn place, mirrored for half of the draws."""
    data = torch.nn.functional.pad(normal(torch, data), (4, 4, 4, 4))
    n = data.shape[0]
    y = draws[:, :1] + torch.arange(32)
    x = draws[:, 1:2] + torch.arange(32)
    x = torch.where(draws[:, 2:3] == 1, x.flip(1), x)
    return data[torch.arange(n)[:, None, None], :, y[:, :, None], x[:, None, :]].permute(0, 3, 1, 2)


def rate(update, warm_up, updates):
    if update < warm_up:
        return BASE_LR * (update + 1) / warm_up
    return BASE_LR * (1 + math.cos(math.pi * (update - warm_up) / max(1, updates - warm_up))) / 2


def digest(tensors):
    value = hashlib.sha256()
    for tensor in tensors:
        value.update(tensor.detach().contiguous().numpy().tobytes())
    return value.hexdigest()


def train_one_way(a):
    """Trains, and leaves hashes of the parameters after each update, of the state, and accuracy."""
    import torch
    sys.path.insert(0, os.path.join(HERE, ".."))
    import networks
    from model import Model

    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(a.threads)
    torch.set_num_interop_threads(1)
    if hasattr(torch.backends.mkldnn, "deterministic"):
        torch.backends.mkldnn.deterministic = True
    torch.manual_seed(1)
    if a.processes > 1:
        torch.distributed.init_process_group("gloo", init_method="file://" + a.meeting,
                                             rank=a.rank, world_size=a.processes)
    model = whole = Model(networks.by_name("resnet20"), True)
    if a.sync:
        model = whole = torch.nn.SyncBatchNorm.convert_sync_batchnorm(model)
    if a.processes > 1:
        model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(whole.parameters(), lr=BASE_LR, momentum=MOMENTUM, nesterov=True,
                                weight_decay=DECAY)
    labels, data = pictures(torch, a.train)
    count = len(labels)
    per_epoch = (count + a.batch - 1) // a.batch
    hashes = []
    for update in range(a.epochs * per_epoch):
        epoch, at = divmod(update, per_epoch)
        if at == 0:
            order = torch.randperm(count, generator=torch.Generator().manual_seed(1000 + epoch))
        batch = order[at * a.batch:(at + 1) * a.batch]
        random = torch.Generator().manual_seed(1_000_000 + update)
        draws = torch.cat([torch.randint(0, 9, (len(batch), 2), generator=random),
                           torch.randint(0, 2, (len(batch), 1), generator=random)], 1)
        for group in optimizer.param_groups:
            group["lr"] = rate(update, per_epoch, a.epochs * per_epoch)
        optimizer.zero_grad(set_to_none=True)
        for part in range(a.parts):
            pieces = a.parts * a.processes
            piece = part * a.processes + a.rank
            span = slice(len(batch) * piece // pieces, len(batch) * (piece + 1) // pieces)
            scores = model(augmented(torch, data[batch[span]], draws[span]))[0]
            loss = torch.nn.functional.cross_entropy(scores, labels[batch[span]], reduction="sum")
            (loss * (a.processes / len(batch))).backward()  # processes are averaged
        optimizer.step()
        hashes.append(digest(whole.parameters()))
    if a.rank == 0:
        with open(a.result, "w") as file:
            json.dump({"updates": hashes, "state": digest(whole.state_dict().values()),
                       "accuracy": accuracy(torch, whole, a.test)}, file)
    if a.processes > 1:
        torch.distributed.barrier()
        torch.distributed.destroy_process_group()


def accuracy(torch, model, path):
    labels, data = pictures(torch, path)
    model.eval()
    right = 0
    with torch.no_grad():
        for i in range(0, len(labels), 100):
            scores = model(normal(torch, data[i:i + 100]))[0]
            right += int((scores.argmax(1) == labels[i:i + 100]).sum())
    return right / len(labels)


# ---- All ways -----------------------------------------------------------------------------------


def run_way(a, folder, number, more):
    """The result of a way, or None and the first error that its processes have named."""
    result = os.path.join(folder, f"result-{number}")
    common = [sys.executable, __file__, "--train", a.train, "--test", a.test,
              "--epochs", str(a.epochs), "--batch", str(a.batch), "--result", result,
              "--meeting", os.path.join(folder, f"meeting-{number}")]
    for name, value in more.items():
        common += ["--" + name, str(value)]
    threads = str(more.get("threads", 1))
    environment = {**os.environ, "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": threads,
                   "MKL_NUM_THREADS": threads, "MKL_CBWR": "COMPATIBLE", "OMP_DYNAMIC": "FALSE",
                   "MKL_DYNAMIC": "FALSE"}
    said = tempfile.TemporaryFile("w+")
    jobs = [subprocess.Popen([*common, "--rank", str(rank)], env=environment, stdout=said,
                             stderr=said, stdin=subprocess.DEVNULL)
            for rank in range(more.get("processes", 1))]
    while any(job.poll() is None for job in jobs):
        if any(job.poll() not in (None, 0) for job in jobs):
            for job in jobs:  # the others would wait for it
                job.kill()
        time.sleep(0.2)
    if all(job.returncode == 0 for job in jobs):
        with open(result) as file:
            return json.load(file), ""
    said.seek(0)
    errors = re.findall(r"^(?:\[rank\d+\]: )?(\w+Error: .*)", said.read(), re.MULTILINE)
    return None, errors[0] if errors else "it failed"


def main(a):
    version = subprocess.run([sys.executable, "-c", "import torch; print(torch.__version__)"],
                             capture_output=True, text=True)
    if version.returncode != 0:
        sys.exit(f"sameness: {sys.executable} has no PyTorch")
    print(f"## PyTorch {version.stdout.strip()}\n\n"
          "| trained by | SHA-256 of the trained state | differs from 1 thread "
          "| accuracy | seconds |\n|---|---|---|---|---|", flush=True)
    first = None
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, more) in enumerate(WAYS):
            print(f"PyTorch: {name}", file=sys.stderr, flush=True)
            begun = time.monotonic()
            result, error = run_way(a, folder, number, more)
            if result is None:
                print(f"| {name} | {error} | | | |", flush=True)
                continue
            first = first or result
            differs = [i + 1 for i, pair in enumerate(zip(first["updates"], result["updates"]))
                       if pair[0] != pair[1]]
            where = f"from update {differs[0]}" if differs else "never"
            if not differs and first["state"] != result["state"]:
                where = "in statistics only"
            print(f"| {name} | `{result['state']}` | {where} | {result['accuracy']:.4f} "
                  f"| {time.monotonic() - begun:.0f} |", flush=True)


if __name__ == "__main__":
    options = arguments()
    train_one_way(options) if options.result else main(options)
