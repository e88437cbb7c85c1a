"""The floor: the value of one season before, by time and not by row."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from forecasting.inputs import Inputs
from forecasting.normalise import last_observed
from forecasting.period import CYCLE_DAYS
from forecasting.series.clock import DAY
from forecasting.windows import Batch, Windows


class SeasonalNaive(nn.Module):
    """Repeats the last season; which season is chosen on validation.

    The candidates are the day, the week and the year, in usual steps, where the lookback covers one and it is
    longer than a step; and the last value (no season).

    Args:
        inputs: What the model is given.
    """

    def __init__(self, inputs: Inputs) -> None:
        super().__init__()
        self.lookback = inputs.lookback
        self.register_buffer("season", torch.zeros(()))
        self.season: Tensor

    def forward(self, batch: Batch) -> Tensor:
        """Forecast ``[B, H]``."""
        if not self.season:
            return last_observed(batch.values, batch.observed).expand(-1, batch.future_steps.shape[1])
        # Whole seasons back from each requested time, to within the last season of the lookback. Months and days
        # differ in length, so a time up to half a step past a whole season still belongs to it.
        back = ((batch.future_steps - 0.5) / self.season).ceil().clamp(min=1) * self.season
        wanted = batch.future_steps - back  # [B, H]
        distance = (batch.steps[:, None, :] - wanted[:, :, None]).abs()  # [B, H, L]
        # Where the nearest value is missing, the nearest observed one stands in.
        distance = distance.masked_fill(~batch.observed[:, None, :], float("inf"))
        return batch.values.gather(1, distance.argmin(dim=2))

    def solve(self, training: Windows, validation: Windows) -> None:
        """Choose the season with the least absolute error on validation (on training without one)."""
        windows = validation if validation.total else training
        step = float(windows.rows.step.double().median())
        candidates = [0.0]
        for days in CYCLE_DAYS:
            season = days * DAY / step
            if 1.5 < season <= self.lookback:
                candidates.append(season)
        errors = []
        for candidate in candidates:
            self.season.fill_(candidate)
            total = sum(float(((self(batch) - batch.target).abs() * batch.target_observed).sum()) for batch in windows)
            errors.append(total)
        self.season.fill_(candidates[errors.index(min(errors))])
