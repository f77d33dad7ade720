"""``tvm.ir.supply``: names and global variables that nothing else has."""

from __future__ import annotations

from ixion.ir import GlobalVar, IRModule


class NameSupply:
    """Makes names, all with one prefix unless asked otherwise."""

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self._counts: dict[str, int] = {}

    def _full(self, name: str, add_prefix: bool) -> str:
        full = f"{self.prefix}_{name}" if add_prefix and self.prefix else name
        return "".join(c if c.isalnum() or c == "_" else "_" for c in full)

    def fresh_name(self, name: str, add_prefix: bool = True, add_underscore: bool = True) -> str:
        """A name not given out before: ``name`` itself, or with a number."""
        full = self._full(name, add_prefix)
        if full not in self._counts:
            self._counts[full] = 0
            return full
        while True:
            self._counts[full] += 1
            made = f"{full}{'_' if add_underscore else ''}{self._counts[full]}"
            if made not in self._counts:
                self._counts[made] = 0
                return made

    def reserve_name(self, name: str, add_prefix: bool = True) -> str:
        """Take a name, which may be taken already."""
        full = self._full(name, add_prefix)
        self._counts.setdefault(full, 0)
        return full

    def contains_name(self, name: str, add_prefix: bool = True) -> bool:
        """The name was given out or reserved."""
        return self._full(name, add_prefix) in self._counts


class GlobalVarSupply:
    """Makes global variables whose names are all different."""

    def __init__(self, value: NameSupply | IRModule | list[IRModule] | None = None) -> None:
        if isinstance(value, NameSupply):
            self.name_supply = value
        else:
            # Names made beside those of modules have TVM's prefix for generated functions.
            self.name_supply = NameSupply("" if value is None else "tvmgen_default")
        self._known: dict[str, GlobalVar] = {}
        modules = value if isinstance(value, (list, tuple)) else [value]
        for module in modules:
            if isinstance(module, IRModule):
                for variable in module.get_global_vars():
                    self.reserve_global(variable, allow_conflict=True)

    def fresh_global(self, name: str, add_prefix: bool = True) -> GlobalVar:
        """A variable with a name of its own."""
        made = GlobalVar(self.name_supply.fresh_name(name, add_prefix))
        self._known[made.name_hint] = made
        return made

    def unique_global_for(self, name: str, add_prefix: bool = True) -> GlobalVar:
        """The variable of that name, the same one each time."""
        full = self.name_supply.reserve_name(name, add_prefix)
        return self._known.setdefault(full, GlobalVar(full))

    def reserve_global(self, global_var: GlobalVar, allow_conflict: bool = False) -> None:
        """Take a variable as the one of its name; ValueError where there is another."""
        name = self.name_supply.reserve_name(global_var.name_hint, add_prefix=False)
        if self._known.setdefault(name, global_var) is not global_var and not allow_conflict:
            raise ValueError(f"the name {name} stands for another global variable")


__all__ = ["GlobalVarSupply", "NameSupply"]
