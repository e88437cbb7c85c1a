"""Random parts of an attention, and the formula written out."""

import math

import torch


def parts(batch=2, heads=4, groups=4, queries=12, keys=12, width=8, seed=0, dtype=torch.float32):
    """Query ``[B, H, L, D]``, key and value ``[B, G, S, D]``."""
    generator = torch.Generator().manual_seed(seed)

    def make(*shape):
        return torch.randn(*shape, generator=generator, dtype=dtype)

    return make(batch, heads, queries, width), make(batch, groups, keys, width), make(batch, groups, keys, width)


def by_hand(query, key, value, mask=None):
    """Softmax attention written out; rows with nothing to attend to are zero."""
    key, value = (p.repeat_interleave(query.shape[1] // p.shape[1], 1) for p in (key, value))
    scores = torch.einsum("bhld,bhsd->bhls", query, key) / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = torch.exp(scores - scores.amax(-1, keepdim=True).nan_to_num(neginf=0.0))
    weights = weights / weights.sum(-1, keepdim=True).clamp(min=1e-30)
    return torch.einsum("bhls,bhsd->bhld", weights, value)
