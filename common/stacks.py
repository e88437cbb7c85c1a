"""Stacks of blocks: encoder-only, decoder-only and encoder-decoder."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import Tensor, nn

from common.attention import KeyValueCache
from common.blocks import DecoderBlock, Distil, EncoderBlock
from common.errors import ShapeError


class Encoder(nn.Module):
    """Blocks of self-attention, one after the other: an encoder, or with ``causal`` a decoder-only model.

    Args:
        blocks: The blocks, and distilling between them where the sequence is to become shorter.
        positions: Adds positions to the tokens before the first block.
        norm: Last norm, for blocks with the norm before the branch.
        causal: Whether no token sees a later one.
    """

    def __init__(
        self,
        blocks: Iterable[EncoderBlock | Distil],
        *,
        positions: nn.Module | None = None,
        norm: nn.Module | None = None,
        causal: bool = False,
    ) -> None:
        super().__init__()
        self.positions = positions
        self.blocks = nn.ModuleList(blocks)
        self.norm = norm
        self.causal = causal

    def forward(
        self,
        tokens: Tensor,
        *,
        key_padding_mask: Tensor | None = None,
        caches: list[KeyValueCache] | None = None,
        **attention: Any,
    ) -> Tensor:
        """Encode.

        Args:
            tokens: ``[B, L, dim]``.
            key_padding_mask: Boolean ``[B, L]``, True where a token is real.
            caches: One a block, to decode token by token; see :meth:`new_caches`.
            attention: Goes to every attention (mask, positions, grid).

        Returns:
            ``[B, L', dim]``; ``L'`` is ``L``, halved by every distilling.

        Raises:
            ShapeError: If there are caches, but not one for each block.
        """
        if caches is not None and len(caches) != len(self.blocks):
            raise ShapeError(f"{len(self.blocks)} blocks need as many caches, got {len(caches)}")
        if self.positions is not None:
            tokens = self.positions(tokens, start=caches[0].length if caches else 0)
        if self.causal:
            attention["causal"] = True
        for number, block in enumerate(self.blocks):
            if isinstance(block, Distil):
                tokens = block(tokens, key_padding_mask)
                key_padding_mask = None if key_padding_mask is None else block.halve_mask(key_padding_mask)
            else:
                cache = None if caches is None else caches[number]
                tokens = block(tokens, key_padding_mask=key_padding_mask, cache=cache, **attention)
        return tokens if self.norm is None else self.norm(tokens)

    def mask_of_output(self, key_padding_mask: Tensor | None) -> Tensor | None:
        """Which of the tokens that come out are real."""
        for block in self.blocks:
            if isinstance(block, Distil) and key_padding_mask is not None:
                key_padding_mask = block.halve_mask(key_padding_mask)
        return key_padding_mask

    def new_caches(self, capacity: int) -> list[KeyValueCache]:
        """Empty caches for decoding up to ``capacity`` tokens."""
        return [KeyValueCache(capacity) for _ in self.blocks]


class Decoder(nn.Module):
    """Blocks of self- and cross-attention.

    Args:
        blocks: The blocks.
        positions: Adds positions to the tokens before the first block.
        norm: Last norm, for blocks with the norm before the branch.
        causal: Whether no token sees a later one.
    """

    def __init__(
        self,
        blocks: Iterable[DecoderBlock],
        *,
        positions: nn.Module | None = None,
        norm: nn.Module | None = None,
        causal: bool = True,
    ) -> None:
        super().__init__()
        self.positions = positions
        self.blocks = nn.ModuleList(blocks)
        self.norm = norm
        self.causal = causal

    def forward(self, tokens: Tensor, memory: Tensor, **options: Any) -> Tensor:
        """``[B, L, dim]`` and the memory ``[B, S, dim]`` to ``[B, L, dim]``; options as of :class:`DecoderBlock`."""
        if self.positions is not None:
            tokens = self.positions(tokens)
        for block in self.blocks:
            tokens = block(tokens, memory, causal=self.causal, **options)
        return tokens if self.norm is None else self.norm(tokens)


class EncoderDecoder(nn.Module):
    """An encoder whose output a decoder attends to.

    Args:
        encoder: The encoder.
        decoder: The decoder.
    """

    def __init__(self, encoder: Encoder, decoder: Decoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder

    def forward(self, source: Tensor, target: Tensor, *, source_padding_mask: Tensor | None = None) -> Tensor:
        """Encode the source, and decode the target beside it.

        Args:
            source: ``[B, S, dim]``.
            target: ``[B, L, dim]``.
            source_padding_mask: Boolean ``[B, S]``, True where a source token is real.

        Returns:
            ``[B, L, dim]``.
        """
        memory = self.encoder(source, key_padding_mask=source_padding_mask)
        real = self.encoder.mask_of_output(source_padding_mask)
        return self.decoder(target, memory, memory_padding_mask=real)
