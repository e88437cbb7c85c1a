"""Positions: sinusoidal and learned tables, relative biases, and rotary by index or by elapsed time."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from common.errors import ShapeError


def sinusoidal(positions: Tensor, dim: int, *, base: float = 10000.0) -> Tensor:
    """Sines and cosines of a position at geometrically spaced wavelengths (Vaswani et al. 2017, 3.5).

    Args:
        positions: Any shape ``[...]``, in steps; need not be whole numbers.
        dim: Width of the encoding, even.
        base: Ratio of the longest to the shortest wavelength.

    Returns:
        ``[..., dim]``: entry ``2i`` is ``sin(p / base^(2i/dim))``, entry ``2i + 1`` its cosine.

    Raises:
        ShapeError: If ``dim`` is odd.
    """
    angles = positions.unsqueeze(-1) * _frequencies(dim, base, positions.device)
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2)  # [..., dim/2, 2] -> [..., dim]


def rotate(tensor: Tensor, positions: Tensor, *, base: float = 10000.0) -> Tensor:
    """Rotary positions (Su et al. 2021, "RoFormer"): turn each pair of features by an angle ``p * frequency``.

    The product of a query and a key so turned depends on the difference of their positions alone, which is
    exact for irregular steps when a position is an elapsed time.

    Args:
        tensor: ``[B, H, L, D]`` with ``D`` even.
        positions: ``[L]`` or ``[B, L]``, in steps: an index, or elapsed time divided by the usual step.
        base: Ratio of the longest to the shortest wavelength.

    Returns:
        ``[B, H, L, D]`` in the type of ``tensor``.

    Raises:
        ShapeError: If ``D`` is odd.
    """
    # Differences of long times would be lost in float32, so angles are computed in float64 (which Apple's GPUs lack).
    wide = torch.float32 if tensor.device.type == "mps" else torch.float64
    angles = positions.to(wide).unsqueeze(-1) * _frequencies(tensor.shape[-1], base, tensor.device, wide)
    if angles.dim() == 3:
        angles = angles.unsqueeze(1)  # [B, L, D/2] -> [B, 1, L, D/2]
    kind = torch.promote_types(tensor.dtype, torch.float32)  # half precision would round the product twice
    cosine, sine = angles.cos().to(kind), angles.sin().to(kind)
    even, odd = tensor[..., 0::2], tensor[..., 1::2]
    turned = torch.stack((even * cosine - odd * sine, even * sine + odd * cosine), dim=-1)
    return turned.flatten(-2).to(tensor.dtype)  # [B, H, L, D/2, 2] -> [B, H, L, D]


def _frequencies(dim: int, base: float, device: torch.device, kind: torch.dtype = torch.float32) -> Tensor:
    if dim % 2:
        raise ShapeError(f"a width of {dim} is odd, but positions need pairs", remedy="use an even width a head")
    return torch.exp(torch.arange(0, dim, 2, device=device, dtype=kind) * (-math.log(base) / dim))


class LearnedPosition(nn.Module):
    """A table with one learned vector a position (Gehring et al. 2017).

    Args:
        length: Number of positions.
        dim: Width.
    """

    def __init__(self, length: int, dim: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.empty(length, dim))
        nn.init.trunc_normal_(self.table, std=0.02)

    def forward(self, length: int) -> Tensor:
        """First ``length`` rows, ``[length, dim]``.

        Raises:
            ShapeError: If the table is shorter than ``length``.
        """
        if length > self.table.shape[0]:
            raise ShapeError(f"{length} positions asked of a table of {self.table.shape[0]}")
        return self.table[:length]


class AddPositions(nn.Module):
    """Adds an encoding of its index to each token.

    Args:
        dim: Width.
        length: Most positions of a learned table; None for sines and cosines, which know no end.
    """

    def __init__(self, dim: int, *, length: int | None = None) -> None:
        super().__init__()
        self.dim = dim
        self.learned = None if length is None else LearnedPosition(length, dim)

    def forward(self, tokens: Tensor, *, start: int = 0) -> Tensor:
        """``[B, L, dim]`` to ``[B, L, dim]``; the first token stands at ``start``."""
        end = start + tokens.shape[1]
        if self.learned is not None:
            return tokens + self.learned(end)[start:]
        places = torch.arange(start, end, device=tokens.device)
        return tokens + sinusoidal(places, self.dim).to(tokens.dtype)


class RelativeBias(nn.Module):
    """A learned score for each clipped distance between key and query (Shaw et al. 2018, simplified to a bias).

    Args:
        heads: Number of query heads.
        reach: Distances beyond this share its bias.
    """

    def __init__(self, heads: int, reach: int) -> None:
        super().__init__()
        if reach < 0:
            raise ShapeError(f"reach {reach} must be at least 0")
        self.reach = reach
        self.table = nn.Parameter(torch.zeros(2 * reach + 1, heads))

    def forward(self, queries: int, keys: int) -> Tensor:
        """Bias ``[H, L, S]``; the queries are the last ``L`` of the ``S`` positions, as under a causal mask."""
        device = self.table.device
        place = torch.arange(queries, device=device)[:, None] + keys - queries
        distance = torch.arange(keys, device=device)[None, :] - place
        index = distance.clamp(-self.reach, self.reach) + self.reach
        return self.table[index].permute(2, 0, 1)  # [L, S, H] -> [H, L, S]


class RelativeBias2d(nn.Module):
    """A learned score for each row and column offset inside a window (Liu et al. 2021, eq. 4).

    Args:
        heads: Number of query heads.
        window: Side of the window.
    """

    def __init__(self, heads: int, window: int) -> None:
        super().__init__()
        self.window = window
        self.table = nn.Parameter(torch.empty((2 * window - 1) ** 2, heads))
        nn.init.trunc_normal_(self.table, std=0.02)

    def forward(self) -> Tensor:
        """Bias ``[H, window^2, window^2]``."""
        side = torch.arange(self.window, device=self.table.device)
        offset = side[:, None] - side[None, :] + self.window - 1  # [w, w], of rows and of columns alike
        index = offset[:, None, :, None] * (2 * self.window - 1) + offset[None, :, None, :]  # [w, w, w, w]
        return self.table[index.flatten(2).flatten(0, 1)].permute(2, 0, 1)  # [w w, w w, H] -> [H, w w, w w]
