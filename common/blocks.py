"""Feed-forward layers, norms, and the encoder and decoder blocks built from ready-made parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn.functional import elu, gelu, max_pool1d, pad, relu, silu

from common.attention import Attention, KeyValueCache
from common.errors import ShapeError

Norm = Literal["layer", "rms"]
Place = Literal["pre", "post"]
Kind = Literal["gelu", "relu", "glu", "geglu", "swiglu"]
_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": gelu, "relu": relu, "glu": torch.sigmoid, "geglu": gelu, "swiglu": silu,
}  # fmt: skip


def make_norm(norm: Norm, dim: int) -> nn.Module:
    """``layer``: LayerNorm (Ba et al. 2016); ``rms``: RMSNorm (Zhang & Sennrich 2019), without mean and bias.

    Raises:
        ShapeError: If there is no such norm.
    """
    if norm not in get_args(Norm):
        raise ShapeError(f"norm {norm!r} is not known", remedy=f"one of {', '.join(get_args(Norm))}")
    return nn.LayerNorm(dim) if norm == "layer" else nn.RMSNorm(dim, eps=1e-6)


class FeedForward(nn.Module):
    """Two linear layers with a non-linearity between them, or a gated form of it (Shazeer 2020).

    Plain, ``down(f(up(x)))``: ``gelu`` or ``relu``. Gated, ``down(f(gate(x)) * up(x))``: ``glu`` (f is the sigmoid),
    ``geglu`` (GELU) or ``swiglu`` (SiLU).

    Args:
        dim: Width.
        kind: Which of them.
        ratio: Width of the hidden layer, in multiples of ``dim``; 4 for the plain forms and 8/3, which has as many
            parameters, for the gated ones by default.
        bias: Whether the linear layers have a bias.
        dropout: Probability of dropping a hidden unit in training.

    Raises:
        ShapeError: If there is no such kind, or the ratio is not above zero.
    """

    def __init__(
        self, dim: int, *, kind: Kind = "gelu", ratio: float | None = None, bias: bool = True, dropout: float = 0.0
    ) -> None:
        super().__init__()
        if kind not in _ACTIVATIONS:
            raise ShapeError(f"feed-forward {kind!r} is not known", remedy=f"one of {', '.join(_ACTIVATIONS)}")
        gated = kind.endswith("glu")
        ratio = (8 / 3 if gated else 4.0) if ratio is None else ratio
        if ratio <= 0:
            raise ShapeError(f"ratio {ratio} must be above 0")
        hidden = max(1, round(dim * ratio))
        self.activation = _ACTIVATIONS[kind]
        self.up = nn.Linear(dim, hidden, bias=bias)
        self.gate = nn.Linear(dim, hidden, bias=bias) if gated else None
        self.down = nn.Linear(hidden, dim, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens: Tensor) -> Tensor:
        """``[..., dim]`` to ``[..., dim]``."""
        hidden = self.up(tokens)
        hidden = self.activation(hidden) if self.gate is None else self.activation(self.gate(tokens)) * hidden
        return self.down(self.dropout(hidden))


class Residual(nn.Module):
    """A branch beside the identity, with its norm before the branch or after the sum.

    Args:
        dim: Width.
        branch: What is added; takes tokens first, and keywords.
        norm: Kind of norm.
        place: ``pre`` normalises what enters the branch (Xiong et al. 2020), ``post`` what leaves the sum.
        dropout: Probability of dropping a feature of the branch's output in training.
    """

    def __init__(self, dim: int, branch: nn.Module, *, norm: Norm, place: Place, dropout: float) -> None:
        super().__init__()
        if place not in get_args(Place):
            raise ShapeError(f"place {place!r} of the norm is not known", remedy="pre or post")
        self.branch = branch
        self.norm = make_norm(norm, dim)
        self.dropout = nn.Dropout(dropout)
        self.pre = place == "pre"

    def forward(self, tokens: Tensor, *others: Tensor, **options: Any) -> Tensor:
        """``[B, L, dim]`` to ``[B, L, dim]``; everything else goes to the branch."""
        if self.pre:
            return tokens + self.dropout(self.branch(self.norm(tokens), *others, **options))
        return self.norm(tokens + self.dropout(self.branch(tokens, *others, **options)))


class EncoderBlock(nn.Module):
    """Self-attention and a feed-forward layer, each on a residual path; with ``causal=True`` a decoder-only block.

    Args:
        dim: Width.
        attention: Self-attention of width ``dim``.
        feed_forward: Feed-forward layer of width ``dim``.
        norm: Kind of norm.
        place: Where the norms stand, see :class:`Residual`.
        dropout: Probability of dropping a feature of a branch's output in training.
    """

    def __init__(
        self,
        dim: int,
        *,
        attention: Attention,
        feed_forward: nn.Module,
        norm: Norm = "layer",
        place: Place = "pre",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.attention = Residual(dim, attention, norm=norm, place=place, dropout=dropout)
        self.feed_forward = Residual(dim, feed_forward, norm=norm, place=place, dropout=dropout)

    def forward(self, tokens: Tensor, **attention: Any) -> Tensor:
        """``[B, L, dim]`` to ``[B, L, dim]``; keyword arguments go to the attention."""
        return self.feed_forward(self.attention(tokens, **attention))


class DecoderBlock(nn.Module):
    """Self-attention, cross-attention to a memory and a feed-forward layer, each on a residual path.

    Args:
        dim: Width.
        attention: Self-attention of width ``dim``.
        cross: Cross-attention of width ``dim``.
        feed_forward: Feed-forward layer of width ``dim``.
        norm: Kind of norm.
        place: Where the norms stand, see :class:`Residual`.
        dropout: Probability of dropping a feature of a branch's output in training.
    """

    def __init__(
        self,
        dim: int,
        *,
        attention: Attention,
        cross: Attention,
        feed_forward: nn.Module,
        norm: Norm = "layer",
        place: Place = "pre",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.attention = Residual(dim, attention, norm=norm, place=place, dropout=dropout)
        self.cross = Residual(dim, cross, norm=norm, place=place, dropout=dropout)
        self.crosses_by_position = cross.rotary
        self.feed_forward = Residual(dim, feed_forward, norm=norm, place=place, dropout=dropout)

    def forward(
        self,
        tokens: Tensor,
        memory: Tensor,
        *,
        key_padding_mask: Tensor | None = None,
        memory_padding_mask: Tensor | None = None,
        positions: Tensor | None = None,
        memory_positions: Tensor | None = None,
        causal: bool = False,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        """Decode.

        Args:
            tokens: ``[B, L, dim]``.
            memory: ``[B, S, dim]``.
            key_padding_mask: Boolean ``[B, L]``, True where a token is real (with a cache, those before it included).
            memory_padding_mask: Boolean ``[B, S]``, True where a memory token is real.
            positions: ``[L]`` or ``[B, L]``, for rotary attention.
            memory_positions: ``[S]`` or ``[B, S]``, for rotary cross-attention; to be given with ``positions``.
            causal: Whether the self-attention sees no later token.
            cache: Of the self-attention, see :class:`common.attention.Attention`.

        Returns:
            ``[B, L, dim]``.
        """
        earlier = 0 if cache is None else cache.length  # before the self-attention adds the tokens
        length = tokens.shape[1]
        tokens = self.attention(
            tokens, causal=causal, key_padding_mask=key_padding_mask, positions=positions, cache=cache
        )
        if not self.crosses_by_position:
            positions = memory_positions = None
        elif positions is None and memory_positions is None and earlier:
            positions = torch.arange(earlier, earlier + length, device=tokens.device)
            memory_positions = torch.arange(memory.shape[1], device=tokens.device)
        tokens = self.cross(
            tokens, memory, key_padding_mask=memory_padding_mask, positions=positions, key_positions=memory_positions
        )
        return self.feed_forward(tokens)


class Distil(nn.Module):
    """Halve a sequence: convolve, and keep the larger of each two neighbours (Zhou et al. 2021, eq. 5).

    Args:
        dim: Width.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.mix = nn.Conv1d(dim, dim, 3, padding=1)

    def forward(self, tokens: Tensor, real: Tensor | None = None) -> Tensor:
        """Halve.

        Args:
            tokens: ``[B, L, dim]``.
            real: Boolean ``[B, L]``; tokens that are not real count as zero.

        Returns:
            ``[B, ceil(L / 2), dim]``.
        """
        if real is None:
            return max_pool1d(elu(self.mix(tokens.transpose(1, 2))), 2, ceil_mode=True).transpose(1, 2)
        mixed = elu(self.mix(tokens.masked_fill(~real.unsqueeze(-1), 0.0).transpose(1, 2)))  # [B, dim, L]
        # The convolution reaches into the padding; what stands there must not be taken for the larger neighbour.
        pooled = max_pool1d(mixed.masked_fill(~real.unsqueeze(1), float("-inf")), 2, ceil_mode=True).transpose(1, 2)
        return pooled.masked_fill(~self.halve_mask(real).unsqueeze(-1), 0.0)

    @staticmethod
    def halve_positions(positions: Tensor) -> Tensor:
        """Where the halved tokens stand, ``[..., L]`` to ``[..., ceil(L / 2)]``: at the later of their two."""
        return torch.cat((positions[..., 1::2], positions[..., -1:]), dim=-1)[..., : -(-positions.shape[-1] // 2)]

    @staticmethod
    def halve_mask(real: Tensor) -> Tensor:
        """Which of the halved tokens hold a real one, ``[B, L]`` to ``[B, ceil(L / 2)]``."""
        return pad(real, (0, real.shape[1] % 2)).unflatten(1, (-1, 2)).any(dim=2)
