from __future__ import annotations

import pytest

from ixion.transform import SimplifyExpr, SimplifyExprPostAlterOp

X = "%x: Tensor[(2, 3, 4), float32]"

REWRITES = {
    "reshape of reshape": (
        "reshape(reshape(%x, newshape=[6, 4]), newshape=[2, -1])",
        "reshape(%x, newshape=[2, 12])",
    ),
    "transposes merge": (
        "transpose(transpose(%x, axes=[0, 2, 1]), axes=[2, 0, 1])",
        "transpose(%x, axes=[1, 0, 2])",
    ),
    "transposes cancel": (
        "transpose(transpose(%x, axes=[1, 2, 0]), axes=[2, 0, 1])",
        "%x",
    ),
    "transpose to itself": ("exp(transpose(%x, axes=[0, 1, 2]))", "exp(%x)"),
    "cast to the same": ('exp(cast(%x, dtype="float32"))', "exp(%x)"),
    "widening cast": ('cast(cast(%x, dtype="float64"), dtype="int32")', 'cast(%x, dtype="int32")'),
    "narrowing cast stays": (
        'cast(cast(%x, dtype="int8"), dtype="int32")',
        'cast(cast(%x, dtype="int8"), dtype="int32")',
    ),
    "cast after clip": (
        """cast(cast(clip(cast(%x, dtype="int32"), a_min=0f, a_max=255f), dtype="uint8"),
                dtype="int32")""",
        'clip(cast(%x, dtype="int32"), a_min=0f, a_max=255f)',
    ),
    "clip to the range of the dtype": (
        'clip(cast(%x, dtype="uint8"), a_min=0f, a_max=255f)',
        'cast(%x, dtype="uint8")',
    ),
    "add zero": ("add(0f, exp(%x))", "exp(%x)"),
    "subtract zero": ("subtract(exp(%x), 0f)", "exp(%x)"),
    "subtract from zero": ("subtract(0f, %x)", "subtract(0f, %x)"),
    "multiply by one": ("multiply(exp(%x), 1f)", "exp(%x)"),
    "divide by one": ("divide(exp(%x), 1f)", "exp(%x)"),
    "zeros that broadcast": (
        'add(%x, zeros(shape=[5, 2, 3, 4], dtype="float32"))',
        'add(%x, zeros(shape=[5, 2, 3, 4], dtype="float32"))',
    ),
    "zeros like": ("exp(zeros_like(%x))", 'exp(zeros(shape=[2, 3, 4], dtype="float32"))'),
    "filled operand": ("subtract(ones_like(%x), %x)", "subtract(1f, %x)"),
    "full operand": ('greater(%x, full(2f, shape=[2, 3, 4], dtype="float32"))', None),
    "twice": ("add(%x, %x)", "multiply(%x, 2f)"),
    "divide by a root": ("divide(%x, sqrt(%x))", "multiply(%x, rsqrt(%x))"),
    "reciprocal of a root": ("divide(1f, sqrt(%x))", "rsqrt(%x)"),
    "constants meet in products": ("multiply(3f, multiply(%x, 2f))", "multiply(%x, 6f)"),
    "constants meet in sums": ("add(add(1f, %x), 2f)", "add(%x, 3f)"),
    "product of a sum": ("multiply(add(%x, 2f), 3f)", "add(multiply(%x, 3f), 6f)"),
    "square of a sum": (
        "add(add(multiply(%x, %x), multiply(2f, multiply(%x, %x))), multiply(%x, %x))",
        None,
    ),
}


@pytest.mark.parametrize("name", REWRITES)
def test_rewrite(name, check):
    before, after = REWRITES[name]
    after = before if after is None else after
    check(SimplifyExpr(), f"def @main({X}) {{ {before} }}", f"def @main({X}) {{ {after} }}")


def test_binomial(check):
    params = "%x: Tensor[(4), float32], %y: Tensor[(4), float32]"
    check(
        SimplifyExpr(),
        f"""def @main({params}) {{
              %0 = multiply(%x, %x);
              %1 = multiply(2f, multiply(%x, %y));
              add(add(%0, %1), multiply(%y, %y))
            }}""",
        f"def @main({params}) {{ %0 = add(%x, %y); multiply(%0, %0) }}",
    )
    check(
        SimplifyExpr(),
        f"""def @main({params}) {{
              add(add(multiply(%x, %x), multiply(%x, %y)), multiply(%y, %y)) }}""",
        f"""def @main({params}) {{
              add(add(multiply(%x, %x), multiply(%x, %y)), multiply(%y, %y)) }}""",
    )


def test_layout_transforms_take_transposes_in(check):
    check(
        SimplifyExpr(),
        """def @main(%x: Tensor[(1, 2, 3, 8), float32]) {
             layout_transform(transpose(%x, axes=[0, 3, 1, 2]), src_layout="NCHW",
                              dst_layout="NCHW4c") }""",
        """def @main(%x: Tensor[(1, 2, 3, 8), float32]) {
             layout_transform(%x, src_layout="NHWC", dst_layout="NCHW4c") }""",
    )
    check(
        SimplifyExpr(),
        """def @main(%x: Tensor[(1, 8, 2, 3), float32]) {
             %0 = layout_transform(%x, src_layout="NCHW", dst_layout="NCHW4c");
             layout_transform(%0, src_layout="NCHW4c", dst_layout="NCHW") }""",
        "def @main(%x: Tensor[(1, 8, 2, 3), float32]) { %x }",
    )


def test_a_shared_operand_is_not_computed_twice(check):
    text = f"""def @main({X}) {{
      %0 = add(%x, 1f);
      %1 = reshape(%x, newshape=[6, 4]);
      (multiply(%0, 2f), %0, reshape(%1, newshape=[24]), %1)
    }}"""
    check(SimplifyExpr(), text, text)


def test_dynamic_shapes(check):
    check(
        SimplifyExpr(),
        "def @main(%x: Tensor[(?, 4), float32]) { multiply(add(%x, 2f), 3f) }",
        "def @main(%x: Tensor[(?, 4), float32]) { add(multiply(%x, 3f), 6f) }",
    )
    text = "def @main(%x: Tensor[(?, 4), float32]) { zeros_like(%x) }"
    check(SimplifyExpr(), text, text)


def test_post_alter_op_is_the_small_set(check):
    text = "def @main(%x: float32) { multiply(add(%x, 2f), 3f) }"
    check(SimplifyExprPostAlterOp(), text, text)
    check(
        SimplifyExprPostAlterOp(),
        f"def @main({X}) {{ reshape(reshape(%x, newshape=[6, 4]), newshape=[24]) }}",
        f"def @main({X}) {{ reshape(%x, newshape=[24]) }}",
    )
