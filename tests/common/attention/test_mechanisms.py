"""Mechanisms against independent references."""

import math

import pytest
import torch
from attention_reference import HEADS, by_hand, causal_pairs, chosen_by_hand, even_places, parts, weights_by_hand
from hypothesis import given, settings
from hypothesis import strategies as st

from common.attention import (
    additive,
    attention_weights,
    full,
    linear,
    local,
    probsparse,
    prototype,
    summarise,
    window2d,
)  # fmt: skip
from common.attention.sparsity import _earlier_and_larger


@given(
    batch=st.integers(1, 2), heads=st.sampled_from(HEADS), queries=st.integers(1, 9), keys=st.integers(1, 9),
    causal=st.booleans(), masked=st.booleans(), biased=st.booleans(), scale=st.sampled_from([None, 0.7]),
    normalise=st.sampled_from(["softmax", "softmax", "sigmoid", "relu"]), seed=st.integers(0, 99),
)  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_full_is_the_written_out_formula(batch, heads, queries, keys, causal, masked, biased, scale, normalise, seed):
    query, key, value = parts(batch, *heads, queries, keys, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    allowed = torch.ones(batch, 1, queries, keys, dtype=torch.bool)
    mask = torch.rand(batch, 1, queries, keys, generator=generator) > 0.5 if masked else None
    bias = torch.randn(heads[0], queries, keys, generator=generator) if biased else None
    if mask is not None:
        allowed = allowed & mask
    if causal:
        allowed = allowed & causal_pairs(queries, keys)
    options = {"scale": scale, "normalise": normalise}
    want = weights_by_hand(query, key, allowed, bias=0.0 if bias is None else bias, **options)
    weights = attention_weights(query, key, mask=mask, causal=causal, bias=bias, **options)
    torch.testing.assert_close(weights, want, atol=1e-5, rtol=1e-5)
    got = full(query, key, value, mask=mask, causal=causal, bias=bias, **options)
    torch.testing.assert_close(got, want @ value.repeat_interleave(heads[0] // heads[1], 1), atol=1e-5, rtol=1e-5)


NOTHING = {
    "full": full,
    "eager": lambda *parts, mask: attention_weights(*parts[:2], mask=mask) @ parts[2],
    "sigmoid": lambda *parts, mask: full(*parts, mask=mask, normalise="sigmoid"),
    "probsparse": lambda *parts, mask: probsparse(*parts, mask=mask, factor=1.0),
    "causal probsparse": lambda *parts, mask: probsparse(*parts, mask=mask, factor=1.0, causal=True),
    "local": lambda *parts, mask: local(*parts, mask=mask, window=4, global_tokens=1),
    "additive": lambda *parts, mask: additive(*parts, mask=mask, score=torch.ones(4, 8)),
}


@pytest.mark.parametrize("mechanism", list(NOTHING))
def test_a_row_with_nothing_to_attend_to_is_zero_with_finite_gradients(mechanism):
    query, key, value = (p.requires_grad_() for p in parts(queries=40, keys=40))
    mask = torch.ones(2, 1, 40, 40, dtype=torch.bool)
    mask[0, 0, 3] = False
    out = NOTHING[mechanism](query, key, value, mask=mask)
    assert torch.equal(out[0, :, 3], torch.zeros(4, 8))
    out.sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in (query, key, value))


def test_masked_keys_have_no_weight_however_low_the_scores():
    query, key, _ = parts(heads=1, groups=1)
    query, key = query.abs() * 300, -key.abs() * 300  # all scores far below zero
    mask = torch.arange(12) < 5
    weights = attention_weights(query, key, mask=mask[None, :].expand(12, -1))
    assert not weights[..., 5:].any()
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 1, 12))


@pytest.mark.parametrize("causal", [False, True])
def test_probsparse_with_every_query_active_is_full(causal):
    query, key, value = parts(queries=30, keys=30)
    got = probsparse(query, key, value, causal=causal, factor=100.0)
    torch.testing.assert_close(got, full(query, key, value, causal=causal), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("causal", [False, True])
def test_probsparse_rows_are_full_attention_or_the_mean_of_what_they_may_see(causal):
    query, key, value = parts(queries=64, keys=64, heads=2, groups=2)
    real = torch.rand(2, 64, generator=torch.Generator().manual_seed(1)) > 0.3
    mask = real[:, None, None, :]
    got = probsparse(query, key, value, mask=mask, causal=causal, factor=2.0)
    allowed = mask.expand(2, 1, 64, 64)
    if causal:
        allowed = allowed & torch.ones(64, 64, dtype=torch.bool).tril()
    attended = by_hand(query, key, value, allowed)
    weights = allowed.float()
    mean = (weights @ value) / weights.sum(-1, keepdim=True).clamp(min=1)
    is_full = (got - attended).abs().amax(-1) < 1e-5
    is_mean = (got - mean).abs().amax(-1) < 1e-5
    assert (is_full | is_mean).all()
    chosen = (is_full & ~is_mean).sum(-1)
    if causal:
        assert (chosen >= 1).all()
        assert (chosen < 64).all()
    else:
        assert (chosen == math.ceil(2 * math.log(64))).all()


def attending(out, value, allowed, tolerance=1e-5):
    """Which rows are not the mean of the values they may see, ``[B, H, L]``."""
    value = value.repeat_interleave(out.shape[1] // value.shape[1], 1)
    weights = allowed.float()
    mean = (weights @ value) / weights.sum(-1, keepdim=True).clamp(min=1)
    return (out - mean).abs().amax(-1) > tolerance


@pytest.mark.parametrize("heads", [(1, 1), (6, 2), (6, 3)])
@pytest.mark.parametrize("masked", ["no", "keys", "queries too"])
def test_probsparse_chooses_the_queries_of_the_largest_measure(heads, masked):
    query, key, value = parts(2, *heads, 90, 90, seed=3)
    allowed = torch.ones(2, 1, 90, 90, dtype=torch.bool)
    real = None
    if masked != "no":
        real = torch.rand(2, 90, generator=torch.Generator().manual_seed(1)) > 0.4
        allowed = allowed & real[:, None, None]
    padding = real if masked == "queries too" else None
    mask = None if real is None else real[:, None, None]
    for factor in (0.5, 2.0):
        got = probsparse(query, key, value, mask=mask, query_padding_mask=padding, factor=factor)
        want = chosen_by_hand(query, key, allowed, factor=factor, real=padding)
        assert torch.equal(attending(got, value, allowed), want)


@pytest.mark.parametrize("heads", [(1, 1), (6, 2)])
@pytest.mark.parametrize("masked", [False, True])
def test_a_causal_query_is_chosen_among_those_up_to_its_place(heads, masked):
    """Place by place: the sample before its block, the measure, how many earlier ones are larger, and the bound."""
    factor, length = 1.5, 150
    query, key, value = parts(2, *heads, length, length, seed=7)
    real = torch.rand(2, length, generator=torch.Generator().manual_seed(1)) > (0.3 if masked else -1)
    allowed = real[:, None, None] & causal_pairs(length, length)
    begin, end = 0, 1
    while math.ceil(factor * math.log(end + 1)) >= end + 1:
        end += 1
    want = torch.zeros(2, heads[0], length, dtype=torch.bool)
    measures = torch.full((2, heads[0], length), -math.inf)
    while begin < length:
        for b, h in torch.cartesian_prod(torch.arange(2), torch.arange(heads[0])).tolist():
            there = real[b, :begin].nonzero().flatten()
            own = key[b, h * heads[1] // heads[0], there[even_places(len(there), factor)] if len(there) else there]
            for place in range(begin, end):
                if begin and len(there):
                    scores = own @ query[b, h, place] / math.sqrt(8)
                    measures[b, h, place] = scores.max() - scores.mean()
                larger = (measures[b, h, :place] > measures[b, h, place]).sum()
                want[b, h, place] = larger < max(1, math.ceil(factor * math.log(place + 1)))
        for part in want[:, :, begin:end].split(-(-(end - begin) // 2), -1) if begin else ():
            number = max(1, math.ceil(factor * math.log(end))) * math.log(end / begin) / 2
            part &= part.cumsum(-1) <= math.ceil(2 * number) + 4
        begin, end = end, min(end + max(8, end // 32 * 8), length)
    mask = real[:, None, None] if masked else None
    got = attending(probsparse(query, key, value, mask=mask, causal=True, factor=factor), value, allowed)
    alone = allowed.sum(-1).expand_as(want) <= 1  # full attention to one key is the mean of one
    assert torch.equal(got | alone, want | alone)
    assert 0 < want[:, :, 75:].float().mean() < 0.5


@pytest.mark.parametrize("length", [400, 2000])
def test_a_late_query_that_stands_out_attends_under_the_causal_mask(length):
    query, key, value = parts(1, 4, 4, length, length, width=32)
    query[:, :, -50] *= 20
    got = probsparse(query, key, value, causal=True)
    want = full(query, key, value, causal=True)
    torch.testing.assert_close(got[:, :, -50], want[:, :, -50], atol=1e-5, rtol=1e-5)
    seen = attending(got, value, causal_pairs(length, length)).float().mean()
    assert seen < 1000 / length  # few of them do


def test_a_trend_does_not_use_up_the_attention_of_late_queries():
    query, key, value = parts(1, 2, 2, 1000, 1000, width=16)
    query = query * torch.linspace(1, 3, 1000)[:, None]  # ever more telling
    seen = attending(probsparse(query, key, value, causal=True), value, causal_pairs(1000, 1000))
    assert (seen.unflatten(-1, (10, 100)).sum(-1) > 5).all()  # in every tenth


@pytest.mark.parametrize("causal", [False, True])
def test_padding_does_not_change_what_probsparse_gives(causal):
    query, key, value = parts(1, 6, 2, 200, 200)
    real = torch.arange(200)[None] < 60
    mask, short = real[:, None, None], [part[:, :, :60] for part in (query, key, value)]
    got = probsparse(query, key, value, mask=mask, query_padding_mask=real, causal=causal, factor=2.0)
    want = probsparse(*short, causal=causal, factor=2.0)
    torch.testing.assert_close(got[:, :, :60], want, atol=1e-5, rtol=1e-5)
    beside = [torch.cat((part, torch.randn_like(part))) for part in (query, key, value)]  # another in the batch
    both = torch.cat((real, torch.arange(200)[None] < 180))
    got = probsparse(*beside, mask=both[:, None, None], query_padding_mask=both, causal=causal, factor=2.0)
    torch.testing.assert_close(got[:1, :, :60], want, atol=1e-5, rtol=1e-5)


def test_causal_probsparse_of_a_beginning_is_the_beginning_of_probsparse():
    query, key, value = parts(2, 2, 1, 300, 300)
    whole = probsparse(query, key, value, causal=True, factor=2.0)
    for length in (1, 7, 100, 290):
        short = probsparse(*(part[:, :, :length] for part in (query, key, value)), causal=True, factor=2.0)
        torch.testing.assert_close(short, whole[:, :, :length], atol=1e-5, rtol=1e-5)


def test_the_choice_of_probsparse_holds_under_autocast():
    query, key, value = parts(queries=160, keys=160, width=64)
    query, key = query * 60, key * 60  # unscaled products would overflow half precision
    everything = torch.ones(160, 160)
    want = attending(probsparse(query, key, value), value, everything, 0.05)
    with torch.autocast("cpu", torch.float16):
        assert torch.equal(attending(probsparse(query, key, value).float(), value, everything, 0.05), want)
    half = [part.half() for part in (query, key, value)]
    same = attending(probsparse(*half).float(), value, everything, 0.05) == want
    assert same.float().mean() > 0.98  # two measures may be equal after rounding


def test_probsparse_repeats_at_evaluation_and_draws_in_training():
    query, key, value = parts(queries=64, keys=64)
    first = probsparse(query, key, value, factor=1.0)
    torch.manual_seed(5)
    assert torch.equal(first, probsparse(query, key, value, factor=1.0))
    assert not torch.equal(first, probsparse(query, key, value, factor=1.0, training=True))


def test_causal_probsparse_never_sees_the_future():
    query, key, value = parts(queries=96, keys=96)
    before = probsparse(query, key, value, causal=True, factor=1.0)
    for tensor in (query, key, value):
        tensor[:, :, 60:] += 3.0
    after = probsparse(query, key, value, causal=True, factor=1.0)
    assert torch.equal(before[:, :, :60], after[:, :, :60])
    assert not torch.equal(before[:, :, 60:], after[:, :, 60:])


def test_masked_keys_have_no_influence_on_probsparse():
    query, key, value = parts(queries=64, keys=64)
    real = torch.ones(2, 64, dtype=torch.bool)
    real[:, 50:] = False
    mask = real[:, None, None, :]
    before = probsparse(query, key, value, mask=mask, factor=1.0)
    key[:, :, 50:] = 100.0
    value[:, :, 50:] = -100.0
    assert torch.equal(before, probsparse(query, key, value, mask=mask, factor=1.0))


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=40))
@settings(max_examples=50, deadline=None)
def test_earlier_and_larger_counts(values):
    want = [sum(earlier > value for earlier in values[:i]) for i, value in enumerate(values)]
    assert _earlier_and_larger(torch.tensor(values, dtype=torch.float32)).tolist() == want


@given(
    rows=st.integers(1, 11), columns=st.integers(1, 11), window=st.integers(1, 5), data=st.data(), padded=st.booleans()
)
@settings(max_examples=60, deadline=None)
def test_window2d_is_full_attention_under_the_mask_of_the_windows(rows, columns, window, data, padded):
    shift = data.draw(st.integers(0, window - 1))
    length = rows * columns
    query, key, value = parts(heads=2, groups=2, queries=length, keys=length, seed=rows * columns)
    real = torch.ones(2, length, dtype=torch.bool)
    if padded:
        real = torch.rand(2, length, generator=torch.Generator().manual_seed(3)) > 0.3

    # The definition, without any roll: windows start at `shift` within a grid of whole windows, and the
    # strips before the first and after the last start are windows of their own.
    def strip(place, extent):
        whole = extent + -extent % window
        return (place - shift) // window if shift and extent > window else place // window, whole

    def label(place, extent):
        return strip(place, extent)[0]

    row = torch.tensor([label(r, rows) for r in range(rows) for _ in range(columns)])
    column = torch.tensor([label(c, columns) for _ in range(rows) for c in range(columns)])
    together = (row[:, None] == row[None]) & (column[:, None] == column[None])
    want = by_hand(query, key, value, together[None, None] & real[:, None, None, :])
    got = window2d(
        query, key, value, grid=(rows, columns), window=window, shift=shift, key_padding_mask=real if padded else None
    )
    torch.testing.assert_close(got, want, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_stays_finite_at_large_scores(dtype):
    query, key, value = (p.to(dtype) for p in parts(queries=48, keys=48, width=4))
    query, key = query * 100, key * 100
    outputs = {
        "full": full(query, key, value),
        "probsparse": probsparse(query, key, value, factor=1.0),
        "causal probsparse": probsparse(query, key, value, factor=1.0, causal=True),
        "local": local(query, key, value, window=5, global_tokens=2),
        "linear": linear(query, key, value),
        "causal linear": linear(query, key, value, causal=True),
        "prototype": prototype(query, key, value, summary=summarise(query[0, :, :6], key)),
        "additive": additive(query, key, value, score=query[0, :, 0]),
        "window2d": window2d(query, key, value, grid=(6, 8), window=4, shift=2),
        "sigmoid": full(query, key, value, normalise="sigmoid"),
    }
    for name, out in outputs.items():
        assert out.dtype == dtype, name
        assert torch.isfinite(out).all(), name


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_softmax_runs_in_single_precision(dtype):
    """Half precision in and out, but within its rounding of the result in single precision."""
    query, key, value = parts(queries=40, keys=400, width=16)
    half = [p.to(dtype) for p in (query, key, value)]
    single = full(*(p.float() for p in half))
    epsilon = torch.finfo(dtype).eps
    for out in (
        full(*half), local(*half, window=400), attention_weights(*half[:2]).to(dtype) @ half[2],
        prototype(*half, summary=torch.eye(400, dtype=dtype).expand(1, 1, -1, -1)),
    ):  # fmt: skip
        torch.testing.assert_close(out.float(), single, atol=4 * epsilon, rtol=4 * epsilon)


@given(
    batch=st.integers(1, 2), heads=st.sampled_from([1, 2, 4]), queries=st.integers(1, 60), keys=st.integers(1, 60),
    causal=st.booleans(), factor=st.sampled_from([0.3, 1.0, 3.0]), masked=st.sampled_from(["no", "keys", "pairs"]),
    seed=st.integers(0, 9),
)  # fmt: skip
@settings(max_examples=120, deadline=None)
def test_every_row_of_probsparse_is_full_attention_or_a_mean(batch, heads, queries, keys, causal, factor, masked, seed):
    """Batch 1, one head, L = 1, L != S, fewer keys than the sample: all of it."""
    query, key, value = parts(batch, heads, 1, queries, keys, seed=seed)
    query = query.transpose(2, 3).contiguous().transpose(2, 3)  # of other strides
    allowed = torch.ones(batch, 1, queries, keys, dtype=torch.bool)
    mask = None
    if masked != "no":
        shape = (batch, 1, 1, keys) if masked == "keys" else (batch, 1, queries, keys)
        mask = torch.rand(shape, generator=torch.Generator().manual_seed(seed)) > 0.4
        allowed = allowed & mask
    if causal:
        allowed = allowed & torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries)
    got = probsparse(query, key, value, mask=mask, causal=causal, factor=factor)
    attended = by_hand(query, key, value, allowed)
    weights = allowed.float()
    mean = (weights @ value) / weights.sum(-1, keepdim=True).clamp(min=1)
    near = [(got - each).abs().amax(-1) < 1e-5 for each in (attended, mean)]
    assert (near[0] | near[1]).all()


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_gradients_of_probsparse_are_right(causal, masked):
    query, key, value = (p.requires_grad_() for p in parts(1, 2, 1, 14, 11, width=3, dtype=torch.float64))
    mask = torch.rand(1, 1, 1, 11, generator=torch.Generator().manual_seed(0)) > 0.3 if masked else None
    assert torch.autograd.gradcheck(
        lambda q, k, v: probsparse(q, k, v, mask=mask, causal=causal, factor=1.2), (query, key, value)
    )


@pytest.mark.parametrize("mechanism", ["local", "linear", "window2d"])
def test_gradients_of_the_other_kernels_are_right(mechanism):
    query, key, value = (p.requires_grad_() for p in parts(1, 2, 2, 15, 15, width=3, dtype=torch.float64))
    kernels = {
        "local": lambda q, k, v: local(q, k, v, window=2, global_tokens=1, causal=True),
        "linear": lambda q, k, v: linear(q, k, v, causal=True),
        "window2d": lambda q, k, v: window2d(q, k, v, grid=(3, 5), window=2, shift=1),
    }
    assert torch.autograd.gradcheck(kernels[mechanism], (query, key, value))


@pytest.mark.parametrize("causal", [False, True])
def test_dropout_of_probsparse_is_applied(causal):
    query, key, value = parts(queries=64, keys=64)
    torch.manual_seed(1)
    dropped = probsparse(query, key, value, causal=causal, factor=1.0, dropout=0.5)
    plain = probsparse(query, key, value, causal=causal, factor=1.0)
    changed = (dropped - plain).abs().amax(-1) > 1e-5
    assert 0 < changed.sum() < changed.numel() / 2  # the chosen rows, and no others


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("gap", [slice(0, 70), slice(20, 70)])
def test_padding_takes_no_part_in_the_choice(causal, training, gap):
    query, key, value = parts(2, 6, 2, 120, 120)
    real = torch.ones(2, 120, dtype=torch.bool)
    real[0, gap] = False
    options = {"mask": real[:, None, None], "query_padding_mask": real, "causal": causal, "factor": 1.0}
    torch.manual_seed(0)
    before = probsparse(query, key, value, training=training, **options)
    query[0, :, gap] *= 50  # padded queries that would be the most telling, and padded keys that would make others so
    key[0, :, gap] *= 50
    torch.manual_seed(0)
    after = probsparse(query, key, value, training=training, **options)
    assert torch.equal(before[0][:, real[0]], after[0][:, real[0]])
    assert torch.equal(before[1], after[1])
