"""Periods of a series and how strong they are: Lomb-Scargle finds them, the autocorrelation weighs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from forecasting.series.clock import DAY, elapsed
from forecasting.series.steps import duration

MOST_POINTS = 2500
LEAST_POWER = 0.05
LEAST_STRENGTH = 0.2
LEAST_CYCLES = 8
"""Of a period that another one hides."""
CALENDAR = {"day": DAY, "week": 7 * DAY, "year": int(365.2425 * DAY)}


@dataclass(frozen=True)
class Period:
    """A period of a series.

    Attributes:
        nanoseconds: Its length.
        strength: Autocorrelation at this lag after the trend is taken off, and waves that hide it, in ``[-1, 1]``.
        power: Share of the variance that a sine of this period takes, in ``[0, 1]``.
    """

    nanoseconds: int
    strength: float
    power: float

    @property
    def calendar(self) -> str | None:
        """``day``, ``week`` or ``year`` if it is one of them."""
        return next((name for name, x in CALENDAR.items() if abs(self.nanoseconds / x - 1) < 0.02), None)

    def text(self) -> str:
        """In words, such as ``day 0.93`` or ``12.42 hours 0.40``."""
        return f"{self.calendar or duration(self.nanoseconds)} {self.strength:.2f}"


def find_periods(times: np.ndarray, values: np.ndarray, step: int) -> list[Period]:
    """The periods of a series, the strongest first.

    Args:
        times: ``int64 [N]``, nanoseconds, increasing, regular or not.
        values: ``[N]``, NaN where missing.
        step: The usual step, in nanoseconds.
    """
    seen = ~np.isnan(values)
    times, values = times[seen], values[seen]
    if len(values) < 16 or values.min() == values.max():
        return []
    # A few values far off, such as codes for missing ones, would drown every period.
    low, high = np.quantile(values, (0.02, 0.98))
    if low < high:
        values = np.clip(values, low - (high - low) / 2, high + (high - low) / 2)
    found: list[int] = []
    # The whole span in few points shows long periods, the last points as they are the short ones.
    views = _views(times, values)
    for i, (stamps, part) in enumerate(views):
        # Means of neighbours mirror faster waves into periods of a few points, which the other view shows right.
        found += _peaks(stamps, part, least=5 if i < len(views) - 1 else 2)
    grid, length = _grid(times, values, step)
    whole = _autocorrelation(grid)
    # The calendar first, since what lies close to one of its cycles is that cycle.
    candidates = [*(x for x in CALENDAR.values() if 2 * step <= x), *found]
    periods: dict[int, Period] = {}
    for candidate in candidates:
        lag = round(candidate / length)
        correlation = whole
        if not 2 <= lag <= len(correlation) // (2 if candidate in CALENDAR.values() else 4):
            continue
        # The correlation must peak there, too; the peak of a long period is broad in the spectrum.
        best = _peak(correlation, lag)
        slack = max(0.5 * length, 0.02 * candidate)
        if abs(best * length - candidate) > slack or correlation[best] < LEAST_STRENGTH:
            # Another wave of its own may hide it, which is then taken off.
            rest = _without_others(grid, length, candidate, found)
            correlation = whole if rest is None else _autocorrelation(rest)
            best = _peak(correlation, lag)
            if rest is None or abs(best * length - candidate) > slack:
                continue
        strength = float(correlation[best])
        power = max(_power(*view, candidate) for view in views)
        # A cycle of the calendar need not be a sine, but some harmonic of it must be there.
        if (
            candidate in CALENDAR.values()
            and max(power, *(_power(*v, candidate / k) for v in views for k in (2, 3, 7))) < 0.01
        ):
            continue
        if candidate == CALENDAR["week"] and not _weekly(correlation, best):
            continue
        chance = 4 / np.sqrt(len(values) * (1 - lag / len(correlation)))  # noise hardly ever reaches four deviations
        if strength >= max(LEAST_STRENGTH, chance) and _stands_out(correlation, best):
            exact = candidate
            known = next((p for p in periods if abs(p / exact - 1) < 0.1), None)
            if known is None:
                periods[exact] = Period(int(exact), round(strength, 3), round(power, 3))
    return _without_multiples(sorted(periods.values(), key=lambda p: -(p.strength + p.power)))[:3]


def _views(times: np.ndarray, values: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    if len(values) <= MOST_POINTS:
        return [(times, values)]
    size = -(-len(values) // MOST_POINTS)
    whole = len(values) // size * size
    # Means of neighbours: what is left over at the beginning is dropped.
    coarse = times[-whole:].reshape(-1, size)[:, size // 2], values[-whole:].reshape(-1, size).mean(axis=1)
    return [coarse, (times[-MOST_POINTS:], values[-MOST_POINTS:])]


def _peaks(times: np.ndarray, values: np.ndarray, *, least: int) -> list[int]:
    """Periods of the highest peaks of the Lomb-Scargle periodogram (Lomb 1976, Scargle 1982)."""
    from scipy.signal import find_peaks, lombscargle

    seconds = elapsed(times) / 1e9
    span = seconds[-1]
    values = _detrended(seconds, values)
    spread = values.std()
    if spread == 0 or span == 0:
        return []
    usual = np.median(np.diff(seconds))
    count = min(2 * len(values), int(2 * span / (least * usual)))
    frequencies = np.arange(4, max(count, 5)) / (
        2 * span
    )  # from two cycles in the span to the fastest that it resolves
    power = lombscargle(seconds, values / spread, 2 * np.pi * frequencies, normalize=True)
    top, _ = find_peaks(np.pad(power, 1), height=LEAST_POWER)
    top = sorted(top - 1, key=lambda i: -power[i])[:6]
    return [int(1e9 / frequencies[i]) for i in top]


def _power(times: np.ndarray, values: np.ndarray, period: float) -> float:
    """Share of the variance that a sine takes."""
    seconds = elapsed(times) / 1e9
    rest = _detrended(seconds, values)
    total = float((rest**2).sum())
    return 1 - float((_without_waves(rest, seconds, [period / 1e9]) ** 2).sum()) / total if total else 0.0


def _detrended(seconds: np.ndarray, values: np.ndarray) -> np.ndarray:
    slope, offset = np.polyfit(seconds / max(seconds[-1], 1e-9), values, 1)
    return values - (slope * seconds / max(seconds[-1], 1e-9) + offset)


def _grid(times: np.ndarray, values: np.ndarray, step: int) -> tuple[np.ndarray, int]:
    """Values on a grid of the usual step (a multiple of it for very long spans), NaN where there is none."""
    length = step * max(1, -(-int(elapsed(times)[-1]) // (step * 200_000)))
    place = (elapsed(times) // np.uint64(length)).astype(np.int64)
    count = np.bincount(place)
    total = np.bincount(place, weights=_detrended(elapsed(times) / 1e9, values))
    return np.where(count > 0, total / np.maximum(count, 1), np.nan), length


def _autocorrelation(grid: np.ndarray) -> np.ndarray:
    """Autocorrelation of each lag, over the pairs that are there."""
    seen = ~np.isnan(grid)
    filled = np.where(seen, grid, 0.0)
    size = 1 << (2 * len(grid)).bit_length()

    def products(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return np.fft.irfft(np.conj(np.fft.rfft(left, size)) * np.fft.rfft(right, size), size)[: len(grid)]

    mask = seen.astype(float)
    pairs = np.round(products(mask, mask))
    both = products(filled, filled)
    # Each lag is normalised by the variance of the values that take part in it.
    early, late = products(filled**2, mask), products(mask, filled**2)
    with np.errstate(invalid="ignore", divide="ignore"):
        result = both / np.sqrt(np.maximum(early, 0) * np.maximum(late, 0))
    return np.where(pairs >= 8, np.nan_to_num(result), 0.0)


def _peak(correlation: np.ndarray, lag: int) -> int:
    """The lag of the highest autocorrelation near another."""
    near = max(1, round(0.15 * lag))
    return lag - near + int(np.argmax(correlation[lag - near : lag + near + 1]))


def _without_others(grid: np.ndarray, length: int, period: int, found: list[int]) -> np.ndarray | None:
    """What is left without the waves of other periods, if a wave of this one is most of it; else None.

    Harmonics and multiples are a part of the period, and so is what the span cannot tell from it.
    """
    span = len(grid) * length
    if period > span / LEAST_CYCLES:  # what wanders has long waves by chance
        return None
    others = [
        other
        for other in found
        if abs(1 / other - 1 / period) > 3 / span
        and min(abs(ratio - round(ratio)) for ratio in (other / period, period / other)) > 0.02
    ]
    seen = np.flatnonzero(~np.isnan(grid))
    if not others:
        return None
    rest = grid.copy()
    rest[seen] = _without_waves(grid[seen], seen * length, others)
    left = float((_without_waves(rest[seen], seen * length, [period]) ** 2).sum())
    return rest if left < 0.5 * float((rest[seen] ** 2).sum()) else None


def _without_waves(values: np.ndarray, times: np.ndarray, periods: Sequence[float]) -> np.ndarray:
    """What the best waves of some periods leave of values, ``[N]``."""
    angles = [2 * np.pi * times / period for period in periods]
    waves = np.stack([wave for angle in angles for wave in (np.sin(angle), np.cos(angle))], axis=1)  # [N, 2 periods]
    solution, *_ = np.linalg.lstsq(waves, values, rcond=None)
    return values - waves @ solution


def _stands_out(correlation: np.ndarray, lag: int) -> bool:
    """Whether the autocorrelation falls off before the lag: a slow drift is no period."""
    return lag > 1 and bool(correlation[lag] - correlation[max(1, lag // 4) : lag].min() > 0.1)


def _weekly(correlation: np.ndarray, lag: int) -> bool:
    """Whether a week is more than seven days: stronger than six of them or eight."""
    day = round(lag / 7)
    return (
        lag + day < len(correlation) and correlation[lag] > max(correlation[lag - day], correlation[lag + day]) + 0.01
    )


def _without_multiples(periods: list[Period]) -> list[Period]:
    """Leave out multiples of a shorter period that are hardly stronger than it."""
    kept = []
    for period in periods:
        shorter = [
            other
            for other in periods
            if other.nanoseconds < period.nanoseconds
            and abs(period.nanoseconds / other.nanoseconds - round(period.nanoseconds / other.nanoseconds)) < 0.03
        ]
        if period.calendar or not any(period.strength < other.strength + 0.05 for other in shorter):
            kept.append(period)
    return kept
