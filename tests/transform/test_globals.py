from __future__ import annotations

from ixion.transform import FoldExplicitPadding, InlineGlobals, RemoveUnusedFunctions


def test_unused_functions_go(check):
    check(
        RemoveUnusedFunctions(),
        """def @main(%x: float32) { @f(%x) }
           def @f(%x: float32) -> float32 { @g(%x) }
           def @g(%x: float32) -> float32 { %x }
           def @h(%x: float32) -> float32 { @h(%x) }""",
        """def @main(%x: float32) { @f(%x) }
           def @f(%x: float32) -> float32 { @g(%x) }
           def @g(%x: float32) -> float32 { %x }""",
    )


def test_entry_functions(check, module):
    text = """def @main(%x: float32) { %x }
              def @f(%x: float32) { exp(%x) }"""
    mod = module(text)
    assert RemoveUnusedFunctions(("main", "f"))(mod) is mod
    check(RemoveUnusedFunctions(("f",)), text, "def @f(%x: float32) { exp(%x) }")


def test_marked_functions_are_inlined_callees_first(check):
    check(
        InlineGlobals(),
        """def @main(%x: float32) { add(@f(%x), @f(exp(%x))) }
           def @f(%x: float32, Inline=1) -> float32 { log(@g(%x)) }
           def @g(%x: float32, Inline=1) -> float32 { sqrt(%x) }""",
        "def @main(%x: float32) { add(log(sqrt(%x)), log(sqrt(exp(%x)))) }",
    )


def test_unmarked_and_recursive_functions_stay(check, module):
    text = """def @main(%x: float32) { @f(@g(%x)) }
              def @f(%x: float32, Inline=1) -> float32 { @f(%x) }
              def @g(%x: float32) -> float32 { %x }"""
    mod = module(text)
    assert InlineGlobals()(mod) is mod


def test_function_values_are_inlined_as_closures(check):
    check(
        InlineGlobals(),
        """def @main(%x: float32) { let %f = @g; %f(%x) }
           def @g(%x: float32, Inline=1) -> float32 { exp(%x) }""",
        """def @main(%x: float32) {
             let %f = fn (%y: float32, Inline=1) -> float32 { exp(%y) };
             %f(%x)
           }""",
    )


PAD = "nn.pad(%x, {value}, pad_width=[[0, 0], [0, 0], [1, 2], [3, 4]])"
DATA = "%x: Tensor[(1, 3, 8, 8), float32]"


def padded(value: str, user: str, extra: str = "") -> str:
    return f"def @main({DATA}{extra}) {{ {user.format(PAD.format(value=value))} }}"


def test_zero_padding_goes_into_convolutions(check):
    weight = ", %w: Tensor[(4, 3, 3, 3), float32]"
    conv = "nn.conv2d({}, %w, padding=[{{}}], channels=4, kernel_size=[3, 3])"
    check(
        FoldExplicitPadding(),
        padded("0f", conv.replace("{{}}", "1, 1, 1, 1"), weight),
        f"""def @main({DATA}{weight}) {{
              nn.conv2d(%x, %w, padding=[2, 4, 3, 5], channels=4, kernel_size=[3, 3]) }}""",
    )
    text = padded("1f", conv.replace("{{}}", "1, 1, 1, 1"), weight)
    check(FoldExplicitPadding(), text, text)


def test_padding_goes_into_pooling(check):
    check(
        FoldExplicitPadding(),
        padded("0f", "nn.avg_pool2d({}, pool_size=[5, 5])"),
        f"""def @main({DATA}) {{
              nn.avg_pool2d(%x, pool_size=[5, 5], padding=[1, 3, 2, 4],
                            count_include_pad=True) }}""",
    )
    text = padded("0f", "nn.max_pool2d({}, pool_size=[5, 5])")
    check(FoldExplicitPadding(), text, text)
