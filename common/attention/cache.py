"""A key/value cache, so that decoding token by token projects each token once."""

from __future__ import annotations

import torch
from torch import Tensor

from common.errors import ShapeError


class KeyValueCache:
    """Keys and values of the tokens seen so far, for inference.

    Memory for all tokens is taken at the first use, so that appending copies the new tokens alone.

    Args:
        capacity: Most tokens it can hold.

    Attributes:
        length: Tokens held.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.length = 0
        self._held: tuple[Tensor, Tensor] | None = None

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Add tokens, and return all.

        Args:
            key: ``[B, G, T, D]``.
            value: ``[B, G, T, Dv]``.

        Returns:
            Keys and values of all tokens, ``[B, G, length, D]`` and ``[B, G, length, Dv]``; views.

        Raises:
            ShapeError: If there is no room, or a gradient would be lost.
        """
        if torch.is_grad_enabled() and (key.requires_grad or value.requires_grad):
            raise ShapeError("a cache carries no gradient", remedy="decode under torch.no_grad() or inference_mode()")
        end = self.length + key.shape[2]
        if end > self.capacity:
            raise ShapeError(f"a cache of {self.capacity} tokens cannot hold {end}", remedy="a larger capacity")
        if self._held is None:
            with torch.inference_mode(False):  # a tensor made under it could not be used outside
                self._held = (
                    torch.empty(*key.shape[:2], self.capacity, key.shape[3], dtype=key.dtype, device=key.device),
                    torch.empty(
                        *value.shape[:2], self.capacity, value.shape[3], dtype=value.dtype, device=value.device
                    ),
                )
        for held, new in zip(self._held, (key, value), strict=True):
            if (*held.shape[:2], held.shape[3], held.dtype) != (*new.shape[:2], new.shape[3], new.dtype):
                raise ShapeError(
                    f"{new.dtype} {list(new.shape)} does not fit into a cache of {held.dtype} {list(held.shape)}",
                    remedy="one cache for each sequence and block",
                )
        for held, new in zip(self._held, (key, value), strict=True):
            held[:, :, self.length : end] = new
        self.length = end
        keys, values = self._held
        return keys[:, :, :end], values[:, :, :end]
