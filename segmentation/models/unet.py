"""Baseline: a U-Net on the bands of all modalities at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import segmentation_models_pytorch as smp
import torch
from torch import Tensor, nn
from torch.nn.functional import pad


class UNet(nn.Module):
    """Early fusion: all bands enter one U-Net (Ronneberger et al. 2015) of segmentation_models_pytorch.

    Args:
        bands: Number of bands of each modality.
        classes: Number of classes.
        encoder: Name of the encoder; it starts from random weights.
        decoder_channels: Channels of the decoder, coarse to fine; their number is the depth.
    """

    tolerates_absence = False

    def __init__(
        self, bands: Mapping[str, int], classes: int, *, encoder: str, decoder_channels: Sequence[int]
    ) -> None:
        super().__init__()
        self.modalities = tuple(bands)
        self.stride = 2 ** len(decoder_channels)
        self.net = smp.Unet(
            encoder,
            encoder_depth=len(decoder_channels),
            encoder_weights=None,
            decoder_channels=tuple(decoder_channels),
            in_channels=sum(bands.values()),
            classes=classes,
        )

    def forward(self, images: Mapping[str, Tensor], available: Mapping[str, Tensor]) -> Tensor:  # noqa: ARG002 - the images are zero, the training mean, where unavailable
        """Predict; shapes as in :class:`SwinFusion`."""
        stacked = torch.cat([images[name] for name in self.modalities], dim=1)
        height, width = stacked.shape[-2:]
        padded = pad(stacked, (0, -width % self.stride, 0, -height % self.stride))
        return self.net(padded)[..., :height, :width]
