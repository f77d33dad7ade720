"""Passes checked by text: a program in, the expected program out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ixion.analysis import check_typed, check_well_formed
from ixion.ir import IRModule, assert_structural_equal, parse
from ixion.transform import InferType, Pass, PassContext

Check = Callable[..., IRModule]


def typed(text: str) -> IRModule:
    """A module from text without its version line, type checked."""
    return InferType()(parse('#[version = "0.0.5"]\n' + text))


@pytest.fixture
def module() -> Callable[[str], IRModule]:
    return typed


@pytest.fixture
def check() -> Check:
    """``check(pass, before, after, opt_level=3, config=None)``: the pass turns one text into the
    other. The program is well formed and typed before and after, and the input is not touched.
    """

    def run(
        transform: Pass,
        before: str,
        after: str,
        opt_level: int = 3,
        config: dict[str, Any] | None = None,
    ) -> IRModule:
        source, expected = typed(before), typed(after)
        check_well_formed(source)
        with PassContext(opt_level=opt_level, config=config):
            found = InferType()(transform(source))
        check_well_formed(found)
        check_typed(found)
        assert_structural_equal(found, expected)
        assert_structural_equal(source, typed(before))
        return found

    return run
