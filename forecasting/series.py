"""Series in: a long or wide CSV or Parquet file becomes one panel of rows, sorted, with gaps left as gaps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from common.errors import InputError
from common.files import existing_file
from common.progress import log
from forecasting.tables import column_names, read_table
from forecasting.timestamps import Step, TimeStyle, following_times, infer_step, parse_times

Layout = Literal["long", "wide"]
Duplicates = Literal["error", "mean", "last"]


@dataclass(frozen=True)
class Panel:
    """All series of a file, one after the other.

    Attributes:
        ids: Name of each series, in the order of the file.
        starts: ``int64 [series + 1]``: the rows of series ``i`` are ``starts[i]`` to ``starts[i + 1]``.
        times: ``int64 [rows]``, nanoseconds in UTC, increasing within a series.
        values: ``float64 [rows]``, NaN where missing.
        steps: Usual step of each series; None where it has fewer than two rows.
        id_name: Column of the names, or None for the one series of a file without such a column.
        time_name: Column of the times.
        style: How the file writes its times.
    """

    ids: tuple[str, ...]
    starts: np.ndarray
    times: np.ndarray
    values: np.ndarray
    steps: tuple[Step | None, ...]
    id_name: str | None
    time_name: str
    style: TimeStyle

    def rows(self, series: int) -> slice:
        """Rows of one series."""
        return slice(int(self.starts[series]), int(self.starts[series + 1]))

    def select(self, chosen: list[int]) -> Panel:
        """The panel of some of the series, in the order given."""
        parts = [self.rows(i) for i in chosen]
        lengths = [part.stop - part.start for part in parts]
        return replace(
            self,
            ids=tuple(self.ids[i] for i in chosen),
            starts=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            times=np.concatenate([self.times[part] for part in parts]),
            values=np.concatenate([self.values[part] for part in parts]),
            steps=tuple(self.steps[i] for i in chosen),
        )

    def extended(self, horizon: int) -> Panel:
        """The panel with ``horizon`` rows more a series, at the times that follow, their values missing."""
        times, values = [], []
        for i, step in enumerate(self.steps):
            rows = self.rows(i)
            if step is None:
                raise InputError("has no step to continue by", where=f"series {self.ids[i]}")
            later = following_times(int(self.times[rows][-1]), step, horizon, self.style.zone)
            times += [self.times[rows], later]
            values += [self.values[rows], np.full(horizon, np.nan)]
        return replace(
            self,
            starts=self.starts + horizon * np.arange(len(self.starts)),
            times=np.concatenate(times),
            values=np.concatenate(values),
        )


def read_panel(
    path: Path,
    *,
    layout: Layout,
    id_name: str | None,
    time_name: str,
    target: str,
    channels: tuple[str, ...] | None,
    time_format: str | None,
    timezone: str | None,
    duplicates: Duplicates,
) -> Panel:
    """Read a file of series.

    Args:
        path: CSV (also ``.gz``, ``.xz``) or Parquet.
        layout: ``long``, one row a series and time; or ``wide``, one row a time and one column a series.
        id_name: Column that names the series (long). None: the column ``unique_id`` if there is one, else
            the file holds one series.
        time_name: Column of the times.
        target: Column of the values (long).
        channels: Columns that are series (wide); None for every numeric column.
        time_format: ``strptime`` format, or None to recognise it.
        timezone: Local zone of the times; UTC by default.
        duplicates: What to do with a time that stands twice in a series.

    Returns:
        The panel.

    Raises:
        InputError: If the file, a column, a time or a value cannot be used; the message names it.
    """
    path = existing_file(path, "the data")
    if layout == "long" and id_name is None and "unique_id" in column_names(path):
        id_name = "unique_id"
    text_columns = [time_name] + ([id_name] if layout == "long" and id_name else [])
    frame = read_table(path, text_columns)
    for name in text_columns:
        _require(frame, name, path)
    numbers = frame.index.to_numpy()

    def place(row: int) -> str:
        # Row 0 of a CSV is line 2 of the file; Parquet has rows only.
        number = int(numbers[row])
        return f"{path}, row {number + 1}" if path.suffix == ".parquet" else f"{path}, line {number + 2}"

    if frame.empty:
        raise InputError("the file has a heading but no rows", where=path)
    times, style = parse_times(frame[time_name], time_format=time_format, timezone=timezone, place=place)
    if layout == "wide":
        ids, codes, times, values = _melt(frame, time_name, channels, times, path, place)
        id_name = "unique_id"
    else:
        _require(frame, target, path)
        values = _numbers(frame[target], target, place)
        if id_name is None:
            ids, codes = (target,), np.zeros(len(frame), dtype=np.int64)
        else:
            missing = frame[id_name].isna().to_numpy()
            if missing.any():
                raise InputError(f"column {id_name!r} names no series", where=place(int(missing.argmax())))
            codes, names = pd.factorize(frame[id_name])
            ids = tuple(map(str, names))
    times, values, starts = _sort(codes, times, values, len(ids), ids, duplicates, path)
    steps = tuple(infer_step(times[starts[i] : starts[i + 1]], style.zone) for i in range(len(ids)))
    return Panel(
        ids=ids,
        starts=starts,
        times=times,
        values=values,
        steps=steps,
        id_name=id_name,
        time_name=time_name,
        style=style,
    )


def _require(frame: pd.DataFrame, name: str, path: Path) -> None:
    if name not in frame:
        raise InputError(
            f"there is no column {name!r}; the columns are {', '.join(map(repr, map(str, frame.columns)))}",
            where=path,
            remedy="state the column under data: in the configuration (id, time, target; layout: wide)",
        )


def _numbers(column: pd.Series, name: str, place: Callable[[int], str]) -> np.ndarray:
    """A column as float64; the first text that is no number is refused by its row."""
    numbers = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    wrong = np.isnan(numbers) & column.notna().to_numpy()
    if wrong.any():
        row = int(wrong.argmax())
        raise InputError(
            f"column {name!r} holds {column.iloc[row]!r}, which is not a number",
            where=place(row),
            remedy="correct it, or leave the cell empty where the value is missing",
        )
    infinite = np.isinf(numbers)
    if infinite.any():
        raise InputError(f"column {name!r} holds an infinite value", where=place(int(infinite.argmax())))
    return numbers


def _holds_numbers(column: pd.Series) -> bool:
    if column.dtype == bool:
        return False
    return bool(pd.api.types.is_numeric_dtype(column) or pd.to_numeric(column, errors="coerce").notna().any())


def _melt(
    frame: pd.DataFrame,
    time_name: str,
    channels: tuple[str, ...] | None,
    times: np.ndarray,
    path: Path,
    place: Callable[[int], str],
) -> tuple[tuple[str, ...], np.ndarray, np.ndarray, np.ndarray]:
    """Wide to long: names, series number, time and value of each row, series after series."""
    if channels is None:
        # A column of text with a number in it is a series with a mistake, which is named below.
        others = [str(name) for name in frame.columns if name != time_name]
        channels = tuple(name for name in others if _holds_numbers(frame[name]))
        left_out = [name for name in others if name not in channels]
        if left_out:
            log.info("%s: columns without numbers are left out: %s", path, ", ".join(left_out))
        if not channels:
            raise InputError("there is no numeric column", where=path, remedy="name the columns under data.channels")
    for name in channels:
        _require(frame, name, path)
    values = np.concatenate([_numbers(frame[name], name, place) for name in channels])
    return channels, np.repeat(np.arange(len(channels)), len(frame)), np.tile(times, len(channels)), values


def _sort(
    codes: np.ndarray,
    times: np.ndarray,
    values: np.ndarray,
    count: int,
    ids: tuple[str, ...],
    duplicates: Duplicates,
    path: Path,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sort by series and time, apply the policy on duplicates, and cut into series."""
    order = np.lexsort((times, codes))  # stable, so that "last" is the last row of the file
    if (order[1:] < order[:-1]).any():
        codes, times, values = codes[order], times[order], values[order]
    same = (codes[1:] == codes[:-1]) & (times[1:] == times[:-1])
    if same.any():
        row = int(same.argmax())
        stamp = pd.Timestamp(int(times[row]), tz="UTC").isoformat()
        total = int(same.sum())
        if duplicates == "error":
            raise InputError(
                f"series {ids[codes[row]]!r} has the time {stamp} twice ({total} such rows in all)",
                where=path,
                remedy="data.duplicates: mean or last, or correct the file",
            )
        log.info("%s: %d rows with a time that stands twice, kept by %s", path, total, duplicates)
        group = np.concatenate([[0], np.cumsum(~same)])
        last = np.concatenate([~same, [True]])
        if duplicates == "mean":
            observed = ~np.isnan(values)
            number = np.bincount(group, weights=observed)
            total_value = np.bincount(group, weights=np.where(observed, values, 0.0))
            merged = np.divide(total_value, number, out=np.full(len(number), np.nan), where=number > 0)
        else:
            merged = values[last]
        codes, times, values = codes[last], times[last], merged
    starts = np.searchsorted(codes, np.arange(count + 1)).astype(np.int64)
    return times, values, starts
