"""The usual step of a series, and the grid that its times stand on where they are regular.

Calendar months, business days and days of the local clock count as regular though their length in hours varies.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from forecasting.series.clock import DAY, Clock, elapsed, local_moments

MOST_GRID = 4
"""A series whose grid would be more than so many times its rows counts as irregular."""
Kind = Literal["fixed", "local", "business", "months"]
_WEEKDAYS = "1111100"


@dataclass(frozen=True)
class Step:
    """The usual step of a series.

    Attributes:
        nanoseconds: Its length; of months and business days the mean length.
        kind: ``fixed``, elapsed time; ``local``, the same on the local clock, whose days may have 23 or 25 hours;
            ``business``, Monday to Friday; ``months``.
        count: Number of months.
        day: Day of the month that steps of months aim at; shorter months have it on their last day. 0 stands for the
            first business day of the month, -1 for the last.
        phase: Of ``local`` steps, where they begin on the clock, counted from 1970, if that is known: a first time that
            the clock leaves out stands behind it, which moves no other.
        regular: Whether all times stand on the grid of this step.
    """

    nanoseconds: int
    kind: Kind = "fixed"
    count: int = 0
    day: int = 0
    phase: int | None = None
    regular: bool = False

    def text(self) -> str:
        """In words, such as ``1 hour``, ``3 months`` or ``business day``."""
        if self.kind == "business":
            return "business day"
        if self.kind == "months":
            unit, count = ("year", self.count // 12) if self.count % 12 == 0 else ("month", self.count)
            which = {0: ", first business day", -1: ", last business day"}.get(self.day, "")
            return f"{count} {unit}" + ("s" if count > 1 else "") + which
        return duration(self.nanoseconds)


def length_of_time(text: str) -> int | None:
    """Nanoseconds of a length such as ``12h25min``; None for what is none, or not above zero."""
    try:
        length = pd.Timedelta(re.sub(r"(?<=\d)[dw](?![a-z])", lambda match: match[0].upper(), text)).value
    except ValueError:
        return None
    return length if length > 0 else None


def duration(nanoseconds: float) -> str:
    """A length of time in its largest unit: ``30 minutes``, ``1 day``, ``1.5 seconds``."""
    for unit, length in (("day", DAY), ("hour", DAY // 24), ("minute", DAY // 1440), ("second", 10**9)):
        if nanoseconds >= length:
            number = nanoseconds / length
            return f"{number:.4g} {unit}" + ("" if number == 1 else "s")
    return f"{nanoseconds / 10**6:.4g} milliseconds"


def infer_step(times: np.ndarray, clock: Clock) -> Step | None:
    """The usual step of sorted times, and whether all of them stand on its grid.

    Args:
        times: ``int64 [N]``, nanoseconds in UTC, increasing.
        clock: The local clock.

    Returns:
        The step; None for fewer than two distinct times.
    """
    gaps = np.diff(times)
    gaps = gaps[gaps > 0]
    if not len(gaps):
        return None
    usual = int(np.sort(gaps)[(len(gaps) - 1) // 2])  # the lower median, which is one of them
    return (
        _months(times, clock)
        or _business(times, clock)
        or _local(times, usual, clock)
        or _fixed(times, usual)
        or Step(usual)
    )


def slots(times: np.ndarray, step: Step, clock: Clock) -> np.ndarray:
    """Place of regular times on their grid, ``int64 [N]``, the first at 0."""
    if step.kind == "fixed":
        return (elapsed(times) // np.uint64(step.nanoseconds)).astype(np.int64)
    local = clock.local(times)
    if step.kind == "local":
        local[0] = _aligned(int(local[0]), step)
        return (elapsed(local) // np.uint64(step.nanoseconds)).astype(np.int64)
    days = local // DAY
    if step.kind == "business":
        return np.busday_count(_date(days[0]), _date(days), weekmask=_WEEKDAYS)
    months = _date(days).astype("datetime64[M]").astype(np.int64)
    return (months - months[0]) // step.count


def grid(first: int, step: Step, clock: Clock, begin: int, stop: int) -> np.ndarray:
    """Times at the places ``begin`` to ``stop`` of a grid whose place 0 is at ``first``, ``int64 [stop - begin]``.

    Local times are taken as :func:`forecasting.series.clock.local_moments` does.
    """
    places = np.arange(begin, stop, dtype=np.int64)
    if step.kind == "fixed":
        return first + step.nanoseconds * places
    local = int(clock.local(np.array([first]))[0])
    if step.kind == "local":
        local = _aligned(local, step)
        return local_moments(local + step.nanoseconds * places, clock)
    day, clock_time = local // DAY, local % DAY
    if step.kind == "business":
        days = np.busday_offset(_date(day), places, roll="forward", weekmask=_WEEKDAYS).astype(np.int64)
    else:
        days = _days_in(_date(day).astype("datetime64[M]") + places * step.count, step.day)
    return local_moments(days * DAY + clock_time, clock)


def _aligned(local: int, step: Step) -> int:
    """A local time brought to the beginning of its step, if it is known where these begin."""
    return local if step.phase is None else local - (local - step.phase) % step.nanoseconds


def _months(times: np.ndarray, clock: Clock) -> Step | None:
    if np.diff(times).min() < 27.9 * DAY:  # days of the local clock may be an hour short
        return None
    local = clock.local(times)
    if len(set((local % DAY).tolist())) > 1:
        return None
    days = local // DAY
    months = _date(days).astype("datetime64[M]")
    latest = int((days - months.astype("datetime64[D]").astype(np.int64)).max()) + 1
    rules = (31, latest, -1, 0)  # month ends stay month ends
    day = next((rule for rule in rules if bool((_days_in(months, rule) == days).all())), None)
    if day is None:
        return None
    counts = np.diff(months.astype(np.int64))
    count = int(np.gcd.reduce(counts))
    usual = int(np.sort(counts)[len(counts) // 2])
    if count != usual or counts.sum() // count + 1 > MOST_GRID * len(times):
        return None
    return Step(int(count * 365.2425 / 12 * DAY), "months", count, day, regular=True)


def _days_in(months: np.ndarray, day: int) -> np.ndarray:
    """The day of :class:`Step` in each month, as days since 1970."""
    first, following = months.astype("datetime64[D]"), (months + 1).astype("datetime64[D]")
    if day == 0:
        return np.busday_offset(first, 0, roll="forward", weekmask=_WEEKDAYS).astype(np.int64)
    if day == -1:
        return np.busday_offset(following, -1, roll="forward", weekmask=_WEEKDAYS).astype(np.int64)
    length = (following - first).astype(np.int64)
    return first.astype(np.int64) + np.minimum(day, length) - 1


def _business(times: np.ndarray, clock: Clock) -> Step | None:
    local = clock.local(times)
    days = local // DAY
    weekday = (days + 3) % 7
    # Two weeks of rows without a weekend are no accident.
    if len(times) < 10 or weekday.max() > 4 or (local % DAY != local[0] % DAY).any() or (np.diff(days) < 1).any():
        return None
    count = int(np.busday_count(_date(days[0]), _date(days[-1]), weekmask=_WEEKDAYS)) + 1
    usual = np.sort(np.diff(days))[(len(days) - 1) // 2]
    return Step(7 * DAY // 5, "business", regular=True) if usual == 1 and count <= MOST_GRID * len(times) else None


def _local(times: np.ndarray, usual: int, clock: Clock) -> Step | None:
    """Steps that are equal on the local clock: days, and hours where they are not equal in elapsed time."""
    hours = len(clock.starts) > 1 and usual % (DAY // 24) == 0 and usual > DAY // 24
    if usual % DAY and (not hours or _fixed(times, usual)):
        return None
    step = _fixed(clock.local(times), usual)
    return None if step is None else Step(usual, "local", regular=True)


def _fixed(times: np.ndarray, usual: int) -> Step | None:
    # Differences of neighbours suffice, as they sum up to those from the first.
    if (np.diff(times) % usual).any() or int(elapsed(times)[-1]) // usual + 1 > MOST_GRID * len(times):
        return None
    return Step(usual, regular=True)


def _date(days: np.ndarray | int) -> np.ndarray:
    return np.asarray(days).astype("datetime64[D]")
