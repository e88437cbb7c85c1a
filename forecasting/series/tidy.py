"""Rows of a file brought into the order of a panel: sorted, melted, resampled, merged; each change is counted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from common.errors import InputError
from forecasting.series.clock import DAY, HOUR, local_moments
from forecasting.series.columns import Coded
from forecasting.series.panel import Panel, fill_grids, find_steps
from forecasting.series.steps import Step, grid, length_of_time
from forecasting.series.style import write_times

Duplicates = Literal["error", "mean", "last"]
How = Literal["mean", "sum", "last"]
MOST_STEPS = 1000  # for each row
MONDAY = 4 * DAY  # the first after 1970-01-01


def count(number: int, what: str) -> str:
    """A number and what it counts: ``1 row``, ``2,000 rows``."""
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def by_series(panel: Panel, codes: np.ndarray, notes: list[str]) -> Panel:
    """Bring the rows of a long file into the order of their series and times."""
    series_down = codes[1:] < codes[:-1]
    back = (panel.times[1:] < panel.times[:-1]) & (codes[1:] == codes[:-1])
    if series_down.any() or back.any():
        order = np.lexsort((panel.times, codes))  # stable, so that "last" is the last row of the file
        if back.any():
            notes.append(_order_note(back, int((codes[1:] == codes[:-1]).sum())))
        panel, codes = panel.taking(order), codes[order]
    # In the type of the codes, which would be copied into another otherwise.
    starts = np.searchsorted(codes, np.arange(len(panel.ids) + 1, dtype=codes.dtype)).astype(np.int64)
    return replace(panel, starts=starts)


def _order_note(back: np.ndarray, steps: int) -> str:
    if back.sum() == steps:
        return "the newest rows come first: sorted by time"
    return f"{count(int(back.sum()), 'row')} earlier than the row before: sorted by time"


def melted(panel: Panel, channels: list[np.ndarray], notes: list[str]) -> Panel:
    """Rows of a wide file, series after series, each in the order of time."""
    order = slice(None)
    back = panel.times[1:] < panel.times[:-1]
    if back.any():
        notes.append(_order_note(back, len(back)))
        order = np.argsort(panel.times, kind="stable")
    count, rows = len(channels), len(panel.times)
    return replace(
        panel,
        starts=np.arange(count + 1, dtype=np.int64) * rows,
        times=np.tile(panel.times[order], count),
        values=np.concatenate([channel[order] for channel in channels]),
        numbers={name: np.tile(column[order], count) for name, column in panel.numbers.items()},
        categories={
            name: Coded(np.tile(column.codes[order], count), column.texts) for name, column in panel.categories.items()
        },
    )


def without_open_start(panel: Panel, notes: list[str]) -> Panel:
    """Leave out rows before the first value of each series that has one: it does not exist yet."""
    if not np.isnan(panel.values[panel.starts[:-1]]).any():
        return panel
    rows = len(panel.values)
    first = np.minimum.reduceat(np.where(np.isnan(panel.values), rows, np.arange(rows)), panel.starts[:-1])
    first = np.where(first < panel.starts[1:], first, panel.starts[:-1])
    early = np.arange(rows) < np.repeat(first, np.diff(panel.starts))
    if not early.any():
        return panel
    notes.append(f"{count(int(early.sum()), 'row')} before the first value of their series left out")
    return panel.where(~early)


def resampled(panel: Panel, step: str, how: How, notes: list[str]) -> Panel:
    """Bring all rows to the beginning of the step they fall into, and one value of those there.

    Steps of whole hours begin on the local clock, weeks on Mondays. Of a regular series the first and the last step
    are left out where it does not fill them, and steps without any row are gaps; of an irregular one, whose rows are
    events, the sum of none is zero. Covariates are averaged, or the last is taken, whatever becomes of the values.

    Args:
        panel: The series, sorted by time.
        step: A length of time.
        how: What a value is of those it stands for.
        notes: What was done is added to them.

    Raises:
        InputError: If the step is no length of time.
    """
    length = length_of_time(step)
    if length is None:
        raise InputError(f"{step!r} is not a length of time", where="data.resample", remedy="such as 30min, 1h or 1d")
    spans = panel.times[panel.starts[1:] - 1] - panel.times[panel.starts[:-1]]
    if (spans // length).sum() > MOST_STEPS * (len(panel.times) + 1000):
        raise InputError(
            f"steps of {step} would be {int((spans // length).sum()):,} for {count(len(panel.times), 'row')}",
            where="data.resample",
            remedy="a longer step, such as 1h",
        )
    local = panel.clock(length + DAY)
    wall = local.local(panel.times)
    phase = MONDAY if length % (7 * DAY) == 0 else 0
    on_clock = length % HOUR == 0 and length > HOUR  # others begin alike in elapsed time, from the first row's clock on
    into = ((wall if on_clock else panel.times + (wall[0] - panel.times[0])) - phase) % length
    begins = local_moments(wall - into, local) if on_clock else panel.times - into
    ends = local_moments(wall - into + length, local) if on_clock else begins + length
    one = Step(length, "local", phase=phase, regular=True) if on_clock else Step(length, regular=True)
    steps = find_steps(panel.times, panel.starts, local)
    own = np.array([step.nanoseconds if step is not None and step.regular else 0 for step in steps])
    partial = _in_partial_steps(panel, steps, begins, ends)
    panel = replace(panel, times=begins)
    if partial.any():
        notes.append(f"{count(int(partial.sum()), 'row')} of first and last steps that are not full left out")
        panel = panel.where(~partial)
    before, same = len(panel.times), _repeats(panel)
    values = np.add.reduceat((~np.isnan(panel.values)).astype(np.int64), np.flatnonzero(np.append(True, ~same)))
    panel = _merged(panel, same, how, covariates="last" if how == "last" else "mean")
    panel = replace(panel, steps=tuple(one if n > 1 else None for n in np.diff(panel.starts)))
    notes.append(f"{count(before, 'row')} resampled to {count(len(panel.times), 'step')} of {step} by {how}")
    few = int((values < np.floor(0.9 * length / np.where(own, own, np.inf))[_series(panel)]).sum())
    if few and how != "last":
        notes.append(f"{count(few, 'step')} with fewer values than the others")
    panel, empty = fill_grids(panel)
    if not empty:
        return panel
    zero = panel.absent & (own == 0)[_series(panel)] & (how == "sum")
    if zero.any():
        notes.append(f"{count(int(zero.sum()), 'step')} without any event: the sum is 0")
    if zero.sum() < empty:
        notes.append(f"{count(empty - int(zero.sum()), 'step')} without any row: kept as gaps")
    return replace(panel, values=np.where(zero, 0.0, panel.values), absent=panel.absent & ~zero)


def _series(panel: Panel) -> np.ndarray:
    """Number of the series of each row."""
    return np.repeat(np.arange(len(panel.ids)), np.diff(panel.starts))


def _in_partial_steps(panel: Panel, steps: tuple[Step | None, ...], begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Which rows lie in a first or last step that lacks a row of a regular series, boolean ``[rows]``.

    Of a series that fills no step, none does.
    """
    first, last, series = panel.starts[:-1], panel.starts[1:] - 1, _series(panel)
    late, early = np.zeros(len(first), dtype=bool), np.zeros(len(first), dtype=bool)
    longest = max((step.nanoseconds for step in steps if step is not None), default=0)
    local = panel.clock(2 * longest + 10 * DAY)
    for i, step in enumerate(steps):
        if step is not None and step.regular:
            late[i] = grid(int(panel.times[first[i]]), step, local, -1, 0)[0] >= begins[first[i]]
            early[i] = grid(int(panel.times[last[i]]), step, local, 1, 2)[0] < ends[last[i]]
    partial = (late[series] & (begins == begins[first][series])) | (early[series] & (begins == begins[last][series]))
    filled = np.bincount(series[~partial], minlength=len(first)) > 0
    return partial & filled[series]


def _repeats(panel: Panel) -> np.ndarray:
    """Which rows have the time and series of the row after them, boolean ``[rows - 1]``."""
    same = panel.times[1:] == panel.times[:-1]
    same[panel.starts[1:-1] - 1] = False
    return same


def without_duplicates(panel: Panel, duplicates: Duplicates, path: Path, notes: list[str], *, share: int) -> Panel:
    """Merge rows of one series and time into one, by policy; ``share`` series come from each row of the file."""
    same = _repeats(panel)
    if not same.any():
        return replace(panel, repeats=np.zeros(len(panel.ids), dtype=np.int64))
    panel = replace(panel, repeats=np.add.reduceat(np.append(same, False), panel.starts[:-1]).astype(np.int64))
    total = int(same.sum()) // share
    if duplicates == "error":
        row = int(same.argmax())
        series = panel.ids[int(np.searchsorted(panel.starts, row, side="right")) - 1]
        stamp = write_times(panel.times[row : row + 1], panel.style)[0]
        raise InputError(
            f"series {series!r} has the time {stamp} twice ({count(total, 'such row')} in all)",
            where=path,
            remedy="data.duplicates: mean or last, or correct the file",
        )
    notes.append(f"{count(total, 'row')} with a time that stands already: kept by {duplicates}")
    return _merged(panel, same, duplicates)


def _merged(panel: Panel, same: np.ndarray, how: How, covariates: How | None = None) -> Panel:
    """One row for each run of rows with one series and time; of texts the last, of numbers what is asked for."""
    last = np.append(~same, True)
    kept = np.flatnonzero(last)
    first = np.concatenate([[0], kept[:-1] + 1])
    starts = np.concatenate([[0], np.cumsum(last)])[panel.starts]

    def latest(column: np.ndarray, there: np.ndarray) -> np.ndarray:
        """The last that is there of each run, else the last."""
        place = np.maximum.reduceat(np.where(there, np.arange(len(column)), -1), first)
        return column[np.where(place < 0, kept, place)]

    def together(column: np.ndarray, how: How) -> np.ndarray:
        there = ~np.isnan(column)
        if how == "last":
            return latest(column, there)
        number = np.add.reduceat(there.astype(np.int64), first)
        total = np.add.reduceat(np.where(there, column, 0.0).astype(np.float64), first)
        value = total / np.maximum(number, 1) if how == "mean" else total
        return np.where(number > 0, value, np.nan).astype(column.dtype)

    return replace(
        panel.taking(kept),
        starts=starts,
        values=together(panel.values, how),
        numbers={name: together(column, covariates or how) for name, column in panel.numbers.items()},
        categories={
            name: column._replace(codes=latest(column.codes, column.codes >= 0))
            for name, column in panel.categories.items()
        },
    )


def with_static(panel: Panel, names: list[str], path: Path) -> Panel:
    """Take covariates that are the same all along a series from its rows."""
    if not names:
        return panel
    group = _series(panel)
    numbers, categories = dict(panel.numbers), dict(panel.categories)
    static_numbers, static_categories = {}, {}
    for name in names:
        if name in numbers:
            column = numbers.pop(name)
            there = ~np.isnan(column)
            value = np.full(len(panel.ids), np.nan, dtype=np.float32)
        else:
            column = categories.pop(name).codes
            there = column >= 0
            value = np.full(len(panel.ids), -1, dtype=np.int32)
        value[group[there]] = column[there]
        changes = there & (column != value[group])
        if changes.any():
            raise InputError(
                f"column {name!r} changes within series {panel.ids[group[int(changes.argmax())]]!r}",
                where=path,
                remedy="list it under data.past or data.future, not data.static",
            )
        if name in panel.numbers:
            static_numbers[name] = value
        else:
            static_categories[name] = Coded(value, panel.categories[name].texts)
    return replace(
        panel,
        numbers=numbers,
        categories=categories,
        static_numbers=static_numbers,
        static_categories=static_categories,
    )
