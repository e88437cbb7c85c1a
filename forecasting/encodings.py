"""Encodings of time: calendar phases of the local clock, phases of periods found in the data, and time intervals.

With ``t`` a moment in nanoseconds and ``l(t)`` what the local clock shows, as nanoseconds since 1970:

- elapsed time: ``(t - t_last) / step``, in usual steps of the series, exact for irregular times;
- time gap: ``log(1 + (t_i - t_(i-1)) / step)``;
- day: ``d = (l mod day) / day``; week: ``(weekday + d) / 7`` from Monday; year: ``(month - 1 + (day of month - 1 + d) /
  days in month) / 12``, so that each month is a twelfth. They follow the clock, and with it people's habits: where it
  is changed, they jump with it;
- a period ``p`` found in the data: ``(t mod p) / p``, of elapsed time, which no change of the clock breaks.

A phase ``x`` enters a network as ``sin(2 pi x)`` and ``cos(2 pi x)``, so that the end of a cycle meets its beginning.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from forecasting.series.clock import DAY, Clock

if TYPE_CHECKING:
    from forecasting.windows import Batch

CYCLES = 3  # of the calendar: day, week and year
_MONDAY = 3  # 1970-01-01 was a Thursday


class Calendar:
    """Where moments stand in their local day, week and year.

    Args:
        clock: The local clock.
        times: ``int64 [N]``, nanoseconds in UTC; the calendar covers them.
    """

    def __init__(self, clock: Clock, times: np.ndarray) -> None:
        first, last = (int(times.min()), int(times.max())) if len(times) else (0, 0)
        self._starts = torch.from_numpy(clock.starts)
        self._offsets = torch.from_numpy(clock.offsets)
        # A day more at each end, as the local clock may be ahead or behind.
        self._first = first // DAY - 1
        numbers = np.arange(self._first, last // DAY + 2)
        days = pd.DatetimeIndex(numbers.astype("datetime64[D]"))
        length = days.days_in_month.to_numpy()
        week = (numbers + _MONDAY) % 7 / 7
        year = (days.month.to_numpy() - 1 + (days.day.to_numpy() - 1) / length) / 12
        # Phases at midnight of each day, and what a whole day adds to them.
        self._midnight = torch.from_numpy(np.stack([0 * week, week, year], axis=-1).astype(np.float32))
        slopes = np.stack([1 + 0 * week, np.full(len(week), 1 / 7), 1 / (12 * length)], axis=-1)
        self._slope = torch.from_numpy(slopes.astype(np.float32))

    def phases(self, times: Tensor) -> Tensor:
        """Phases of the local day, week and year, ``float32 [..., 3]`` in ``[0, 1)``.

        Args:
            times: ``int64 [...]``, nanoseconds in UTC.
        """
        if len(self._offsets) == 1:
            local = times + self._offsets if self._offsets.any() else times
        else:
            local = times + self._offsets[torch.searchsorted(self._starts, times, right=True) - 1]
        day = local.div(DAY, rounding_mode="floor")
        fraction = (local - day * DAY).float().div_(DAY).unsqueeze(-1)  # [..., 1]
        number = (day - self._first).view(-1)
        midnight = self._midnight.index_select(0, number).view(*times.shape, CYCLES)
        return midnight.addcmul_(self._slope.index_select(0, number).view_as(midnight), fraction)


def cycle_phases(times: Tensor, periods: Sequence[int]) -> Tensor:
    """Phases of periods found in the data, ``float32 [..., K]`` in ``[0, 1)``.

    Args:
        times: ``int64 [...]``, nanoseconds.
        periods: ``K`` lengths in nanoseconds.
    """
    # Remainders are taken in integers, as nanoseconds since 1970 do not fit a float.
    return torch.stack([(torch.remainder(times, period).double() / period).float() for period in periods], dim=-1)


def waves(phases: Tensor) -> Tensor:
    """Sine and cosine of phases, ``[..., P]`` to ``[..., 2 P]``."""
    angles = 2 * math.pi * phases
    return torch.cat((angles.sin(), angles.cos()), dim=-1)


def history_width(periods: int, covariates: int) -> int:
    """Number of features of :func:`history_features` with so many periods and features of covariates."""
    return 3 + 2 * (CYCLES + periods) + covariates


def future_width(periods: int, covariates: int) -> int:
    """Number of features of :func:`future_features` with so many periods and features of covariates."""
    return 1 + 2 * (CYCLES + periods) + covariates


def history_features(batch: Batch, values: Tensor) -> Tensor:
    """What a network sees of each row of the lookback.

    Args:
        batch: The windows.
        values: ``[B, L]``, normalised.

    Returns:
        ``[B, L, features]``: the value, zero where missing; whether it is observed; the log of the gap since the row
        before, in usual steps; the phases; the covariates.
    """
    gaps = torch.diff(batch.steps, dim=1, prepend=batch.steps[:, :1])
    channels = torch.stack((values * batch.observed, batch.observed.float(), gaps.clamp(min=0).log1p()), dim=-1)
    return torch.cat((channels, waves(batch.phases), batch.covariates), dim=-1)


def future_features(batch: Batch) -> Tensor:
    """What a network sees of each requested time: the log of its distance in usual steps, phases, and covariates.

    Returns:
        ``[B, H, features]``.
    """
    distance = batch.future_steps.clamp(min=0).log1p().unsqueeze(-1)
    return torch.cat((distance, waves(batch.future_phases), batch.future_covariates), dim=-1)


def cycle_index(phases: Tensor, cycle: int, bins: int) -> Tensor:
    """Bin of a cycle that each time falls into.

    Args:
        phases: ``[..., P]`` in ``[0, 1)``.
        cycle: Number of the cycle: 0 for the day, 1 for the week, 2 for the year.
        bins: Number of equal parts the cycle is cut into.

    Returns:
        Whole numbers ``[...]`` in ``[0, bins)``.
    """
    # A little is added, since a phase on the border of two bins may be rounded to just below it.
    return ((phases[..., cycle] * bins + 1e-3).long()).clamp(0, bins - 1)
