"""The context passes run in: level, switches, options and instruments.

Contexts form one stack per thread and inherit nothing from each other: what a context does not
say has the default value, as in Relay.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ixion.base.errors import PassError, nearest

if TYPE_CHECKING:
    from ixion.ir import IRModule
    from ixion.transform.instrument import PassInstrument
    from ixion.transform.pass_info import PassInfo

__all__ = ["ConfigOption", "PassConfigError", "PassContext", "register_config_option"]


class PassConfigError(PassError, AttributeError):
    """An unknown option in ``PassContext(config=...)``, or a value of the wrong type."""


@dataclass(frozen=True)
class ConfigOption:
    """One key that ``PassContext.config`` accepts.

    ``type_key`` is the name Relay lists the option's type under; ``convert`` returns the stored
    value or raises ``TypeError``/``ValueError``.
    """

    name: str
    type_key: str
    convert: Callable[[Any], Any]


_OPTIONS: dict[str, ConfigOption] = {}
_TYPE_KEYS = {bool: "IntImm", int: "IntImm", str: "runtime.String", dict: "Map", list: "Array"}


def _checked(kind: type) -> Callable[[Any], Any]:
    def convert(value: Any) -> Any:
        if kind in (bool, int) and isinstance(value, (bool, int)):
            return kind(value)
        if kind is list and isinstance(value, (list, tuple)):
            return list(value)
        if not isinstance(value, kind):
            raise TypeError(f"expected {kind.__name__}, got {type(value).__name__}")
        return value

    return convert


def register_config_option(
    name: str, kind: type, convert: Callable[[Any], Any] | None = None
) -> None:
    """Let ``PassContext(config={name: value})`` accept ``name`` with values of type ``kind``.

    Registering a name again replaces it, so that a module may be reloaded.
    """
    type_key = _TYPE_KEYS.get(kind, kind.__name__)
    _OPTIONS[name] = ConfigOption(name, type_key, convert or _checked(kind))


for _name, _kind in (
    ("relay.FuseOps.max_depth", int),
    ("relay.FuseOps.link_params", bool),
    ("relay.fallback_device_type", int),
    ("relay.frontend.fill_span", bool),
    ("relay.ToMixedPrecision.keep_orig_output_dtype", bool),
    ("relay.remove_standalone_reshapes.enable", bool),
    ("relay.backend.use_auto_scheduler", bool),
    ("relay.backend.use_meta_schedule", bool),
    ("relay.backend.use_meta_schedule_dispatch", int),
    ("relay.backend.tir_converter", str),
    ("relay.collage.tvm_max_depth", int),
    ("relay.collage.byoc_max_depth", int),
    ("relay.collage.byoc_fusion_style", list),
    ("testing.immutable_module", bool),
    ("ir.enable_si_builder", bool),
    ("te.keep_schedule_record", bool),
    ("tir.disable_vectorize", bool),
    ("tir.disable_assert", bool),
    ("tir.noalias", bool),
    ("tir.instrument_bound_checkers", bool),
    ("tir.enable_debug", bool),
    ("tir.add_lower_pass", list),
    ("ixion.FoldScaleAxis.constants_only", bool),
):
    register_config_option(_name, _kind)


def _validated(config: Mapping[str, Any] | None) -> dict[str, Any]:
    return {key: _validated_value(key, value) for key, value in (config or {}).items()}


def _validated_value(key: str, value: Any) -> Any:
    option = _OPTIONS.get(key)
    if option is None:
        close = nearest(key, _OPTIONS)
        raise PassConfigError(
            f"Invalid config option '{key}' candidates are: {','.join(sorted(_OPTIONS))}",
            hint=f"did you mean '{close}'?" if close else None,
        )
    try:
        return option.convert(value)
    except (TypeError, ValueError) as error:
        raise PassConfigError(
            f"AttributeError: wrong value for config option '{key}': {error}",
            expected=option.type_key,
            found=repr(value),
        ) from error


class _Stack(threading.local):
    def __init__(self) -> None:
        self.entered: list[PassContext] = []
        self.default: PassContext | None = None


_STACK = _Stack()


class PassContext:
    """Level, required and disabled passes, options and instruments of the passes run inside it.

    ``opt_level`` decides in a :class:`Sequential` which passes run (a pass runs if its own level
    is at most this one); a name in ``required_pass`` always runs and one in ``disabled_pass``
    never does. Raises :class:`PassConfigError` for an option nobody registered.
    """

    def __init__(
        self,
        opt_level: int = 2,
        required_pass: Iterable[str] | None = None,
        disabled_pass: Iterable[str] | None = None,
        instruments: Iterable[PassInstrument] | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self.opt_level = opt_level
        self.required_pass: list[str] = _names(required_pass, "required_pass")
        self.disabled_pass: list[str] = _names(disabled_pass, "disabled_pass")
        self.instruments: list[PassInstrument] = list(instruments or ())
        self.config = _validated(config)

    def __enter__(self) -> PassContext:
        self._enter_instruments()
        _STACK.entered.append(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not _STACK.entered or _STACK.entered[-1] is not self:
            raise PassError("a PassContext was left that is not the innermost one")
        _STACK.entered.pop()
        self._exit_instruments()

    @staticmethod
    def current() -> PassContext:
        """The innermost entered context of this thread, or the thread's default one."""
        if _STACK.entered:
            return _STACK.entered[-1]
        if _STACK.default is None:
            _STACK.default = PassContext()
        return _STACK.default

    @staticmethod
    def list_configs() -> dict[str, dict[str, str]]:
        """Every registered option with the name of its type."""
        return {name: {"type": option.type_key} for name, option in _OPTIONS.items()}

    def get_config(self, key: str, default: Any = None) -> Any:
        return self.config.get(key, default)

    def pass_enabled(self, info: PassInfo) -> bool:
        """Whether a :class:`Sequential` runs the pass: disabled wins over required over level."""
        if info.name in self.disabled_pass:
            return False
        return info.name in self.required_pass or self.opt_level >= info.opt_level

    def override_instruments(self, instruments: Iterable[PassInstrument] | None) -> None:
        """Exit the present instruments, then install and enter others."""
        self._exit_instruments()
        self.instruments = list(instruments or ())
        self._enter_instruments()

    def before_pass(self, mod: IRModule, info: PassInfo) -> bool:
        """Ask the instruments; False means the pass must hand back its input."""
        if info.name not in self.required_pass:
            answers = [instrument.asks_to_run(mod, info) for instrument in self.instruments]
            if not all(answers):
                return False
        for instrument in self.instruments:
            instrument.run_before_pass(mod, info)
        return True

    def after_pass(self, mod: IRModule, info: PassInfo) -> None:
        for instrument in self.instruments:
            instrument.run_after_pass(mod, info)

    def _enter_instruments(self) -> None:
        entered: list[PassInstrument] = []
        try:
            for instrument in self.instruments:
                instrument.enter_pass_ctx()
                entered.append(instrument)
        except BaseException:
            self.instruments = []
            for instrument in reversed(entered):
                instrument.exit_pass_ctx()
            raise

    def _exit_instruments(self) -> None:
        try:
            for instrument in self.instruments:
                instrument.exit_pass_ctx()
        except BaseException:
            self.instruments = []
            raise

    def __repr__(self) -> str:
        return (
            f"PassContext(opt_level={self.opt_level}, required_pass={self.required_pass}, "
            f"disabled_pass={self.disabled_pass}, config={self.config})"
        )


def _names(names: Iterable[str] | None, what: str) -> list[str]:
    if names is None:
        return []
    if isinstance(names, str) or not isinstance(names, (list, tuple, set, frozenset)):
        raise TypeError(f"{what} is expected to be the type of list/tuple/set.")
    return list(names)
