#!/usr/bin/env python3
"""Packs python/lockstep and the shared library as a wheel for every Python from 3.9 on (./run wheel).

    tools/wheel.py LIBRARY FOLDER

The libraries that LIBRARY stands on go into the wheel, but for those that every system has (the C
library, and gcc's and C++'s run-time libraries). They get names of their own ("libz.so.1" becomes
"ls-z.so.1"), so that one that another package brings is never taken for ours, nor ours for its:
the dynamic loader knows libraries by these names alone. A name of the same length is written over
the old one, wherever it stands among the strings of the dynamic section.

Modules for MPI that lie beside LIBRARY go along; the MPI library itself does not: a job needs the one
of its launcher.

The tag says the oldest C library that has all the functions which are called. The file depends on
what goes in and on nothing else: no time, no order of a folder.
SPDX-License-Identifier: BSD-2-Clause"""
import base64
import hashlib
import os
import re
import struct
import subprocess
import sys
import zipfile

# Of the C library and the compiler; the policies of manylinux name the same.
SYSTEM = re.compile(r"(linux-vdso|ld-linux-x86-64|lib(c|m|pthread|dl|rt|util|resolv|gcc_s|stdc\+\+))"
                    r"\.so")
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def output_of(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def needed(path):
    """The names of the libraries that one asks for itself."""
    return re.findall(r"\(NEEDED\).*\[(.*)\]", output_of("readelf", "-d", path))


def closure(library):
    """All libraries that go along: name to path, each behind those that it needs itself."""
    paths = dict(re.findall(r"^\s*(\S+) => (/\S+) ", output_of("ldd", library), re.M))
    missing = re.findall(r"^\s*(\S+) => not found", output_of("ldd", library), re.M)
    if missing:
        sys.exit(f"wheel: {library} needs what is not there: {', '.join(missing)}")
    order = {}

    def add(name, path):
        if name in order or SYSTEM.match(name):
            return
        for other in needed(path):
            if not SYSTEM.match(other):
                add(other, paths[other])
        order[name] = path

    add(os.path.basename(library), library)
    return order


def modules_of(library):
    """The modules beside it, which it loads when a launcher of MPI has started the process."""
    folder = os.path.dirname(library)
    names = [f"liblockstep_{kind}.so" for kind in ("openmpi", "mpich", "mpi")]
    return {name: os.path.join(folder, name) for name in names
            if os.path.exists(os.path.join(folder, name))}


def strings_section(data):
    """Where the strings of an ELF file's dynamic section lie: offset and size."""
    if data[:6] != b"\x7fELF\x02\x01":
        sys.exit("wheel: a library is no ELF file of 64 bits")
    table, = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<HHH", data, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, table + i * size) for i in range(count)]
    for section in sections:
        start = sections[names][4] + section[0]
        if data[start:data.index(b"\0", start)] == b".dynstr":
            return section[4], section[5]
    sys.exit("wheel: a library has no dynamic section")


def renamed(path, names):
    """The bytes of a library with other names for itself and those that it needs."""
    with open(path, "rb") as file:
        data = bytearray(file.read())
    offset, size = strings_section(data)
    strings = bytes(data[offset:offset + size])
    for old, new in names.items():
        old, new = b"\0" + old.encode() + b"\0", b"\0" + new.encode() + b"\0"
        assert len(old) == len(new)
        # Zeros are shared by neighbours.
        while old in strings:
            strings = strings.replace(old, new)
    data[offset:offset + size] = strings
    return bytes(data)


def c_library(paths):
    """The oldest version of the C library that has all that they call: (2, 34)."""
    versions = {(2, 17)}  # what pip knows at least
    for path in paths:
        found = re.findall(r"Name: GLIBC_(\d+)\.(\d+)", output_of("readelf", "-V", path))
        versions |= {(int(a), int(b)) for a, b in found}
    return max(versions)


def licence_of(path):
    """The package of a library and the file with its licence; (None, None) where no package is."""
    real = os.path.realpath(path)
    for name in (real, path, re.sub("^/usr", "", real), "/usr" + real):
        answer = subprocess.run(["dpkg", "-S", name], stdout=subprocess.PIPE, text=True,
                                stderr=subprocess.DEVNULL, check=False).stdout
        if answer:
            package = answer.split(":")[0]
            return package, f"/usr/share/doc/{package}/copyright"
    return None, None


def metadata(version, bundled):
    with open(os.path.join(ROOT, "docs", "python.md"), encoding="utf-8") as file:
        text = file.read()
    return ("Metadata-Version: 2.1\nName: lockstep\n"
            f"Version: {version}\n"
            "Summary: Data-parallel training whose result does not depend on the number of workers\n"
            "License: BSD-2-Clause; the libraries in lockstep/_lib have their own\n"
            "Requires-Python: >=3.9\n"
            "Provides-Extra: numpy\nRequires-Dist: numpy; extra == 'numpy'\n"
            "Classifier: Operating System :: POSIX :: Linux\n"
            "Classifier: Typing :: Typed\n"
            "Description-Content-Type: text/markdown\n\n"
            f"{text}\nIn this wheel: {', '.join(bundled)}.\n")


def package_files(declarations):
    """What python/lockstep has: name in the wheel to bytes."""
    files = {}
    top = os.path.join(ROOT, "python")
    for folder, _, names in os.walk(os.path.join(top, "lockstep")):
        for name in names:
            if name.endswith((".py", ".typed")) and name != "_declarations.py":
                path = os.path.join(folder, name)
                with open(path, "rb") as file:
                    files[os.path.relpath(path, top)] = file.read()
    with open(declarations, "rb") as file:
        files["lockstep/_declarations.py"] = file.read()
    return files


def collect(library, folder, version):
    """All files of the wheel, and its tag."""
    declarations = os.path.join(folder, "_declarations.py")
    subprocess.run([sys.executable, os.path.join(ROOT, "tools", "python_declarations.py"),
                    declarations], check=True)
    files = package_files(declarations)
    os.unlink(declarations)
    libraries = closure(library)
    own = re.sub(r"\.so\..*", ".so", os.path.basename(library))
    names = {name: "ls-" + name[3:] for name in libraries
             if name.startswith("lib") and libraries[name] != library}
    order = []
    info = f"lockstep-{version}.dist-info"
    for name, path in libraries.items():
        inside = own if path == library else names[name]
        stripped = os.path.join(folder, inside)
        with open(stripped, "wb") as file:
            file.write(renamed(path, names))
        if path == library:
            subprocess.run(["strip", "--strip-unneeded", stripped], check=True)
        with open(stripped, "rb") as file:
            files[f"lockstep/_lib/{inside}"] = file.read()
        os.unlink(stripped)
        order.append(inside)
        package, licence = licence_of(path) if path != library else (None, None)
        if licence and os.path.exists(licence):
            with open(licence, "rb") as file:
                files[f"{info}/licenses/{package}.txt"] = file.read()
    modules = modules_of(library)
    for name, path in modules.items():
        stripped = os.path.join(folder, name)
        subprocess.run(["strip", "--strip-unneeded", "-o", stripped, path], check=True)
        with open(stripped, "rb") as file:
            files[f"lockstep/_lib/{name}"] = file.read()
        os.unlink(stripped)
    files["lockstep/_lib/order"] = ("\n".join(order) + "\n").encode()
    with open(os.path.join(ROOT, "LICENSE"), "rb") as file:
        files[f"{info}/licenses/LICENSE"] = file.read()
    tag = "py3-none-manylinux_{}_{}_x86_64".format(
        *c_library([*libraries.values(), *modules.values()]))
    files[f"{info}/METADATA"] = metadata(version, sorted(names)).encode()
    files[f"{info}/WHEEL"] = (f"Wheel-Version: 1.0\nGenerator: lockstep ({version})\n"
                              f"Root-Is-Purelib: false\nTag: {tag}\n").encode()
    return files, tag


def write(path, files, record):
    lines = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name in sorted(files) + [record]:
            if name == record:
                data = ("".join(lines) + f"{record},,\n").encode()
            else:
                data = files[name]
                digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
                lines.append(f"{name},sha256={digest.decode()},{len(data)}\n")
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if ".so" in name else 0o100644) << 16
            wheel.writestr(entry, data)


def main(arguments):
    if len(arguments) != 2:
        sys.exit(__doc__)
    library, folder = os.path.realpath(arguments[0]), arguments[1]
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as file:
        version = re.search(r"project\(lockstep VERSION ([\d.]+)", file.read()).group(1)
    files, tag = collect(library, folder, version)
    path = os.path.join(folder, f"lockstep-{version}-{tag}.whl")
    write(path + ".tmp", files, f"lockstep-{version}.dist-info/RECORD")
    os.replace(path + ".tmp", path)
    print(f"The wheel is {path} ({os.path.getsize(path) >> 20} MiB)")
    print(f"Of the system it needs: glibc, libstdc++.so.6, libgcc_s.so.1 ({tag})")


if __name__ == "__main__":
    main(sys.argv[1:])
