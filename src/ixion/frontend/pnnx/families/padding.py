"""F.pad and the padding modules."""

from __future__ import annotations

from collections.abc import Sequence

from ixion.base.dim import Dim
from ixion.base.errors import ModelFormatError
from ixion.frontend.build import movement
from ixion.frontend.pnnx.convert import Site, converts
from ixion.frontend.pnnx.promote import Item, as_term
from ixion.frontend.term import Term

PAD_MODES = {
    "zeros": "constant", "constant": "constant", "reflect": "reflect", "replicate": "edge",
    "circular": "wrap",
}  # fmt: skip


@converts("F.pad")
def pad(site: Site) -> Term:
    value = site.arg("value", None)
    return _padded(site, site.dims("pad"), str(site.arg("mode", "constant")), value)


@converts(
    "nn.ConstantPad1d", "nn.ConstantPad2d", "nn.ConstantPad3d", "nn.ZeroPad1d", "nn.ZeroPad2d",
    "nn.ZeroPad3d",
)  # fmt: skip
def constant_pad(site: Site) -> Term:
    return _padded(site, _module_widths(site), "constant", site.arg("value", 0.0))


@converts("nn.ReflectionPad1d", "nn.ReflectionPad2d", "nn.ReflectionPad3d")
def reflection_pad(site: Site) -> Term:
    return _padded(site, _module_widths(site), "reflect", None)


@converts("nn.ReplicationPad1d", "nn.ReplicationPad2d", "nn.ReplicationPad3d")
def replication_pad(site: Site) -> Term:
    return _padded(site, _module_widths(site), "replicate", None)


@converts("nn.CircularPad1d", "nn.CircularPad2d", "nn.CircularPad3d")
def circular_pad(site: Site) -> Term:
    return _padded(site, _module_widths(site), "circular", None)


def _module_widths(site: Site) -> tuple[int, ...]:
    return site.ints("padding", 2 * int(site.op.kind[-2]))


def _padded(site: Site, widths: Sequence[Dim], mode: str, value: Item) -> Term:
    """Widths as torch lists them: from the last axis backwards, two an axis."""
    x = site.x
    if len(widths) % 2 or len(widths) > 2 * x.rank:
        raise ModelFormatError(f"{len(widths)} pad widths for rank {x.rank}")
    pairs: list[tuple[Dim, Dim]] = [(0, 0)] * x.rank
    for place in range(len(widths) // 2):
        pairs[x.rank - 1 - place] = (widths[2 * place], widths[2 * place + 1])
    fill = as_term(site.emit, 0 if value is None else value, x.dtype)
    return movement.pad(site.emit, x, pairs, PAD_MODES[mode], fill)
