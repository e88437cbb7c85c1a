"""A light multi-scale decoder: a feature pyramid, and the input itself for the last detail."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate


def _upsampled(features: Tensor, like: Tensor) -> Tensor:
    return interpolate(features, size=like.shape[-2:], mode="bilinear", align_corners=False)


class PyramidDecoder(nn.Module):
    """Top-down feature pyramid (Lin et al. 2017) whose finest level meets a shallow look at the pixels.

    Args:
        widths: Channels of the stages, fine to coarse.
        bands: Bands of the primary modality.
        width: Channels of the pyramid.
        classes: Number of classes.
    """

    def __init__(self, widths: Sequence[int], *, bands: int, width: int, classes: int) -> None:
        super().__init__()
        self.lateral = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(channels), nn.Linear(channels, width)) for channels in widths
        )
        self.smooth = nn.Sequential(nn.Conv2d(width, width // 2, 3, padding=1), nn.GroupNorm(1, width // 2), nn.GELU())
        self.pixels = nn.Sequential(nn.Conv2d(bands, width // 2, 3, padding=1), nn.GELU())
        self.head = nn.Sequential(nn.Conv2d(width, width, 1), nn.GELU(), nn.Conv2d(width, classes, 1))

    def forward(self, stages: Sequence[Tensor], image: Tensor) -> Tensor:
        """Predict.

        Args:
            stages: ``[B, h, w, C]`` of each stage, fine to coarse.
            image: ``[B, bands, H, W]``, the primary modality.

        Returns:
            Logits ``[B, classes, H, W]``.
        """
        laterals = zip(self.lateral, stages, strict=True)
        levels = [lateral(stage).permute(0, 3, 1, 2) for lateral, stage in laterals]  # [B, h, w, C] -> [B, width, h, w]
        features = levels.pop()
        while levels:
            finer = levels.pop()
            features = finer + _upsampled(features, finer)
        features = _upsampled(self.smooth(features), image)
        return self.head(torch.cat([features, self.pixels(image)], dim=1))
