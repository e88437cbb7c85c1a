"""Full attention, O(L S): the reference every other mechanism is held against."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from common.attention.masks import causal_mask, check_heads, check_mask, merge


def full(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    mask: Tensor | None = None,
    causal: bool = False,
    bias: Tensor | None = None,
    dropout: float = 0.0,
) -> Tensor:
    """Scaled dot-product attention (Vaswani et al. 2017, eq. 1) by torch's fused kernels.

    Args:
        query: ``[B, H, L, D]``.
        key: ``[B, G, S, D]``.
        value: ``[B, G, S, Dv]``.
        mask: Boolean, broadcastable to ``[B, H, L, S]``, True where a query may attend.
        causal: Let the queries be the last ``L`` of the ``S`` positions, and see no later key.
        bias: Added to the scores, broadcastable to ``[B, H, L, S]``.
        dropout: Probability of dropping a weight; give 0 outside training.

    Returns:
        ``[B, H, L, Dv]``; a row with nothing to attend to is zero.

    Raises:
        ShapeError: If shapes or the mask do not fit.
    """
    check_heads(query, key, value)
    batch, heads, queries, _ = query.shape
    keys = key.shape[2]
    grouped = heads != key.shape[1]
    if mask is None and bias is None and (not causal or queries == keys):
        return scaled_dot_product_attention(
            query, key, value, dropout_p=dropout, is_causal=causal and queries > 1, enable_gqa=grouped
        )
    if mask is not None:
        mask = check_mask(mask, batch=batch, heads=heads, queries=queries, keys=keys)
    if causal:
        mask = merge(mask, causal_mask(queries, keys, query.device))
    if mask is None:
        return scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=None if bias is None else bias.to(query.dtype),
            dropout_p=dropout,
            enable_gqa=grouped,
        )
    # A softmax over nothing is NaN: such rows attend to everything and are set to zero afterwards.
    attends = mask.any(dim=-1, keepdim=True)
    allowed = mask | ~attends
    if bias is not None:
        # Added in float32 or wider terms by the kernel; -inf keeps what is masked out exactly at weight zero.
        allowed = bias.to(query.dtype).masked_fill(~allowed, float("-inf"))
    mixed = scaled_dot_product_attention(query, key, value, attn_mask=allowed, dropout_p=dropout, enable_gqa=grouped)
    return mixed.masked_fill(~attends, 0.0)


def attention_weights(
    query: Tensor, key: Tensor, *, mask: Tensor | None = None, causal: bool = False, bias: Tensor | None = None
) -> Tensor:
    """Weights of full attention, computed eagerly, for heat maps and tests.

    Args:
        query: ``[B, H, L, D]``.
        key: ``[B, G, S, D]``.
        mask: As in :func:`full`.
        causal: As in :func:`full`.
        bias: As in :func:`full`.

    Returns:
        ``[B, H, L, S]`` in float32 or wider; rows sum to one, or to zero with nothing to attend to.
    """
    check_heads(query, key, key)
    batch, heads, queries, width = query.shape
    keys = key.shape[2]
    key = key.repeat_interleave(heads // key.shape[1], dim=1)  # [B, G, S, D] -> [B, H, S, D]
    scores = (query @ key.transpose(-2, -1)).to(torch.promote_types(query.dtype, torch.float32)) / width**0.5
    if bias is not None:
        scores = scores + bias
    if mask is not None:
        mask = check_mask(mask, batch=batch, heads=heads, queries=queries, keys=keys)
    if causal:
        mask = merge(mask, causal_mask(queries, keys, query.device))
    if mask is None:
        return scores.softmax(dim=-1)
    return scores.masked_fill(~mask, float("-inf")).softmax(dim=-1).nan_to_num(0.0)
