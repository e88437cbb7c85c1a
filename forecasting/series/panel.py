"""A panel: all series of a file, one after the other, sorted by time, with gaps left as gaps."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from forecasting.series.clock import DAY, Clock, clock, elapsed
from forecasting.series.columns import Coded
from forecasting.series.steps import Step, grid, infer_step, slots
from forecasting.series.style import TimeStyle


@dataclass(frozen=True)
class Panel:
    """All series of a file.

    Attributes:
        ids: Name of each series, in the order of the file; the parts of a name in several columns are joined by ``/``.
        id_columns: What the file calls each series, ``[series]`` by column; empty for the one series of a file
            without such a column.
        starts: ``int64 [series + 1]``: the rows of series ``i`` are ``starts[i]`` to ``starts[i + 1]``.
        times: ``int64 [rows]``, nanoseconds in UTC, increasing within a series.
        values: ``float64 [rows]``, NaN where missing.
        steps: Usual step of each series; None where it has a single row.
        time_columns: Columns of the time.
        style: How the file writes its times.
        numbers: Covariates that are numbers, ``float32 [rows]`` by column, NaN where missing.
        categories: Covariates that are texts, by column.
        static_numbers: Numbers that are the same all along a series, ``float32 [series]``.
        static_categories: Texts that are the same all along a series.
        repeats: ``int64 [series]``, rows of each series that were merged into another of the same time.
        absent: Boolean ``[rows]``, rows that the file lacks, at the times of gaps in regular series; empty without any.
        read: Rows of the file.
        notes: What was done with rows that are not as they should be, one sentence each.
    """

    ids: tuple[str, ...]
    id_columns: dict[str, np.ndarray]
    starts: np.ndarray
    times: np.ndarray
    values: np.ndarray
    steps: tuple[Step | None, ...]
    time_columns: tuple[str, ...]
    style: TimeStyle
    numbers: dict[str, np.ndarray] = field(default_factory=dict)
    categories: dict[str, Coded] = field(default_factory=dict)
    static_numbers: dict[str, np.ndarray] = field(default_factory=dict)
    static_categories: dict[str, Coded] = field(default_factory=dict)
    repeats: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    absent: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=bool))
    read: int = 0
    notes: tuple[str, ...] = ()

    def rows(self, series: int) -> slice:
        """Rows of one series."""
        return slice(int(self.starts[series]), int(self.starts[series + 1]))

    def clock(self, margin: int = 0) -> Clock:
        """The local clock over all times, and ``margin`` nanoseconds beyond the last."""
        if not margin:
            return self._clock
        first, last = self._span
        return clock(self.style.zone, first, last + margin)

    @cached_property
    def _span(self) -> tuple[int, int]:
        return (int(self.times.min()), int(self.times.max())) if len(self.times) else (0, 0)

    @cached_property
    def _clock(self) -> Clock:
        return clock(self.style.zone, *self._span)

    def select(self, chosen: list[int]) -> Panel:
        """The panel of some of the series, in the order given."""
        kept, starts = runs(self.starts[chosen], np.diff(self.starts)[chosen])
        return replace(
            self.taking(kept),
            ids=tuple(self.ids[i] for i in chosen),
            id_columns={name: column[chosen] for name, column in self.id_columns.items()},
            starts=starts,
            steps=tuple(self.steps[i] for i in chosen),
            repeats=self.repeats[chosen],
            static_numbers={name: column[chosen] for name, column in self.static_numbers.items()},
            static_categories={
                name: column._replace(codes=column.codes[chosen]) for name, column in self.static_categories.items()
            },
        )

    def where(self, kept: np.ndarray) -> Panel:
        """The panel of some of the rows, boolean ``[rows]``; each series keeps at least one."""
        lengths = np.add.reduceat(kept.astype(np.int64), self.starts[:-1])
        return replace(self.taking(np.flatnonzero(kept)), starts=np.concatenate([[0], np.cumsum(lengths)]))

    def tail(self, count: int) -> Panel:
        """The last ``count`` rows of each series."""
        first = np.maximum(self.starts[1:] - count, self.starts[:-1])
        kept, starts = runs(first, self.starts[1:] - first)
        return replace(self.taking(kept), starts=starts)

    def extended(self, times: np.ndarray, numbers: dict[str, np.ndarray], categories: dict[str, Coded]) -> Panel:
        """The panel with more rows a series, without values.

        Args:
            times: ``int64 [series, H]``, their times.
            numbers: Numbers that are known of them, ``[series, H]`` by column; others are missing.
            categories: Texts that are known of them, with codes ``[series, H]``, by column; others are missing.
        """
        more = times.shape[1]
        starts = self.starts + more * np.arange(len(self.starts))
        rows = np.full(starts[-1], -1)
        rows[np.arange(len(self.times)) + np.repeat(more * np.arange(len(self.ids)), np.diff(self.starts))] = np.arange(
            len(self.times)
        )
        longer = replace(self.taking(rows), starts=starts)
        new = rows < 0
        longer.times[new] = times.ravel()
        for name, column in numbers.items():
            longer.numbers[name][new] = column.ravel()
        for name, column in categories.items():
            texts, codes = longer.categories[name].texts, longer.categories[name].codes
            number = {text: i for i, text in enumerate(dict.fromkeys((*texts, *column.texts)))}
            codes[new] = np.array([*(number[text] for text in column.texts), -1])[column.codes.ravel()]
            longer.categories[name] = Coded(codes, list(number))
        return longer

    def taking(self, rows: np.ndarray) -> Panel:
        """The panel with rows by their number; -1 stands for a row without any value."""
        absent = rows < 0
        there = bool(absent.any())

        def taken(column: np.ndarray, nothing: float) -> np.ndarray:
            values = column[rows]
            if there:
                values[absent] = nothing
            return values

        return replace(
            self,
            times=self.times[rows],
            absent=taken(self.absent, True) if len(self.absent) else self.absent,
            values=taken(self.values, np.nan),
            numbers={name: taken(column, np.nan) for name, column in self.numbers.items()},
            categories={
                name: column._replace(codes=taken(column.codes, -1)) for name, column in self.categories.items()
            },
        )


def runs(first: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Runs of rows laid end to end.

    Args:
        first: ``int64 [series]``, first row of each run.
        lengths: ``int64 [series]``, rows of each run.

    Returns:
        Numbers of all their rows, and ``int64 [series + 1]`` where each run begins among them.
    """
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return np.arange(starts[-1]) + np.repeat(first - starts[:-1], lengths), starts


def find_steps(times: np.ndarray, starts: np.ndarray, local: Clock) -> tuple[Step | None, ...]:
    """The usual step of each series, see :func:`forecasting.series.steps.infer_step`.

    Args:
        times: ``int64 [rows]``, increasing within a series.
        starts: ``int64 [series + 1]``.
        local: The local clock.
    """
    lengths = np.diff(starts)
    steps: list[Step | None] = [None] * len(lengths)
    several = np.flatnonzero(lengths > 1)
    if not len(several):
        return tuple(steps)
    gaps = np.diff(times)
    gaps[starts[1:-1] - 1] = np.iinfo(np.int64).max  # between two series
    # Least and largest gap of every series in two passes over all of them; most series need no closer look.
    least = np.minimum.reduceat(gaps, starts[:-1][several])
    gaps[starts[1:-1] - 1] = 0
    most = np.maximum.reduceat(gaps, starts[:-1][several])
    trivial = len(local.starts) == 1
    for series, low, high in zip(several.tolist(), least.tolist(), most.tolist(), strict=True):
        if low == high and low < 27 * DAY and (low % DAY or trivial):
            steps[series] = Step(low, "local" if low % DAY == 0 else "fixed", regular=True)
        else:
            steps[series] = infer_step(times[starts[series] : starts[series + 1]], local)
    return tuple(steps)


def fill_grids(panel: Panel) -> tuple[Panel, int]:
    """Give regular series with holes a row without values for each time that is missing.

    Args:
        panel: The series, their steps known.

    Returns:
        The panel, and how many rows were put in.
    """
    local = panel.clock()
    parts, times, lengths = [], [], np.diff(panel.starts)
    filled = 0
    for i, step in enumerate(panel.steps):
        rows = panel.rows(i)
        if step is None or not step.regular:
            continue
        own = panel.times[rows]
        if step.kind == "fixed":
            count = int(elapsed(own)[-1]) // step.nanoseconds + 1
            if count == len(own):
                continue
        place = slots(own, step, local)
        count = int(place[-1]) + 1
        if count == len(own):
            continue
        numbers = np.full(count, -1)
        numbers[place] = np.arange(rows.start, rows.stop)
        parts.append((i, numbers))
        times.append(grid(int(own[0]), step, local, 0, count))
        filled += count - len(own)
        lengths[i] = count
    if not filled:
        return panel, 0
    everything, starts = runs(panel.starts[:-1], lengths)
    for i, numbers in parts:
        everything[starts[i] : starts[i + 1]] = numbers
    whole = replace(panel.taking(everything), starts=starts, absent=everything < 0)
    for (i, numbers), those in zip(parts, times, strict=True):
        whole.times[starts[i] : starts[i + 1]][numbers < 0] = those[numbers < 0]
    return whole, filled
