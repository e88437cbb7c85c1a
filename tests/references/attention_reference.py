"""Random parts of an attention, and the formula written out."""

import math

import torch


def parts(batch=2, heads=4, groups=4, queries=12, keys=12, width=8, seed=0, dtype=torch.float32):
    """Query ``[B, H, L, D]``, key and value ``[B, G, S, D]``."""
    generator = torch.Generator().manual_seed(seed)

    def make(*shape):
        return torch.randn(*shape, generator=generator, dtype=dtype)

    return make(batch, heads, queries, width), make(batch, groups, keys, width), make(batch, groups, keys, width)


HEADS = [(1, 1), (2, 1), (4, 4), (6, 2), (6, 3)]
"""Query heads and key/value heads: in the last two, a group out of order shows."""

OWN = {
    "local": {"window": 4},
    "prototype": {"prototypes": 5},
    "probsparse": {"factor": 1.0},
    "window2d": {"window": 4},
}
"""Options of mechanisms that have some, for short sequences."""


def weights_by_hand(query, key, mask=None, *, bias=0.0, scale=None, normalise="softmax"):
    """Weights of full attention written out; rows with nothing to attend to are zero."""
    key = key.repeat_interleave(query.shape[1] // key.shape[1], 1)
    scores = torch.einsum("bhld,bhsd->bhls", query, key) * (scale or 1 / math.sqrt(query.shape[-1])) + bias
    seen = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask.expand_as(scores)
    number = seen.sum(-1, keepdim=True).clamp(min=1)
    if normalise == "sigmoid":
        return seen / (1 + torch.exp(torch.log(number) - scores))
    if normalise == "relu":
        return seen * scores.clamp(min=0) / number
    scores = scores.masked_fill(~seen, float("-inf"))
    weights = torch.exp(scores - scores.amax(-1, keepdim=True).nan_to_num(neginf=0.0))
    return weights / weights.sum(-1, keepdim=True).clamp(min=1e-30)


def by_hand(query, key, value, mask=None, **options):
    """Full attention written out."""
    value = value.repeat_interleave(query.shape[1] // value.shape[1], 1)
    return torch.einsum("bhls,bhsd->bhld", weights_by_hand(query, key, mask, **options), value)


def causal_pairs(queries, keys):
    """Which keys each query may see when the queries are the last of the keys."""
    return torch.tensor([[j <= i + keys - queries for j in range(keys)] for i in range(queries)]).view(queries, keys)


def chosen_by_hand(query, key, allowed, *, factor, real=None):
    """Which queries ProbSparse chooses, ``[B, H, L]``, sequence by sequence and head by head, as its paper says.

    The sample: ``ceil(c ln n)`` of the ``n`` keys that are there, made a multiple of eight, evenly spaced.
    """
    batch, heads, queries, width = query.shape
    chosen = torch.zeros(batch, heads, queries, dtype=torch.bool)
    for b in range(batch):
        asking = torch.arange(queries) if real is None else real[b].nonzero().flatten()
        there = allowed[b, 0].any(0).nonzero().flatten()
        sample = there[even_places(len(there), factor)]
        for h in range(heads):
            own = key[b, h * key.shape[1] // heads]
            scores = query[b, h, asking] @ own[sample].T / math.sqrt(width)
            measure = scores.amax(1) - scores.mean(1)
            number = min(len(asking), max(1, math.ceil(factor * math.log(max(len(asking), 2)))))
            chosen[b, h, asking[measure.topk(number).indices]] = True
    return chosen


def even_places(count, factor):
    """Evenly spaced places among so many."""
    number = min(count, math.ceil(max(1, min(count, math.ceil(factor * math.log(max(count, 2))))) / 8) * 8)
    step = count // number
    first = (count - 1 - step * (number - 1)) // 2
    return [first + step * i for i in range(number)]
