"""Reads definitions (protobuf's text format) into plain trees, with no schema.

A message is a Message: each field name with the list of its values, in order. Scalars are str,
int, float or bool; enum values are str. SPDX-License-Identifier: BSD-2-Clause
"""

import re

TOKEN = re.compile(
    r"""\s+|\#[^\n]*
    |(?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    |(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?f?(?![\w.]))
    |(?P<word>[A-Za-z_][\w.]*)
    |(?P<mark>[][{}<>:,;])""",
    re.VERBOSE,
)


class Message:
    def __init__(self):
        self.fields = {}

    def add(self, name, value):
        self.fields.setdefault(name, []).append(value)

    def all(self, name):
        return self.fields.get(name, [])

    def has(self, name):
        return name in self.fields

    def get(self, name, default=None):
        """The last value of a field, as for an optional one that is given twice."""
        values = self.all(name)
        return values[-1] if values else default

    def sub(self, name):
        """A message field; an empty message where it is not given."""
        return self.get(name) or Message()


def tokens(text):
    place = 0
    while place < len(text):
        match = TOKEN.match(text, place)
        if match is None:
            raise ValueError("cannot read %r" % text[place : place + 40])
        place = match.end()
        if match.lastgroup:
            yield match.lastgroup, match.group()
    yield "end", ""


class Reader:
    def __init__(self, text):
        self.stream = tokens(text)
        self.kind, self.text = next(self.stream)

    def take(self):
        kind, text = self.kind, self.text
        self.kind, self.text = next(self.stream)
        return kind, text

    def skip(self, marks):
        """Takes a mark that may be there."""
        if self.kind == "mark" and self.text in marks:
            return self.take()[1]
        return None

    def scalar(self):
        kind, text = self.take()
        if kind == "string":
            value = text[1:-1].encode().decode("unicode_escape")
            while self.kind == "string":
                value += self.take()[1][1:-1].encode().decode("unicode_escape")
            return value
        if kind == "number":
            text = text.rstrip("f")
            return int(text) if re.fullmatch(r"[-+]?\d+", text) else float(text)
        if kind == "word":
            return {"true": True, "false": False}.get(text, text)
        raise ValueError("a value is missing before %r" % text)

    def value(self):
        if self.skip("{<"):
            return self.message()
        return self.scalar()

    def message(self):
        """The fields up to a closing brace or the end."""
        message = Message()
        while True:
            if self.kind == "end" or self.skip("}>"):
                return message
            kind, name = self.take()
            if kind != "word":
                raise ValueError("a field's name is missing before %r" % name)
            self.skip(":")
            if self.skip("["):
                while not self.skip("]"):
                    message.add(name, self.value())
                    self.skip(",")
            else:
                message.add(name, self.value())
            self.skip(",;")


def read(text):
    return Reader(text).message()
