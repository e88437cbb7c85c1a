"""Sliding-window attention with global tokens (Beltagy et al. 2020, "Longformer"), O(L w)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from common.attention.backend import flex_pays, windowed_flex
from common.attention.full import full
from common.attention.masks import check_heads, check_mask, merge
from common.errors import ShapeError

BLOCK = 128  # queries that share one view of the keys; more for a wide window


def local(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    window: int,
    global_tokens: int = 0,
    mask: Tensor | None = None,
    causal: bool = False,
    dropout: float = 0.0,
) -> Tensor:
    """Let each query see the keys at most ``window`` positions away, and the global ones.

    The queries are the last ``L`` of the ``S`` positions, as under a causal mask.

    Args:
        query: ``[B, H, L, D]``.
        key: ``[B, G, S, D]``.
        value: ``[B, G, S, Dv]``.
        window: Largest distance, in positions; a window of 0 is the position itself.
        global_tokens: The first so many positions see all, and are seen by all.
        mask: Boolean, broadcastable to ``[B, H, L, S]``, True where a query may attend.
        causal: See no later key; this holds for global tokens too.
        dropout: Probability of dropping a weight; give 0 outside training.

    Returns:
        ``[B, H, L, Dv]``; a row with nothing to attend to is zero.

    Raises:
        ShapeError: If shapes, the mask or the window do not fit.
    """
    check_heads(query, key, value)
    batch, heads, queries, _ = query.shape
    keys = key.shape[2]
    if window < 0 or global_tokens < 0:
        raise ShapeError(f"window {window} and global_tokens {global_tokens} must be at least 0")
    if mask is not None:
        mask = check_mask(mask, batch=batch, heads=heads, queries=queries, keys=keys)
    if flex_pays(query, masked=mask is not None, dropout=dropout):
        return windowed_flex(query, key, value, window=window, global_tokens=global_tokens, causal=causal)
    global_tokens = min(global_tokens, keys)
    block = max(BLOCK, window)
    span = block + (window if causal else 2 * window)
    if span >= keys or queries <= block:
        seen = _band(queries, keys, window, global_tokens, causal=causal, device=query.device)
        return full(query, key, value, mask=merge(mask, seen), dropout=dropout)
    mixed = _in_blocks(query, key, value, mask, block, span, window, global_tokens, causal, dropout)
    first = min(max(global_tokens - (keys - queries), 0), queries)
    if not first:
        return mixed
    # Global queries see everything, so they take the plain way.
    rows = mask if mask is None or mask.shape[2] == 1 else mask[:, :, :first]
    before = torch.arange(keys, device=key.device) <= torch.arange(first, device=key.device)[:, None] + keys - queries
    everything = full(query[:, :, :first], key, value, mask=merge(rows, before if causal else None), dropout=dropout)
    return torch.cat((everything, mixed[:, :, first:]), dim=2)


def _in_blocks(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    block: int,
    span: int,
    window: int,
    global_tokens: int,
    causal: bool,
    dropout: float,
) -> Tensor:
    """Attend block by block, each to a view of the keys around it: no copy of the keys a block."""
    queries, keys = query.shape[2], key.shape[2]
    offset = keys - queries
    blocks = -(-queries // block)
    # Block t sees the keys from t * block + offset - window on; padding may be negative, which cuts.
    margin = (window - offset, (blocks - 1) * block + span - keys - (window - offset))
    around = [
        # [B, G, S', D] -> [B, G, blocks, D, span], a view -> one [B, G, span, D] a block
        [part.transpose(-2, -1) for part in pad(tensor, (0, 0, *margin)).unfold(2, span, block).unbind(2)]
        for tensor in (key, value)
    ]
    present = pad(torch.ones(keys, dtype=torch.bool, device=key.device), margin)  # [S']
    padded = None if mask is None else pad(mask.expand(-1, -1, -1, keys), margin)
    distance = torch.arange(span, device=key.device) - torch.arange(block, device=key.device)[:, None]
    near = (distance >= 0) & (distance <= (window if causal else 2 * window))  # [block, span]
    mixed = []
    for number, part in enumerate(query.split(block, dim=2)):
        size, start = part.shape[2], number * block
        first_key = start + offset - window
        seen = near[:size]
        if first_key < 0 or first_key + span > keys:
            seen = seen & present[start : start + span]
        if padded is not None:
            rows = padded if padded.shape[2] == 1 else padded[:, :, start : start + size]
            seen = merge(rows[..., start : start + span], seen)
        keys_here, values_here = around[0][number], around[1][number]
        if global_tokens:
            seen, keys_here, values_here = _with_global(
                seen, key, value, keys_here, values_here, mask, start, size, first_key, offset, global_tokens, causal
            )
        mixed.append(full(part, keys_here, values_here, mask=seen, dropout=dropout))
    return torch.cat(mixed, dim=2)


def _with_global(
    seen: Tensor | None,
    key: Tensor,
    value: Tensor,
    keys_here: Tensor,
    values_here: Tensor,
    mask: Tensor | None,
    start: int,
    size: int,
    first_key: int,
    offset: int,
    count: int,
    causal: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Put the global keys before those of a block, where they are then left out."""
    device = key.device
    place = torch.arange(start, start + size, device=device)[:, None] + offset
    always = torch.arange(count, device=device) <= (place if causal else place.new_full((1, 1), count))
    always = always.expand(size, count)
    if mask is not None:
        rows = mask if mask.shape[2] == 1 else mask[:, :, start : start + size]
        always = always & rows.expand(-1, -1, -1, key.shape[2])[..., :count]
    elsewhere = torch.arange(keys_here.shape[2], device=device) + first_key >= count
    seen = elsewhere if seen is None else seen & elsewhere
    shape = torch.broadcast_shapes(seen.shape[:-1], always.shape[:-1])
    joined = torch.cat((always.expand(*shape, -1), seen.expand(*shape, -1)), dim=-1)
    return (
        joined,
        torch.cat((key[:, :, :count], keys_here), dim=2),
        torch.cat((value[:, :, :count], values_here), dim=2),
    )


def _band(queries: int, keys: int, window: int, global_tokens: int, *, causal: bool, device: torch.device) -> Tensor:
    """The pattern as a mask ``[L, S]``."""
    place = torch.arange(queries, device=device)[:, None] + keys - queries
    other = torch.arange(keys, device=device)
    seen = ((place - other).abs() <= window) | (other < global_tokens) | (place < global_tokens)
    return seen & (other <= place) if causal else seen
