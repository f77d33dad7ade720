"""Passes over modules: the infrastructure, then one file per pass.

Every public name can be imported from here; its file is loaded on first use.
"""

from __future__ import annotations

import importlib
from typing import Any

_FILES: dict[str, str] = {
    "context": "PassConfigError PassContext register_config_option",
    "pass_info": "PassInfo",
    "pass_infra": (
        "ApplyPassToFunction FunctionPass ModulePass Pass Sequential function_pass module_pass"
    ),
    "instrument": (
        "PassInstrument PassPrintingInstrument PassTimingInstrument PrintAfterAll PrintBeforeAll "
        "pass_instrument"
    ),
    "registry": "get_pass list_passes make_pass pass_options register_pass",
    "print_ir": "PrintIR",
    "infer_type": "InferType expr_type infer_expr",
    "guards": "fixed_sizes guards_of",
    "dynamic_to_static": "DynamicToStatic",
    "settle_sizes": "SettleSizes",
    "simplify_inference": "SimplifyInference",
    "fold_constant": "FoldConstant fold_constant_expr",
    "fold_scale_axis": "BackwardFoldScaleAxis FoldScaleAxis ForwardFoldScaleAxis",
    "fold_channel_scale": "FoldChannelScale",
    "eliminate_common_subexpr": "EliminateCommonSubexpr",
    "dead_code_elimination": "DeadCodeElimination",
    "simplify_expr": "SimplifyExpr SimplifyExprPostAlterOp",
    "canonicalize_ops": "CanonicalizeOps",
    "fuse_ops": "FuseOps",
    "defuse_ops": "DefuseOps",
    "to_a_normal_form": "ToANormalForm ToBasicBlockNormalForm a_normal_form",
    "to_graph_normal_form": "ToGraphNormalForm",
    "fold_explicit_padding": "FoldExplicitPadding",
    "inline_globals": "InlineGlobals",
    "remove_unused_functions": "RemoveUnusedFunctions",
    "find_layer_norm": "FindLayerNorm",
    "outline_control": "OutlineControl has_control outline_part why_left_alone",
    "form_kernels": "FormKernels",
    "plan_layouts": "PlanLayouts",
    "verify": "VerifyInstrument verified",
}
_HOME = {name: file for file, names in _FILES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'ixion.transform' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"ixion.transform.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
