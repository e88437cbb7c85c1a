"""Segmentation models by kind: images and availability by modality in, logits out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from common.errors import UsageError


def build_model(kind: str, *, bands: Mapping[str, int], classes: int, options: Mapping[str, Any]) -> nn.Module:
    """Build a model with random weights.

    Args:
        kind: ``swin-fusion``, ``unet`` or ``pixel-boosting``.
        bands: Number of bands of each modality; the first is the primary one.
        classes: Number of classes.
        options: Further arguments of the model.

    Raises:
        UsageError: If there is no such kind.
    """
    # Imported here, so that a run loads only the libraries its own model needs.
    if kind == "swin-fusion":
        from segmentation.models.swin_fusion import SwinFusion

        return SwinFusion(bands, classes, **options)
    if kind == "unet":
        from segmentation.models.unet import UNet

        return UNet(bands, classes, **options)
    if kind == "pixel-boosting":
        from segmentation.models.boosting import PixelBoosting

        return PixelBoosting(bands, classes, **options)
    raise UsageError(f"there is no model of kind {kind!r}", remedy="update farview, or fit again")
