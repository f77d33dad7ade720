"""Keys of .npz files, tolerance, and writing all or nothing."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from ixion.base.errors import InputError
from ixion.cli import arrays

ONE = np.ones(1, np.float32)
TWO = np.full(1, 2, np.float32)


@pytest.mark.parametrize(
    "stored",
    [
        {"x": ONE, "y": TWO},
        {"in:x": ONE, "in:y": TWO},
        {"in0": ONE, "in1": TWO},
        {"x": ONE, "in1": TWO},
        {"in:x": ONE, "y": TWO, "out0": TWO, "out:z": ONE, "z": ONE},
    ],
)
def test_keys_by_name_and_by_position(stored: dict[str, np.ndarray]) -> None:
    picked = arrays.pick_inputs(stored, ["x", "y"], ["z"])
    assert picked["x"] is ONE
    assert picked["y"] is TWO


def test_a_name_wins_over_a_position() -> None:
    # Inputs that are themselves called in1 and in0.
    picked = arrays.pick({"in0": ONE, "in1": TWO}, ["in1", "in0"], "in")
    assert picked["in1"] is TWO
    assert picked["in0"] is ONE


def test_missing_arrays_are_named_all_at_once() -> None:
    with pytest.raises(InputError, match="'x', 'weight'") as caught:
        arrays.pick({"X0": ONE, "wieght": TWO}, ["x", "weight"], "in")
    assert "X0, wieght" in str(caught.value)


def test_an_array_of_no_input_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(InputError, match="'imagge' belongs to no input") as caught:
        arrays.pick_inputs({"image": ONE, "imagge": TWO}, ["image"], ["logits"])
    assert "did you mean 'image'" in str(caught.value)


@pytest.mark.parametrize(
    ("got", "want", "within", "largest"),
    [
        ([1.0, 2.0], [1.0, 2.0], True, 0),
        ([1.0, 2.02], [1.0, 2.0], False, 0.02),
        ([1.0, 2.001], [1.0, 2.0], True, 0.001),
        ([np.nan, np.inf], [np.nan, np.inf], True, 0),
        ([np.nan], [1.0], False, np.inf),
        ([1.0], [np.nan], False, np.inf),
        ([np.inf], [-np.inf], False, np.inf),
        ([1e30], [np.inf], False, np.inf),
        ([], [], True, 0),
        ([[1.0]], [1.0], False, np.inf),
    ],
)
def test_difference(got: list[float], want: list[float], within: bool, largest: float) -> None:
    found = arrays.difference(np.array(got), np.array(want), rtol=1e-3, atol=1e-4)
    assert found.within is within
    assert found.largest == pytest.approx(largest)


def test_difference_without_any_tolerance_is_equality() -> None:
    one = np.array([7, 8], np.uint8)
    assert arrays.difference(one, one, 0, 0).within
    assert not arrays.difference(one, one + 1, 0, 0).within


def test_another_dtype_is_mentioned() -> None:
    found = arrays.difference(np.ones(2, np.int32), np.ones(2, np.int64), 0, 0)
    assert found.within
    assert found.reason == "int32, expected int64"


def test_integers_far_apart_do_not_wrap() -> None:
    found = arrays.difference(np.array([0], np.uint8), np.array([255], np.uint8), 0, 0)
    assert found.largest == 255


def test_write_and_read_keep_names_and_types(tmp_path: Path) -> None:
    path = tmp_path / "out.npz"
    half = np.arange(3).astype(ml_dtypes.bfloat16)
    arrays.write_npz(path, {"file": ONE, "block/0:1": TWO, "half": half, "scalar": np.array(3)})
    with np.load(path) as written:
        assert set(written.files) == {"file", "block/0:1", "half", "scalar"}
    stored = arrays.read_npz(path)
    assert stored["scalar"].shape == ()
    np.testing.assert_array_equal(stored["file"], ONE)
    read = arrays.typed(stored["half"], "bfloat16")
    assert read.dtype == half.dtype
    np.testing.assert_array_equal(read, half)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "out.npz"
    path.write_bytes(b"old")
    refused = np.array([object()])
    with pytest.raises(ValueError, match="allow_pickle"):
        arrays.write_npz(path, {"x": ONE, "bad": refused})
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.npz"]


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"no zip at all" * 40])
def test_broken_npz(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "in.npz"
    path.write_bytes(content)
    with pytest.raises(InputError, match="not a readable"):
        arrays.read_npz(path)


@pytest.mark.parametrize(("field", "value"), [(6, 1), (8, 99)], ids=["encrypted", "compression"])
def test_npz_that_zipfile_does_not_support(tmp_path: Path, field: int, value: int) -> None:
    path = tmp_path / "in.npz"
    np.savez(path, x=ONE)
    content = bytearray(path.read_bytes())
    # The same field stands two bytes further on in the central directory.
    content[content.find(b"PK\3\4") + field] = value
    content[content.find(b"PK\1\2") + field + 2] = value
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"not a readable \.npz"):
        arrays.read_npz(path)


def test_truncated_or_damaged_npz(tmp_path: Path) -> None:
    path = tmp_path / "in.npz"
    np.savez(path, x=np.arange(1000.0))
    whole = path.read_bytes()
    for damaged in (whole[:500], whole[:-10], whole.replace(b"fortran_order", b"fortran_0rder")):
        path.write_bytes(damaged)
        with pytest.raises(InputError):
            arrays.read_npz(path)


def test_pickled_arrays_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "in.npz"
    np.savez(path, x=np.array([{"a": 1}], dtype=object))
    with pytest.raises(InputError, match="pickle"):
        arrays.read_npz(path)
