"""Blocks against torch's own layers."""

import pytest
import torch
from torch import nn

from common.attention import Attention
from common.blocks import DecoderBlock, EncoderBlock, FeedForward, SwiGLU


def copy_attention(ours: Attention, theirs: nn.MultiheadAttention):
    with torch.no_grad():
        ours.query.weight.copy_(theirs.in_proj_weight[:16])
        ours.key.weight.copy_(theirs.in_proj_weight[16:32])
        ours.value.weight.copy_(theirs.in_proj_weight[32:])
        ours.query.bias.copy_(theirs.in_proj_bias[:16])
        ours.key.bias.copy_(theirs.in_proj_bias[16:32])
        ours.value.bias.copy_(theirs.in_proj_bias[32:])
    ours.output.load_state_dict(theirs.out_proj.state_dict())


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_encoder_block_is_torch_encoder_layer(norm):
    torch.manual_seed(0)
    theirs = nn.TransformerEncoderLayer(
        16, 4, 64, dropout=0.0, activation="gelu", batch_first=True, norm_first=norm == "pre"
    )
    nn.init.normal_(theirs.norm1.weight)
    ours = EncoderBlock(16, attention=Attention(16, 4), feed_forward=FeedForward(16), norm=norm)
    copy_attention(ours.attention, theirs.self_attn)
    ours.feed_forward.layers[0].load_state_dict(theirs.linear1.state_dict())
    ours.feed_forward.layers[3].load_state_dict(theirs.linear2.state_dict())
    ours.attention_norm.load_state_dict(theirs.norm1.state_dict())
    ours.feed_forward_norm.load_state_dict(theirs.norm2.state_dict())
    tokens = torch.randn(2, 7, 16)
    torch.testing.assert_close(ours(tokens), theirs(tokens), atol=1e-5, rtol=1e-5)


def test_decoder_block_is_torch_decoder_layer():
    torch.manual_seed(0)
    theirs = nn.TransformerDecoderLayer(16, 4, 64, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
    ours = DecoderBlock(16, attention=Attention(16, 4), cross=Attention(16, 4), feed_forward=FeedForward(16))
    copy_attention(ours.attention, theirs.self_attn)
    copy_attention(ours.cross, theirs.multihead_attn)
    ours.feed_forward.layers[0].load_state_dict(theirs.linear1.state_dict())
    ours.feed_forward.layers[3].load_state_dict(theirs.linear2.state_dict())
    tokens, memory = torch.randn(2, 5, 16), torch.randn(2, 7, 16)
    real = torch.tensor([[True] * 7, [True] * 4 + [False] * 3])
    want = theirs(tokens, memory, memory_key_padding_mask=~real)
    torch.testing.assert_close(ours(tokens, memory, memory_padding_mask=real), want, atol=1e-5, rtol=1e-5)


def test_swiglu_formula():
    torch.manual_seed(0)
    layer = SwiGLU(6, ratio=2.0)
    tokens = torch.randn(3, 6)
    gate = tokens @ layer.gate.weight.T + layer.gate.bias
    want = (gate * torch.sigmoid(gate) * (tokens @ layer.up.weight.T + layer.up.bias)) @ layer.down.weight.T
    torch.testing.assert_close(layer(tokens), want + layer.down.bias)
