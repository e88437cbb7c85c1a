"""The attention module: projections around a mechanism."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from common.attention.additive import additive
from common.attention.cache import KeyValueCache
from common.attention.checks import Mechanism, Position, check_options, check_own, check_position, check_sizes
from common.attention.full import Normalise, full
from common.attention.linear import linear
from common.attention.local import local
from common.attention.masks import check_mask, check_padding, merge
from common.attention.probsparse import probsparse
from common.attention.prototype import prototype, summarise
from common.attention.window2d import window2d
from common.errors import ShapeError
from common.positions import RelativeBias, RelativeBias2d, rotate


class Attention(nn.Module):
    """Multi-head attention, self or cross, with one of several mechanisms.

    Args:
        dim: Width of the queries and of the output.
        heads: Number of query heads; divides ``dim``.
        kv_heads: Number of key/value heads; divides ``heads``. One is multi-query (Shazeer 2019), ``heads`` (the
            default) multi-head, between is grouped (Ainslie et al. 2023).
        key_dim: Width of keys and values before projection; ``dim`` by default.
        mechanism: ``full``, ``probsparse``, ``local``, ``linear``, ``prototype``, ``window2d`` or ``additive``.
        window: Of ``window2d``, the side of the windows; of ``local``, the largest distance; 8 by default.
        shift: Of ``window2d``: how far the windows are shifted; 0 by default.
        global_tokens: Of ``local``: the first so many positions see all, and are seen by all; 0 by default.
        prototypes: Of ``prototype``: how many are learned; 32 by default.
        factor: Of ``probsparse``: its constant; 5 by default.
        position: ``rotary`` turns queries and keys by their positions (``full``, ``probsparse``, ``local``);
            ``relative`` adds a learned bias by distance (``full``) or by offset inside the window (``window2d``).
        reach: Of ``relative`` in ``full``: distances beyond this share one bias; 128 by default.
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
        window: int | None = None,
        shift: int | None = None,
        global_tokens: int | None = None,
        prototypes: int | None = None,
        factor: float | None = None,
        position: Position | None = None,
        reach: int | None = None,
        dropout: float = 0.0,
        qk_norm: bool = False,
        bias: bool = True,
        scaled: bool = True,
        normalise: Normalise = "softmax",
    ) -> None:
        super().__init__()
        kv_heads = heads if kv_heads is None else kv_heads
        key_dim = dim if key_dim is None else key_dim
        check_sizes(dim, heads, kv_heads, key_dim, dropout)
        check_position(mechanism, position, dim // heads)
        check_options(mechanism, dropout=dropout, scaled=scaled, normalise=normalise)
        check_own(
            mechanism, position, window=window, shift=shift, global_tokens=global_tokens, prototypes=prototypes,
            factor=factor, reach=reach,
        )  # fmt: skip
        width = dim // heads
        self.dim, self.key_dim = dim, key_dim
        self.heads, self.kv_heads, self.width = heads, kv_heads, width
        self.mechanism: Mechanism = mechanism
        self.window, self.shift, self.global_tokens = _or(window, 8), _or(shift, 0), _or(global_tokens, 0)
        self.factor = 5.0 if factor is None else factor
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
        self.relative: RelativeBias | RelativeBias2d | None = None
        if position == "relative":
            windows = mechanism == "window2d"
            self.relative = RelativeBias2d(heads, self.window) if windows else RelativeBias(heads, _or(reach, 128))
        if mechanism == "prototype":
            self.prototypes = nn.Parameter(torch.randn(kv_heads, _or(prototypes, 32), width))
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
            key_positions: ``[S]`` or ``[B, S]``, for cross-attention, to go with ``positions``.
            grid: ``(rows, columns)`` for ``window2d``.
            cache: Keys and values of earlier tokens, to which those of ``query`` are added; self-attention only, and
                for ``full`` and ``local``, whose queries may be the last of many positions, with ``causal=True``.

        Returns:
            ``[B, L, dim]``.

        Raises:
            ShapeError: If shapes or masks do not fit each other or the mechanism.
        """
        source = query if key is None else key
        self._check_tokens(query, source)
        if grid is not None and self.mechanism != "window2d":
            raise ShapeError(f"a grid is for window2d, not for {self.mechanism!r}", remedy="leave out grid")
        earlier = self._check_cache(cache, own=key is None, causal=causal)
        batch, queries, keys = query.shape[0], query.shape[1], earlier + source.shape[1]
        self._check_positions(positions, key_positions, query, source, own=key is None)
        # Masks are checked before a cache takes the tokens, so that a refused call leaves it as it was.
        check_padding(key_padding_mask, "key_padding_mask", batch=batch, length=keys)
        if mask is not None:
            mask = check_mask(mask, batch=batch, heads=self.heads, queries=queries, keys=keys)
        if key_padding_mask is not None:
            # What stands in the padding must not matter, and zero times not-a-number would.
            source = source.masked_fill(~key_padding_mask[:, earlier:, None], 0.0)
        q = self.query_norm(self._split(self.query(query), self.heads))  # [B, H, L, D]
        k = self.key_norm(self._split(self.key(source), self.kv_heads))  # [B, G, S, D]
        v = self._split(self.value(source), self.kv_heads)
        if self.rotary:
            own = positions if key is None else key_positions
            q = rotate(q, _or_index(positions, q, earlier))
            k = rotate(k, _or_index(own, k, earlier))
        if cache is not None:
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
        if self.mechanism == "window2d":
            if grid is None or mask is not None or causal:
                raise ShapeError("window2d needs grid=(rows, columns), and takes neither mask nor causal")
            bias = self.relative() if isinstance(self.relative, RelativeBias2d) else None
            return window2d(
                q, k, v, grid=grid, window=self.window, shift=self.shift,
                key_padding_mask=key_padding_mask, bias=bias, dropout=dropout,
            )  # fmt: skip
        if key_padding_mask is not None:
            mask = merge(mask, key_padding_mask[:, None, None, :])
        match self.mechanism:
            case "full":
                bias = self.relative(q.shape[2], k.shape[2]) if isinstance(self.relative, RelativeBias) else None
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

    def _check_tokens(self, query: Tensor, source: Tensor) -> None:
        if query.dim() != 3 or source.dim() != 3 or query.shape[0] != source.shape[0]:
            raise ShapeError(
                f"tokens must be [B, L, dim] and [B, S, key_dim], got {list(query.shape)} and {list(source.shape)}"
            )
        if query.shape[2] != self.dim or source.shape[2] != self.key_dim:
            raise ShapeError(
                f"tokens of width {query.shape[2]} and keys of width {source.shape[2]} do not fit dim {self.dim} and "
                f"key_dim {self.key_dim}",
                remedy="Attention(dim=..., key_dim=...) of these widths",
            )

    def _check_cache(self, cache: KeyValueCache | None, *, own: bool, causal: bool) -> int:
        """How many tokens came before."""
        if cache is None:
            return 0
        if not own or self.mechanism not in ("full", "local"):
            raise ShapeError(
                "a cache is for self-attention by 'full' or 'local'", remedy="decode with one of these mechanisms"
            )
        if not causal:
            raise ShapeError("tokens of a cache must not see later ones", remedy="causal=True")
        return cache.length

    def _check_positions(
        self, positions: Tensor | None, key_positions: Tensor | None, query: Tensor, source: Tensor, *, own: bool
    ) -> None:
        if positions is None and key_positions is None:
            return
        if not self.rotary:
            raise ShapeError("positions are for rotary attention", remedy="position='rotary', or leave them out")
        if own != (key_positions is None) or positions is None:
            raise ShapeError(
                "self-attention takes positions, cross-attention positions and key_positions",
                remedy="positions of both sides are of one clock, so give both or neither",
            )
        for places, tokens in ((positions, query), (key_positions, source)):
            if places is not None and tuple(places.shape) not in (tuple(tokens.shape[:2]), (tokens.shape[1],)):
                raise ShapeError(
                    f"positions {list(places.shape)} do not fit tokens {list(tokens.shape)}", remedy="[L] or [B, L]"
                )

    def _split(self, projected: Tensor, heads: int) -> Tensor:
        return projected.unflatten(-1, (heads, self.width)).transpose(1, 2)  # [B, L, H D] -> [B, H, L, D]


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


def _or_index(positions: Tensor | None, tensor: Tensor, earlier: int) -> Tensor:
    return torch.arange(tensor.shape[2], device=tensor.device) + earlier if positions is None else positions
