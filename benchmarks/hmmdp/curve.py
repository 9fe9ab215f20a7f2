"""Curves of F1 as a drawing: a line per system, over training notes or a setting, on a logarithmic scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from math import ceil, log

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 560, 340, 48, 150, 14, 44
COLOURS = ("#1b6ca8", "#c2541b", "#3b7d3a", "#7a4fa3", "#555555", "#a8871b")
DASHES = ("", "6 3", "2 3", "8 3 2 3", "1 4", "12 4")


def draw(curves: Mapping[str, Sequence[tuple[float, float]]], *, up: str, along: str = "training notes") -> str:
    """An SVG of curves by name, each of points (x, F1); `up` and `along` say what the axes are.

    >>> draw({"a": [(10, 0.5), (100, 0.75)]}, up="F1").count("<polyline")
    1
    """
    places = sorted({x for points in curves.values() for x, _ in points})
    lowest = min(y for points in curves.values() for _, y in points)
    floor = min(int(lowest * 10), 9) / 10
    top = max(ceil(max(y for points in curves.values() for _, y in points) * 10) / 10, floor + 0.1)

    def across(x: float) -> float:
        whole = log(places[-1] / places[0]) or 1.0
        return LEFT + (WIDTH - LEFT - RIGHT) * log(x / places[0]) / whole

    def height(y: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - (y - floor) / (top - floor))

    parts = [_text(across(x), HEIGHT - BOTTOM + 18, f"{x:g}", "middle") for x in places]
    for tenth in range(round(floor * 10), round(top * 10) + 1):
        y = height(tenth / 10)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(_text(LEFT - 6, y + 4, f"{tenth / 10:.1f}", "end"))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, along, "middle"))
    parts.append(_text(LEFT, TOP - 3, up, "start"))
    for number, (name, points) in enumerate(curves.items()):
        colour, dash = COLOURS[number % len(COLOURS)], DASHES[number % len(DASHES)]
        spots = [(across(x), height(y)) for x, y in points]
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
        line = f'stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"'
        parts.append(f'<polyline fill="none" {line} points="{joined}"/>')
        parts += [
            f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3" fill="{colour}">'
            f"<title>{escape(name)}, {escape(along)} {x:g}: {y:.3f}</title></circle>"
            for (px, py), (x, y) in zip(spots, points, strict=True)
        ]
        at = TOP + 16 + 20 * number
        parts.append(f'<line x1="{WIDTH - RIGHT + 14}" x2="{WIDTH - RIGHT + 38}" y1="{at}" y2="{at}" {line}/>')
        parts.append(_text(WIDTH - RIGHT + 44, at + 4, name, "start"))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'font-family="sans-serif" font-size="12"><title>{escape(up)} by {escape(along)}</title>'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>{"".join(parts)}</svg>\n'
    )


def _text(x: float, y: float, words: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'
