"""Mechanisms against independent references."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from common.attention import Attention, attention_weights, full, probsparse, window2d
from common.attention.probsparse import _earlier_and_larger
from common.errors import ShapeError


def parts(batch=2, heads=4, groups=4, queries=12, keys=12, width=8, seed=0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)

    def make(*shape):
        return torch.randn(*shape, generator=generator, dtype=dtype)

    return make(batch, heads, queries, width), make(batch, groups, keys, width), make(batch, groups, keys, width)


def by_hand(query, key, value, mask=None):
    """Softmax attention written out; rows with nothing to attend to are zero."""
    scores = torch.einsum("bhld,bhsd->bhls", query, key) / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = torch.exp(scores - scores.amax(-1, keepdim=True).nan_to_num(neginf=0.0))
    weights = weights / weights.sum(-1, keepdim=True).clamp(min=1e-30)
    return torch.einsum("bhls,bhsd->bhld", weights, value)


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


@pytest.mark.parametrize("mechanism", [full, probsparse])
def test_a_row_with_nothing_to_attend_to_is_zero_with_finite_gradients(mechanism):
    query, key, value = (p.requires_grad_() for p in parts(queries=40, keys=40))
    mask = torch.ones(2, 1, 40, 40, dtype=torch.bool)
    mask[0, 0, 3] = False
    options = {"factor": 1.0} if mechanism is probsparse else {}
    out = mechanism(query, key, value, mask=mask, **options)
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
    got = probsparse(query, key, value, factor=100 / math.log(50) / 10)  # 10 queries, 10 sampled keys
    sample = ((torch.arange(10) + 0.5) * 5).long()
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
        return (place - shift) // window if shift else place // window, whole

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


@pytest.mark.parametrize("mechanism", ["full", "probsparse", "window2d"])
def test_gradients_reach_every_projection(mechanism):
    torch.manual_seed(0)
    module = Attention(16, 2, mechanism=mechanism, window=4, factor=1.0, qk_norm=True)
    out = module(torch.randn(2, 48, 16), grid=(6, 8) if mechanism == "window2d" else None)
    out.square().sum().backward()
    for name, parameter in module.named_parameters():
        if name == "key.bias":
            continue  # a constant added to every key cancels in the softmax unless normalised
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        assert parameter.grad.abs().sum() > 0, name


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_stays_finite_at_large_scores(dtype):
    query, key, value = (p.to(dtype) for p in parts(queries=48, keys=48, width=4))
    query, key = query * 100, key * 100
    for out in (full(query, key, value), probsparse(query, key, value, factor=1.0)):
        assert out.dtype == dtype
        assert torch.isfinite(out).all()


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
