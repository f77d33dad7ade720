"""Spans and source names."""

from __future__ import annotations

import copy

import pytest

from ixion.base.span import SequentialSpan, SourceName, Span


def test_names_are_interned() -> None:
    assert SourceName("a.onnx") is SourceName("a.onnx")
    assert copy.deepcopy(SourceName("a.onnx")) is SourceName("a.onnx")


def test_spans_compare_by_value() -> None:
    assert Span("a", 1, 2, 3, 4) == Span(SourceName("a"), 1, 2, 3, 4)
    assert hash(Span("a", 1, 2, 3, 4)) == hash(Span("a", 1, 2, 3, 4))
    assert Span("a", 1, 2, 3, 4) != Span("b", 1, 2, 3, 4)
    span = Span(None, 1, 2, 3, 4)
    assert span.source_name is None
    assert span.same_as(span)


def test_merge_covers_both() -> None:
    merged = Span("a", 2, 2, 5, 9).merge(Span("a", 1, 3, 7, 2))
    assert merged == Span("a", 1, 3, 7, 2)
    with pytest.raises(ValueError, match="cannot merge"):
        Span("a").merge(Span("b"))


def test_text() -> None:
    assert str(Span("a.relay", 3, 3, 7, 9)) == "a.relay:3:7"
    assert str(Span("model.onnx")) == "model.onnx"


def test_sequential_spans_flatten() -> None:
    a, b, c = Span("a"), Span("b"), Span("c")
    made = SequentialSpan([SequentialSpan([a, b]), c])
    assert made.spans == (a, b, c)
    assert made.source_name == SourceName("a")
    assert str(made) == "a, b, c"
    assert made == SequentialSpan([a, b, c])
