"""Operators whose result sizes depend on data, inside programs: compiled where that pays.

Their kernels are made for the sizes of the arguments.  Sizes that come again get a kernel; others,
as those that data gave an operator before, are done by the reference, which takes any.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ixion.base import dim as dims
from ixion.base.dtype import from_numpy
from ixion.base.errors import CodegenError
from ixion.driver.bounded import BoundedOp, compile_bounded

Array = np.ndarray[Any, np.dtype[Any]]
Run = Callable[[Sequence[Any]], Sequence[Any]]
Shapes = tuple[tuple[int, ...], ...]

SEEN = 2  # runs with sizes before a kernel is made for them
REMEMBERED = 256  # combinations of sizes that are counted


class Bounded:
    """Arrays in, arrays of their true sizes out; ``reference`` does the same for any sizes."""

    def __init__(self, name: str, attrs: Any, reference: Run) -> None:
        self.name, self.attrs, self.reference = name, attrs, reference
        self._seen: Counter[Shapes] = Counter()
        self._compiled: BoundedOp | None = None
        self._never = False
        self._lock = threading.Lock()

    def __call__(self, arrays: Sequence[Array]) -> Sequence[Any]:
        if self._never or not self._comes_again(tuple(np.shape(a) for a in arrays)):
            return self.reference(arrays)
        try:
            if self._compiled is None:
                self._compiled = self._compile(arrays)
            return self._compiled(*arrays)
        except CodegenError:  # a dtype or rank without a kernel
            self._never = True
            return self.reference(arrays)

    def _comes_again(self, shapes: Shapes) -> bool:
        with self._lock:
            if len(self._seen) > REMEMBERED:
                self._seen.clear()
            self._seen[shapes] += 1
            return self._seen[shapes] > SEEN and all(0 not in s for s in shapes)

    def _compile(self, arrays: Sequence[Array]) -> BoundedOp:
        from ixion.ir import Call, Function, IRModule, Op, TensorType, Var
        from ixion.transform.infer_type import InferType

        kinds = [TensorType((dims.Any(),) * np.ndim(a), from_numpy(a.dtype)) for a in arrays]
        params = [Var(f"x{i}", kind) for i, kind in enumerate(kinds)]
        function = Function(params, Call(Op.get(self.name), tuple(params), self.attrs))
        body = InferType()(IRModule.from_expr(function))["main"].body
        assert isinstance(body, Call)
        return compile_bounded(body)
