"""``tvm.error``: TVM's exception names, each standing for the nearest of Ixion's."""

from __future__ import annotations

from ixion.base.errors import DiagnosticError, IxionError, RegistryError, UnsupportedOpError

TVMError = IxionError
InternalError = IxionError
RPCError = IxionError
OpError = IxionError
OpNotImplemented = UnsupportedOpError
OpNotRegistered = RegistryError
OpAttributeRequired = IxionError
OpAttributeInvalid = IxionError
OpAttributeUnImplemented = IxionError

__all__ = [
    "DiagnosticError",
    "InternalError",
    "OpAttributeInvalid",
    "OpAttributeRequired",
    "OpAttributeUnImplemented",
    "OpError",
    "OpNotImplemented",
    "OpNotRegistered",
    "RPCError",
    "TVMError",
]
