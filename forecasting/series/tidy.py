"""Rows of a file brought into the order of a panel: sorted, melted, resampled, merged; each change is counted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from common.errors import InputError
from forecasting.series.clock import DAY, local_moments
from forecasting.series.columns import Coded
from forecasting.series.panel import Panel
from forecasting.series.steps import length_of_time
from forecasting.series.style import write_times

Duplicates = Literal["error", "mean", "last"]
How = Literal["mean", "sum", "last"]


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


def resampled(panel: Panel, step: str, how: How, notes: list[str]) -> Panel:
    """Bring all rows to the beginning of the step they fall into, and one value of those there."""
    length = length_of_time(step)
    if length is None:
        raise InputError(f"{step!r} is not a length of time", where="data.resample", remedy="such as 30min, 1h or 1d")
    local = panel.clock(DAY)
    wall = local.local(panel.times)
    panel = replace(panel, times=local_moments(wall - wall % length, local))
    before = len(panel.times)
    panel = _merged(panel, _repeats(panel), how)
    notes.append(f"{count(before, 'row')} resampled to {count(len(panel.times), 'step')} of {step} by {how}")
    return panel


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


def _merged(panel: Panel, same: np.ndarray, how: How) -> Panel:
    """One row for each run of rows with one series and time."""
    last = np.append(~same, True)
    kept = np.flatnonzero(last)
    starts = np.concatenate([[0], np.cumsum(last)])[panel.starts]
    merged = replace(panel.taking(kept), starts=starts)
    if how == "last":
        return merged
    group = np.concatenate([[0], np.cumsum(~same)])

    def together(column: np.ndarray) -> np.ndarray:
        observed = ~np.isnan(column)
        number = np.bincount(group, weights=observed)
        total = np.bincount(group, weights=np.where(observed, column, 0.0))
        value = total / np.maximum(number, 1) if how == "mean" else total
        return np.where(number > 0, value, np.nan).astype(column.dtype)

    return replace(
        merged,
        values=together(panel.values),
        numbers={name: together(column) for name, column in panel.numbers.items()},
    )


def with_static(panel: Panel, names: list[str], path: Path) -> Panel:
    """Take covariates that are the same all along a series from its rows."""
    group = np.repeat(np.arange(len(panel.ids)), np.diff(panel.starts))
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
