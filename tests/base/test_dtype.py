"""Names of element types and their numpy counterparts."""

from __future__ import annotations

import numpy as np
import pytest

from ixion.base import dtype

_WITH_NUMPY = sorted(dtype.NAMES - {"handle"})


@pytest.mark.parametrize("name", _WITH_NUMPY)
def test_to_numpy_and_back(name: str) -> None:
    assert dtype.from_numpy(dtype.to_numpy(name)) == name
    assert dtype.to_numpy(name).itemsize == dtype.itemsize(name)


def test_classes_of_types() -> None:
    assert dtype.is_float("bfloat16")
    assert dtype.is_float("float8_e4m3fn")
    assert not dtype.is_float("complex64")
    assert dtype.is_integer("uint8")
    assert not dtype.is_integer("bool")
    assert dtype.is_signed("int8")
    assert not dtype.is_signed("uint8")
    assert dtype.is_bool("bool")
    assert dtype.is_complex("complex128")
    assert (dtype.bits("bool"), dtype.bits("int4"), dtype.bits("bfloat16")) == (1, 4, 16)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("float", "float32"),
        ("int", "int32"),
        ("float32", "float32"),
        (np.float64, "float64"),
        (np.dtype("uint8"), "uint8"),
        (bool, "bool"),
        (float, "float32"),
        ("int3", "int3"),
        ("float32x4", "float32x4"),
        ("custom[posit]32", "custom[posit]32"),
    ],
)
def test_normalize(given: object, name: str) -> None:
    assert dtype.normalize(given) == name


def test_unknown_names_get_a_hint() -> None:
    with pytest.raises(dtype.DTypeError, match="did you mean 'bfloat16'"):
        dtype.normalize("bflot16")
    with pytest.raises(dtype.DTypeError):
        dtype.to_numpy("int3")
    with pytest.raises(dtype.DTypeError):
        dtype.from_numpy(np.dtype("U3"))
