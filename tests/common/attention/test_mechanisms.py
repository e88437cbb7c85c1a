"""Mechanisms against independent references."""

import math

import pytest
import torch
from attention_reference import by_hand, parts
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from common.attention import (
    MECHANISMS,
    Attention,
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
from common.attention.probsparse import _earlier_and_larger
from common.errors import ShapeError


@given(
    batch=st.integers(1, 2), heads=st.sampled_from([1, 2, 4]), queries=st.integers(1, 9), keys=st.integers(1, 9),
    causal=st.booleans(), masked=st.booleans(), seed=st.integers(0, 99),
)  # fmt: skip
@settings(max_examples=40, deadline=None)
def test_full_is_the_written_out_formula(batch, heads, queries, keys, causal, masked, seed):
    query, key, value = parts(batch, heads, heads, queries, keys, seed=seed)
    allowed = torch.ones(batch, 1, queries, keys, dtype=torch.bool)
    mask = None
    if masked:
        mask = torch.rand(batch, 1, queries, keys, generator=torch.Generator().manual_seed(seed)) > 0.5
        allowed = allowed & mask
    if causal:
        allowed = allowed & torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries)
    got = full(query, key, value, mask=mask, causal=causal)
    torch.testing.assert_close(got, by_hand(query, key, value, allowed), atol=1e-5, rtol=1e-5)
    weights = attention_weights(query, key, mask=mask, causal=causal)
    torch.testing.assert_close(weights @ value, got, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("cross", [False, True])
@pytest.mark.parametrize("padded", [False, True])
def test_module_is_torch_multihead_attention(cross, padded):
    torch.manual_seed(0)
    ours = Attention(32, 4)
    theirs = nn.MultiheadAttention(32, 4, batch_first=True)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([ours.query.weight, ours.key.weight, ours.value.weight]))
        theirs.in_proj_bias.copy_(torch.cat([ours.query.bias, ours.key.bias, ours.value.bias]))
        theirs.out_proj.weight.copy_(ours.output.weight)
        theirs.out_proj.bias.copy_(ours.output.bias)
    tokens = torch.randn(3, 10, 32)
    memory = torch.randn(3, 7, 32) if cross else tokens
    real = torch.ones(3, memory.shape[1], dtype=torch.bool)
    if padded:
        real[1, 4:] = False
    causal = not cross
    forbidden = ~torch.ones(10, 10, dtype=torch.bool).tril() if causal else None
    want, _ = theirs(tokens, memory, memory, key_padding_mask=~real, attn_mask=forbidden)
    got = ours(tokens, memory if cross else None, key_padding_mask=real if padded else None, causal=causal)
    torch.testing.assert_close(got, want, atol=1e-5, rtol=1e-5)


def test_grouped_heads_are_repeated_keys_and_values():
    query, key, value = parts(heads=6, groups=2)
    repeated = full(query, key.repeat_interleave(3, 1), value.repeat_interleave(3, 1))
    torch.testing.assert_close(full(query, key, value), repeated, atol=1e-6, rtol=1e-5)


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


def test_probsparse_chooses_the_queries_of_the_largest_measure():
    query, key, value = parts(queries=50, keys=50, heads=1, groups=1, batch=1)
    got = probsparse(query, key, value, factor=100 / math.log(50) / 10)  # 10 queries, 16 sampled keys
    sample = torch.arange(2, 48, 3)
    scores = (query[0, 0] @ key[0, 0, sample].T) / math.sqrt(8)
    best = set((scores.amax(1) - scores.mean(1)).topk(10).indices.tolist())
    moved = (got[0, 0] - value[0, 0].mean(0)).abs().amax(-1) > 1e-5
    assert set(moved.nonzero().flatten().tolist()) == best


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


@pytest.mark.parametrize("shift", [0, 2])
def test_window2d_module_is_the_swin_attention_of_timm(shift):
    from timm.models.swin_transformer import SwinTransformerBlock

    torch.manual_seed(0)
    block = SwinTransformerBlock(
        16, input_resolution=(8, 12), num_heads=2, head_dim=8, window_size=4, shift_size=shift
    ).eval()
    ours = Attention(16, 2, mechanism="window2d", window=4, shift=shift, position="relative").eval()
    with torch.no_grad():
        block.attn.relative_position_bias_table.normal_()
        for name, part in zip(("query", "key", "value"), range(3), strict=True):
            rows = slice(16 * part, 16 * part + 16)
            getattr(ours, name).weight.copy_(block.attn.qkv.weight[rows])
            getattr(ours, name).bias.copy_(block.attn.qkv.bias[rows])
        ours.output.load_state_dict(block.attn.proj.state_dict())
        ours.bias.table.copy_(block.attn.relative_position_bias_table)
        field = torch.randn(2, 8, 12, 16)
        want = block._attn(field)
        got = ours(field.flatten(1, 2), grid=(8, 12)).reshape(2, 8, 12, 16)
    torch.testing.assert_close(got, want, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_gradients_reach_every_projection(mechanism):
    torch.manual_seed(0)
    module = Attention(16, 2, mechanism=mechanism, window=4, factor=1.0, prototypes=5, qk_norm=True)
    out = module(torch.randn(2, 48, 16), grid=(6, 8) if mechanism == "window2d" else None)
    out.square().sum().backward()
    for name, parameter in module.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        assert parameter.grad.abs().sum() > 0, name


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


def test_wrong_use_is_refused_with_the_remedy():
    attention = Attention(16, 2)
    tokens = torch.randn(3, 6, 16)
    with pytest.raises(ShapeError, match="key_padding_mask"):
        attention(tokens, mask=torch.ones(3, 6, dtype=torch.bool))
    with pytest.raises(ShapeError, match="boolean"):
        attention(tokens, mask=torch.zeros(6, 6))
    with pytest.raises(ShapeError, match="True where a key is real"):
        attention(tokens, key_padding_mask=torch.ones(3, 5, dtype=torch.bool))
    with pytest.raises(ShapeError, match="does not divide by 3 heads"):
        Attention(16, 3)
    with pytest.raises(ShapeError, match="cannot share 2"):
        Attention(15, 3, kv_heads=2)
    with pytest.raises(ShapeError, match="cannot share 4"):
        full(*parts(heads=6, groups=4))
    with pytest.raises(ShapeError, match="grid"):
        Attention(16, 2, mechanism="window2d")(tokens)


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


def test_padded_queries_take_no_place_among_the_chosen():
    torch.manual_seed(0)
    module = Attention(16, 2, mechanism="probsparse", factor=1.0).eval()
    tokens = torch.randn(2, 64, 16)
    real = torch.ones(2, 64, dtype=torch.bool)
    real[0, 40:] = False
    before = module(tokens, key_padding_mask=real)
    tokens[0, 40:] *= 50  # large queries, that would be the most telling
    after = module(tokens, key_padding_mask=real)
    assert torch.equal(before[0, :40], after[0, :40])
    assert torch.equal(before[1], after[1])


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


@pytest.mark.parametrize("shift", [0, 2])
@pytest.mark.parametrize("grid", [(7, 9), (5, 12), (3, 2)])
def test_windows_of_odd_grids_are_those_of_timm_without_the_padding(grid, shift):
    """timm's window attention on the padded grid, under a mask that leaves out padding and other sides of a seam.

    timm's own block differs there: its queries attend to the padding, and since it rolls before it pads, a shift
    brings opposite borders together that its mask does not part.
    """
    from timm.models.swin_transformer import WindowAttention, window_partition, window_reverse
    from torch.nn.functional import pad

    torch.manual_seed(0)
    theirs = WindowAttention(16, num_heads=2, head_dim=8, window_size=4).eval()
    nn.init.normal_(theirs.relative_position_bias_table)
    ours = Attention(16, 2, mechanism="window2d", window=4, shift=shift, position="relative").eval()
    with torch.no_grad():
        for part, layer in enumerate((ours.query, ours.key, ours.value)):
            layer.weight.copy_(theirs.qkv.weight[16 * part : 16 * part + 16])
            layer.bias.copy_(theirs.qkv.bias[16 * part : 16 * part + 16])
        ours.bias.table.copy_(theirs.relative_position_bias_table)
    ours.output.load_state_dict(theirs.proj.state_dict())
    field = torch.randn(2, *grid, 16)
    rows, columns = (-(-side // 4) * 4 for side in grid)
    margin = (0, 0, 0, columns - grid[1], 0, rows - grid[0])
    shifts = [shift if side > 4 else 0 for side in grid]  # one window is not shifted
    # 0 is padding; a row or column that the roll takes to the other side is of another region.
    region = 1 + (torch.arange(rows)[:, None] < shifts[0]) + 2 * (torch.arange(columns) < shifts[1])
    region[grid[0] :], region[:, grid[1] :] = 0, 0
    moved = [part.roll((-shifts[0], -shifts[1]), (1, 2)) for part in (pad(field, margin), region[None, ..., None])]
    windows, regions = (window_partition(part, (4, 4)).flatten(1, 2) for part in moved)
    seen = (regions == regions.transpose(1, 2)) & (regions.transpose(1, 2) > 0)  # [windows, 16, 16]
    mixed = theirs(windows, mask=torch.where(seen, 0.0, -1e9))
    want = window_reverse(mixed.unflatten(1, (4, 4)), (4, 4), rows, columns).roll(shifts, (1, 2))
    got = ours(field.flatten(1, 2), grid=grid).unflatten(1, grid)
    torch.testing.assert_close(got, want[:, : grid[0], : grid[1]], atol=1e-5, rtol=1e-5)
