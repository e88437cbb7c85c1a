"""The attention module: projections, options, masks and caches, around mechanisms that are tested by themselves."""

import math

import pytest
import torch
from attention_reference import OWN, by_hand, causal_pairs, parts
from torch import nn

from common.attention import (
    MECHANISMS,
    Attention,
    KeyValueCache,
    additive,
    attention_weights,
    full,
    linear,
    local,
    probsparse,
    prototype,
    summarise,
    window2d,
)
from common.errors import ShapeError

GRID = {"window2d": {"grid": (6, 8)}}


def make(mechanism, dim=16, heads=4, **options):
    torch.manual_seed(0)
    return Attention(dim, heads, mechanism=mechanism, **OWN.get(mechanism, {}), **options)


def projected(module, tokens, memory=None):
    """Query, key and value of a module, by its layers."""
    source = tokens if memory is None else memory

    def split(layer, part):
        return layer(part).unflatten(-1, (-1, module.width)).transpose(1, 2)

    return split(module.query, tokens), split(module.key, source), split(module.value, source)


def merged(module, mixed):
    return module.output(mixed.transpose(1, 2).flatten(2))


@pytest.mark.parametrize("kv_heads", [6, 3, 2, 1])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_module_is_its_mechanism_between_projections(mechanism, kv_heads):
    module = make(mechanism, dim=48, heads=6, kv_heads=kv_heads).eval()
    tokens = torch.randn(2, 48, 48)
    real = torch.rand(2, 48) > 0.3
    q, k, v = projected(module, tokens.masked_fill(~real[..., None], 0.0))
    q = projected(module, tokens)[0]
    mask = real[:, None, None]
    pairs = torch.rand(48, 48) > 0.3
    with torch.no_grad():
        got = module(tokens, key_padding_mask=real, **GRID.get(mechanism, {}))
        want = {
            "full": lambda: full(q, k, v, mask=mask),
            "probsparse": lambda: probsparse(q, k, v, mask=mask, query_padding_mask=real, factor=1.0),
            "local": lambda: local(q, k, v, mask=mask, window=4),
            "linear": lambda: linear(q, k, v, mask=mask),
            "prototype": lambda: prototype(q, k, v, summary=summarise(module.prototypes, k, mask=mask)),
            "additive": lambda: additive(q, k, v, mask=mask, score=module.score),
            "window2d": lambda: window2d(q, k, v, grid=(6, 8), window=4, key_padding_mask=real),
        }[mechanism]
        torch.testing.assert_close(got, merged(module, want()), atol=1e-5, rtol=1e-5)
        if mechanism in ("full", "local", "additive", "probsparse"):  # both masks at once, and causal
            both = mask & pairs & causal_pairs(48, 48)
            got = module(tokens, mask=pairs, key_padding_mask=real, causal=True)
            for name, call in {
                "full": lambda: full(q, k, v, mask=both),
                "local": lambda: local(q, k, v, mask=both, window=4),
                "additive": lambda: additive(q, k, v, mask=both, score=module.score),
                "probsparse": lambda: probsparse(
                    q, k, v, mask=mask & pairs, query_padding_mask=real, factor=1.0, causal=True
                ),
            }.items():
                if name == mechanism:
                    torch.testing.assert_close(got, merged(module, call()), atol=1e-5, rtol=1e-5)


def test_options_reach_their_mechanism():
    tokens = torch.randn(2, 60, 16)
    cases = {
        "local": ({"window": 2, "global_tokens": 3}, lambda m, q, k, v: local(q, k, v, window=2, global_tokens=3)),
        "probsparse": ({"factor": 0.4}, lambda m, q, k, v: probsparse(q, k, v, factor=0.4)),
        "prototype": ({"prototypes": 3}, lambda m, q, k, v: prototype(q, k, v, summary=summarise(m.prototypes, k))),
        "window2d": (
            {"window": 3, "shift": 1}, lambda m, q, k, v: window2d(q, k, v, grid=(6, 10), window=3, shift=1),
        ),
    }  # fmt: skip
    for mechanism, (options, call) in cases.items():
        module = Attention(16, 4, mechanism=mechanism, **options).eval()
        got = module(tokens, grid=(6, 10) if mechanism == "window2d" else None)
        want = merged(module, call(module, *projected(module, tokens)))
        torch.testing.assert_close(got, want, atol=1e-5, rtol=1e-5)
    for options in ({"scaled": False}, {"normalise": "sigmoid"}, {"normalise": "relu"}):
        module = Attention(16, 4, **options)
        weights = {
            "scale": None if options.get("scaled", True) else 1.0,
            "normalise": options.get("normalise", "softmax"),
        }
        want = merged(module, by_hand(*projected(module, tokens), **weights))
        torch.testing.assert_close(module(tokens), want, atol=1e-5, rtol=1e-5)


def test_queries_and_keys_are_normalised_to_unit_root_mean_square():
    module = make("full", qk_norm=True)
    tokens = torch.randn(2, 9, 16) * 30
    q, k, v = projected(module, tokens)
    q, k = (part / part.square().mean(-1, keepdim=True).sqrt() for part in (q, k))
    torch.testing.assert_close(module(tokens), merged(module, by_hand(q, k, v)), atol=1e-4, rtol=1e-4)


def test_keys_of_another_width():
    module = make("full", key_dim=10)
    tokens, memory = torch.randn(2, 5, 16), torch.randn(2, 7, 10)
    want = merged(module, by_hand(*projected(module, tokens, memory)))
    torch.testing.assert_close(module(tokens, memory), want, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("mechanism", [name for name in MECHANISMS if name != "linear"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("rows", [3, 24])  # of so many, local has one block or several
def test_dropout_drops_weights_in_training_alone(mechanism, rows, causal):
    if (causal and mechanism in ("prototype", "window2d")) or (rows > 3 and mechanism != "local"):
        pytest.skip("not causal, or one case is enough")
    grid = {"window2d": {"grid": (rows, 25)}}.get(mechanism, {})
    module = make(mechanism, dropout=0.5)
    tokens = torch.randn(1, 25 * rows, 16)
    given = {"causal": causal, **grid}
    with torch.no_grad():
        plain = module.eval()(tokens, **given)
        assert torch.equal(plain, module(tokens, **given))
        module.train()
        if mechanism == "probsparse":  # in training the sample of keys is random too; the choice must not differ here
            module.factor = 1000.0
            plain = module.eval()(tokens, **given)
            module.train()
        drawn = torch.stack([module(tokens, **given) for _ in range(200)])
    assert (drawn[0] != drawn[1]).any(-1).float().mean() > 0.9
    error = (drawn.mean(0) - plain).abs().mean() / drawn.std(0).mean()
    assert error < 2 / math.sqrt(200)  # dropped weights make room for the others: the mean stays


@pytest.mark.parametrize("normalise", ["sigmoid", "relu"])
def test_other_weights_are_dropped_too(normalise):
    query, key, value = parts(queries=40, keys=40)
    torch.manual_seed(0)
    plain = full(query, key, value, normalise=normalise)
    drawn = torch.stack([full(query, key, value, normalise=normalise, dropout=0.5) for _ in range(300)])
    assert (drawn[0] != plain).any()
    error = (drawn.mean(0) - plain).abs().mean() / drawn.std(0).mean()
    assert error < 2 / math.sqrt(300)


def test_training_draws_the_keys_that_probsparse_samples():
    module = make("probsparse")
    tokens = torch.randn(1, 100, 16)
    assert torch.equal(module.eval()(tokens), module(tokens))
    module.train()
    assert any(not torch.equal(module(tokens), module(tokens)) for _ in range(5))


def test_padding_of_keys_says_nothing_of_queries_in_cross_attention():
    module = make("probsparse").eval()
    tokens, memory = torch.randn(2, 40, 16), torch.randn(2, 40, 16)
    real = torch.arange(40).expand(2, -1) < 20
    q, k, v = projected(module, tokens, memory.masked_fill(~real[..., None], 0.0))
    want = merged(module, probsparse(q, k, v, mask=real[:, None, None], factor=1.0))
    torch.testing.assert_close(module(tokens, memory, key_padding_mask=real), want, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_what_stands_in_padding_does_not_matter(mechanism):
    module = make(mechanism).eval()
    tokens = torch.randn(2, 48, 16)
    real = torch.ones(2, 48, dtype=torch.bool)
    real[0, 30:] = False
    given = {"key_padding_mask": real, **GRID.get(mechanism, {})}
    before = module(tokens, **given)
    tokens[0, 30:] = float("nan")
    after = module(tokens, **given)
    assert torch.equal(before[0, :30], after[0, :30])
    assert torch.equal(before[1], after[1])


def test_a_relative_bias_is_right_beside_a_cache():
    module = make("full", position="relative", reach=3).eval()
    nn.init.normal_(module.relative.table)
    tokens = torch.randn(2, 9, 16)
    with torch.no_grad():
        cache = KeyValueCache(9)
        pieces = [module(part, causal=True, cache=cache) for part in tokens.split([4, 1, 4], 1)]
        torch.testing.assert_close(torch.cat(pieces, 1), module(tokens, causal=True), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("normalise", ["sigmoid", "relu"])
def test_other_weights_are_right_beside_a_cache(normalise):
    module = make("full", normalise=normalise).eval()
    tokens = torch.randn(2, 9, 16)
    with torch.no_grad():
        cache = KeyValueCache(9)
        pieces = [module(part, causal=True, cache=cache) for part in tokens.split([4, 1, 4], 1)]
        torch.testing.assert_close(torch.cat(pieces, 1), module(tokens, causal=True), atol=1e-5, rtol=1e-5)


def test_a_refused_call_leaves_the_cache_as_it_was():
    module = make("full").eval()
    cache = KeyValueCache(5)
    tokens = torch.randn(1, 3, 16)
    with torch.no_grad():
        module(tokens, causal=True, cache=cache)
        for wrong in (
            {"mask": torch.ones(1, 7, dtype=torch.bool)}, {"mask": torch.ones(1, 4)}, {"grid": (1, 1)},
            {"key_padding_mask": torch.ones(1, 1, dtype=torch.bool)}, {"positions": torch.arange(1)},
        ):  # fmt: skip
            with pytest.raises(ShapeError):
                module(tokens[:, :1], causal=True, cache=cache, **wrong)
            assert cache.length == 3


@pytest.mark.parametrize("mechanism", ["full", "probsparse", "local"])
def test_a_shift_of_all_times_changes_nothing(mechanism):
    module = make(mechanism, position="rotary").eval()
    tokens, memory = torch.randn(2, 50, 16), torch.randn(2, 50, 16)
    times = torch.rand(2, 50, dtype=torch.float64).cumsum(1)
    with torch.no_grad():
        torch.testing.assert_close(
            module(tokens, positions=times), module(tokens, positions=times + 1e5), atol=1e-5, rtol=1e-5
        )
        here = module(tokens, memory, positions=times, key_positions=times.flip(1))
        there = module(tokens, memory, positions=times + 1e5, key_positions=times.flip(1) + 1e5)
        torch.testing.assert_close(here, there, atol=1e-5, rtol=1e-5)
        assert not torch.allclose(here, module(tokens, memory, positions=times, key_positions=times))


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


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_gradients_reach_every_projection(mechanism):
    module = make(mechanism, qk_norm=True)
    out = module(torch.randn(2, 48, 16), **GRID.get(mechanism, {}))
    out.square().sum().backward()
    for name, parameter in module.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        assert parameter.grad.abs().sum() > 0, name


def test_wrong_use_is_refused_with_the_remedy():
    attention = Attention(16, 2)
    tokens = torch.randn(3, 6, 16)
    with pytest.raises(ShapeError, match="key_padding_mask"):
        attention(tokens, mask=torch.ones(3, 6, dtype=torch.bool))
    with pytest.raises(ShapeError, match="boolean"):
        attention(tokens, mask=torch.zeros(6, 6))
    with pytest.raises(ShapeError, match="True where a token is real"):
        attention(tokens, key_padding_mask=torch.ones(3, 5, dtype=torch.bool))
    with pytest.raises(ShapeError, match="does not divide by 3 heads"):
        Attention(16, 3)
    with pytest.raises(ShapeError, match="cannot share 2"):
        Attention(15, 3, kv_heads=2)
    with pytest.raises(ShapeError, match="cannot share 4"):
        full(*parts(heads=6, groups=4))
    with pytest.raises(ShapeError, match="grid"):
        Attention(16, 2, mechanism="window2d")(tokens)
    with pytest.raises(ShapeError, match="boolean"):
        attention(tokens, mask=torch.zeros(6, 6, dtype=torch.int64))
    with pytest.raises(ShapeError, match="True where a token is real"):
        attention(tokens, key_padding_mask=torch.ones(3, 6))
    for wrong, words in {
        "tokens must be": (torch.randn(6, 16),), "do not fit dim 16": (torch.randn(3, 6, 12),),
        "and keys of width 12": (tokens, torch.randn(3, 5, 12)), r"tokens must be \[B": (tokens, torch.randn(2, 5, 16)),
    }.items():  # fmt: skip
        with pytest.raises(ShapeError, match=wrong):
            attention(*words)
    with pytest.raises(ShapeError, match="position='rotary'"):
        attention(tokens, positions=torch.arange(6))
    rotary = Attention(16, 2, position="rotary")
    for given in (
        {"key": tokens, "positions": torch.arange(6)}, {"key_positions": torch.arange(6)},
        {"positions": torch.arange(6), "key_positions": torch.arange(6)}, {"positions": torch.arange(5)},
        {"positions": torch.zeros(3, 1, 6)}, {"positions": torch.zeros(())}, {"positions": torch.zeros(1)},
    ):  # fmt: skip
        with pytest.raises(ShapeError, match="positions"):
            rotary(tokens, **given)
    query, key, value = parts(queries=6, keys=9)
    for wrong in (
        (query, key[:, :, :5], value),
        (query[:1], key, value),
        (query[..., :4], key, value),
        (query[0], key, value),
    ):
        with pytest.raises(ShapeError):
            full(*wrong)
    for call in (full, attention_weights):
        with pytest.raises(ShapeError, match="a bias"):
            call(*(query, key, value)[: 3 if call is full else 2], bias=torch.zeros(6, 8))
        with pytest.raises(ShapeError, match="'tanh' is not known"):
            call(*(query, key, value)[: 3 if call is full else 2], normalise="tanh")


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
        ours.relative.table.copy_(block.attn.relative_position_bias_table)
        field = torch.randn(2, 8, 12, 16)
        want = block._attn(field)
        got = ours(field.flatten(1, 2), grid=(8, 12)).reshape(2, 8, 12, 16)
    torch.testing.assert_close(got, want, atol=1e-5, rtol=1e-5)


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
        ours.relative.table.copy_(theirs.relative_position_bias_table)
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


@pytest.mark.parametrize("mechanism", ["full", "local"])
@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_decoding_with_a_cache_is_one_causal_pass(mechanism, kv_heads):
    module = make(mechanism, kv_heads=kv_heads, position="rotary").eval()
    tokens = torch.randn(2, 12, 16)
    with torch.no_grad():
        cache = KeyValueCache(12)
        steps = [module(tokens[:, i : i + 1], causal=True, cache=cache) for i in range(12)]
        torch.testing.assert_close(torch.cat(steps, 1), module(tokens, causal=True), atol=1e-5, rtol=1e-5)
    with pytest.raises(ShapeError, match="carries no gradient"):
        module(tokens[:, :1], causal=True, cache=KeyValueCache(3))
    with pytest.raises(ShapeError, match="self-attention by 'full' or 'local'"), torch.no_grad():
        Attention(16, 4, mechanism="linear")(tokens, cache=KeyValueCache(20))


@pytest.mark.parametrize("mechanism", ["full", "local", "probsparse", "linear", "additive"])
def test_the_first_position_attends_to_itself_alone(mechanism):
    module = make(mechanism).eval()
    tokens = torch.randn(2, 60, 16)
    alone = module(tokens[:, :1], causal=True)
    torch.testing.assert_close(module(tokens, causal=True)[:, :1], alone, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("mechanism", ["full", "local", "probsparse", "linear", "prototype", "additive"])
def test_strides_do_not_matter(mechanism):
    module = make(mechanism, kv_heads=2).eval()
    tokens = torch.randn(2, 16, 60).transpose(1, 2)
    assert not tokens.is_contiguous()
    torch.testing.assert_close(module(tokens), module(tokens.contiguous()), atol=1e-6, rtol=1e-5)


def test_what_does_not_go_together_is_refused_with_the_remedy():
    tokens = torch.randn(2, 6, 16)
    pairs = torch.ones(6, 6, dtype=torch.bool)
    for mechanism in ("linear", "prototype"):
        with pytest.raises(ShapeError, match=r"sums up the keys once(.|\n)*key_padding_mask"):
            Attention(16, 4, mechanism=mechanism)(tokens, mask=pairs)
    with pytest.raises(ShapeError, match="later ones too"):
        Attention(16, 4, mechanism="prototype")(tokens, causal=True)
    with pytest.raises(ShapeError, match="no weights to drop"):
        Attention(16, 4, mechanism="linear", dropout=0.1)
    with pytest.raises(ShapeError, match="does not go with 'local'"):
        Attention(16, 4, mechanism="local", position="relative")
    with pytest.raises(ShapeError, match="options of 'full' alone"):
        Attention(16, 4, mechanism="probsparse", scaled=False)
    with pytest.raises(ShapeError, match="one of full, probsparse"):
        Attention(16, 4, mechanism="sparse")
    with pytest.raises(ShapeError, match="'tanh' is not known"):
        Attention(16, 4, normalise="tanh")
    for options, words in (
        ({"window": 3}, "window is an option of 'window2d' and 'local'"), ({"factor": 2.0}, "of 'probsparse'"),
        ({"prototypes": 2}, "of 'prototype'"), ({"shift": 1}, "of 'window2d'"), ({"global_tokens": 1}, "of 'local'"),
        ({"reach": 5}, "position='relative'"), ({"mechanism": "prototype", "prototypes": 0}, "too small"),
        ({"mechanism": "window2d", "window": 0}, "too small"), ({"mechanism": "local", "window": -1}, "too small"),
        ({"mechanism": "probsparse", "factor": 0.0}, "too small"),
        ({"mechanism": "probsparse", "factor": float("nan")}, "not finite"),
        ({"mechanism": "window2d", "window": 4, "shift": 4}, "smaller than the window"),
        ({"position": "relative", "reach": -1}, "too small"),
        ({"dropout": 1.5}, "dropout"), ({"dropout": -0.1}, "dropout"),
        ({"kv_heads": 0}, "at least 1"), ({"key_dim": 0}, "at least 1"),
        ({"mechanism": "linear", "position": "rotary"}, "use full, probsparse or local"),
        ({"mechanism": "additive", "position": "rotary"}, "use full, probsparse or local"),
    ):  # fmt: skip
        with pytest.raises(ShapeError, match=words):
            Attention(16, 4, **options)
    with pytest.raises(ShapeError, match="at least 1"):
        Attention(16, 0)
    for mechanism in ("linear", "prototype"):
        with pytest.raises(ShapeError, match="sums up the keys once"):
            Attention(16, 4, mechanism=mechanism)(tokens, mask=torch.ones(1, 4, 1, 6, dtype=torch.bool))
    with pytest.raises(ShapeError, match="a grid is for window2d"):
        Attention(16, 4)(tokens, grid=(2, 3))
    query, key, value = parts()
    with pytest.raises(ShapeError, match="query_padding_mask must be"):
        probsparse(query, key, value, query_padding_mask=torch.ones(2, 12))
    with pytest.raises(ShapeError, match="key_padding_mask must be"):
        window2d(query, key, value, grid=(3, 4), window=2, key_padding_mask=torch.ones(2, 11, dtype=torch.bool))
    with pytest.raises(ShapeError, match="at least 0"):
        local(*parts(), window=-1)
    with pytest.raises(ShapeError, match="does not fit 12 keys"):
        prototype(*parts(), summary=torch.ones(1, 1, 3, 11))
    with pytest.raises(ShapeError, match=r"score must be \[H, D\] = \[4, 8\]"):
        additive(*parts(), score=torch.ones(4, 7))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_sequence_of_padding_alone_gives_zeros_and_finite_gradients(mechanism):
    module = make(mechanism, kv_heads=2)
    tokens = torch.randn(2, 48, 16, requires_grad=True)
    real = torch.ones(2, 48, dtype=torch.bool)
    real[0] = False
    out = module(tokens, key_padding_mask=real, **GRID.get(mechanism, {}))
    torch.testing.assert_close(out[0], module.output.bias.expand(48, -1), rtol=0, atol=1e-7)
    assert (out[1] - module.output.bias).abs().amax(-1).min() > 0
    out.square().sum().backward()
    for gradient in (tokens.grad, *(parameter.grad for parameter in module.parameters())):
        assert torch.isfinite(gradient).all()


def test_relative_bias_is_added_to_the_scores():
    torch.manual_seed(0)
    module = Attention(8, 1, position="relative", reach=3)
    with torch.no_grad():
        module.relative.table.normal_()
    tokens = torch.randn(1, 6, 8)
    query, key, value = (layer(tokens) for layer in (module.query, module.key, module.value))
    distance = (torch.arange(6)[None] - torch.arange(6)[:, None]).clamp(-3, 3) + 3
    weights = (query @ key.transpose(1, 2) / math.sqrt(8) + module.relative.table[distance, 0]).softmax(-1)
    torch.testing.assert_close(module(tokens), module.output(weights @ value), atol=1e-5, rtol=1e-5)


def test_a_cache_takes_only_what_fits():
    key, value = torch.zeros(2, 4, 1, 8), torch.zeros(2, 4, 1, 8)
    with torch.inference_mode():
        cache = KeyValueCache(5)
        cache.append(key, value)
    with torch.no_grad():
        cache.append(key, value)  # a cache filled under one mode is used under the other
        for wrong in (key[:1], key[:, :2], key[..., :4], key.half()):
            with pytest.raises(ShapeError, match="does not fit into a cache"):
                cache.append(wrong, value)
        module = Attention(16, 2)
        cache = KeyValueCache(5)
        for _ in range(5):
            cache.append(key, value)
        with pytest.raises(ShapeError, match="cannot hold 6"):
            cache.append(key, value)
        cache = KeyValueCache(5)
        with pytest.raises(ShapeError, match="must not see later ones"):
            module(torch.zeros(1, 2, 16), cache=cache)
        with pytest.raises(ShapeError, match="key_padding_mask must be"):
            module(torch.zeros(1, 2, 16), causal=True, cache=cache, key_padding_mask=torch.ones(1, 7, dtype=torch.bool))
        assert cache.length == 0
