"""Which column of a file is what: recognised from names and contents, as a configuration may state it."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from common.errors import InputError
from forecasting.series.forms import COMPONENTS, MONTHS, date_orders, recognise
from forecasting.series.style import UNITS, UNREAD, TimeStyle, pattern_of, read_times
from forecasting.series.tables import Source, numbers_of, scan

SAMPLE_BLOCKS = 8
DISTINCT = 2000  # texts of a column that are looked at for times
FEW = 50  # texts that a covariate may have
TIME_NAMES = (
    "ds", "timestamp", "datetime", "date_time", "date", "time", "ts", "period", "month", "week", "year", "day", "epoch",
)  # fmt: skip
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
        roles.data["time"] = _time(source, sample, stated)
    time = [roles.data["time"]] if isinstance(roles.data["time"], str) else list(roles.data["time"])
    numbers = {name: _numbers(sample[name], source, stated) for name in _names(sample) if name not in time}
    texts = [name for name, values in numbers.items() if values is None]
    numbers = {name: values for name, values in numbers.items() if values is not None}
    for name in [name for name, values in numbers.items() if _counts_rows(values)]:
        numbers.pop(name)
        roles.remarks.append(f"column {name!r} counts the rows, and is left out")
    stamp = sample[time[0]].astype("string")
    for name in time[1:]:
        stamp = stamp + " " + sample[name].astype("string")
    if "id" not in stated and stated.get("layout") != "wide":
        found = _id(stamp, sample, texts, numbers)
        if found:
            roles.data["id"] = found if len(found) > 1 else found[0]
    ids = roles.data.get("id")
    ids = [] if ids is None else [ids] if isinstance(ids, str) else list(ids)
    values = {name: column for name, column in numbers.items() if name not in ids}
    constant = [name for name, column in values.items() if np.nanmin(column) == np.nanmax(column)]
    for name in constant if len(constant) < len(values) else ():
        values.pop(name)
        roles.remarks.append(f"column {name!r} never changes, and is left out")
    _layout(roles, sample, source, values, [name for name in texts if name not in ids], ids, time)
    return roles


def _sample(source: Source) -> pd.DataFrame:
    """The first rows, as text."""
    parts = []
    for block in scan(source, text=source.columns, limit=SAMPLE_BLOCKS):
        columns = {name: pd.Series(column.to_pandas()) for name, column in block.items()}
        parts.append(pd.DataFrame(columns))
    if not parts:
        raise InputError("the file has a heading but no rows", where=source.path)
    return pd.concat(parts, ignore_index=True)


def _names(sample: pd.DataFrame) -> list[str]:
    return list(map(str, sample.columns))


def _texts(column: pd.Series) -> pd.Series:
    texts = pd.Series(column.dropna().unique()[:DISTINCT], dtype="string").str.strip()
    return texts[texts != ""]


def _form(column: pd.Series, name: str, zone: str | None, form: str | None = None) -> str | None:
    """The format of a column that holds times, or None; numbers count only under a name that speaks of time.

    ``form`` is what is stated of the form of times.
    """
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return "%Y-%m-%d %H:%M:%S"
    texts = _texts(column)
    if texts.empty:
        return None
    if bool(texts.str.fullmatch(r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?(\s*[AaPp][Mm])?").all()):
        return "%H:%M"
    digits = bool(texts.str.fullmatch(r"-?\d+(\.\d+)?").all())
    if digits and form is None and not any(word in name.lower() for word in (*TIME_NAMES, "yyyy")):
        return None
    if form is not None and not (digits if form in UNITS else texts.str.fullmatch(pattern_of(form)).any()):
        return None
    found = _as_times(texts, form, zone)
    if found is None:
        return None
    style, read = found
    unread = (read == UNREAD).mean()
    # A few may be mistakes, which reading names; under a name that speaks of time, many may.
    if unread > (0.02 if name.strip().lower() not in TIME_NAMES else 0.999):
        return None
    return style.format or f"since 1970 in {style.unit}"


def _as_times(texts: pd.Series, form: str | None, zone: str | None) -> tuple[TimeStyle, np.ndarray] | None:
    """How texts are written if they are times, and the times; None if they are none."""
    try:
        any_order = frozenset(sorted(date_orders(texts))[:1])  # that it is a time does not hang on it
        style = recognise(texts, names=("",), stated=form, orders=any_order, zone=zone)
        return style, read_times(texts, style)
    except (InputError, ValueError, TypeError, AttributeError):
        return None


def _time(source: Source, sample: pd.DataFrame, stated: dict[str, Any]) -> str | list[str]:
    names = {name.strip().lower(): name for name in _names(sample)}
    parts = {each: next((names[word] for word in words if word in names), None) for each, words in COMPONENTS.items()}
    year, month, quarter = parts["%Y"], parts["%m"], parts.pop("%Q")
    if year and month:  # and what follows without a gap
        used = [part for part in itertools.takewhile(bool, parts.values()) if part]
        if all(pd.to_numeric(sample[part], errors="coerce").notna().all() for part in used):
            return used
    for part, words in ((month, r"[A-Za-z]{3,9}"), (quarter, "Q?[1-4]")):
        if year and part and sample[part].astype("string").str.strip().str.fullmatch(words).all():
            return [year, part]
    zone, whole = stated.get("timezone"), stated.get("time_format")
    forms = {name: form for name in _names(sample) if (form := _form(sample[name], name, zone, whole))}
    if whole is not None and set(forms.values()) <= {"%H:%M"}:  # it may be that of several columns joined
        forms = {name: form for name in _names(sample) if (form := _form(sample[name], name, zone))}
    dates = {name: form for name, form in forms.items() if any(part in form for part in ("%Y", "%y", "%G", "since"))}
    clocks = [name for name, form in forms.items() if name not in dates and "%H" in form]
    if not dates:
        hinted = [name for name in _names(sample) if name.strip().lower() in TIME_NAMES]
        if hinted:  # whose times are of no form that is known; the message says why
            texts = _texts(sample[hinted[0]])
            where = f"{source.path}, column {hinted[0]!r}"
            try:
                recognise(texts, names=(hinted[0],), stated=None, orders=date_orders(texts), zone=zone)
            except InputError as error:
                raise InputError(error.problem, where=where, remedy=error.remedy) from None
        raise InputError(
            f"no column holds times; the columns are {', '.join(map(repr, source.columns))}",
            where=source.path,
            remedy="state it: --set data.time=COLUMN, and --set data.time_format if its form is unusual",
        )

    def rank(name: str) -> tuple[bool, int, int]:
        lowered = name.strip().lower()
        hint = next((i for i, word in enumerate(TIME_NAMES) if lowered == word), len(TIME_NAMES))
        return (_of_days(dates[name]), -sample[name].nunique(), hint)

    best = min(dates, key=rank)
    if _of_days(dates[best]):
        clocks += [name for name in _names(sample) if _is_hour(sample[name], name)]
        if clocks:
            return [best, clocks[0]]
    return best


def _of_days(form: str) -> bool:
    """Whether a form has no time of day."""
    return not any(part in form for part in ("%H", "%I", "since"))


def _is_hour(column: pd.Series, name: str) -> bool:
    """Whether a column holds hours of the day, from 0 to 23 or from 1 to 24."""
    words = re.split(r"[^a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower())
    if not {"hour", "hours", "hr", "hh", "h", "he", "time", "stunde"} & set(words):
        return False
    texts = column.astype("string").str.strip()
    if not bool(texts.str.fullmatch(r"\d{1,2}").all()):
        return False
    numbers = set(texts.astype("int64").tolist())
    return len(numbers) > 12 and (numbers <= set(range(24)) or numbers <= set(range(1, 25)))


def _numbers(column: pd.Series, source: Source, stated: dict[str, Any]) -> np.ndarray | None:
    """A column as numbers, or None if it holds anything else (or nothing)."""
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return None
    codes, distinct = pd.factorize(column)
    if {str(text).strip().lower() for text in distinct} <= {"true", "false", ""}:
        return None  # which may be forecast as a target stated, but is none by itself
    values = numbers_of(pd.Series(distinct, dtype="string"), source.dialect, tuple(stated.get("missing", ())))
    if not np.isfinite(values).any() or np.isinf(values).mean() > 0.1:
        return None
    values = np.append(values, np.nan)[codes]
    return np.where(np.isinf(values), np.nan, values)


def _counts_rows(values: np.ndarray) -> bool:
    return len(values) > 10 and bool((np.diff(values) == 1).all()) and values[0] % 1 == 0


def _id(stamp: pd.Series, sample: pd.DataFrame, texts: list[str], numbers: dict[str, np.ndarray]) -> list[str]:
    """Columns that name the series: with them few times stand twice, which many do without."""
    rows = len(stamp)
    when = pd.factorize(stamp)[0]
    repeated = _twice(when)
    exact = [name for name in _names(sample) if name.strip().lower() == "unique_id"]
    if exact:
        return exact
    whole = [name for name, values in numbers.items() if bool((np.nan_to_num(values) % 1 == 0).all())]
    if repeated < 0.3:
        called = [name for name in (*texts, *whole) if name.strip().lower() in ID_NAMES]
        return [name for name in dict.fromkeys((*called, *texts)) if _sets_apart(sample[name], when, stamp, name)][:1]
    # In the order of the file, and without what is a value by its name.
    named = [name for name in _names(sample) if name in (*texts, *whole) and name.strip().lower() not in TARGET_NAMES]
    codes = {name: pd.factorize(sample[name])[0] for name in named}
    codes = {name: code for name, code in codes.items() if 2 <= code.max() + 1 <= rows / 3 and (code >= 0).all()}

    def twice(*columns: str) -> float:
        return _twice(when, *(codes[name] for name in columns))

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


def _twice(when: np.ndarray, *codes: np.ndarray) -> float:
    """Share of the rows whose time stands already in the series that columns name."""
    key = when.astype(np.int64)
    for code in codes:
        key = key * (int(code.max()) + 1) + code
    return 1 - len(np.unique(key)) / len(key)


def _sets_apart(column: pd.Series, when: np.ndarray, stamp: pd.Series, name: str) -> bool:
    """Whether a column names series that have few times or none in common."""
    codes, texts = pd.factorize(column)
    if not 2 <= len(texts) <= len(codes) / 3 or (codes < 0).any() or _twice(when, codes) > 0:
        return False
    called = name.strip().lower() in ID_NAMES
    repeats = _twice(when) > 0
    if called and repeats:
        return True
    one_after_the_other = int((np.diff(codes) != 0).sum()) == len(texts) - 1
    return one_after_the_other and (called or repeats or _goes_back(stamp, codes))


def _goes_back(stamp: pd.Series, codes: np.ndarray) -> bool:
    """Whether times are sorted within each series, and not from one to the next."""
    found = _as_times(stamp.str.strip(), None, None)
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
    texts = [name for name in texts if len(_texts(sample[name])) > 1 or name in listed]
    usable = [name for name in texts if _form(sample[name], name, zone) is None and sample[name].nunique() <= FEW]
    left = [name for name in texts if name not in usable and name not in time]
    if left:
        roles.remarks.append(f"left out, being times or free text: {', '.join(map(repr, left))}")
    static = []
    if ids:
        group = sample.groupby(ids, observed=True, sort=False).ngroup().to_numpy()
        static = [name for name in values if _constant_within(values[name], group)]
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
    if static and "static" not in data:
        data["static"] = static
    if past and "past" not in data and "future" not in data:
        data["past"] = past
        roles.remarks.append(
            "columns beside the target are taken to be known up to the last row only (past); what is known ahead, list "
            "under data.future, and give its values to predict with --at"
        )
    chosen = {*data.get("static", ()), *data.get("past", ()), *data.get("future", ())}
    categorical = [name for name in usable if name in chosen]
    if categorical and "categorical" not in data:
        data["categorical"] = categorical


def _no_target(roles: Roles, sample: pd.DataFrame, source: Source, time: list[str]) -> InputError:
    """Why there is no column to forecast: that of the most numbers holds something else."""
    best: tuple[float, str, str] | None = None
    for name in _names(sample):
        texts = _texts(sample[name])
        if name in time or texts.empty or not isinstance(texts.iloc[0], str):
            continue
        values = numbers_of(texts, source.dialect, tuple(roles.data.get("missing", ())))
        share = float(np.isfinite(values).mean())
        if np.isinf(values).any() and share > 0.5 and (best is None or share > best[0]):
            best = share, name, str(texts[np.isinf(values)].iloc[0])
    if best is None:
        return InputError(
            "no column holds numbers that change", where=source.path, remedy="state it: --set data.target=COLUMN"
        )
    return InputError(
        f"no column holds numbers alone; {best[1]!r} holds {best[2]!r}, too",
        where=source.path,
        remedy=f"correct it, or --set 'data.missing=[\"{best[2]}\"]' if it means a missing value",
    )


def _constant_within(values: np.ndarray, group: np.ndarray) -> bool:
    frame = pd.DataFrame({"value": values, "group": group}).dropna()
    spread = frame.groupby("group")["value"].agg(["min", "max"])
    return bool((spread["min"] == spread["max"]).all()) and len(frame) > 0
