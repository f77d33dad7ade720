"""The functions Relay has in ``relay.vision``, and a few of our own."""

from ixion.op.nms import all_class_non_max_suppression, get_valid_counts, non_max_suppression
from ixion.op.nms_select import keep_boxes, select_boxes
from ixion.op.roi import roi_align, roi_align_half_pixel, roi_pool, yolo_reorg

__all__ = [
    "all_class_non_max_suppression",
    "get_valid_counts",
    "keep_boxes",
    "non_max_suppression",
    "roi_align",
    "roi_align_half_pixel",
    "roi_pool",
    "select_boxes",
    "yolo_reorg",
]
