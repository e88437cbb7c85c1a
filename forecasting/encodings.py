"""Encodings of time: calendar phases, time intervals, and the phase of a cycle."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from forecasting.windows import Batch

CALENDAR = 6
HISTORY = 3 + CALENDAR
FUTURE = 1 + CALENDAR


def calendar(phases: Tensor) -> Tensor:
    """Sine and cosine of the local day, week and year, so that the end of each meets its beginning.

    Args:
        phases: ``[..., 3]`` in ``[0, 1)``.

    Returns:
        ``[..., 6]``.
    """
    angles = 2 * math.pi * phases
    return torch.cat((angles.sin(), angles.cos()), dim=-1)


def history_features(batch: Batch, values: Tensor) -> Tensor:
    """What a network sees of each row of the lookback.

    Args:
        batch: The windows.
        values: ``[B, L]``, normalised.

    Returns:
        ``[B, L, 9]``: the value, zero where missing; whether it is observed; the log of the gap since the row
        before, in usual steps; the calendar.
    """
    gaps = torch.diff(batch.steps, dim=1, prepend=batch.steps[:, :1])
    channels = torch.stack((values * batch.observed, batch.observed.float(), gaps.clamp(min=0).log1p()), dim=-1)
    return torch.cat((channels, calendar(batch.phases)), dim=-1)


def future_features(batch: Batch) -> Tensor:
    """What a network sees of each requested time: the log of its distance in usual steps, and the calendar.

    Returns:
        ``[B, H, 7]``.
    """
    return torch.cat((batch.future_steps.clamp(min=0).log1p().unsqueeze(-1), calendar(batch.future_phases)), dim=-1)


def cycle_index(phases: Tensor, cycle: int, bins: int) -> Tensor:
    """Bin of a cycle that each time falls into.

    Args:
        phases: ``[..., 3]`` in ``[0, 1)``.
        cycle: 0 for the day, 1 for the week, 2 for the year.
        bins: Number of equal parts the cycle is cut into.

    Returns:
        Whole numbers ``[...]`` in ``[0, bins)``.
    """
    # A little is added, since a phase on the border of two bins may be rounded to just below it.
    return ((phases[..., cycle] * bins + 1e-3).long()).clamp(0, bins - 1)
