"""Type hints, checked by mypy where it is installed; and that nothing public lacks a docstring.
SPDX-License-Identifier: BSD-2-Clause"""
import ast
import importlib.util
import os
import subprocess
import sys
import unittest

import lockstep

FOLDER = os.path.dirname(lockstep.__file__)


def modules():
    for folder, _, names in os.walk(FOLDER):
        for name in names:
            if name.endswith(".py") and name != "_declarations.py":
                yield os.path.join(folder, name)


def without_docstring(node, path):
    """Public functions and classes of a module or class, and what is in these."""
    for item in node.body:
        if isinstance(item, (ast.FunctionDef, ast.ClassDef)) and not item.name.startswith("_"):
            setter = any(isinstance(d, ast.Attribute) and d.attr == "setter"
                         for d in item.decorator_list)
            if ast.get_docstring(item) is None and not setter:
                yield f"{path}: {item.name}"
            if isinstance(item, ast.ClassDef):
                yield from without_docstring(item, f"{path}: {item.name}")


class Types(unittest.TestCase):
    def test_docstrings(self):
        missing = []
        for path in modules():
            with open(path, encoding="utf-8") as file:
                tree = ast.parse(file.read())
            missing += [path] * (ast.get_docstring(tree) is None)
            if not os.path.basename(path).startswith("_"):
                missing += without_docstring(tree, path)
        self.assertEqual(missing, [])

    @unittest.skipUnless(importlib.util.find_spec("mypy"), "needs mypy")
    def test_mypy(self):
        done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir=/dev/null",
                               FOLDER], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    unittest.main()
