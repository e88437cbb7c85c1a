"""The attention model: a Swin for each modality, fused stage by stage, and a multi-scale decoder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, max_pool2d, pad

from segmentation.models.decoder import PyramidDecoder
from segmentation.models.encoder import SwinEncoder
from segmentation.models.fusion import StageFusion


class SwinFusion(nn.Module):
    """Segmentation from any number of modalities, of which only the primary one must be there.

    Args:
        bands: Number of bands of each modality; the first is the primary one.
        classes: Number of classes.
        primary: Arguments of the primary :class:`SwinEncoder`.
        secondary: Arguments of the others, with as many stages.
        patch: Side in pixels of the patch that becomes one token.
        width: Channels of the decoder.
        modality_dropout: Probability of hiding a secondary modality of a sample in training.
        dropout: Of the context, see :class:`PyramidDecoder`.
    """

    tolerates_absence = True

    def __init__(
        self,
        bands: Mapping[str, int],
        classes: int,
        *,
        primary: Mapping[str, Any],
        secondary: Mapping[str, Any],
        patch: int,
        width: int,
        modality_dropout: float,
        dropout: float,
    ) -> None:
        super().__init__()
        self.primary, *self.others = bands
        self.patch = patch
        self.modality_dropout = modality_dropout
        encoders = {
            name: SwinEncoder(count, patch=patch, **(primary if name == self.primary else secondary))
            for name, count in bands.items()
        }
        widths = {name: encoder.widths for name, encoder in encoders.items()}
        self.encoders = nn.ModuleDict(encoders)
        self.stages = len(widths[self.primary])
        self.fusions = nn.ModuleList(
            StageFusion(
                widths[self.primary][stage],
                {name: widths[name][stage] for name in self.others},
                heads=primary["heads"][stage],
                window=primary["window"],
            )
            for stage in range(self.stages if self.others else 0)
        )
        self.decoder = PyramidDecoder(widths[self.primary], bands=bands, width=width, classes=classes, dropout=dropout)

    def forward(self, images: Mapping[str, Tensor], available: Mapping[str, Tensor]) -> Tensor:
        """Predict.

        Args:
            images: ``[B, bands, H, W]`` by modality, normalised, zero where unavailable; any size.
            available: Boolean ``[B, 1, H, W]`` by modality.

        Returns:
            Logits ``[B, classes, H, W]``.
        """
        height, width = images[self.primary].shape[-2:]
        stride = self.patch * 2 ** (self.stages - 1)
        margin = (0, -width % stride, 0, -height % stride)
        images = {name: pad(image, margin) for name, image in images.items()}
        available = {name: pad(self._hide(name, mask), margin) for name, mask in available.items()}
        there = {name: self._patches(mask) for name, mask in available.items()}
        encoders = {name: cast("SwinEncoder", encoder) for name, encoder in self.encoders.items()}
        tokens = {name: encoder.tokens(images[name], there[name]) for name, encoder in encoders.items()}
        features = []
        for stage in range(self.stages):
            if stage:
                there = {name: _halved(mask) for name, mask in there.items()}
            tokens = {name: encoder.stage(stage, tokens[name]) for name, encoder in encoders.items()}
            if self.others:
                others = {name: tokens[name] for name in self.others}
                tokens[self.primary] = self.fusions[stage](tokens[self.primary], others, there)
            features.append(tokens[self.primary])
        return self.decoder(features, images, available)[..., :height, :width]

    def _hide(self, name: str, available: Tensor) -> Tensor:
        """Modality dropout: hide a secondary modality of some samples, in training only."""
        if not self.training or name == self.primary or not self.modality_dropout:
            return available
        kept = torch.rand(len(available), 1, 1, 1, device=available.device) >= self.modality_dropout
        return available & kept

    def _patches(self, available: Tensor) -> Tensor:
        """Availability of tokens, ``[B, h, w]``: a token has data where more than half of its patch has."""
        share = avg_pool2d(available.float(), self.patch)  # [B, 1, H, W] -> [B, 1, h, w]
        return share[:, 0] > 0.5


def _halved(available: Tensor) -> Tensor:
    """Availability of merged tokens: one that holds any data."""
    return max_pool2d(available[:, None].float(), 2)[:, 0] > 0
