"""Small SVG charts for reports, as strings, with titles for screen readers and colours from the style sheet."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TypeAlias

Point: TypeAlias = tuple[float, float]  # both between 0 and 1

_SIDE, _LEFT, _BOTTOM, _TOP = 240, 44, 40, 10  # pixels of a square plot and its margins


def bar(value: float, interval: tuple[float, float] | None, *, title: str) -> str:
    """Return the SVG of a line from 0 to 1 with a dot at the value and a thick section for its interval, if any.

    >>> bar(0.5, None, title="recall").count("<circle")
    1
    """
    stretch = ""
    if interval is not None:
        a, b = (4 + 112 * x for x in interval)
        stretch = f'<line class="range" x1="{a:.1f}" x2="{max(b, a + 1):.1f}" y1="8" y2="8"/>'
    return (
        f'<svg class="bar" viewBox="0 0 120 16" role="img"><title>{escape(title)}</title>'
        f'<line class="axis" x1="4" x2="116" y1="8" y2="8"/>{stretch}'
        f'<circle class="dot" cx="{4 + 112 * value:.1f}" cy="8" r="2.8"/></svg>'
    )


def share(value: float) -> str:
    """Return the SVG of a line from 0 to 1, thick from 0 to the value; its title is the percentage."""
    return (
        f'<svg class="bar" viewBox="0 0 120 16" role="img"><title>{value:.1%}</title>'
        f'<line class="axis" x1="4" x2="116" y1="8" y2="8"/>'
        f'<line class="range" x1="4" x2="{4 + 112 * value:.1f}" y1="8" y2="8"/></svg>'
    )


def stairs(points: Sequence[Point], *, title: str, across: str, up: str) -> str:
    """Return the SVG of points (x, y) as a curve in steps: each y holds from the x before up to its own."""
    path, last = [], None
    for x, y in points:
        if last is not None:
            path.append(f"L{_x(last[0]):.1f} {_y(y):.1f}")
        path.append(f"{'M' if last is None else 'L'}{_x(x):.1f} {_y(y):.1f}")
        last = (x, y)
    return _plot(f'<path class="curve" d="{" ".join(path)}"/>', title=title, across=across, up=up)


def scatter(points: Sequence[Point], sizes: Sequence[int], *, title: str, across: str, up: str) -> str:
    """Return the SVG of dots (mean score, share right) whose area grows with `sizes`, and the diagonal."""
    diagonal = f'<line class="ideal" x1="{_x(0)}" y1="{_y(0)}" x2="{_x(1)}" y2="{_y(1)}"/>'
    largest = max(sizes, default=1)
    corners = " ".join(f"{_x(x):.1f},{_y(y):.1f}" for x, y in points)
    dots = "".join(
        f'<circle class="dot" cx="{_x(x):.1f}" cy="{_y(y):.1f}" r="{2.5 + 5.5 * (n / largest) ** 0.5:.1f}">'
        f"<title>{n} spans, mean score {x:.2f}, right {y:.2f}</title></circle>"
        for (x, y), n in zip(points, sizes, strict=True)
    )
    line = f'<polyline class="thin" points="{corners}"/>'
    return _plot(diagonal + line + dots, title=title, across=across, up=up)


def _plot(inside: str, *, title: str, across: str, up: str) -> str:
    """Return a square SVG plot around `inside`, with ticks from 0 to 1 and axes named `across` and `up`."""
    ticks = []
    for tenth in (0, 2, 4, 6, 8, 10):
        x, y = _x(tenth / 10), _y(tenth / 10)
        ticks.append(f'<line class="grid" x1="{x}" x2="{x}" y1="{_y(0)}" y2="{_y(1)}"/>')
        ticks.append(f'<line class="grid" x1="{_x(0)}" x2="{_x(1)}" y1="{y}" y2="{y}"/>')
        ticks.append(f'<text x="{x}" y="{_y(0) + 16}" text-anchor="middle">{tenth / 10:g}</text>')
        ticks.append(f'<text x="{_x(0) - 6}" y="{y + 4}" text-anchor="end">{tenth / 10:g}</text>')
    middle = _y(0.5)
    width, height = _LEFT + _SIDE + 12, _TOP + _SIDE + _BOTTOM
    return (
        f'<svg class="plot" viewBox="0 0 {width} {height}" role="img"><title>{escape(title)}</title>{"".join(ticks)}'
        f'<text x="{_x(0.5)}" y="{height - 6}" text-anchor="middle">{escape(across)}</text>'
        f'<text transform="translate(12 {middle}) rotate(-90)" text-anchor="middle">{escape(up)}</text>{inside}</svg>'
    )


def _x(value: float) -> float:
    """Return the horizontal pixel of a value between 0 and 1."""
    return _LEFT + _SIDE * value


def _y(value: float) -> float:
    """Return the vertical pixel of a value between 0 and 1."""
    return _TOP + _SIDE * (1 - value)
