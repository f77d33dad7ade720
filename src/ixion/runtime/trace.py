"""A profile as Chrome-trace JSON, which chrome://tracing, Perfetto and speedscope read.

The format is the Trace Event Format: complete events ("ph": "X") with times in microseconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ixion.runtime.profile import Profile, StepTime


def chrome_trace(
    runs: Sequence[Profile], name: str, details: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """One event per step of every profiled run, and one around each run, by the run's clock.

    A step that ran several times in a run (a loop's) shows its last time. `details[i]` are shown
    with step i.
    """
    moments = [step.start for profile in runs for step in profile.steps if step.count]
    zero = min(moments, default=0)
    events: list[dict[str, Any]] = [_named("process_name", name), _named("thread_name", "steps")]
    for number, profile in enumerate(runs):
        ran = [step for step in profile.steps if step.count]
        if ran:
            start, end = min(s.start for s in ran), max(s.end for s in ran)
            events.append(_complete(f"run {number}", "run", start - zero, end - start, {}))
        events.extend(_step(step, zero, details) for step in ran)
    return {"traceEvents": events, "displayTimeUnit": "ns"}


def _step(step: StepTime, zero: int, details: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    more = details[step.number] if step.number < len(details) else {}
    args = {"step": step.number, "kernel": step.kernel, "tasks": step.tasks, **more}
    return _complete(step.label, step.kind, step.start - zero, step.end - step.start, args)


def _complete(
    name: str, category: str, start: int, duration: int, args: dict[str, Any]
) -> dict[str, Any]:
    times = {"ts": start / 1e3, "dur": duration / 1e3}
    return {"name": name, "cat": category, "ph": "X", **times, "pid": 1, "tid": 1, "args": args}


def _named(what: str, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": 1, "tid": 1, "args": {"name": name}}
