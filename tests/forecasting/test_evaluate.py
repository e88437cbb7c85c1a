"""Errors of a known forecaster on a known series, missing values left out."""

import numpy as np
import torch
from torch import nn

from forecasting.evaluate import evaluate
from forecasting.fit import Forecaster
from forecasting.inputs import Inputs


class Zero(nn.Module):
    def forward(self, batch):
        return torch.zeros_like(batch.target)


def test_scores_count_what_was_observed(make_panel):
    panel = make_panel([0, 0, 1, np.nan, 3, 4.0], [0, 0, 5, 6, np.nan, 8.0])
    forecaster = Forecaster(
        kind="zero", settings={}, inputs=Inputs(lookback=2, horizon=2), levels=(80,), model=Zero(),
        widths=torch.tensor([[3.0, 4.5]], dtype=torch.float64), naive_widths=torch.zeros(1, 2),
        scales={"s0": (0.0, 1.0), "s1": (0.0, 2.0)}, spreads=(0.0, 0.0), step=1,
    )  # fmt: skip
    found = evaluate(forecaster, panel, panel.starts[:-1] + 2, panel.starts[1:])
    # Windows of s0: (1, -), (-, 3), (3, 4); of s1, halved: (2.5, 3), (3, -), (-, 4).
    errors = np.array([1, 3, 3, 4, 2.5, 3, 3, 4])
    assert found.windows == 6
    assert found.scores["mae"] == errors.mean()
    assert found.scores["rmse"] == np.sqrt(np.square(errors).mean())
    assert found.scores["coverage-80"] == 100.0
    np.testing.assert_allclose(found.by_horizon, [(1 + 3 + 2.5 + 3) / 4, (3 + 4 + 3 + 4) / 4])
    # At each origin time the two series are averaged: (1, 2.75), (3, 3), (3.5, 4).
    np.testing.assert_allclose(found.losses, [1.875, 3.0, 3.75])


def test_no_window_is_no_score(make_panel):
    panel = make_panel([1.0, 2.0, 3.0])
    forecaster = Forecaster(
        kind="zero", settings={}, inputs=Inputs(lookback=1, horizon=5), levels=(80,), model=Zero(),
        widths=torch.zeros(1, 5, dtype=torch.float64), naive_widths=torch.zeros(1, 5), scales={"s0": (0.0, 1.0)},
        spreads=(0.0, 0.0), step=1,
    )  # fmt: skip
    assert evaluate(forecaster, panel, panel.starts[:-1], panel.starts[1:]).windows == 0
