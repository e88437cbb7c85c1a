"""Linear attention (Katharopoulos et al. 2020), O(L D Dv): a kernel of features in place of the softmax."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import elu, pad

from common.attention.masks import check_heads, check_key_mask

CHUNK = 128  # positions whose scores are written out in the causal form; between chunks go running sums


def linear(query: Tensor, key: Tensor, value: Tensor, *, mask: Tensor | None = None, causal: bool = False) -> Tensor:
    """Attend with weights ``phi(q).phi(k) / sum phi(q).phi(k)``, ``phi(x) = elu(x) + 1`` (eq. 4 to 7 of the paper).

    Args:
        query: ``[B, H, L, D]``.
        key: ``[B, G, S, D]``.
        value: ``[B, G, S, Dv]``.
        mask: Boolean, broadcastable to ``[B, 1, 1, S]``, True for keys that may be attended to.
        causal: Let the queries be the last ``L`` of the ``S`` positions, and see no later key.

    Returns:
        ``[B, H, L, Dv]``; a row with nothing to attend to is zero.

    Raises:
        ShapeError: If shapes do not fit, or the mask differs between queries.
    """
    check_heads(query, key, value)
    batch, heads, queries, _ = query.shape
    groups, keys = key.shape[1], key.shape[2]
    # Sums of many products overflow half precision.
    kind = torch.promote_types(value.dtype, torch.float32)
    q = (elu(query.to(kind)) + 1).unflatten(1, (groups, heads // groups))  # [B, H, L, D] -> [B, G, H/G, L, D]
    k = elu(key.to(kind)) + 1
    if mask is not None:
        k = k * check_key_mask(mask, batch=batch, keys=keys, mechanism="linear").unsqueeze(-1)
    # One more column of ones sums the weights along with the values.
    v = pad(value.to(kind), (0, 1), value=1.0)  # [B, G, S, Dv + 1]
    if causal:
        sums = _causal_sums(pad(q, (0, 0, max(keys - queries, 0), 0)), k, v, missing=max(queries - keys, 0))
        sums = sums[..., sums.shape[-2] - queries :, :]
    else:
        sums = q @ (k.transpose(-2, -1) @ v).unsqueeze(2)  # [B, G, H/G, L, Dv + 1]
    total = sums[..., -1:]
    mixed = sums[..., :-1] / total.where(total > 0, 1.0)
    return mixed.flatten(1, 2).to(value.dtype)


def _causal_sums(q: Tensor, k: Tensor, v: Tensor, *, missing: int) -> Tensor:
    """Running sums of ``phi(q).phi(k) v`` over the keys up to each query, chunk by chunk.

    Args:
        q: ``[B, G, R, L, D]``.
        k: ``[B, G, S, D]``, with ``S = L - missing``.
        v: ``[B, G, S, Dv + 1]``.
        missing: Queries before the first key.
    """
    length = q.shape[-2]
    extra = -length % CHUNK
    q = pad(q, (0, 0, 0, extra)).unflatten(-2, (-1, CHUNK))  # [B, G, R, n, c, D]
    k, v = (pad(t, (0, 0, missing, extra)).unflatten(-2, (-1, CHUNK)) for t in (k, v))  # [B, G, n, c, D]
    state = (k.transpose(-2, -1) @ v).cumsum(dim=2)  # [B, G, n, D, Dv + 1], this chunk included
    before = pad(state[:, :, :-1], (0, 0, 0, 0, 1, 0))
    scores = (q @ k.unsqueeze(2).transpose(-2, -1)).tril()  # [B, G, R, n, c, c]
    sums = q @ before.unsqueeze(2) + scores @ v.unsqueeze(2)  # [B, G, R, n, c, Dv + 1]
    return sums.flatten(-3, -2)[..., :length, :]
