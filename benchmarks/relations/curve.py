"""Precision against recall as a drawing: a line per system, both axes from 0 to 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

SIDE, LEFT, TOP, RIGHT, BOTTOM = 320, 48, 14, 240, 44
COLOURS = ("#1b6ca8", "#c2541b", "#3b7d3a", "#7a4fa3", "#555555", "#a8861b")
DASHES = ("", "5 3")


def draw(
    curves: Mapping[str, Sequence[tuple[float, float]]],
    bands: Mapping[str, Sequence[tuple[float, float, float]]] | None = None,
) -> str:
    """An SVG of curves by name, each of points (recall, precision); bands have recall, and the edges of precision.

    >>> draw({"a": [(0.1, 0.9), (0.2, 0.5)]}).count("<polyline")
    1
    """
    width, height = LEFT + SIDE + RIGHT, TOP + SIDE + BOTTOM
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">']
    parts.append(f'<rect width="{width}" height="{height}" fill="white"/>')
    for tenth in range(0, 11, 2):
        x, y = _x(tenth / 10), _y(tenth / 10)
        parts.append(f'<path d="M{x} {_y(0)}V{_y(1)}M{_x(0)} {y}H{_x(1)}" stroke="#dddddd" fill="none"/>')
        parts.append(f'<text x="{x}" y="{_y(0) + 16}" font-size="11" text-anchor="middle">{tenth / 10:g}</text>')
        parts.append(f'<text x="{_x(0) - 6}" y="{y + 4}" font-size="11" text-anchor="end">{tenth / 10:g}</text>')
    parts.append(f'<text x="{_x(0.5)}" y="{height - 8}" font-size="12" text-anchor="middle">recall</text>')
    turn = f"translate(14 {_y(0.5)}) rotate(-90)"
    parts.append(f'<text transform="{turn}" font-size="12" text-anchor="middle">precision</text>')
    for n, (name, points) in enumerate(curves.items()):
        line = " ".join(f"{_x(x):.1f},{_y(y):.1f}" for x, y in points)
        colour, dash = COLOURS[n % len(COLOURS)], DASHES[n // len(COLOURS) % len(DASHES)]
        style = f'stroke="{colour}" stroke-dasharray="{dash}" fill="none" stroke-width="1.6"'
        if band := (bands or {}).get(name):
            edge = [(x, high) for x, _, high in band] + [(x, low) for x, low, _ in reversed(band)]
            around = " ".join(f"{_x(x):.1f},{_y(y):.1f}" for x, y in edge)
            parts.append(f'<polygon points="{around}" fill="{colour}" fill-opacity="0.08" stroke="none"/>')
        parts.append(f'<polyline points="{line}" {style}/>')
        at = TOP + 12 + 17 * n
        parts.append(f'<path d="M{LEFT + SIDE + 14} {at - 4}h22" {style}/>')
        parts.append(f'<text x="{LEFT + SIDE + 42}" y="{at}" font-size="11">{escape(name)}</text>')
    return "\n".join((*parts, "</svg>\n"))


def _x(value: float) -> float:
    return LEFT + SIDE * value


def _y(value: float) -> float:
    return TOP + SIDE * (1 - value)
