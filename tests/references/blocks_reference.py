"""Weights from torch's own layers into ours."""

import torch
from torch import nn


def copy_attention(ours, theirs):
    """Copy the weights of a ``torch.nn.MultiheadAttention``."""
    dim = theirs.embed_dim
    with torch.no_grad():
        for part, layer in enumerate((ours.query, ours.key, ours.value)):
            rows = slice(part * dim, part * dim + dim)
            layer.weight.copy_(theirs.in_proj_weight[rows])
            layer.bias.copy_(theirs.in_proj_bias[rows])
    ours.output.load_state_dict(theirs.out_proj.state_dict())


def copy_encoder_block(ours, theirs):
    """Copy the weights of a ``torch.nn.TransformerEncoderLayer``."""
    copy_attention(ours.attention.branch, theirs.self_attn)
    ours.feed_forward.branch.up.load_state_dict(theirs.linear1.state_dict())
    ours.feed_forward.branch.down.load_state_dict(theirs.linear2.state_dict())
    ours.attention.norm.load_state_dict(theirs.norm1.state_dict())
    ours.feed_forward.norm.load_state_dict(theirs.norm2.state_dict())


def copy_decoder_block(ours, theirs):
    """Copy the weights of a ``torch.nn.TransformerDecoderLayer``."""
    copy_attention(ours.attention.branch, theirs.self_attn)
    copy_attention(ours.cross.branch, theirs.multihead_attn)
    ours.feed_forward.branch.up.load_state_dict(theirs.linear1.state_dict())
    ours.feed_forward.branch.down.load_state_dict(theirs.linear2.state_dict())
    for part, norm in ((ours.attention, theirs.norm1), (ours.cross, theirs.norm2), (ours.feed_forward, theirs.norm3)):
        part.norm.load_state_dict(norm.state_dict())


def unlike(theirs):
    """Norms that differ from each other, so that one in the wrong place shows."""
    for name, parameter in theirs.named_parameters():
        if "norm" in name:
            nn.init.normal_(parameter)
    return theirs
