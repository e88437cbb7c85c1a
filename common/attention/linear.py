"""Linear attention (Katharopoulos et al. 2020), O(L D Dv): a kernel of features in place of the softmax."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from common.attention.masks import check_heads, check_key_mask, whole_precision

BLOCK = 4096  # positions worked on at a time, so that what lies between input and output stays in the caches
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
    with whole_precision(query):
        return _linear(query, key, value, mask=mask, causal=causal)


def _linear(query: Tensor, key: Tensor, value: Tensor, *, mask: Tensor | None, causal: bool) -> Tensor:
    batch, heads, queries, _ = query.shape
    groups, keys = key.shape[1], key.shape[2]
    real = torch.ones(1, 1, keys, dtype=torch.bool, device=key.device)
    if mask is not None:
        real = check_key_mask(mask, batch=batch, keys=keys, mechanism="linear")
    grouped = query.unflatten(1, (groups, heads // groups))  # [B, H, L, D] -> [B, G, H/G, L, D]
    # Splits, not slices: a slice would fill up its gradient with zeros to the whole length.
    before = keys if not causal else max(keys - queries, 0)
    early, late = zip(*(tensor.split([before, keys - before], dim=2) for tensor in (key, value, real)), strict=True)
    kind = torch.promote_types(key.dtype, torch.float32)
    state = torch.zeros(batch, groups, key.shape[3], value.shape[3] + 1, dtype=kind, device=key.device)
    for block in zip(*(tensor.split(BLOCK, dim=2) for tensor in early), strict=True):
        features, values = _features(*block)
        state = state + features.transpose(-2, -1) @ values
    if not causal:
        mixed = [_ratio(_phi(part) @ state.unsqueeze(2)) for part in grouped.split(BLOCK, dim=3)]
        return torch.cat(mixed, dim=3).flatten(1, 2).to(value.dtype)
    none, rest = grouped.split([max(queries - keys, 0), min(queries, keys)], dim=3)
    mixed = [value.new_zeros(*none.shape[:-1], value.shape[-1])]  # queries that come before every key
    blocks = zip(rest.split(BLOCK, dim=3), *(tensor.split(BLOCK, dim=2) for tensor in late), strict=True)
    for part, *block in blocks:
        features, values = _features(*block)
        mixed.append(_ratio(_causal_sums(_phi(part), features, values, state)).to(value.dtype))
        state = state + features.transpose(-2, -1) @ values
    return torch.cat(mixed, dim=3).flatten(1, 2)


def _phi(tensor: Tensor) -> Tensor:
    """Features in float32 or wider: sums of many products overflow half precision.

    ``elu(x) + 1``, which loses its digits below zero, as ``exp(min(x, 0)) + max(x, 0)``.
    """
    tensor = tensor.to(torch.promote_types(tensor.dtype, torch.float32))
    return tensor.clamp(max=0).exp() + tensor.relu()


def _features(key: Tensor, value: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
    """Features of the keys, zero for those that are not real, and values with a column of ones that sums weights."""
    features = _phi(key) * real.unsqueeze(-1)
    return features, pad(value.to(features.dtype), (0, 1), value=1.0)


def _ratio(sums: Tensor) -> Tensor:
    """Weighted sums of values over the sums of weights, which stand in the last column."""
    total = sums[..., -1:]
    return sums[..., :-1] / total.where(total > 0, 1.0)


def _causal_sums(q: Tensor, k: Tensor, v: Tensor, state: Tensor) -> Tensor:
    """Sums of ``phi(q).phi(k) v`` over the keys up to each query, chunk by chunk.

    Args:
        q: ``[B, G, R, L, D]``.
        k: ``[B, G, L, D]``.
        v: ``[B, G, L, Dv + 1]``.
        state: Sums of ``phi(k) v`` over all earlier keys, ``[B, G, D, Dv + 1]``.
    """
    length = q.shape[-2]
    if length % CHUNK:
        q, k, v = (pad(tensor, (0, 0, 0, -length % CHUNK)) for tensor in (q, k, v))
    q, k, v = (tensor.unflatten(-2, (-1, CHUNK)) for tensor in (q, k, v))  # [..., L, D] -> [..., n, c, D]
    sums = torch.cat((state.unsqueeze(2), k.transpose(-2, -1) @ v), dim=2).cumsum(dim=2)  # [B, G, n + 1, D, Dv + 1]
    scores = (q @ k.unsqueeze(2).transpose(-2, -1)).tril()  # [B, G, R, n, c, c]
    mixed = q @ sums[:, :, :-1].unsqueeze(2) + scores @ v.unsqueeze(2)  # [B, G, R, n, c, Dv + 1]
    return mixed.flatten(-3, -2)[..., :length, :]
