from __future__ import annotations

import io
import json
from dataclasses import asdict

import numpy as np

import ixion
from ixion import op
from ixion.base import config
from ixion.base.target import Target
from ixion.codegen.blocks import read_block, write_block
from ixion.codegen.worker import serve
from ixion.driver.compile_workers import compile_in_workers, worker_count
from ixion.ir import Function, var

TEXT = "define i32 @f() { ret i32 7 }"
NATIVE = Target.parse("native")


def test_a_worker_answers_every_request() -> None:
    requests, replies = io.BytesIO(), io.BytesIO()
    for text in (TEXT, "no LLVM at all", TEXT):
        write_block(requests, json.dumps(asdict(NATIVE)).encode())
        write_block(requests, text.encode())
    requests.seek(0)
    serve(requests, replies)
    replies.seek(0)
    first, second, third = (read_block(replies) for _ in range(3))
    assert first
    assert second == b""
    assert third == first
    assert read_block(replies) is None


def test_what_workers_cannot_do_comes_back() -> None:
    jobs = [("good", TEXT, NATIVE), ("bad", "no LLVM at all", NATIVE)]
    objects, failed = compile_in_workers(iter(jobs), 1)
    assert set(objects) == {"good"}
    assert [job[0] for job in failed] == ["bad"]


def test_few_kernels_are_compiled_here() -> None:
    assert worker_count(2) == 0
    with config.override(compile_jobs=1):
        assert worker_count(1000) == 0


def test_a_program_compiled_by_workers_runs() -> None:
    x = var("x", shape=(2, 3))
    names = "exp log tanh sigmoid sqrt erf sin cos atan floor ceil negative abs sign".split()
    body = x
    for i, name in enumerate(names):
        body = op.call("nn.softmax", op.call(name, op.call("add", body, body)), axis=i % 2)
    function = Function([x], body)
    feed = {"x": np.linspace(0.1, 2, 6, dtype=np.float32).reshape(2, 3)}
    with config.override(cache=False, compile_jobs=2):
        alone = ixion.compile(function, threads=1).run(feed)
    with config.override(cache=False, compile_jobs=1):
        with_workers = ixion.compile(function, threads=1).run(feed)
    for key, value in alone.items():
        np.testing.assert_array_equal(value, with_workers[key])
