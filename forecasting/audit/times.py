"""Which columns of a file hold its times."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pandas as pd

from common.errors import InputError
from forecasting.series.forms import recognise
from forecasting.series.orders import date_orders
from forecasting.series.parts import components
from forecasting.series.spans import split_spans
from forecasting.series.style import UNITS, UNREAD, TimeStyle, pattern_of, read_times
from forecasting.series.tables import Source

DISTINCT = 2000  # texts of a column that are looked at
_CLOCK = re.compile(r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?(\s*[AaPp][Mm])?|\d{1,2}\s*[AaPp][Mm]")
_CLOCK_OF_POINTS = re.compile(r"\d{1,2}\.\d{2}(\.\d{2})?")
CLOCK_WORDS = {
    "time", "hour", "hours", "hr", "hh", "h", "he", "clock", "zeit", "uhrzeit", "stunde", "heure", "hora", "ora", "uur",
    "interval", "period",
}  # fmt: skip
TIME_NAMES = (
    "ds", "timestamp", "datetime", "date_time", "date", "time", "ts", "period", "month", "week", "year", "day", "epoch",
)  # fmt: skip

_WITHIN = (*TIME_NAMES, "yyyy", "datum", "zeit", "fecha")  # in names of columns whose numbers may be times
_ALONE = {"dt", "unix", "when"}


def find_time(source: Source, sample: pd.DataFrame, stated: dict[str, Any]) -> str | list[str]:
    """The column that holds the times, or the columns that they are split over.

    Args:
        source: The file.
        sample: Its first rows, as text.
        stated: Keys of ``data:`` that are known already.

    Raises:
        InputError: If no column holds times.
    """
    found = [_stamps(sample, stated), _parts(sample)]
    known = [names for names in found if names]
    if not known:
        raise _no_time(source, sample, stated)
    best = max(known, key=lambda names: len(sample[names].drop_duplicates()))  # of equals, the times in one column
    return best if len(best) > 1 else best[0]


def _parts(sample: pd.DataFrame) -> list[str]:
    """Columns called year, month and the like that hold a part of the time each; empty if there are none."""
    parts = components(names_of(sample))
    clock = list(itertools.takewhile(bool, (parts.get(part, "") for part in ("%H", "%M", "%S"))))
    whole = [name for name in names_of(sample) if form_of(sample[name], name, None) == "%H:%M"]
    clock = clock or whole[:1]
    for date, of_day in (("%Y %m %d", clock), ("%Y %j", clock), ("%Y %m", []), ("%Y %V", [])):
        used = [parts[part] for part in date.split() if part in parts] + of_day
        if len(used) - len(of_day) == len(date.split()) and all(
            name in whole or pd.to_numeric(sample[name], errors="coerce").notna().all() for name in used
        ):
            return used
    named = {name.strip().lower(): name for name in names_of(sample)}
    beside = (
        (parts.get("%m"), r"[A-Za-z]{3,9}"), (parts.get("%Q"), "Q?[1-4]"), (named.get("period"), r"M\d\d|Q0?[1-4]"),
    )  # fmt: skip
    for name, words in beside:
        if "%Y" in parts and name and sample[name].astype("string").str.strip().str.fullmatch(words).all():
            return [parts["%Y"], name]
    return []


def _stamps(sample: pd.DataFrame, stated: dict[str, Any]) -> list[str]:
    """The column whose times are whole, or that of dates and that of the time of day; empty if there are none."""
    zone, whole = stated.get("timezone"), stated.get("time_format")
    forms = {name: form for name in names_of(sample) if (form := form_of(sample[name], name, zone, whole))}
    if whole is not None and set(forms.values()) <= {"%H:%M"}:  # it may be that of several columns joined
        forms = {name: form for name in names_of(sample) if (form := form_of(sample[name], name, zone))}
    dates = {name: form for name, form in forms.items() if any(part in form for part in ("%Y", "%y", "%G", "since"))}
    clocks = [name for name, form in forms.items() if name not in dates and "%H" in form]
    if not dates:
        return []

    most = max(sample[name].nunique() for name in dates)

    def rank(name: str) -> tuple[bool, bool, int, int]:
        lowered, distinct = name.strip().lower(), sample[name].nunique()
        hint = next((i for i, word in enumerate(TIME_NAMES) if lowered == word), len(TIME_NAMES))
        return (
            2 * distinct < most,
            _of_days(dates[name]),
            -distinct,
            hint,
        )  # of fewer, some are when rows were written

    best = min(dates, key=rank)
    if not _of_days(dates[best]):
        return [best]
    if repeats_of(pd.factorize(sample[best])[0]) < 0.05:  # a day a row: other times of day than its own are values
        clocks = [name for name in clocks if name.strip().lower() in CLOCK_WORDS]
    clocks += [name for name in names_of(sample) if _is_hour(sample[name], name)]
    clocks += [name for name in names_of(sample) if _is_interval(sample[name], name, sample[best])]
    return [best, *clocks[:1]]


def _no_time(source: Source, sample: pd.DataFrame, stated: dict[str, Any]) -> InputError:
    """Why no column holds times: of one whose name speaks of them, what is wrong with its texts."""
    for name in names_of(sample):
        if name.strip().lower() in TIME_NAMES:
            texts = distinct_texts(sample[name])
            where = f"{source.path}, column {name!r}"
            form, zone = stated.get("time_format"), stated.get("timezone")
            if form is not None and len(texts):
                problem = f"{texts.iloc[0]!r} is no time of the form {form}"
                return InputError(problem, where=where, remedy="correct data.time_format")
            try:
                recognise(texts, names=(name,), stated=None, orders=date_orders(texts), zone=zone)
            except InputError as error:
                return InputError(error.problem, where=where, remedy=error.remedy)
            break
    return InputError(
        f"no column holds times; the columns are {', '.join(map(repr, source.columns))}",
        where=source.path,
        remedy="state it: --set data.time=COLUMN, and --set data.time_format if its form is unusual",
    )


def words_of(name: str) -> set[str]:
    """Words of a name, in small letters: those of ``hourEnding`` and ``Hour_Ending`` alike."""
    return set(re.split(r"[^a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()))


def names_of(sample: pd.DataFrame) -> list[str]:
    """Names of the columns."""
    return list(map(str, sample.columns))


def distinct_texts(column: pd.Series) -> pd.Series:
    """Some distinct texts of a column."""
    texts = pd.Series(column.dropna().unique()[:DISTINCT], dtype="string").str.strip()
    return texts[texts != ""]


def form_of(column: pd.Series, name: str, zone: str | None, form: str | None = None) -> str | None:
    """The format of a column that holds times, or None; numbers count only under a name that speaks of time.

    ``form`` is what is stated of the form of times.
    """
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return "%Y-%m-%d %H:%M:%S"
    texts = distinct_texts(column)
    if texts.empty:
        return None
    spans = split_spans(texts)
    texts = texts if spans is None else spans[0]
    clocks = texts.str.fullmatch(_CLOCK_OF_POINTS if words_of(name) & CLOCK_WORDS else _CLOCK)
    if max(clocks.mean(), texts.str.fullmatch(_CLOCK).mean()) > 0.9:  # reading names those that are none
        return "%H:%M"
    digits = bool(texts.str.fullmatch(r"-?\d+(\.\d+)?").all())
    if digits and form is None and not (any(word in name.lower() for word in _WITHIN) or words_of(name) & _ALONE):
        return None
    if form is not None and not (digits if form in UNITS else texts.str.fullmatch(pattern_of(form)).any()):
        return None
    found = as_times(texts, form, zone)
    if found is None:
        return None
    style, read = found
    unread = (read == UNREAD).mean()
    # A few may be mistakes, which reading names; under a name that speaks of time, many may.
    if unread > (0.02 if name.strip().lower() not in TIME_NAMES else 0.999):
        return None
    return style.format or f"since 1970 in {style.unit}"


def as_times(texts: pd.Series, form: str | None, zone: str | None) -> tuple[TimeStyle, np.ndarray] | None:
    """How texts are written if they are times, and the times; None if they are none."""
    try:
        any_order = frozenset(sorted(date_orders(texts))[:1])  # that it is a time does not hang on it
        style = recognise(texts, names=("",), stated=form, orders=any_order, zone=zone)
        return style, read_times(texts, style)
    except (InputError, ValueError, TypeError, AttributeError):
        return None


def repeats_of(when: np.ndarray, *codes: np.ndarray) -> float:
    """Share of the rows whose time stands already in the series that columns name."""
    key = when.astype(np.int64)
    for code in codes:
        key = key * (int(code.max()) + 1) + code
    return 1 - len(np.unique(key)) / len(key)


def _of_days(form: str) -> bool:
    """Whether a form has no time of day."""
    return not any(part in form for part in ("%H", "%I", "since"))


def _is_hour(column: pd.Series, name: str) -> bool:
    """Whether a column holds hours of the day, from 0 to 23 or from 1 to 24."""
    if not words_of(name) & CLOCK_WORDS:
        return False
    texts = column.astype("string").str.strip()
    if not bool(texts.str.fullmatch(r"\d{1,2}").all()):
        return False
    numbers = set(texts.astype("int64").tolist())
    return len(numbers) > 12 and (numbers <= set(range(24)) or numbers <= set(range(1, 25)))


def _is_interval(column: pd.Series, name: str, dates: pd.Series) -> bool:
    """Whether a column beside dates numbers the half-hours or quarter-hours of the day, from 1 on."""
    if not {"period", "interval", "settlement", "sp", "halfhour", "half", "quarter", "slot"} & words_of(name):
        return False
    texts = column.astype("string").str.strip()
    if not bool(texts.str.fullmatch(r"\d{1,3}").all()) or not repeats_of(pd.factorize(dates)[0]) > 0.5:
        return False
    numbers = set(texts.astype("int64").tolist())
    return numbers == set(range(1, max(numbers) + 1)) and (46 <= max(numbers) <= 50 or 92 <= max(numbers) <= 100)
