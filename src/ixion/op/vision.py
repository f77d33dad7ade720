"""The functions Relay has in ``relay.vision``, and ``roi_align_half_pixel``."""

from ixion.op.nms import all_class_non_max_suppression, get_valid_counts, non_max_suppression
from ixion.op.roi import roi_align, roi_align_half_pixel, roi_pool, yolo_reorg

__all__ = [
    "all_class_non_max_suppression",
    "get_valid_counts",
    "non_max_suppression",
    "roi_align",
    "roi_align_half_pixel",
    "roi_pool",
    "yolo_reorg",
]
