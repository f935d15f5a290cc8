#!/usr/bin/env python3
"""What programs that were built against this soname rely on: the functions of include/lockstep, the
members of its structs and its constants, in a list that is kept (tests/compat/abi).

    tools/abi.py LIST           compares the headers with a list
    tools/abi.py --write LIST   writes it anew: with another soname, or to promise what is new

A function that is gone or takes something else, a constant of another value, and a struct with other
members are named, and the exit code is 1. Options, which begin with their size, and structs that are
shown by their address alone may have new members behind the old ones. What is new is told and is no
failure. plugin.h has a version of its own.
SPDX-License-Identifier: BSD-2-Clause"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
import python_declarations  # noqa: E402  pylint: disable=wrong-import-position

FIRST = "# What programs rely on as long as the soname stays. Made by tools/abi.py."
# Counts that grow with new members of their enum.
GROWING = ("_KINDS", "LOCKSTEP_NUMERICS")


# Structs that programs are shown one at a time, by their address, besides options with their size.
SHOWN = {"lockstep_event", "lockstep_run", "lockstep_audit", "lockstep_statistics",
         "lockstep_confusion"}


def lines_of(headers):
    """One line for each thing: 'kind name: what it is'."""
    for name, value in headers.constants.items():
        if not name.endswith(GROWING):
            yield f"constant {name}: {value}"
    for tag, members in headers.declared():
        yield f"struct {tag}: " + "; ".join(f"{name} {kind}" for name, kind in members)
    for name, result, arguments in headers.functions:
        yield f"function {name}: {result} ({', '.join(kind for _, kind in arguments)})"


def parts_of(lines):
    return dict(line.rstrip("\n").split(": ", 1) for line in lines if not line.startswith("#"))


def holds(name, old, new):
    """Whether a program that relies on `old` can do with `new`."""
    kind, _, tag = name.partition(" ")
    grows = kind == "struct" and (tag in SHOWN or old.startswith("struct_size "))
    return new == old or (grows and new.startswith(old + "; "))


def compare(promised, found, path):
    broken = []
    for name, old in promised.items():
        if name not in found:
            broken.append(f"{name} is gone")
        elif not holds(name, old, found[name]):
            broken.append(f"{name} was\n    {old}\n  and is\n    {found[name]}")
    added = [name for name in found if name not in promised]
    for text in broken:
        print(text)
    if broken:
        print(f"Programs that were built with these headers before would break: keep what {path} "
              "promises, or raise the soname (the major version in CMakeLists.txt) and write its "
              "list with tools/abi.py --write. What no release has had yet may change: write "
              "the list anew then, too")
    elif added:
        print(f"{len(added)} things are new, and not promised yet: {', '.join(added)}")
    return 1 if broken else 0


def main(arguments):
    write = "--write" in arguments
    paths = [a for a in arguments if a != "--write"]
    if len(paths) != 1:
        sys.exit(__doc__)
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    folder = os.environ.get("LOCKSTEP_INCLUDE", os.path.join(root, "include", "lockstep"))
    lines = list(lines_of(python_declarations.read_headers(folder)))
    if write:
        with open(paths[0] + ".tmp", "w", encoding="utf-8") as file:
            file.write("\n".join([FIRST] + lines) + "\n")
        os.replace(paths[0] + ".tmp", paths[0])
        return 0
    with open(paths[0], encoding="utf-8") as file:
        return compare(parts_of(file), parts_of(lines), paths[0])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
