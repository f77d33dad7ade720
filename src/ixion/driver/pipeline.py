"""The pipelines, as visible lists of named steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ixion.base.target import Target
from ixion.transform.context import PassContext
from ixion.transform.pass_infra import Sequential
from ixion.transform.registry import get_pass

if TYPE_CHECKING:
    from ixion.ir import IRModule
    from ixion.transform.instrument import PassInstrument
    from ixion.transform.pass_infra import Pass


@dataclass(frozen=True)
class PipelineStep:
    """One pass, run from ``level`` on; ``make`` builds it for a target."""

    name: str
    level: int
    make: Callable[[Target], Pass]


def _plain(name: str, level: int, **options: Any) -> PipelineStep:
    return PipelineStep(name, level, lambda target: get_pass(name)(**options))


def _targeted(name: str) -> PipelineStep:
    return PipelineStep(name, 0, lambda target: get_pass(name)(target=target))


# From an imported module to formed kernels with layouts.
COMPILED: tuple[PipelineStep, ...] = (
    _plain("InferType", 0),
    _plain("SettleSizes", 0),
    _plain("OutlineControl", 0),
    _plain("SettleSizes", 0),  # sizes that lets and functions hid
    _plain("FindLayerNorm", 2),
    _plain("SimplifyInference", 0, keep_rows=True),
    _plain("SplitToSlices", 0),
    _plain("FoldConstant", 1),
    _plain("FoldChannelScale", 2),
    _plain("FoldScaleAxis", 2),
    _plain("EliminateCommonSubexpr", 1),
    _plain("SimplifyExpr", 2),
    _plain("CanonicalizeOps", 1),
    _plain("FoldConstant", 1),
    _plain("DeadCodeElimination", 1),
    _plain("FormKernels", 0),
    _targeted("PlanLayouts"),
)

REFERENCE: tuple[PipelineStep, ...] = (_plain("InferType", 0),)


def run(
    module: IRModule,
    steps: tuple[PipelineStep, ...],
    target: Target,
    opt_level: int,
    instruments: Sequence[PassInstrument] = (),
) -> Iterator[tuple[str, IRModule]]:
    """Runs a pipeline; yields each step's name and the module after it."""
    # Opt levels gate the list above, not passes inside a sequence: those run as a whole.
    config = {"ixion.FoldScaleAxis.constants_only": True}
    with PassContext(opt_level=3, instruments=list(instruments), config=config):
        for step in steps:
            if step.level <= opt_level:
                module = Sequential([step.make(target)])(module)
                yield step.name, module
