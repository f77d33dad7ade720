import random
import zipfile

import numpy as np
import pytest

from ixion.base.errors import ModelFormatError
from ixion.frontend.pnnx.archive import Archive
from ixion.frontend.pnnx.param import parse_param

WEIGHT = np.arange(6, dtype=np.float32).reshape(2, 3)


def op(name="l", line="@w=(2,3)f32"):
    return parse_param(f"7767517\n1 1\nnn.X {name} 0 1 0 {line}\n").operators[0]


def write(path, entries, method=zipfile.ZIP_STORED, zip64=False):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in entries:
            with archive.open(name, "w", force_zip64=zip64) as stream:
                stream.write(data)
    return path


@pytest.mark.parametrize("zip64", [False, True])
def test_a_weight(tmp_path, zip64):
    path = write(tmp_path / "m.bin", [("l.w", WEIGHT.tobytes())], zip64=zip64)
    with Archive(path) as archive:
        got = archive.weight(op(), "w")
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, WEIGHT)


def test_scalars_and_empty_weights(tmp_path):
    path = write(tmp_path / "m.bin", [("l.a", b"\x01\0\0\0\0\0\0\0"), ("l.b", b"")])
    operator = op(line="@a=()i64 @b=(0,4)f32")
    with Archive(path) as archive:
        assert archive.weight(operator, "a").shape == ()
        assert archive.weight(operator, "a") == 1
        assert archive.weight(operator, "b").shape == (0, 4)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_equal_names_are_told_apart_by_order(tmp_path):
    entries = [("l.w", WEIGHT.tobytes()), ("l.w", (WEIGHT + 1).tobytes())]
    with Archive(write(tmp_path / "m.bin", entries)) as archive:
        np.testing.assert_array_equal(archive.weight(op(), "w"), WEIGHT)
        np.testing.assert_array_equal(archive.weight(op(), "w", 1), WEIGHT + 1)


def test_missing_wrong_and_compressed_entries(tmp_path):
    path = write(tmp_path / "m.bin", [("l.w", b"1234")])
    with Archive(path) as archive:
        with pytest.raises(ModelFormatError, match="wrong size"):
            archive.weight(op(line="@w=(2)f32 @v=(1)f32"), "w")
        with pytest.raises(ModelFormatError, match=r"no weight 'l\.v'"):
            archive.weight(op(line="@v=(1)f32"), "v")
        with pytest.raises(ModelFormatError, match="larger than the file"):
            archive.weight(op(line="@w=(1000000000,1000000)f32"), "w")
        with pytest.raises(ModelFormatError, match="dtype"):
            archive.weight(op(line="@w=(1)c32"), "w")
    path = write(tmp_path / "z.bin", [("l.w", bytes(24))], zipfile.ZIP_DEFLATED)
    with Archive(path) as archive, pytest.raises(ModelFormatError):
        archive.weight(op(), "w")


def test_a_damaged_weight(tmp_path):
    path = write(tmp_path / "m.bin", [("l.w", WEIGHT.tobytes())])
    data = bytearray(path.read_bytes())
    at = data.find(WEIGHT.tobytes())
    data[at + 5] ^= 1
    path.write_bytes(data)
    with Archive(path) as archive, pytest.raises(ModelFormatError, match="damaged"):
        archive.weight(op(), "w")


def test_no_zip(tmp_path):
    with pytest.raises(ModelFormatError, match="missing"):
        Archive(tmp_path / "missing.bin")
    for data in (b"", b"PK\x03\x04", random.Random(1).randbytes(500)):
        (tmp_path / "m.bin").write_bytes(data)
        with pytest.raises(ModelFormatError):
            Archive(tmp_path / "m.bin")


def test_mutated_archives(tmp_path):
    path = write(tmp_path / "m.bin", [("l.w", WEIGHT.tobytes())], zip64=True)
    data = path.read_bytes()
    rng = random.Random(2)
    for _ in range(500):
        mutant = bytearray(data)
        for _ in range(rng.choice([1, 2, 6])):
            mutant[rng.randrange(len(mutant))] = rng.randrange(256)
        path.write_bytes(mutant[: rng.choice([len(mutant), rng.randrange(len(mutant))])])
        try:
            with Archive(path) as archive:
                archive.weight(op(), "w")
        except ModelFormatError:
            continue
