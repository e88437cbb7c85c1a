"""Hourly series whose truth is known: trend, day, week and noise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

DAY, WEEK = 24, 168  # hours


def sine_series(*, series: int, rows: int, seed: int) -> pd.DataFrame:
    """Make several hourly series in long form.

    Each is ``level + slope * t + daily * sin(2 pi t / 24 + phase) + weekly * sin(2 pi t / 168 + phase) + noise``
    with its own level, slope, amplitudes and phases, and Gaussian noise of a standard deviation of 1.

    Args:
        series: Number of series.
        rows: Hours of each.
        seed: Seed of everything drawn.

    Returns:
        Columns ``unique_id``, ``ds`` (hourly from 2024-01-01, no time zone) and ``y`` (four decimals),
        ``series * rows`` rows.
    """
    import pandas as pd

    draw = np.random.default_rng(seed)
    hours = np.arange(rows)
    level = draw.uniform(40, 60, (series, 1))
    slope = draw.uniform(-0.002, 0.002, (series, 1))
    daily = draw.uniform(5, 10, (series, 1))
    weekly = draw.uniform(2, 4, (series, 1))
    phase = draw.uniform(0, 2 * np.pi, (2, series, 1))
    noise = draw.normal(0, 1, (series, rows))
    values = (
        level
        + slope * hours
        + daily * np.sin(2 * np.pi * hours / DAY + phase[0])
        + weekly * np.sin(2 * np.pi * hours / WEEK + phase[1])
        + noise
    )  # [series, rows]
    stamps = pd.date_range("2024-01-01", periods=rows, freq="h")
    return pd.DataFrame(
        {
            "unique_id": np.repeat([f"sine-{number}" for number in range(1, series + 1)], rows),
            "ds": np.tile(stamps, series),
            "y": values.round(4).ravel(),  # [series * rows]
        }
    )
