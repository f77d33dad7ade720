"""Parameters of tests: fixtures made from values, in a module or in a class."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest


@dataclass(frozen=True)
class Correlated:
    """One of several parameters that take their values together; ``group`` is theirs."""

    group: object
    values: tuple[Any, ...]
    ids: tuple[str, ...] | None


def _given() -> Callable[..., Any]:
    # The fixture may stand in a class, and is then called with the instance.
    def given(*_owner: Any, request: pytest.FixtureRequest) -> Any:
        return request.param

    return given


def parameter(
    *values: Any, ids: Sequence[str] | None = None, by_dict: Mapping[str, Any] | None = None
) -> Any:
    """A fixture: whatever test uses it runs once for each value.

    ``by_dict`` gives values and their names at once; TypeError for both forms together.
    """
    if by_dict is not None:
        if values or ids:
            raise TypeError("values are given either one by one or by_dict")
        ids, values = tuple(by_dict), tuple(by_dict.values())
    return pytest.fixture(params=values, ids=ids)(_given())


def parameters(*value_sets: Sequence[Any], ids: Iterable[str] | None = None) -> tuple[Any, ...]:
    """One fixture for each position in the value sets; a test runs once for each set."""
    group, names = object(), None if ids is None else tuple(ids)
    made = []
    for values in zip(*value_sets, strict=True):
        given = _given()
        given.correlated = Correlated(group, values, names)  # type: ignore[attr-defined]
        made.append(pytest.fixture(given))
    return tuple(made)


def fixture(func: Any = None, *, cache_return_value: bool = False) -> Any:
    """Pytest's fixture; with ``cache_return_value`` it is made once for a module."""
    mark = pytest.fixture(scope="module" if cache_return_value else "function")
    return mark if func is None else mark(func)


__all__ = ["Correlated", "fixture", "parameter", "parameters"]
