"""The generated series, against what their formula says."""

import numpy as np
import pandas as pd

from datasets.sine import sine_series


def test_columns_stamps_and_ids():
    frame = sine_series(series=2, rows=50, seed=3)
    assert list(frame.columns) == ["unique_id", "ds", "y"]
    assert frame["unique_id"].tolist() == ["sine-1"] * 50 + ["sine-2"] * 50
    for _, one in frame.groupby("unique_id"):
        assert one["ds"].iloc[0] == pd.Timestamp("2024-01-01")
        assert (one["ds"].diff().dropna() == pd.Timedelta("1h")).all()


def test_the_spectrum_peaks_at_the_day_and_then_the_week():
    rows = 168 * 12
    values = sine_series(series=4, rows=rows, seed=0)["y"].to_numpy().reshape(4, rows)
    for one in values:
        trend = np.polyfit(np.arange(rows), one, 1)
        power = np.abs(np.fft.rfft(one - np.polyval(trend, np.arange(rows)))) ** 2
        assert [rows / peak for peak in np.argsort(power)[:-3:-1]] == [24, 168]


def test_what_is_left_is_noise_of_unit_variance():
    rows = 168 * 12
    hours = np.arange(rows)
    angles = [2 * np.pi * hours / period for period in (24, 168)]
    design = np.column_stack([np.ones(rows), hours, *(wave(angle) for angle in angles for wave in (np.sin, np.cos))])
    values = sine_series(series=3, rows=rows, seed=1)["y"].to_numpy().reshape(3, rows)
    weights = np.linalg.lstsq(design, values.T, rcond=None)[0]  # [6, 3]
    left = values.T - design @ weights
    np.testing.assert_allclose(left.std(axis=0), 1, atol=0.05)
    assert (np.abs(np.corrcoef(left.T) - np.eye(3)) < 0.08).all()
    daily = np.hypot(weights[2], weights[3])
    weekly = np.hypot(weights[4], weights[5])
    assert ((daily > 4.9) & (daily < 10.1)).all()
    assert ((weekly > 1.9) & (weekly < 4.1)).all()


def test_another_seed_gives_another_series():
    first, again, other = (sine_series(series=1, rows=30, seed=seed)["y"].to_numpy() for seed in (5, 5, 6))
    np.testing.assert_array_equal(first, again)
    assert not np.isclose(first, other).any()
