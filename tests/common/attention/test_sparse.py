"""Sliding windows, prototypes, linear and additive attention, and the cache, each against its definition."""

import sys

import pytest
import torch
from attention_reference import HEADS, by_hand, parts
from hypothesis import given, settings
from hypothesis import strategies as st

from common.attention import (
    additive,
    full,
    linear,
    local,
    probsparse,
    prototype,
    summarise,
)
from common.attention.backend import flex_pays, windowed_flex


def band(queries, keys, window, count, causal):
    """The pattern, pair by pair."""
    seen = torch.zeros(queries, keys, dtype=torch.bool)
    for i in range(queries):
        for j in range(keys):
            place = i + keys - queries
            near = abs(place - j) <= window or j < count or place < count
            seen[i, j] = near and (j <= place or not causal)
    return seen


@given(
    queries=st.integers(1, 40), keys=st.integers(1, 40), window=st.integers(0, 12), count=st.integers(0, 3),
    causal=st.booleans(), heads=st.sampled_from(HEADS), masked=st.sampled_from(["no", "keys", "pairs"]),
    block=st.sampled_from([4, 7]),
)  # fmt: skip
@settings(max_examples=150, deadline=None)
def test_local_is_full_attention_under_its_band(queries, keys, window, count, causal, heads, masked, block):
    query, key, value = parts(2, *heads, queries=queries, keys=keys)
    seen = band(queries, keys, window, count, causal)[None, None]
    mask = None
    if masked != "no":
        shape = (2, 1, 1, keys) if masked == "keys" else (2, 1, queries, keys)
        mask = torch.rand(shape, generator=torch.Generator().manual_seed(1)) > 0.4
        seen = seen & mask
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules[local.__module__], "BLOCK", block)  # so that small examples have several blocks
        got = local(query, key, value, window=window, global_tokens=count, mask=mask, causal=causal)
    torch.testing.assert_close(got, by_hand(query, key, value, seen), atol=1e-5, rtol=1e-5)


def test_a_window_of_the_whole_sequence_is_full():
    query, key, value = parts(queries=300, keys=300, heads=2, groups=2)
    for causal in (False, True):
        got = local(query, key, value, window=300, causal=causal)
        torch.testing.assert_close(got, full(query, key, value, causal=causal), atol=1e-5, rtol=1e-5)


def test_gradients_of_local_are_those_of_its_band(monkeypatch):
    monkeypatch.setattr(sys.modules[local.__module__], "BLOCK", 8)
    query, key, value = (p.requires_grad_() for p in parts(queries=50, keys=50, dtype=torch.float64))
    local(query, key, value, window=3, global_tokens=2).square().sum().backward()
    got = [p.grad.clone() for p in (query, key, value)]
    for p in (query, key, value):
        p.grad = None
    full(query, key, value, mask=band(50, 50, 3, 2, False)).square().sum().backward()
    for mine, p in zip(got, (query, key, value), strict=True):
        torch.testing.assert_close(mine, p.grad)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("queries", [200, 150])
def test_backends_agree_on_windows(queries, causal):
    query, key, value = parts(queries=queries, keys=200, heads=4, groups=2, width=16)
    pattern = {"window": 20, "global_tokens": 3, "causal": causal}
    flex = windowed_flex(query, key, value, **pattern)
    torch.testing.assert_close(local(query, key, value, **pattern), flex, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("masked", [False, True])
def test_backends_of_torch_agree(masked):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    query, key, value = parts(queries=33, keys=65, heads=4, groups=2, width=16)
    mask = torch.rand(2, 1, 33, 65, generator=torch.Generator().manual_seed(0)) > 0.5 if masked else None
    outputs = []
    for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.MATH):
        with sdpa_kernel(backend):
            outputs.append(full(query, key, value, mask=mask))
    torch.testing.assert_close(outputs[0], outputs[1], atol=1e-5, rtol=1e-5)


@given(
    queries=st.integers(1, 300), keys=st.integers(1, 300), causal=st.booleans(), heads=st.sampled_from(HEADS),
    masked=st.booleans(),
)  # fmt: skip
@settings(max_examples=40, deadline=None)
def test_linear_is_its_quadratic_form(queries, keys, causal, heads, masked):
    query, key, value = parts(2, *heads, queries=queries, keys=keys)
    times = heads[0] // heads[1]
    real = torch.ones(2, 1, 1, keys, dtype=torch.bool)
    if masked:
        real = torch.rand(real.shape, generator=torch.Generator().manual_seed(2)) > 0.3

    def phi(x):
        return torch.where(x > 0, x + 1, torch.exp(x))

    weights = phi(query) @ phi(key).repeat_interleave(times, 1).transpose(-2, -1) * real
    if causal:
        weights = weights * torch.ones(queries, keys).tril(keys - queries)
    want = weights @ value.repeat_interleave(times, 1) / weights.sum(-1, keepdim=True).clamp(min=1e-30)
    for block, chunk in ((4096, 128), (50, 16)):  # as they are, and so small that there are several
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys.modules[linear.__module__], "BLOCK", block)
            patch.setattr(sys.modules[linear.__module__], "CHUNK", chunk)
            got = linear(query, key, value, mask=real if masked else None, causal=causal)
        torch.testing.assert_close(got, want, atol=1e-5, rtol=1e-5)


def test_causal_linear_never_sees_the_future():
    query, key, value = parts(queries=300, keys=300)
    before = linear(query, key, value, causal=True)
    for part in (query, key, value):
        part[:, :, 200:] += 2.0
    assert torch.equal(before[:, :, :200], linear(query, key, value, causal=True)[:, :, :200])


def test_prototypes_that_are_the_keys_are_full():
    query, key, value = parts(queries=20, keys=30, groups=2)
    got = prototype(query, key, value, summary=torch.eye(30)[None, None])
    torch.testing.assert_close(got, full(query, key, value), atol=1e-5, rtol=1e-5)


def test_prototypes_sum_up_what_they_attend_to_and_leave_out_padding():
    query, key, value = parts(queries=20, keys=30)
    learned = torch.randn(4, 5, 8, generator=torch.Generator().manual_seed(3))
    real = torch.ones(2, 1, 1, 30, dtype=torch.bool)
    real[1, ..., 17:] = False
    summary = summarise(learned, key, mask=real)
    assert summary.shape == (2, 4, 5, 30)
    spread = learned.expand(2, -1, -1, -1)
    short = by_hand(query, by_hand(spread, key, key, real), by_hand(spread, key, value, real))
    torch.testing.assert_close(prototype(query, key, value, summary=summary), short, atol=1e-5, rtol=1e-5)
    key[1, :, 17:] = 1e3
    assert torch.equal(summarise(learned, key, mask=real), summary)


@given(queries=st.integers(1, 5), keys=st.integers(1, 7), causal=st.booleans(), heads=st.sampled_from(HEADS))
@settings(max_examples=25, deadline=None)
def test_additive_is_its_formula(queries, keys, causal, heads):
    query, key, value = parts(2, *heads, queries=queries, keys=keys)
    score = torch.randn(heads[0], 8, generator=torch.Generator().manual_seed(4))
    got = additive(query, key, value, score=score, causal=causal)
    for b, h, i in torch.cartesian_prod(torch.arange(2), torch.arange(heads[0]), torch.arange(queries)).tolist():
        g = h * heads[1] // heads[0]
        last = i + keys - queries if causal else keys - 1
        if last < 0:
            assert not got[b, h, i].any()
            continue
        scores = torch.stack([(score[h] * torch.tanh(query[b, h, i] + key[b, g, j])).sum() for j in range(last + 1)])
        want = scores.softmax(0) @ value[b, g, : last + 1]
        torch.testing.assert_close(got[b, h, i], want, atol=1e-5, rtol=1e-5)


def test_the_fast_path_for_windows_is_taken_where_its_kernels_can():
    class OnGpu:  # what is asked of a tensor on a GPU
        is_cuda = True

        def __init__(self, *shape):
            self.shape = shape

    assert flex_pays(OnGpu(1, 8, 8192, 64), masked=False, dropout=0.0)
    for shape, masked, dropout in (
        ((1, 8, 1024, 64), False, 0.0), ((1, 8, 8192, 8), False, 0.0), ((1, 8, 8192, 64), True, 0.0),
        ((1, 8, 8192, 64), False, 0.1),
    ):  # fmt: skip
        assert not flex_pays(OnGpu(*shape), masked=masked, dropout=dropout)
    assert not flex_pays(torch.zeros(1, 8, 8192, 64), masked=False, dropout=0.0)


@pytest.mark.parametrize("queries", [1, 100])
def test_a_few_last_queries_look_at_their_window_alone(queries):
    """Decoding must not go over all that came before: keys out of sight may hold anything."""
    query, key, value = parts(queries=queries, keys=5000)
    want = local(query, key, value, window=50, global_tokens=2, causal=True)
    key[:, :, 2 : 5000 - queries - 50] = float("nan")
    torch.testing.assert_close(local(query, key, value, window=50, global_tokens=2, causal=True), want)


def test_linear_is_as_wide_as_its_input():
    query, key, value = parts(queries=600, keys=600, dtype=torch.float64)

    def phi(x):
        return torch.where(x > 0, x + 1, x.exp())

    weights = (phi(query) @ phi(key).transpose(-2, -1)).tril()
    want = weights @ value / weights.sum(-1, keepdim=True)
    torch.testing.assert_close(linear(query, key, value, causal=True), want, atol=1e-12, rtol=1e-12)


def test_masks_and_dropout_keep_windows_from_the_fast_path(monkeypatch):
    asked = []

    def pays(query, *, masked, dropout):
        asked.append((masked, dropout))
        return False

    monkeypatch.setattr(sys.modules[local.__module__], "flex_pays", pays)
    query, key, value = parts()
    local(query, key, value, window=2)
    local(query, key, value, window=2, mask=torch.ones(12, 12, dtype=torch.bool))
    local(query, key, value, window=2, dropout=0.5)
    assert asked == [(False, 0.0), (True, 0.0), (False, 0.5)]


def test_linear_holds_where_features_are_tiny():
    query, key, value = parts(queries=5, keys=9)
    got = linear(query * 0 - 24, key, value)
    weights = torch.where(key > 0, key + 1, key.exp()).sum(-1)[..., None]
    torch.testing.assert_close(
        got, (weights * value).sum(2, keepdim=True).expand_as(got) / weights.sum(2, keepdim=True)
    )


def test_running_sums_do_not_drift():
    from common.attention.probsparse import _running_sums

    values = torch.rand(1, 1, 200_000, 2, generator=torch.Generator().manual_seed(0)) + 100
    exact = values.double().cumsum(2)
    worst = ((_running_sums(values) - exact).abs() / exact).max()
    assert worst < 2e-7  # a rounding or two


@pytest.mark.parametrize("causal", [False, True])
def test_linear_stays_in_single_precision_under_autocast(causal):
    query, key, value = parts(batch=1, heads=1, groups=1, queries=20_000, keys=20_000, width=16)
    want = linear(query, key + 1, value, causal=causal)
    with torch.autocast("cpu", torch.float16):
        torch.testing.assert_close(linear(query, key + 1, value, causal=causal), want)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", ["no", "keys", "pairs"])
def test_means_of_many_large_values_fit_half_precision(causal, masked):
    query, key, value = (p.half() for p in parts(1, 1, 1, 300, 9_000, width=2))
    value = value.abs() + 50
    shape = {"no": None, "keys": (1, 1, 1, 9_000), "pairs": (300, 9_000)}[masked]
    mask = None if shape is None else torch.ones(shape, dtype=torch.bool)
    for dropout in (0.0, 0.1):
        out = probsparse(query, key, value, mask=mask, causal=causal, factor=1.0, dropout=dropout)
        assert torch.isfinite(out).all()
        plain = (out - 50.8).abs().amax(-1) < 0.5
        assert plain.float().mean() > 0.8  # the means


@pytest.mark.parametrize("shape", [(2, 1, 1, 1), (2, 1, 60, 1), (60, 1), (1, 4, 60, 60)])
@pytest.mark.parametrize("dropout", [0.0, 1e-9])
def test_masks_broadcast_over_keys_in_probsparse(shape, dropout):
    query, key, value = parts(queries=60, keys=60)
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(0)) > 0.3
    got = probsparse(query, key, value, mask=mask, factor=1.0, dropout=dropout)
    whole = mask.expand(2, 4, 60, 60) if mask.dim() == 4 else mask.expand(60, 60).expand(2, 4, 60, 60)
    torch.testing.assert_close(got, probsparse(query, key, value, mask=whole.clone(), factor=1.0))


def test_no_keys_at_all_give_zeros():
    query, key, value = parts(queries=60, keys=0)
    for out in (probsparse(query, key, value, factor=1.0), full(query, key, value), linear(query, key, value)):
        assert torch.equal(out, torch.zeros(2, 4, 60, 8))
    assert torch.equal(local(query, key, value, window=3, global_tokens=9), torch.zeros(2, 4, 60, 8))


def test_the_mean_keeps_its_gradient_beside_large_ones_in_half_precision():
    query, key, value = (p.half().requires_grad_() for p in parts(1, 1, 1, 1000, 40))
    gradient = torch.full((1, 1, 1000, 8), 1e-3).half()
    with torch.no_grad():
        chosen = (probsparse(query, key, value, factor=1.0) - value.mean(2, keepdim=True)).abs().amax(-1) > 1e-2
    gradient[chosen] = 500.0
    probsparse(query, key, value, factor=1.0).backward(gradient)
    few = value.grad.clone()
    value.grad = None
    gradient[~chosen] = 0.0
    probsparse(query, key, value, factor=1.0).backward(gradient)
    assert (few - value.grad).abs().max() > 0  # what the mean adds: about 0.001 * 993 / 40 for each value


def test_transforms_of_functions_know_probsparse():
    query, key, value = parts(queries=60, keys=60)
    grad = torch.func.grad(lambda q: probsparse(q, key, value, factor=1.0).square().sum())(query)
    query.requires_grad_()
    probsparse(query, key, value, factor=1.0).square().sum().backward()
    torch.testing.assert_close(grad, query.grad)
