"""Which column of a file is what: recognised from names and contents, as a configuration may state it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from common.errors import InputError
from forecasting.audit.times import (
    CLOCK_WORDS,
    as_times,
    distinct_texts,
    find_time,
    form_of,
    names_of,
    repeats_of,
    words_of,
)  # fmt: skip
from forecasting.series.forms import MONTHS
from forecasting.series.tables import Source, numbers_of, scan

SAMPLE_BLOCKS = 8
FEW = 50  # texts that a covariate may have
PART_WORDS = CLOCK_WORDS | {"minute", "month", "quarter", "week"}
_INDEX = re.compile(r"__index_level_\d+__|Unnamed: 0")  # that of a data frame, written along
_CALENDAR = {
    "year": 2300, "yr": 2300, "quarter": 4, "month": 12, "mnth": 12, "week": 53, "weekofyear": 53, "day": 31,
    "dayofmonth": 31, "dayofyear": 366, "doy": 366, "dayofweek": 7, "dow": 7, "weekday": 7, "hour": 24, "hr": 24,
    "hournumber": 24, "hourofday": 24, "minute": 59,
}  # fmt: skip
"""Names of parts of the date, and their highest numbers; the encodings of times say more."""
TARGET_NAMES = ("y", "target", "value", "values", "count")
ID_NAMES = (
    "unique_id", "id", "series", "series_id", "item_id", "station", "name", "store", "shop", "site", "sensor", "device",
    "meter", "symbol", "ticker", "sku", "product", "country", "region", "location", "city",
)  # fmt: skip


@dataclass
class Roles:
    """What each column is.

    Attributes:
        data: Keys of ``data:`` in a configuration, without the path.
        remarks: Why, and what else it could be, one sentence each.
    """

    data: dict[str, Any]
    remarks: list[str] = field(default_factory=list)


def find_roles(source: Source, stated: dict[str, Any]) -> Roles:
    """Recognise which column is what.

    Args:
        source: The file.
        stated: Keys that are known already.

    Raises:
        InputError: If no column holds times.
    """
    sample = _sample(source)
    roles = Roles(data=dict(stated))
    if "time" not in stated:
        roles.data["time"] = find_time(source, sample, stated)
    time = [roles.data["time"]] if isinstance(roles.data["time"], str) else list(roles.data["time"])
    numbers = {name: _numbers(sample[name], source, stated) for name in names_of(sample) if name not in time}
    texts = [name for name, values in numbers.items() if values is None]
    numbers = {name: values for name, values in numbers.items() if values is not None}
    stated_names = _listed(stated)
    for name in [name for name, values in numbers.items() if _counts_rows(values) or _INDEX.fullmatch(name)]:
        numbers.pop(name)
        roles.remarks.append(f"column {name!r} counts the rows, and is left out")
    others = [name for name, values in numbers.items() if name in stated_names or not _is_calendar(name, values)]
    for name in [name for name in numbers if name not in others] if others else []:
        numbers.pop(name)
        roles.remarks.append(f"column {name!r} is a part of the date, and is left out")
    zone = stated.get("timezone")
    for name in [name for name in numbers if name not in stated_names and form_of(sample[name], name, zone)]:
        if len(numbers) > 1:
            numbers.pop(name)
            roles.remarks.append(f"column {name!r} holds times, and is left out")
    stamp = sample[time[0]].astype("string")
    for name in time[1:]:
        stamp = stamp + " " + sample[name].astype("string")
    if "id" not in stated and stated.get("layout") != "wide":
        found = _id(stamp, sample, texts, numbers)
        if found:
            roles.data["id"] = found if len(found) > 1 else found[0]
    if "id" not in stated and "time" not in stated:
        found = roles.data.get("id")
        suspects = [found] if isinstance(found, str) else found or []
        if not suspects and repeats_of(pd.factorize(stamp)[0]) > 0.3:
            suspects = [name for name in texts if distinct_texts(sample[name]).size > 1]
        _check_parts_of_time(suspects, time, source, sample)
    ids = roles.data.get("id")
    ids = [] if ids is None else [ids] if isinstance(ids, str) else list(ids)
    values = {name: column for name, column in numbers.items() if name not in ids}
    constant = [name for name, column in values.items() if np.nanmin(column) == np.nanmax(column)]
    for name in names_of(sample):
        if name in stated_names and distinct_texts(sample[name]).empty:
            roles.remarks.append(f"column {name!r} has no value, and says nothing")
    for name in constant if len(constant) < len(values) else ():
        if name in stated_names:
            roles.remarks.append(f"column {name!r} never changes, and says nothing")
            continue
        values.pop(name)
        roles.remarks.append(f"column {name!r} never changes, and is left out")
    _layout(roles, sample, source, values, [name for name in texts if name not in ids], ids, time)
    return roles


def _check_parts_of_time(names: list[str], time: list[str], source: Source, sample: pd.DataFrame) -> None:
    """Check that no column that tells rows of one time apart holds a part of the time in a form that is not known."""
    for name in names:
        if words_of(name) & PART_WORDS and bool(distinct_texts(sample[name]).str.contains(r"\d").all()):
            raise InputError(
                f"column {name!r} looks like a part of the time beside {' and '.join(map(repr, time))}, such as "
                f"{distinct_texts(sample[name]).iloc[0]!r}, in a form that is not known",
                where=source.path,
                remedy="write times of day as hh:mm, or state data.time and data.id",
            )


def _sample(source: Source) -> pd.DataFrame:
    """The first rows, as text."""
    parts = []
    for block in scan(source, text=source.columns, limit=SAMPLE_BLOCKS):
        columns = {name: pd.Series(column.to_pandas()) for name, column in block.items()}
        parts.append(pd.DataFrame(columns))
    if not parts:
        raise InputError("the file has a heading but no rows", where=source.path)
    return pd.concat(parts, ignore_index=True)


def _numbers(column: pd.Series, source: Source, stated: dict[str, Any]) -> np.ndarray | None:
    """A column as numbers, or None if it holds anything else (or nothing)."""
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return None
    codes, distinct = pd.factorize(column)
    if {str(text).strip().lower() for text in distinct} <= {"true", "false", ""}:
        return None  # which may be forecast as a target stated, but is none by itself
    values = numbers_of(pd.Series(distinct, dtype="string"), source.dialect, tuple(stated.get("missing", ())))
    rows = np.append(values, np.nan)[codes]
    # Some texts may be mistakes, which reading names: few among the different ones, or one or two in few rows.
    wrong = np.isinf(values)
    few = wrong.mean() <= 0.1 or (wrong.sum() <= 2 and np.isinf(rows).mean() <= 0.1)
    if not np.isfinite(values).any() or not few:
        return None
    values = rows
    return np.where(np.isinf(values), np.nan, values)


def _listed(stated: dict[str, Any]) -> set[str]:
    """Columns that are stated to be something."""
    ids = stated.get("id") or ()
    names = {stated.get("target"), *((ids,) if isinstance(ids, str) else ids)} - {None}
    return names.union(*(stated.get(key, ()) for key in ("static", "past", "future", "channels")))


def _is_calendar(name: str, values: np.ndarray) -> bool:
    """Whether a column is a part of the date by its name and by its values, which are whole numbers of such a range."""
    most = _CALENDAR.get(re.sub(r"[^a-z]", "", name.lower()))
    seen = values[~np.isnan(values)]
    return most is not None and bool((seen % 1 == 0).all()) and seen.min() >= 0 and seen.max() <= most


def _counts_rows(values: np.ndarray) -> bool:
    return len(values) > 10 and bool((np.diff(values) == 1).all()) and values[0] % 1 == 0


def _id(stamp: pd.Series, sample: pd.DataFrame, texts: list[str], numbers: dict[str, np.ndarray]) -> list[str]:
    """Columns that name the series: with them few times stand twice, which many do without."""
    rows = len(stamp)
    when = pd.factorize(stamp)[0]
    repeated = repeats_of(when)
    exact = [name for name in names_of(sample) if name.strip().lower() == "unique_id"]
    if exact:
        return exact
    whole = [name for name, values in numbers.items() if bool((np.nan_to_num(values) % 1 == 0).all())]
    if repeated < 0.3:
        called = [name for name in (*texts, *whole) if name.strip().lower() in ID_NAMES]
        return [name for name in dict.fromkeys((*called, *texts)) if _sets_apart(sample[name], when, stamp, name)][:1]
    # In the order of the file, and without what is a value by its name.
    named = [name for name in names_of(sample) if name in (*texts, *whole) and name.strip().lower() not in TARGET_NAMES]
    codes = {name: pd.factorize(sample[name])[0] for name in named}
    codes = {name: code for name, code in codes.items() if 2 <= code.max() + 1 <= rows / 3 and (code >= 0).all()}

    def twice(*columns: str) -> float:
        return repeats_of(when, *(codes[name] for name in columns))

    def rank(names: tuple[str, ...]) -> tuple[float, bool, bool, int, int]:
        hinted = any(name.strip().lower() in ID_NAMES for name in names)
        words = max(sample[name].astype("string").str.len().mean() for name in names) > 12  # a description, not a name
        return (round(twice(*names), 1), not hinted, words, len(names), sum(int(codes[name].max()) for name in names))

    singles = sorted(((name,) for name in codes), key=rank)
    if singles and twice(*singles[0]) < 0.05:
        return list(singles[0])
    few = [name for (name,) in singles[:6]]
    few = [name for name in codes if name in few]
    pairs = sorted(((a, b) for i, a in enumerate(few) for b in few[i + 1 :]), key=rank)
    if pairs and twice(*pairs[0]) < 0.05:
        return list(pairs[0])
    return list(singles[0]) if singles and twice(*singles[0]) < repeated / 2 else []


def _sets_apart(column: pd.Series, when: np.ndarray, stamp: pd.Series, name: str) -> bool:
    """Whether a column names series that have few times or none in common."""
    codes, texts = pd.factorize(column)
    if not 2 <= len(texts) <= len(codes) / 3 or (codes < 0).any():
        return False
    if name.strip().lower() in ID_NAMES:
        return True
    one_after_the_other = int((np.diff(codes) != 0).sum()) == len(texts) - 1
    if not one_after_the_other or repeats_of(when, codes) > 0:
        return False
    return repeats_of(when) > 0 or _goes_back(stamp, codes)


def _goes_back(stamp: pd.Series, codes: np.ndarray) -> bool:
    """Whether times are sorted within each series, and not from one to the next."""
    found = as_times(stamp.str.strip(), None, None)
    if found is None:
        return False
    steps, within = np.diff(found[1]), np.diff(codes) == 0
    return any(bool((s[within] >= 0).all() and (s[~within] < 0).any()) for s in (steps, -steps))


def _layout(
    roles: Roles,
    sample: pd.DataFrame,
    source: Source,
    values: dict[str, np.ndarray],
    texts: list[str],
    ids: list[str],
    time: list[str],
) -> None:
    """Long or wide, and what the columns beside the target are."""
    data = roles.data
    listed = {*data.get("static", ()), *data.get("past", ()), *data.get("future", ())}
    zone = data.get("timezone")
    texts = [name for name in texts if len(distinct_texts(sample[name])) > 1 or name in listed]
    usable = [name for name in texts if form_of(sample[name], name, zone) is None and sample[name].nunique() <= FEW]
    left = [name for name in texts if name not in usable and name not in time]
    if left:
        roles.remarks.append(f"left out, being times or free text: {', '.join(map(repr, left))}")
    static = []
    if ids:
        group = sample.groupby(ids, observed=True, sort=False).ngroup().to_numpy()
        aims = {data.get("target"), *(name for name in values if name.strip().lower() in TARGET_NAMES)}
        static = [name for name in values if name not in aims and _constant_within(values[name], group)]
        static += [name for name in usable if _constant_within(pd.factorize(sample[name])[0].astype(float), group)]
    candidates = [name for name in values if name not in static]
    named = [name for name in candidates if name.strip().lower() in TARGET_NAMES]
    usable = [name for name in usable if name != data.get("target")]
    if "target" in data:
        target: str | None = data["target"]
    elif data.get("layout") == "wide":
        target = None
    elif named or ids or len(candidates) == 1:
        target = (named or candidates or [None])[0]
    else:
        target = None
    if target is None and not candidates:
        raise _no_target(roles, sample, source, time)
    if target is None:
        data["layout"] = "wide"
        if sum(name.strip().lower()[:3] in {month[:3] for month in MONTHS} for name in candidates) > 9:
            roles.remarks.append("the columns look like the months of a year: for one series, write a row a month")
        data.setdefault("channels", [name for name in candidates if name not in listed])
        if usable:
            roles.remarks.append(f"columns of text are left out: {', '.join(map(repr, usable))}")
        if len(data["channels"]) > 1:
            roles.remarks.append(
                "every column of numbers is taken for a series; to forecast one with the others beside it: "
                f"--set data.target={data['channels'][-1]}"
            )
        return
    data["target"] = target
    past = [name for name in candidates if name != target and name not in listed]
    past += [name for name in usable if name not in static and name not in listed]
    left = [name for name in static if name not in listed]
    if left and "static" in data:
        roles.remarks.append(f"left out, since data.static is stated without them: {', '.join(map(repr, left))}")
    elif left:
        data["static"] = left
    if past and "past" in data:
        roles.remarks.append(f"left out, since data.past is stated without them: {', '.join(map(repr, past))}")
    elif past:
        data["past"] = past
        roles.remarks.append(
            "columns beside the target are taken to be known up to the last row only (past); what is known ahead, list "
            "under data.future, and give its values to predict with --at"
        )
    chosen = {*data.get("static", ()), *data.get("past", ()), *data.get("future", ())}
    categorical = [name for name in usable if name in chosen]
    listed_texts = list(data.get("categorical", ()))
    if categorical:
        data["categorical"] = listed_texts + [name for name in categorical if name not in listed_texts]


def _no_target(roles: Roles, sample: pd.DataFrame, source: Source, time: list[str]) -> InputError:
    """Why there is no column to forecast: that of the most numbers holds something else."""
    best: tuple[float, str, str] | None = None
    for name in names_of(sample):
        texts = distinct_texts(sample[name])
        if name in time or texts.empty or not isinstance(texts.iloc[0], str):
            continue
        values = numbers_of(texts, source.dialect, tuple(roles.data.get("missing", ())))
        wrong = np.isinf(values)
        share = float((np.isfinite(values) | texts.str.fullmatch(r"[^A-Za-z:]*\d[^A-Za-z:]*")).mean())
        if wrong.any() and np.isfinite(values).any() and share > 0.5 and (best is None or share > best[0]):
            odd = wrong if wrong.mean() < 0.5 else np.isfinite(values)
            best = share, name, str(texts[odd].iloc[0])
    if best is None:
        return InputError(
            "no column holds numbers that change", where=source.path, remedy="state it: --set data.target=COLUMN"
        )
    return InputError(
        f"no column holds numbers alone; {best[1]!r} holds {best[2]!r}, too",
        where=source.path,
        remedy=(
            "correct it: all numbers of a column are written alike"
            if any(map(str.isdecimal, best[2]))
            else f"correct it, or --set 'data.missing=[\"{best[2]}\"]' if it means a missing value"
        ),
    )


def _constant_within(values: np.ndarray, group: np.ndarray) -> bool:
    frame = pd.DataFrame({"value": values, "group": group}).dropna()
    spread = frame.groupby("group")["value"].agg(["min", "max"])
    return bool((spread["min"] == spread["max"]).all()) and len(frame) > 0
