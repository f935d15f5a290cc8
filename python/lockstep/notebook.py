"""Curves of a training that grow while it runs: in a notebook as a picture, elsewhere as a line.

    from lockstep.notebook import LiveCurves
    lockstep.train("solver.prototxt", on_event=LiveCurves())

SPDX-License-Identifier: BSD-2-Clause"""
import html
import math
import sys
import time
from typing import Any, Dict, List, Optional, TextIO, Tuple

from .events import Display, Ended, Event, Tested, Update, Written

Points = List[Tuple[int, float]]
_COLORS = ("#1f6fb2", "#c2540a", "#2f8f4e", "#8a4fb0", "#b0303c", "#6b6b6b")


def _display() -> Optional[Any]:
    """IPython's display, in a notebook; None elsewhere."""
    try:
        from IPython import get_ipython
        from IPython.display import display
    except ImportError:
        return None
    shell = get_ipython()
    return display if shell is not None and "IPKernelApp" in shell.config else None


def thin(points: Points, most: int) -> Points:
    """At most so many points: the means of neighbours."""
    if len(points) <= most:
        return points
    width = math.ceil(len(points) / most)
    groups = [points[i:i + width] for i in range(0, len(points), width)]
    return [(group[-1][0], sum(value for _, value in group) / len(group)) for group in groups]


def svg(curves: Dict[str, Points], width: int = 480, height: int = 200) -> str:
    """Curves over the iterations, on axes of their own range."""
    shown = {name: [(x, y) for x, y in points if math.isfinite(y)]
             for name, points in curves.items()}
    every = [point for points in shown.values() for point in points]
    if not every:
        return ""
    left, right = min(x for x, _ in every), max(x for x, _ in every)
    low, high = min(y for _, y in every), max(y for _, y in every)
    left, right = (left, right) if right > left else (left - 1, right + 1)
    low, high = (low, high) if high > low else (low - 0.5, high + 0.5)
    inner, tall = width - 70, height - 50
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
             'font-family="sans-serif" font-size="11" style="background:#fff">',
             f'<rect x="60" y="10" width="{inner}" height="{tall}" fill="none" stroke="#ccc"/>']
    for value, y in ((high, 14), (low, 10 + tall)):
        parts.append(f'<text x="55" y="{y}" text-anchor="end" fill="#444">{value:.4g}</text>')
    for value, x, anchor in ((left, 60, "start"), (right, 60 + inner, "end")):
        parts.append(f'<text x="{x}" y="{tall + 24}" text-anchor="{anchor}" fill="#444">'
                     f'{value}</text>')
    at = 60.0
    for i, (name, points) in enumerate(shown.items()):
        color = _COLORS[i % len(_COLORS)]
        places = " ".join(f"{60 + (x - left) / (right - left) * inner:.1f},"
                          f"{10 + (high - y) / (high - low) * tall:.1f}" for x, y in points)
        parts.append(f'<polyline points="{places}" fill="none" stroke="{color}" '
                     'stroke-width="1.5"/>')
        if len(points) == 1:
            across, down = places.split(",")
            parts.append(f'<circle cx="{across}" cy="{down}" r="2.5" fill="{color}"/>')
        parts.append(f'<text x="{at:.0f}" y="{tall + 42}" fill="{color}">{html.escape(name)}'
                     "</text>")
        at += 20 + 7 * len(name)
    return "".join(parts) + "</svg>"


class LiveCurves:
    """A callback for events. `seconds`: how often the picture is drawn anew, at most. `file`: where
    lines go outside of notebooks."""

    def __init__(self, seconds: float = 0.5, file: Optional[TextIO] = None) -> None:
        self.loss: Points = []
        self.tests: Dict[str, Points] = {}  # by the name of the output
        self.learning_rate: Points = []
        self._seconds, self._file = seconds, file
        self._display = _display()
        self._handle: Any = None
        self._drawn = -math.inf
        self._state = ""

    def __call__(self, event: Event) -> None:
        if isinstance(event, Display):
            self._line(f"iteration {event.iteration} of {event.iteration_end}, "
                       f"loss {event.loss:.4g}, rate {event.learning_rate:.3g}")
        elif isinstance(event, Update):
            self.loss.append((event.iteration, event.loss))
            self.learning_rate.append((event.iteration, event.learning_rate))
            self._state = (f"Iteration {event.iteration} of {event.iteration_end}, loss "
                           f"{event.loss:.4g}, {event.samples_per_second:.0f} samples/s")
        elif isinstance(event, Tested):
            figures = {name: output.value for name, output in event.outputs.items()
                       if len(output.values) == 1}
            for name, value in figures.items():
                self.tests.setdefault(name, []).append((event.iteration, value))
            self._line(f"iteration {event.iteration}, test: " +
                       ", ".join(f"{name} {value:.4g}" for name, value in figures.items()))
        elif isinstance(event, Written):
            self._line(f"snapshot {event.path}")
        last = isinstance(event, Ended)
        now = time.monotonic()
        if self._display is not None and (last or now - self._drawn >= self._seconds):
            self._drawn = now
            self._draw()

    def to_html(self) -> str:
        """The picture as a notebook has it: losses together, other figures of tests below."""
        losses = {"loss": thin(self.loss, 400)}
        others = {}
        for name, points in self.tests.items():
            if "loss" in name:
                losses[f"{name} (test)"] = points
            else:
                others[f"{name} (test)"] = points
        return (f"<div><div style='font-family:sans-serif'>{html.escape(self._state)}</div>"
                f"{svg(losses)}{svg(others)}</div>")

    _repr_html_ = to_html

    def _line(self, text: str) -> None:
        if self._display is None:
            print(text, file=self._file or sys.stdout, flush=True)

    def _draw(self) -> None:
        picture = _Html(self.to_html())
        if self._handle is None:
            assert self._display is not None
            self._handle = self._display(picture, display_id=True)
        else:
            self._handle.update(picture)


class _Html:
    """For IPython's display."""

    def __init__(self, text: str) -> None:
        self._text = text

    def _repr_html_(self) -> str:
        return self._text
