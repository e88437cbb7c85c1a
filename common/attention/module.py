"""The attention module: projections around a mechanism."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from common.attention.full import full
from common.attention.masks import check_mask, merge
from common.attention.probsparse import probsparse
from common.attention.window2d import window2d
from common.errors import ShapeError
from common.positions import RelativeBias2d, rotate

Mechanism = Literal["full", "probsparse", "window2d"]
MECHANISMS: tuple[Mechanism, ...] = ("full", "probsparse", "window2d")


class Attention(nn.Module):
    """Multi-head attention, self or cross, with one of several mechanisms.

    Args:
        dim: Width of the queries and of the output.
        heads: Number of query heads; divides ``dim``.
        kv_heads: Number of key/value heads; divides ``heads``. One is multi-query, ``heads`` (the default)
            multi-head, between is grouped (Ainslie et al. 2023).
        key_dim: Width of keys and values before projection; ``dim`` by default.
        mechanism: ``full``, ``probsparse`` or ``window2d``.
        window: Side of the windows of ``window2d``.
        shift: Shift of the windows of ``window2d``.
        factor: Constant of ``probsparse``.
        position: ``rotary`` turns queries and keys by their positions; ``relative`` (``window2d`` only) adds a
            learned bias by offset inside the window.
        dropout: Probability of dropping an attention weight in training.
        qk_norm: Normalise queries and keys of each head to unit root mean square (Henry et al. 2020).

    Raises:
        ShapeError: If the sizes do not divide, or an option does not belong to the mechanism.
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        *,
        kv_heads: int | None = None,
        key_dim: int | None = None,
        mechanism: Mechanism = "full",
        window: int = 8,
        shift: int = 0,
        factor: float = 5.0,
        position: Literal["rotary", "relative"] | None = None,
        dropout: float = 0.0,
        qk_norm: bool = False,
    ) -> None:
        super().__init__()
        kv_heads = heads if kv_heads is None else kv_heads
        key_dim = dim if key_dim is None else key_dim
        _check_options(dim, heads, kv_heads, mechanism, position)
        width = dim // heads
        self.heads, self.kv_heads, self.width = heads, kv_heads, width
        self.mechanism: Mechanism = mechanism
        self.window, self.shift, self.factor = window, shift, factor
        self.rotary = position == "rotary"
        self.dropout = dropout
        self.query = nn.Linear(dim, heads * width)
        self.key = nn.Linear(key_dim, kv_heads * width)
        self.value = nn.Linear(key_dim, kv_heads * width)
        self.output = nn.Linear(heads * width, dim)
        self.query_norm = nn.RMSNorm(width) if qk_norm else nn.Identity()
        self.key_norm = nn.RMSNorm(width) if qk_norm else nn.Identity()
        self.bias = RelativeBias2d(heads, window) if position == "relative" else None

    def forward(
        self,
        query: Tensor,
        key: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        key_padding_mask: Tensor | None = None,
        causal: bool = False,
        positions: Tensor | None = None,
        key_positions: Tensor | None = None,
        grid: tuple[int, int] | None = None,
    ) -> Tensor:
        """Attend.

        Args:
            query: ``[B, L, dim]``.
            key: ``[B, S, key_dim]`` for cross-attention; the queries themselves by default.
            mask: Boolean, ``[L, S]`` or broadcastable to ``[B, H, L, S]``, True where a query may attend.
            key_padding_mask: Boolean ``[B, S]``, True where a key is real.
            causal: See no later position; the queries are the last ``L`` of the ``S`` positions.
            positions: ``[L]`` or ``[B, L]`` for rotary; the index by default.
            key_positions: ``[S]`` or ``[B, S]``; ``positions`` by default in self-attention, else the index.
            grid: ``(rows, columns)`` for ``window2d``.

        Returns:
            ``[B, L, dim]``.

        Raises:
            ShapeError: If shapes or masks do not fit each other or the mechanism.
        """
        source = query if key is None else key
        q = self.query_norm(self._split(self.query(query), self.heads))  # [B, H, L, D]
        k = self.key_norm(self._split(self.key(source), self.kv_heads))  # [B, G, S, D]
        v = self._split(self.value(source), self.kv_heads)
        if self.rotary:
            if key is None and key_positions is None:
                key_positions = positions
            q = rotate(q, _or_index(positions, q))
            k = rotate(k, _or_index(key_positions, k))
        mixed = self._mix(q, k, v, mask, key_padding_mask, causal, grid)
        return self.output(mixed.transpose(1, 2).flatten(2))  # [B, H, L, D] -> [B, L, H D]

    def _mix(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Tensor | None,
        key_padding_mask: Tensor | None,
        causal: bool,
        grid: tuple[int, int] | None,
    ) -> Tensor:
        dropout = self.dropout if self.training else 0.0
        batch, keys = k.shape[0], k.shape[2]
        if key_padding_mask is not None and (
            key_padding_mask.dtype != torch.bool or tuple(key_padding_mask.shape) != (batch, keys)
        ):
            raise ShapeError(
                f"key_padding_mask must be boolean [B, S] = {[batch, keys]}, True where a key is real, got "
                f"{key_padding_mask.dtype} {list(key_padding_mask.shape)}"
            )
        if self.mechanism == "window2d":
            if grid is None or mask is not None or causal:
                raise ShapeError("window2d needs grid=(rows, columns), and takes neither mask nor causal")
            bias = None if self.bias is None else self.bias()
            return window2d(
                q, k, v, grid=grid, window=self.window, shift=self.shift,
                key_padding_mask=key_padding_mask, bias=bias, dropout=dropout,
            )  # fmt: skip
        if mask is not None:
            mask = check_mask(mask, batch=batch, heads=q.shape[1], queries=q.shape[2], keys=keys)
        if key_padding_mask is not None:
            mask = merge(mask, key_padding_mask[:, None, None, :])
        if self.mechanism == "probsparse":
            return probsparse(
                q, k, v, mask=mask, causal=causal, factor=self.factor, dropout=dropout, training=self.training
            )
        return full(q, k, v, mask=mask, causal=causal, dropout=dropout)

    def _split(self, projected: Tensor, heads: int) -> Tensor:
        return projected.unflatten(-1, (heads, self.width)).transpose(1, 2)  # [B, L, H D] -> [B, H, L, D]


def _or_index(positions: Tensor | None, tensor: Tensor) -> Tensor:
    return torch.arange(tensor.shape[2], device=tensor.device) if positions is None else positions


def _check_options(dim: int, heads: int, kv_heads: int, mechanism: str, position: str | None) -> None:
    if mechanism not in MECHANISMS:
        raise ShapeError(f"mechanism {mechanism!r} is not known", remedy=f"one of {', '.join(MECHANISMS)}")
    if dim % heads:
        raise ShapeError(
            f"dim {dim} does not divide by {heads} heads",
            remedy=f"dim {heads * max(1, round(dim / heads))}, or another number of heads",
        )
    if heads % kv_heads:
        raise ShapeError(
            f"{heads} heads cannot share {kv_heads} key/value heads",
            remedy="make heads a multiple of kv_heads",
        )
    if position not in (None, "rotary", "relative"):
        raise ShapeError(f"position {position!r} is not known", remedy="rotary, relative, or None")
    if position == "relative" and mechanism != "window2d":
        raise ShapeError("position 'relative' is by offset inside a window", remedy="use it with window2d")
    if position == "rotary" and (dim // heads) % 2:
        raise ShapeError(f"rotary positions need an even width a head, got {dim // heads}")
