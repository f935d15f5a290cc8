#!/usr/bin/env python3
"""Cuts a text into windows for the example; needs nothing but Python.

    python3 make_text.py TEXT [FOLDER] [--streams N] [--steps T]

TEXT may be compressed by xz. Its first nine tenths are for training, the rest is for tests. Each
part becomes N streams, which are read side by side: stream n begins at n/N of the part. Record
w N + n is window w of stream n, T characters, so that a batch of N records has the next window of
every stream. Of each window there are three rows: `text`, its characters, `next`, the character
behind each of them, and `cont`, 0 where a stream begins and 1 where it goes on. vocabulary.txt has
the characters by their numbers.
"""
import argparse
import json
import lzma
import os


def write_array(path, rows, columns, numbers):
    """A file of bytes as numpy.save writes it."""
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({rows}, {columns}), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode())
        file.write(bytes(numbers))


def write_part(folder, name, numbers, streams, steps):
    length = (len(numbers) - 1) // streams  # of a stream; one character is behind the last
    windows = length // steps
    if windows < 1:
        raise SystemExit(f"make_text.py: the text is too short for {streams} streams of {steps} "
                         f"characters in its part '{name}'")
    text, behind, cont = bytearray(), bytearray(), bytearray()
    for window in range(windows):
        for stream in range(streams):
            at = stream * length + window * steps
            text += numbers[at:at + steps]
            behind += numbers[at + 1:at + steps + 1]
            cont += bytes([window > 0]) + bytes([1]) * (steps - 1)
    for kind, array in (("text", text), ("next", behind), ("cont", cont)):
        write_array(os.path.join(folder, f"{name}_{kind}.npy"), windows * streams, steps, array)
    return windows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("text")
    parser.add_argument("folder", nargs="?", default=".")
    parser.add_argument("--streams", type=int, default=32)
    parser.add_argument("--steps", type=int, default=64)
    a = parser.parse_args()
    with (lzma.open if a.text.endswith(".xz") else open)(a.text, "rb") as file:
        text = file.read().decode()
    vocabulary = sorted(set(text))
    if len(vocabulary) > 256:
        raise SystemExit(f"make_text.py: {len(vocabulary)} different characters; 256 fit into a byte")
    number = {character: i for i, character in enumerate(vocabulary)}
    numbers = bytes(number[character] for character in text)
    end = len(numbers) * 9 // 10
    train = write_part(a.folder, "train", numbers[:end], a.streams, a.steps)
    test = write_part(a.folder, "test", numbers[end:], a.streams, a.steps)
    with open(os.path.join(a.folder, "vocabulary.txt"), "w", encoding="utf-8") as file:
        for i, character in enumerate(vocabulary):
            file.write(f"{i} {json.dumps(character, ensure_ascii=False)}\n")
    print(f"{len(text)} characters, {len(vocabulary)} different ones; {a.streams} streams of {train} "
          f"windows for training, of {test} for tests")


main()
