"""Attention in shifted 2-D windows (Liu et al. 2021, "Swin Transformer"), O(N w^2) for N positions."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from common.attention.full import full
from common.attention.masks import check_heads, check_padding
from common.errors import ShapeError


def window2d(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    grid: tuple[int, int],
    window: int,
    shift: int = 0,
    key_padding_mask: Tensor | None = None,
    bias: Tensor | None = None,
    dropout: float = 0.0,
) -> Tensor:
    """Attend within windows of ``window x window`` positions, self or cross.

    The grid is padded to whole windows; padding is never attended to. With a shift, windows are moved by a
    cyclic roll, and positions brought together from opposite borders do not see each other.

    Args:
        query: ``[B, H, L, D]`` with ``L = rows * columns``, row by row.
        key: ``[B, G, L, D]`` on the same grid.
        value: ``[B, G, L, Dv]`` on the same grid.
        grid: ``(rows, columns)``.
        window: Side of a window, in positions.
        shift: How far windows are moved up and left, ``0 <= shift < window``; not along a side of one window.
        key_padding_mask: Boolean ``[B, L]``, True where a key may be attended to.
        bias: ``[H, window^2, window^2]``, added to the scores of every window.
        dropout: Probability of dropping a weight; give 0 outside training.

    Returns:
        ``[B, H, L, Dv]``; a position whose window has nothing to attend to is zero.

    Raises:
        ShapeError: If the lengths are not that of the grid, or the shift is out of range.
    """
    check_heads(query, key, value)
    rows, columns = grid
    if query.shape[2] != rows * columns or key.shape[2] != rows * columns:
        raise ShapeError(
            f"a grid of {rows} x {columns} has {rows * columns} positions, got {query.shape[2]} queries and "
            f"{key.shape[2]} keys",
            remedy="pass grid=(rows, columns) of the feature map, and keys on the same grid",
        )
    if not 0 <= shift < window:
        raise ShapeError(f"shift {shift} is not within 0 and window - 1 = {window - 1}")
    batch = query.shape[0]
    check_padding(key_padding_mask, "key_padding_mask", batch=batch, length=key.shape[2])
    # Along a side that one window covers, a shift would only part what belongs together.
    shifts = (shift if rows > window else 0, shift if columns > window else 0)
    parts = [_partition(tensor, grid, window, shifts) for tensor in (query, key, value)]  # [B n, heads, w w, width]
    allowed = _allowed(grid, window, shifts, query.device, key_padding_mask)
    if allowed is not None:
        allowed = allowed.expand(batch, -1, -1, -1).flatten(0, 1).unsqueeze(1)  # [B, n, ., w w] -> [B n, 1, ., w w]
    mixed = full(parts[0], parts[1], parts[2], mask=allowed, bias=bias, dropout=dropout)
    return _merge(mixed, batch, grid, window, shifts)


def _padded(grid: tuple[int, int], window: int) -> tuple[int, int]:
    return -grid[0] % window + grid[0], -grid[1] % window + grid[1]


def _partition(tensor: Tensor, grid: tuple[int, int], window: int, shift: tuple[int, int]) -> Tensor:
    """``[B, heads, L, width]`` to ``[B windows, heads, window^2, width]``."""
    batch, heads, _, width = tensor.shape
    rows, columns = _padded(grid, window)
    field = tensor.reshape(batch, heads, *grid, width)
    if (rows, columns) != grid:
        field = pad(field, (0, 0, 0, columns - grid[1], 0, rows - grid[0]))
    if any(shift):
        field = field.roll((-shift[0], -shift[1]), dims=(2, 3))
    field = field.reshape(batch, heads, rows // window, window, columns // window, window, width)
    # [B, heads, R, w, C, w, width] -> [B, R, C, heads, w, w, width] -> [B R C, heads, w w, width]
    return field.permute(0, 2, 4, 1, 3, 5, 6).reshape(-1, heads, window * window, width)


def _merge(parts: Tensor, batch: int, grid: tuple[int, int], window: int, shift: tuple[int, int]) -> Tensor:
    """The inverse of :func:`_partition`: back to ``[B, heads, L, width]``."""
    heads, width = parts.shape[1], parts.shape[3]
    rows, columns = _padded(grid, window)
    field = parts.reshape(batch, rows // window, columns // window, heads, window, window, width)
    # [B, R, C, heads, w, w, width] -> [B, heads, R, w, C, w, width] -> [B, heads, rows, columns, width]
    field = field.permute(0, 3, 1, 4, 2, 5, 6).reshape(batch, heads, rows, columns, width)
    if any(shift):
        field = field.roll(shift, dims=(2, 3))
    return field[:, :, : grid[0], : grid[1]].reshape(batch, heads, grid[0] * grid[1], width)


def _allowed(
    grid: tuple[int, int], window: int, shift: tuple[int, int], device: torch.device, key_padding_mask: Tensor | None
) -> Tensor | None:
    """Who may see whom inside each window, ``[B or 1, windows, w w or 1, w w]``, or None if all may."""
    if not any(shift) and key_padding_mask is None and _padded(grid, window) == grid:
        return None
    present = torch.ones(1, grid[0] * grid[1], dtype=torch.bool, device=device)
    if key_padding_mask is not None:
        present = present & key_padding_mask
    keys = _partition(present[:, None, :, None], grid, window, shift)  # [B windows, 1, w w, 1]
    allowed = keys.reshape(present.shape[0], -1, 1, window * window)
    if not any(shift):
        return allowed
    # After the roll, the last `shift` rows and columns hold what came from the opposite border.
    rows, columns = _padded(grid, window)
    row_side = torch.arange(rows, device=device) >= rows - shift[0]
    column_side = torch.arange(columns, device=device) >= columns - shift[1]
    side = (row_side[:, None] * 2 + column_side[None, :]).reshape(1, 1, -1, 1)
    sides = _partition(side, (rows, columns), window, (0, 0)).reshape(1, -1, window * window)  # [1, windows, w w]
    return allowed & (sides[..., :, None] == sides[..., None, :])
