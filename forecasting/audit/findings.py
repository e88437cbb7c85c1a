"""What each series of a file is like, in figures, and what is odd about it, in words."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from forecasting.audit.periods import Period, find_periods
from forecasting.series.clock import DAY, elapsed
from forecasting.series.panel import Panel
from forecasting.series.steps import duration, slots
from forecasting.series.style import write_times

MINUTE = DAY // 1440
BLOCKS = 60
LEAST_BLOCK = 8
NEIGHBOURS = 8  # changes on either side of a shift that it is compared with, too
SHIFT = 8.0  # times the usual change from block to block
LONG = 24  # usual steps of irregular times without a row, that are said
FAR = 3.0  # times the range of nearly all values


@dataclass(frozen=True)
class SeriesAudit:
    """One series.

    Attributes:
        name: Its name.
        rows: Rows of the file, repeated times counted once.
        first: First time, as the file writes it.
        last: Last time.
        step: Usual step, in words.
        step_seconds: Usual step.
        span_seconds: From the first time to the last.
        regular: Share of the steps that are the usual one.
        gaps: Number of gaps.
        missing_times: Times that the step lets expect and the file lacks.
        longest_gap: Longest gap, in words; empty without any.
        duplicates: Rows with a time that stands already.
        missing: Share of the rows without a value.
        constant: Whether the value never changes.
        outliers: Values far outside the range of all others.
        periods: Dominant periods, the strongest first; None where they were not looked for.
        findings: What is odd, one sentence each.
    """

    name: str
    rows: int
    first: str
    last: str
    step: str
    step_seconds: float | None
    span_seconds: float
    regular: float
    gaps: int
    missing_times: int
    longest_gap: str
    duplicates: int
    missing: float
    constant: bool
    outliers: int
    periods: tuple[Period, ...] | None = None
    findings: tuple[str, ...] = field(default_factory=tuple)


def audit_series(panel: Panel, series: int, *, periods: bool) -> SeriesAudit:
    """Look at one series.

    Args:
        panel: The series, read with repeated times merged and gaps filled.
        series: Its number.
        periods: Whether to look for periods, which takes about a second.
    """
    rows = panel.rows(series)
    times, values = panel.times[rows], panel.values[rows]
    step = panel.steps[series]
    absent = panel.absent[rows] if len(panel.absent) else np.zeros(len(values), dtype=bool)
    filled = int(absent.sum())
    first, last = (_shown(each) for each in write_times(times[[0, -1]], panel.style))
    seen = values[~np.isnan(values)]
    constant = len(seen) > 1 and bool(seen.min() == seen.max())
    regular, gaps, lacking, longest = _gaps(panel, series, absent)
    found = []
    missing = round(1 - len(seen) / max(len(values) - filled, 1), 6)
    if not len(seen):
        found.append("every value is missing")
    elif len(seen) < 3:
        found.append(f"only {len(seen)} value{'' if len(seen) == 1 else 's'}: it is forecast by its last one")
    elif constant:
        found.append(f"constant at {seen[0]:g}: it is forecast by its last value")
    outliers, remark = _outliers(seen)
    found += remark
    if step is not None and not step.regular and regular < 0.95 and len(times) > 9:
        found.append(
            f"the times stand on no grid, {regular:.0%} of the steps are {duration(step.nanoseconds)}: forecasts come "
            "at such steps, or at the times that predict is given with --at"
        )
    steps = np.diff(times)
    if step is not None and not step.regular and steps.max() > LONG * step.nanoseconds:
        stamp = write_times(times[[steps.argmax()]], panel.style)[0]
        found.append(f"no row for {longest} after {_shown(stamp)}, where the usual step is {step.text()}")
    tail = len(values) - (int(np.flatnonzero(~np.isnan(values))[-1]) + 1 if len(seen) else len(values))
    if tail:
        found.append(
            f"the last {tail:,} row{'s have' if tail > 1 else ' has'} no value: forecasts begin after the last value"
        )
    hours = _hours(panel, times[~absent])
    if hours:
        found.append(hours)
    shift = _level_shift(times, values)
    if shift is not None:
        when, before, after = shift
        stamp = write_times(np.array([when]), panel.style)[0]
        found.append(f"the level shifts about {stamp}, from {before:.4g} to {after:.4g}")
    dominant = None
    if periods and step is not None and not constant:
        even = times  # of months and business days, which vary in length, the places on their grid
        if step.regular and step.kind in ("months", "business"):
            even = times[0] + slots(times, step, panel.clock()) * step.nanoseconds
        dominant = tuple(find_periods(even, values, step.nanoseconds))
    return SeriesAudit(
        name=panel.ids[series],
        rows=len(values) - filled,
        first=first,
        last=last,
        step="" if step is None else step.text(),
        step_seconds=None if step is None else step.nanoseconds / 1e9,
        span_seconds=int(elapsed(times)[-1]) / 1e9,
        regular=regular,
        gaps=gaps,
        missing_times=lacking,
        longest_gap=longest,
        duplicates=int(panel.repeats[series]) if len(panel.repeats) else 0,
        missing=missing,
        constant=constant,
        outliers=outliers,
        periods=dominant,
        findings=tuple(found),
    )


def _shown(time: object) -> str:
    return str(pd.Timestamp(time)) if isinstance(time, np.datetime64) else str(time)


def _gaps(panel: Panel, series: int, absent: np.ndarray) -> tuple[float, int, int, str]:
    """Share of usual steps, number of gaps, times lacking, and the longest gap in words."""
    times = panel.times[panel.rows(series)]
    step = panel.steps[series]
    if step is None:
        return 1.0, 0, 0, ""
    if step.regular:
        own = times[~absent]
        holes = np.flatnonzero(absent[:-1] & ~absent[1:])  # the last row of each hole
        longest = duration(int(np.diff(own).max())) if len(holes) else ""
        return round(1 - len(holes) / max(len(own) - 1, 1), 4), len(holes), int(absent.sum()), longest
    steps = np.diff(times)
    usual = np.abs(steps - step.nanoseconds) <= 0.01 * step.nanoseconds
    large = steps > 1.5 * step.nanoseconds
    lacking = int(np.round(steps[large] / step.nanoseconds - 1).sum())
    longest = duration(int(steps.max())) if large.any() else ""
    return round(float(usual.mean()), 4), int(large.sum()), lacking, longest


def _hours(panel: Panel, times: np.ndarray) -> str | None:
    """What part of the day has rows, if not all of it has."""
    clock = panel.clock().local(times) % DAY // MINUTE
    if len(times) < 100 or elapsed(times)[-1] < 3 * DAY or np.median(np.diff(times)) > DAY // 4:
        return None
    there = np.unique(clock)
    # The largest stretch of the day without any row, midnight no border.
    holes = np.diff(np.append(there, there[0] + DAY // MINUTE))
    longest = int(holes.argmax())
    if holes[longest] < 120 or holes[longest] * MINUTE < 4 * np.median(np.diff(times)):
        return None
    begin, end = int(there[(longest + 1) % len(there)]), int(there[longest])
    return f"rows stand between {begin // 60:02d}:{begin % 60:02d} and {end // 60:02d}:{end % 60:02d} of the day only"


def _outliers(seen: np.ndarray) -> tuple[int, list[str]]:
    """Values further from nearly all others than three times their range, and what they may be."""
    if len(seen) < 30:
        return 0, []
    remarks, codes = [], []
    ends = [code for code in (seen.min(), seen.max()) if (seen == code).sum() >= 3]
    rest = seen[~np.isin(seen, ends)]
    for code in ends if len(rest) >= max(30, len(seen) / 10) else []:
        times = int((seen == code).sum())
        if min(abs(rest.min() - code), abs(rest.max() - code)) > FAR * (rest.max() - rest.min()) > 0:
            codes.append(code)
            remarks.append(
                f"{code:g} stands {times:,} times far from all others: if it means missing, list it under data.missing"
            )
    rest = seen[~np.isin(seen, codes)]
    edge = max(5, len(rest) // 100)  # so many at each end do not count as usual
    low, high = np.sort(rest)[[edge, -1 - edge]]
    far = rest[(rest < low - FAR * (high - low)) | (rest > high + FAR * (high - low))] if high > low else rest[:0]
    if len(far):
        middle = float(np.median(rest))
        shown = ", ".join(f"{value:g}" for value in sorted(np.unique(far), key=lambda v: -abs(v - middle))[:3])
        values_are = "value is" if len(far) == 1 else "values are"
        remarks.append(f"{len(far):,} {values_are} far outside the usual {low:.4g} to {high:.4g}: {shown}")
    return len(far) + len(seen) - len(rest), remarks


def _level_shift(times: np.ndarray, values: np.ndarray) -> tuple[int, float, float] | None:
    """When the level changes at once and stays, and the medians before and after; None if it does not."""
    size = max(LEAST_BLOCK, -(-len(values) // BLOCKS))
    count = len(values) // size
    if count < 12:
        return None
    with np.errstate(all="ignore"):
        blocks = values[: count * size].reshape(count, size)
        there = (~np.isnan(blocks)).sum(axis=1) >= size // 2
        level = np.array([np.nanmedian(block) if good else np.nan for block, good in zip(blocks, there, strict=True)])
    changes = np.abs(np.diff(level))
    steps = changes[~np.isnan(changes)]
    usual = np.median(steps) if len(steps) else 0.0
    if not usual > 0:
        return None
    best = None
    for k in range(3, count - 3):
        before, after = level[k - 3 : k], level[k : k + 3]
        if np.isnan(before).any() or np.isnan(after).any():
            continue
        # All three blocks on one side lie beyond all three of the other, by far more than levels usually change, there
        # too: what grows changes more and more.
        jump = min(after) - max(before) if after.mean() > before.mean() else min(before) - max(after)
        around = changes[max(0, k - NEIGHBOURS) : k + NEIGHBOURS - 1]
        if jump > SHIFT * max(usual, np.nanmedian(around)) and (best is None or jump > best[0]):
            best = (jump, k, float(np.median(before)), float(np.median(after)))
    return None if best is None else (int(times[best[1] * size]), best[2], best[3])
