from __future__ import annotations

import pytest

from ixion.ir import Function, IRModule, var
from ixion.transform import (
    FoldConstant,
    InferType,
    PassContext,
    PassInstrument,
    PassPrintingInstrument,
    PassTimingInstrument,
    Sequential,
    module_pass,
    pass_instrument,
)


@pytest.fixture
def mod() -> IRModule:
    x = var("x", shape=(2,))
    return IRModule.from_expr(Function([x], x + x))


class Recorder(PassInstrument):
    def __init__(self, name, events, runs=True, fails=""):
        self.name = name
        self.events = events
        self.runs = runs
        self.fails = fails

    def _note(self, what):
        self.events.append(f"{self.name} {what}")
        if self.fails == what:
            raise RuntimeError(what)

    def enter_pass_ctx(self):
        self._note("enter")

    def exit_pass_ctx(self):
        self._note("exit")

    def should_run(self, mod, info):
        self._note("should")
        return self.runs

    def run_before_pass(self, mod, info):
        self._note("before")

    def run_after_pass(self, mod, info):
        self._note("after")


def noop(events=None):
    def body(mod, ctx):
        if events is not None:
            events.append("pass")
        return mod

    return module_pass(body, opt_level=0, name="noop")


def test_order_of_callbacks(mod):
    events = []
    with PassContext(instruments=[Recorder("a", events), Recorder("b", events)]):
        noop(events)(mod)
    assert events == [
        *("a enter", "b enter", "a should", "b should", "a before", "b before"),
        *("pass", "a after", "b after", "a exit", "b exit"),
    ]


def test_a_veto_skips_the_pass_unless_it_is_required(mod):
    events = []
    instruments = [Recorder("a", events, runs=False), Recorder("b", events)]
    with PassContext(instruments=instruments):
        assert noop(events)(mod) is mod
    assert events == ["a enter", "b enter", "a should", "b should", "a exit", "b exit"]
    events.clear()
    with PassContext(instruments=instruments, required_pass=["noop"]):
        noop(events)(mod)
    assert "pass" in events
    assert "a should" not in events


def test_exception_while_entering(mod):
    events = []
    context = PassContext(
        instruments=[
            Recorder("a", events),
            Recorder("b", events),
            Recorder("c", events, fails="enter"),
        ]
    )
    with pytest.raises(RuntimeError), context:
        pass
    assert events == ["a enter", "b enter", "c enter", "b exit", "a exit"]
    assert context.instruments == []
    assert PassContext.current() is not context


def test_exception_while_leaving(mod):
    events = []
    context = PassContext(instruments=[Recorder("a", events, fails="exit"), Recorder("b", events)])
    with pytest.raises(RuntimeError), context:
        pass
    assert events == ["a enter", "b enter", "a exit"]
    assert context.instruments == []
    assert PassContext.current() is not context


@pytest.mark.parametrize(
    ("fails", "rest"),
    [
        ("should", ["a should"]),
        ("before", ["a should", "b should", "a before"]),
        ("after", ["a should", "b should", "a before", "b before", "pass", "a after"]),
    ],
)
def test_exception_around_a_pass(mod, fails, rest):
    events = []
    instruments = [Recorder("a", events, fails=fails), Recorder("b", events)]
    with pytest.raises(RuntimeError), PassContext(instruments=instruments):
        noop(events)(mod)
    assert events == ["a enter", "b enter", *rest, "a exit", "b exit"]


def test_override_instruments(mod):
    events = []
    with PassContext(instruments=[Recorder("a", events)]) as context:
        context.override_instruments([Recorder("b", events)])
        context.override_instruments(None)
    assert events == ["a enter", "a exit", "b enter", "b exit"]


def test_any_class_can_be_an_instrument(mod):
    @pass_instrument
    class Counter:
        def __init__(self, start):
            self.count = start

        def run_before_pass(self, mod, info):
            self.count += 1

    counter = Counter(10)
    with PassContext(instruments=[counter]):
        Sequential([InferType(), FoldConstant()])(mod)
    # The sequence, two passes, and the type inference after the second.
    assert counter.count == 14
    with pytest.raises(TypeError):
        pass_instrument(3)


def test_timing_is_nested(mod):
    timing = PassTimingInstrument()
    with PassContext(instruments=[timing]):
        Sequential([InferType(), FoldConstant()], name="all")(mod)
        lines = timing.render().splitlines()
        assert [line.split(":")[0] for line in lines] == [
            "all",
            "    InferType",
            "    FoldConstant",
            "        InferType",
        ]
        assert timing.seconds()[0][0] == "all"
    assert timing.render() == ""


def test_printing(mod, capsys):
    with PassContext(instruments=[PassPrintingInstrument(["noop"], ["InferType"])]):
        InferType()(noop()(mod))
    written = capsys.readouterr().out
    assert "Print IR before: noop" in written
    assert "Print IR after: InferType" in written
