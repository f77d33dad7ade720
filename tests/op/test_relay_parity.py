"""Ops that exist in Relay have its arguments, levels, patterns and attribute fields."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import ixion.op  # noqa: F401 - fills the registry
from ixion.ir.node import NODE_TYPES
from ixion.ir.op import OP_TABLE

FACTS = Path(__file__).parents[3] / "shared" / "facts"
if not FACTS.is_dir():
    pytest.skip("the inventory of Relay is not here", allow_module_level=True)

OPS = json.loads((FACTS / "relay_ops.json").read_text())
ATTRS = json.loads((FACTS / "relay_attrs.json").read_text())
PATTERNS = {
    "kElemWise": 0, "kBroadcast": 1, "kInjective": 2, "kCommReduce": 3, "kOutEWiseFusable": 4,
    "kTuple": 7, "kOpaque": 8,
}  # fmt: skip
SHARED = sorted(set(OPS) & set(OP_TABLE))
KNOWN = sorted(k for k, a in ATTRS.items() if a["key"] in NODE_TYPES)
# Inventory rows that list no default although the value is optional in Relay.
OPTIONAL = {"k", "units", "shape", "begin", "end", "strides", "axes", "score_threshold"}


@pytest.mark.parametrize("name", SHARED)
def test_op_is_relays(name: str) -> None:
    ours, theirs = OP_TABLE[name], OPS[name]
    assert ours.support_level == (10 if theirs["level"] is None else theirs["level"])
    names = [a[0] for a in theirs["args"] if a[0] != "slice_mode"]
    assert [a.name for a in ours.arguments] == names
    if theirs["pat"] is not None:
        assert int(ours.get_attr("TOpPattern")) == PATTERNS[theirs["pat"]]
    # Relay registers one attrs kind for avg_pool2d_grad and makes its calls with the other.
    if theirs["attrs"] is not None and name != "nn.avg_pool2d_grad":
        assert ours.attrs_type_key.endswith(ATTRS[theirs["attrs"]]["key"].rsplit(".", 1)[-1])


def default_of(text: str) -> Any:
    """A default in C++ as a Python value; NotImplemented where it is none of the simple kinds."""
    text = text.strip()
    if "NullValue" in text:
        return None
    inner = re.fullmatch(r"(?:Array<\w+>|Integer|Bool)\(?\s*\{?(.*?)\}?\s*\)?", text)
    if text.startswith("Array<") and inner:
        parts = [p.strip() for p in inner.group(1).strip("{} ,").split(",") if p.strip()]
        return tuple(int(p) for p in parts) if all(p.isdigit() for p in parts) else NotImplemented
    if inner and not text.startswith("Array<"):
        text = inner.group(1)
    if text in ("true", "false"):
        return text == "true"
    if text.startswith('"'):
        return text.strip('"')
    try:
        return float(text)
    except ValueError:
        return NotImplemented


@pytest.mark.parametrize("name", KNOWN)
def test_attributes_are_relays(name: str) -> None:
    kind = NODE_TYPES[ATTRS[name]["key"]]
    fields = ATTRS[name]["fields"]
    assert [f.name for f in kind._fields] == [f[0] for f in fields]
    for ours, (field, _, default, _bound) in zip(kind._fields, fields, strict=True):
        if default is None:
            continue
        wanted = default_of(default)
        if wanted is NotImplemented or (wanted is None and "dtype" in field):
            continue
        if wanted is None and ours.required:
            continue
        assert not ours.required, field
        assert ours.default == wanted or field in OPTIONAL, f"{field}: {ours.default!r}"
