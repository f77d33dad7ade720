"""The functions Relay has in ``relay.image``, and ``interpolate``."""

from ixion.op.conv_special import dilation2d
from ixion.op.resize import interpolate, resize1d, resize2d, resize3d
from ixion.op.warp import affine_grid, crop_and_resize, grid_sample

__all__ = [
    "affine_grid",
    "crop_and_resize",
    "dilation2d",
    "grid_sample",
    "interpolate",
    "resize1d",
    "resize2d",
    "resize3d",
]
