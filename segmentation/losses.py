"""What training minimises."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from segmentation.classes import NODATA


def weighted_cross_entropy(logits: Tensor, labels: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Cross-entropy over the labelled pixels.

    Args:
        logits: ``[B, classes, H, W]``.
        labels: ``[B, H, W]``, 255 where unlabelled.
        weights: Weight of each class, ``[classes]``.

    Returns:
        Weighted sum of the losses, and sum of the weights.
    """
    target = labels.long()
    total = cross_entropy(logits, target, weight=weights, ignore_index=NODATA, reduction="sum")
    counted = weights[torch.where(labels == NODATA, 0, target)] * (labels != NODATA)
    return total, counted.sum()
