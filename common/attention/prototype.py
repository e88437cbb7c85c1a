"""Attention to prototypes, O((L + S) m): keys and values are first summed up in a few.

As in Linformer (Wang et al. 2020), whose summary is a fixed matrix; here prototypes attend to the keys (inducing
points, Lee et al. 2019), so that the number of keys is free and padded ones are left out.
"""

from __future__ import annotations

from torch import Tensor

from common.attention.full import attention_weights, full
from common.attention.masks import check_heads, check_key_mask
from common.errors import ShapeError


def prototype(query: Tensor, key: Tensor, value: Tensor, *, summary: Tensor, dropout: float = 0.0) -> Tensor:
    """Attend to ``summary @ key`` and ``summary @ value`` instead of to keys and values.

    Args:
        query: ``[B, H, L, D]``.
        key: ``[B, G, S, D]``.
        value: ``[B, G, S, Dv]``.
        summary: What each prototype takes of each key, broadcastable to ``[B, G, m, S]``; see :func:`summarise`.
        dropout: Probability of dropping a weight; give 0 outside training.

    Returns:
        ``[B, H, L, Dv]``.

    Raises:
        ShapeError: If shapes do not fit.
    """
    check_heads(query, key, value)
    if summary.dim() != 4 or summary.shape[-1] != key.shape[2]:
        raise ShapeError(f"summary {list(summary.shape)} does not fit {key.shape[2]} keys", remedy="give [B, G, m, S]")
    return full(query, summary @ key, summary @ value, dropout=dropout)


def summarise(prototypes: Tensor, key: Tensor, *, mask: Tensor | None = None) -> Tensor:
    """Let learned prototypes attend to the keys.

    Args:
        prototypes: ``[G, m, D]``.
        key: ``[B, G, S, D]``.
        mask: Boolean, broadcastable to ``[B, 1, 1, S]``, True for keys that may be attended to.

    Returns:
        Weights ``[B, G, m, S]``; rows sum to one, or to zero without any key.

    Raises:
        ShapeError: If the mask differs between queries.
    """
    batch, groups, keys, _ = key.shape
    if mask is not None:
        mask = check_key_mask(mask, batch=batch, keys=keys, mechanism="prototype")[:, :, None, :]
    weights = attention_weights(prototypes.expand(batch, groups, -1, -1), key, mask=mask)
    return weights.to(key.dtype)
