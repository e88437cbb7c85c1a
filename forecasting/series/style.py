"""How a file writes its times: read, and written back the same way."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import pandas as pd

from forecasting.series.clock import DAY, HOUR, MINUTE, SECOND, clock, local_moments
from forecasting.series.spans import Span, beginnings

PIVOT = 50  # years of two digits from it on are of the last century
UNREAD = np.iinfo(np.int64).min  # stands for a time that cannot be read
UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1, "excel": DAY}
EXCEL_EPOCH = -25_569 * DAY  # 1899-12-30, which the days of a spreadsheet count from
CLOCK_NAME = re.compile(r"(?<=[\dmM])\s?\b([A-Z]{3,5})$")
OFFSET = re.compile(r"(?:\d{1,2}:\d{2}(?::\d{2})?(?:[.,]\d+)?|T\d{4}(?:\d{2})?)\s*(Z|[+-]\d{2}(?::?\d{2})?)$")
ZULU = re.compile(r"(?<=\d)\s?(UTC|GMT)$")
_FIRST_STAMP, _LAST_STAMP = pd.Timestamp(1678, 1, 1), pd.Timestamp(2262, 1, 1)
_PARTS = re.compile(r"%[a-zA-Z]|[^%]+|%%")
_DIGITS = {
    "%Y": r"\d{4}", "%G": r"\d{4}", "%y": r"\d{2}", "%f": r"\d+", "%j": r"\d{1,3}", "%u": r"\d", "%Q": r"[1-4]",
    "%z": r"\s*(?:Z|[+-]\d{2}(?::?\d{2})?)",
    **dict.fromkeys(("%m", "%d", "%H", "%I", "%M", "%S", "%V"), r"\d{1,2}"),
}  # fmt: skip
_ISO_TIME = re.compile(r"([ T]%H(:%M(:%S(\.%f)?)?)?( ?%z)?)?")
_DATE_FIRST = re.compile(r"(.*%[Yyjdm])[ T,]+(?:%H|%I)[^YymdbBjz]*$")
_HOUR_24 = re.compile(r"(?<=[ T])24(?=:?00(?:\D|00|$))")
_HOUR_24_ALONE = re.compile(r"(?<= )24$")  # in a column of its own


@dataclass(frozen=True)
class TimeStyle:
    """How the times of a file are written.

    Attributes:
        format: ``strptime`` format, with ``%Q`` for a quarter and ``%K``, at its end, for the number of an interval of
            the day, from 1; the columns of a time that is split over several are joined by blanks.
        zone: Local time zone: the stated one; else the offset that all times of the file have; else UTC.
        unit: Of a time that is a number since 1970 (``excel``: of days of a spreadsheet), what it counts; then there
            is no format.
        offset: How an offset from UTC is written: not at all, as ``Z``, as ``+hh:mm``, ``+hhmm`` or ``+hh``, or by the
            ``name`` of a clock, such as CEST.
        mixed: Whether times state different offsets, which are those of no place that is known.
        clocks: Names of clocks and their offsets in nanoseconds.
        unpadded: Directives of the format that are written without leading zeros.
        upper: Directives whose words are written in capitals.
        lower: Directives whose words are written in small letters.
        fraction: Digits of a fraction of a second, or of what a number counts.
        interval: Nanoseconds that ``%K`` counts, from local midnight on: as elapsed time, so that a day on which the
            clock changes has more of them, or fewer.
        hour24: Whether midnight is written as 24:00 of the day before.
        zulu: What stands for an offset of zero where ``offset`` is ``Z``; some write `` UTC``.
        span: How ends are written, where times are spans whose beginning counts.
        kind: Type of the column in Parquet that is no text, else None.
    """

    format: str = ""
    zone: str = "UTC"
    unit: str | None = None
    offset: Literal["", "Z", "+hh:mm", "+hhmm", "+hh", "name"] = ""
    mixed: bool = False
    clocks: tuple[tuple[str, int], ...] = ()
    unpadded: frozenset[str] = field(default_factory=frozenset)
    upper: frozenset[str] = field(default_factory=frozenset)
    lower: frozenset[str] = field(default_factory=frozenset)
    fraction: int = 6
    interval: int = 0
    hour24: bool = False
    zulu: str = "Z"
    span: Span | None = None
    kind: str | None = None

    @property
    def iso(self) -> bool:
        """Whether it is ISO 8601, with leading zeros; rows may leave out midnight or a zero fraction."""
        whole = self.format.startswith("%Y-%m-%d") and bool(_ISO_TIME.fullmatch(self.format[8:]))
        return whole and not self.unpadded

    @property
    def stamps(self) -> bool:
        """Whether the times are a Parquet column of dates or timestamps."""
        return self.kind is not None and self.kind.startswith(("timestamp", "date"))

    @property
    def of_days(self) -> bool:
        """Whether the texts have no time of day."""
        return bool(self.format) and not any(part in self.format for part in ("%H", "%I", "%K"))

    @property
    def aware(self) -> bool:
        """Whether each time states its offset from UTC, or counts from 1970 in UTC."""
        return bool(self.offset) or self.unit not in (None, "excel")


def parts_of(form: str) -> list[str]:
    """Directives and what stands between them."""
    return _PARTS.findall(form)


def pattern_of(form: str) -> str:
    """Regular expression of a format, a group a directive."""
    found = [
        f"({_DIGITS.get(part, '[^0-9]+?')})" if part[0] == "%" and part != "%%" else re.escape(part.replace("%%", "%"))
        for part in parts_of(form)
    ]
    return "".join(found)


def hour_24(form: str) -> re.Pattern[str]:
    """Where texts of a format have 24 for the hour of midnight."""
    return _HOUR_24_ALONE if form.endswith(" %H") else _HOUR_24


def read_times(texts: pd.Series, style: TimeStyle) -> np.ndarray:
    """Read times: nanoseconds ``int64 [N]``, in UTC where the texts state it, else of the local clock.

    What cannot be read is :data:`UNREAD`.
    """
    if style.unit is not None:
        return _read_numbers(pd.to_numeric(texts, errors="coerce"), style.unit)
    if style.interval:
        return _read_intervals(texts, style)
    texts = texts.str.strip()
    texts = beginnings(texts, style.span.separator) if style.span else texts
    if style.zulu != "Z":
        texts = texts.str.replace(ZULU, "Z", regex=True)
    later = np.zeros(len(texts), dtype=np.int64)
    if style.offset == "name":
        named = texts.str.extract(CLOCK_NAME, expand=False).isin(dict(style.clocks))
        later -= stated_offsets(texts, style)
        texts = texts.str.replace(CLOCK_NAME, "", regex=True).where(named)
    if style.hour24:
        late = hour_24(style.format)
        later[texts.str.contains(late).to_numpy(dtype=bool, na_value=False)] += DAY
        texts = texts.str.replace(late, "00", regex=True)
    parsed = _parse(texts, style)
    unread = parsed.isna().to_numpy()
    if parsed.dt.tz is not None:
        parsed = parsed.dt.tz_localize(None)
    outside = (parsed < _FIRST_STAMP) | (parsed > _LAST_STAMP)  # of what nanoseconds can count
    unread = unread | outside.to_numpy(dtype=bool)
    nanoseconds = parsed.mask(outside).astype("datetime64[ns]").astype("int64").to_numpy(copy=True) + later
    nanoseconds[unread] = UNREAD
    return nanoseconds


def _read_numbers(numbers: pd.Series, unit: str) -> np.ndarray:
    scale = UNITS[unit]
    if pd.api.types.is_integer_dtype(numbers) and unit != "excel":
        return numbers.to_numpy(dtype=np.int64) * scale
    values = numbers.to_numpy(dtype=np.float64, na_value=np.nan)
    whole = np.floor(values)
    known = np.isfinite(values)
    whole = np.where(known, whole, 0.0)
    # The fraction apart, since nanoseconds since 1970 do not fit a float; a spreadsheet keeps seconds at best.
    unit_of_fraction, start = (SECOND, EXCEL_EPOCH) if unit == "excel" else (1000, 0)
    fraction = np.round(np.where(known, values - whole, 0.0) * scale / unit_of_fraction).astype(np.int64)
    return np.where(known, start + whole.astype(np.int64) * scale + fraction * unit_of_fraction, UNREAD)


def _read_intervals(texts: pd.Series, style: TimeStyle) -> np.ndarray:
    """Moments of numbered intervals of days."""
    parts = texts.str.extract(r"^\s*(.*?)\s+(\d{1,3})\s*$")
    days = read_times(parts[0], replace(style, format=style.format.removesuffix(" %K"), interval=0))
    number = pd.to_numeric(parts[1]).fillna(0).to_numpy(dtype=np.int64)
    known = (days != UNREAD) & (number > 0)
    if not known.any():
        return np.full(len(texts), UNREAD)
    days = np.where(known, days, days[known][0])
    local = clock(style.zone, int(days.min()), int(days.max()))
    found = local_moments(days, local) + (number - 1) * style.interval
    return np.where(known & (found < local_moments(days + DAY, local)), found, UNREAD)


def _parse(texts: pd.Series, style: TimeStyle) -> pd.Series:
    """Timestamps of texts, with a zone where they state one; what cannot be read is missing."""
    if not style.iso:
        form = style.format
        if "%Q" in form:
            texts, form = _months_of_quarters(texts, form)
        elif "%V" in form and "%u" not in form:
            texts, form = texts + " 1", form + " %u"  # the Monday of the week
        parsed = pd.to_datetime(texts, format=form, errors="coerce", utc=style.offset not in ("", "name"))
        parsed = of_its_century(parsed) if "%y" in form else parsed
        date = _DATE_FIRST.match(form)
        bare = parsed.isna() & texts.notna()
        if date and bare.any():  # of a date alone, as some programs write midnight
            parsed = parsed.where(~bare, pd.to_datetime(texts.where(bare), format=date[1], errors="coerce"))
        return parsed
    # ISO files often leave out midnight or zero fractions, so that rows differ in form.
    if style.offset not in ("", "name"):
        stated = texts.str.extract(OFFSET, expand=False).notna()
        return pd.to_datetime(texts.where(stated), format="ISO8601", errors="coerce", utc=True)
    try:
        parsed = pd.to_datetime(texts, format="ISO8601", errors="coerce")
        if parsed.dtype.kind == "M" and getattr(parsed.dtype, "tz", None) is None:
            return parsed
    except ValueError:  # some state an offset, which most do not
        pass
    naive = texts.where(texts.str.extract(OFFSET, expand=False).isna())
    return pd.to_datetime(naive, format="ISO8601", errors="coerce")


def of_its_century(dates: pd.Series) -> pd.Series:
    """Dates read from years of two digits, of which none is from :data:`PIVOT` years into the century on."""
    return dates.mask(dates.dt.year >= 2000 + PIVOT, dates - pd.DateOffset(years=100))


def _months_of_quarters(texts: pd.Series, form: str) -> tuple[pd.Series, str]:
    """Quarters as their first months, and the format of these."""
    directives = [part for part in parts_of(form) if part.startswith("%")]
    groups = texts.str.extract(f"^{pattern_of(form)}$")
    quarter, year = groups[directives.index("%Q")], groups[1 - directives.index("%Q")]
    months = (pd.to_numeric(quarter) * 3 - 2).astype("Int64").astype("string")
    return year + "-" + months, f"{directives[1 - directives.index('%Q')]}-%m"


def stated_offsets(texts: pd.Series, style: TimeStyle) -> np.ndarray:
    """Offsets from UTC that times state, nanoseconds ``int64 [N]``; zero where there is none."""
    texts = beginnings(texts, style.span.separator) if style.span else texts
    if style.offset == "name":
        offsets = texts.str.extract(CLOCK_NAME, expand=False).map(dict(style.clocks))
        return offsets.fillna(0).to_numpy(dtype=np.int64)
    parts = texts.str.extract(OFFSET, expand=False).fillna("Z").str.extract(r"([+-])(\d{2}):?(\d{2})?")
    hours, minutes = (pd.to_numeric(parts[i]).fillna(0).to_numpy(dtype=np.int64) for i in (1, 2))
    return np.where(parts[0] == "-", -1, 1) * (hours * 60 + minutes) * MINUTE


def offsets_of(texts: pd.Series) -> list[str]:
    """Distinct offsets that times state."""
    return sorted(texts.str.extract(OFFSET, expand=False).dropna().unique())


def offset_text(offset: int, form: str) -> str:
    """An offset from UTC, in nanoseconds, written as ``+hh:mm``, ``+hhmm`` or ``+hh``."""
    hours, minutes = divmod(abs(offset) // MINUTE, 60)
    rest = {"+hh:mm": f":{minutes:02d}", "+hhmm": f"{minutes:02d}"}.get(form, "")
    return f"{'-' if offset < 0 else '+'}{hours:02d}{rest}"


def write_times(times: np.ndarray, style: TimeStyle) -> np.ndarray:
    """Write moments in the style of the file they continue.

    Args:
        times: ``int64 [N]``, nanoseconds in UTC.
        style: The style.

    Returns:
        ``[N]``: texts; integers or floats where times are numbers; timestamps for Parquet.
    """
    distinct, place = np.unique(times, return_inverse=True)  # the horizon of many series is the same
    texts = _write(distinct, style)
    if style.span is not None:
        separator, length, words, hour24 = style.span
        ends = _write(distinct + length, replace(style, hour24=hour24))
        texts = texts + separator + np.array([" ".join(end.split(" ")[-words:]) for end in ends], dtype=object)
    return texts[place]


def split_format(form: str, columns: int) -> list[str]:
    """The formats of the columns whose texts, joined by blanks, have the format given.

    With more blanks than that, the first column has those that are over: a date may have some, a time of day has none.
    """
    parts = form.replace(" %p", "\0%p").split(" ")  # which belongs to the hour
    over = len(parts) - columns + 1
    return [part.replace("\0", " ") for part in (" ".join(parts[:over]), *parts[over:])]


def _write(times: np.ndarray, style: TimeStyle) -> np.ndarray:
    if style.unit is not None and style.unit != "excel":
        scale = UNITS[style.unit]
        whole, rest = times // scale, times % scale
        # As fine as the file has them: what follows by the usual step of irregular times need not be.
        if style.kind is not None:
            return (whole if "int" in style.kind else whole + rest / scale).astype(style.kind)
        if not style.fraction:
            return whole
        fractions = _fraction_texts(rest, len(str(scale)) - 1, style.fraction)
        return np.array([f"{number}.{part}" for number, part in zip(whole, fractions, strict=True)], dtype=object)
    local = clock("UTC" if style.offset == "Z" else style.zone, int(times[0]), int(times[-1])).local(times)
    if style.unit == "excel":
        days = np.round((local - EXCEL_EPOCH) / DAY, 10)  # as many digits as a spreadsheet writes
        return days if (local % DAY).any() else days.astype(np.int64)
    if style.stamps:
        zone = re.search(r"tz=([^\]]+)", style.kind or "")
        if zone is None:
            days = (style.kind or "").startswith("date") and not (local % DAY).any()
            found = local.astype("datetime64[ns]")
            return found.astype("datetime64[D]").astype(object) if days else found
        moments = pd.DatetimeIndex(times.astype("datetime64[ns]")).tz_localize("UTC")
        return moments.tz_convert(zone[1]).to_numpy(dtype=object)
    offsets = _offset_texts(local - times, style)
    midnight = (local % DAY == 0) & style.hour24
    local = local - np.where(midnight, HOUR, 0)  # on the evening of the day before
    stamps = pd.DatetimeIndex(local.astype("datetime64[ns]"))
    texts = np.full(len(times), "", dtype=object)
    for part in _PARTS.findall(style.format):
        if part == "%z":
            texts = texts + offsets
        elif part == "%H":
            texts = texts + np.where(midnight, "24", _directive(part, stamps, style, local, times))
        else:
            texts = texts + _directive(part, stamps, style, local, times)
    texts = texts + " " + offsets if style.offset == "name" else texts
    return texts if style.kind is None else texts.astype(style.kind)


def _fraction_texts(parts: np.ndarray, digits: int, shown: int) -> list[str]:
    """Decimals of parts that are counted in so many digits, as many of them as are shown."""
    return [f"{part:0{digits}d}"[:shown].ljust(shown, "0") for part in parts.tolist()]


def _directive(
    part: str, stamps: pd.DatetimeIndex, style: TimeStyle, local: np.ndarray, times: np.ndarray
) -> np.ndarray | str:
    if part == "%f":
        return np.array(_fraction_texts(local % SECOND, 9, style.fraction), dtype=object)
    if part == "%K":
        midnight = local_moments(local - local % DAY, clock(style.zone, int(times[0]), int(times[-1])))
        texts = pd.Series((times - midnight) // style.interval + 1).astype(str)
        return (texts if part in style.unpadded else texts.str.zfill(2)).to_numpy(dtype=object)
    if part == "%Q":
        return stamps.quarter.astype(str).to_numpy(dtype=object)
    if not part.startswith("%") or part == "%%":
        return part[:1] if part == "%%" else part
    texts = stamps.strftime(part)
    if part in style.unpadded:
        texts = texts.str.replace(r"^0+(?=\d)", "", regex=True)
    if part in style.upper:
        texts = texts.str.upper()
    if part in style.lower:
        texts = texts.str.lower()
    return texts.to_numpy(dtype=object)


def _offset_texts(offsets: np.ndarray, style: TimeStyle) -> np.ndarray:
    form = style.offset
    if form == "Z":
        return np.full(len(offsets), style.zulu, dtype=object)
    if form == "name":
        names = {offset: name for name, offset in style.clocks}
        return np.array([names.get(int(offset), "") for offset in offsets], dtype=object)
    return np.array([offset_text(offset, form) for offset in offsets.tolist()], dtype=object)
