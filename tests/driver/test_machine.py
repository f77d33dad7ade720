"""Models with control flow through the front door: files, caches, options, both executors."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ixion
from ixion.base import config
from ixion.base.errors import CacheError, ConfigError, InputError
from ixion.driver import stages
from ixion.driver.machine import MachineExecutable, machine_executable
from ixion.driver.text import parse
from ixion.runtime.machine_file import load_any, load_machine, save_machine
from ixion.runtime.machine_program import MachineProgram
from ixion.runtime.values import ConstructorValue

PROGRAM = """#[version = "0.0.5"]
type List[A] { Cons(A, List[A]), Nil, }
def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] {
  match (%l) { Cons(%h, %t) => Cons(%f(%h), @map(%f, %t)), Nil => Nil }
}
def @sum(%s: Tensor[(?), float32], %l: List[Tensor[(?), float32]]) -> Tensor[(?), float32] {
  match (%l) { Cons(%h, %t) => @sum(concatenate((%s, %h), axis=0), %t), Nil => %s }
}
def @main(%x: Tensor[(?), float32], %n: int32) -> (Tensor[(?), float32], List[int32]) {
  let %w = meta[relay.Constant][0];
  let %cell = ref(0);
  let %go = fn (%y: Tensor[(?), float32]) -> Tensor[(?), float32] {
    let %done = ref_write(%cell, add(ref_read(%cell), %n));
    add(%y, %w)
  };
  let %at = argwhere(greater(%x, 0f));
  let %picked = take(%x, reshape(%at, newshape=[-1]), axis=0);
  let %all = @sum(%x, @map(%go, Cons(%picked, Cons(%x, Nil))));
  (%all, Cons(ref_read(%cell), Nil))
}
#[metadata]
META
"""


def weight() -> np.ndarray:
    return np.array([10], "float32")


def module() -> Any:
    from ixion.ir import const
    from ixion.ir.containers import Map
    from ixion.ir.json import save_json

    meta = save_json(Map({"relay.Constant": [const(weight())]}))
    return parse(PROGRAM.replace("META", meta))


def expected(x: np.ndarray, n: int) -> tuple[np.ndarray, int]:
    return np.concatenate([x, x[x > 0] + 10, x + 10]), 2 * n


def check(exe: Any) -> None:
    for x in (np.array([1, -2, 3], "float32"), np.array([-1], "float32")):
        values, counts = exe(x, np.array(4, "int32"))
        want, count = expected(x, 4)
        np.testing.assert_array_equal(values, want)
        assert counts.constructor.name_hint == "Cons"
        assert int(counts.fields[0]) == count
        assert counts.fields[1].constructor.name_hint == "Nil"


def rebuilt(program: MachineProgram) -> MachineExecutable:
    from ixion.base.target import Target
    from ixion.driver.compilation import _bind, _Options

    options = _Options(Target.parse("native"), 3, 1, "compiled", False)
    exe = _bind(program, options)
    assert isinstance(exe, MachineExecutable)
    return exe


def test_both_executors() -> None:
    check(ixion.compile(module(), threads=1))
    reference = ixion.compile(module(), executor="reference")
    assert reference.program is None
    check(reference)


def test_names_and_kinds_of_inputs_and_outputs() -> None:
    for executor in ("compiled", "reference"):
        exe = ixion.compile(module(), executor=executor)
        assert [str(s) for s in exe.inputs] == ["x: float32['?']", "n: int32[]"]
        assert [s.name for s in exe.outputs] == ["out0", "out1"]
        assert exe.outputs[1].dtype == "List[int32[]]"
        results = exe.run({"n": np.array(1, "int32"), "x": np.zeros(2, "float32")})
        assert list(results) == ["out0", "out1"]
        with pytest.raises(InputError, match="did you mean 'n'"):
            exe.run({"nn": np.array(1, "int32"), "x": np.zeros(2, "float32")})
        with pytest.raises(InputError, match="input 'x' has the wrong dtype"):
            exe(np.zeros(2), np.array(1, "int32"))
        with pytest.raises(InputError, match="wrong number of inputs"):
            exe(np.zeros(2, "float32"))


@pytest.mark.parametrize("target", ["avx2", "generic"])
@pytest.mark.parametrize("opt_level", [0, 3])
def test_options_reach_the_segments(target: str, opt_level: int) -> None:
    exe = ixion.compile(module(), target=target, opt_level=opt_level, threads=2)
    check(exe)
    assert all(s.program.target_key.startswith(exe.machine_program.target_key[:3])
               for s in exe.machine_program.segments if s.program is not None)  # fmt: skip


def test_verify() -> None:
    check(ixion.compile(module(), verify=True))


def test_a_program_goes_to_a_file_and_back(tmp_path: Path) -> None:
    exe = ixion.compile(module(), threads=1)
    path = tmp_path / "model.ix"
    save_machine(exe.machine_program, path)
    program = load_machine(path, verify=True)
    assert isinstance(load_any(path), MachineProgram)
    assert program.functions == exe.machine_program.functions
    assert program.hosts == exe.machine_program.hosts
    assert [s.name for s in program.segments] == [s.name for s in exe.machine_program.segments]
    check(rebuilt(program))


def test_segments_without_a_program_are_kept_as_ir(tmp_path: Path) -> None:
    """As those are that no kernel can do: the reference runs them, after a load too."""
    exe = ixion.compile(module(), threads=1)
    program = exe.machine_program
    from ixion.ir.json import save_json
    from ixion.transform import InferType
    from ixion.vm.compile import compile_module
    from ixion.vm.prepare import simplified

    modules = compile_module(simplified(InferType()(module()), 3)).modules
    for number, segment in enumerate(program.segments):
        segment.program, segment.source = None, save_json(modules[number])
        segment.mode = "reference" if number % 2 else "specialise"
    save_machine(program, tmp_path / "model.ix")
    check(rebuilt(load_machine(tmp_path / "model.ix")))


def test_broken_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.ix"
    save_machine(ixion.compile(module(), threads=1).machine_program, path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for size in (0, 5, 60, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(CacheError):
            load_any(path)
    refused = 0
    for at in rng.integers(0, len(whole), 40):
        broken = bytearray(whole)
        broken[at] ^= 0xFF
        path.write_bytes(broken)
        try:
            load_machine(path, verify=True)
        except CacheError:
            refused += 1
    # Only padding between sections may change unseen.
    assert refused >= 30
    with pytest.raises(CacheError):
        load_machine(tmp_path / "absent.ix")


@pytest.mark.parametrize(
    "change",
    [
        {"entry": 99},
        {"functions": []},
        {"functions": [["f", 1, 1, [], [{"name": "return", "args": ["x"]}]]]},
        {"functions": [["f", 1, 1, [["magic", 0]], []]]},
        {"functions": [["f", 2, 2, [], [{"name": "jump", "targets": [7]}]]]},
        {"functions": [["f", 2, 2, [], [{"name": "return", "args": [0], "surprise": 1}]]]},
        {"segments": None},
        {"sizes": []},
        {"sizes": [1 << 60] * 100},
        {"arrays_size": -64},
        {"arrays": [["float32", [1 << 40], 0]]},
        {"inputs": [["x", ["tensor", ["?"], "float31"]]]},
        {"constructors": [["Cons", "seven", "List", []]]},
        {"checks": [[["x", ["tuple", []]]]]},
        {"output": ["what"]},
    ],
)
def test_headers_that_lie_are_refused(
    tmp_path: Path, change: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from ixion.runtime import machine_file

    program = ixion.compile(module(), threads=1).machine_program
    encode = machine_file.header_bytes
    monkeypatch.setattr(
        machine_file, "header_bytes", lambda m, h, size: encode(m, {**h, **change}, size)
    )
    path = tmp_path / "model.ix"
    save_machine(program, path)
    with pytest.raises(CacheError):
        load_machine(path)


def relay_file(folder: Path) -> Path:
    path = folder / "model.relay"
    path.write_text(module().astext())
    return path


def test_files_of_text_are_cached_as_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = relay_file(tmp_path)
    with config.override(cache_dir=str(tmp_path / "cache")):
        check(ixion.compile(path, threads=1))
        from ixion.driver import compilation

        def unexpected(*args: Any) -> Any:
            raise AssertionError("the model was loaded again")

        monkeypatch.setattr(compilation, "load", unexpected)
        exe = ixion.compile(path, threads=1)
        assert isinstance(exe, MachineExecutable)
        check(exe)
        monkeypatch.undo()
        cached = next(p for p in (tmp_path / "cache" / "programs").glob("*/*"))
        cached.write_bytes(cached.read_bytes()[:-100])
        check(ixion.compile(path, threads=1))


def test_shapes_for_open_inputs() -> None:
    exe = ixion.compile(module(), threads=1, inputs={"x": (3,)})
    assert exe.inputs[0].shape == (3,)
    x = np.array([1, -2, 3], "float32")
    np.testing.assert_array_equal(exe(x, np.array(4, "int32"))[0], expected(x, 4)[0])
    with pytest.raises(InputError, match="shape"):
        exe(x[:2], np.array(4, "int32"))


def test_states_need_a_plain_program() -> None:
    with pytest.raises(ConfigError, match="control flow"):
        ixion.compile(module(), states={"x": "out0"})


def test_stages_show_instructions_and_segments(tmp_path: Path) -> None:
    plan = stages(relay_file(tmp_path), stage="plan")
    assert "function @main(%0, %1)" in plan
    assert "host 0 (argwhere)" in plan
    assert "# segment 0" in plan
    loops = stages(module(), stage="loops")
    assert loops.startswith("# segment 0")
    assert "kernel kernel" in loops
    assert "Primitive=1" in stages(module(), stage="kernels")


def test_many_threads_call_one_executable() -> None:
    exe = ixion.compile(module(), threads=2)
    wrong: list[int] = []

    def work(count: int) -> None:
        x = np.arange(count, dtype="float32") - 2
        for _ in range(20):
            values, counts = exe(x, np.array(count, "int32"))
            want, total = expected(x, count)
            if not np.array_equal(values, want) or int(counts.fields[0]) != total:
                wrong.append(count)

    workers = [threading.Thread(target=work, args=(n,)) for n in range(1, 7)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_results_are_the_callers_own() -> None:
    exe = ixion.compile(
        parse(
            """#[version = "0.0.5"]
            type Box { Full(Tensor[(2), float32]), }
            def @main(%b: Box, %x: Tensor[(2), float32], %c: bool)
                -> (Tensor[(2), float32], Tensor[(2), float32]) {
              match (%b) { Full(%y) => if (%c) { (%y, %x) } else { (%x, %x) } }
            }"""
        )
    )
    (full,) = exe.machine_program.constructors
    x, y = np.ones(2, "float32"), np.zeros(2, "float32")
    first, second = exe(ConstructorValue(full, (y,)), x, np.bool_(True))
    for array in (first, second):
        assert array.flags.writeable
        assert not np.shares_memory(array, x)
        assert not np.shares_memory(array, y)
    first, second = exe(ConstructorValue(full, (y,)), x, np.bool_(False))
    assert not np.shares_memory(first, second)


def test_an_ir_constructor_makes_inputs_too() -> None:
    made = module()
    nil = made.get_type("List")[2]
    cons = made.get_type("List")[1]
    main = parse(
        """#[version = "0.0.5"]
        type List[A] { Cons(A, List[A]), Nil, }
        def @main(%l: List[int32]) -> int32 { match (%l) { Cons(%h, _) => %h, Nil => 7 } }"""
    )
    exe = ixion.compile(main)
    assert int(exe(ConstructorValue(nil, ()))) == 7
    value = ConstructorValue(cons, (np.array(3, "int32"), ConstructorValue(nil, ())))
    assert int(exe(value)) == 3


def test_bind_is_given_every_program() -> None:
    program = ixion.compile(module(), threads=1).machine_program
    seen: list[Any] = []

    class Nothing:
        @staticmethod
        def run_flat(values: Any) -> Any:
            return values

    machine_executable(program, lambda p: seen.append(p) or Nothing(), lambda f: Nothing())
    assert len(seen) == sum(s.program is not None for s in program.segments)
