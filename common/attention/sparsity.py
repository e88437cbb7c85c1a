"""Which queries of ProbSparse attention attend: those whose scores are least even, by a sample of the keys.

The measure is ``M(q) = max_s q.k_s / sqrt(D) - mean_s q.k_s / sqrt(D)`` (Zhou et al. 2021, eq. 4).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from common.attention.masks import whole_precision

LEAST = torch.finfo(torch.float32).min  # the measure of a query that must not be chosen
SHARE = 4  # a block of places is about one part in so many of what comes before it
PARTS = 2  # of a block, each with its share of those that attend
GROUP = 32  # queries that attend at once, at least


def budget(length: int, factor: float) -> int:
    """``ceil(factor * ln length)``, at least one and at most ``length``."""
    return max(1, min(length, math.ceil(factor * math.log(max(length, 2)))))


def choose(
    query: Tensor, key: Tensor, mask: Tensor | None, real: Tensor | None, *, factor: float, training: bool
) -> tuple[Tensor, Tensor | None]:
    """The ``u`` queries of the largest measure.

    Neither sample nor ``u`` depends on how far a sequence is padded.

    Args:
        query: ``[B, H, L, D]``.
        key: ``[B, G, S, D]``.
        mask: Boolean ``[B or 1, H or 1, L or 1, S]``, True where a query may attend.
        real: Boolean ``[B, L]``, True where a query is real; None if all are.
        factor: The constant ``c`` of ``u = c ln L`` and of the number of sampled keys.
        training: Draw the sample at random instead of evenly spaced.

    Returns:
        Indices ``[B, H, u]`` and, of the same shape, which of them are chosen; None if all are.
    """
    measure = _measure(query, key, mask, stop=key.shape[2], factor=factor, training=training)
    active = budget(query.shape[2], factor)
    if real is None:
        return measure.topk(active, dim=-1, sorted=False).indices, None
    found = measure.masked_fill(~real[:, None, :], LEAST).topk(active, dim=-1)
    wanted = _budgets(real.sum(dim=1), factor)
    valid = torch.arange(active, device=query.device) < wanted[:, None]  # [B, u]
    return found.indices, valid[:, None].expand_as(found.indices)


class Choice(NamedTuple):
    """Queries of neighbouring blocks that attend.

    Attributes:
        indices: ``int64 [B, H, c]``.
        valid: Boolean ``[B, H, c]``, which of them are chosen.
        stop: None of them sees a key from here on.
    """

    indices: Tensor
    valid: Tensor
    stop: int


def choose_causal(
    query: Tensor, key: Tensor, mask: Tensor | None, real: Tensor | None, *, factor: float, training: bool
) -> list[Choice]:
    """Queries whose measure is among the ``u`` largest up to their own place, chosen by what came before them alone.

    Taking the ``u`` largest of the whole row would let a later query push an earlier one out, and so leak the future.
    Here the query at place ``p`` is chosen if fewer than ``c ln (p + 1)`` earlier ones have a larger measure. So that
    measures can be compared, those of a block of places are taken on one sample of the keys before the block, and not
    on as many keys as each query happens to see. Blocks grow with what comes before them, and each half of one has a
    bound of its own: four and twice as many as are chosen when measures come in random order, of which the earliest
    keep their place. What is chosen up to a place depends neither on the values after it nor on the length of the
    sequence.

    Args:
        query: ``[B, H, L, D]``, at the last ``L`` of the ``S`` places.
        key: ``[B, G, S, D]``.
        mask: As in :func:`choose`.
        real: As in :func:`choose`.
        factor: As in :func:`choose`.
        training: As in :func:`choose`.

    Returns:
        The choice, some blocks at a time.
    """
    batch, heads, queries, _ = query.shape
    offset = key.shape[2] - queries
    blocks = [  # places of the queries that are there
        (place, max(place, offset), end) for place, end in _blocks(key.shape[2], factor) if end > offset
    ]
    start = blocks[0][1] - offset
    measures = []
    for place, begin, end in blocks:
        part = query[:, :, begin - offset : end - offset]
        if place:
            rows = mask if mask is None or mask.shape[2] == 1 else mask[:, :, begin - offset : end - offset]
            measures.append(_measure(part, key, rows, stop=place, factor=factor, training=training))
        else:  # the first see so few keys that all of them attend
            measures.append(query.new_full((batch, heads, end - begin), LEAST, dtype=torch.float32))
    measure = torch.cat(measures, dim=-1)  # [B, H, L - start]
    if real is not None:
        measure = measure.masked_fill(~real[:, None, start:], LEAST)
    place = torch.arange(start, queries, device=query.device) + offset
    wanted = (factor * (place + 1).double().log()).ceil().clamp(min=1)
    chosen = (_earlier_and_larger(measure) < wanted) & ((measure > LEAST) | (place < wanted))
    choices: list[Choice] = []
    for place, begin, end in blocks:
        here = chosen[..., begin - offset - start : end - offset - start]
        parts = PARTS if place else 1
        size = -(-(end - place) // parts)
        expected = budget(end, factor) * math.log(end / place) / parts if place else size
        most = min(size, math.ceil(2 * expected) + 4)
        before = begin - place  # queries that are not there
        order = torch.arange(size, 0, -1, device=query.device)
        padded = pad(here, (before, size * parts - (end - place))).unflatten(-1, (parts, size))
        found = torch.where(padded, order, 0).topk(most, dim=-1)
        first = torch.arange(parts, device=query.device)[:, None] * size + place - offset
        indices, valid = (found.indices + first).flatten(2), (found.values > 0).flatten(2)
        indices = indices.clamp(max(begin - offset, 0), end - offset - 1)
        if choices and choices[-1].indices.shape[2] < GROUP:  # few rows at a time would cost more than they do
            last = choices.pop()
            indices, valid = torch.cat((last.indices, indices), dim=2), torch.cat((last.valid, valid), dim=2)
        choices.append(Choice(indices, valid, end))
    return choices


def _blocks(keys: int, factor: float) -> Iterator[tuple[int, int]]:
    """Places ``[begin, end)`` of blocks; the first has all places that are within their own budget."""
    end = 1
    while math.ceil(factor * math.log(end + 1)) >= end + 1:
        end += 1
    begin, end = 0, min(end, keys)
    while begin < keys:
        yield begin, end
        begin, end = end, min(end + max(8, end // (8 * SHARE) * 8), keys)


def _measure(query: Tensor, key: Tensor, mask: Tensor | None, *, stop: int, factor: float, training: bool) -> Tensor:
    """``M(q)`` over a sample of the first ``stop`` keys, float32 or wider ``[B, H, L]``; LEAST where it sees none."""
    samples = _samples(stop, factor)
    with torch.no_grad(), whole_precision(query):  # the choice has no gradient
        if mask is None:
            place = _places(stop, samples, training=training, device=key.device)
            sampled = key[:, :, place] if isinstance(place, slice) else key.index_select(2, place)
            scores = _scores(query, sampled)
            return scores.amax(dim=2) - scores.mean(dim=2)
        if mask.shape[1] == mask.shape[2] == 1:
            sampled, allowed = _sample_real(key, mask[:, 0, 0, :stop], factor, samples, training=training)
            allowed = allowed[:, None, :, None]  # [B, 1, m, 1]
        else:  # the sample is shared, so that each query looks at what it sees of it
            place = _places(stop, samples, training=training, device=key.device)
            if isinstance(place, slice):
                place = torch.arange(stop, device=key.device)[place]
            sampled = key.index_select(2, place)
            allowed = mask.index_select(3, place).transpose(-2, -1)  # [., ., m, L]
        scores = _scores(query, sampled)
        count = allowed.sum(dim=2)
        # In place, since there are m numbers a query.
        total = scores.masked_fill_(~allowed, 0.0).sum(dim=2)
        largest = scores.masked_fill_(~allowed, float("-inf")).amax(dim=2)
        return (largest - total / count.clamp(min=1)).masked_fill(count == 0, LEAST)


def _scores(query: Tensor, sampled: Tensor) -> Tensor:
    """Scores of queries ``[B, H, L, D]`` on sampled keys ``[B, G, m, D]``, as ``[B, H, m, L]``.

    Keys by queries, not the other way round, so that reductions run along whole rows of queries.
    """
    batch, heads, queries, width = query.shape
    groups, samples = sampled.shape[1], sampled.shape[2]
    if sampled.dtype in (torch.float16, torch.bfloat16):
        sampled = sampled * width**-0.5  # so that the product stays in range; otherwise it does not change the order
    sampled = sampled.reshape(batch * groups, samples, width)
    grouped = query.reshape(batch * groups, heads // groups * queries, width)  # [B, H, L, D] -> [B G, H/G L, D]
    scores = torch.bmm(sampled, grouped.transpose(1, 2)).view(batch, groups, samples, heads // groups, queries)
    scores = scores.transpose(2, 3).reshape(batch, heads, samples, queries)
    return scores.to(torch.promote_types(scores.dtype, torch.float32))


def _samples(keys: int, factor: float) -> int:
    """Number of sampled keys: a few more than the budget, as kernels work on eight at once."""
    return min(keys, -(-budget(keys, factor) // 8) * 8)


def _places(keys: int, samples: int, *, training: bool, device: torch.device) -> slice | Tensor:
    """Which keys are sampled; evenly spaced, as a slice, that is a view and no copy."""
    if training:
        return torch.randperm(keys, device=device)[:samples].sort().values
    step = keys // samples
    first = (keys - 1 - step * (samples - 1)) // 2
    return slice(first, first + step * (samples - 1) + 1, step)


def _sample_real(key: Tensor, real: Tensor, factor: float, samples: int, *, training: bool) -> tuple[Tensor, Tensor]:
    """A sample of the real keys of each sequence: ``[B, G, m, D]``, and which of them are in it, ``[B, m]``."""
    real = real.expand(key.shape[0], -1)
    count = real.sum(dim=1)  # [B]
    wanted = (-(-_budgets(count, factor) // 8) * 8).clamp(max=samples).minimum(count)
    number = torch.arange(samples, device=key.device)
    if training:
        drawn = torch.rand(key.shape[0], real.shape[1], device=key.device).masked_fill(~real, 2.0)
        place = drawn.argsort(dim=1)[:, :samples]  # real ones come first
    else:
        step = count // wanted.clamp(min=1)
        first = (count - 1 - step * (wanted - 1)) // 2
        rank = (first[:, None] + step[:, None] * number).clamp(0, real.shape[1] - 1)  # [B, m], among the real ones
        place = (~real).long().argsort(dim=1, stable=True).gather(1, rank)
    sampled = key.transpose(1, 2)[torch.arange(key.shape[0], device=key.device)[:, None], place]  # [B, m, G, D]
    return sampled.transpose(1, 2), number < wanted[:, None]


def _budgets(lengths: Tensor, factor: float) -> Tensor:
    """:func:`budget` of each length, ``int64 [B]``."""
    wanted = (factor * lengths.clamp(min=2).double().log()).ceil().long()
    return wanted.minimum(lengths).clamp(min=1)


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
