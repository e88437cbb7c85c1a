"""Normalisation of one window by its own lookback, aware of what is missing."""

from __future__ import annotations

import torch
from torch import Tensor

SCALE_FLOOR = 0.01
"""Least spread of a window, in units of the series' training standard deviation."""


def last_observed(values: Tensor, observed: Tensor) -> Tensor:
    """The last observed value of each window, zero (the series' mean) where there is none.

    Args:
        values: ``[B, L]``.
        observed: ``[B, L]`` boolean.

    Returns:
        ``[B, 1]``.
    """
    place = torch.arange(values.shape[1], device=values.device)
    last = torch.where(observed, place, -1).amax(dim=1, keepdim=True)  # [B, 1]
    return values.gather(1, last.clamp(min=0)).masked_fill(last < 0, 0.0)


def spread(values: Tensor, observed: Tensor) -> Tensor:
    """Standard deviation of each window's observed values, with a floor.

    Args:
        values: ``[B, L]``.
        observed: ``[B, L]`` boolean.

    Returns:
        ``[B, 1]``, at least :data:`SCALE_FLOOR`.
    """
    count = observed.sum(dim=1, keepdim=True).clamp(min=1)
    mean = (values * observed).sum(dim=1, keepdim=True) / count
    variance = ((values - mean).square() * observed).sum(dim=1, keepdim=True) / count
    # The floor before the root, whose slope at zero is infinite.
    return variance.clamp(min=SCALE_FLOOR**2).sqrt()
