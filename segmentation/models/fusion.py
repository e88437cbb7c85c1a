"""Fusion of one stage: the primary modality looks at the others, as far as they are there."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from common.attention import Attention


class ChannelRectification(nn.Module):
    """Scale the channels of one modality by what both modalities look like as a whole.

    Squeeze and excitation (Hu et al. 2018) over the pooled features of the two, as in the rectification of
    CMX (Zhang et al. 2023).

    Args:
        primary: Channels of the primary modality.
        secondary: Channels of the modality to be rectified.
    """

    def __init__(self, primary: int, secondary: int) -> None:
        super().__init__()
        self.excite = nn.Sequential(
            nn.Linear(primary + secondary, secondary), nn.GELU(), nn.Linear(secondary, secondary), nn.Sigmoid()
        )

    def forward(self, primary: Tensor, secondary: Tensor, available: Tensor) -> Tensor:
        """Rectify ``secondary``.

        Args:
            primary: ``[B, h, w, C]``.
            secondary: ``[B, h, w, C2]``.
            available: Boolean ``[B, h, w]`` of the secondary modality; only there is it pooled.
        """
        present = available[..., None].to(secondary.dtype)
        pooled = (secondary * present).sum((1, 2)) / present.sum((1, 2)).clamp(min=1)  # [B, h, w, C2] -> [B, C2]
        factors = self.excite(torch.cat([primary.mean((1, 2)), pooled], dim=-1))  # [B, C2]
        return secondary * 2 * factors[:, None, None, :]  # 2: the sigmoid starts at one half


class StageFusion(nn.Module):
    """Windowed cross-attention from the primary modality to each other one, under a gate that starts at zero.

    What the modalities say is weighed at each position by a softmax over those that are available there. One
    that is not has no weight at all, so the result is that of a model without it.

    Args:
        primary: Channels of the primary modality.
        secondary: Channels of each other modality, by name.
        heads: Attention heads.
        window: Side of the attention windows in tokens.
    """

    def __init__(self, primary: int, secondary: Mapping[str, int], *, heads: int, window: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(primary)
        self.rectify = nn.ModuleDict({name: ChannelRectification(primary, width) for name, width in secondary.items()})
        self.norms = nn.ModuleDict({name: nn.LayerNorm(width) for name, width in secondary.items()})
        self.attend = nn.ModuleDict(
            {
                name: Attention(primary, heads, key_dim=width, mechanism="window2d", window=window, position="relative")
                for name, width in secondary.items()
            }
        )
        self.weigh = nn.ModuleDict({name: nn.Linear(primary, 1) for name in secondary})
        self.gate = nn.Parameter(torch.zeros(primary))

    def forward(self, primary: Tensor, secondary: Mapping[str, Tensor], available: Mapping[str, Tensor]) -> Tensor:
        """Add what the other modalities say.

        Args:
            primary: ``[B, h, w, C]``.
            secondary: ``[B, h, w, C2]`` by name.
            available: Boolean ``[B, h, w]`` by name.

        Returns:
            ``[B, h, w, C]``.
        """
        query = self.norm(primary)
        grid = (query.shape[1], query.shape[2])
        said, scores = [], []
        for name, features in secondary.items():
            there = available[name]
            rectified = self.norms[name](self.rectify[name](query, features, there))
            answer = self.attend[name](
                query.flatten(1, 2),  # [B, h, w, C] -> [B, h w, C]
                rectified.flatten(1, 2),
                key_padding_mask=there.flatten(1),
                grid=grid,
            )
            said.append(answer.unflatten(1, grid))
            scores.append(self.weigh[name](said[-1]).masked_fill(~there[..., None], -torch.inf))
        weights = torch.stack(scores).softmax(dim=0)  # [modalities, B, h, w, 1]
        weights = weights.nan_to_num(0.0)  # where no modality is available
        return primary + self.gate * (weights * torch.stack(said)).sum(dim=0)
