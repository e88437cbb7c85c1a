"""Summaries of a comparison's scores, and how its numbers are written; used by table, verdict and figures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import fmean, median, stdev

from common.report.comparison import Comparison, Metric, Role, Row


def values(row: Row, metric: Metric) -> list[float]:
    """The finite scores of a row, one a seed; empty where the metric was not computed."""
    return [
        float(scores[metric.name])
        for scores in row.scores
        if scores.get(metric.name) is not None and math.isfinite(scores[metric.name])
    ]


def mean(row: Row, metric: Metric) -> float | None:
    """Mean score over seeds."""
    scores = values(row, metric)
    return fmean(scores) if scores else None


def spread(row: Row, metric: Metric) -> float | None:
    """Standard deviation over seeds (n - 1), ``None`` for fewer than two."""
    scores = values(row, metric)
    return stdev(scores) if len(scores) > 1 else None


def ranked(rows: Iterable[Row], metric: Metric, role: Role | None = None) -> list[Row]:
    """Rows of a role (or all) that have the metric, the best mean first; in order given if none is better."""
    scored = [row for row in rows if (role is None or row.role == role) and values(row, metric)]
    if metric.better is None:
        return scored
    sign = 1 if metric.better == "lower" else -1
    return sorted(scored, key=lambda row: sign * fmean(values(row, metric)))


def floor_row(comparison: Comparison) -> Row | None:
    """The row that everything is held against: the best of the floors, if there are several."""
    floors = ranked(comparison.rows, comparison.metrics[0], "floor")
    return floors[0] if floors else None


def gain(score: float, reference: float, metric: Metric) -> float | None:
    """By how many percent of the reference a score is better than it; negative: worse.

    For an error this is the skill score, ``1 - score / reference``.
    """
    if metric.better is None or reference == 0:
        return None
    change = 100 * (score - reference) / abs(reference)
    return -change if metric.better == "lower" else change


def decimals(numbers: Sequence[float], metric: Metric) -> int:
    """Decimals for a column of scores, so that the best (or the middle) one shows its significant digits."""
    pick = {"lower": min, "higher": max, None: median}[metric.better]
    shown = [abs(number) for number in numbers if number]
    if not shown:
        return metric.digits - 1
    return min(9, max(0, metric.digits - 1 - math.floor(math.log10(pick(shown)))))


def number(value: float, places: int) -> str:
    """A number with fixed decimals, or in powers of ten where that would be unreadable."""
    return f"{value:.3e}" if abs(value) >= 1e7 else f"{value:.{places}f}"


def count(value: int) -> str:
    """A count, short: 12,345 or 1.23 M."""
    for size, unit in ((1e9, "G"), (1e6, "M")):
        if value >= size:
            return f"{value / size:.2f} {unit}"
    return f"{value:,}"


def seconds(value: float) -> str:
    """A duration: 0.034 s, 12.3 s, 4.6 min, 2.1 h."""
    if value >= 5400:
        return f"{value / 3600:.1f} h"
    if value >= 120:
        return f"{value / 60:.1f} min"
    return f"{value:.1f} s" if value >= 10 else f"{value:.2g} s"


def probability(value: float) -> str:
    """A p-value: three decimals, and never zero."""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"
