from __future__ import annotations

from tests.driver.test_compile import small_network

from ixion import data
from ixion.base.target import Target
from ixion.driver import load, pipeline
from ixion.ir import IRModule, MetaTable, assert_structural_equal
from ixion.ir.parser import parse
from ixion.ir.printer import astext
from ixion.transform.infer_type import InferType


def check(module: IRModule) -> None:
    """Text with weights by reference parses to an equal module."""
    table = MetaTable()
    text = astext(module, constants=table)
    assert_structural_equal(module, parse(text, init_meta_table=table, infer=InferType()))


def test_text_of_every_stage_parses_to_the_same_program() -> None:
    for module in (load(data.digits_model()), small_network()):
        check(InferType()(module))
        for _, after in pipeline.run(module, pipeline.COMPILED, Target.parse("avx512"), 3):
            check(after)
