"""How a file writes its times: recognised without guessing what is ambiguous, read, and written back the same way."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import pandas as pd
from pandas.tseries.api import guess_datetime_format

from common.errors import InputError
from forecasting.series.clock import DAY, HOUR, clock

UNREAD = np.iinfo(np.int64).min  # stands for a time that cannot be read
UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
COMPONENTS = {
    "%Y": ("year", "yr", "yyyy"), "%m": ("month", "mon", "mnth", "mo"), "%d": ("day", "dd", "dom", "mday"),
    "%H": ("hour", "hr", "hh"), "%M": ("minute", "min"), "%S": ("second", "sec"),
}  # fmt: skip
_PARTS = re.compile(r"%[a-zA-Z]|[^%]+|%%")
_DIGITS = {"%Y": r"\d{4}", "%f": r"\d+", "%y": r"\d{2}", "%j": r"\d{1,3}", "%z": r"\s*(?:Z|[+-]\d{2}(?::?\d{2})?)"}
_PADDED = ("%m", "%d", "%H", "%I", "%M", "%S", "%j")
_DAY_AND_MONTH = re.compile(r"^\s*(\d{1,2})([/.\-])(\d{1,2})\2(\d{4})")
_OFFSET = re.compile(r"\d{1,2}:\d{2}(?::\d{2})?(?:[.,]\d+)?\s*(Z|[+-]\d{2}(?::?\d{2})?)$")
_QUARTER = re.compile(r"^(\d{4})([-\s]?)Q([1-4])$")
_HOUR_24 = re.compile(r"(?<=[ T])24(?=:?00(?:\D|00|$))")
_HOUR_24_ALONE = re.compile(r"(?<= )24$")  # in a column of its own
_ZULU = re.compile(r"(?<=\d)\s?(UTC|GMT)$")


@dataclass(frozen=True)
class TimeStyle:
    """How the times of a file are written.

    Attributes:
        format: ``strptime`` format; the columns of a time that is split over several are joined by blanks.
        zone: Local time zone: the stated one; else the offset that all times of the file have; else UTC.
        unit: Of a time that is a number since 1970, what it counts; then there is no format.
        offset: How an offset from UTC is written: not at all, as ``Z``, or as ``+hh:mm``, ``+hhmm`` or ``+hh``.
        unpadded: Directives of the format that are written without leading zeros.
        fraction: Digits of a fraction of a second.
        hour24: Whether midnight is written as 24:00 of the day before.
        zulu: What stands for an offset of zero where ``offset`` is ``Z``; some write `` UTC``.
        kind: Type of the column in Parquet, or None for text.
    """

    format: str = ""
    zone: str = "UTC"
    unit: str | None = None
    offset: Literal["", "Z", "+hh:mm", "+hhmm", "+hh"] = ""
    unpadded: frozenset[str] = field(default_factory=frozenset)
    fraction: int = 6
    hour24: bool = False
    zulu: str = "Z"
    kind: str | None = None

    @property
    def iso(self) -> bool:
        """Whether it is ISO 8601, whose rows may leave out midnight or a zero fraction."""
        return self.format.startswith("%Y-%m-%d") and self.format[8:9] in ("", " ", "T")

    @property
    def aware(self) -> bool:
        """Whether each time states its offset from UTC, or counts from 1970 in UTC."""
        return bool(self.offset) or self.unit is not None


def day_or_month_first(texts: pd.Series) -> bool | None:
    """Whether day stands before month in texts such as 13/05/2021; None if they do not tell.

    Texts of another form are no question, and count as month first.
    """
    numbers = texts.str.extract(_DAY_AND_MONTH)[[0, 2]].dropna().astype("int64")
    if numbers.empty:
        return False
    left, right = int(numbers[0].max()), int(numbers[2].max())
    return None if left <= 12 and right <= 12 else left > 12


def recognise(texts: pd.Series, *, names: tuple[str, ...], stated: str | None, day_first: bool | None) -> TimeStyle:
    """Recognise how times are written, their zone left open.

    Args:
        texts: Some distinct times, at least one.
        names: Columns they come from; several are joined by blanks.
        stated: ``strptime`` format, if stated; or a unit (``s``, ``ms``, ``us``, ``ns``) of numbers since 1970.
        day_first: Whether day stands before month, see :func:`day_or_month_first`.

    Raises:
        InputError: If they are of no form that is known, or day and month cannot be told apart.
    """
    if stated in UNITS:
        return TimeStyle(unit=stated)
    texts = texts.str.strip()
    ending = _ZULU.search(str(texts.iloc[0]))
    zulu = ending[0] if ending else "Z"
    found = stated or _components(names)
    late = _hour24(found or "")
    hour24 = bool(texts.str.contains(late).any())
    plain = texts.str.replace(_ZULU, "Z", regex=True).str.replace(late, "00", regex=True)
    # The longest text says most: some programs leave out the time at midnight.
    first = str(plain.iloc[int(plain.str.len().to_numpy().argmax())])
    if found is None:
        if day_first is None:
            raise InputError(
                f"{first!r} may be day or month first, and no row decides it",
                remedy='state data.time_format, such as "%d/%m/%Y" or "%m/%d/%Y"',
            )
        if plain.str.fullmatch(r"-?\d+(\.\d+)?").all():
            return _number_style(plain, first)
        quarter = _QUARTER.match(first)
        found = f"%Y{quarter[2]}Q%Q" if quarter else _guess(first, day_first=day_first)
    return _with_details(TimeStyle(format=found, hour24=hour24, zulu=zulu), plain)


def read_times(texts: pd.Series, style: TimeStyle) -> np.ndarray:
    """Read times: nanoseconds ``int64 [N]``, in UTC where the texts state it, else of the local clock.

    What cannot be read is :data:`UNREAD`.
    """
    if style.unit is not None:
        scale = UNITS[style.unit]
        numbers = pd.to_numeric(texts, errors="coerce")
        if pd.api.types.is_integer_dtype(numbers):
            return numbers.to_numpy(dtype=np.int64) * scale
        values = numbers.to_numpy(dtype=np.float64, na_value=np.nan)
        whole = np.floor(values)
        known = np.isfinite(values)
        whole = np.where(known, whole, 0.0)
        # The fraction apart, since nanoseconds since 1970 do not fit a float.
        parts = np.round(np.where(known, values - whole, 0.0) * scale / 1000).astype(np.int64) * 1000
        return np.where(known, whole.astype(np.int64) * scale + parts, UNREAD)
    texts = texts.str.strip()
    if style.zulu != "Z":
        texts = texts.str.replace(_ZULU, "Z", regex=True)
    later = np.zeros(len(texts), dtype=np.int64)
    if style.hour24:
        late = _hour24(style.format)
        later[texts.str.contains(late).to_numpy(dtype=bool, na_value=False)] = DAY
        texts = texts.str.replace(late, "00", regex=True)
    if "%Q" in style.format:
        parts = texts.str.extract(_QUARTER)
        texts = parts[0] + "-" + (pd.to_numeric(parts[2]) * 3 - 2).astype("Int64").astype("string").str.zfill(2)
        parsed = pd.to_datetime(texts, format="%Y-%m", errors="coerce")
    else:
        parsed = _parse(texts, style)
    unread = parsed.isna().to_numpy()
    if parsed.dt.tz is not None:
        parsed = parsed.dt.tz_localize(None)
    nanoseconds = parsed.astype("datetime64[ns]").astype("int64").to_numpy(copy=True) + later
    nanoseconds[unread] = UNREAD
    return nanoseconds


def _parse(texts: pd.Series, style: TimeStyle) -> pd.Series:
    """Timestamps of texts, with a zone where they state one; what cannot be read is missing."""
    if not style.iso:
        return pd.to_datetime(texts, format=style.format, errors="coerce", utc=bool(style.offset))
    # ISO files often leave out midnight or zero fractions, so that rows differ in form.
    if style.offset:
        stated = texts.str.extract(_OFFSET, expand=False).notna()
        return pd.to_datetime(texts.where(stated), format="ISO8601", errors="coerce", utc=True)
    try:
        parsed = pd.to_datetime(texts, format="ISO8601", errors="coerce")
        if parsed.dtype.kind == "M" and getattr(parsed.dtype, "tz", None) is None:
            return parsed
    except ValueError:  # some state an offset, which most do not
        pass
    naive = texts.where(texts.str.extract(_OFFSET, expand=False).isna())
    return pd.to_datetime(naive, format="ISO8601", errors="coerce")


def shared_offset(texts: pd.Series) -> str:
    """The zone of times that all state one offset from UTC, as ``UTC+01:00``; else UTC."""
    distinct = offsets_of(texts)
    if len(distinct) != 1 or distinct[0] == "Z":
        return "UTC"
    digits = distinct[0].replace(":", "").ljust(5, "0")  # +01, +0100 and +01:00 are one
    return "UTC" if digits[1:] == "0000" else f"UTC{digits[:3]}:{digits[3:]}"


def offsets_of(texts: pd.Series) -> list[str]:
    """Distinct offsets that times state."""
    return sorted(texts.str.extract(_OFFSET, expand=False).dropna().unique())


def write_times(times: np.ndarray, style: TimeStyle) -> np.ndarray:
    """Write moments in the style of the file they continue.

    Args:
        times: ``int64 [N]``, nanoseconds in UTC.
        style: The style.

    Returns:
        ``[N]``: texts; integers or floats where times are numbers; timestamps for Parquet.
    """
    distinct, place = np.unique(times, return_inverse=True)  # the horizon of many series is the same
    return _write(distinct, style)[place]


def split_format(form: str, columns: int) -> list[str]:
    """The formats of the columns whose texts, joined by blanks, have the format given.

    With more blanks than that, the first column has those that are over: a date may have some, a time of day has none.
    """
    parts = form.split(" ")
    over = len(parts) - columns + 1
    return [" ".join(parts[:over]), *parts[over:]]


def _write(times: np.ndarray, style: TimeStyle) -> np.ndarray:
    if style.unit is not None:
        scale = UNITS[style.unit]
        # The fraction apart, since nanoseconds since 1970 do not fit a float.
        return times // scale if not (times % scale).any() else times // scale + times % scale / scale
    local = clock("UTC" if style.offset == "Z" else style.zone, int(times[0]), int(times[-1])).local(times)
    if style.kind is not None:
        return local.astype("datetime64[ns]")
    offsets = _offset_texts(local - times, style)
    midnight = (local % DAY == 0) & style.hour24
    local = local - np.where(midnight, HOUR, 0)  # on the evening of the day before
    stamps = pd.DatetimeIndex(local.astype("datetime64[ns]"))
    texts = np.full(len(times), "", dtype=object)
    for part in _PARTS.findall(style.format):
        if part == "%z":
            texts = texts + offsets
        elif part == "%H":
            texts = texts + np.where(midnight, "24", _directive(part, stamps, style, local))
        else:
            texts = texts + _directive(part, stamps, style, local)
    return texts


def _directive(part: str, stamps: pd.DatetimeIndex, style: TimeStyle, local: np.ndarray) -> np.ndarray | str:
    if part == "%f":
        return np.array([f"{int(t):09d}"[: style.fraction].ljust(style.fraction, "0") for t in local % 10**9], object)
    if part == "%Q":
        return stamps.quarter.astype(str).to_numpy(dtype=object)
    if not part.startswith("%"):
        return part
    texts = stamps.strftime(part)
    if part in style.unpadded:
        texts = texts.str.replace(r"^0+(?=\d)", "", regex=True)
    return texts.to_numpy(dtype=object)


def _offset_texts(offsets: np.ndarray, style: TimeStyle) -> np.ndarray:
    form = style.offset
    if form == "Z":
        return np.full(len(offsets), style.zulu, dtype=object)
    minutes = np.abs(offsets) // (60 * 10**9)
    between = ":" if form == "+hh:mm" else ""
    return np.array(
        [
            f"{'-' if offset < 0 else '+'}{minute // 60:02d}" + ("" if form == "+hh" else f"{between}{minute % 60:02d}")
            for offset, minute in zip(offsets, minutes, strict=True)
        ],
        dtype=object,
    )


def _components(names: tuple[str, ...]) -> str | None:
    """Format of times split over columns called year, month, day, hour and the like."""
    if len(names) < 2:
        return None
    found = []
    for name in names:
        directive = next((d for d, words in COMPONENTS.items() if name.strip().lower() in words), None)
        if directive is None:
            return None
        found.append(directive)
    return " ".join(found)


def _number_style(texts: pd.Series, first: str) -> TimeStyle:
    """Times that are numbers: dates written together, years, or counts since 1970."""
    numbers = pd.to_numeric(texts)
    low, high = float(numbers.min()), float(numbers.max())
    length = set(texts.str.len())
    if length == {8} and low > 1800_00_00 and high < 2200_00_00 and _all_dates(texts, "%Y%m%d"):
        return TimeStyle(format="%Y%m%d")
    if length == {6} and low > 1800_00 and high < 2200_00 and _all_dates(texts, "%Y%m"):
        return TimeStyle(format="%Y%m")
    if length == {4} and low >= 1700 and high < 2300:
        return TimeStyle(format="%Y")
    for digits, form in ((10, "%Y%m%d%H"), (12, "%Y%m%d%H%M"), (14, "%Y%m%d%H%M%S")):
        if length == {digits} and str(first).startswith(("19", "20")) and _all_dates(texts, form):
            return TimeStyle(format=form)
    for unit, scale in UNITS.items():
        # From 1973 to 2128: below, a count of seconds could as well be a row number.
        if low * scale >= 1e8 * 1e9 and high * scale <= 5e9 * 1e9:
            return TimeStyle(unit=unit)
    raise InputError(
        f"cannot read {first!r} as a time",
        remedy='state data.time_format: "%Y%m%d" or the like, or s, ms, us or ns for a count since 1970',
    )


def _all_dates(texts: pd.Series, form: str) -> bool:
    return bool(pd.to_datetime(texts, format=form, errors="coerce").notna().all())


def _hour24(form: str) -> re.Pattern[str]:
    return _HOUR_24_ALONE if form.endswith(" %H") else _HOUR_24


def _guess(first: str, *, day_first: bool) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a remark on dayfirst, decided by the rows
        found = guess_datetime_format(first, dayfirst=day_first)
    if found is None:
        raise InputError(
            f"cannot read {first!r} as a time",
            remedy='correct it, or state data.time_format, such as "%d.%m.%Y %H:%M"',
        )
    return found


def _with_details(style: TimeStyle, texts: pd.Series) -> TimeStyle:
    """What the format does not say: padding, digits of a fraction, form of the offset."""
    pattern, directives = "", []
    for part in _PARTS.findall(style.format):
        if part.startswith("%") and part != "%%":
            directives.append(part)
            pattern += f"({_DIGITS.get(part, r'[0-9]{1,2}' if part in _PADDED else r'[^0-9]+?')})"
        else:
            pattern += re.escape(part)
    # A time of day may be left out at midnight, so that the texts that have all of it are asked.
    groups = texts.str.strip().str.extract(f"^{pattern}$").dropna()
    unpadded, fraction, offset = set(), style.fraction, ""
    for number, directive in enumerate(directives):
        column = groups[number] if number in groups else pd.Series(dtype=str)
        if directive in _PADDED and bool(column.str.fullmatch(r"\d").any()):
            unpadded.add(directive)
        if directive == "%f" and len(column):
            fraction = int(column.str.len().max())
        if directive == "%z" and len(column):
            offset = _offset_form(column.iloc[0].strip())
    stated = offsets_of(texts)
    if style.iso and not offset and stated:
        offset = _offset_form(stated[0])
    return replace(style, unpadded=frozenset(unpadded), fraction=fraction, offset=offset)


def _offset_form(text: str) -> Literal["", "Z", "+hh:mm", "+hhmm", "+hh"]:
    if text == "Z":
        return "Z"
    return "+hh:mm" if ":" in text else "+hhmm" if len(text) == 5 else "+hh"
