"""Windows: an index into one set of row tensors; a batch is gathered, never copied beforehand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from forecasting.series import Panel
from forecasting.timestamps import local_phases


class Batch(NamedTuple):
    """Windows ready for a model; ``B`` windows, ``L`` lookback, ``H`` horizon.

    Attributes:
        values: ``[B, L]``, in units of the series' scale; zero where missing.
        observed: ``[B, L]`` boolean.
        steps: ``[B, L]``, elapsed time since the last row of the lookback, in usual steps; not above zero.
        phases: ``[B, L, 3]``, local day, week and year in ``[0, 1)``.
        future_steps: ``[B, H]``, the same for the requested times; above zero.
        future_phases: ``[B, H, 3]``.
        target: ``[B, H]``, scaled; zero where missing.
        target_observed: ``[B, H]`` boolean.
        series: ``[B]``, number of the series.
    """

    values: Tensor
    observed: Tensor
    steps: Tensor
    phases: Tensor
    future_steps: Tensor
    future_phases: Tensor
    target: Tensor
    target_observed: Tensor
    series: Tensor


class Rows:
    """The rows of a panel as tensors that windows are gathered from.

    Args:
        panel: The series.
        centre: ``[series]``, subtracted from the values of each series.
        scale: ``[series]``, by which they are then divided.
    """

    def __init__(self, panel: Panel, *, centre: np.ndarray, scale: np.ndarray) -> None:
        lengths = np.diff(panel.starts)
        scaled = (panel.values - np.repeat(centre, lengths)) / np.repeat(scale, lengths)
        self.observed = torch.from_numpy(~np.isnan(scaled))
        self.values = torch.from_numpy(np.nan_to_num(scaled, nan=0.0).astype(np.float32))
        self.times = torch.from_numpy(panel.times)
        self.phases = torch.from_numpy(local_phases(panel.times, panel.style.zone))
        self.starts = torch.from_numpy(panel.starts)
        # A series of one row has no step of its own, and must not change what is usual.
        known = [step.nanoseconds for step in panel.steps if step is not None]
        usual = int(np.median(known)) if known else 1
        self.step = torch.tensor([usual if step is None else step.nanoseconds for step in panel.steps])

    def gather(self, series: Tensor, origins: Tensor, *, lookback: int, horizon: int) -> Batch:
        """Gather windows.

        Args:
            series: ``[B]``, number of the series.
            origins: ``[B]``, row of the first requested time.
            lookback: Rows before the origin; those before the series' first row count as missing.
            horizon: Rows from the origin on.

        Returns:
            The batch.
        """
        rows = origins[:, None] + torch.arange(-lookback, horizon)  # [B, L + H]
        first = self.starts[series][:, None]
        inside = rows >= first
        rows = torch.maximum(rows, first)
        last = self.times[origins - 1][:, None]
        # Differences are taken in integers, and divided in double: nanoseconds do not fit a float.
        steps = ((self.times[rows] - last).double() / self.step[series][:, None]).float()
        values, observed, phases = self.values[rows], self.observed[rows] & inside, self.phases[rows]
        values = values.masked_fill(~observed, 0.0)
        past, future = slice(None, lookback), slice(lookback, None)
        return Batch(
            values=values[:, past],
            observed=observed[:, past],
            steps=steps[:, past],
            phases=phases[:, past],
            future_steps=steps[:, future],
            future_phases=phases[:, future],
            target=values[:, future],
            target_observed=observed[:, future],
            series=series,
        )


class Windows:
    """A set of windows over rows; iterating yields batches.

    Args:
        rows: The rows.
        series: ``[N]``, number of the series of each window.
        origins: ``[N]``, row of the first requested time of each window.
        lookback: Rows before the origin.
        horizon: Rows from the origin on.
        batch_size: Windows in a batch.
        shuffle_seed: Draw a new order in each pass, from this seed; None keeps the order.
    """

    def __init__(
        self,
        rows: Rows,
        series: Tensor,
        origins: Tensor,
        *,
        lookback: int,
        horizon: int,
        batch_size: int,
        shuffle_seed: int | None = None,
    ) -> None:
        self.rows, self.series, self.origins = rows, series, origins
        self.lookback, self.horizon, self.batch_size = lookback, horizon, batch_size
        self._generator = None if shuffle_seed is None else torch.Generator().manual_seed(shuffle_seed)

    def __len__(self) -> int:
        return -(-len(self.origins) // self.batch_size)

    def __iter__(self) -> Iterator[Batch]:
        count = len(self.origins)
        order = None if self._generator is None else torch.randperm(count, generator=self._generator)
        for start in range(0, count, self.batch_size):
            chosen = slice(start, start + self.batch_size) if order is None else order[start : start + self.batch_size]
            yield self.rows.gather(
                self.series[chosen], self.origins[chosen], lookback=self.lookback, horizon=self.horizon
            )


class Split(NamedTuple):
    """Rows where each series' validation and test part begin, ``int64 [series]``."""

    validation: np.ndarray
    test: np.ndarray


def split_rows(panel: Panel, *, validation: float, test: float) -> Split:
    """Cut each series by time into training, validation and test rows.

    Args:
        panel: The series.
        validation: Share of a series' rows, or, from 1 on, a number of rows.
        test: The same for the test part.

    Returns:
        The first row of validation and of test of each series.
    """
    lengths = np.diff(panel.starts)

    def rows(part: float) -> np.ndarray:
        return np.minimum(np.full(len(lengths), int(part)) if part >= 1 else (lengths * part).astype(np.int64), lengths)

    first_test = panel.starts[1:] - rows(test)
    return Split(validation=np.maximum(first_test - rows(validation), panel.starts[:-1]), test=first_test)


def origins_within(
    panel: Panel, first: np.ndarray, stop: np.ndarray, *, lookback: int, horizon: int
) -> tuple[Tensor, Tensor]:
    """Every window whose requested rows lie in ``[first, stop)`` of their series, stride 1.

    A window needs at least one row before its origin. Where the part begins with the series itself, windows
    begin once the lookback is full, or half the part has gone by in series too short for that.

    Args:
        panel: The series.
        first: ``[series]``, first row that may be requested.
        stop: ``[series]``, row after the last that may be requested.
        lookback: Rows before the origin.
        horizon: Rows from the origin on.

    Returns:
        Series number and origin of each window, ``int64 [N]`` each.
    """
    begin = panel.starts[:-1]
    warm = np.minimum(lookback, np.maximum(1, (stop - begin) // 2))
    low = np.maximum(first, begin + warm)
    count = np.maximum(0, stop - horizon + 1 - low)
    series = np.repeat(np.arange(len(begin)), count)
    offset = np.arange(len(series)) - np.repeat(np.cumsum(count) - count, count)
    return torch.from_numpy(series), torch.from_numpy(np.repeat(low, count) + offset)


def has_values(panel: Panel, stop: np.ndarray) -> np.ndarray:
    """Which series have an observed value before row ``stop``, boolean ``[series]``."""
    observed, group = _observed_before(panel, stop)
    return np.bincount(group, weights=observed, minlength=len(panel.ids)) > 0


def has_targets(observed: Tensor, origins: Tensor, horizon: int) -> bool:
    """Whether any of some windows has an observed target.

    Args:
        observed: Boolean ``[rows]``.
        origins: ``[N]``, row of the first requested time of each window.
        horizon: Rows from the origin on.
    """
    seen = torch.nn.functional.pad(observed.long().cumsum(0), (1, 0))  # [rows + 1]
    return bool((seen[origins + horizon] > seen[origins]).any())


def training_scale(panel: Panel, stop: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each series' observed values before row ``stop``.

    A series that does not vary gets the scale of its level, or one: never zero.

    Returns:
        Centre and scale, ``float64 [series]`` each.
    """
    observed, group = _observed_before(panel, stop)
    count = np.bincount(group, weights=observed, minlength=len(panel.ids))
    safe = np.maximum(count, 1)
    filled = np.where(observed, panel.values, 0.0)
    centre = np.bincount(group, weights=filled, minlength=len(panel.ids)) / safe
    deviation = np.where(observed, panel.values - centre[group], 0.0)
    scale = np.sqrt(np.bincount(group, weights=deviation**2, minlength=len(panel.ids)) / safe)
    # Rounding leaves a constant series with a spread of about its level times the machine epsilon.
    flat = scale <= 1e-12 * np.abs(centre)
    return centre, np.where(flat, np.where(centre != 0, np.abs(centre), 1.0), scale)


def _observed_before(panel: Panel, stop: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which rows hold a value before row ``stop`` of their series, and the number of the series, ``[rows]`` each."""
    lengths = np.diff(panel.starts)
    inside = np.arange(len(panel.values)) < np.repeat(stop, lengths)
    return inside & ~np.isnan(panel.values), np.repeat(np.arange(len(panel.ids)), lengths)
