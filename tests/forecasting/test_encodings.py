"""Encodings against their formulas."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from forecasting.encodings import Calendar, cycle_index, cycle_phases, future_features, history_features, waves
from forecasting.series.clock import DAY, clock
from forecasting.series.steps import Step
from forecasting.windows import Rows


def test_calendar_is_sine_and_cosine_of_each_phase():
    got = waves(torch.tensor([[0.25, 0.5, 0.125]]))[0]
    want = [f(2 * math.pi * phase) for f in (math.sin, math.cos) for phase in (0.25, 0.5, 0.125)]
    np.testing.assert_allclose(got, want, atol=1e-6)


def test_features_of_rows_with_a_hole_and_a_missing_value(make_panel):
    panel = make_panel([5.0, np.nan, 7.0, 8.0, 9.0, 10.0])
    panel.times[2:] += 3 * 3600 * 10**9  # three hours more before row 2
    panel = replace(panel, steps=(Step(3600 * 10**9),))
    rows = Rows(panel, centre=np.zeros(1), scale=np.ones(1))
    batch = rows.gather(torch.tensor([0]), torch.tensor([4]), lookback=7, horizon=2)
    history = history_features(batch, batch.values)[0]
    assert history[:, 0].tolist() == [0, 0, 0, 5, 0, 7, 8]  # three rows come before the first
    assert history[:, 1].tolist() == [0, 0, 0, 1, 0, 1, 1]
    np.testing.assert_allclose(history[3:, 2], np.log1p([0, 1, 4, 1]), rtol=1e-6)
    assert torch.equal(history[:, 3:], waves(batch.phases)[0])
    future = future_features(batch)[0]
    np.testing.assert_allclose(future[:, 0], np.log1p([1, 2]), rtol=1e-6)
    assert torch.equal(future[:, 1:], waves(batch.future_phases)[0])


def test_each_hour_of_a_week_has_its_bin():
    hours = torch.arange(168, dtype=torch.float64)
    phases = torch.stack((hours % 24 / 24, hours / 168, hours / 8766), dim=-1).float()
    assert cycle_index(phases, 1, 168).tolist() == list(range(168))
    assert cycle_index(phases, 0, 24).tolist() == list(range(24)) * 7


def phases(texts, zone):
    times = np.array([pd.Timestamp(text).value for text in texts])
    return Calendar(clock(zone, times.min(), times.max()), times).phases(torch.from_numpy(times)).numpy()


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Australia/Lord_Howe", "UTC+05:30", "America/New_York"])
def test_calendar_phases_are_those_of_the_local_clock(zone):
    stamps = pd.date_range("2023-12-25", "2025-02-01", freq="47min")
    times = stamps.as_unit("ns").asi8
    got = Calendar(clock(zone, times[0], times[-1]), times).phases(torch.from_numpy(times.copy())).numpy()
    local = stamps.tz_localize("UTC").tz_convert(zone[3:] if zone.startswith("UTC+") else zone)
    day = (local.hour + local.minute / 60) / 24
    year = (local.month - 1 + (local.day - 1 + day) / local.days_in_month) / 12
    np.testing.assert_allclose(got, np.stack([day, (local.day_of_week + day) / 7, year], axis=1), atol=2e-6)


def test_phases_follow_the_clock_where_it_is_changed_and_go_on_where_it_is_not():
    # Berlin, 31 March 2024: the clock goes from 2:00 to 3:00.
    berlin = phases(["2024-03-31 00:30", "2024-03-31 01:30"], "Europe/Berlin")[:, 0] * 24
    np.testing.assert_allclose(berlin, [1.5, 3.5], atol=1e-4)
    tokyo = phases(["2024-03-31 00:30", "2024-03-31 01:30"], "Asia/Tokyo")[:, 0] * 24
    np.testing.assert_allclose(tokyo, [9.5, 10.5], atol=1e-4)
    # A period of elapsed time is not broken by any change of the clock.
    hours = torch.arange(0, 200, dtype=torch.long) * DAY // 24 + pd.Timestamp("2024-03-29").value
    period = int(12.42 * DAY / 24)
    turned = torch.diff(cycle_phases(hours, [period])[:, 0]) % 1
    np.testing.assert_allclose(turned, 1 / 12.42, atol=1e-6)


def test_months_have_twelve_phases():
    starts = [str(day) for day in pd.date_range("2023-01-01", periods=24, freq="MS")]
    assert np.floor(phases(starts, "UTC")[:, 2] * 12 + 1e-3).tolist() == [*range(12)] * 2
