"""Programs on disk: whole or refused."""

import ml_dtypes
import numpy as np
import pytest
from tiny_programs import arena, imm, program

from ixion.base.errors import CacheError
from ixion.runtime.executable import Executable
from ixion.runtime.program import HostStep, Program, Slot, StateSpec, Step, TensorSpec
from ixion.runtime.program_file import load_program, save_program


def example() -> Program:
    spec = TensorSpec("in/put ü", (4,), "float32")
    constants = [
        np.arange(4, dtype=np.float32),
        np.arange(6).reshape(2, 3).T.astype(ml_dtypes.bfloat16),
        np.zeros((0, 5), np.int8),
        np.array(True),
    ]
    steps = [
        Step(
            "call", "add", (Slot("input", 0), Slot("const", 0), arena()), 4, label="Add_0", cost=9
        ),
        Step("call", "add", (arena(), arena(), Slot("output", 0)), 4, barrier=False),
        Step("jump", target=3),
    ]
    return program(
        steps,
        [spec],
        [spec, spec],
        64,
        constants=constants,
        hosts=[HostStep("op", {"axes": [1, 2], "name": "x"}, (spec,), ())],
        states=[StateSpec("state", (4,), "float32", initial=0)],
        output_places=[None, Slot("const", 0)],
        meta={"version": [1, None, "ü"]},
    )


def test_round_trip(tmp_path):
    path = tmp_path / "model.ix"
    made = example()
    save_program(made, path)
    loaded = load_program(path, verify=True)
    for name in Program.__dataclass_fields__:
        if name != "constants":
            assert getattr(loaded, name) == getattr(made, name), name
    for array, original in zip(loaded.constants, made.constants, strict=True):
        assert array.dtype == original.dtype
        np.testing.assert_array_equal(array, original)
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.ix"]


def test_loaded_programs_run_from_the_file(tmp_path):
    path = tmp_path / "model.ix"
    save_program(example(), path)
    loaded = load_program(path)
    mapped = loaded.constants
    executable = Executable(loaded, 1, lambda host: lambda values: [])
    assert loaded.constants is mapped
    path.unlink()
    value = np.ones(4, np.float32)
    first, second = executable.run_flat([value])
    np.testing.assert_array_equal(first, 2 * (np.arange(4) + 1))
    np.testing.assert_array_equal(second, np.arange(4))


def test_saving_is_deterministic(tmp_path):
    for name in ("a", "b"):
        save_program(example(), tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_every_truncation_is_refused(tmp_path):
    path = tmp_path / "model.ix"
    save_program(example(), path)
    data = path.read_bytes()
    for size in [*range(0, 200, 7), *range(200, len(data), 509), len(data) - 1]:
        path.write_bytes(data[:size])
        with pytest.raises(CacheError):
            load_program(path)
    path.write_bytes(data + b"x")
    with pytest.raises(CacheError):
        load_program(path)


def test_altered_bytes_are_refused(tmp_path):
    path = tmp_path / "model.ix"
    save_program(example(), path)
    data = path.read_bytes()
    code = data.index(b"\x7fELF")
    for place in [0, 7, 9, 20, 30, 60, 300, code, code + 1000]:
        altered = bytearray(data)
        altered[place] ^= 0x10
        path.write_bytes(altered)
        with pytest.raises(CacheError):
            load_program(path)


def test_altered_constants_are_found_on_request(tmp_path):
    path = tmp_path / "model.ix"
    save_program(example(), path)
    data = bytearray(path.read_bytes())
    place = data.rindex(np.float32(3).tobytes())
    data[place] ^= 1
    path.write_bytes(data)
    load_program(path)
    with pytest.raises(CacheError, match="constants"):
        load_program(path, verify=True)


@pytest.mark.parametrize(
    "change",
    [
        {"constants": [["float32", [1 << 40], 0]]},
        {"constants": [["float32", [4], -64]]},
        {"constants": [["nonsense", [4], 0]]},
        {"constants_size": 1 << 50},
        {"objects": [[-5, ""]]},
        {"objects": [[1 << 60, ""]]},
        {"steps": [{"slots": 10}]},
        {"steps": [{"slots": 0, "surprise": 1}]},
        {"slots": 5},
        {"inputs": [{}]},
        {"hosts": None},
    ],
)
def test_headers_that_lie_are_refused(tmp_path, change, monkeypatch):
    """A header with a right checksum may still say anything."""
    from ixion.runtime import program_file

    encode = program_file._encode
    monkeypatch.setattr(program_file, "_encode", lambda *args: {**encode(*args), **change})
    path = tmp_path / "model.ix"
    save_program(example(), path)
    with pytest.raises(CacheError):
        load_program(path)


def test_failed_writes_leave_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "model.ix"
    save_program(example(), path)
    before = path.read_bytes()
    broken = example()
    broken.objects = [b"good", 5]  # type: ignore[list-item]
    with pytest.raises(TypeError):
        save_program(broken, path)
    assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1
    with pytest.raises(CacheError, match="cannot write"):
        save_program(example(), tmp_path / "absent" / "model.ix")


def test_missing_files_are_refused(tmp_path):
    with pytest.raises(CacheError):
        load_program(tmp_path / "absent")
    with pytest.raises(CacheError):
        load_program(tmp_path)


def test_slots_of_a_step_are_checked_on_load(tmp_path):
    made = example()
    made.steps.append(Step("call", "set", (arena(1000), imm(0))))
    path = tmp_path / "model.ix"
    save_program(made, path)
    with pytest.raises(CacheError, match="outside"):
        load_program(path)
