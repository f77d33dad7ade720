"""Half-block pictures."""

from __future__ import annotations

import numpy as np

from ixion.cli.picture import half_blocks

IMAGE = np.array([[1, 0, 0, 1], [0, 1, 0, 1]])


def test_without_colour_ink_becomes_blocks() -> None:
    assert half_blocks(IMAGE, colour=False).plain == "\u2580\u2584 \u2588"


def test_with_colour_both_pixels_keep_their_grey() -> None:
    text = half_blocks(np.array([[0.5], [2.0]]), colour=True)
    assert text.plain == "\u2580"
    assert str(text.spans[0].style) == "rgb(128,128,128) on rgb(255,255,255)"


def test_two_rows_make_one_line() -> None:
    assert half_blocks(np.zeros((8, 3)), colour=False).plain.split("\n") == ["   "] * 4
