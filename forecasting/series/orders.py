"""In which order day, month and year stand in the dates of a file: found from all of them, or asked for."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from common.errors import InputError
from forecasting.series.style import PIVOT

_NAMED_MONTH = re.compile(r"\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)", re.IGNORECASE)
_THREE = re.compile(r"(?<!\d)(\d{1,4})([/.\- ])\s?(\d{1,2})\2\s?(\d{1,4})(?!\d)")


def date_orders(texts: pd.Series) -> frozenset[str]:
    """In which orders the three numbers of dates such as 13/05/2021 or 21-05-13 may stand, by what they amount to.

    Args:
        texts: Some distinct times.

    Returns:
        Of ``Ymd``, ``dmY``, ``mdY``, ``dmy``, ``mdy`` and ``ymd`` those that are possible; none where the texts hold
        no such dates.
    """
    found = texts.str.extract(_THREE).dropna()
    if found.empty or bool(texts.str.contains(_NAMED_MONTH).any()):
        return frozenset()
    lengths = found[0].str.len().max(), found[3].str.len().max()
    if 4 in lengths and min(lengths) <= 2:
        orders = {"Ymd"} if lengths[0] == 4 else {"dmY", "mdY"}
    elif max(lengths) <= 2:
        orders = {"dmy", "mdy", "ymd"}
    else:
        return frozenset()
    first, middle, last = (found[i].astype("int64") for i in (0, 2, 3))
    most = {"d": 31, "m": 12, "y": 99, "Y": 9999}
    highest = [int(each.max()) for each in (first, middle, last)]
    orders = {order for order in orders if all(n <= most[part] for n, part in zip(highest, order, strict=True))}
    if "ymd" in orders and len(orders) > 1:
        # Most files go on in time, which a wrong order does not once a month is over.
        days = {order: _days((first, middle, last), order) for order in orders}
        onward = {order for order in orders if is_sorted(days[order])}
        slashes = found[1].iloc[0] in "/."  # few begin with a year before these
        if onward == {"ymd"}:  # or they are sorted as texts, when another order has a shorter span or evener steps
            others = [days[order] for order in orders - onward]
            shortest = bool((last == last.iloc[0]).all()) or np.ptp(days["ymd"]) < min(map(np.ptp, others))
            evenest = _unevenness(days["ymd"]) < min(map(_unevenness, others))
            orders = onward if not slashes and shortest and evenest else orders
        elif slashes or (onward and "ymd" not in onward):
            orders -= {"ymd"}
    return frozenset(orders)


def _days(numbers: tuple[pd.Series, pd.Series, pd.Series], order: str) -> np.ndarray:
    """Days, nearly, of dates read in an order with a year of two digits."""
    year, month, day = (numbers[order.index(part)] for part in "ymd")
    return ((year + 100 * (year < PIVOT)) * 365.25 + month * 30.4375 + day).to_numpy()


def _unevenness(days: np.ndarray) -> float:
    """How much the steps between distinct days vary, relative to their mean."""
    steps = np.diff(np.unique(days))
    return float(steps.std() / steps.mean()) if len(steps) else 0.0


def is_sorted(values: np.ndarray) -> bool:
    """Whether values go up all along, or down."""
    steps = np.diff(values)
    return bool((steps >= 0).all() or (steps <= 0).all())


def undecided(first: str, orders: frozenset[str]) -> InputError:
    """The error of dates whose order nothing decides; ``first`` is one of them."""
    words = {"d": "day", "m": "month", "y": "year", "Y": "year"}
    may = [word for letter, word in words.items() if letter in {order[0] for order in orders}]
    match = _THREE.search(first)
    separator = match[2] if match else "/"
    formats = [f'"{separator.join(f"%{part}" for part in order)}"' for order in sorted(orders)]
    return InputError(
        f"{first!r} may be {' or '.join(may)} first, and no row decides it",
        remedy=f"state data.time_format, such as {' or '.join(formats)}",
    )
