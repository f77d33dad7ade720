"""Grey pictures in a terminal: one character shows two pixels, one above the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from rich.text import Text

UPPER_HALF = "\u2580"
# By (upper pixel is ink, lower pixel is ink): space, lower half, upper half, full block.
BLOCKS = {
    (False, False): " ",
    (False, True): "\u2584",
    (True, False): "\u2580",
    (True, True): "\u2588",
}


def half_blocks(image: np.ndarray[Any, Any], *, colour: bool) -> Text:
    """`image` [H, W] with ink 0..1, H even, as H/2 lines of W characters.

    With colour every pixel keeps its grey level; without, ink is what passes a third of full.
    """
    from rich.text import Text

    text = Text()
    for upper, lower in zip(image[::2], image[1::2], strict=True):
        if len(text):
            text.append("\n")
        for top, bottom in zip(upper, lower, strict=True):
            if colour:
                text.append(UPPER_HALF, style=f"{_grey(top)} on {_grey(bottom)}")
            else:
                text.append(BLOCKS[bool(top > 1 / 3), bool(bottom > 1 / 3)])
    return text


def _grey(ink: float) -> str:
    level = round(255 * float(np.clip(ink, 0, 1)))
    return f"rgb({level},{level},{level})"
