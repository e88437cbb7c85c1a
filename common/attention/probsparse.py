"""ProbSparse attention (Zhou et al. 2021, "Informer"), O((L + S) log): few queries attend, the rest take the mean.

A query whose scores are spread evenly does little more than average the values. The measure
``M(q) = max_s q.k_s / sqrt(D) - mean_s q.k_s / sqrt(D)`` (eq. 4 of the paper), estimated on a sample of keys,
finds the queries that do more; only these attend in full.

It differs from the published code on purpose: one key sample serves all queries, so that scoring is one matrix product;
at evaluation the sample is evenly spaced, so that results repeat bit for bit; masks hold in the sampling too; and the
mean is over what a query may see. Which queries attend is found in ``sparsity.py``.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from common.attention.backend import fused
from common.attention.full import full
from common.attention.masks import causal_mask, check_heads, check_mask, check_padding, merge, whole_precision
from common.attention.sparsity import budget, choose, choose_causal

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
    check_padding(query_padding_mask, "query_padding_mask", batch=batch, length=queries)
    if mask is not None:
        mask = check_mask(mask, batch=batch, heads=heads, queries=queries, keys=keys)
        mask = mask.expand(-1, -1, -1, keys)
    if not batch or not keys or budget(queries, factor) >= queries:
        return full(query, key, value, mask=mask, causal=causal, dropout=dropout)
    sparse = {"factor": factor, "training": training}
    if causal:
        mean = _mean_of_values(value, mask, heads=heads, queries=queries, causal=True).flatten(0, 2)  # [B H L, Dv]
        attended, rows = [], []
        for chosen, valid, stop in choose_causal(query, key, mask, query_padding_mask, **sparse):
            seen = torch.arange(stop, device=key.device) <= chosen.unsqueeze(-1) + (keys - queries)  # [B, H, c, stop]
            number = _row_numbers(chosen, queries)
            part = _pick(query, number), key[:, :, :stop], value[:, :, :stop]
            if mask is None:  # each sees a key at least, which spares a look
                mixed = fused(*part, mask=seen, dropout=dropout)
            else:
                mixed = full(*part, mask=seen & _rows(mask, chosen, queries, stop), dropout=dropout)
            # An index that is not chosen may stand beside the same that is, so only those chosen take part.
            kept = valid.flatten().nonzero().squeeze(1)
            attended.append(mixed.flatten(0, 2)[kept])
            rows.append(number.flatten()[kept])
        return mean.index_copy_(0, torch.cat(rows), torch.cat(attended)).view(batch, heads, queries, -1)
    chosen, valid = choose(query, key, mask, query_padding_mask, **sparse)
    if mask is None or mask.shape[2] == 1:
        if dropout:
            mean = _mean_of_values(value, mask, heads=heads, queries=1, causal=False)  # [B, H, 1, Dv]
            picked = _pick(query, _row_numbers(chosen, queries))
            mixed = torch.cat((full(picked, key, value, mask=mask, dropout=dropout), mean), dim=2)
        else:
            # A query of zeros attends alike to all it may see: one more row gives the mean, and its gradient.
            picked = _pick(query, _row_numbers(pad(chosen, (0, 1)), queries))  # [B, H, u + 1, D]
            picked[:, :, -1] = 0.0
            mixed = full(picked, key, value, mask=mask)
        return _Spread.apply(mixed, chosen, valid, queries)  # pyright: ignore[reportReturnType]
    mean = _mean_of_values(value, mask, heads=heads, queries=queries, causal=False).flatten(0, 2)  # [B H L, Dv]
    rows = _row_numbers(chosen, queries)
    attended = full(_pick(query, rows), key, value, mask=_rows(mask, chosen, queries, keys), dropout=dropout)
    source, rows = attended.flatten(0, 2), rows.flatten()  # [B H u, Dv]
    if valid is not None:
        source = torch.where(valid.flatten().unsqueeze(-1), source, mean.index_select(0, rows))
    return mean.index_copy(0, rows, source).view(batch, heads, queries, -1)


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
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor | None, int], output: Tensor) -> None:  # noqa: ARG004 - torch's
        ctx.save_for_backward(*inputs[1:3])

    @staticmethod
    def forward(mixed: Tensor, chosen: Tensor, valid: Tensor | None, queries: int) -> Tensor:
        batch, heads, active = chosen.shape
        source = torch.full((batch, heads, queries), active, device=mixed.device)
        row = torch.arange(active, device=mixed.device).expand_as(chosen)
        source.scatter_(2, chosen, row if valid is None else row.where(valid, active))
        return _pick(mixed, _row_numbers(source, active + 1))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        chosen, valid = ctx.saved_tensors
        gradient = gradients[0]
        picked = _pick(gradient, _row_numbers(chosen, gradient.shape[2]))
        if valid is not None:
            picked = picked * valid.unsqueeze(-1)
        kind = torch.promote_types(gradient.dtype, torch.float32)  # the difference of two sums needs the digits
        others = gradient.sum(dim=2, keepdim=True, dtype=kind) - picked.sum(dim=2, keepdim=True, dtype=kind)
        return torch.cat((picked, others.to(gradient.dtype)), dim=2), None, None, None


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
        with whole_precision(value):
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


def _rows(mask: Tensor, chosen: Tensor, queries: int, stop: int) -> Tensor:
    """Rows of a mask for the chosen queries and the first keys, ``[B, H, u, stop]``; one row for all stays as it is."""
    mask = mask[..., :stop]
    if mask.shape[2] == 1:
        return mask
    rows = mask.expand(*chosen.shape[:2], queries, -1)
    return rows.gather(2, chosen.unsqueeze(-1).expand(-1, -1, -1, stop))
