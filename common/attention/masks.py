"""Masks: checked once, merged by logical and, broadcastable to ``[B, H, L, S]``."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

from common.errors import ShapeError


def check_heads(query: Tensor, key: Tensor, value: Tensor) -> None:
    """Check that query, key and value belong together.

    Args:
        query: ``[B, H, L, D]``.
        key: ``[B, G, S, D]``.
        value: ``[B, G, S, Dv]``.

    Raises:
        ShapeError: If a dimension does not fit; the message states the rule.
    """
    if not query.dim() == key.dim() == value.dim() == 4:
        raise ShapeError(
            f"query, key and value need four dimensions [B, heads, length, width], got "
            f"{list(query.shape)}, {list(key.shape)} and {list(value.shape)}"
        )
    if query.shape[0] != key.shape[0] or query.shape[3] != key.shape[3] or key.shape[:3] != value.shape[:3]:
        raise ShapeError(
            f"query {list(query.shape)}, key {list(key.shape)} and value {list(value.shape)} do not fit",
            remedy="query [B, H, L, D], key [B, G, S, D], value [B, G, S, Dv]",
        )
    if query.shape[1] % key.shape[1]:
        raise ShapeError(
            f"{query.shape[1]} query heads cannot share {key.shape[1]} key/value heads",
            remedy="make the number of query heads a multiple of the number of key/value heads",
        )


def check_mask(mask: Tensor, *, batch: int, heads: int, queries: int, keys: int) -> Tensor:
    """Return ``mask`` with four dimensions, broadcastable to ``[B, H, L, S]``.

    Args:
        mask: Boolean, ``[L, S]``, ``[B, 1, L, S]`` or anything broadcastable to ``[B, H, L, S]`` with two or four
            dimensions; True where a query may attend to a key.
        batch: ``B``.
        heads: ``H``.
        queries: ``L``.
        keys: ``S``.

    Raises:
        ShapeError: If the mask is not boolean or does not broadcast.
    """
    if mask.dtype != torch.bool:
        raise ShapeError(
            f"a mask must be boolean, True where a query may attend to a key, got {mask.dtype}",
            remedy="mask.bool(), or mask == 0 for an additive mask of zeros and -inf",
        )
    target = (batch, heads, queries, keys)
    if tuple(mask.shape) == (batch, keys) and (batch, keys) != (queries, keys):
        raise ShapeError(
            f"mask [B, S] = {list(mask.shape)} is ambiguous as an attention mask", remedy="pass it as key_padding_mask"
        )
    if mask.dim() not in (2, 4) or any(
        m not in (1, t) for m, t in zip(reversed(mask.shape), reversed(target), strict=False)
    ):
        raise ShapeError(
            f"mask {list(mask.shape)} does not broadcast to [B, H, L, S] = {list(target)}",
            remedy="give [L, S] or [B, 1, L, S]; a [B, S] mask of padded keys is key_padding_mask",
        )
    return mask if mask.dim() == 4 else mask[None, None]


def check_padding(mask: Tensor | None, name: str, *, batch: int, length: int) -> None:
    """Check a mask of real tokens.

    Args:
        mask: Boolean ``[B, length]``, True where a token is real; or None.
        name: What the argument is called, for the message.
        batch: ``B``.
        length: Number of tokens.

    Raises:
        ShapeError: If it is not boolean or of another shape.
    """
    if mask is not None and (mask.dtype != torch.bool or tuple(mask.shape) != (batch, length)):
        raise ShapeError(
            f"{name} must be boolean [B, length] = {[batch, length]}, True where a token is real, got "
            f"{mask.dtype} {list(mask.shape)}"
        )


def check_key_mask(mask: Tensor, *, batch: int, keys: int, mechanism: str) -> Tensor:
    """Return a mask that is the same for all heads and queries as ``[B or 1, 1, S]``.

    Args:
        mask: Boolean, broadcastable to ``[B, 1, 1, S]``.
        batch: ``B``.
        keys: ``S``.
        mechanism: Which mechanism asks, for the message.

    Raises:
        ShapeError: If the mask is not boolean, does not broadcast, or differs between heads or queries.
    """
    if mask.dim() >= 2 and (mask.shape[-2] != 1 or (mask.dim() == 4 and mask.shape[1] != 1)):
        raise ShapeError(
            f"{mechanism} attention sums up the keys once for all queries, so it takes no mask {list(mask.shape)}",
            remedy="mask padded keys alone ([B, 1, 1, S], or key_padding_mask), or use another mechanism",
        )
    mask = check_mask(mask, batch=batch, heads=1, queries=1, keys=keys)
    return mask.expand(-1, -1, -1, keys)[:, :, 0]


def whole_precision(tensor: Tensor) -> AbstractContextManager[object]:
    """A context without autocast, which would take products back to half precision."""
    kind = tensor.device.type
    return torch.autocast(kind, enabled=False) if torch.is_autocast_enabled(kind) else nullcontext()


def softmax(scores: Tensor, mask: Tensor | None) -> Tensor:
    """Softmax over the last dimension in float32 or wider; a row that is masked out entirely is zero.

    Args:
        scores: ``[B, H, L, S]``.
        mask: Boolean, broadcastable to the scores, True where a query may attend.
    """
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
    if mask is None:
        return scores.softmax(dim=-1)
    # A softmax over nothing is NaN, and so would be its gradient: such rows take all and are set to zero.
    attends = mask.any(dim=-1, keepdim=True)
    return scores.masked_fill(~mask & attends, float("-inf")).softmax(dim=-1) * attends


def causal_mask(queries: int, keys: int, device: torch.device) -> Tensor:
    """Mask ``[L, S]`` in which the queries are the last ``L`` of the ``S`` positions and see no later key."""
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)


def visible(query: Tensor, key: Tensor, mask: Tensor | None, *, causal: bool) -> Tensor | None:
    """Which keys each query may see: the checked mask and, if asked for, the causal one; None if all.

    Args:
        query: ``[B, H, L, D]``.
        key: ``[B, ., S, D]``.
        mask: As in :func:`check_mask`.
        causal: Whether the queries, as the last ``L`` of the ``S`` positions, see no later key.

    Raises:
        ShapeError: If the mask does not fit.
    """
    batch, heads, queries, _ = query.shape
    keys = key.shape[2]
    if mask is not None:
        mask = check_mask(mask, batch=batch, heads=heads, queries=queries, keys=keys)
    return merge(mask, causal_mask(queries, keys, query.device) if causal else None)


def near(place: Tensor, other: Tensor, *, window: int, global_tokens: int, causal: bool) -> Tensor:
    """Whether a query at ``place`` sees a key at ``other`` through a sliding window with global tokens.

    Args:
        place: Positions of queries.
        other: Positions of keys, of a shape that broadcasts with them.
        window: Largest distance.
        global_tokens: The first so many positions see all, and are seen by all.
        causal: See no later key.
    """
    seen = ((place - other).abs() <= window) | (other < global_tokens) | (place < global_tokens)
    return seen & (other <= place) if causal else seen


def merge(*masks: Tensor | None) -> Tensor | None:
    """Logical and of the masks that are given; None if there are none."""
    merged: Tensor | None = None
    for mask in masks:
        if mask is not None:
            merged = mask if merged is None else merged & mask
    return merged
