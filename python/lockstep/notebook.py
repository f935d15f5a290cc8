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


def _ticks(low: float, high: float, whole: bool = False) -> List[float]:
    """About five round numbers from at most `low` to at least `high`."""
    power = 10.0 ** math.floor(math.log10((high - low) / 5))
    step = next(power * k for k in (1, 2, 5, 10) if power * k >= (high - low) / 7)
    step = max(step, 1.0) if whole else step
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [i * step for i in range(first, last + 1)]


def _range(values: List[float]) -> Tuple[float, float]:
    low, high = min(values), max(values)
    if high > low:
        return low, high
    return (min(low, 0.0), max(high, 0.0)) if low else (0.0, 1.0)


def _text(x: float, y: float, anchor: str, text: str, more: str = 'fill="#555"') -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{html.escape(text)}</text>'


def svg(curves: Dict[str, Points], width: int = 480, height: int = 240, label: str = "") -> str:
    """Curves over the iterations, on axes of their own range. Curves of few points, such as tests,
    have them marked."""
    shown = {name: [(x, y) for x, y in points if math.isfinite(y)]
             for name, points in curves.items()}
    shown = {name: points for name, points in shown.items() if points}
    if not shown:
        return ""
    every = [point for points in shown.values() for point in points]
    across = _ticks(*_range([float(x) for x, _ in every]), whole=True)
    up = _ticks(*_range([y for _, y in every]))
    inner, tall, left, top = width - 90, height - 64, 70, 10
    def place_x(x: float) -> float:
        return left + (x - across[0]) / (across[-1] - across[0]) * inner
    def place_y(y: float) -> float:
        return top + (up[-1] - y) / (up[-1] - up[0]) * tall
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
             'font-family="sans-serif" font-size="11" style="background:#fff">']
    for y in up:
        at = place_y(y)
        parts.append(f'<path d="M{left} {at:.1f}h{inner}" stroke="#e2e2e2"/>')
        parts.append(_text(left - 6, at + 4, "end", f"{0 if abs(y) < 1e-12 else y:.5g}"))
    for x in across:
        at = place_x(x)
        parts.append(f'<path d="M{at:.1f} {top}v{tall}" stroke="#e2e2e2"/>')
        parts.append(_text(at, top + tall + 16, "middle", f"{x:.0f}"))
    parts.append(_text(left + inner / 2, top + tall + 32, "middle", "iteration"))
    if label:
        middle = top + tall / 2
        parts.append(_text(12, middle, "middle", label,
                           f'fill="#555" transform="rotate(-90 12 {middle:.1f})"'))
    at = float(left)
    for i, (name, points) in enumerate(shown.items()):
        color = _COLORS[i % len(_COLORS)]
        places = [(place_x(x), place_y(y)) for x, y in points]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{color}" '
                     'stroke-width="1.5"/>')
        if len(places) <= 50:
            parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{color}"/>'
                      for x, y in places]
        parts.append(_text(at, height - 6, "start", name, f'fill="{color}"'))
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
        losses = {"training": thin(self.loss, 400)}
        others = {}
        for name, points in self.tests.items():
            if "loss" in name:
                losses["test" if name == "loss" else f"{name} (test)"] = points
            else:
                others[f"{name} (test)"] = points
        return (f"<div><div style='font-family:sans-serif'>{html.escape(self._state)}</div>"
                f"{svg(losses, label='loss')}{svg(others, label='test')}"
                "</div>")

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
