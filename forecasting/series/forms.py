"""In which form the times of a file are written: found from how the texts are built, refused where two forms fit."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Literal

import pandas as pd

from common.errors import InputError
from forecasting.series.clock import DAY, clock_names, fixed_offset
from forecasting.series.orders import is_sorted, undecided
from forecasting.series.parts import format_of, interval_of
from forecasting.series.spans import Span, split_spans
from forecasting.series.style import (
    CLOCK_NAME,
    OFFSET,
    UNITS,
    ZULU,
    TimeStyle,
    hour_24,
    of_its_century,
    offsets_of,
    parts_of,
    pattern_of,
    read_times,
)  # fmt: skip

MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_WORDS = {
    **dict.fromkeys(MONTHS, "%B"), **{word[:3]: "%b" for word in MONTHS},
    **dict.fromkeys(_DAYS, "%A"), **{word[:3]: "%a" for word in _DAYS},
    "am": "%p", "pm": "%p",
}  # fmt: skip
_LITERALS = ("t", "h", "q", "w", "m", "at", "um", "uhr", "年", "月", "日", "時", "时", "分", "秒")
_TOKENS = re.compile(r"\d+|[^\W\d_]+|[\W_]")
_TIME_OF_DAY = re.compile(
    r"(?<!\d)(?P<h>\d{1,2})(?P<a>[:h])(?P<m>\d{2})(?:(?P<b>:)(?P<s>\d{2})(?:(?P<c>[.,])(?P<f>\d+))?)?"
    r"(?:(?P<d>\s*)(?P<p>[ap]m)\b)?(?![\d:])",
    re.IGNORECASE,
)
_COLON_DATE = re.compile(r"\d{4}:\d{2}:\d{2}(?!\d)")  # as cameras write it
_HOUR_OF_DAY = re.compile(r"(?<![\d.])(?P<h>\d{1,2})(?P<d>\s*)(?P<p>[ap]m)\b", re.IGNORECASE)
_PACKED = {2: "%H", 4: "%H%M", 6: "%H%M%S"}
_PADDED = ("%m", "%d", "%H", "%I", "%M", "%S", "%j")
_ISO_WEEK = ("%G", "%V", "%u")


def recognise(
    texts: pd.Series, *, names: tuple[str, ...], stated: str | None, orders: frozenset[str], zone: str | None = None
) -> TimeStyle:
    """Recognise how times are written, their zone left open.

    Args:
        texts: Some distinct times, at least one.
        names: Columns they come from; several are joined by blanks.
        stated: ``strptime`` format, if stated; or a unit (``s``, ``ms``, ``us``, ``ns``) of numbers since 1970, or
            ``excel`` for the days of a spreadsheet.
        orders: Orders in which the numbers of a date may stand, see :func:`date_orders`.
        zone: The zone stated, whose clocks have the names that times end with (CET, CEST).

    Raises:
        InputError: If they are of no form that is known, or of two.
    """
    texts = texts.str.strip()
    if stated in UNITS:
        return TimeStyle(unit=stated, fraction=_digits(texts))
    numbered = _numbered(texts, names, stated, orders, zone)
    if numbered is not None:
        return numbered
    spans = split_spans(texts)
    if spans is not None:
        begins, ends, separator, words = spans
        style = recognise(begins, names=names, stated=stated, orders=orders, zone=zone)
        late = bool(ends.str.contains(hour_24(style.format)).any())
        lengths = read_times(ends, replace(style, hour24=late)) - read_times(begins, style)
        lengths = set((lengths - 1) % DAY + 1 if words else lengths)  # a time of day alone may be on the next day
        if style.unit is None and len(lengths) == 1 and min(lengths) > 0:
            return replace(style, span=Span(separator, int(min(lengths)), words, late))
    plain, style = texts, TimeStyle()
    if stated is None:
        plain, style = _without_clock_names(texts, style, zone)
    if style.offset != "name":
        ending = ZULU.search(str(texts.iloc[0]))
        style = replace(style, zulu=ending[0] if ending else "Z")
        plain = plain.str.replace(ZULU, "Z", regex=True)
    found = stated or (format_of(names, plain) if plain.str.fullmatch(r"\d+( \d+)*(\.\d+)?").all() else None)
    late = hour_24(found or (" %H" if len(names) > 1 and plain.str.fullmatch(r".* \d{1,2}").all() else ""))
    style = replace(style, hour24=bool(plain.str.contains(late).any()))
    plain = plain.str.replace(late, "00", regex=True)
    if found is None:
        # The longest text says most: some programs leave out the time at midnight.
        first = str(plain.iloc[int(plain.str.len().to_numpy().argmax())])
        if len(orders) > 1:
            raise undecided(first, orders)
        if plain.str.fullmatch(r"-?\d+(\.\d+)?").all():
            return _number_style(plain, first)
        found = _form(first, next(iter(orders), ""))
        if found is None:
            raise InputError(
                f"cannot read {first!r} as a time",
                remedy='correct it, or state data.time_format, such as "%d.%m.%Y %H:%M"; names of months are English',
            )
        found = _quarters(plain, found, first)
        if {"%b", "%B"} & set(parts_of(found)) and "%y" in found and "%d" not in found:
            _check_year(plain, found, first)
    return _with_details(replace(style, format=found), plain)


def _quarters(texts: pd.Series, form: str, first: str) -> str:
    """The format with a quarter in place of a month, if the number beside the year never passes 4 in several years."""
    if not re.fullmatch(r"%Y[^%\d]{1,2}%m", form):
        return form
    parts = texts.str.extract(r"^(\d{4})\D+(\d{1,2})$").dropna()
    number = pd.to_numeric(parts[1])
    if parts[0].nunique() < 3 or number.max() > 4:
        return form
    if number.max() < 3:
        raise InputError(
            f"{first!r} may be a month or half of a year",
            remedy=f'state data.time_format: "{form}" for months; for halves, write their first months',
        )
    return form.replace("%m", "%Q")


def _numbered(
    texts: pd.Series, names: tuple[str, ...], stated: str | None, orders: frozenset[str], zone: str | None
) -> TimeStyle | None:
    """The style of dates beside numbers of the intervals of their day; None if the texts are none."""
    stated_so = (stated or "").endswith(" %K")
    if not stated_so and (stated is not None or len(names) != 2 or format_of(names, texts)):
        return None
    numbers = texts.str.extract(r" (\d{1,3})$", expand=False)
    interval = interval_of(numbers, stated=stated_so)
    if not interval:
        return None
    dates = texts.str.replace(r" \d{1,3}$", "", regex=True)
    style = recognise(dates, names=names[:1], stated=stated and stated.removesuffix(" %K"), orders=orders)
    padding = {"%K"} if bool(numbers.str.fullmatch(r"\d").any()) else set()
    return replace(
        style, format=f"{style.format} %K", interval=interval, zone=zone or "UTC", unpadded=style.unpadded | padding
    )


def _check_year(texts: pd.Series, form: str, first: str) -> None:
    """Check that the number of Jan-21 is a year: the months go on in time, and are not all the same."""
    months = of_its_century(pd.to_datetime(texts, format=form, errors="coerce")).dropna()
    number = months.dt.month
    if len(months) > 1 and ((number == number.iloc[0]).all() or not is_sorted(months.to_numpy().astype("int64"))):
        raise InputError(
            f"the number of {first!r} may be a day or a year",
            remedy=f'state data.time_format: "{form}", if it is a year',
        )


def _without_clock_names(texts: pd.Series, style: TimeStyle, zone: str | None) -> tuple[pd.Series, TimeStyle]:
    """Texts without names of clocks, such as CEST, at their end, and the offsets that these mean in the zone."""
    names = texts.str.extract(CLOCK_NAME, expand=False)
    distinct = sorted({str(name) for name in names.dropna()} - {word.upper() for word in _WORDS})
    if not distinct:
        return texts, style
    offset = None if zone is None else fixed_offset(zone)
    known = {} if zone is None or offset is not None else clock_names(zone)
    if set(distinct) <= {"UTC", "GMT"} - set(known):
        return texts, style
    if zone is None:
        raise InputError(
            f"the times name their clock ({', '.join(distinct)}), which does not say where it stands",
            remedy="state the zone, such as data.timezone: Europe/Berlin",
        )
    if offset is not None:  # a clock that is never changed has one name
        known = {distinct[0]: offset}
    unknown = [name for name in distinct if name not in known]
    if unknown:
        raise InputError(
            f"{unknown[0]} is no clock of {zone}, whose clocks are {', '.join(sorted(known))}",
            remedy="state the zone of the file under data.timezone",
        )
    # Those of the file last, so that they are written; the others may be needed later in the year.
    clocks = tuple(sorted(known.items(), key=lambda item: item[0] in distinct))
    return texts.str.replace(CLOCK_NAME, "", regex=True), replace(style, zone=zone, offset="name", clocks=clocks)


def _number_style(texts: pd.Series, first: str) -> TimeStyle:
    """Times that are numbers: dates written together, years, or counts since 1970."""
    if bool(texts.str.endswith(".0").all()):  # whole numbers that a program made decimal
        whole = texts.str.removesuffix(".0")
        style = _number_style(whole, first.removesuffix(".0"))
        return replace(style, format=f"{style.format}.0") if style.format else replace(style, fraction=1)
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
    for unit in ("s", "ms", "us", "ns"):
        # From 1973 to 2128: below, a count of seconds could as well be a row number.
        if low * UNITS[unit] >= 1e8 * 1e9 and high * UNITS[unit] <= 5e9 * 1e9:
            return TimeStyle(unit=unit, fraction=_digits(texts))
    raise InputError(
        f"cannot read {first!r} as a time",
        remedy='state data.time_format: "%Y%m%d" or the like; s, ms, us or ns for a count since 1970; excel for the '
        "days of a spreadsheet",
    )


def _digits(texts: pd.Series) -> int:
    """Most digits behind a decimal point."""
    most = texts.str.extract(r"\.(\d+)$", expand=False).str.len().max()
    return 0 if pd.isna(most) else int(most)


def _all_dates(texts: pd.Series, form: str) -> bool:
    return bool(pd.to_datetime(texts, format=form, errors="coerce").notna().all())


def _form(text: str, order: str) -> str | None:
    """The ``strptime`` format of a text, or None; ``order`` is that of the numbers of its date."""
    offset = OFFSET.search(text)
    if offset:
        text = text[: offset.start(1)]
    begin = 10 if _COLON_DATE.match(text) else 0
    clocks = list(_TIME_OF_DAY.finditer(text, begin)) or list(_HOUR_OF_DAY.finditer(text, begin))
    if not clocks:
        date = _date(text, order, may_have_hours=True)
    else:
        clock = clocks[-1]
        before, after = text[: clock.start()], text[clock.end() :]
        date = _date(f"{before}\0{after}", order, may_have_hours=False)
        date = date and date.replace("\0", _time_of_day(clock))
    return date and date + ("%z" if offset else "")


def _time_of_day(match: re.Match[str]) -> str:
    found = match.groupdict()
    form = "%I" if found["p"] else "%H"
    if found.get("m"):
        form += f"{found['a']}%M"
    if found.get("s"):
        form += f"{found['b']}%S"
    if found.get("f"):
        form += f"{found['c']}%f"
    return form + (f"{found['d']}%p" if found["p"] else "")


def _date(text: str, order: str, *, may_have_hours: bool) -> str | None:
    """Format of a date, after which there may be hours, minutes and seconds that no colon tells apart."""
    tokens = _TOKENS.findall(text)
    form: list[str | None] = []
    for token in tokens:
        if token.isdecimal():
            form.append(None)
        elif token.isalpha():
            word = _WORDS.get(token.lower(), token if token.lower() in _LITERALS else None)
            if word is None:
                return None
            form.append(word)
        else:
            form.append(token.replace("%", "%%"))
    places = [i for i, part in enumerate(form) if part is None]
    numbers = [tokens[i] for i in places]
    letters = [tokens[i].lower() for i in range(len(tokens)) if tokens[i].lower() in ("q", "w")]
    month = next((form.index(part) for part in ("%b", "%B") if part in form), None)
    if letters == ["q"]:
        parts = _quarter(tokens, places)
    elif letters == ["w"]:
        parts = list(_ISO_WEEK[: len(numbers)]) if len(numbers) in (2, 3) and len(numbers[0]) == 4 else None
    elif month is not None:
        parts = _named_month(numbers, sum(place < month for place in places))
    else:
        parts = _numbers(numbers, order)
    if parts is None:
        return None
    rest = numbers[len(parts) :]
    if rest and not may_have_hours:
        return None
    if len(rest) == 1 and len(rest[0]) in _PACKED:
        parts = [*parts, _PACKED[len(rest[0])]]
    else:
        parts = [*parts, *("%I" if "%p" in form else "%H", "%M", "%S", "%f")[: len(rest)]]
    if len(parts) != len(numbers):
        return None
    for place, part in zip(places, parts, strict=True):
        form[place] = part
    return "".join(part or "" for part in form)


def _quarter(tokens: list[str], places: list[int]) -> list[str] | None:
    """Parts of 2021-Q1 or Q1 2021: the number after the Q, and a year."""
    if len(places) != 2:
        return None
    after = [i > 0 and tokens[i - 1].lower() == "q" for i in places]
    year = tokens[places[after.index(False)]] if sum(after) == 1 else ""
    if len(year) not in (2, 4):
        return None
    return ["%Q" if each else "%Y" if len(year) == 4 else "%y" for each in after]


def _named_month(numbers: list[str], before: int) -> list[str] | None:
    """Parts of a date whose month is a word; ``before`` numbers stand before it."""
    lengths = [len(number) for number in numbers]
    if not lengths:
        return None
    if len(lengths) == 1:  # Jan-21 or Jan 2021; but 21-Jan has no year
        return ["%Y"] if lengths == [4] else ["%y"] if lengths == [2] and not before else None
    if lengths[0] == 4:
        return ["%Y", "%d"] if before == 1 and lengths[1] <= 2 else None
    return ["%d", "%Y"] if lengths[1] == 4 else ["%d", "%y"] if lengths[1] == 2 else None


def _numbers(numbers: list[str], order: str) -> list[str] | None:
    """Parts of a date of numbers alone."""
    lengths = [len(number) for number in numbers]
    if lengths[:1] == [8]:
        return ["%Y%m%d"]
    if len(lengths) >= 3 and lengths[0] == 4 and max(lengths[1:3]) <= 2:
        return ["%Y", "%m", "%d"]
    if len(lengths) >= 3 and order:
        return [f"%{part}" for part in order]
    if lengths == [4, 3]:
        return ["%Y", "%j"]
    if len(lengths) == 2 and 4 in lengths and min(lengths) <= 2:
        return ["%Y", "%m"] if lengths[0] == 4 else ["%m", "%Y"]
    return None


def _with_details(style: TimeStyle, texts: pd.Series) -> TimeStyle:
    """What the format does not say: padding, capitals, digits of a fraction, form of the offset."""
    directives = [part for part in parts_of(style.format) if part.startswith("%") and part != "%%"]
    # A time of day may be left out at midnight, so that the texts that have all of it are asked.
    groups = texts.str.strip().str.extract(f"^{pattern_of(style.format)}$").dropna()
    unpadded, upper, lower = set(), set(), set()
    fraction, offset = style.fraction, style.offset
    for number, directive in enumerate(directives):
        column = groups[number] if number in groups else pd.Series(dtype=str)
        if not len(column):
            continue
        if directive in _PADDED and bool(column.str.fullmatch(r"\d").any()):
            unpadded.add(directive)
        if directive == "%f":
            fraction = int(column.str.len().max())
        if directive == "%z":
            offset = _offset_form(column.iloc[0].strip())
        if directive in ("%b", "%B", "%a", "%A", "%p"):
            upper |= {directive} if bool(column.str.isupper().all()) else set()
            lower |= {directive} if bool(column.str.islower().all()) else set()
    stated = offsets_of(texts)
    if style.iso and not offset and stated:
        offset = _offset_form(stated[0])
    return replace(
        style,
        unpadded=frozenset(unpadded),
        upper=frozenset(upper),
        lower=frozenset(lower),
        fraction=fraction,
        offset=offset,
    )


def _offset_form(text: str) -> Literal["Z", "+hh:mm", "+hhmm", "+hh"]:
    if text == "Z":
        return "Z"
    return "+hh:mm" if ":" in text else "+hhmm" if len(text) == 5 else "+hh"
