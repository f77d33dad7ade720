"""Makes the package importable as an installed one would be, and undoes what tests add to it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def with_compute() -> Iterator[None]:
    """`extra.squash` with its compute, for one test."""
    from ixion.ir import Op
    from ixion.op.define import OpPattern
    from ixion_extra import give_compute
    from ixion_extra.operators import NAME

    give_compute()
    yield
    op = Op.get(NAME)
    op.reset_attr("FTVMCompute")
    op.reset_attr("TOpPattern")
    op.set_attr("TOpPattern", OpPattern.OPAQUE)
