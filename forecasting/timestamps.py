"""Timestamps: read from text without guessing what is ambiguous, stepped forward, written back as they were.

Inside farview a time is a count of nanoseconds since 1970 in UTC; its local clock matters only for calendar
phases, for steps of a day or more, and for writing.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
from pandas.tseries.api import guess_datetime_format

from common.errors import InputError

DAY = 86_400 * 10**9
_DAY_AND_MONTH = re.compile(r"^\s*(\d{1,2})([/.\-])(\d{1,2})\2(\d{4})")
_OFFSET = re.compile(r":\d{2}(?:\.\d+)?\s*(Z|[+-]\d{2}(?::?\d{2})?)$")


@dataclass(frozen=True)
class TimeStyle:
    """How the times of a file are written.

    Attributes:
        format: ``strptime`` format.
        zone: Local time zone: the stated one; else the offset that all times of the file have; else UTC.
        offset: How the text states its offset from UTC: not at all (it is in ``zone``), as a ``Z``, or in numbers.
    """

    format: str
    zone: str
    offset: Literal["none", "Z", "numbers"]


def parse_times(
    text: pd.Series, *, time_format: str | None, timezone: str | None, place: Callable[[int], str]
) -> tuple[np.ndarray, TimeStyle]:
    """Read timestamps.

    Args:
        text: One text a row.
        time_format: ``strptime`` format, or None to recognise it from the rows.
        timezone: IANA zone: of naive times, the zone they are in; of times with an offset, the local zone.
        place: Names a row for messages, from its position.

    Returns:
        Nanoseconds since 1970 in UTC, ``int64 [N]``, and the style of the file.

    Raises:
        InputError: If a time is missing, unreadable, ambiguous, or does not exist in the zone.
    """
    if timezone is not None:
        _check_zone(timezone)
    missing = text.isna().to_numpy()
    if missing.any():
        raise InputError("the time is missing", where=place(int(missing.argmax())), remedy="drop or complete the row")
    if time_format is None:
        time_format = _recognise(text, place)
    iso = _is_iso(time_format)
    offsets = text.str.extract(_OFFSET, expand=False)
    aware = "%z" in time_format or bool(iso and offsets.notna().any())
    if iso and aware and offsets.isna().any():
        row = int(offsets.isna().to_numpy().argmax())
        raise InputError(
            f"the time {text.iloc[row]!r} has no offset from UTC, but others in the file have one",
            where=place(row),
            remedy="write all times with an offset, or none",
        )
    # ISO files often leave out midnight or zero fractions, so that rows differ in form.
    parsed = pd.to_datetime(text, format="ISO8601" if iso else time_format, errors="coerce", utc=aware)
    unread = parsed.isna().to_numpy()
    if unread.any():
        row = int(unread.argmax())
        raise InputError(
            f"cannot read {text.iloc[row]!r} as a time of the form {time_format}",
            where=place(row),
            remedy="correct the row, or state data.time_format in the configuration",
        )
    if aware:
        utc = parsed
    else:
        utc = parsed.dt.tz_localize(timezone or "UTC", nonexistent="NaT", ambiguous="NaT").dt.tz_convert("UTC")
        unclear = utc.isna().to_numpy()
        if unclear.any():
            row = int(unclear.argmax())
            raise InputError(
                f"the time {text.iloc[row]!r} does not exist in {timezone}, or exists twice: its clock changes there",
                where=place(row),
                remedy="give times in UTC or with an offset, or leave out data.timezone",
            )
    # A copy, since pandas hands out read-only views.
    nanoseconds = utc.dt.tz_localize(None).astype("datetime64[ns]").astype("int64").to_numpy(copy=True)
    offset = "none" if not aware else "Z" if str(text.iloc[0]).rstrip().endswith("Z") else "numbers"
    return nanoseconds, TimeStyle(format=time_format, zone=timezone or _shared_offset(offsets), offset=offset)


def write_times(nanoseconds: np.ndarray, style: TimeStyle) -> np.ndarray:
    """Write times in the style of the file they continue, as an object array of texts."""
    local = _local(nanoseconds, "UTC" if style.offset == "Z" else style.zone)
    texts = local.strftime(style.format.replace("%z", "")).to_numpy(dtype=object)
    if style.offset == "Z":
        return texts + "Z"
    if style.offset == "numbers":
        offsets = local.strftime("%z").to_numpy(dtype=object)  # +hhmm
        return texts + np.array([f"{offset[:3]}:{offset[3:]}" for offset in offsets], dtype=object)
    return texts


def local_phases(nanoseconds: np.ndarray, zone: str) -> np.ndarray:
    """Where each time stands in its local day, week and year.

    Args:
        nanoseconds: ``[N]``.
        zone: IANA zone of the local clock.

    Returns:
        ``float32 [N, 3]`` in ``[0, 1)``: fraction of the day since midnight; of the week since Monday; of the
        year since January, each month a twelfth, so that monthly series have twelve phases.
    """
    local = _local(nanoseconds, zone).tz_localize(None)
    clock = local.astype("datetime64[ns]").astype("int64").to_numpy()
    day = clock % DAY / DAY
    week = (local.day_of_week.to_numpy() + day) / 7
    month = (local.day.to_numpy() - 1 + day) / local.days_in_month.to_numpy()
    year = (local.month.to_numpy() - 1 + month) / 12
    return np.stack([day, week, year], axis=-1).astype(np.float32)


@dataclass(frozen=True)
class Step:
    """The usual step of a series.

    Attributes:
        months: Calendar months, or 0 where the step is a fixed time.
        nanoseconds: The step, or the mean length of that many months.
        day: Day of the month that steps of months aim at; shorter months have it on their last day.
    """

    months: int
    nanoseconds: int
    day: int = 0


def infer_step(nanoseconds: np.ndarray, zone: str) -> Step | None:
    """Median step of sorted times; whole months where all stand on one local day, or on the last of shorter months.

    Returns:
        The step, or None for fewer than two distinct times.
    """
    gaps = np.diff(nanoseconds)
    gaps = gaps[gaps > 0]
    if not len(gaps):
        return None
    if gaps.min() >= 28 * DAY:
        local = _local(nanoseconds, zone)
        days, last = local.day.to_numpy(), local.days_in_month.to_numpy()
        day = 31 if bool((days == last).all()) else int(days.max())  # month ends stay month ends
        if bool((days == np.minimum(day, last)).all()):
            counts = np.diff(local.year.to_numpy() * 12 + local.month.to_numpy())
            months = int(np.median(counts))
            return Step(months=months, nanoseconds=int(months * 365.2425 / 12 * DAY), day=day)
    return Step(months=0, nanoseconds=int(np.median(gaps)))


def following_times(last: int, step: Step, count: int, zone: str) -> np.ndarray:
    """The next ``count`` times after ``last``, ``int64 [count]``.

    Months and whole days step on the local clock, so that a daily series stays at its hour when the clock
    changes; shorter steps are elapsed time.
    """
    if not step.months and step.nanoseconds % DAY:
        return last + step.nanoseconds * np.arange(1, count + 1, dtype=np.int64)
    start = _local(np.array([last]), zone)[0].tz_localize(None)
    if step.months:
        first = [start.replace(day=1) + pd.DateOffset(months=step.months * k) for k in range(1, count + 1)]
        naive = pd.DatetimeIndex([month.replace(day=min(step.day, month.days_in_month)) for month in first])
    else:
        naive = pd.DatetimeIndex(start + pd.to_timedelta(step.nanoseconds * np.arange(1, count + 1), unit="ns"))
    later = naive.tz_localize(zone, ambiguous=True, nonexistent="shift_forward").tz_convert("UTC")
    return later.tz_localize(None).astype("datetime64[ns]").astype("int64").to_numpy(copy=True)


def _local(nanoseconds: np.ndarray, zone: str) -> pd.DatetimeIndex:
    return pd.DatetimeIndex(nanoseconds.astype("datetime64[ns]")).tz_localize("UTC").tz_convert(zone)


def _check_zone(zone: str) -> None:
    import zoneinfo

    try:
        zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InputError(
            f"{zone!r} is not a time zone", where="data.timezone", remedy="an IANA name such as Europe/Berlin"
        ) from error


def _is_iso(time_format: str) -> bool:
    return time_format.startswith("%Y-%m-%d")


def _shared_offset(offsets: pd.Series) -> str:
    """The zone of a file whose times all have one offset from UTC, as ``UTC+01:00``; else UTC."""
    distinct = offsets.dropna().unique()
    if len(distinct) != 1 or distinct[0] == "Z":
        return "UTC"
    digits = distinct[0].replace(":", "").ljust(5, "0")  # +01, +0100 and +01:00 are one
    return "UTC" if digits[1:] == "0000" else f"UTC{digits[:3]}:{digits[3:]}"


def _recognise(text: pd.Series, place: Callable[[int], str]) -> str:
    """The format of a column of times; a day and month that cannot be told apart are refused."""
    # The longest text says most: some programs leave out the time at midnight.
    row = int(text.str.len().to_numpy().argmax())
    first = str(text.iloc[row])
    day_first = False
    match = _DAY_AND_MONTH.match(first)
    if match:
        numbers = text.str.extract(_DAY_AND_MONTH)[[0, 2]].astype("Int64")
        left, right = numbers[0].max(), numbers[2].max()
        if left <= 12 and right <= 12:
            raise InputError(
                f"{first!r} may be day or month first, and no row decides it",
                where=place(row),
                remedy='state data.time_format, such as "%d/%m/%Y" or "%m/%d/%Y"',
            )
        day_first = bool(left > 12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a remark on dayfirst, decided above
        found = guess_datetime_format(first, dayfirst=day_first)
    if found is None or first.strip().isdigit():
        raise InputError(
            f"cannot read {first!r} as a time",
            where=place(row),
            remedy='correct it, or state data.time_format, such as "%d.%m.%Y %H:%M"',
        )
    return found
