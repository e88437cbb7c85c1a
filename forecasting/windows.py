"""Windows: an index into one set of row tensors; a batch is gathered, never copied beforehand."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from forecasting.covariates import Covariate, row_features, static_features
from forecasting.encodings import Calendar, cycle_phases
from forecasting.series.panel import Panel

CHUNK = 1 << 20  # times whose phases are worked out at once
MOST_SHUFFLED = 1 << 22
"""Windows up to which a pass goes over each of them once, in random order; of more, windows are drawn at random."""


class Batch(NamedTuple):
    """Windows ready for a model; ``B`` windows, ``L`` lookback, ``H`` horizon.

    Attributes:
        values: ``[B, L]``, in units of the series' scale; zero where missing.
        observed: ``[B, L]`` boolean.
        steps: ``[B, L]``, elapsed time since the last row of the lookback, in usual steps; not above zero.
        phases: ``[B, L, 3 + K]``, local day, week and year, and ``K`` periods found in the data, in ``[0, 1)``.
        covariates: ``[B, L, C]``, features of what is known of the rows.
        future_steps: ``[B, H]``, as ``steps`` for the requested times; above zero.
        future_phases: ``[B, H, 3 + K]``.
        future_covariates: ``[B, H, F]``, features of what is known ahead.
        target: ``[B, H]``, scaled; zero where missing.
        target_observed: ``[B, H]`` boolean.
        series: ``[B]``, number of the series.
    """

    values: Tensor
    observed: Tensor
    steps: Tensor
    phases: Tensor
    covariates: Tensor
    future_steps: Tensor
    future_phases: Tensor
    future_covariates: Tensor
    target: Tensor
    target_observed: Tensor
    series: Tensor


class Rows:
    """The rows of a panel as tensors that windows are gathered from.

    Args:
        panel: The series.
        centre: ``[series]``, subtracted from the values of each series.
        scale: ``[series]``, by which they are then divided.
        covariates: What else is known.
        periods: Lengths of periods found in the data, in nanoseconds.
    """

    def __init__(
        self,
        panel: Panel,
        *,
        centre: np.ndarray,
        scale: np.ndarray,
        covariates: Sequence[Covariate] = (),
        periods: Sequence[int] = (),
    ) -> None:
        # Made by NumPy, which asks for large pages, since windows lie at random places.
        self.values = torch.from_numpy(np.empty(len(panel.values), dtype=np.float32))  # zero where missing
        self.observed = torch.from_numpy(~np.isnan(panel.values))
        self._complete = bool(self.observed.all())
        scaled = self.values.numpy()
        for i in range(len(panel.ids)):  # a series at a time, so that no second copy of all rows is made
            rows = panel.rows(i)
            np.divide(panel.values[rows] - centre[i], scale[i], out=scaled[rows], casting="unsafe")
        self.values.nan_to_num_(0.0)
        self.times = torch.from_numpy(panel.times)
        self.starts = torch.from_numpy(panel.starts)
        self.calendar = Calendar(panel.clock(), panel.times)
        self.periods = tuple(periods)
        # A series of one row has no step of its own, and must not change what is usual.
        known = [step.nanoseconds for step in panel.steps if step is not None]
        usual = int(np.median(known)) if known else 1
        self.step = torch.tensor([usual if step is None else step.nanoseconds for step in panel.steps])
        self.regular = torch.tensor([step is not None and step.regular for step in panel.steps])
        self._grid = self._common_grid(panel)
        self._by_row = [each for each in covariates if each.role != "static"]
        numbers, codes = row_features(panel, self._by_row)
        self._numbers, self._codes = torch.from_numpy(numbers), torch.from_numpy(codes)
        self._static = torch.from_numpy(static_features(panel, [each for each in covariates if each.role == "static"]))

    def _common_grid(self, panel: Panel) -> tuple[Tensor, Tensor] | None:
        """Phases of a grid of equal steps that all series stand on, and how far rows are from their place on it.

        Of such series, the usual case, windows are runs of rows in two tables, which are copied as a whole.
        """
        steps = set(panel.steps)
        step = next(iter(steps)) if len(steps) == 1 else None
        if step is None or not step.regular or step.kind in ("months", "business"):
            return None
        if step.kind == "local" and len(panel.clock().starts) > 1:
            return None
        first, last = int(panel.times.min()), int(panel.times.max())
        count = (last - first) // step.nanoseconds + 1
        place, off = np.divmod(panel.times[panel.starts[:-1]] - first, step.nanoseconds)
        if count > 2 * len(panel.times) or off.any():
            return None
        times = first + step.nanoseconds * torch.arange(count)
        phases = torch.cat([self.phases(part) for part in times.split(CHUNK)])
        return phases, torch.from_numpy(place - panel.starts[:-1])

    def phases(self, times: Tensor) -> Tensor:
        """Phases of the calendar and of the periods, ``[..., 3 + K]``."""
        calendar = self.calendar.phases(times)
        if not self.periods:
            return calendar
        return torch.cat((calendar, cycle_phases(times, self.periods)), dim=-1)

    def gather(
        self, series: Tensor, origins: Tensor, *, lookback: int, horizon: int, whole: bool | None = None
    ) -> Batch:
        """Gather windows.

        A window is cut over real times: of a series without a regular step it holds the rows that lie within
        ``lookback`` usual steps before the last, and targets within ``horizon`` usual steps after it; of a regular
        one, whose gaps have rows of their own, this is each row.

        Args:
            series: ``[B]``, number of the series.
            origins: ``[B]``, row of the first requested time.
            lookback: Rows before the origin; those before the series' first row count as missing.
            horizon: Rows from the origin on.
            whole: Whether all rows of all lookbacks are rows of their series; None to find out.

        Returns:
            The batch.
        """
        if whole is None:
            whole = bool((origins - lookback >= self.starts[series]).all())
        if self._grid is not None and whole:
            return self._gather_runs(series, origins, lookback, horizon, *self._grid)
        rows = origins[:, None] + torch.arange(-lookback, horizon)  # [B, L + H]
        first = self.starts.index_select(0, series)[:, None]
        inside = rows >= first
        rows = torch.maximum(rows, first)
        flat = rows.view(-1)
        times = self.times.index_select(0, flat).view_as(rows)
        # Differences are taken in integers, and divided in double: nanoseconds do not fit a float.
        steps = ((times - times[:, lookback - 1 : lookback]).double() / self.step[series][:, None]).float()
        values = self.values.index_select(0, flat).view_as(rows)
        if not self.regular.all():
            near = (steps > -lookback) & (steps < horizon + 0.5)
            inside &= near | self.regular[series][:, None]
        observed = inside & self.observed.index_select(0, flat).view_as(rows)
        values = values.masked_fill(~observed, 0.0)
        covariates = self._covariates(series, rows, inside, lookback)
        return self._batch(series, values, observed, steps, self.phases(times), covariates, lookback)

    def _gather_runs(
        self, series: Tensor, origins: Tensor, lookback: int, horizon: int, phases: Tensor, shift: Tensor
    ) -> Batch:
        """As :meth:`gather`, for whole windows of series that stand on one grid."""
        begin, length = origins - lookback, lookback + horizon
        values = self.values.unfold(0, length, 1).index_select(0, begin)  # [rows - T + 1, T], a view -> [B, T]
        if self._complete:
            observed = torch.ones((), dtype=torch.bool).expand_as(values)
        else:
            observed = self.observed.unfold(0, length, 1).index_select(0, begin)
        runs = phases.as_strided((len(phases) - length + 1, length, phases.shape[1]), (*phases.stride()[:1] * 2, 1))
        place = begin + shift.index_select(0, series)
        steps = torch.arange(1 - lookback, horizon + 1, dtype=torch.float32).expand(len(origins), -1)
        covariates = values.new_empty(len(origins), lookback, 0), values.new_empty(len(origins), horizon, 0)
        if self._by_row or self._static.shape[1]:
            rows = begin[:, None] + torch.arange(length)
            covariates = self._covariates(series, rows, torch.ones_like(observed), lookback)
        return self._batch(series, values, observed, steps, runs.index_select(0, place), covariates, lookback)

    def _batch(
        self,
        series: Tensor,
        values: Tensor,
        observed: Tensor,
        steps: Tensor,
        phases: Tensor,
        covariates: tuple[Tensor, Tensor],
        lookback: int,
    ) -> Batch:
        past, future = slice(None, lookback), slice(lookback, None)
        return Batch(
            values=values[:, past],
            observed=observed[:, past],
            steps=steps[:, past],
            phases=phases[:, past],
            covariates=covariates[0],
            future_steps=steps[:, future],
            future_phases=phases[:, future],
            future_covariates=covariates[1],
            target=values[:, future],
            target_observed=observed[:, future],
            series=series,
        )

    def _covariates(self, series: Tensor, rows: Tensor, inside: Tensor, lookback: int) -> tuple[Tensor, Tensor]:
        """Features ``[B, L, C]`` of the lookback and ``[B, H, F]`` of the requested times."""
        shape = rows.shape
        if not self._by_row:
            static = self._static[series][:, None]  # [B, 1, K]
            return static.expand(-1, lookback, -1), static.expand(-1, shape[1] - lookback, -1)
        flat = rows.reshape(-1)
        numbers = self._numbers.index_select(0, flat).view(*shape, -1).unbind(-1)
        codes = self._codes.index_select(0, flat).view(*shape, -1).unbind(-1)
        numbers, codes = iter(numbers), iter(codes)
        history, ahead = [], []
        for each in self._by_row:
            if each.categories is None:
                column = next(numbers)
                known = inside & ~column.isnan()
                features = torch.stack((torch.where(known, column, 0.0), (~known).float()), dim=-1)
            else:
                column = next(codes).masked_fill(~inside, -1)
                features = (column.unsqueeze(-1) == torch.arange(len(each.categories))).float()
            history.append(features[:, :lookback])
            if each.role == "future":
                ahead.append(features[:, lookback:])
        static = self._static[series][:, None]
        history.append(static.expand(-1, lookback, -1))
        ahead.append(static.expand(-1, shape[1] - lookback, -1))
        return torch.cat(history, dim=-1), torch.cat(ahead, dim=-1)


class Windows:
    """A set of windows over rows; iterating yields batches.

    Windows of a series are neighbours, so that only the first and the number are kept of each series.

    Args:
        rows: The rows.
        first: ``int64 [series]``, first origin (row of the first requested time) of each series.
        count: ``int64 [series]``, number of windows of each series.
        lookback: Rows before the origin.
        horizon: Rows from the origin on.
        batch_size: Windows in a batch.
        every: Take one window in so many.
    """

    def __init__(
        self,
        rows: Rows,
        first: np.ndarray,
        count: np.ndarray,
        *,
        lookback: int,
        horizon: int,
        batch_size: int,
        every: int = 1,
    ) -> None:
        self.rows = rows
        self.first, self.count = torch.from_numpy(first), torch.from_numpy(count)
        self._before = torch.cat((torch.zeros(1, dtype=torch.long), self.count.cumsum(0)))  # [series + 1]
        self._shift = self.first - self._before[:-1]
        counts = self.count.unique().tolist()
        self._each = counts[0] if len(counts) == 1 else None  # windows of every series, if all have as many
        self.total = -(-int(self._before[-1]) // every)
        self.every = every
        self.lookback, self.horizon, self.batch_size = lookback, horizon, batch_size
        self._whole = bool((self.first - lookback >= rows.starts[:-1])[self.count > 0].all())

    def __len__(self) -> int:
        return -(-self.total // self.batch_size)

    def __iter__(self) -> Iterator[Batch]:
        for start in range(0, self.total, self.batch_size):
            yield self._gather(torch.arange(start, min(start + self.batch_size, self.total)))

    def shuffled(self, start: int, *, seed: int) -> Iterator[Batch]:
        """Batches in random order, a new one in each pass, without end.

        Args:
            start: Number of the first batch; those after it are the same wherever one starts.
            seed: Seed of the order.
        """
        order = None
        for number in itertools.count(start):
            done, place = divmod(number, len(self))
            begin, end = place * self.batch_size, min((place + 1) * self.batch_size, self.total)
            if self.total > MOST_SHUFFLED:
                chosen = np.random.default_rng((seed, number)).integers(self.total, size=end - begin)
            else:
                if order is None or place == 0:
                    order = np.random.default_rng((seed, done)).permutation(self.total)
                chosen = order[begin:end]
            yield self._gather(torch.from_numpy(chosen))

    def _gather(self, chosen: Tensor) -> Batch:
        size = {"lookback": self.lookback, "horizon": self.horizon}
        return self.rows.gather(*self.place(chosen), **size, whole=self._whole)

    def place(self, chosen: Tensor) -> tuple[Tensor, Tensor]:
        """Series and origin of windows by their number, ``int64 [N]`` each."""
        number = chosen * self.every
        if self._each:
            series = number.div(self._each, rounding_mode="floor")
        else:
            series = torch.searchsorted(self._before, number, right=True).sub_(1)
        return series, self._shift.index_select(0, series).add_(number)

    def has_targets(self) -> bool:
        """Whether any window has an observed target."""
        observed = self.rows.observed
        for first, count in zip(self.first.tolist(), self.count.tolist(), strict=True):
            if count and bool(observed[first : first + count - 1 + self.horizon].any()):
                return True
        return False


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
) -> tuple[np.ndarray, np.ndarray]:
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
        First origin and number of windows of each series, ``int64 [series]`` each.
    """
    begin = panel.starts[:-1]
    warm = np.minimum(lookback, np.maximum(1, (stop - begin) // 2))
    low = np.maximum(first, begin + warm)
    return low, np.maximum(0, stop - horizon + 1 - low)


def before(panel: Panel, stop: np.ndarray) -> np.ndarray:
    """Which rows come before row ``stop`` of their series, boolean ``[rows]``."""
    return np.arange(len(panel.times)) < np.repeat(stop, np.diff(panel.starts))


def has_values(panel: Panel, stop: np.ndarray) -> np.ndarray:
    """Which series have an observed value before row ``stop``, boolean ``[series]``."""
    return np.array(
        [
            not np.isnan(panel.values[begin:end]).all() if end > begin else False
            for begin, end in zip(panel.starts[:-1], stop, strict=True)
        ],
        dtype=bool,
    )


def scale_of_level(centre: float) -> float:
    """The scale of a series that does not vary: its level, or one; never zero."""
    return abs(centre) or 1.0


def training_scale(panel: Panel, stop: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each series' observed values before row ``stop``.

    A series that does not vary gets :func:`scale_of_level`.

    Returns:
        Centre and scale, ``float64 [series]`` each.
    """
    centre, scale = np.zeros(len(panel.ids)), np.ones(len(panel.ids))
    for i, (begin, end) in enumerate(zip(panel.starts[:-1], stop, strict=True)):
        values = panel.values[begin:end]
        values = values[~np.isnan(values)]
        if not len(values):
            continue
        centre[i], spread = values.mean(), values.std()
        # By rounding, a constant series has a spread near that of the machine, and one of tiny values none.
        flat = values.min() == values.max() or not spread
        scale[i] = scale_of_level(centre[i]) if flat else spread
    return centre, scale
