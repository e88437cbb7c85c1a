"""Well-known configurations, one call each: what they are made of, at the sizes of their papers.

All of them take and give tokens ``[B, L, dim]``; embeddings and heads are the application's.
"""

from __future__ import annotations

from typing import Any

from torch import nn

from common.attention import Attention
from common.blocks import DecoderBlock, Distil, EncoderBlock, FeedForward, make_norm
from common.positions import AddPositions
from common.stacks import Decoder, Encoder, EncoderDecoder


def transformer(dim: int = 512, *, heads: int = 8, layers: int = 6, dropout: float = 0.1) -> EncoderDecoder:
    """The original Transformer (Vaswani et al. 2017): Post-LN, ReLU, sinusoidal positions, encoder and decoder."""
    parts: dict[str, Any] = {"place": "post", "dropout": dropout}
    encoder = Encoder(
        [
            EncoderBlock(dim, attention=Attention(dim, heads), feed_forward=FeedForward(dim, kind="relu"), **parts)
            for _ in range(layers)
        ],
        positions=AddPositions(dim),
    )
    decoder = Decoder(
        [
            DecoderBlock(
                dim,
                attention=Attention(dim, heads),
                cross=Attention(dim, heads),
                feed_forward=FeedForward(dim, kind="relu"),
                **parts,
            )
            for _ in range(layers)
        ],
        positions=AddPositions(dim),
    )
    return EncoderDecoder(encoder, decoder)


def bert(dim: int = 768, *, heads: int = 12, layers: int = 12, length: int = 512, dropout: float = 0.1) -> Encoder:
    """A BERT-like encoder (Devlin et al. 2019): Post-LN, GELU, learned positions, every token sees all."""
    return Encoder(
        [
            EncoderBlock(
                dim,
                attention=Attention(dim, heads, dropout=dropout),
                feed_forward=FeedForward(dim),
                place="post",
                dropout=dropout,
            )
            for _ in range(layers)
        ],
        positions=AddPositions(dim, length=length),
    )


def gpt(dim: int = 768, *, heads: int = 12, layers: int = 12, length: int = 1024, dropout: float = 0.1) -> Encoder:
    """A GPT-like decoder (Radford et al. 2019): Pre-LN with a last norm, GELU, learned positions, causal."""
    return Encoder(
        [
            EncoderBlock(
                dim,
                attention=Attention(dim, heads, dropout=dropout),
                feed_forward=FeedForward(dim),
                dropout=dropout,
            )
            for _ in range(layers)
        ],
        positions=AddPositions(dim, length=length),
        norm=nn.LayerNorm(dim),
        causal=True,
    )


def llama(dim: int = 4096, *, heads: int = 32, kv_heads: int = 8, layers: int = 32, ratio: float = 3.5) -> Encoder:
    """A LLaMA-like decoder (Touvron et al. 2023): RMSNorm, SwiGLU, rotary positions, grouped heads, no bias, causal.

    Sizes are those of Llama 3 8B (Grattafiori et al. 2024). Pairs of features that rotary positions turn lie side by
    side, where published weights of other programs may order them otherwise.
    """
    return Encoder(
        [
            EncoderBlock(
                dim,
                attention=Attention(dim, heads, kv_heads=kv_heads, position="rotary", bias=False),
                feed_forward=FeedForward(dim, kind="swiglu", ratio=ratio, bias=False),
                norm="rms",
            )
            for _ in range(layers)
        ],
        norm=make_norm("rms", dim),
        causal=True,
    )


def informer(
    dim: int = 512,
    *,
    heads: int = 8,
    encoder_layers: int = 3,
    decoder_layers: int = 2,
    factor: float = 5.0,
    dropout: float = 0.05,
) -> EncoderDecoder:
    """The Informer (Zhou et al. 2021): ProbSparse encoder with distilling, ProbSparse causal decoder, Post-LN, GELU."""
    sparse: dict[str, Any] = {"mechanism": "probsparse", "factor": factor, "dropout": dropout}
    parts: dict[str, Any] = {"place": "post", "dropout": dropout}
    blocks: list[EncoderBlock | Distil] = []
    for layer in range(encoder_layers):
        if layer:
            blocks.append(Distil(dim))
        blocks.append(
            EncoderBlock(dim, attention=Attention(dim, heads, **sparse), feed_forward=FeedForward(dim), **parts)
        )
    decoder = Decoder(
        [
            DecoderBlock(
                dim,
                attention=Attention(dim, heads, **sparse),
                cross=Attention(dim, heads, dropout=dropout),
                feed_forward=FeedForward(dim),
                **parts,
            )
            for _ in range(decoder_layers)
        ],
        positions=AddPositions(dim),
        norm=nn.LayerNorm(dim),
    )
    return EncoderDecoder(Encoder(blocks, positions=AddPositions(dim), norm=nn.LayerNorm(dim)), decoder)


def swin_block(dim: int = 96, *, heads: int = 3, window: int = 7, dropout: float = 0.0) -> Encoder:
    """A pair of Swin blocks (Liu et al. 2021): windows, then shifted windows; call it with ``grid=(rows, columns)``."""
    return Encoder(
        [
            EncoderBlock(
                dim,
                attention=Attention(
                    dim, heads, mechanism="window2d", window=window, shift=shift, position="relative", dropout=dropout
                ),
                feed_forward=FeedForward(dim, dropout=dropout),
                dropout=dropout,
            )
            for shift in (0, window // 2)
        ]
    )
