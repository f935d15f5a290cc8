#!/usr/bin/env python3
"""The C interface as ctypes has it: reads include/lockstep/*.h, and writes python/lockstep's
_declarations.py, which is never kept: the headers are the source.

    tools/python_declarations.py [--layout] OUTPUT

With --layout it writes a C program instead, which prints the size of every struct and the offset of
every member: python/tests compares that with what ctypes makes of the same structs.

The headers keep to few forms (structs without unions or bit-fields, enums, functions behind
LOCKSTEP_API, callbacks with a `user`), and only those are read: anything else is an error, not
something that is left out. OUTPUT may be there only if it was made by this program.
SPDX-License-Identifier: BSD-2-Clause"""
import os
import re
import sys

MARK = "Made from include/lockstep by tools/python_declarations.py."
# plugin.h is for plugins, which are written in C; the others are what lockstep.h includes.
LEFT_OUT = {"plugin.h", "lockstep.h"}
NUMBERS = {
    "int": "c_int", "double": "c_double", "float": "c_float", "size_t": "c_size_t",
    "int32_t": "c_int32", "int64_t": "c_int64", "uint8_t": "c_uint8", "uint32_t": "c_uint32",
    "uint64_t": "c_uint64", "int8_t": "c_int8", "int16_t": "c_int16", "uint16_t": "c_uint16",
    "long": "c_long", "long long": "c_longlong", "short": "c_short", "char": "c_char",
    "unsigned": "c_uint", "unsigned int": "c_uint", "unsigned char": "c_ubyte",
    "unsigned short": "c_ushort", "unsigned long": "c_ulong", "signed char": "c_byte",
    "unsigned long long": "c_ulonglong", "bool": "c_bool",
}
# Words of types that have several.
PARTS = {"unsigned", "signed", "long", "short", "int", "char"}


class Headers:
    """What the headers declare, in their order."""

    def __init__(self):
        self.constants = {}  # name: number
        self.structs = {}    # tag: [(name, type)], or None: only its name is known
        self.enums = {}      # tag: [name]
        self.functions = []  # (name, result, [argument])

    def fail(self, text, why):
        sys.exit(f"python_declarations: {why}: '{' '.join(text.split())}'")

    # ---- Types ----

    def number(self, text):
        """The value of a constant expression: a number, or a constant that came before."""
        text = text.strip()
        if text == "UINT64_MAX":
            return 2**64 - 1
        if text in self.constants:
            return self.constants[text]
        try:
            return int(text.rstrip("uUlL"), 0)
        except ValueError:
            self.fail(text, "no number")

    def base(self, words, stars):
        """The ctypes expression of a type by its words without 'const', and how many '*' follow."""
        if words[0] == "enum" and len(words) == 2:
            kind = "c_int"
        elif words[0] == "struct" and len(words) == 2:
            tag = words[1]
            self.structs.setdefault(tag, None)
            if stars == 0:
                if self.structs[tag] is None:
                    self.fail(tag, "a struct that is not known here")
                return tag
            if self.structs[tag] is None:  # opaque: its address is all there is
                kind, stars = "c_void_p", stars - 1
            else:
                kind = tag
        elif words == ["void"]:
            if stars == 0:
                return "None"
            kind, stars = "c_void_p", stars - 1
        elif words == ["char"] and stars > 0:
            kind, stars = "c_char_p", stars - 1
        elif " ".join(words) in NUMBERS:
            kind = NUMBERS[" ".join(words)]
        else:
            self.fail(" ".join(words), "a type that is not known here")
        for _ in range(stars):
            kind = f"POINTER({kind})"
        return kind

    def declarators(self, text, as_argument=False):
        """'const char *a, *b' to [(name, type)]. An array of an argument is a pointer."""
        callback = re.fullmatch(r"(.*?)\(\s*\*\s*(\w+)\s*\)\s*\((.*)\)", text.strip(), re.S)
        if callback:
            result, name, arguments = callback.groups()
            kinds = [self.one(result, True)[1]] + [k for _, k in self.arguments(arguments)]
            return [(name, f"CFUNCTYPE({', '.join(kinds)})")]
        words, found = None, []
        for part in text.split(","):
            tokens = re.findall(r"\w+|\*|\[\w*\]|[^\s\w]", part)
            tokens = [t for t in tokens if t != "const"]
            if words is None:
                length = 2 if tokens[0] in ("struct", "enum") else 1
                while tokens[0] in PARTS and length < len(tokens) and tokens[length] in PARTS:
                    length += 1
                words, tokens = tokens[:length], tokens[length:]
            stars = tokens.count("*")
            extent = tokens.pop()[1:-1] if tokens and tokens[-1][0] == "[" else None
            name = tokens[stars] if len(tokens) > stars else None
            if tokens != ["*"] * stars + [name] * (name is not None):
                self.fail(text, "a declaration that is not understood")
            kind = self.base(words, stars)
            if extent is not None:
                kind = f"POINTER({kind})" if as_argument else f"{kind} * {self.number(extent)}"
            found.append((name, kind))
        return found

    def one(self, text, as_argument=False):
        return self.declarators(text, as_argument)[0]

    def arguments(self, text):
        if text.strip() == "void":
            return []
        parts, depth, part = [], 0, ""
        for c in text:
            depth += (c == "(") - (c == ")")
            if c == "," and depth == 0:
                parts.append(part)
                part = ""
            else:
                part += c
        return [self.one(p, True) for p in parts + [part]]

    # ---- Declarations ----

    def enum(self, tag, body):
        value = 0
        names = []
        for entry in (e.strip() for e in body.split(",")):
            if not entry:
                continue
            name, _, given = (s.strip() for s in entry.partition("="))
            value = self.number(given) if given else value
            self.constants[name] = value
            names.append(name)
            value += 1
        if tag:
            self.enums[tag] = names

    def struct(self, tag, body):
        members = []
        for declaration in body.split(";"):
            if declaration.strip():
                members += self.declarators(declaration)
        self.structs.pop(tag, None)  # known as opaque before: now in its place
        self.structs[tag] = members

    def function(self, text):
        match = re.fullmatch(r"(.*?)(\w+)\s*\((.*)\)", text.strip(), re.S)
        if match is None:
            self.fail(text, "a function that is not understood")
        result, name, arguments = match.groups()
        self.functions.append((name, self.one(result, True)[1], self.arguments(arguments)))

    def read(self, text):
        text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
        for name, value in re.findall(r"^#define (LOCKSTEP_\w+)[ \t]+(\w+)[ \t]*$", text, re.M):
            if name != "LOCKSTEP_API":
                self.constants[name] = self.number(value)
        text = re.sub(r"^#.*$", "", text, flags=re.M)
        text = re.sub(r'extern "C" \{', "", text)
        at = re.compile(
            r"\s*(?:enum\s*(?P<enum>\w*)\s*\{(?P<values>[^}]*)\}\s*;"
            r"|struct\s+(?P<struct>\w+)\s*\{(?P<members>[^}]*)\}\s*;"
            r"|struct\s+(?P<opaque>\w+)\s*;"
            r"|LOCKSTEP_API(?P<function>[^;]*);|(?P<end>\}?\s*)\Z)")
        place = 0
        while place < len(text):
            match = at.match(text, place)
            if match is None:
                self.fail(text[place:place + 120], "something that is not understood")
            place = match.end()
            if match["values"] is not None:
                self.enum(match["enum"], match["values"])
            elif match["struct"]:
                self.struct(match["struct"], match["members"])
            elif match["opaque"]:
                self.structs.setdefault(match["opaque"], None)
            elif match["function"]:
                self.function(match["function"])
            else:
                break

    def declared(self):
        return [(tag, members) for tag, members in self.structs.items() if members is not None]


def ordered(folder):
    """The headers so that each stands behind those that it includes."""
    names, done = sorted(n for n in os.listdir(folder) if n.endswith(".h")), []

    def add(name):
        if name in done or name in LEFT_OUT:
            return
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            for included in re.findall(r'^#include "lockstep/(\w+\.h)"', file.read(), re.M):
                add(included)
        done.append(name)

    for name in names:
        add(name)
    return done


def read_headers(folder):
    headers = Headers()
    texts = []
    for name in ordered(folder):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            texts.append(file.read())
    # Which structs have members must be known before the first pointer to one is met.
    for text in texts:
        for tag in re.findall(r"^struct (\w+) \{", text, re.M):
            headers.structs.setdefault(tag, [])
    for text in texts:
        headers.read(text)
    return headers


def write_python(headers, out):
    out(f'"""The C interface of Lockstep. {MARK}"""')
    names = sorted(set(NUMBERS.values()) | {"c_char_p", "c_void_p"})
    out(f"from ctypes import (CFUNCTYPE, POINTER, Structure, {', '.join(names)})")
    out("")
    for name, value in headers.constants.items():
        out(f"{name} = {value}")
    out("")
    for tag, names in headers.enums.items():
        short = {n: n[len("LOCKSTEP_"):] for n in names}
        out(f"{tag} = {{{', '.join(f'{headers.constants[n]}: {short[n]!r}' for n in names)}}}")
    for tag, _ in headers.declared():
        out(f"\n\nclass {tag}(Structure):\n    pass")
    out("\n")
    for tag, members in headers.declared():
        out(f"{tag}._fields_ = [")
        for name, kind in members:
            out(f"    ({name!r}, {kind}),")
        out("]")
    out("\n# name: (result, (arguments))")
    out("FUNCTIONS = {")
    for name, result, arguments in headers.functions:
        kinds = "".join(f"{kind}, " for _, kind in arguments)
        out(f"    {name!r}: ({result}, ({kinds.rstrip() if len(arguments) == 1 else kinds.rstrip(', ')})),")
    out("}")
    structs = ", ".join(repr(tag) for tag, _ in headers.declared())
    out(f"STRUCTS = [{structs}]")


def write_layout(headers, out):
    out(f"/* {MARK} */")
    out("#include <stddef.h>\n#include <stdio.h>\n#include \"lockstep/lockstep.h\"\n")
    out("int main(void)\n{")
    for tag, members in headers.declared():
        out(f'    printf("{tag} - %zu\\n", sizeof(struct {tag}));')
        for name, _ in members:
            out(f'    printf("{tag} {name} %zu %zu\\n", offsetof(struct {tag}, {name}), '
                f"sizeof((struct {tag} *)0)->{name});")
    for name, value in headers.constants.items():
        out(f'    printf("constant {name} %llu\\n", (unsigned long long)({name}));')
    out("    return 0;\n}")


def write(path, text):
    """Writes a file as a whole, over none but its own."""
    if os.path.lexists(path):
        if not os.path.isfile(path) or os.path.islink(path):
            sys.exit(f"python_declarations: {path} is no file")
        with open(path, "rb") as file:
            head = file.read(200)
        if head and MARK.encode() not in head:
            sys.exit(f"python_declarations: {path} was not made by this program, and stays as it is")
    with open(path + ".tmp", "x", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".tmp", path)


def main(arguments):
    layout = "--layout" in arguments
    paths = [a for a in arguments if a != "--layout"]
    if len(paths) != 1:
        sys.exit(__doc__)
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    headers = read_headers(os.path.join(root, "include", "lockstep"))
    lines = []
    (write_layout if layout else write_python)(headers, lines.append)
    write(paths[0], "\n".join(lines) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
