"""Series in: a long or wide CSV or Parquet file becomes a panel, and what was done with odd rows is noted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from common.errors import InputError
from forecasting.series.clock import check_zone
from forecasting.series.columns import load_columns
from forecasting.series.panel import Panel, fill_grids, find_steps
from forecasting.series.rows import check_rows, moments_of, number_series, without_blank_rows
from forecasting.series.tables import Source, numbers_of, open_source, scan
from forecasting.series.tidy import (
    Duplicates,
    How,
    by_series,
    count,
    melted,
    resampled,
    with_static,
    without_duplicates,
    without_open_start,
)  # fmt: skip

Layout = Literal["long", "wide"]
_OURS = re.compile(r"forecast|model|(lo|hi)-\d+(\.\d+)?")


def read_panel(
    path: Path,
    *,
    layout: Layout = "long",
    id: str | Sequence[str] | None = None,  # noqa: A002 - the key of the configuration
    time: str | Sequence[str] = "ds",
    target: str = "y",
    channels: Sequence[str] | None = None,
    static: Sequence[str] = (),
    past: Sequence[str] = (),
    future: Sequence[str] = (),
    categorical: Sequence[str] = (),
    time_format: str | None = None,
    timezone: str | None = None,
    duplicates: Duplicates = "error",
    resample: str | None = None,
    how: How = "mean",
    missing: Sequence[str] = (),
    encoding: str | None = None,
    separator: str | None = None,
    decimal: str | None = None,
) -> Panel:
    """Read a file of series.

    Args:
        path: CSV (plain, ``.gz``, ``.bz2``, ``.xz`` or a zip of one) or Parquet.
        layout: ``long``, one row a series and time; or ``wide``, one row a time and one column a series.
        id: Column or columns that name the series (long). None: the column ``unique_id`` if there is one, else the
            file holds one series.
        time: Column of the times, or the columns they are split over.
        target: Column of the values (long).
        channels: Columns that are series (wide); None for every column of numbers.
        static: Covariates that are the same all along a series.
        past: Covariates that are known as far as the values are.
        future: Covariates that are known ahead.
        categorical: Which of the covariates are texts.
        time_format: ``strptime`` format; ``s``, ``ms``, ``us`` or ``ns`` for numbers since 1970; None to recognise it.
        timezone: Of naive times, the zone they are in; of others, the local zone. UTC by default.
        duplicates: What to do with a time that stands twice in a series.
        resample: Step to bring all series to, such as ``1h`` or ``1d``; None to leave the times as they are.
        how: What a resampled value is of those it stands for.
        missing: Texts that mean a missing number, beside the usual ones.
        encoding: Of a CSV; None to recognise it.
        separator: Of a CSV; None to recognise it.
        decimal: Decimal mark of a CSV; None to recognise it.

    Returns:
        The panel.

    Raises:
        InputError: If the file, a column, a time or a value cannot be used; the message names it.
    """
    if timezone is not None:
        check_zone(timezone)
    source = open_source(path, encoding=encoding, separator=separator, decimal=decimal)
    times = tuple(source.require(name, "data.time") for name in ((time,) if isinstance(time, str) else time))
    covariates = {
        name: source.require(name, f"data.{role}")
        for role, names in (("static", static), ("past", past), ("future", future))
        for name in names
    }
    ids: tuple[str, ...] = ()
    if layout == "long":
        if id is None and "unique_id" in source.columns:
            id = "unique_id"  # noqa: A001
        named = () if id is None else (id,) if isinstance(id, str) else tuple(id)
        ids = tuple(source.require(name, "data.id") for name in named)
        values: tuple[str, ...] = (source.require(target, "data.target"),)
    else:
        taken = {*times, *covariates.values()}
        values = _channels(source, channels, taken)
    for name in (*ids, *times):
        if _OURS.fullmatch(name):
            raise InputError(
                f"the column {name!r} is called as a column of the forecasts is", where=path, remedy="rename it"
            )
    texts = [name for name in covariates.values() if name in categorical]
    columns = load_columns(
        source,
        text=[*ids, *texts],
        numbers=list(dict.fromkeys((*values, *(name for name in covariates.values() if name not in categorical)))),
        time=times,
        time_format=time_format,
        timezone=timezone,
        missing=missing,
    )
    notes = _dialect_notes(source)
    if timezone is None and columns.style.offset.startswith("+") and "/" in columns.style.zone:
        notes.append(f"times have the offsets of {columns.style.zone}, which is taken for the local zone")
    if columns.style.mixed and timezone is None:
        notes.append("times state different offsets from UTC: forecasts are written in UTC, or data.timezone if stated")
    columns, rows = without_blank_rows(columns, notes)
    check_rows(columns, rows, source, ids, times)
    if layout == "long":
        codes, names, id_columns = number_series(columns, ids, values, source)
    else:
        codes, names = np.zeros(0, dtype=np.int32), values
        id_columns = {"unique_id": np.array(values, dtype=object)}
    moment = moments_of(columns, codes, timezone, source, rows, notes)
    taken = list(dict.fromkeys(covariates.values()))
    panel = Panel(
        ids=names,
        id_columns=id_columns,
        starts=np.zeros(0, np.int64),
        times=moment,
        values=columns.numbers[values[0]] if layout == "long" else np.zeros(0),
        steps=(),
        read=len(moment),
        time_columns=times,
        style=replace(columns.style, zone=timezone or columns.style.zone),
        numbers={name: columns.numbers[name].astype(np.float32) for name in taken if name not in categorical},
        categories={name: columns.text[name] for name in taken if name in categorical},
    )
    if layout == "long":
        panel = by_series(panel, codes, notes)
    else:
        panel = melted(panel, [columns.numbers[name] for name in values], notes)
    del columns, codes, moment
    panel = with_static(panel, [covariates[name] for name in static], path)
    panel = without_open_start(panel, notes)
    if resample is not None:
        panel = resampled(panel, resample, how, notes)
        return replace(panel, repeats=np.zeros(len(panel.ids), dtype=np.int64), notes=tuple(notes))
    share = len(names) if layout == "wide" else 1  # series that a row of the file holds a value of
    panel = without_duplicates(panel, duplicates, path, notes, share=share)
    panel = replace(panel, steps=find_steps(panel.times, panel.starts, panel.clock()))
    panel, filled = fill_grids(panel)
    if filled:
        notes.append(
            f"{count(filled // share, 'time')} missing between the first and the last of regular series: kept as gaps"
        )
    return replace(panel, notes=tuple(notes))


def _channels(source: Source, stated: Sequence[str] | None, taken: set[str]) -> tuple[str, ...]:
    """Columns of a wide file that are series."""
    if stated is not None:
        return tuple(source.require(name, "data.channels") for name in stated)
    channels = tuple(name for name, number in number_columns(source).items() if number and name not in taken)
    if not channels:
        raise InputError("there is no column of numbers", where=source.path, remedy="name the columns: data.channels")
    return channels


def number_columns(source: Source) -> dict[str, bool]:
    """Whether each column holds numbers, by the first rows; a text among numbers is a mistake that is named later."""
    first = next(iter(scan(source, text=source.columns, limit=1)), {})
    found = {}
    for name in source.columns:
        column = first.get(name)
        if source.types is not None:
            kind = str(source.types[name])
            found[name] = kind.startswith(("int", "uint", "float", "double", "halffloat", "decimal"))
        elif column is None:
            found[name] = False
        else:
            values = numbers_of(pd.Series(column.dictionary.to_pylist(), dtype="string"), source.dialect, ())
            unnamed = name.startswith("column ")  # of a separator at the end of each row
            found[name] = bool(np.isfinite(values).any()) or (bool(np.isnan(values).all()) and not unnamed)
    return found


def _dialect_notes(source: Source) -> list[str]:
    dialect = source.dialect
    if dialect is None:
        return []
    notes = []
    if dialect.encoding not in ("utf-8", "utf-8-sig"):
        unsure = "; if names look wrong, state data.encoding" if dialect.encoding == "cp1252" else ""
        notes.append(f"read as {dialect.encoding} text{unsure}")
    if dialect.separator != ",":
        notes.append(f"fields are separated by {dialect.separator!r}")
    if dialect.decimal != ".":
        notes.append(f"the decimal mark is {dialect.decimal!r}")
    if dialect.doubtful:
        notes.append(
            f"numbers such as {dialect.doubtful} are read with a decimal point: if it groups thousands, state "
            'data.decimal: ","'
        )
    if dialect.signs:
        notes.append(f"numbers are written with {' or '.join(dialect.signs)}, which is left out")
    if dialect.heading:
        notes.append(f"{count(dialect.heading, 'line')} before the heading passed over")
    units = dialect.skip - dialect.heading - 1 - sum(name.count("\n") for name in dialect.columns)
    if units > 0:
        notes.append(f"{count(units, 'line')} of units below the heading passed over")
    return notes
