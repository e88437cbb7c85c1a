"""A light multi-scale decoder: a feature pyramid for the context, and the pixels themselves for the detail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from timm.layers.norm import LayerNorm2d
from torch import Tensor, nn
from torch.nn.functional import interpolate


class PyramidDecoder(nn.Module):
    """Top-down feature pyramid (Lin et al. 2017) whose finest level is joined by a shallow look at the pixels.

    The look at a modality other than the primary one is masked by its availability and starts at zero, like the
    gates of the fusion: absent, it adds nothing.

    Args:
        widths: Channels of the stages, fine to coarse.
        bands: Bands of each modality, the primary one first.
        width: Channels of the decoder.
        classes: Number of classes.
        dropout: Probability of dropping a channel of the context in training; few labelled places are easily learnt by
            heart from their surroundings, and the detail must stand alone where the context misleads.
    """

    def __init__(
        self, widths: Sequence[int], *, bands: Mapping[str, int], width: int, classes: int, dropout: float
    ) -> None:
        super().__init__()
        self.lateral = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(channels), nn.Linear(channels, width)) for channels in widths
        )
        self.smooth = nn.Sequential(nn.GELU(), nn.Conv2d(width, width, 3, padding=1), nn.Dropout2d(dropout))
        self.detail = nn.ModuleDict({name: _detail(count, width) for name, count in bands.items()})
        for name in list(bands)[1:]:
            last = self.detail[name].get_submodule("3")
            nn.init.zeros_(last.get_parameter("weight"))
            nn.init.zeros_(last.get_parameter("bias"))
        self.head = nn.Sequential(
            LayerNorm2d(width),
            nn.GELU(),
            nn.Conv2d(width, width, 1),
            LayerNorm2d(width),
            nn.GELU(),
            nn.Conv2d(width, classes, 1),
        )

    def forward(
        self, stages: Sequence[Tensor], images: Mapping[str, Tensor], available: Mapping[str, Tensor]
    ) -> Tensor:
        """Predict.

        Args:
            stages: ``[B, h, w, C]`` of each stage of the primary modality, fine to coarse.
            images: ``[B, bands, H, W]`` by modality.
            available: Boolean ``[B, 1, H, W]`` by modality.

        Returns:
            Logits ``[B, classes, H, W]``.
        """
        laterals = zip(self.lateral, stages, strict=True)
        levels = [lateral(stage).permute(0, 3, 1, 2) for lateral, stage in laterals]  # [B, h, w, C] -> [B, width, h, w]
        features = levels.pop()
        while levels:
            finer = levels.pop()
            features = finer + _upsampled(features, finer)
        first, *others = self.detail
        features = _upsampled(self.smooth(features), images[first]) + self.detail[first](images[first])
        for name in others:
            features = features + self.detail[name](images[name]) * available[name]
        return self.head(features)


def _detail(bands: int, width: int) -> nn.Sequential:
    # Bands are much alike; the norm makes their small differences learnable in a few hundred steps.
    return nn.Sequential(
        nn.Conv2d(bands, width, 3, padding=1), LayerNorm2d(width), nn.GELU(), nn.Conv2d(width, width, 1)
    )


def _upsampled(features: Tensor, like: Tensor) -> Tensor:
    return interpolate(features, size=like.shape[-2:], mode="bilinear", align_corners=False)
