"""A package outside Ixion that adds an operator, a pass and a node kind of its own."""

from ixion_extra.nodes import Calibration, calibration
from ixion_extra.operators import give_compute, squash
from ixion_extra.passes import DropDoubleNegative

__all__ = ["Calibration", "DropDoubleNegative", "calibration", "give_compute", "squash"]
