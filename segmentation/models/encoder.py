"""A Swin encoder for one modality, that fills holes in its input with a learned token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import timm
import torch
from timm.models.swin_transformer import SwinTransformer
from torch import Tensor, nn


class SwinEncoder(nn.Module):
    """The stages of a timm Swin (Liu et al. 2021), run one at a time so that others can act in between.

    Args:
        bands: Bands of the modality.
        embed_dim: Width of the first stage; it doubles at each further one.
        depths: Blocks a stage.
        heads: Attention heads a stage.
        window: Side of the attention windows in tokens.
        patch: Side in pixels of the patch that becomes one token.

    Attributes:
        widths: Channels after each stage.
    """

    def __init__(
        self, bands: int, *, embed_dim: int, depths: Sequence[int], heads: Sequence[int], window: int, patch: int
    ) -> None:
        super().__init__()
        swin = timm.create_model(
            "swin_tiny_patch4_window7_224",
            pretrained=False,
            in_chans=bands,
            num_classes=0,
            embed_dim=embed_dim,
            depths=tuple(depths),
            num_heads=tuple(heads),
            window_size=window,
            patch_size=patch,
            strict_img_size=False,  # sizes change between training, prediction and small rasters
            always_partition=True,  # else windows shrink to the image size given at construction
            drop_path_rate=0.0,
        )
        swin = cast("SwinTransformer", swin)
        self.embed = swin.patch_embed
        self.stages = swin.layers
        self.absent = nn.Parameter(torch.zeros(embed_dim))
        nn.init.trunc_normal_(self.absent, std=0.02)
        self.widths = tuple(embed_dim * 2**stage for stage in range(len(depths)))

    def tokens(self, image: Tensor, available: Tensor) -> Tensor:
        """Turn patches into tokens, and patches without data into the learned absent token.

        Args:
            image: ``[B, bands, H, W]``, zero where unavailable.
            available: Boolean ``[B, h, w]``, of the tokens.

        Returns:
            ``[B, h, w, embed_dim]``.
        """
        return torch.where(available[..., None], self.embed(image), self.absent)

    def stage(self, index: int, tokens: Tensor) -> Tensor:
        """Run one stage: ``[B, h, w, C]`` to ``[B, h / 2, w / 2, 2 C]``; the first keeps the size."""
        return self.stages[index](tokens)
