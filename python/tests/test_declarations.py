"""What ctypes is told of the library against what a C compiler makes of its headers.
SPDX-License-Identifier: BSD-2-Clause"""
import ctypes
import os
import subprocess
import unittest

from lockstep import _declarations as c
from lockstep._library import library


class Declarations(unittest.TestCase):
    def test_layout(self):
        """Size of every struct; offset and size of every member; every constant."""
        program = os.environ.get("LOCKSTEP_LAYOUT")
        if not program:
            self.skipTest("no C compiler has made the program that prints the layout")
        printed = subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True).stdout
        seen = set()
        for line in printed.splitlines():
            words = line.split()
            if words[0] == "constant":
                self.assertEqual(getattr(c, words[1]), int(words[2]), line)
                continue
            struct = getattr(c, words[0])
            if words[1] == "-":
                self.assertEqual(ctypes.sizeof(struct), int(words[2]), line)
                seen.add(words[0])
            else:
                member = getattr(struct, words[1])
                self.assertEqual((member.offset, member.size), (int(words[2]), int(words[3])), line)
        self.assertEqual(seen, set(c.STRUCTS))
        self.assertGreater(len(seen), 30)

    def test_functions(self):
        """All functions of the headers are in the library, and the ones that matter known."""
        for name in c.FUNCTIONS:
            self.assertTrue(ctypes.cast(getattr(library, name), ctypes.c_void_p).value, name)
        self.assertEqual(c.FUNCTIONS["lockstep_trainer_loss"], (ctypes.c_double, (ctypes.c_void_p,)))
        result, arguments = c.FUNCTIONS["lockstep_solver_load"]
        self.assertIs(result, ctypes.c_int)
        self.assertEqual(arguments, (ctypes.c_char_p, ctypes.POINTER(ctypes.c_char_p),
                                     ctypes.c_size_t, ctypes.POINTER(ctypes.c_void_p),
                                     ctypes.c_void_p))


if __name__ == "__main__":
    unittest.main()
