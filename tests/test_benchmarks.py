"""The benchmark harness with made-up engines: what it checks, counts, writes and survives."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree as ET

import numpy as np
import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
if not FOLDER.is_dir():
    pytest.skip("the benchmarks are not here", allow_module_level=True)
sys.path.insert(0, str(FOLDER))

from harness import report  # noqa: E402
from harness.compare import Turns, _write_down, alternate  # noqa: E402
from harness.networks import NoModels, choose, index, worst_error  # noqa: E402
from harness.picture import bars  # noqa: E402
from harness.processes import Worker, environment  # noqa: E402
from harness.timing import Burst, burst, medians, ratio_of_medians, value  # noqa: E402

ENGINE = """
import os, time
import numpy as np
from harness.engines.engine import Engine, Unavailable

class Double(Engine):
    factor = 2
    def imports(self):
        print("libraries like to talk", flush=True)
    def load(self, model, work):
        self.model = model
    def bind(self, feeds):
        self.feeds = feeds
    def run(self):
        return [self.factor * array for array in self.feeds.values()]
    def outputs(self):
        return self.run()

class Wrong(Double):
    factor = 3

class Refusing(Double):
    def load(self, model, work):
        raise Unavailable("it has no such layer")

class Crashing(Double):
    def run(self):
        os.abort()

class Hanging(Double):
    def load(self, model, work):
        time.sleep(60)
"""
MATERIALIZE = """
import numpy as np
def fill(model):
    return model
def make_inputs(recipes):
    return {name: np.ones(3, np.float32) for name in recipes}
"""


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """A folder of skeletons with one network that doubles its input of ones."""
    folder = tmp_path / "models"
    folder.mkdir()
    entry = {"gflop": 0.5, "inputs": {"x": {}}}
    (folder / "index.json").write_text(json.dumps({"tiny": entry, "minilm_l6_dynamic": entry}))
    (folder / "materialize.py").write_text(MATERIALIZE)
    want = np.full(3, 2, np.float32)
    np.savez(folder / "tiny.expect.npz", **{"y": want, "alt:y": want + 1})
    return folder


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A work folder where the network lies already, and the made-up engines on the path."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "tiny.onnx").write_bytes(b"never read")
    np.savez(folder / "tiny.npz", x=np.ones(3, np.float32))
    (folder / "made_up.py").write_text(ENGINE)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.syspath_prepend(str(folder))
    return folder


def command() -> ModuleType:
    spec = importlib.util.spec_from_file_location("benchmarks_run", FOLDER / "run.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def ask_load(worker: Worker, models: Path, work: Path, engine: str, timeout: float = 60) -> dict:
    return worker.ask(
        "load", timeout, engine=f"made_up:{engine}", threads=1, model=str(work / "tiny.onnx"),
        inputs=str(work / "tiny.npz"), expect=str(models / "tiny.expect.npz"), work=str(work),
    )  # fmt: skip


def test_networks(models: Path, tmp_path: Path) -> None:
    assert choose(models, []) == ["tiny"]
    assert choose(models, ["minilm_l6_dynamic"]) == ["minilm_l6_dynamic"]
    with pytest.raises(LookupError, match="there are tiny"):
        choose(models, ["tinny"])
    with pytest.raises(NoModels, match="--models"):
        index(tmp_path / "nowhere")


def test_errors_are_shares_of_what_the_input_moves(models: Path) -> None:
    expect = models / "tiny.expect.npz"
    assert worst_error([np.full((1, 3), 2.0)], expect) == 0
    assert worst_error({"y": np.array([2, 2.5, 2])}, expect) == pytest.approx(0.5)
    assert worst_error({"y": np.array([2, np.nan, 2])}, expect) == np.inf
    with pytest.raises(ValueError, match="4 elements"):
        worst_error([np.ones(4)], expect)
    with pytest.raises(ValueError, match="argument"):
        worst_error([], expect)


def test_a_burst_counts_runs() -> None:
    ran: list[int] = []
    found = burst(lambda: ran.append(1), 0.0)
    assert found.runs == len(ran) - 1 == 2
    assert 0 < found.least <= found.ms
    assert value(Burst(4, 3, 2, 1), 1) == 2
    assert value(Burst(4, 3, 2, 1), 2) == 4
    assert value(Burst(4, 3, 0, 1), 1) == 4


def test_ratios_are_medians_over_shared_rounds() -> None:
    rounds = [{"a": 1, "b": 2}, {"a": 30, "b": 10}, {"a": 1, "b": 4}, {"a": 7}]
    assert ratio_of_medians(rounds, "a", "b") == 0.5
    assert medians(rounds) == {"a": 4, "b": 4}


def test_turns_drop_the_broken_and_the_hopeless() -> None:
    asked: list[str] = []

    def engine(name: str, ms: float):
        def ask(seconds: float) -> dict:
            asked.append(name)
            if name == "broken":
                return {"ok": False, "reason": "it broke"}
            return {"ok": True, "ms": ms, "least": ms, "cpu_ms": 0.0, "runs": 1}

        return ask

    times = {"ixion": 50.0, "quick": 10.0, "slow": 40.0, "broken": 0.0}
    turns = alternate({n: engine(n, ms) for n, ms in times.items()}, 0.0, 1)
    counts = {name: asked.count(name) for name in times}
    assert counts == {"ixion": 5, "quick": 5, "slow": 2, "broken": 1}
    assert asked[:2] == ["ixion", "quick"]
    assert asked[4] == "quick"
    assert turns.failed == {"broken": "it broke"}
    record = {"engines": {name: {"ok": True} for name in times}}
    _write_down(record, turns, 1)
    assert record["ratio"]["1"] == {"value": 5.0, "against": "quick"}
    assert record["engines"]["slow"]["1"] == {"ms": 40.0, "least_ms": 40.0, "rounds": 2}
    assert record["engines"]["broken"]["1"] == {"reason": "it broke"}


def test_workers_survive_what_engines_do(models: Path, work: Path) -> None:
    with Worker(work / "cache", stopped=True) as worker:
        found = ask_load(worker, models, work, "Double")
        assert found["ok"], found
        assert found["error"] == 0
        assert found["peak_bytes"] > 1 << 20
        assert "wrong output" in ask_load(worker, models, work, "Wrong")["reason"]
        assert ask_load(worker, models, work, "Refusing")["reason"] == "it has no such layer"
        assert worker.ask("measure", engine="made_up:Double", seconds=0.0)["runs"] >= 2
        assert "signal 6" in ask_load(worker, models, work, "Crashing")["reason"]
        assert not worker.ask("measure", engine="made_up:Double", seconds=0.0)["ok"]
    with Worker(work / "cache") as worker:
        assert "no answer" in ask_load(worker, models, work, "Hanging", 0.5)["reason"]


def test_the_environment_of_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    found = environment(tmp_path)
    assert "OPENBLAS_CORETYPE" not in found
    assert found["IXION_CACHE_DIR"] == str(tmp_path)


def test_the_command(models: Path, work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = work / "out"
    options = ["--models", models, "--work", work, "--out", out, "--seconds", 0, "--threads", 1]
    engines = ["--engines", "made_up:Double,made_up:Wrong"]
    assert command().main([str(o) for o in (*options, *engines)]) == 0
    shown = capsys.readouterr().out
    document = json.loads((out / "results.json").read_text())
    entry = document["networks"]["tiny"]["engines"]
    assert entry["made_up:Double"]["1"]["rounds"] >= 5
    assert "wrong output" in entry["made_up:Wrong"]["reason"]
    assert "wrong output" in shown
    ET.fromstring((out / "ratios.svg").read_text())
    assert command().main(["--report", "--json", "--out", str(out)]) == 0
    assert json.loads(capsys.readouterr().out) == document


def test_the_command_explains_missing_networks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command().main(["--models", str(tmp_path)]) == 2
    assert "--models FOLDER" in capsys.readouterr().err


def results() -> dict:
    """Two networks, one of which a peer cannot take."""
    quick = {"ms": 1.0, "least_ms": 0.9, "rounds": 5}
    loaded = {"ok": True, "load_s": 0.5, "peak_bytes": 80e6}
    ours = {**loaded, "cached_load_s": 0.1, "cached_peak_bytes": 70e6, "1": quick}
    return {
        "machine": {"cpu": "A CPU", "cores": 2, "system": "Linux", "versions": {"python": "3"}},
        "engines": ["ixion", "ncnn"],
        "threads": [1],
        "peak_gflops": {"native": {"1": 100.0}},
        "networks": {
            "a": {
                "gflop": 0.05,
                "engines": {"ixion": ours, "ncnn": {**loaded, "1": {**quick, "ms": 4.0}}},
                "ratio": {"1": {"value": 0.25, "against": "ncnn"}},
            },
            "b": {"gflop": 0.05, "engines": {"ixion": ours, "ncnn": {"ok": False, "reason": "no"}}},
        },
    }


def test_reports() -> None:
    assert report.geometric_mean([0.5, 2]) == pytest.approx(1)
    (_, heads, rows), (_, _, loading), (_, _, failures) = report.tables(results())
    assert heads[-1] == "ixion of peak"
    assert rows[0] == ["a", "0.05", "1", "4", "0.250 (ncnn)", "50% (50.0 GFLOP/s)"]
    assert rows[2][0] == "geometric mean"
    assert loading[0] == ["a", "0.500", "0.100", "80", "70", "0.500", "80"]
    assert failures == [["b", "ncnn", "no"]]
    assert "| a | 0.05 | 1 | 4 | 0.250 (ncnn) |" in report.markdown(results())
    assert "above 1: none" in report.plain(results())
    drawn = ET.fromstring(bars(results()))
    assert any(part.text == "geometric mean" for part in drawn.iter())


def test_the_readme_is_rewritten_between_its_markers(tmp_path: Path) -> None:
    run = command()
    path = tmp_path / "README.md"
    path.write_text(f"before\n{run.BEGIN}\nold\n{run.END}\nafter\n")
    (tmp_path / "r").mkdir()
    picture = tmp_path / "r" / "ratios.svg"
    picture.touch()
    for _ in range(2):
        run.update_readme(results(), path, picture)
    text = path.read_text()
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "old" not in text
    assert text.count("0.250 (ncnn)") == 1
    assert text.count("](r/ratios.svg)") == 1
    path.write_text("no markers")
    with pytest.raises(ValueError, match="no single pair"):
        run.update_readme(results(), path, picture)
    assert run.BEGIN in (FOLDER / "README.md").read_text()


def test_turns_note_the_least() -> None:
    turns = Turns([{}])
    turns.note("a", Burst(3, 2, 0, 1), 1)
    turns.note("a", Burst(3, 2.5, 0, 1), 1)
    assert turns.least == {"a": 2}


def test_loops_are_measured_beside_the_peer(loops: ModuleType) -> None:
    """Both engines give the same value, and a loop's steps without the loop are what it repeats."""
    for name, made in loops.MODELS.items():
        *times, error = loops.measured(made, 50)
        assert len(times) == 3, name
        assert error < 1e-5, name


@pytest.fixture
def loops() -> ModuleType:
    pytest.importorskip("onnxruntime")
    spec = importlib.util.spec_from_file_location("benchmark_loops", FOLDER / "loops.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
