"""Additive attention (Bahdanau et al. 2015), O(L S): a small network scores each pair."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import dropout as drop

from common.attention.masks import check_heads, softmax, visible
from common.errors import ShapeError


def additive(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    score: Tensor,
    mask: Tensor | None = None,
    causal: bool = False,
    dropout: float = 0.0,
) -> Tensor:
    """Attend with scores ``w . tanh(q + k)`` (eq. 6 and appendix A.1.2 of the paper), for short sequences.

    Args:
        query: ``[B, H, L, D]``.
        key: ``[B, G, S, D]``.
        value: ``[B, G, S, Dv]``.
        score: ``w``, ``[H, D]``.
        mask: Boolean, broadcastable to ``[B, H, L, S]``, True where a query may attend.
        causal: Let the queries be the last ``L`` of the ``S`` positions, and see no later key.
        dropout: Probability of dropping a weight; give 0 outside training.

    Returns:
        ``[B, H, L, Dv]``; a row with nothing to attend to is zero.

    Raises:
        ShapeError: If shapes or the mask do not fit.
    """
    check_heads(query, key, value)
    heads, width = query.shape[1], query.shape[3]
    if tuple(score.shape) != (heads, width):
        raise ShapeError(f"score must be [H, D] = {[heads, width]}, got {list(score.shape)}")
    mask = visible(query, key, mask, causal=causal)
    key, value = (tensor.repeat_interleave(heads // tensor.shape[1], dim=1) for tensor in (key, value))
    pairs = torch.tanh(query.unsqueeze(3) + key.unsqueeze(2))  # [B, H, L, S, D]
    scores = (pairs @ score[None, :, None, :, None]).squeeze(-1)  # [B, H, L, S]
    weights = softmax(scores, mask)
    return drop(weights, dropout).to(value.dtype) @ value
