"""Encodings against their formulas."""

import math

import numpy as np
import torch

from forecasting.encodings import calendar, cycle_index, future_features, history_features
from forecasting.windows import Rows


def test_calendar_is_sine_and_cosine_of_each_phase():
    got = calendar(torch.tensor([[0.25, 0.5, 0.125]]))[0]
    want = [f(2 * math.pi * phase) for f in (math.sin, math.cos) for phase in (0.25, 0.5, 0.125)]
    np.testing.assert_allclose(got, want, atol=1e-6)


def test_features_of_rows_with_a_hole_and_a_missing_value(make_panel):
    panel = make_panel([5.0, np.nan, 7.0, 8.0, 9.0, 10.0])
    panel.times[2:] += 3 * 3600 * 10**9  # three hours more before row 2
    rows = Rows(panel, centre=np.zeros(1), scale=np.ones(1))
    batch = rows.gather(torch.tensor([0]), torch.tensor([4]), lookback=4, horizon=2)
    history = history_features(batch, batch.values)[0]
    assert history[:, 0].tolist() == [5, 0, 7, 8]
    assert history[:, 1].tolist() == [1, 0, 1, 1]
    np.testing.assert_allclose(history[:, 2], np.log1p([0, 1, 4, 1]), rtol=1e-6)
    assert torch.equal(history[:, 3:], calendar(batch.phases)[0])
    future = future_features(batch)[0]
    np.testing.assert_allclose(future[:, 0], np.log1p([1, 2]), rtol=1e-6)
    assert torch.equal(future[:, 1:], calendar(batch.future_phases)[0])


def test_each_hour_of_a_week_has_its_bin():
    hours = torch.arange(168, dtype=torch.float64)
    phases = torch.stack((hours % 24 / 24, hours / 168, hours / 8766), dim=-1).float()
    assert cycle_index(phases, 1, 168).tolist() == list(range(168))
    assert cycle_index(phases, 0, 24).tolist() == list(range(24)) * 7
