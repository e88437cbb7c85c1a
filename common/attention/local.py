"""Sliding-window attention with global tokens (Beltagy et al. 2020, "Longformer"), O(L w)."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import pad

from common.attention.backend import flex_pays, windowed_flex
from common.attention.full import full
from common.attention.masks import check_heads, check_mask, merge, near
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
    pattern = partial(near, window=window, global_tokens=global_tokens, causal=causal)
    places, others = (torch.arange(count, device=query.device) for count in (queries, keys))
    places = places.unsqueeze(1) + keys - queries  # [L, 1], as positions of keys
    if span >= keys or queries <= block:
        unseen = max(keys - queries - window - global_tokens, 0)  # between the global keys and the first window
        if unseen and keys - queries >= global_tokens:  # no query is a global one, which would see all
            kept = torch.cat((others[:global_tokens], others[global_tokens + unseen :]))
            mask = None if mask is None else mask.expand(-1, -1, -1, keys)[..., kept]
            key, value, others = key[:, :, kept], value[:, :, kept], kept
        return full(query, key, value, mask=merge(mask, pattern(places, others)), dropout=dropout)
    # Block t sees the keys from t * block + keys - queries - window on. Padding may be negative, which cuts.
    left = window - (keys - queries)
    margin = (left, (-(-queries // block) - 1) * block + span - keys - left)
    # [B, G, S', D] -> [B, G, blocks, D, span], a view -> one [B, G, D, span] a block
    views = [pad(tensor, (0, 0, *margin)).unfold(2, span, block).unbind(2) for tensor in (key, value)]
    padded = None if mask is None else pad(mask.expand(-1, -1, -1, keys), margin)
    mixed = []
    for number, (part, part_places) in enumerate(zip(query.split(block, dim=2), places.split(block), strict=True)):
        start = number * block
        around = torch.arange(span, device=query.device) + start - left  # positions of the keys in view
        # Global keys stand before those in view, where they are left out, and so is padding.
        seen = pattern(part_places, torch.cat((others[:global_tokens], around)))
        seen[:, global_tokens:] &= (around >= global_tokens) & (around < keys)
        if mask is not None and padded is not None:
            rows = slice(None) if mask.shape[2] == 1 else slice(start, start + part.shape[2])
            always = mask.expand(-1, -1, -1, keys)[:, :, rows, :global_tokens]
            seen = torch.cat((always, padded[:, :, rows, start : start + span]), dim=-1) & seen
        keys_here, values_here = (
            torch.cat((tensor[:, :, :global_tokens], view[number].transpose(-2, -1)), dim=2)
            if global_tokens
            else view[number].transpose(-2, -1)
            for tensor, view in zip((key, value), views, strict=True)
        )
        mixed.append(full(part, keys_here, values_here, mask=seen, dropout=dropout))
    first = min(max(global_tokens - (keys - queries), 0), queries)
    if first:  # global queries see everything, so they take the plain way
        rows = mask if mask is None or mask.shape[2] == 1 else mask[:, :, :first]
        before = others <= places[:first] if causal else None
        everything = full(query[:, :, :first], key, value, mask=merge(rows, before), dropout=dropout)
        return torch.cat((everything, torch.cat(mixed, dim=2)[:, :, first:]), dim=2)
    return torch.cat(mixed, dim=2)
