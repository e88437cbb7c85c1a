"""Blocks against torch's own layers, and against their formulas."""

import pytest
import torch
from blocks_reference import copy_decoder_block, copy_encoder_block, unlike
from torch import nn
from torch.nn.functional import gelu, silu

from common.attention import Attention
from common.blocks import DecoderBlock, Distil, EncoderBlock, FeedForward, make_norm
from common.errors import ShapeError


@pytest.mark.parametrize("place", ["pre", "post"])
def test_encoder_block_is_torch_encoder_layer(place):
    torch.manual_seed(0)
    options = {"dropout": 0.0, "activation": "gelu", "batch_first": True, "norm_first": place == "pre"}
    theirs = unlike(nn.TransformerEncoderLayer(16, 4, 64, **options))
    ours = EncoderBlock(16, attention=Attention(16, 4), feed_forward=FeedForward(16), place=place)
    copy_encoder_block(ours, theirs)
    tokens = torch.randn(2, 7, 16)
    torch.testing.assert_close(ours(tokens), theirs(tokens), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("place", ["pre", "post"])
def test_decoder_block_is_torch_decoder_layer(place):
    torch.manual_seed(0)
    options = {"dropout": 0.0, "activation": "relu", "batch_first": True, "norm_first": place == "pre"}
    theirs = unlike(nn.TransformerDecoderLayer(16, 4, 64, **options))
    parts = {"attention": Attention(16, 4), "cross": Attention(16, 4), "feed_forward": FeedForward(16, kind="relu")}
    ours = DecoderBlock(16, **parts, place=place)
    copy_decoder_block(ours, theirs)
    tokens, memory = torch.randn(2, 5, 16), torch.randn(2, 7, 16)
    real = torch.tensor([[True] * 7, [True] * 4 + [False] * 3])
    later = ~torch.ones(5, 5, dtype=torch.bool).tril()
    want = theirs(tokens, memory, tgt_mask=later, memory_key_padding_mask=~real)
    got = ours(tokens, memory, memory_padding_mask=real, causal=True)
    torch.testing.assert_close(got, want, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("kind", "hidden"),
    [
        ("gelu", lambda up, gate: gelu(up)),
        ("relu", lambda up, gate: up.clamp(min=0)),
        ("glu", lambda up, gate: up / (1 + torch.exp(-gate))),
        ("geglu", lambda up, gate: up * gelu(gate)),
        ("swiglu", lambda up, gate: up * silu(gate)),
    ],
)
@pytest.mark.parametrize("bias", [True, False])
def test_feed_forward_formulas(kind, hidden, bias):
    torch.manual_seed(0)
    layer = FeedForward(6, kind=kind, ratio=2.5, bias=bias)
    assert layer.up.weight.shape == (15, 6)
    tokens = torch.randn(3, 6)

    def through(linear, values):
        return values @ linear.weight.T + (linear.bias if bias else 0)

    gate = None if layer.gate is None else through(layer.gate, tokens)
    want = through(layer.down, hidden(through(layer.up, tokens), gate))
    torch.testing.assert_close(layer(tokens), want, atol=1e-6, rtol=1e-5)


def test_gated_and_plain_layers_have_about_as_many_parameters():
    sizes = {kind: sum(p.numel() for p in FeedForward(96, kind=kind).parameters()) for kind in ("gelu", "swiglu")}
    assert sizes["swiglu"] == pytest.approx(sizes["gelu"], rel=0.02)


def test_norms():
    tokens = 3 + torch.randn(4, 8, generator=torch.Generator().manual_seed(0))
    layer = (tokens - tokens.mean(-1, keepdim=True)) / tokens.std(-1, keepdim=True, unbiased=False)
    torch.testing.assert_close(make_norm("layer", 8)(tokens), layer, atol=1e-4, rtol=1e-4)
    rms = tokens / tokens.square().mean(-1, keepdim=True).sqrt()
    torch.testing.assert_close(make_norm("rms", 8)(tokens), rms, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("length", [7, 8])
def test_distilling_keeps_the_larger_of_two_neighbours_and_ignores_what_is_not_real(length):
    torch.manual_seed(0)
    layer = Distil(4)
    tokens = torch.randn(2, length, 4)
    real = torch.ones(2, length, dtype=torch.bool)
    real[0, 5:] = False
    halved = layer(tokens, real)
    mixed = nn.functional.elu(layer.mix((tokens * real[..., None]).transpose(1, 2))).transpose(1, 2)
    for sample, count in enumerate((5, length)):
        for place in range(-(-length // 2)):
            pair = mixed[sample, 2 * place : min(2 * place + 2, count)]
            want = pair.amax(0) if len(pair) else torch.zeros(4)
            torch.testing.assert_close(halved[sample, place], want)
    # Padding changes nothing of what is real.
    torch.testing.assert_close(layer(tokens[:1, :5])[0], halved[0, :3])
    assert layer.halve_mask(real)[0].tolist() == [True, True, True, False][: halved.shape[1]]
    tokens[0, 5:] = 99.0
    assert torch.equal(layer(tokens, real), halved)


def test_unknown_parts_are_refused():
    with pytest.raises(ShapeError, match="'tanh' is not known"):
        FeedForward(8, kind="tanh")
    with pytest.raises(ShapeError, match="'batch' is not known"):
        make_norm("batch", 8)
    with pytest.raises(ShapeError, match="'middle' of the norm"):
        EncoderBlock(8, attention=Attention(8, 2), feed_forward=FeedForward(8), place="middle")
