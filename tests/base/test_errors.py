"""Errors say what happened, where, and what to do."""

from __future__ import annotations

import copy

import pytest

from ixion.base import errors


def test_all_parts_are_shown_one_a_line() -> None:
    error = errors.InputError("wrong rank", where="x", expected=4, found=2, hint="add a dim")
    assert str(error).splitlines() == [
        "wrong rank",
        "  where: x",
        "  expected: 4",
        "  found: 2",
        "  hint: add a dim",
    ]


def test_parts_left_out_are_not_shown() -> None:
    assert str(errors.IxionError("plain")) == "plain"


def test_nearest_finds_typos_and_case_but_not_strangers() -> None:
    assert errors.nearest("nn.conv2", ["nn.conv2d", "nn.dense"]) == "nn.conv2d"
    assert errors.nearest("RELU", ["relu", "tanh"]) == "relu"
    assert errors.nearest("zzz", ["relu", "tanh"]) is None
    assert errors.did_you_mean("tanhh", ["relu", "tanh"]) == "did you mean 'tanh'?"


def test_unsupported_operators_are_reported_all_at_once() -> None:
    error = errors.UnsupportedOpError([("Foo", 5, list("abcd")), ("Bar", 1, [])], where="m.onnx")
    assert "2 unsupported operator(s), 6 node(s)" in str(error)
    assert "Foo x5 at a, b, c, ..." in str(error)
    assert "Bar x1" in str(error)
    assert error.ops[0][1] == 5


def test_kernel_errors_name_the_step() -> None:
    error = errors.KernelError("index out of range", step=3, node="gather", index=7)
    assert (error.step, error.node, error.index) == (3, "gather", 7)
    assert "step 3, node gather, index 7" in str(error)


@pytest.mark.parametrize(
    ("kind", "builtin"),
    [
        (errors.ModelFormatError, ValueError),
        (errors.TypeInferenceError, TypeError),
        (errors.InputError, ValueError),
        (errors.UnknownAttributeError, AttributeError),
        (errors.AttributesError, TypeError),
    ],
)
def test_callers_may_catch_the_builtin(kind: type[Exception], builtin: type[Exception]) -> None:
    assert issubclass(kind, builtin)
    assert issubclass(kind, errors.IxionError)


def test_errors_travel_between_processes() -> None:
    error = errors.UnsupportedOpError([("Foo", 1, ["a"])], hint="h")
    again = copy.copy(error)
    assert str(again) == str(error)
    assert again.ops == error.ops
