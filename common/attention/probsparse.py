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
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from common.attention.full import full
from common.attention.masks import causal_mask, check_heads, check_mask, merge

LEAST = torch.finfo(torch.float32).min  # the measure of a query that must not be chosen
PART = 32  # queries that attend at once under a mask of their own
PIECE = 128  # positions that are summed in single precision


def probsparse(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    mask: Tensor | None = None,
    query_padding_mask: Tensor | None = None,
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
        query_padding_mask: Boolean ``[B, L]``, True where a query is real; others are never among the most telling.
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
        mask = mask.expand(-1, -1, -1, keys)
    active = _budget(queries, factor)
    if active >= queries or not keys:
        return full(query, key, value, mask=mask, causal=causal, dropout=dropout)

    measure = _sparsity_measure(query, key, mask, causal=causal, samples=_budget(keys, factor), training=training)
    if query_padding_mask is not None:
        measure = measure.masked_fill(~query_padding_mask[:, None, :], LEAST)
    if causal:
        chosen, valid = _causal_choice(measure, active)
    else:
        chosen, valid = measure.topk(active, dim=-1, sorted=False).indices, None  # [B, H, u]
    if not causal and (mask is None or mask.shape[2] == 1):
        if dropout:
            mean = _mean_of_values(value, mask, heads=heads, queries=1, causal=False)  # [B, H, 1, Dv]
            picked = _pick(query, _row_numbers(chosen, queries))
            mixed = torch.cat((full(picked, key, value, mask=mask, dropout=dropout), mean), dim=2)
        else:
            # A query of zeros attends alike to all it may see: one more row gives the mean, and its gradient.
            picked = _pick(query, _row_numbers(pad(chosen, (0, 1)), queries))  # [B, H, u + 1, D]
            picked[:, :, -1] = 0.0
            mixed = full(picked, key, value, mask=mask)
        return _Spread.apply(mixed, chosen, queries)  # pyright: ignore[reportReturnType]
    rows = _row_numbers(chosen, queries)
    picked = _pick(query, rows)
    mean = _mean_of_values(value, mask, heads=heads, queries=queries, causal=causal).flatten(0, 2)  # [B H L, Dv]
    attended = []
    # In parts, so that the rows of the mask never add up to much.
    for part, places in zip(picked.split(PART, dim=2), chosen.split(PART, dim=2), strict=True):
        allowed = _rows(mask, places, queries)
        if causal:
            allowed = merge(allowed, _causal_rows(places, queries, keys))
        attended.append(full(part, key, value, mask=allowed, dropout=dropout))
    source = torch.cat(attended, dim=2).flatten(0, 2)  # [B H u, Dv]
    rows = rows.flatten()
    if valid is not None:
        source = torch.where(valid.flatten().unsqueeze(-1), source, mean.index_select(0, rows))
    return mean.index_copy_(0, rows, source).view(batch, heads, queries, -1)


def _row_numbers(chosen: Tensor, queries: int) -> Tensor:
    """Numbers of chosen queries ``[B, H, u]`` as those of rows of ``[B H L, D]``."""
    batch, heads, _ = chosen.shape
    first = torch.arange(0, batch * heads * queries, queries, device=chosen.device)
    return chosen + first.view(batch, heads, 1)


def _pick(query: Tensor, rows: Tensor) -> Tensor:
    """Rows of the queries ``[B, H, L, D]``, copied whole; a gather would look up each number."""
    return query.reshape(-1, query.shape[-1]).index_select(0, rows.flatten()).view(*rows.shape, -1)


class _Spread(torch.autograd.Function):
    """From ``[B, H, u + 1, Dv]`` to ``[B, H, L, Dv]``: chosen queries take their row, all others the last one.

    Written out, since torch would go over the whole output several times on the way back.
    """

    generate_vmap_rule = True

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, int], output: Tensor) -> None:  # noqa: ARG004 - torch's
        ctx.save_for_backward(inputs[1])

    @staticmethod
    def forward(mixed: Tensor, chosen: Tensor, queries: int) -> Tensor:
        batch, heads, active = chosen.shape
        source = torch.full((batch, heads, queries), active, device=mixed.device)
        source.scatter_(2, chosen, torch.arange(active, device=mixed.device).expand_as(chosen))
        return _pick(mixed, _row_numbers(source, active + 1))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (chosen,) = ctx.saved_tensors
        gradient = gradients[0]
        picked = _pick(gradient, _row_numbers(chosen, gradient.shape[2]))
        kind = torch.promote_types(gradient.dtype, torch.float32)  # the difference of two sums needs the digits
        others = gradient.sum(dim=2, keepdim=True, dtype=kind) - picked.sum(dim=2, keepdim=True, dtype=kind)
        return torch.cat((picked, others.to(gradient.dtype)), dim=2), None, None


def _budget(length: int, factor: float) -> int:
    """``ceil(factor * ln length)``, at least one and at most ``length``."""
    return max(1, min(length, math.ceil(factor * math.log(max(length, 2)))))


def _sparsity_measure(
    query: Tensor, key: Tensor, mask: Tensor | None, *, causal: bool, samples: int, training: bool
) -> Tensor:
    """``M(q)`` over the sampled keys a query may see, ``[B, H, L]``; :data:`LEAST` where it sees none."""
    batch, heads, queries, width = query.shape
    groups, keys = key.shape[1], key.shape[2]
    samples = min(keys, -(-samples // 8) * 8)  # a few more than asked for: kernels work on eight at once
    step = keys // samples
    first = (keys - 1 - step * (samples - 1)) // 2
    evenly = slice(first, first + step * (samples - 1) + 1, step)  # a view, not a copy
    sample = torch.randperm(keys, device=key.device)[:samples].sort().values if training else None
    with torch.no_grad():  # the choice of queries has no gradient
        sampled = key[:, :, evenly] if sample is None else key.index_select(2, sample)
        sampled = sampled.flatten(0, 1)  # [B, G, m, D] -> [B G, m, D]
        if sampled.dtype in (torch.float16, torch.bfloat16):
            sampled = sampled / width**0.5  # within their range; otherwise the scale does not change the order
        # Keys by queries, not the other way round, so that each reduction runs along whole rows of queries.
        grouped = query.reshape(batch * groups, -1, width)  # [B, H, L, D] -> [B G, H/G L, D]
        scores = torch.bmm(sampled, grouped.transpose(1, 2)).unflatten(2, (-1, queries))  # [B G, m, H/G, L]
        scores = scores.transpose(1, 2).reshape(batch, heads, samples, queries)
        scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
        allowed = None
        if sample is None:
            sample = torch.arange(keys, device=key.device)[evenly]
        if mask is not None:
            allowed = mask.expand(-1, -1, -1, keys).index_select(3, sample).transpose(-2, -1)
        if causal:
            place = torch.arange(queries, device=key.device) + (keys - queries)
            allowed = merge(allowed, sample[:, None] <= place)
        if allowed is None:
            return scores.amax(dim=2) - scores.mean(dim=2)
        count = allowed.sum(dim=-2)
        # In place, since there are m numbers a query.
        total = scores.masked_fill_(~allowed, 0.0).sum(dim=2)
        largest = scores.masked_fill_(~allowed, float("-inf")).amax(dim=2)
        return (largest - total / count.clamp(min=1)).masked_fill(count == 0, LEAST)


def _causal_choice(measure: Tensor, active: int) -> tuple[Tensor, Tensor]:
    """Choose queries by what came before them alone.

    Taking the ``u`` largest of the whole row would let a later query push an earlier one out, and so leak the
    future. A query is chosen here if fewer than ``u`` earlier ones have a larger measure: about
    ``u (1 + ln(L / u))`` are, when their order is random. One and a half times that number is the bound;
    the earliest keep their place when more qualify. How many are returned does not depend on the measure, so that
    neither do the kernels that run, and a change of the future leaves earlier results as they are, bit for bit.

    Returns:
        Indices ``[B, H, c]`` and, of the same shape, which of them are really chosen (rows are ragged).
    """
    length = measure.shape[-1]
    chosen = (_earlier_and_larger(measure) < active) & (measure > LEAST)
    bound = min(length, math.ceil(1.5 * active * (1 + math.log(length / active))))
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
    values = pad(measure, (0, padded - length))
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
    if value.shape[1] < heads:
        value = value.repeat_interleave(heads // value.shape[1], dim=1)  # [B, G, S, Dv] -> [B, H, S, Dv]
    kind = torch.promote_types(value.dtype, torch.float32)  # sums of many values overflow half precision
    per_query = mask is not None and mask.shape[2] > 1
    if per_query:
        allowed = merge(mask, causal_mask(queries, keys, value.device) if causal else None)
        weights = allowed.to(kind)  # pyright: ignore[reportOptionalMemberAccess]
        with torch.autocast(value.device.type, enabled=False):
            mean = (weights @ value.to(kind)) / weights.sum(dim=-1, keepdim=True).clamp(min=1)
        return mean.to(value.dtype)
    seen = torch.ones_like(value[..., :1]) if mask is None else mask.transpose(-2, -1).to(value.dtype)  # [., ., S, 1]
    if not causal:
        total = (value * seen).sum(dim=2, keepdim=True, dtype=kind)
        mean = total / seen.sum(dim=2, keepdim=True, dtype=kind).clamp(min=1)
        return mean.to(value.dtype).expand(-1, -1, queries, -1)
    counts = seen.to(kind).expand(-1, -1, keys, -1).cumsum(dim=2).clamp(min=1)  # exact up to 2^24 keys
    totals = _running_sums((value if mask is None else value * seen).to(kind))
    running = totals.div_(counts).to(value.dtype)  # [B, H, S, Dv]
    missing = max(queries - keys, 0)  # the first of more queries than keys come before every key
    if missing:
        running = pad(running, (0, 0, missing, 0))
    return running[:, :, running.shape[2] - queries :]


def _running_sums(values: Tensor) -> Tensor:
    """Running sums over the third dimension, ``[B, H, S, Dv]``, to the last digits also after many positions.

    Single precision drifts over thousands of summands: it sums short pieces alone, and double the pieces.
    """
    keys = values.shape[2]
    if keys % PIECE:  # else padding would copy all the same
        values = pad(values, (0, 0, 0, -keys % PIECE))
    sums = values.unflatten(2, (-1, PIECE)).cumsum(dim=3)  # [B, H, n, PIECE, Dv]
    before = pad(sums[..., -1, :].double().cumsum(dim=2), (0, 0, 1, -1))  # [B, H, n, Dv]
    return sums.add_(before.to(values.dtype).unsqueeze(3)).flatten(2, 3)[:, :, :keys]


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
