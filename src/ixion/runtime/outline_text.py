"""Outlines as JSON: dims that are not numbers are written as text."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ixion.base import dim as dims
from ixion.base.dim import Dim
from ixion.base.errors import CodegenError
from ixion.base.guard import Guard
from ixion.runtime.outline import Outline, OutlineStep, RoomSpec
from ixion.runtime.program import HostStep, StateSpec, TensorSpec

_PLAIN = OutlineStep()


def encode_outline(outline: Outline) -> dict[str, Any]:
    """Everything but constants and machine code."""
    return {
        "target_key": outline.target_key,
        "rooms": [_room(spec) for spec in outline.rooms],
        "steps": [_step(step) for step in outline.steps],
        "inputs": [_spec(s) for s in outline.inputs],
        "outputs": [_spec(s) for s in outline.outputs],
        "hosts": [
            [h.op, _attr(h.attrs), [_spec(s) for s in h.inputs], [_spec(s) for s in h.outputs]]
            for h in outline.hosts
        ],
        "states": [asdict(s) for s in outline.states],
        "output_rooms": outline.output_rooms,
        "guards": [
            [g.kind, _text(g.left), _text(g.right), g.what, g.place()] for g in outline.guards
        ],
        "carried": outline.carried,
        "meta": outline.meta,
    }


def decode_outline(row: dict[str, Any], objects: list[bytes], constants: list[Any]) -> Outline:
    """The outline that ``encode_outline`` wrote.

    Raises CodegenError, ValueError, LookupError or TypeError for anything else.
    """
    outline = Outline(
        rooms=[_read_room(r) for r in row["rooms"]],
        steps=[_read_step(r) for r in row["steps"]],
        constants=constants,
        inputs=[_read_spec(r) for r in row["inputs"]],
        outputs=[_read_spec(r) for r in row["outputs"]],
        target_key=row["target_key"],
        objects=objects,
        hosts=[_read_host(r) for r in row["hosts"]],
        states=[StateSpec(**{**r, "shape": tuple(r["shape"])}) for r in row["states"]],
        output_rooms=[int(n) for n in row["output_rooms"]],
        guards=[
            Guard(kind, _dim(a), _dim(b), what, place) for kind, a, b, what, place in row["guards"]
        ],
        carried=[int(n) for n in row["carried"]],
        meta=row["meta"],
    )
    _check(outline)
    return outline


def _text(dim: Dim) -> int | str:
    return dim if isinstance(dim, int) else str(dim)


def _dim(value: int | str) -> Dim:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise TypeError(f"{value!r} is not a dim")
    return value if isinstance(value, int) else dims.parse(value)


def _spec(spec: TensorSpec) -> list[Any]:
    return [spec.name, [_text(d) for d in spec.shape], spec.dtype]


def _read_spec(row: list[Any]) -> TensorSpec:
    return TensorSpec(row[0], tuple(_dim(d) for d in row[1]), row[2])  # type: ignore[misc]


def _room(spec: RoomSpec) -> list[Any]:
    return [
        spec.kind, _text(spec.nbytes), spec.index, spec.first, spec.last, spec.parent,
        _text(spec.at),
    ]  # fmt: skip


def _read_room(row: list[Any]) -> RoomSpec:
    kind, nbytes, index, first, last, parent, at = row
    return RoomSpec(kind, _dim(nbytes), index, first, last, parent, _dim(at))


def _step(step: OutlineStep) -> dict[str, Any]:
    """The fields that differ from the defaults."""
    fields = {
        name: getattr(step, name)
        for name in OutlineStep.__dataclass_fields__
        if getattr(step, name) != getattr(_PLAIN, name)
    }
    for name in ("tasks", "scratch", "products", "moved"):
        if name in fields:
            fields[name] = _text(fields[name])
    if "scalars" in fields:
        fields["scalars"] = [_text(s) for s in step.scalars]
    if step.when is not None:
        fields["when"] = [_text(step.when[0]), *step.when[1:]]
    return fields


def _read_step(row: dict[str, Any]) -> OutlineStep:
    fields = dict(row)
    for name in ("tasks", "scratch", "products", "moved"):
        if name in fields:
            fields[name] = _dim(fields[name])
    for name in ("rooms", "written"):
        fields[name] = tuple(fields.get(name, ()))
    fields["scalars"] = tuple(_dim(s) for s in fields.get("scalars", ()))
    if "when" in fields:
        dim, least, most = fields["when"]
        fields["when"] = (_dim(dim), int(least), int(most))
    return OutlineStep(**fields)


def _read_host(row: list[Any]) -> HostStep:
    op, attrs, inputs, outputs = row
    return HostStep(
        op, _read_attrs(attrs), tuple(map(_read_spec, inputs)), tuple(map(_read_spec, outputs))
    )


def _attr(value: Any) -> Any:
    """An attribute; a dim as an object of its text."""
    if isinstance(value, dict):
        return {name: _attr(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_attr(one) for one in value]
    return {"dim": str(value)} if isinstance(value, dims.SymExpr) else value


def _read_attrs(attrs: dict[str, Any]) -> dict[str, Any]:
    return {name: _read_attr(value) for name, value in attrs.items()}


def _read_attr(value: Any) -> Any:
    if isinstance(value, list):
        return [_read_attr(one) for one in value]
    return dims.parse(value["dim"]) if isinstance(value, dict) else value


def _check(outline: Outline) -> None:
    """Numbers of rooms, hosts, tensors that are not there."""
    for number, room in enumerate(outline.rooms):
        if not -1 <= room.parent < number:
            raise CodegenError("a room inside one that comes later", found=number)
    total = len(outline.rooms)
    for step in outline.steps:
        if not all(0 <= n < total for n in step.rooms) or len(step.rooms) != len(step.written):
            raise CodegenError("a step over rooms that are not there", where=step.label)
    if len(outline.output_rooms) != len(outline.outputs) or not all(
        -1 <= n < total for n in outline.output_rooms
    ):
        raise CodegenError("results in rooms that are not there")
