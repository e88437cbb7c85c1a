"""Full attention, O(L S): the reference every other mechanism is held against."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor
from torch.nn.functional import dropout as drop

from common.attention.backend import fused
from common.attention.masks import check_heads, softmax, visible
from common.errors import ShapeError

Normalise = Literal["softmax", "sigmoid", "relu"]


def full(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    mask: Tensor | None = None,
    causal: bool = False,
    bias: Tensor | None = None,
    dropout: float = 0.0,
    scale: float | None = None,
    normalise: Normalise = "softmax",
) -> Tensor:
    """Scaled dot-product attention (Vaswani et al. 2017, eq. 1), by torch's fused kernels.

    Args:
        query: ``[B, H, L, D]``.
        key: ``[B, G, S, D]``.
        value: ``[B, G, S, Dv]``.
        mask: Boolean, broadcastable to ``[B, H, L, S]``, True where a query may attend.
        causal: Let the queries be the last ``L`` of the ``S`` positions, and see no later key.
        bias: Added to the scores, broadcastable to ``[B, H, L, S]``.
        dropout: Probability of dropping a weight; give 0 outside training.
        scale: Factor on the scores; ``1 / sqrt(D)`` by default.
        normalise: How scores become weights, see :func:`attention_weights`; all but softmax take the slow way.

    Returns:
        ``[B, H, L, Dv]``; a row with nothing to attend to is zero.

    Raises:
        ShapeError: If shapes or the mask do not fit.
    """
    check_heads(query, key, value)
    heads, queries, keys = query.shape[1], query.shape[2], key.shape[2]
    check_normalise(normalise)
    _check_bias(bias, query, keys)
    if normalise != "softmax":
        weights = attention_weights(query, key, mask=mask, causal=causal, bias=bias, scale=scale, normalise=normalise)
        value = value.repeat_interleave(heads // value.shape[1], dim=1)  # [B, G, S, Dv] -> [B, H, S, Dv]
        return drop(weights, dropout).to(value.dtype) @ value
    if mask is None and bias is None and (not causal or queries == keys):
        return fused(query, key, value, causal=causal and queries > 1, dropout=dropout, scale=scale)
    mask = visible(query, key, mask, causal=causal)
    if mask is None:
        added = None if bias is None else bias.to(query.dtype)
        return fused(query, key, value, mask=added, dropout=dropout, scale=scale)
    # A softmax over nothing is NaN: such rows attend to everything and are set to zero afterwards.
    attends = mask.any(dim=-1, keepdim=True)
    allowed = mask | ~attends
    if bias is not None:
        # -inf keeps what is masked out exactly at weight zero.
        allowed = bias.to(query.dtype).masked_fill(~allowed, float("-inf"))
    mixed = fused(query, key, value, mask=allowed, dropout=dropout, scale=scale)
    return mixed.masked_fill(~attends, 0.0)


def attention_weights(
    query: Tensor,
    key: Tensor,
    *,
    mask: Tensor | None = None,
    causal: bool = False,
    bias: Tensor | None = None,
    scale: float | None = None,
    normalise: Normalise = "softmax",
) -> Tensor:
    """Weights of full attention, computed eagerly, for heat maps, tests, and what has no fused kernel.

    Args:
        query: ``[B, H, L, D]``.
        key: ``[B, G, S, D]``.
        mask: As in :func:`full`.
        causal: As in :func:`full`.
        bias: As in :func:`full`.
        scale: As in :func:`full`.
        normalise: ``softmax``; ``sigmoid`` of the score less ``ln n`` (Ramapuram et al. 2024); or ``relu`` of the
            score over ``n`` (Wortsman et al. 2023), where ``n`` is the number of keys the query may see.

    Returns:
        ``[B, H, L, S]`` in float32 or wider; under softmax, rows sum to one, or to zero with nothing to attend to.

    Raises:
        ShapeError: If shapes, the mask or the bias do not fit.
    """
    check_heads(query, key, key)
    check_normalise(normalise)
    _check_bias(bias, query, key.shape[2])
    heads, width, keys = query.shape[1], query.shape[3], key.shape[2]
    key = key.repeat_interleave(heads // key.shape[1], dim=1)  # [B, G, S, D] -> [B, H, S, D]
    kind = torch.promote_types(query.dtype, torch.float32)
    # Scaled first, so that the product stays within the range of half precision.
    scaled = query * (width**-0.5 if scale is None else scale)
    scores = (scaled @ key.transpose(-2, -1)).to(kind)
    if bias is not None:
        scores = scores + bias
    mask = visible(query, key, mask, causal=causal)
    if normalise == "softmax":
        return softmax(scores, mask)
    seen = torch.full((1,), keys, device=query.device)
    if mask is not None:
        seen = mask.expand(*mask.shape[:-1], keys).sum(dim=-1, keepdim=True)
    seen = seen.clamp(min=1).to(kind)
    weights = torch.sigmoid(scores - seen.log()) if normalise == "sigmoid" else torch.relu(scores) / seen
    return weights if mask is None else weights.masked_fill(~mask, 0.0)


def check_normalise(normalise: str) -> None:
    """Refuse a way from scores to weights that is not known.

    Raises:
        ShapeError: If it is not.
    """
    if normalise not in get_args(Normalise):
        raise ShapeError(f"normalise {normalise!r} is not known", remedy=f"one of {', '.join(get_args(Normalise))}")


def _check_bias(bias: Tensor | None, query: Tensor, keys: int) -> None:
    if bias is None:
        return
    target = (*query.shape[:3], keys)
    shape = (1,) * (4 - bias.dim()) + tuple(bias.shape)
    if len(shape) != 4 or any(size not in (1, wanted) for size, wanted in zip(shape, target, strict=True)):
        raise ShapeError(f"a bias {list(bias.shape)} does not broadcast to [B, H, L, S] = {list(target)}")
