"""The attention module: projections around a mechanism."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor, nn

from common.attention.additive import additive
from common.attention.cache import KeyValueCache
from common.attention.full import Normalise, full
from common.attention.linear import linear
from common.attention.local import local
from common.attention.masks import check_mask, merge
from common.attention.probsparse import probsparse
from common.attention.prototype import prototype, summarise
from common.attention.window2d import window2d
from common.errors import ShapeError
from common.positions import RelativeBias, RelativeBias2d, rotate

Mechanism = Literal["full", "probsparse", "local", "linear", "prototype", "window2d", "additive"]
MECHANISMS: tuple[Mechanism, ...] = get_args(Mechanism)
Position = Literal["rotary", "relative"]


class Attention(nn.Module):
    """Multi-head attention, self or cross, with one of several mechanisms.

    Args:
        dim: Width of the queries and of the output.
        heads: Number of query heads; divides ``dim``.
        kv_heads: Number of key/value heads; divides ``heads``. One is multi-query (Shazeer 2019), ``heads`` (the
            default) multi-head, between is grouped (Ainslie et al. 2023).
        key_dim: Width of keys and values before projection; ``dim`` by default.
        mechanism: ``full``, ``probsparse``, ``local``, ``linear``, ``prototype``, ``window2d`` or ``additive``.
        window: Side of the windows of ``window2d``; largest distance of ``local``.
        shift: Shift of the windows of ``window2d``.
        global_tokens: Of ``local``: the first so many positions see all, and are seen by all.
        prototypes: Number of learned prototypes of ``prototype``.
        factor: Constant of ``probsparse``.
        position: ``rotary`` turns queries and keys by their positions; ``relative`` adds a learned bias by distance
            (``full``, up to ``reach``) or by offset inside the window (``window2d``).
        reach: Distances beyond this share one bias.
        dropout: Probability of dropping an attention weight in training.
        qk_norm: Normalise queries and keys of each head to unit root mean square (Henry et al. 2020).
        bias: Whether the projections have a bias.
        scaled: Whether scores are divided by the square root of the width of a head; without, attention saturates.
        normalise: How scores of ``full`` become weights: ``softmax``, ``sigmoid`` or ``relu``.

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
        global_tokens: int = 0,
        prototypes: int = 32,
        factor: float = 5.0,
        position: Position | None = None,
        reach: int = 128,
        dropout: float = 0.0,
        qk_norm: bool = False,
        bias: bool = True,
        scaled: bool = True,
        normalise: Normalise = "softmax",
    ) -> None:
        super().__init__()
        kv_heads = heads if kv_heads is None else kv_heads
        key_dim = dim if key_dim is None else key_dim
        _check_sizes(dim, heads, kv_heads)
        _check_options(mechanism, position, (dim // heads), dropout=dropout, scaled=scaled, normalise=normalise)
        width = dim // heads
        self.heads, self.kv_heads, self.width = heads, kv_heads, width
        self.mechanism: Mechanism = mechanism
        self.window, self.shift, self.global_tokens, self.factor = window, shift, global_tokens, factor
        self.rotary = position == "rotary"
        self.dropout = dropout
        self.scale = None if scaled else 1.0
        self.normalise: Normalise = normalise
        self.query = nn.Linear(dim, heads * width, bias=bias)
        self.key = nn.Linear(key_dim, kv_heads * width, bias=bias)
        self.value = nn.Linear(key_dim, kv_heads * width, bias=bias)
        self.output = nn.Linear(heads * width, dim, bias=bias)
        self.query_norm = nn.RMSNorm(width) if qk_norm else nn.Identity()
        self.key_norm = nn.RMSNorm(width) if qk_norm else nn.Identity()
        if position == "relative":
            self.bias = RelativeBias2d(heads, window) if mechanism == "window2d" else RelativeBias(heads, reach)
        else:
            self.bias = None
        if mechanism == "prototype":
            self.prototypes = nn.Parameter(torch.randn(kv_heads, prototypes, width))
        if mechanism == "additive":
            self.score = nn.Parameter(torch.randn(heads, width) / width**0.5)

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
        cache: KeyValueCache | None = None,
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
            cache: Keys and values of earlier tokens, to which those of ``query`` are added; self-attention only, and
                for ``full`` and ``local``, whose queries may be the last of many positions, with ``causal=True``.

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
            earlier = 0 if cache is None else cache.length
            q = rotate(q, _or_index(positions, q, earlier))
            k = rotate(k, _or_index(key_positions, k, earlier))
        if cache is not None:
            if key is not None or self.mechanism not in ("full", "local"):
                raise ShapeError(
                    "a cache is for self-attention by 'full' or 'local'", remedy="decode with one of these mechanisms"
                )
            if not causal:
                raise ShapeError("tokens of a cache must not see later ones", remedy="causal=True")
            _check_key_padding(key_padding_mask, k.shape[0], cache.length + k.shape[2])  # before it takes the tokens
            k, v = cache.append(k, v)
        mixed = self._mix(q, k, v, mask, key_padding_mask, causal, grid, own=key is None)
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
        *,
        own: bool,
    ) -> Tensor:
        dropout = self.dropout if self.training else 0.0
        batch, keys = k.shape[0], k.shape[2]
        _check_key_padding(key_padding_mask, batch, keys)
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
        match self.mechanism:
            case "full":
                bias = None if self.bias is None else self.bias(q.shape[2], keys)
                return full(
                    q, k, v, mask=mask, causal=causal, bias=bias, dropout=dropout, scale=self.scale,
                    normalise=self.normalise,
                )  # fmt: skip
            case "probsparse":
                return probsparse(
                    q, k, v, mask=mask, query_padding_mask=key_padding_mask if own else None, causal=causal,
                    factor=self.factor, dropout=dropout, training=self.training,
                )  # fmt: skip
            case "local":
                width = {"window": self.window, "global_tokens": self.global_tokens}
                return local(q, k, v, **width, mask=mask, causal=causal, dropout=dropout)
            case "linear":
                return linear(q, k, v, mask=mask, causal=causal)
            case "prototype":
                if causal:
                    raise ShapeError("prototypes sum up all keys, later ones too", remedy="another mechanism")
                return prototype(q, k, v, summary=summarise(self.prototypes, k, mask=mask), dropout=dropout)
            case "additive":
                return additive(q, k, v, score=self.score, mask=mask, causal=causal, dropout=dropout)

    def _split(self, projected: Tensor, heads: int) -> Tensor:
        return projected.unflatten(-1, (heads, self.width)).transpose(1, 2)  # [B, L, H D] -> [B, H, L, D]


def _or_index(positions: Tensor | None, tensor: Tensor, earlier: int) -> Tensor:
    return torch.arange(tensor.shape[2], device=tensor.device) + earlier if positions is None else positions


def _check_key_padding(mask: Tensor | None, batch: int, keys: int) -> None:
    if mask is not None and (mask.dtype != torch.bool or tuple(mask.shape) != (batch, keys)):
        raise ShapeError(
            f"key_padding_mask must be boolean [B, S] = {[batch, keys]}, True where a key is real, got "
            f"{mask.dtype} {list(mask.shape)}"
        )


def _check_sizes(dim: int, heads: int, kv_heads: int) -> None:
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


def _check_options(
    mechanism: str, position: str | None, width: int, *, dropout: float, scaled: bool, normalise: str
) -> None:
    if mechanism not in MECHANISMS:
        raise ShapeError(f"mechanism {mechanism!r} is not known", remedy=f"one of {', '.join(MECHANISMS)}")
    if position not in (None, *get_args(Position)):
        raise ShapeError(f"position {position!r} is not known", remedy="rotary, relative, or None")
    if position == "relative" and mechanism not in ("full", "window2d"):
        raise ShapeError(f"position 'relative' does not go with {mechanism!r}", remedy="use full or window2d")
    if position == "rotary" and width % 2:
        raise ShapeError(f"rotary positions need an even width a head, got {width}")
    if normalise not in get_args(Normalise):
        raise ShapeError(f"normalise {normalise!r} is not known", remedy=f"one of {', '.join(get_args(Normalise))}")
    if mechanism != "full" and (not scaled or normalise != "softmax"):
        raise ShapeError("scaled=False and normalise are options of 'full' alone", remedy="mechanism='full'")
    if mechanism == "linear" and dropout:
        raise ShapeError("linear attention writes out no weights to drop", remedy="dropout=0")
