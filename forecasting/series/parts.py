"""Times that are split over columns: parts of the date and the time of day, and numbered intervals of the day."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from forecasting.series.clock import MINUTE

_COMPONENTS = {
    "%Y": ("year", "yr", "yyyy", "yy", "#yy", "#year", "jahr", "année", "annee", "año", "ano", "anno"),
    "%Q": ("quarter", "qtr", "quartal", "trimestre"),
    "%m": ("month", "mon", "mnth", "mo", "mm", "monat", "mois", "mes", "mês", "mese"),
    "%V": ("week", "wk", "isoweek", "iso_week", "weekofyear", "week_of_year", "woche", "kw", "semaine", "semana"),
    "%j": ("doy", "dayofyear", "day_of_year", "day of year", "yday", "jday", "julian", "julian_day"),
    "%d": ("day", "dd", "dy", "dom", "mday", "tag", "jour", "día", "dia", "giorno"),
    "%H": ("hour", "hr", "hh", "stunde", "heure", "hora", "ora"),
    "%M": ("minute", "min", "mm", "mn", "mi", "minuto"),
    "%S": ("second", "sec", "ss", "sekunde", "seconde", "segundo", "secondo"),
}  # fmt: skip
"""What columns that hold a part of a time are called; ``mm`` stands for months before hours, for minutes after them."""


def components(names: Sequence[str]) -> dict[str, str]:
    """Columns that hold a part of a time each, by the directive of the part, in the order of the columns."""
    found: dict[str, str] = {}
    for name in names:
        word = name.strip().lower()
        fitting = [directive for directive, words in _COMPONENTS.items() if word in words and directive not in found]
        if word == "mm":
            fitting = ["%M"] if "%H" in found else ["%m"]
        if fitting:
            found.setdefault(fitting[0], name)
    return found


def format_of(names: tuple[str, ...], texts: pd.Series) -> str | None:
    """Format of texts that columns called year, month, day, hour and the like are joined to, or None."""
    found = list(components(names))
    if len(names) < 2 or len(found) < len(names):
        return None
    if "%V" in found:
        found = ["%G" if part == "%Y" else part for part in found]
    elif "%Y" in found and texts.str.split().str[found.index("%Y")].str.len().max() <= 2:
        found = ["%y" if part == "%Y" else part for part in found]
    return " ".join(found)


def interval_of(numbers: pd.Series, *, stated: bool) -> int:
    """Length of the intervals of a day that have such numbers; 0 if they may be hours."""
    counts = pd.to_numeric(numbers).fillna(0)
    highest = int(counts.max())
    if counts.min() < 1 and not stated:
        return 0
    if (stated and highest <= 50) or 46 <= highest <= 50:  # 50 where the clock is put back
        return 30 * MINUTE
    return 15 * MINUTE if stated or 92 <= highest <= 100 else 0
