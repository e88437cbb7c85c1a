"""Blocks: feed-forward layers and the encoder and decoder blocks built from ready-made parts."""

from __future__ import annotations

from typing import Any, Literal

from torch import Tensor, nn
from torch.nn.functional import silu

from common.attention import Attention

NormPlace = Literal["pre", "post"]


class FeedForward(nn.Module):
    """Two linear layers with a GELU between them.

    Args:
        dim: Width.
        ratio: Width of the hidden layer, in multiples of ``dim``.
        dropout: Probability of dropping a hidden unit in training.
    """

    def __init__(self, dim: int, *, ratio: float = 4.0, dropout: float = 0.0) -> None:
        super().__init__()
        hidden = round(dim * ratio)
        self.layers = nn.Sequential(nn.Linear(dim, hidden), nn.GELU(), nn.Dropout(dropout), nn.Linear(hidden, dim))

    def forward(self, tokens: Tensor) -> Tensor:
        """``[..., dim]`` to ``[..., dim]``."""
        return self.layers(tokens)


class SwiGLU(nn.Module):
    """A feed-forward layer gated by a SiLU branch (Shazeer 2020).

    Args:
        dim: Width.
        ratio: Width of the hidden layer, in multiples of ``dim``; 8/3 costs what a plain layer of ratio 4 does.
        dropout: Probability of dropping a hidden unit in training.
    """

    def __init__(self, dim: int, *, ratio: float = 8 / 3, dropout: float = 0.0) -> None:
        super().__init__()
        hidden = round(dim * ratio)
        self.gate = nn.Linear(dim, hidden)
        self.up = nn.Linear(dim, hidden)
        self.down = nn.Linear(hidden, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens: Tensor) -> Tensor:
        """``[..., dim]`` to ``[..., dim]``."""
        return self.down(self.dropout(silu(self.gate(tokens)) * self.up(tokens)))


class EncoderBlock(nn.Module):
    """Self-attention and a feed-forward layer, each on a residual path.

    Args:
        dim: Width.
        attention: Self-attention of width ``dim``.
        feed_forward: Feed-forward layer of width ``dim``.
        norm: ``pre`` normalises what enters a branch (Xiong et al. 2020), ``post`` what leaves the sum.
        dropout: Probability of dropping a feature of a branch's output in training.
    """

    def __init__(
        self, dim: int, *, attention: Attention, feed_forward: nn.Module, norm: NormPlace = "pre", dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.attention = attention
        self.feed_forward = feed_forward
        self.attention_norm = nn.LayerNorm(dim)
        self.feed_forward_norm = nn.LayerNorm(dim)
        self.dropout = nn.Dropout(dropout)
        self.pre = norm == "pre"

    def forward(self, tokens: Tensor, **attention: Any) -> Tensor:
        """``[B, L, dim]`` to ``[B, L, dim]``; keyword arguments go to the attention."""
        if self.pre:
            tokens = tokens + self.dropout(self.attention(self.attention_norm(tokens), **attention))
            return tokens + self.dropout(self.feed_forward(self.feed_forward_norm(tokens)))
        tokens = self.attention_norm(tokens + self.dropout(self.attention(tokens, **attention)))
        return self.feed_forward_norm(tokens + self.dropout(self.feed_forward(tokens)))


class DecoderBlock(nn.Module):
    """Self-attention, cross-attention to a memory and a feed-forward layer, each on a residual path, Pre-LN.

    Args:
        dim: Width.
        attention: Self-attention of width ``dim``.
        cross: Cross-attention of width ``dim``.
        feed_forward: Feed-forward layer of width ``dim``.
        dropout: Probability of dropping a feature of a branch's output in training.
    """

    def __init__(
        self, dim: int, *, attention: Attention, cross: Attention, feed_forward: nn.Module, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.attention = attention
        self.cross = cross
        self.feed_forward = feed_forward
        self.attention_norm = nn.LayerNorm(dim)
        self.cross_norm = nn.LayerNorm(dim)
        self.feed_forward_norm = nn.LayerNorm(dim)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        tokens: Tensor,
        memory: Tensor,
        *,
        memory_padding_mask: Tensor | None = None,
        positions: Tensor | None = None,
        memory_positions: Tensor | None = None,
        causal: bool = False,
    ) -> Tensor:
        """Decode.

        Args:
            tokens: ``[B, L, dim]``.
            memory: ``[B, S, dim]``.
            memory_padding_mask: Boolean ``[B, S]``, True where a memory token is real.
            positions: ``[L]`` or ``[B, L]``, for rotary attention.
            memory_positions: ``[S]`` or ``[B, S]``, for rotary attention.
            causal: Whether the self-attention sees no later token.

        Returns:
            ``[B, L, dim]``.
        """
        tokens = tokens + self.dropout(self.attention(self.attention_norm(tokens), causal=causal, positions=positions))
        seen = self.cross(
            self.cross_norm(tokens),
            memory,
            key_padding_mask=memory_padding_mask,
            positions=positions,
            key_positions=memory_positions,
        )
        tokens = tokens + self.dropout(seen)
        return tokens + self.dropout(self.feed_forward(self.feed_forward_norm(tokens)))
