"""TVM's door for testing its type solver, on Ixion's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ixion.ir import TensorType, Type, TypeRelation
from ixion.transform.type_solver import Relation, TypeSolver


class SolverDoor:
    """``door("Unify")`` and its like give the solver's operations."""

    def __init__(self) -> None:
        self.solver = TypeSolver()
        self.relations: list[Relation] = []

    def __call__(self, operation: str) -> Callable[..., Any]:
        operations: dict[str, Callable[..., Any]] = {
            "Solve": self._solve,
            "Unify": self.solver.unify,
            "Resolve": self.solver.resolve,
            "AddConstraint": self._add,
        }
        return operations[operation]

    def _solve(self) -> bool:
        self.solver.solve()
        return all(relation.settled for relation in self.relations)

    def _add(self, relation: TypeRelation) -> None:
        name = relation.func.name.rpartition(".")[2]
        rules: dict[str, Callable[..., bool]] = {
            "Identity": self._identity,
            "Broadcast": self._broadcast,
        }
        attempt = rules[name]
        made = Relation(lambda: attempt(*relation.args), relation.args)
        self.relations.append(made)
        self.solver.add(made)

    def _identity(self, value: Type, out: Type) -> bool:
        self.solver.unify(value, out)
        return True

    def _broadcast(self, left: Type, right: Type, out: Type) -> bool:
        known = self.solver.find(left), self.solver.find(right)
        first, second = known
        if not (isinstance(first, TensorType) and isinstance(second, TensorType)):
            return False
        shape = np.broadcast_shapes(first.concrete_shape, second.concrete_shape)
        self.solver.unify(out, TensorType(shape, first.dtype))
        return True


_test_type_solver = SolverDoor

__all__ = ["SolverDoor"]
