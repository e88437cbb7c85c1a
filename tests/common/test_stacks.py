"""Stacks, and the well-known configurations built from them."""

import pytest
import torch
from blocks_reference import copy_decoder_block, copy_encoder_block, unlike
from torch import nn

from common import presets
from common.attention import Attention, KeyValueCache
from common.blocks import DecoderBlock, Distil, EncoderBlock, FeedForward, Residual
from common.errors import ShapeError
from common.positions import AddPositions, sinusoidal
from common.stacks import Decoder, Encoder


def size(module):
    return sum(parameter.numel() for parameter in module.parameters())


def test_transformer_is_that_of_torch():
    torch.manual_seed(0)
    ours = presets.transformer(16, heads=4, layers=2, dropout=0.0)
    theirs = unlike(nn.Transformer(16, 4, 2, 2, 64, dropout=0.0, batch_first=True))
    # torch adds a last norm that the paper does not have.
    theirs.encoder.norm = theirs.decoder.norm = None
    for mine, other in zip(ours.encoder.blocks, theirs.encoder.layers, strict=True):
        copy_encoder_block(mine, other)
    for mine, other in zip(ours.decoder.blocks, theirs.decoder.layers, strict=True):
        copy_decoder_block(mine, other)
    source, target = torch.randn(2, 9, 16), torch.randn(2, 6, 16)
    real = torch.tensor([[True] * 9, [True] * 5 + [False] * 4])
    placed = [tokens + sinusoidal(torch.arange(tokens.shape[1]), 16) for tokens in (source, target)]
    later = ~torch.ones(6, 6, dtype=torch.bool).tril()
    want = theirs(
        *placed, tgt_mask=later, src_key_padding_mask=~real, memory_key_padding_mask=~real, src_is_causal=False
    )
    got = ours(source, target, source_padding_mask=real)
    torch.testing.assert_close(got, want, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("causal", [False, True], ids=["bert", "gpt"])
def test_bert_and_gpt_are_encoders_of_torch(causal):
    torch.manual_seed(0)
    make = presets.gpt if causal else presets.bert
    ours = make(16, heads=4, layers=2, length=12, dropout=0.0)
    options = {"dropout": 0.0, "activation": "gelu", "batch_first": True, "norm_first": causal}
    layer = unlike(nn.TransformerEncoderLayer(16, 4, 64, **options))
    last = nn.LayerNorm(16) if causal else None
    theirs = nn.TransformerEncoder(layer, 2, norm=last, enable_nested_tensor=False)
    for mine, other in zip(ours.blocks, theirs.layers, strict=True):
        copy_encoder_block(mine, other)
    tokens = torch.randn(2, 9, 16)
    placed = tokens + ours.positions.learned.table[:9]
    later = ~torch.ones(9, 9, dtype=torch.bool).tril() if causal else None
    torch.testing.assert_close(ours(tokens), theirs(placed, mask=later), atol=1e-5, rtol=1e-5)


def test_llama_written_out():
    torch.manual_seed(0)
    model = presets.llama(16, heads=4, kv_heads=2, layers=1, ratio=2.0)
    assert [name for name, _ in model.named_parameters() if "bias" in name] == []
    tokens = torch.randn(2, 5, 16)
    block = model.blocks[0]
    attention, feed = block.attention.branch, block.feed_forward.branch

    def rms(values, norm):
        return values / (values.square().mean(-1, keepdim=True) + 1e-6).sqrt() * norm.weight

    def turned(values):  # [B, heads, L, 4] as two complex numbers, each turned by its position
        pairs = torch.view_as_complex(values.unflatten(-1, (2, 2)).contiguous())
        angle = torch.arange(5)[:, None] * torch.tensor([1.0, 10000 ** (-2 / 4)])
        return torch.view_as_real(pairs * torch.exp(1j * angle)).flatten(-2)

    normed = rms(tokens, block.attention.norm)
    query = turned((normed @ attention.query.weight.T).unflatten(-1, (4, 4)).transpose(1, 2))
    key = turned((normed @ attention.key.weight.T).unflatten(-1, (2, 4)).transpose(1, 2)).repeat_interleave(2, 1)
    value = (normed @ attention.value.weight.T).unflatten(-1, (2, 4)).transpose(1, 2).repeat_interleave(2, 1)
    scores = (query @ key.transpose(-2, -1) / 2).masked_fill(~torch.ones(5, 5, dtype=torch.bool).tril(), -torch.inf)
    mixed = (scores.softmax(-1) @ value).transpose(1, 2).flatten(2) @ attention.output.weight.T
    hidden = tokens + mixed
    normed = rms(hidden, block.feed_forward.norm)
    gate = normed @ feed.gate.weight.T
    hidden = hidden + (gate * torch.sigmoid(gate) * (normed @ feed.up.weight.T)) @ feed.down.weight.T
    torch.testing.assert_close(model(tokens), rms(hidden, model.norm), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("make", [presets.gpt, presets.llama])
def test_decoding_token_by_token_is_one_causal_pass(make):
    torch.manual_seed(0)
    options = {"kv_heads": 2} if make is presets.llama else {"length": 20}
    model = make(16, heads=4, layers=3, **options).eval()
    tokens = torch.randn(2, 11, 16)
    with torch.no_grad():
        want = model(tokens)
        caches = model.new_caches(11)
        steps = [model(part, caches=caches) for part in tokens.split([3, 1, 1, 1, 2, 1, 1, 1], dim=1)]
    torch.testing.assert_close(torch.cat(steps, dim=1), want, atol=1e-5, rtol=1e-5)
    with pytest.raises(ShapeError, match="cannot take 1 more"), torch.no_grad():
        model(tokens[:, :1], caches=caches)


def test_informer_halves_between_its_encoder_blocks():
    torch.manual_seed(0)
    model = presets.informer(16, heads=2, encoder_layers=3, factor=1.0).eval()
    assert model.encoder(torch.randn(2, 50, 16)).shape == (2, 13, 16)
    source, target = torch.randn(2, 50, 16), torch.randn(2, 30, 16)
    real = torch.ones(2, 50, dtype=torch.bool)
    real[1, 32:] = False
    before = model(source, target, source_padding_mask=real)
    source[1, 32:] = 50.0
    torch.testing.assert_close(model(source, target, source_padding_mask=real), before, rtol=0, atol=0)
    target[:, 20:] += 1.0
    after = model(source, target, source_padding_mask=real)
    assert torch.equal(before[:, :20], after[:, :20])  # the decoder sees no later token
    assert not torch.equal(before[:, 20:], after[:, 20:])


def test_swin_block_is_that_of_timm():
    from timm.models.swin_transformer import SwinTransformerBlock

    torch.manual_seed(0)
    grid = (8, 12)
    ours = presets.swin_block(16, heads=2, window=4).eval()
    tokens = torch.randn(2, grid[0] * grid[1], 16)
    want = tokens.unflatten(1, grid)
    for block, shift in zip(ours.blocks, (0, 2), strict=True):
        theirs = SwinTransformerBlock(16, grid, num_heads=2, head_dim=8, window_size=4, shift_size=shift).eval()
        nn.init.normal_(theirs.attn.relative_position_bias_table)
        attention = block.attention.branch
        with torch.no_grad():
            for part, layer in enumerate((attention.query, attention.key, attention.value)):
                layer.weight.copy_(theirs.attn.qkv.weight[16 * part : 16 * part + 16])
                layer.bias.copy_(theirs.attn.qkv.bias[16 * part : 16 * part + 16])
            attention.relative.table.copy_(theirs.attn.relative_position_bias_table)
        attention.output.load_state_dict(theirs.attn.proj.state_dict())
        block.attention.norm.load_state_dict(theirs.norm1.state_dict())
        block.feed_forward.norm.load_state_dict(theirs.norm2.state_dict())
        block.feed_forward.branch.up.load_state_dict(theirs.mlp.fc1.state_dict())
        block.feed_forward.branch.down.load_state_dict(theirs.mlp.fc2.state_dict())
        want = theirs(want)
    torch.testing.assert_close(ours(tokens, grid=grid), want.flatten(1, 2), atol=1e-5, rtol=1e-5)


def test_presets_have_the_published_sizes():
    """Without embeddings: 12 dim^2 a block and biases; LLaMA 2 7B has 6.476e9 parameters besides its embeddings."""
    with torch.device("meta"):
        assert size(presets.bert()) == 12 * (12 * 768**2 + 13 * 768) + 512 * 768
        assert size(presets.gpt()) == 12 * (12 * 768**2 + 13 * 768) + 1024 * 768 + 2 * 768
        assert size(presets.transformer()) == 6 * (12 * 512**2 + 13 * 512) + 6 * (16 * 512**2 + 19 * 512)
        llama = presets.llama(4096, heads=32, kv_heads=32, layers=32, ratio=11008 / 4096)
        assert size(llama) == 6_738_415_616 - 2 * 32_000 * 4096


def test_learned_positions_end_and_sines_do_not():
    assert AddPositions(8)(torch.zeros(1, 3000, 8)).shape == (1, 3000, 8)
    with pytest.raises(ShapeError, match="9 positions asked of a table of 8"):
        AddPositions(8, length=8)(torch.zeros(1, 9, 8))


def test_a_cache_for_each_block():
    model = Encoder([EncoderBlock(8, attention=Attention(8, 2), feed_forward=FeedForward(8))], causal=True)
    with pytest.raises(ShapeError, match="1 blocks need as many caches, each its own, got 2"):
        model(torch.zeros(1, 1, 8), caches=[*model.new_caches(4), *model.new_caches(4)])


@pytest.mark.parametrize("position", [None, "rotary"])
def test_a_decoder_with_caches_is_one_pass(position):
    torch.manual_seed(0)

    def block():
        parts = {"attention": Attention(16, 4, position=position), "cross": Attention(16, 4, position=position)}
        return DecoderBlock(16, **parts, feed_forward=FeedForward(16))

    model = Decoder([block() for _ in range(3)], positions=AddPositions(16)).eval()
    tokens, memory = torch.randn(2, 7, 16), torch.randn(2, 5, 16)
    with torch.no_grad():
        caches = model.new_caches(7)
        steps = [model(part, memory, caches=caches) for part in tokens.split([2, 1, 3, 1], dim=1)]
        torch.testing.assert_close(torch.cat(steps, 1), model(tokens, memory), atol=1e-5, rtol=1e-5)


def test_a_causal_stack_cannot_distil_and_another_cannot_decode():
    with pytest.raises(ShapeError, match="looks at the next token"):
        Encoder([Distil(8)], causal=True)
    model = Encoder([EncoderBlock(8, attention=Attention(8, 2), feed_forward=FeedForward(8))])
    with pytest.raises(ShapeError, match="only a causal stack"):
        model(torch.zeros(1, 1, 8), caches=model.new_caches(4))


def test_one_swin_window_is_not_shifted():
    torch.manual_seed(0)
    model = presets.swin_block(16, heads=2, window=4)
    for block in model.blocks:
        nn.init.normal_(block.attention.branch.relative.table)
    plain = presets.swin_block(16, heads=2, window=4)
    plain.load_state_dict(model.state_dict())
    plain.blocks[1].attention.branch.shift = 0
    tokens = torch.randn(1, 16, 16)
    assert torch.equal(model(tokens, grid=(4, 4)), plain(tokens, grid=(4, 4)))
    tokens = torch.randn(1, 64, 16)
    assert not torch.allclose(model(tokens, grid=(8, 8)), plain(tokens, grid=(8, 8)))


def test_positions_are_halved_with_the_tokens():
    """Rotary attention after distilling must know where the halved tokens stand."""
    torch.manual_seed(0)
    block = [
        EncoderBlock(8, attention=Attention(8, 2, position="rotary"), feed_forward=FeedForward(8)) for _ in range(2)
    ]
    stack = Encoder([block[0], Distil(8), block[1]]).eval()
    times = torch.rand(2, 9, dtype=torch.float64).cumsum(1)
    tokens = torch.randn(2, 9, 8)
    got = stack(tokens, positions=times)
    halved = stack.positions_of_output(times)
    assert torch.equal(halved, times[:, [1, 3, 5, 7, 8]])
    by_hand = block[1](stack.blocks[1](block[0](tokens, positions=times)), positions=halved)
    torch.testing.assert_close(got, by_hand)
    torch.testing.assert_close(got, stack(tokens, positions=times + 1e4), atol=1e-5, rtol=1e-5)
    assert torch.equal(stack.positions_of_output(torch.arange(8)), torch.tensor([1, 3, 5, 7]))


def test_cross_attention_turns_by_the_times_of_both_sides():
    torch.manual_seed(0)
    parts = {"attention": Attention(8, 2, position="rotary"), "cross": Attention(8, 2, position="rotary")}
    block = DecoderBlock(8, **parts, feed_forward=FeedForward(8)).eval()
    tokens, memory = torch.randn(2, 5, 8), torch.randn(2, 7, 8)
    times, there = torch.rand(2, 5).cumsum(1), torch.rand(2, 7).cumsum(1)
    got = block(tokens, memory, positions=times, memory_positions=there)
    hidden = block.attention(tokens, positions=times)
    hidden = hidden + block.cross.branch(block.cross.norm(hidden), memory, positions=times, key_positions=there)
    torch.testing.assert_close(got, block.feed_forward(hidden))
    with pytest.raises(ShapeError, match="both or neither"):
        block(tokens, memory, positions=times)
    real = torch.ones(2, 5, dtype=torch.bool)
    real[:, 3:] = False
    padded = block(tokens, memory, key_padding_mask=real)
    tokens[:, 3:] = 9.0
    assert torch.equal(padded[:, :3], block(tokens, memory, key_padding_mask=real)[:, :3])


@pytest.mark.parametrize("make", [presets.transformer, presets.bert, presets.gpt, presets.informer, presets.swin_block])
def test_presets_drop_out_where_their_papers_do(make):
    """Each layer that has a rate has that of the preset, and there is one behind every branch."""
    options = {} if make is presets.swin_block else {"heads": 2}
    model = make(12, dropout=0.25, **options)
    rates = [layer.p for layer in model.modules() if isinstance(layer, torch.nn.Dropout)]
    branches = [layer for layer in model.modules() if isinstance(layer, Residual)]
    assert len(branches) > 1
    assert all(branch.dropout.p == 0.25 for branch in branches)
    assert set(rates) <= {0.0, 0.25}
    if make is not presets.transformer:  # whose paper drops no attention weights
        assert all(layer.dropout == 0.25 for layer in model.modules() if isinstance(layer, Attention))


def test_dropout_acts_in_training_alone():
    torch.manual_seed(0)
    layers = (
        FeedForward(16, dropout=0.5), Residual(16, torch.nn.Identity(), norm="layer", place="pre", dropout=0.5),
        Residual(16, torch.nn.Identity(), norm="layer", place="post", dropout=0.5),
    )  # fmt: skip
    tokens = torch.randn(4, 50, 16)
    for layer in layers:
        assert not torch.equal(layer(tokens), layer(tokens))
        layer.eval()
        assert torch.equal(layer(tokens), layer(tokens))


def test_the_informer_is_made_of_what_its_paper_says():
    model = presets.informer(16, heads=2)
    attentions = [block.attention.branch for block in model.encoder.blocks if isinstance(block, EncoderBlock)]
    attentions += [block.attention.branch for block in model.decoder.blocks]
    assert len(attentions) == 5
    assert all(attention.mechanism == "probsparse" for attention in attentions)
    assert all(block.cross.branch.mechanism == "full" for block in model.decoder.blocks)
    assert [isinstance(block, Distil) for block in model.encoder.blocks] == [False, True, False, True, False]
    for norm in (model.encoder.norm, model.decoder.norm):
        assert isinstance(norm, torch.nn.LayerNorm)


@pytest.mark.parametrize(("window", "shift"), [(7, 3), (4, 2), (5, 2)])
def test_the_second_swin_block_is_shifted_by_half_a_window(window, shift):
    blocks = presets.swin_block(12, window=window).blocks
    assert [block.attention.branch.shift for block in blocks] == [0, shift]


def test_whether_a_stack_is_causal_is_said_once():
    stack = Encoder([EncoderBlock(8, attention=Attention(8, 2), feed_forward=FeedForward(8))])
    with pytest.raises(ShapeError, match="when it is made"):
        stack(torch.zeros(1, 3, 8), causal=True)


def test_caches_that_do_not_belong_together_are_refused_before_any_is_filled():
    blocks = [EncoderBlock(8, attention=Attention(8, 2), feed_forward=FeedForward(8)) for _ in range(2)]
    stack = Encoder(blocks, causal=True).eval()
    tokens = torch.zeros(1, 3, 8)
    with torch.no_grad():
        with pytest.raises(ShapeError, match="each its own"):
            stack(tokens, caches=[KeyValueCache(9)] * 2)
        caches = [KeyValueCache(9), KeyValueCache(4)]
        stack(tokens, caches=caches)
        with pytest.raises(ShapeError, match="cannot take 3 more"):
            stack(tokens, caches=caches)
        assert [cache.length for cache in caches] == [3, 3]


def test_a_ratio_makes_the_hidden_layer():
    assert FeedForward(8, ratio=1.5).up.out_features == 12
    assert FeedForward(9, kind="swiglu").up.out_features == 24
    with pytest.raises(ShapeError, match="above 0"):
        FeedForward(8, ratio=0)
