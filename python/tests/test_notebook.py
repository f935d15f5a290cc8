"""Curves of a training, as text and as pictures.
SPDX-License-Identifier: BSD-2-Clause"""
import io
import unittest
from xml.etree import ElementTree

import lockstep
from lockstep import notebook
from lockstep.notebook import LiveCurves, svg, thin
from support import Case


class Curves(Case):
    def test_lines(self):
        text = io.StringIO()
        curves = LiveCurves(file=text)
        lockstep.train("solver.prototxt", on_event=curves)
        lines = text.getvalue().splitlines()
        self.assertRegex(lines[0], r"^iteration 0, test: accuracy 0\.\d+, loss ")
        self.assertEqual(sum("rate 0.05" in line for line in lines), 3)
        self.assertIn("snapshot net_iter_30.safetensors", lines)
        self.assertEqual(len(curves.loss), 30)
        self.assertEqual([x for x, _ in curves.tests["accuracy"]], [0, 15, 30])
        page = ElementTree.fromstring(curves.to_html())
        self.assertEqual(len(page.findall(".//{http://www.w3.org/2000/svg}polyline")), 3)

    def test_a_notebook(self):
        shown = []

        class Handle:
            def update(self, picture):
                shown.append(picture._repr_html_())

        def display(picture, display_id):
            self.assertTrue(display_id)
            shown.append(picture._repr_html_())
            return Handle()

        text = io.StringIO()
        curves = LiveCurves(seconds=0, file=text)
        curves._display = display
        lockstep.train("solver.prototxt", on_event=curves)
        self.assertEqual(text.getvalue(), "")
        self.assertGreater(len(shown), 30)
        self.assertIn("Iteration 30 of 30", shown[-1])
        self.assertIsNone(notebook._display())

    def test_pictures(self):
        self.assertEqual(svg({}), "")
        self.assertEqual(svg({"a": [(1, float("nan"))]}), "")
        drawn = svg({"<a>": [(5, 2.0)], "b": [(1, 1.0), (2, float("inf")), (3, 1.0)]})
        ElementTree.fromstring(drawn)
        self.assertIn("&lt;a&gt;", drawn)
        self.assertIn(">iteration</text>", drawn)
        self.assertEqual(drawn.count("<circle"), 3)  # of few points each is seen
        self.assertGreater(drawn.count('stroke="#e2e2e2"'), 6)  # a grid
        near = svg({"a": [(i, 0.9997 + i * 1e-6) for i in range(100)]}, label="accuracy")
        self.assertEqual(near.count("<circle"), 0)
        self.assertIn(">0.9997<", near)
        self.assertIn(">0.9998<", near)
        self.assertIn(">accuracy</text>", near)
        self.assertNotIn("nan", svg({"a": [(7, 0.0)], "b": [(7, -2.0)]}))
        points = [(i, float(i)) for i in range(1000)]
        self.assertLessEqual(len(thin(points, 100)), 100)
        self.assertEqual(thin(points, 100)[-1], (999, 994.5))
        self.assertEqual(thin(points, 1000), points)


if __name__ == "__main__":
    unittest.main()
