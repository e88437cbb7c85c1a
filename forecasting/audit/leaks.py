"""Covariates that say what they cannot know: the target itself, shifted, or the whole day before it is over."""

from __future__ import annotations

import numpy as np

from forecasting.series.clock import DAY
from forecasting.series.panel import Panel

SHIFTS = 3
ALIKE = 0.999


def find_leaks(panel: Panel) -> list[str]:
    """Suspects among the covariates, and among the series of a wide file, one sentence each."""
    found = []
    for name, column in panel.numbers.items():
        shift = _shift(panel.values, column, panel.starts)
        if shift is not None:
            words = _words(shift, panel.values, column)
            tells = "it would give the answer away" if shift >= 0 else "it tells no more than the lookback does"
            found.append(f"covariate {name!r} is {words}: {tells}")
        elif _daily(panel, column):
            found.append(f"covariate {name!r} changes at midnight only: if it sums up a day, it is not known within it")
    lengths = np.diff(panel.starts)
    if 1 < len(lengths) <= 40 and (lengths == lengths[0]).all() and "unique_id" in panel.id_columns:
        table = panel.values.reshape(len(lengths), -1)
        for i in range(len(lengths)):
            for j in range(i + 1, len(lengths)):
                other = table[j].astype(np.float32)
                shift = _shift(table[i], other, np.array([0, lengths[0]]))
                if shift is not None:
                    words = _words(shift, table[i], other).replace("the target", repr(panel.ids[i]))
                    found.append(f"series {panel.ids[j]!r} is {words}")
    return found


def _words(shift: int, values: np.ndarray, column: np.ndarray) -> str:
    if shift == 0:
        same = np.allclose(values, column, equal_nan=True)
        return "the target itself" if same else "the target itself in another unit"
    return f"the target of {abs(shift)} {'row' if abs(shift) == 1 else 'rows'} {'later' if shift > 0 else 'before'}"


def _shift(values: np.ndarray, column: np.ndarray, starts: np.ndarray) -> int | None:
    """By how many rows a column is the values shifted (up to scale), None if it is not."""
    longest = int(np.diff(starts).argmax())  # one series will do
    rows = slice(int(starts[longest]), int(starts[longest + 1]))
    y, x = values[rows], column[rows].astype(np.float64)
    best = None
    for shift in (0, *(s for k in range(1, SHIFTS + 1) for s in (k, -k))):
        later, own = (y[shift:], x[: len(x) - shift]) if shift >= 0 else (y[:shift], x[-shift:])
        both = ~np.isnan(later) & ~np.isnan(own)
        if both.sum() < 30:
            continue
        a, b = later[both], own[both]
        if a.std() == 0 or b.std() == 0:
            continue
        # Differences too, since two trends are alike without one being the other.
        steps = np.diff(a), np.diff(b)
        if min(s.std() for s in steps) == 0:
            continue
        alike = min(abs(np.corrcoef(a, b)[0, 1]), abs(np.corrcoef(*steps)[0, 1]))
        if alike > ALIKE and (best is None or alike > best[0] + 1e-9):
            best = (alike, shift)
    return None if best is None else best[1]


def _daily(panel: Panel, column: np.ndarray) -> bool:
    """Whether a column of a series of several rows a day hardly ever changes within a day."""
    rows = panel.rows(0)
    step = panel.steps[0]
    if step is None or step.nanoseconds * 4 > DAY or rows.stop - rows.start < 100:
        return False
    days = panel.clock().local(panel.times[rows]) // DAY
    values = column[rows]
    there = ~np.isnan(values)
    days, values = days[there], values[there]
    within = np.diff(days) == 0
    changes = np.diff(values) != 0
    return bool(changes.any()) and bool(changes[within].mean() < 0.001) and bool(changes[~within].mean() > 0.5)
