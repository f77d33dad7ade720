"""The ratios as a bar chart in SVG."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape
from typing import Any

from harness.report import geometric_mean, ratios

_COLOURS = ("#2b6cb0", "#ed8936", "#38a169", "#805ad5")
_LEFT, _WIDTH, _ROW, _TOP = 170, 560, 26, 64


def bars(document: Mapping[str, Any]) -> str:
    """Ours / fastest peer for every network, a bar for each number of threads; 1 is a line."""
    series = {str(count): ratios(document, str(count)) for count in document["threads"]}
    names = [n for n in document["networks"] if any(n in found for found in series.values())]
    rows = [(n, {k: found.get(n) for k, found in series.items()}) for n in names]
    means = {k: geometric_mean(list(found.values())) for k, found in series.items() if found}
    rows.append(("geometric mean", dict(means)))
    values = [v for _, by in rows for v in by.values() if v is not None]
    scale = _WIDTH / max([1.1, *values])
    height = _TOP + _ROW * len(rows) + 16
    parts = [_head(height), _legend(list(series))]
    for number, (name, by) in enumerate(rows):
        parts.append(_row(name, by, _TOP + number * _ROW, scale))
    x = _LEFT + scale
    parts.append(_line(x, _TOP - 8, height - 10))
    parts.append(_text(x, _TOP - 12, "fastest peer", "middle"))
    return "\n".join([*parts, "</svg>\n"])


def _head(height: int) -> str:
    size = f'width="{_LEFT + _WIDTH + 70}" height="{height}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">\n'
        f'<rect width="100%" height="100%" fill="white"/>'
    )


def _legend(threads: list[str]) -> str:
    parts = [_text(_LEFT, 20, "time of Ixion / time of the fastest peer; shorter is better")]
    for number, count in enumerate(threads):
        x, colour = _LEFT + number * 110, _COLOURS[number % len(_COLOURS)]
        parts.append(f'<rect x="{x}" y="28" width="10" height="10" fill="{colour}"/>')
        parts.append(_text(x + 15, 37, f"{count} thread{'s' * (count != '1')}"))
    return "\n".join(parts)


def _row(name: str, by: Mapping[str, float | None], y: int, scale: float) -> str:
    parts = [_text(_LEFT - 8, y + 14, name, "end")]
    thick = (_ROW - 6) / max(1, len(by))
    for number, found in enumerate(by.values()):
        if found is None or math.isnan(found):
            continue
        top, long = y + number * thick, found * scale
        colour = _COLOURS[number % len(_COLOURS)]
        box = f'x="{_LEFT}" y="{top:.1f}" width="{long:.1f}" height="{thick - 1:.1f}"'
        parts.append(f'<rect {box} fill="{colour}"/>')
        size = 'font-size="9"'
        where = f'x="{_LEFT + long + 4:.1f}" y="{top + thick - 2:.1f}"'
        parts.append(f"<text {where} {size}>{found:.2f}</text>")
    return "\n".join(parts)


def _line(x: float, top: float, bottom: float) -> str:
    style = 'stroke="#444" stroke-dasharray="4 3"'
    return f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom}" {style}/>'


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
