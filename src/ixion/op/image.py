"""The functions Relay has in ``relay.image``, and ``interpolate``."""

from ixion.op.resize import interpolate, resize1d, resize2d, resize3d
