"""Passes: module passes, function passes and sequences of them, after Relay's pass manager.

A built-in pass is a frozen dataclass: its fields are its options, its ``info`` a class attribute.
A pass takes a module and gives back a module, the same object when it changed nothing.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any, cast

from ixion.base.errors import PassError
from ixion.ir import Function, GlobalVar, IRModule
from ixion.transform.context import PassContext
from ixion.transform.pass_info import PassInfo
from ixion.transform.registry import get_pass

__all__ = [
    "ApplyPassToFunction",
    "FunctionPass",
    "ModulePass",
    "Pass",
    "Sequential",
    "function_pass",
    "module_pass",
    "replace_functions",
]

ModuleFunction = Callable[[IRModule, PassContext], IRModule]
FunctionFunction = Callable[[Function, IRModule, PassContext], Function]


class Pass:
    """What can be called on a module and tells about itself by ``info``."""

    info: PassInfo

    def __call__(self, mod: IRModule, ctx: PassContext | None = None) -> IRModule:
        """Run on ``mod`` under ``ctx`` (by default the current context) and its instruments."""
        context = ctx if ctx is not None else PassContext.current()
        info = self.info
        if not context.before_pass(mod, info):
            return mod
        if context.get_config("testing.immutable_module", False):
            result = self._run_guarded(mod, context)
        else:
            result = self.run(mod, context)
        if not isinstance(result, IRModule):
            raise PassError(f"pass {info.name} gave back {type(result).__name__}, not a module")
        context.after_pass(result, info)
        return result

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """The pass itself, without instruments."""
        raise PassError(f"pass {type(self).__name__} defines no run()")

    def _run_guarded(self, mod: IRModule, ctx: PassContext) -> IRModule:
        from ixion.ir.hash import structural_hash

        before = structural_hash(mod)
        result = self.run(mod, ctx)
        if structural_hash(mod) != before:
            raise PassError(f"pass {self.info.name} changed its input module")
        return result


class ModulePass(Pass):
    """A pass over whole modules: subclasses define :meth:`transform_module`."""

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """The new module; ``mod`` itself if nothing changes."""
        raise PassError(f"pass {type(self).__name__} defines no transform_module()")

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        return self.transform_module(mod, ctx)

    def __str__(self) -> str:
        return f"Run Module pass: {self.info.name} at the optimization level {self.info.opt_level}"


class FunctionPass(Pass):
    """A pass over one function at a time: subclasses define :meth:`transform_function`.

    Functions with the attributes Compiler, Extern or SkipOptimization are left alone. The result
    is always type checked, as in Relay.
    """

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """The new function; ``func`` itself if nothing changes. ``mod`` is read only."""
        raise PassError(f"pass {type(self).__name__} defines no transform_function()")

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        updates: dict[GlobalVar, Function] = {}
        for var, func in mod.functions.items():
            if isinstance(func, Function) and not _left_alone(func):
                new = self.transform_function(func, mod, ctx)
                if not isinstance(new, Function):
                    raise PassError(
                        f"pass {self.info.name} turned a function into {type(new).__name__}",
                        where=f"@{var.name_hint}",
                    )
                if new is not func:
                    updates[var] = new
        return _infer_types(replace_functions(mod, updates), ctx)

    def __str__(self) -> str:
        return (
            f"Run Function pass: {self.info.name} at the optimization level {self.info.opt_level}"
        )


def _left_alone(func: Function) -> bool:
    attrs = func.attrs
    if attrs is None:
        return False
    return (
        attrs.get("Compiler") is not None
        or bool(attrs.get("Extern", 0))
        or bool(attrs.get("SkipOptimization", 0))
    )


def _infer_types(mod: IRModule, ctx: PassContext) -> IRModule:
    return get_pass("InferType")()(mod, ctx)


def replace_functions(mod: IRModule, updates: dict[GlobalVar, Function]) -> IRModule:
    """A copy of ``mod`` with some functions replaced; ``mod`` itself if there are none."""
    if not updates:
        return mod
    result = mod.clone()
    for var, func in updates.items():
        result.update_func(var, func)
    return result


class Sequential(Pass):
    """Runs passes in order, those the context enables.

    Before each pass it runs the passes that one requires, by name from the registry. It keeps no
    record of what ran before, as in Relay.
    """

    def __init__(
        self,
        passes: Sequence[Pass] | None = None,
        opt_level: int = 0,
        name: str = "sequential",
        required: Sequence[str] | None = None,
        traceable: bool = False,
    ) -> None:
        if passes is not None and not isinstance(passes, (list, tuple)):
            raise TypeError("passes must be a list of Pass objects.")
        if required is not None and not isinstance(required, (list, tuple)):
            raise TypeError("Required is expected to be the type of list/tuple.")
        self.passes: tuple[Pass, ...] = tuple(passes or ())
        self.info = PassInfo(opt_level, name, required, traceable)

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        for each in self.passes:
            info = each.info
            if not ctx.pass_enabled(info):
                continue
            for required in info.required:
                mod = get_pass(required)()(mod, ctx)
            mod = each(mod, ctx)
        return mod

    def __str__(self) -> str:
        names = " ".join(each.info.name for each in self.passes)
        return (
            f"Run Sequential pass: {self.info.name} at the optimization level "
            f"{self.info.opt_level}. The passes will be executed are: [{names}]"
        )


class _ModuleFunctionPass(ModulePass):
    def __init__(self, body: ModuleFunction, info: PassInfo) -> None:
        self.info = info
        self._body = body

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        return self._body(mod, ctx)


class _FunctionFunctionPass(FunctionPass):
    def __init__(self, body: FunctionFunction, info: PassInfo) -> None:
        self.info = info
        self._body = body

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        return self._body(func, mod, ctx)


def _pass_class(cls: type, method: str, base: type[Pass], info: PassInfo) -> type[Pass]:
    """A pass class whose constructor builds a ``cls`` and whose work is ``cls``'s method.

    Attributes the pass lacks are the instance's, as users of Relay's decorators expect.
    """

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        self.info = info
        self._inst = cls(*args, **kwargs)

    def work(self: Any, *args: Any) -> Any:
        return getattr(self._inst, method)(*args)

    def __getattr__(self: Any, name: str) -> Any:
        if name == "_inst":
            raise AttributeError(name)
        return getattr(self._inst, name)

    functools.update_wrapper(__init__, vars(cls).get("__init__", object.__init__))
    body: dict[str, Any] = {"__init__": __init__, method: work, "__getattr__": __getattr__}
    body |= {"__doc__": cls.__doc__, "__module__": cls.__module__}
    return type(cls.__name__, (base,), body)


def _decorate(
    target: Any,
    opt_level: int | None,
    name: str | None,
    required: Sequence[str] | None,
    traceable: bool,
    method: str,
) -> Any:
    if opt_level is None:
        raise ValueError("Please provide opt_level for the pass.")
    if required is not None and not isinstance(required, (list, tuple)):
        raise TypeError("Required is expected to be the type of list/tuple.")
    on_module = method == "transform_module"

    def create(target: Any) -> Any:
        if not callable(target):
            raise TypeError("pass_func must be a callable for a pass")
        info = PassInfo(opt_level, name or target.__name__, required, traceable)
        if inspect.isclass(target):
            return _pass_class(target, method, ModulePass if on_module else FunctionPass, info)
        if on_module:
            return _ModuleFunctionPass(cast(ModuleFunction, target), info)
        return _FunctionFunctionPass(cast(FunctionFunction, target), info)

    return create if target is None else create(target)


def module_pass(
    pass_func: Any = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] | None = None,
    traceable: bool = False,
) -> Any:
    """Make a module pass of ``f(mod, ctx) -> module`` or of a class with ``transform_module``.

    Without ``pass_func`` it is a decorator. A decorated class becomes a pass class whose
    constructor takes the class's arguments. Raises ValueError without ``opt_level``.
    """
    return _decorate(pass_func, opt_level, name, required, traceable, "transform_module")


def function_pass(
    pass_func: Any = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] | None = None,
    traceable: bool = False,
) -> Any:
    """Make a function pass of ``f(func, mod, ctx) -> function`` or of a class with
    ``transform_function``; otherwise as :func:`module_pass`.
    """
    return _decorate(pass_func, opt_level, name, required, traceable, "transform_function")


class ApplyPassToFunction(ModulePass):
    """Runs a pass on the functions whose whole name matches a regular expression.

    Raises :class:`PassError` if none matches and ``error_if_no_function_matches_regex``.
    """

    def __init__(
        self,
        transform: Pass,
        func_name_regex: str,
        error_if_no_function_matches_regex: bool = False,
    ) -> None:
        self.transform = transform
        self.pattern = re.compile(func_name_regex)
        self.must_match = error_if_no_function_matches_regex
        self.info = PassInfo(0, f"ApplyPassTo{func_name_regex}")

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        chosen = [v for v in mod.functions if self.pattern.fullmatch(v.name_hint)]
        if not chosen:
            if self.must_match:
                raise PassError(f"no function's name matches {self.pattern.pattern!r}")
            return mod
        before = mod.clone()
        for var in list(before.functions):
            if var not in chosen:
                del before[var]
        after = self.transform(before, ctx)
        if after is before:
            return mod
        result = mod.clone()
        for var, func in after.functions.items():
            result.update_func(var, func)
        return result
