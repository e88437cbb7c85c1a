"""Stacks of blocks: encoder-only, decoder-only and encoder-decoder."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import Tensor, nn

from common.attention import KeyValueCache
from common.blocks import DecoderBlock, Distil, EncoderBlock
from common.errors import ShapeError


class _Stack(nn.Module):
    """What both stacks have: blocks, positions before them, a norm after them, and caches for decoding."""

    def __init__(
        self, blocks: Iterable[nn.Module], *, positions: nn.Module | None, norm: nn.Module | None, causal: bool
    ) -> None:
        super().__init__()
        self.positions = positions
        self.blocks = nn.ModuleList(blocks)
        self.norm = norm
        self.causal = causal

    def new_caches(self, capacity: int) -> list[KeyValueCache]:
        """Empty caches for decoding up to ``capacity`` tokens."""
        return [KeyValueCache(capacity) for _ in self.blocks]

    def _placed(self, tokens: Tensor, caches: list[KeyValueCache] | None) -> Tensor:
        """Check the caches, and add positions to the tokens, which follow those of the caches."""
        if caches is not None and not self.causal:
            raise ShapeError("only a causal stack can decode token by token", remedy="causal=True, or no caches")
        if caches is not None and (len(caches) != len(self.blocks) or len(set(map(id, caches))) != len(caches)):
            raise ShapeError(
                f"{len(self.blocks)} blocks need as many caches, each its own, got {len(set(map(id, caches)))}",
                remedy="new_caches(capacity)",
            )
        for cache in caches or ():  # before the first of them takes the tokens
            if cache.length != caches[0].length or cache.length + tokens.shape[1] > cache.capacity:  # pyright: ignore[reportOptionalSubscript]
                raise ShapeError(
                    f"caches of {[c.length for c in caches or ()]} tokens cannot take {tokens.shape[1]} more",
                    remedy="new_caches(capacity) of a larger capacity, used by this stack alone",
                )
        if self.positions is None:
            return tokens
        return self.positions(tokens, start=caches[0].length if caches else 0)


class Encoder(_Stack):
    """Blocks of self-attention, one after the other: an encoder, or with ``causal`` a decoder-only model.

    Args:
        blocks: The blocks, and distilling between them where the sequence is to become shorter.
        positions: Adds positions to the tokens before the first block.
        norm: Last norm, for blocks with the norm before the branch.
        causal: Whether no token sees a later one.

    Raises:
        ShapeError: If a causal stack holds distilling.
    """

    def __init__(
        self,
        blocks: Iterable[EncoderBlock | Distil],
        *,
        positions: nn.Module | None = None,
        norm: nn.Module | None = None,
        causal: bool = False,
    ) -> None:
        super().__init__(blocks, positions=positions, norm=norm, causal=causal)
        if causal and any(isinstance(block, Distil) for block in self.blocks):
            raise ShapeError("distilling looks at the next token, so it cannot stand in a causal stack")

    def forward(
        self,
        tokens: Tensor,
        *,
        key_padding_mask: Tensor | None = None,
        positions: Tensor | None = None,
        caches: list[KeyValueCache] | None = None,
        **attention: Any,
    ) -> Tensor:
        """Encode.

        Args:
            tokens: ``[B, L, dim]``.
            key_padding_mask: Boolean ``[B, L]``, True where a token is real.
            caches: One a block, to decode token by token; see :meth:`new_caches`.
            positions: ``[L]`` or ``[B, L]``, for rotary attention; halved by distilling like the tokens.
            attention: Goes to every attention (mask, grid).

        Returns:
            ``[B, L', dim]``; ``L'`` is ``L``, halved by every distilling.

        Raises:
            ShapeError: If there are caches, but not one for each block.
        """
        if "causal" in attention:
            raise ShapeError("whether a stack is causal is said when it is made", remedy="Encoder(..., causal=True)")
        tokens = self._placed(tokens, caches)
        attention["causal"] = self.causal
        for number, block in enumerate(self.blocks):
            if isinstance(block, Distil):
                tokens = block(tokens, key_padding_mask)
                key_padding_mask = None if key_padding_mask is None else block.halve_mask(key_padding_mask)
                positions = None if positions is None else block.halve_positions(positions)
            else:
                cache = None if caches is None else caches[number]
                tokens = block(tokens, key_padding_mask=key_padding_mask, positions=positions, cache=cache, **attention)
        return tokens if self.norm is None else self.norm(tokens)

    def positions_of_output(self, positions: Tensor) -> Tensor:
        """Where the tokens that come out stand."""
        for block in self.blocks:
            if isinstance(block, Distil):
                positions = block.halve_positions(positions)
        return positions

    def mask_of_output(self, key_padding_mask: Tensor) -> Tensor:
        """Which of the tokens that come out are real, boolean ``[B, L']``."""
        for block in self.blocks:
            if isinstance(block, Distil):
                key_padding_mask = block.halve_mask(key_padding_mask)
        return key_padding_mask


class Decoder(_Stack):
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
        super().__init__(blocks, positions=positions, norm=norm, causal=causal)

    def forward(
        self, tokens: Tensor, memory: Tensor, *, caches: list[KeyValueCache] | None = None, **options: Any
    ) -> Tensor:
        """Decode.

        Args:
            tokens: ``[B, L, dim]``.
            memory: ``[B, S, dim]``.
            caches: One a block, to decode token by token; see :meth:`new_caches`.
            options: As of :class:`common.blocks.DecoderBlock`.

        Returns:
            ``[B, L, dim]``.

        Raises:
            ShapeError: If there are caches, but not one for each block, or the stack is not causal.
        """
        tokens = self._placed(tokens, caches)
        for number, block in enumerate(self.blocks):
            cache = None if caches is None else caches[number]
            tokens = block(tokens, memory, causal=self.causal, cache=cache, **options)
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

    def forward(
        self,
        source: Tensor,
        target: Tensor,
        *,
        source_padding_mask: Tensor | None = None,
        target_padding_mask: Tensor | None = None,
    ) -> Tensor:
        """Encode the source, and decode the target beside it.

        Args:
            source: ``[B, S, dim]``.
            target: ``[B, L, dim]``.
            source_padding_mask: Boolean ``[B, S]``, True where a source token is real.
            target_padding_mask: Boolean ``[B, L]``, True where a target token is real.

        Returns:
            ``[B, L, dim]``.
        """
        memory = self.encoder(source, key_padding_mask=source_padding_mask)
        real = None if source_padding_mask is None else self.encoder.mask_of_output(source_padding_mask)
        return self.decoder(target, memory, key_padding_mask=target_padding_mask, memory_padding_mask=real)
