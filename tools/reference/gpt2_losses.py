"""The losses of GPT-2's first updates by the transformers package and by examples/gpt.

    gpt2_losses.py LOCKSTEP FOLDER [--updates N] [--small]

Both begin with the same random weights, which the package writes, and read the same tokens in the same order: windows of
64 of FOLDER/input.txt (tinyshakespeare), four a batch, ids being words in the order in which they come first. Ends
with an error where losses differ by more than 1e-3. --small: 2 layers, 64 wide.

SPDX-License-Identifier: BSD-2-Clause
"""
import os
import re
import subprocess
import sys

sys.path.pop(0)  # transformers.py beside this file has the name of the package

import numpy
import torch
import transformers
from safetensors.torch import save_file

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOLERANCE, WINDOW, BATCH = 1e-3, 64, 4


def tokens_of(path, count):
    """Ids of the words, spaces and signs of a text."""
    words = re.findall(r"\w+|\W", open(path).read())
    numbers = {}
    return [numbers.setdefault(word, len(numbers)) for word in words][:count]


def lockstep_losses(program, folder, updates, small):
    net = open(os.path.join(ROOT, "examples/gpt/gpt2_train_test.prototxt")).read()
    net = net.replace("shuffle: true", "shuffle: false")
    if small:
        for old, new in (("768", "64"), ("2304", "192"), ("3072", "256"), ("num_heads: 12", "num_heads: 4"),
                         ("repeat: 12", "repeat: 2")):
            net = net.replace(old, new)
    open(os.path.join(folder, "gpt2_train_test.prototxt"), "w").write(net)
    solver = open(os.path.join(ROOT, "examples/gpt/gpt2_solver.prototxt")).read()
    solver = re.sub(r"max_iter: \d+", "max_iter: %d" % updates, solver)
    solver = re.sub(r"test_interval: \d+", "test_initialization: false test_interval: 1000000", solver)
    path = os.path.join(folder, "solver.prototxt")
    open(path, "w").write(solver + "snapshot_after_train: false\n")
    told = subprocess.run([program, "train", "--solver", path, "--weights", os.path.join(folder, "start.safetensors"),
                           "--map", "gpt2"], capture_output=True, text=True, cwd=folder)
    if told.returncode != 0:
        sys.exit(told.stdout[-2000:] + told.stderr)
    found = re.findall(r"^Iteration (\d+)\b.*, loss = (\S+)", told.stdout + told.stderr, re.MULTILINE)
    return {int(number): float(loss) for number, loss in found}


def main():
    program, folder = (os.path.abspath(path) for path in sys.argv[1:3])
    small = "--small" in sys.argv
    updates = int(sys.argv[sys.argv.index("--updates") + 1]) if "--updates" in sys.argv else 40
    torch.manual_seed(1)
    shape = {"n_layer": 2, "n_embd": 64, "n_head": 4} if small else {}
    config = transformers.GPT2Config(resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, **shape)
    model = transformers.GPT2LMHeadModel(config)
    state = {name: value.contiguous() for name, value in model.state_dict().items() if name != "lm_head.weight"}
    save_file(state, os.path.join(folder, "start.safetensors"))
    ids = numpy.array(tokens_of(os.path.join(folder, "input.txt"), updates * BATCH * WINDOW + 1), dtype=numpy.uint16)
    for name in ("train.bin", "val.bin"):
        ids.tofile(os.path.join(folder, name))
    ours = lockstep_losses(program, folder, updates, small)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0, eps=1e-8)
    worst = 0.0
    for update in range(updates):
        rows = ids[update * BATCH * WINDOW:][:BATCH * WINDOW + 1].astype(numpy.int64)
        scores = model(torch.from_numpy(rows[:-1].reshape(BATCH, WINDOW))).logits
        loss = torch.nn.functional.cross_entropy(scores.flatten(0, 1), torch.from_numpy(rows[1:]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if update not in ours:
            continue
        worst = max(worst, abs(ours[update] - float(loss.detach())))
        print("%3d  %.6f  %.6f" % (update, ours[update], float(loss)), flush=True)
    print("largest difference %.2g over %d updates" % (worst, len(ours)))
    if len(ours) < updates or not worst <= TOLERANCE:
        sys.exit("gpt2_losses: not within %g" % TOLERANCE)


main()
