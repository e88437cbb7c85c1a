"""ProbSparse attention (Zhou et al. 2021, "Informer"), O((L + S) log): few queries attend, the rest take the mean.

A query whose scores are spread evenly does little more than average the values. The measure
``M(q) = max_s q.k_s / sqrt(D) - mean_s q.k_s / sqrt(D)`` (eq. 4 of the paper), estimated on a sample of keys,
finds the queries that do more; only these attend in full.

It differs from the published code on purpose: one key sample serves all queries, so that scoring is one
matrix product; at evaluation the sample is evenly spaced, so that results repeat bit for bit; masks hold in
the sampling too; and the mean is over what a query may see.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from common.attention.full import full
from common.attention.masks import causal_mask, check_heads, check_mask, merge


def probsparse(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    mask: Tensor | None = None,
    causal: bool = False,
    factor: float = 5.0,
    dropout: float = 0.0,
    training: bool = False,
) -> Tensor:
    """Attend with the ``u = factor * ln L`` most telling queries, give the others the mean of the values.

    Args:
        query: ``[B, H, L, D]``.
        key: ``[B, G, S, D]``.
        value: ``[B, G, S, Dv]``.
        mask: Boolean, broadcastable to ``[B, H, L, S]``, True where a query may attend.
        causal: Let the queries be the last ``L`` of the ``S`` positions, and see no later key.
        factor: The constant ``c`` of the paper, for the number of queries and of sampled keys alike.
        dropout: Probability of dropping a weight; give 0 outside training.
        training: Draw the key sample at random from torch's generator instead of evenly spaced.

    Returns:
        ``[B, H, L, Dv]``; a row with nothing to attend to is zero.

    Raises:
        ShapeError: If shapes or the mask do not fit.
    """
    check_heads(query, key, value)
    batch, heads, queries, _ = query.shape
    keys = key.shape[2]
    if mask is not None:
        mask = check_mask(mask, batch=batch, heads=heads, queries=queries, keys=keys)
    active = _budget(queries, factor)
    if active >= queries:
        return full(query, key, value, mask=mask, causal=causal, dropout=dropout)

    measure = _sparsity_measure(query, key, mask, causal=causal, samples=_budget(keys, factor), training=training)
    if causal:
        chosen, valid = _causal_choice(measure, active)
    else:
        chosen, valid = measure.topk(active, dim=-1).indices, None  # [B, H, u]
    mean = _mean_of_values(value, mask, heads=heads, queries=queries, causal=causal)

    allowed = _rows(mask, chosen, queries)
    if causal:
        allowed = merge(allowed, _causal_rows(chosen, queries, keys))
    picked = query.gather(2, chosen.unsqueeze(-1).expand(-1, -1, -1, query.shape[-1]))  # [B, H, u, D]
    attended = full(picked, key, value, mask=allowed, dropout=dropout)  # [B, H, u, Dv]
    place = chosen.unsqueeze(-1).expand_as(attended)
    if valid is not None:
        attended = torch.where(valid.unsqueeze(-1), attended, mean.gather(2, place))
    return mean.scatter(2, place, attended)


def _budget(length: int, factor: float) -> int:
    """``ceil(factor * ln length)``, at least one and at most ``length``."""
    return max(1, min(length, math.ceil(factor * math.log(max(length, 2)))))


def _sparsity_measure(
    query: Tensor, key: Tensor, mask: Tensor | None, *, causal: bool, samples: int, training: bool
) -> Tensor:
    """``M(q)`` over the sampled keys a query may see, ``[B, H, L]``; the lowest value where it sees none."""
    batch, heads, queries, width = query.shape
    groups, keys = key.shape[1], key.shape[2]
    if training:
        sample = torch.randperm(keys, device=key.device)[:samples].sort().values
    else:
        sample = ((torch.arange(samples, device=key.device) + 0.5) * (keys / samples)).long()
    with torch.no_grad():  # the choice of queries has no gradient
        sampled = key.index_select(2, sample)  # [B, G, m, D]
        grouped = query.reshape(batch, groups, heads // groups, queries, width)
        scores = grouped @ sampled.unsqueeze(2).transpose(-2, -1)  # [B, G, H/G, L, m]
        scores = scores.reshape(batch, heads, queries, samples).float() / width**0.5
        allowed = None if mask is None else mask.expand(-1, -1, -1, keys).index_select(3, sample)
        if causal:
            allowed = merge(allowed, sample <= torch.arange(queries, device=key.device)[:, None] + (keys - queries))
        if allowed is None:
            return scores.amax(dim=-1) - scores.mean(dim=-1)
        count = allowed.sum(dim=-1)
        total = scores.masked_fill(~allowed, 0.0).sum(dim=-1)
        largest = scores.masked_fill(~allowed, float("-inf")).amax(dim=-1)
        return (largest - total / count.clamp(min=1)).masked_fill(count == 0, torch.finfo(torch.float32).min)


def _causal_choice(measure: Tensor, active: int) -> tuple[Tensor, Tensor]:
    """Choose queries by what came before them alone.

    Taking the ``u`` largest of the whole row would let a later query push an earlier one out, and so leak the
    future. A query is chosen here if fewer than ``u`` earlier ones have a larger measure: about
    ``u (1 + ln(L / u))`` are, when their order is random. Twice that number is the bound; the earliest keep
    their place when more qualify.

    Returns:
        Indices ``[B, H, c]`` and, of the same shape, which of them are really chosen (rows are ragged).
    """
    length = measure.shape[-1]
    chosen = _earlier_and_larger(measure) < active
    bound = min(length, math.ceil(2 * active * (1 + math.log(length / active))))
    bound = min(bound, int(chosen.sum(dim=-1).max()))
    position = torch.arange(length, device=measure.device)
    first = torch.where(chosen, length - position, -1).topk(bound, dim=-1)
    return first.indices, first.values > 0


def _earlier_and_larger(measure: Tensor) -> Tensor:
    """For each entry of the last dimension, how many earlier entries are larger; O(L log^2 L), by merging.

    Each pass counts, for the entries of every right half, the larger ones of its left half.
    """
    length = measure.shape[-1]
    padded = 1 << max(length - 1, 0).bit_length()
    # The padding comes last, so that it is never an earlier entry of a real one.
    values = torch.nn.functional.pad(measure, (0, padded - length))
    counts = torch.zeros_like(values, dtype=torch.long)
    half = 1
    while half < padded:
        blocks = values.unflatten(-1, (-1, 2, half))  # [..., P] -> [..., blocks, 2, half]
        left = blocks[..., 0, :].sort(dim=-1).values
        right = blocks[..., 1, :].contiguous()
        larger = half - torch.searchsorted(left.contiguous(), right, right=True)
        counts.unflatten(-1, (-1, 2, half))[..., 1, :] += larger
        half *= 2
    return counts[..., :length]


def _mean_of_values(value: Tensor, mask: Tensor | None, *, heads: int, queries: int, causal: bool) -> Tensor:
    """Mean of the values each query may see, ``[B, H, L, Dv]``, zero where it sees none."""
    keys = value.shape[2]
    value = value.repeat_interleave(heads // value.shape[1], dim=1)  # [B, G, S, Dv] -> [B, H, S, Dv]
    per_query = mask is not None and mask.shape[2] > 1
    if per_query:
        allowed = merge(mask, causal_mask(queries, keys, value.device) if causal else None)
        weights = allowed.to(value.dtype)  # pyright: ignore[reportOptionalMemberAccess]
        return (weights @ value) / weights.sum(dim=-1, keepdim=True).clamp(min=1)
    seen = torch.ones_like(value[..., :1]) if mask is None else mask.transpose(-2, -1).to(value.dtype)  # [., ., S, 1]
    if not causal:
        total = (value * seen).sum(dim=2, keepdim=True)
        return (total / seen.sum(dim=2, keepdim=True).clamp(min=1)).expand(-1, -1, queries, -1)
    # Sums run in double: a float32 running sum drifts over thousands of positions.
    totals = (value * seen).double().cumsum(dim=2)
    running = (totals / seen.double().cumsum(dim=2).clamp(min=1)).to(value.dtype)  # [B, H, S, Dv]
    missing = max(queries - keys, 0)  # the first of more queries than keys come before every key
    running = torch.nn.functional.pad(running, (0, 0, missing, 0))
    return running[:, :, running.shape[2] - queries :]


def _rows(mask: Tensor | None, chosen: Tensor, queries: int) -> Tensor | None:
    """Rows of a mask for the chosen queries, ``[B, H, u, S]``; a mask that is the same for all stays as it is."""
    if mask is None or mask.shape[2] == 1:
        return mask
    batch, heads, _ = chosen.shape
    rows = mask.expand(batch, heads, queries, -1)
    return rows.gather(2, chosen.unsqueeze(-1).expand(-1, -1, -1, rows.shape[-1]))


def _causal_rows(chosen: Tensor, queries: int, keys: int) -> Tensor:
    """The causal mask's rows for the chosen queries, ``[B, H, u, S]``."""
    return torch.arange(keys, device=chosen.device) <= chosen.unsqueeze(-1) + (keys - queries)
