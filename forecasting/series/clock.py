"""The local clock: offsets from UTC, and times that it shows twice or never.

Inside farview a time is a count of nanoseconds since 1970 in UTC. Its local clock matters for calendar phases, for
steps of a day or more, and for reading and writing.
"""

from __future__ import annotations

import zoneinfo
from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np
import pandas as pd

from common.errors import InputError

SECOND = 10**9
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
PLACES = (
    "Europe/Berlin", "Europe/London", "Europe/Athens", "America/New_York", "America/Chicago", "America/Denver",
    "America/Los_Angeles", "America/Anchorage", "America/Halifax", "America/St_Johns", "America/Santiago",
    "Australia/Sydney", "Australia/Adelaide", "Australia/Lord_Howe", "Pacific/Auckland", "Asia/Jerusalem",
    "Africa/Cairo", "Asia/Tehran", "Europe/Moscow", "Europe/Istanbul", "America/Sao_Paulo", "America/Mexico_City",
    "Africa/Casablanca",
)  # fmt: skip
"""Places whose clocks are changed, one for each offset and rule of most people's."""


def elapsed(times: np.ndarray) -> np.ndarray:
    """Nanoseconds since the first of increasing times, ``uint64 [N]``, which holds spans of more than 292 years."""
    return (times - times[0]).view(np.uint64)


class Clock(NamedTuple):
    """A local clock over a span of time, as pieces of constant offset.

    Attributes:
        starts: ``int64 [pieces]``, first moment of each piece, UTC; the first is the beginning of time.
        offsets: ``int64 [pieces]``, what is added to UTC within the piece.
    """

    starts: np.ndarray
    offsets: np.ndarray

    def local(self, times: np.ndarray) -> np.ndarray:
        """Local clock ``[N]`` of moments ``[N]``, both in nanoseconds."""
        if len(self.starts) == 1:
            return times + self.offsets[0]
        return times + self.offsets[np.searchsorted(self.starts, times, side="right") - 1]


def local_moments(local: np.ndarray, clock: Clock) -> np.ndarray:
    """Moments of local times: one that does not exist is moved behind the gap, of one that exists twice the first."""
    guess = local - clock.offsets[np.searchsorted(clock.starts, local - clock.offsets[0], side="right") - 1]
    earlier = local - clock.offsets[np.searchsorted(clock.starts, guess - DAY, side="right") - 1]
    later = local - clock.offsets[np.searchsorted(clock.starts, guess + DAY, side="right") - 1]
    # The first of two, and the offset before the change for none.
    for candidate in (later, earlier):
        guess = np.where(clock.local(candidate) == local, candidate, guess)
    return np.where(clock.local(guess) == local, guess, earlier)


def zone_of(times: np.ndarray, offsets: np.ndarray) -> str | None:
    """A zone whose clock has the offsets given, of those that most files come from; None if none has.

    Args:
        times: ``int64 [N]``, nanoseconds in UTC.
        offsets: ``int64 [N]``, nanoseconds.
    """
    for zone in PLACES:
        if bool((clock(zone, int(times.min()), int(times.max())).local(times) - times == offsets).all()):
            return zone
    return None


def check_zone(zone: str) -> None:
    """Check the name of a time zone.

    Raises:
        InputError: If there is none of this name.
    """
    if fixed_offset(zone) is not None:
        return
    try:
        zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InputError(
            f"{zone!r} is not a time zone",
            where="data.timezone",
            remedy="an IANA name such as Europe/Berlin, or UTC+01:00",
        ) from error


def clock(zone: str, first: int, last: int) -> Clock:
    """The clock of a zone, exact between two moments (and a day around them).

    Args:
        zone: IANA name, or ``UTC+hh:mm``.
        first: Nanoseconds since 1970 in UTC.
        last: The same.
    """
    fixed = fixed_offset(zone)
    if fixed is not None:
        return Clock(np.array([np.iinfo(np.int64).min]), np.array([fixed]))
    days = np.arange(first - 2 * DAY, last + 3 * DAY, DAY)
    offsets = _offsets(days, zone)
    changed = np.flatnonzero(np.diff(offsets))
    before, after = days[changed], days[changed + 1]
    old = offsets[changed]
    while len(before) and (after - before).max() > SECOND:  # by halves, down to the second
        middle = before + (after - before) // (2 * SECOND) * SECOND
        still = _offsets(middle, zone) == old
        before, after = np.where(still, middle, before), np.where(still, after, middle)
    return Clock(
        np.concatenate([[np.iinfo(np.int64).min], after]).astype(np.int64),
        np.concatenate([offsets[:1], offsets[changed + 1]]),
    )


def clock_names(zone: str) -> dict[str, int]:
    """What the clocks of a zone are called, such as CET and CEST, and their offsets from UTC in nanoseconds."""
    if fixed_offset(zone) is not None:
        return {}
    place, names = zoneinfo.ZoneInfo(zone), {}
    for month in range(12 * 68):  # the latest meaning of a name is the one that counts
        moment = datetime(1970 + month // 12, 1 + month % 12, 15, tzinfo=place)
        names[str(moment.tzname())] = int((moment.utcoffset() or timedelta()).total_seconds()) * SECOND
    return names


class Moments(NamedTuple):
    """Wall-clock times as moments.

    Attributes:
        times: ``int64 [N]``, nanoseconds in UTC.
        fold: Boolean ``[N]``, True where the wall clock shows the time twice.
        gap: Boolean ``[N]``, True where it never shows the time.
        once: Boolean ``[N]``, True for a time of a fold that nothing tells which of the two it is.
    """

    times: np.ndarray
    fold: np.ndarray
    gap: np.ndarray
    once: np.ndarray


def moments(wall: np.ndarray, series: np.ndarray, zone: str) -> Moments:
    """Find the moments of wall-clock times, by the order of the rows where the clock shows a time twice.

    Within a fold, rows of a series count as the first pass until the clock falls back; a pass that stands alone is
    taken for the first.

    Args:
        wall: ``int64 [N]``, nanoseconds of the local clock, in the order of the file.
        series: ``int [N]``, number of the series of each row.
        zone: IANA name, or ``UTC+hh:mm``.
    """
    none = np.zeros(len(wall), dtype=bool)
    pieces = clock(zone, int(wall.min()) - DAY, int(wall.max()) + DAY)
    if len(pieces.starts) == 1:
        return Moments(wall - pieces.offsets[0], none, none, none)
    changes, old, new = pieces.starts[1:], pieces.offsets[:-1], pieces.offsets[1:]
    # A piece begins on the wall clock where the old one ends or the new one begins, whichever is later.
    begins = changes + np.maximum(old, new)
    piece = np.searchsorted(begins, wall, side="right")  # by the last change that is over
    upcoming = np.minimum(piece, len(changes) - 1)
    inside = (piece < len(changes)) & (wall >= (changes + np.minimum(old, new))[upcoming])
    fold = inside & (new < old)[upcoming]
    gap = inside & (new > old)[upcoming]
    times = wall - pieces.offsets[piece]
    once = none
    if fold.any():
        second, once_rows = _second_pass(wall[fold], series[fold], upcoming[fold], _descending(wall, series))
        rows = np.flatnonzero(fold)
        times[rows[second]] = wall[rows[second]] - new[upcoming[rows[second]]]
        once = none.copy()
        once[rows[once_rows]] = True
    return Moments(times, fold, gap, once)


def _second_pass(
    wall: np.ndarray, series: np.ndarray, change: np.ndarray, descending: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Which rows of folds belong to the second pass, and which to a pass that stands alone, boolean each."""
    order = np.lexsort((change, series))  # stable: the rows of one fold stay in the order of the file
    if descending:
        order = np.lexsort((-np.arange(len(wall)), change, series))
    w, group = (
        wall[order],
        np.concatenate([[0], np.cumsum((np.diff(series[order]) != 0) | (np.diff(change[order]) != 0))]),
    )
    back = np.concatenate([[False], (np.diff(w) <= 0) & (np.diff(group) == 0)])
    falls = np.cumsum(back)
    first = np.searchsorted(group, group)  # first row of each group
    passed = falls - falls[first]
    second, once = np.zeros(len(wall), dtype=bool), np.zeros(len(wall), dtype=bool)
    second[order] = passed > 0
    once[order] = (np.bincount(group, weights=passed) == 0)[group]
    return second, once


def _descending(wall: np.ndarray, series: np.ndarray) -> bool:
    """Whether the newest rows come first."""
    same = np.diff(series) == 0
    steps = np.sign(np.diff(wall))[same]
    return bool(steps.sum() < 0)


def fixed_offset(zone: str) -> int | None:
    """Nanoseconds of ``UTC``, ``UTC+01:00`` and the like; None for the name of a place."""
    if zone == "UTC":
        return 0
    if zone.startswith("UTC") and len(zone) == 9 and zone[3] in "+-" and zone[6] == ":":
        hours, minutes = zone[4:6], zone[7:9]
        if hours.isdigit() and minutes.isdigit():
            return (1 if zone[3] == "+" else -1) * (int(hours) * 60 + int(minutes)) * 60 * SECOND
    return None


def _offsets(times: np.ndarray, zone: str) -> np.ndarray:
    stamps = pd.DatetimeIndex(times.astype("datetime64[ns]"))
    local = stamps.tz_localize("UTC").tz_convert(zone).tz_localize(None)
    return local.as_unit("ns").astype("int64").to_numpy() - times
