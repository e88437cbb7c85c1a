"""What a file's times say of daylight saving: a clock that is changed, one that is not, and habits that follow one."""

from __future__ import annotations

import numpy as np

from forecasting.series.clock import DAY, HOUR, clock, local_moments
from forecasting.series.panel import Panel
from forecasting.series.style import write_times

ZONES = (
    "Europe/Berlin", "Europe/London", "America/New_York", "Australia/Melbourne", "Pacific/Auckland", "America/Santiago",
)  # fmt: skip
"""One zone for each rule by which clocks are changed; others change at the same moments."""
AROUND = 21  # days on each side of a change whose habits are compared
LEAST_GAIN = 0.002  # of correlation, by which habits must follow the changed clock better


def find_clock(panel: Panel, *, zone_stated: bool) -> tuple[list[str], str | None]:
    """What the times say of daylight saving, one sentence each, and a zone to state, if they tell.

    Args:
        panel: The series.
        zone_stated: Whether the local zone is known.
    """
    step = panel.steps[0]
    if step is None or step.nanoseconds > HOUR or zone_stated or len(panel.times) < 100:
        return [], None
    times = panel.times[panel.rows(0)]
    absent = panel.absent[panel.rows(0)] if len(panel.absent) else np.zeros(len(times), dtype=bool)
    own = times[~absent]
    found = _lost_hours(panel, own, step.nanoseconds)
    if not panel.style.aware:
        followed = [zone for zone in ZONES if _is_followed(own, zone, step.nanoseconds)]
        if followed and len(panel.ids) > 1:  # by all series
            everywhere = np.unique(panel.times[~panel.absent] if len(panel.absent) else panel.times)
            followed = [zone for zone in followed if not _shown_never(everywhere, zone).any()]
        if followed:
            found.append(f"the clock of the file is changed as in {followed[0]}: state it, or another zone of its rule")
            return found, followed[0]
    habits = _habits(times, panel.values[panel.rows(0)])
    if habits is not None:
        kind = "times are in UTC" if panel.style.aware else "the clock of the file is never changed"
        found.append(f"{kind}, but habits follow daylight saving as in {habits} or another zone of its rule")
    return found, habits if panel.style.aware else None


def _shown_never(wall: np.ndarray, zone: str) -> np.ndarray:
    """Which times lie in an hour that the clock of a zone leaves out, boolean ``[N]``."""
    pieces = clock(zone, int(wall.min()) - DAY, int(wall.max()) + DAY)
    return pieces.local(local_moments(wall, pieces)) != wall


def _is_followed(wall: np.ndarray, zone: str, step: int) -> bool:
    """Whether wall-clock times leave out the hours that the zone leaves out, at least twice, and never have them."""
    pieces = clock(zone, int(wall[0]), int(wall[-1]))
    left_out, there = 0, 0
    for start, old, new in zip(pieces.starts[1:], pieces.offsets[:-1], pieces.offsets[1:], strict=True):
        if new <= old:
            continue
        begin, end = start + old, start + new
        if not wall[0] + DAY < begin < wall[-1] - DAY:
            continue
        inside = ((wall >= begin) & (wall < end)).any()
        beside = (np.abs(wall - (begin - step)) < step).any() and (np.abs(wall - end) < step).any()
        there += bool(inside)
        left_out += bool(not inside and beside)
    return left_out >= 2 and there == 0


def _lost_hours(panel: Panel, own: np.ndarray, step: int) -> list[str]:
    """Single hours that are missing on the day of a change."""
    holes = np.flatnonzero(np.diff(own) == HOUR + step)
    if not 0 < len(holes) <= 50:
        return []
    hits = []
    for zone in ZONES:
        pieces = clock(zone, int(own[0]), int(own[-1]))
        days = (pieces.starts[1:] + pieces.offsets[1:]) // DAY
        hits.append([hole for hole in holes if (own[hole] + step) // DAY in days])
    best = int(np.argmax([len(hit) for hit in hits]))
    if not hits[best] or 2 * len(hits[best]) < len(holes):
        return []
    stamp = write_times(own[hits[best][:1]] + step, panel.style)[0]
    return [
        f"{len(hits[best])} single hour{'s' if len(hits[best]) > 1 else ''} missing on days on which the clock changes "
        f"in {ZONES[best]}, first {stamp}"
    ]


def _habits(times: np.ndarray, values: np.ndarray) -> str | None:
    """The zone whose changes of the clock the daily profile follows, None if it stays where it is."""
    best: tuple[float, str] | None = None
    for zone in ZONES:
        pieces = clock(zone, int(times[0]), int(times[-1]))
        gains = []
        for start, old, new in zip(pieces.starts[1:], pieces.offsets[:-1], pieces.offsets[1:], strict=True):
            before = _profile(times, values, start - AROUND * DAY, start)
            after = _profile(times, values, start, start + AROUND * DAY)
            if before is None or after is None:
                continue
            shift = round((new - old) / HOUR)
            stays, follows, against = (_alike(before, np.roll(after, s)) for s in (0, shift, -shift))
            gains.append(follows - max(stays, against))
        if len(gains) >= 2 and np.mean(np.array(gains) > 0) > 0.75:
            gain = float(np.median(gains))
            if gain > LEAST_GAIN and (best is None or gain > best[0]):
                best = (gain, zone)
    return None if best is None else best[1]


def _profile(times: np.ndarray, values: np.ndarray, begin: int, end: int) -> np.ndarray | None:
    """Mean of each hour of the day, None where one has too few values."""
    inside = (times >= begin) & (times < end) & ~np.isnan(values)
    hour = times[inside] // HOUR % 24
    count = np.bincount(hour, minlength=24)
    if count.min() < AROUND // 2:
        return None
    return np.bincount(hour, weights=values[inside], minlength=24) / count


def _alike(one: np.ndarray, other: np.ndarray) -> float:
    if one.std() == 0 or other.std() == 0:
        return 0.0
    return float(np.corrcoef(one, other)[0, 1])
