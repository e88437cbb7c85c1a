"""Conformal widths against order statistics, and their coverage."""

import numpy as np
import torch
from torch import nn

from forecasting.calibrate import interval_widths
from forecasting.windows import Rows, Windows, origins_within


class Zero(nn.Module):
    def forward(self, batch):
        return torch.zeros_like(batch.target)


def windows_of(panel, lookback=1, horizon=2):
    found = origins_within(panel, panel.starts[:-1], panel.starts[1:], lookback=lookback, horizon=horizon)
    rows = Rows(panel, centre=np.zeros(len(panel.ids)), scale=np.ones(len(panel.ids)))
    return Windows(rows, *found, lookback=lookback, horizon=horizon, batch_size=7)


def test_width_is_the_order_statistic_of_the_observed_errors(make_panel):
    values = np.arange(12.0) * np.where(np.arange(12) % 2, 1, -1)
    values[5] = np.nan
    widths = interval_widths(Zero(), windows_of(make_panel(values)), (50, 88, 99))
    # Horizon 1 sees |1..10| less 5 (n = 9), horizon 2 |2..11| less 5 (n = 9); ranks 5, 9 and the largest.
    assert widths.tolist() == [[6.0, 7.0], [10.0, 11.0], [10.0, 11.0]]


def test_coverage_on_new_data_is_the_level(make_panel):
    generator = np.random.default_rng(0)
    old, new = make_panel(generator.standard_normal(4000)), generator.standard_normal(4000)
    widths = interval_widths(Zero(), windows_of(old, horizon=1), (80, 95))[:, 0].numpy()
    assert abs((np.abs(new) <= widths[0]).mean() - 0.80) < 0.02
    assert abs((np.abs(new) <= widths[1]).mean() - 0.95) < 0.01


def test_a_horizon_never_observed_takes_the_widest(make_panel):
    values = np.array([0.0, 1, np.nan, 0, 3, np.nan])
    panel = make_panel(values)
    rows = Rows(panel, centre=np.zeros(1), scale=np.ones(1))
    windows = Windows(rows, np.array([1]), np.array([4]), lookback=1, horizon=2, batch_size=2, every=3)
    assert interval_widths(Zero(), windows, (80,)).tolist() == [[3.0, 3.0]]
