"""Rows of a file in its own order: checked, their series numbered and their times found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from common.errors import InputError
from forecasting.series.clock import DAY, clock, local_moments, moments
from forecasting.series.columns import Coded, Columns, load_columns
from forecasting.series.style import UNREAD
from forecasting.series.tables import Source, open_source, scan
from forecasting.series.tidy import count

LARGEST = 1e37
"""Numbers beyond it have squares or scaled values that are infinite in float32."""


@dataclass(frozen=True)
class FileRows:
    """Rows of a file in its own order.

    Attributes:
        source: The file.
        codes: ``int32 [rows]``, number of the series of each row.
        names: Names of the series.
        id_columns: What the file calls each series, ``[series]`` by column.
        times: ``int64 [rows]``, nanoseconds in UTC.
        written: The time columns as the file has them, ``[rows]`` by column.
        numbers: ``float64 [rows]`` by column.
        texts: Texts by column.
        notes: What was decided about odd rows, one sentence each.
    """

    source: Source
    codes: np.ndarray
    names: tuple[str, ...]
    id_columns: dict[str, np.ndarray]
    times: np.ndarray
    written: dict[str, np.ndarray]
    numbers: dict[str, np.ndarray]
    texts: dict[str, Coded]
    notes: list[str]


def read_rows(
    path: Path,
    *,
    ids: tuple[str, ...],
    times: tuple[str, ...],
    numbers: Sequence[str],
    texts: Sequence[str],
    time_format: str | None,
    timezone: str | None,
    missing: Sequence[str],
    encoding: str | None,
    separator: str | None,
    decimal: str | None,
) -> FileRows:
    """Read rows of a file without bringing them into another order.

    Args:
        path: CSV or Parquet.
        ids: Columns that name the series; none for one series.
        times: Columns of the times.
        numbers: Columns of numbers.
        texts: Columns of text.
        time_format: As in :func:`read_panel`.
        timezone: As there.
        missing: As there.
        encoding: As there.
        separator: As there.
        decimal: As there.

    Raises:
        InputError: If the file, a column, a time or a value cannot be used.
    """
    source = open_source(path, encoding=encoding, separator=separator, decimal=decimal)
    for name in (*ids, *times, *numbers, *texts):
        source.require(name, "the columns of the run")
    columns = load_columns(
        source,
        text=[*ids, *texts],
        numbers=numbers,
        time=times,
        time_format=time_format,
        timezone=timezone,
        missing=missing,
    )
    check_rows(columns, None, source, ids, times)
    codes, names, id_columns = number_series(columns, ids, ("",), source)
    notes: list[str] = []
    written: dict[str, list] = {name: [] for name in times}
    for block in scan(source, text=times):
        for name in times:
            written[name].extend(block[name].to_pylist())
    return FileRows(
        source=source,
        codes=codes,
        names=names,
        id_columns=id_columns,
        times=moments_of(columns, codes, timezone, source, None, notes),
        written={name: np.array(column, dtype=object) for name, column in written.items()},
        numbers=columns.numbers,
        texts={name: columns.text[name] for name in texts},
        notes=notes,
    )


def without_blank_rows(columns: Columns, notes: list[str]) -> tuple[Columns, np.ndarray | None]:
    """The columns without rows that hold nothing, and the numbers of the rows kept; None if all are."""
    blank = columns.times == UNREAD
    if not blank.any():
        return columns, None
    for column in columns.numbers.values():
        blank &= np.isnan(column)
    for column in columns.text.values():
        blank &= column.codes < 0
    rows = np.flatnonzero(~blank)
    if blank.any():
        notes.append(f"{count(int(blank.sum()), 'row')} without any entry passed over")
    return (
        Columns(
            text={name: column._replace(codes=column.codes[rows]) for name, column in columns.text.items()},
            numbers={name: column[rows] for name, column in columns.numbers.items()},
            times=columns.times[rows],
            style=columns.style,
        ),
        rows,
    )


def _place(source: Source, rows: np.ndarray | None, row: int) -> str:
    return source.place(row if rows is None else int(rows[row]))


def check_rows(
    columns: Columns, rows: np.ndarray | None, source: Source, ids: tuple[str, ...], times: tuple[str, ...]
) -> None:
    """Check that each row has a time, a series and finite numbers.

    Raises:
        InputError: If one has not; the message names its line.
    """
    if not len(columns.times):
        raise InputError("the file has a heading but no rows", where=source.path)
    absent = columns.times == UNREAD
    if absent.any():
        raise InputError(
            f"the time ({' '.join(times)}) is missing",
            where=_place(source, rows, int(absent.argmax())),
            remedy="drop or complete the row",
        )
    for name in ids:
        nameless = columns.text[name].codes < 0
        if nameless.any():
            raise InputError(
                f"column {name!r} names no series",
                where=_place(source, rows, int(nameless.argmax())),
                remedy="complete or drop the row",
            )
    for name, column in columns.numbers.items():
        # In passes that copy nothing, and pass over what is missing.
        if max(np.fmax.reduce(column, initial=0.0), -np.fmin.reduce(column, initial=0.0)) <= LARGEST:
            continue
        row = int((np.abs(column) > LARGEST).argmax())
        if np.isinf(column[row]):
            raise InputError(f"column {name!r} holds an infinite value", where=_place(source, rows, row))
        raise InputError(
            f"column {name!r} holds {column[row]:g}, beyond the largest number that can be used, {LARGEST:g}",
            where=_place(source, rows, row),
            remedy="correct it, list it under data.missing if it means a missing value, or use a larger unit",
        )


def number_series(
    columns: Columns, ids: tuple[str, ...], values: tuple[str, ...], source: Source
) -> tuple[np.ndarray, tuple[str, ...], dict[str, np.ndarray]]:
    """Number of the series of each row, their names, and what the file's columns call them."""
    if not ids:
        return np.zeros(len(columns.times), dtype=np.int32), values, {}
    parts = [columns.text[name] for name in ids]
    if len(parts) == 1:
        codes, distinct = parts[0].codes, np.arange(len(parts[0].texts))[None]
    else:
        stacked = np.stack([part.codes for part in parts])
        distinct, first, place = np.unique(stacked, axis=1, return_index=True, return_inverse=True)
        order = np.argsort(first)  # in the order of the file
        rank = np.empty(len(order), dtype=np.int32)
        rank[order] = np.arange(len(order))
        codes, distinct = rank[place.ravel()], distinct[:, order]
    texts = {
        name: np.array(part.texts, dtype=object)[which] for name, part, which in zip(ids, parts, distinct, strict=True)
    }
    names = tuple(map(_joined, zip(*texts.values(), strict=True)))
    return codes, names, {name: _typed(column, source, name) for name, column in texts.items()}


def _joined(parts: tuple[str, ...]) -> str:
    """One name of several parts, which no other parts have."""
    if len(parts) == 1:
        return parts[0]
    return "/".join(part.replace("\\", "\\\\").replace("/", "\\/") for part in parts)


def _typed(texts: np.ndarray, source: Source, name: str) -> np.ndarray:
    """Names in the type that the file has them in."""
    kind = None if source.types is None else str(source.types[name])
    return texts.astype(kind) if kind is not None and kind.startswith(("int", "uint")) else texts


def moments_of(
    columns: Columns, codes: np.ndarray, zone: str | None, source: Source, rows: np.ndarray | None, notes: list[str]
) -> np.ndarray:
    """Times in UTC, ``int64 [rows]``; what was decided about hours that the clock shows twice is noted.

    Raises:
        InputError: If the local clock never shows a time.
    """
    style = columns.style
    if style.aware or style.zone != "UTC" or zone is None:
        return columns.times
    found = moments(columns.times, codes if len(codes) else np.zeros(len(columns.times), np.int32), zone)
    if found.gap.any() and style.of_days:
        local = clock(zone, int(columns.times.min()) - DAY, int(columns.times.max()) + DAY)
        found = found._replace(times=local_moments(columns.times, local), gap=np.zeros_like(found.gap))
    if found.gap.any():
        row = int(found.gap.argmax())
        stamp = pd.Timestamp(int(columns.times[row]))
        raise InputError(
            f"the time {stamp} does not exist in {zone}, where the clock is put forward "
            f"({count(int(found.gap.sum()), 'such row')})",
            where=_place(source, rows, row),
            remedy="if the clock of the file is never changed, state its offset, as in data.timezone: UTC+01:00",
        )
    if found.fold.any():
        notes.append(
            f"{count(int(found.fold.sum()), 'row')} in the hour that {zone} shows twice: told apart by their order"
        )
    if found.once.any():
        notes.append(f"{int(found.once.sum()):,} of them stand once only: taken for the first")
    return found.times
