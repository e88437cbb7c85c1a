"""Columns of a whole file: ids and categories as numbered texts, values as float64, times as nanoseconds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from common.errors import InputError
from forecasting.series.clock import clock, zone_of
from forecasting.series.forms import recognise
from forecasting.series.orders import date_orders
from forecasting.series.style import UNREAD, TimeStyle, offset_text, offsets_of, read_times, stated_offsets
from forecasting.series.tables import NotANumber, Source, numbers_of, scan

SOME = 100  # times of a block whose offsets are asked for


class Coded(NamedTuple):
    """A column of texts as numbers.

    Attributes:
        codes: ``int32 [rows]``, number of the text of each row, in order of appearance; -1 where empty.
        texts: The distinct texts.
    """

    codes: np.ndarray
    texts: list[str]


@dataclass(frozen=True)
class Columns:
    """Columns of a file.

    Attributes:
        text: Columns of text by name.
        numbers: ``float64 [rows]`` by name, NaN where missing.
        times: ``int64 [rows]``: nanoseconds, in UTC if the style is aware, else of the local clock; :data:`UNREAD`
            where the row has no time.
        style: How the times are written, the zone of naive times left open.
    """

    text: dict[str, Coded]
    numbers: dict[str, np.ndarray]
    times: np.ndarray
    style: TimeStyle


def load_columns(
    source: Source,
    *,
    text: Sequence[str],
    numbers: Sequence[str],
    time: tuple[str, ...],
    time_format: str | None,
    timezone: str | None,
    missing: Sequence[str],
) -> Columns:
    """Read columns of a file.

    Args:
        source: The file.
        text: Columns of text.
        numbers: Columns of numbers.
        time: Columns of the time, joined by blanks where there are several.
        time_format: ``strptime`` format, a unit of numbers since 1970, or None to recognise it.
        timezone: The zone stated, or None.
        missing: Texts that mean a missing number, beside the usual ones.

    Raises:
        InputError: If a time or number cannot be read; the message names its row.
    """
    style = _style(source, time, time_format, timezone)
    # What pyarrow reads on its own it reads several times faster.
    plain = source.dialect is not None and len(time) == 1 and style.iso and "%d" in style.format
    plain = plain and not style.hour24 and style.span is None
    try:
        return _load(source, text, numbers, time, style, missing, plain_times=plain and not style.offset, plain=True)
    except NotANumber:
        return _load(source, text, numbers, time, style, missing, plain_times=False, plain=False)


def _load(
    source: Source,
    text: Sequence[str],
    numbers: Sequence[str],
    time: tuple[str, ...],
    style: TimeStyle,
    missing: Sequence[str],
    *,
    plain_times: bool,
    plain: bool,
) -> Columns:
    codes = {name: _Growing(np.int32) for name in text}
    known: dict[str, dict[str, int]] = {name: {} for name in text}
    values = {name: _Growing(np.float64) for name in numbers}
    times = _Growing(np.int64)
    stated: list[tuple[np.ndarray, np.ndarray]] = []  # some moments, and their offsets from UTC
    as_text: list[str] = [*text, *(() if plain_times else time), *(() if plain else numbers)]
    for block in scan(
        source, text=as_text, numbers=numbers if plain else (), times=time if plain_times else (), missing=missing
    ):
        rows = times.length
        for name in text:
            codes[name].append(_renumber(block[name], known[name]))
        for name in numbers:
            if plain:
                values[name].append(block[name].to_numpy(zero_copy_only=False))
            else:
                values[name].append(_from_text(block[name], name, source, rows, missing))
        if plain_times:
            times.append(_fill_nulls(block[time[0]]))
        else:
            times.append(_times([block[name] for name in time], style, source, rows, stated))
    if stated:
        style = _with_zone(
            style, np.concatenate([a for a, _ in stated]), np.concatenate([b for _, b in stated]), source
        )
    return Columns(
        text={name: Coded(column.array(), list(known[name])) for name, column in codes.items()},
        numbers={name: column.array() for name, column in values.items()},
        times=times.array(),
        style=style,
    )


class _Growing:
    """An array that parts are appended to, without a second copy of all of it at the end.

    Room is asked for in plenty, as memory that nothing was written to costs nothing.
    """

    def __init__(self, kind: type) -> None:
        self.length = 0
        self._room = np.empty(1 << 24, dtype=kind)

    def append(self, part: np.ndarray) -> None:
        end = self.length + len(part)
        if end > len(self._room):
            larger = np.empty(max(end, 4 * len(self._room)), dtype=self._room.dtype)
            larger[: self.length] = self._room[: self.length]
            self._room = larger
        self._room[self.length : end] = part
        self.length = end

    def array(self) -> np.ndarray:
        return self._room[: self.length]


def _renumber(column: pa.Array, known: dict[str, int]) -> np.ndarray:
    """Codes of a block in the numbering of the whole column."""
    column = _encoded(column)
    texts = column.dictionary.to_pylist()
    table = np.array(
        [-1 if not text or not text.strip() else known.setdefault(text, len(known)) for text in texts] + [-1]
    )
    return table.astype(np.int32)[_indices(column)]


def _encoded(column: pa.Array) -> pa.Array:
    """A column as numbered texts; of Parquet, times come in a type of their own."""
    if pa.types.is_dictionary(column.type):
        return column
    return column.cast(pa.string()).dictionary_encode()


def _indices(column: pa.Array) -> np.ndarray:
    """Indices into the dictionary, -1 for null."""
    return column.indices.fill_null(-1).to_numpy(zero_copy_only=False)


def _fill_nulls(column: pa.Array) -> np.ndarray:
    times = column.cast(pa.int64())
    return times.fill_null(UNREAD).to_numpy(zero_copy_only=False)


def _from_text(column: pa.Array, name: str, source: Source, before: int, missing: Sequence[str]) -> np.ndarray:
    if not pa.types.is_dictionary(column.type):
        return column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    texts = pd.Series(column.dictionary.to_pylist(), dtype="string")
    values = np.append(numbers_of(texts, source.dialect, missing), np.nan)
    indices = _indices(column)
    wrong = np.isinf(values)[indices]
    if wrong.any():
        row = int(wrong.argmax())
        raise InputError(
            f"column {name!r} holds {str(texts.iloc[indices[row]]).strip()!r}, which is not a number",
            where=source.place(before + row),
            remedy=_remedy_for(str(texts.iloc[indices[row]]), source),
        )
    return values[indices]


def _remedy_for(text: str, source: Source) -> str:
    """What to do about a text among numbers."""
    if source.dialect is not None and re.fullmatch(r"[+-]?[\d.,]+", text.strip()):
        return f"correct it; the decimal mark is taken to be {source.dialect.decimal!r}, which data.decimal may state"
    return "correct it, leave the cell empty where the value is missing, or list it under data.missing"


def _texts(columns: Sequence[pa.Array]) -> tuple[pd.Series, np.ndarray]:
    """Distinct texts of columns joined by blanks, and which of them each row has; -1 where any is empty."""
    columns = [_encoded(column) for column in columns]
    parts = [pd.Series(column.dictionary.to_pylist(), dtype="string").str.strip() for column in columns]
    parts = [part.mask(part == "") for part in parts]
    indices = [_indices(column) for column in columns]
    if len(columns) == 1:
        joined, place = parts[0], indices[0]
    else:
        distinct, place = np.unique(np.stack(indices), axis=1, return_inverse=True)
        chosen = [part.reindex(column).reset_index(drop=True) for part, column in zip(parts, distinct, strict=True)]
        joined = chosen[0]
        for part in chosen[1:]:
            joined = joined + " " + part
    empty = np.append(joined.isna().to_numpy(), True)
    return joined, np.where(empty[place], -1, place)


def _with_zone(style: TimeStyle, times: np.ndarray, offsets: np.ndarray, source: Source) -> TimeStyle:
    """The style with the zone that offsets from UTC tell of: a fixed one, or that of a place whose clock has them."""
    if style.offset == "name":
        local = clock(style.zone, int(times.min()), int(times.max())).local(times)
        other = local - times != offsets
        if other.any():
            first = times[other][:1]
            stamp = pd.Timestamp(int((first + offsets[other][:1])[0]))
            names = {offset: name for name, offset in style.clocks}
            said, shown = names[int(offsets[other][0])], names.get(int((local - times)[other][0]), "another")
            raise InputError(
                f"the time {stamp} is {said}, but the clock of {style.zone} is {shown} then",
                where=source.path,
                remedy="if the clock of the file is never changed, state its offset, as in data.timezone: UTC+01:00",
            )
        return style
    if (offsets == offsets[0]).all():
        return replace(style, zone="UTC" + offset_text(int(offsets[0]), "+hh:mm") if offsets[0] else "UTC")
    zone = zone_of(times, offsets)
    return replace(style, zone=zone or "UTC", mixed=zone is None)


def _times(
    columns: Sequence[pa.Array],
    style: TimeStyle,
    source: Source,
    before: int,
    stated: list[tuple[np.ndarray, np.ndarray]],
) -> np.ndarray:
    """Times of a block; of some, the offset from UTC that they state is added to ``stated``."""
    if style.stamps:
        return _fill_nulls(columns[0].cast(pa.timestamp("ns", tz=getattr(columns[0].type, "tz", None))))
    texts, place = _texts(columns)
    used = np.unique(place[place >= 0])
    read = np.full(len(texts) + 1, UNREAD)
    try:
        read[used] = read_times(texts.iloc[used], style)
    except ValueError as error:
        raise InputError(
            f"times cannot be read as {style.format!r} ({error})", where=source.path, remedy="another data.time_format"
        ) from error
    times = read[place]
    wrong = (times == UNREAD) & (place >= 0)
    if wrong.any():
        row = int(wrong.argmax())
        raise _unreadable(str(texts.iloc[place[row]]), style, source.place(before + row))
    if style.offset not in ("", "Z") and len(used):
        some = used[:: max(1, len(used) // SOME)]
        stated.append((read[some], stated_offsets(texts.iloc[some], style)))
    return times


def _unreadable(text: str, style: TimeStyle, where: str) -> InputError:
    stated = offsets_of(pd.Series([text], dtype="string"))
    if style.iso and bool(stated) != bool(style.offset):
        this, others = ("an", "none") if stated else ("no", "one")
        return InputError(
            f"the time {text!r} has {this} offset from UTC, but others in the file have {others}",
            where=where,
            remedy="write all times with an offset, or none",
        )
    if (
        style.interval
        and style.zone == "UTC"
        and read_times(pd.Series([re.sub(r"\d+$", "1", text)]), style)[0] != UNREAD
    ):
        return InputError(
            f"the day of {text!r} has no such interval",
            where=where,
            remedy="state the zone, in which the clock is put back on that day, such as data.timezone: Europe/London",
        )
    form = style.format or f"numbers since 1970 ({style.unit})"
    if re.search(r"(?<!\d)(1[0-6]\d\d|2[2-9]\d\d)(?!\d)", text):
        form += ", between the years 1678 and 2261"
    return InputError(
        f"cannot read {text!r} as a time of the form {form}",
        where=where,
        remedy="correct the row, or state data.time_format",
    )


def _style(source: Source, time: tuple[str, ...], stated: str | None, zone: str | None) -> TimeStyle:
    """How the times of a file are written."""
    kind = source.types[time[0]] if source.types is not None and len(time) == 1 else None
    if kind is not None and (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
        zone = getattr(kind, "tz", None)
        return TimeStyle(kind=str(kind), zone=zone or "UTC", offset="Z" if zone else "")
    first = next(iter(scan(source, text=time, limit=1)), None)
    if first is None:
        raise InputError("the file has a heading but no rows", where=source.path)
    texts = _texts([first[name] for name in time])[0].dropna()
    if texts.empty:
        raise InputError(f"column {' '.join(time)!r} holds no time", where=source.path, remedy="state data.time")
    orders = date_orders(texts) if stated is None else frozenset()
    if len(orders) > 1:  # a later row may decide
        for block in scan(source, text=time):
            orders = (orders & date_orders(_texts([block[name] for name in time])[0].dropna())) or orders
            if len(orders) == 1:
                break
    try:
        style = recognise(texts, names=time, stated=stated, orders=orders, zone=zone)
    except InputError as error:
        raise InputError(
            error.problem, where=f"{source.path}, column {' '.join(time)!r}", remedy=error.remedy
        ) from None
    if kind is not None and (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        style = replace(style, kind=kind.to_pandas_dtype().__name__)
    return style
