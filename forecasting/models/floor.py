"""The floor: what a period table and a linear map in closed form forecast, which attention may only improve on."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from forecasting.inputs import Inputs
from forecasting.models.linear import LinearPath
from forecasting.period import PeriodTable
from forecasting.windows import Batch, Windows

LEAST_GAIN = 0.01
"""Share of the squared error on validation that the table must save to be kept: the simpler floor is the safer one."""


class Floor(nn.Module):
    """``table(future) + linear(history - table)``, the table only where validation is forecast better with it.

    Args:
        inputs: What the model is given.
        period_table: Whether to try a table over the day, week or year.
        linear: Whether to have the linear map; without it the last value is repeated.
        learned: Whether training may change the table.
    """

    def __init__(self, inputs: Inputs, *, period_table: bool, linear: bool, learned: bool) -> None:
        super().__init__()
        self.use_table, self.use_linear = period_table, linear
        self.period = PeriodTable(learned=period_table and learned)
        self.linear = LinearPath(inputs)

    def forward(self, batch: Batch) -> tuple[Tensor, Batch]:
        """Forecast ``[B, H]``, and the batch with the table taken off."""
        rest = self.period.remove(batch)
        return self.linear(rest) + self.period(batch.future_phases), rest

    @torch.no_grad()
    def solve(self, training: Windows, validation: Windows) -> None:
        """Set the table to the mean of each phase, then the map to its solution on what remains."""
        if self.use_table:
            self.period.solve(training)
        if not self.use_linear:
            return
        with_table = self.linear.solve(training, validation, prepare=self.period.remove)
        if self.period.cycle.any():
            weight, cycle = self.linear.weight.clone(), self.period.cycle.clone()
            self.period.cycle.zero_()
            without = self.linear.solve(training, validation, prepare=self.period.remove)
            if math.isnan(without) or with_table <= without * (1 - LEAST_GAIN):
                self.linear.weight.copy_(weight)
                self.period.cycle.copy_(cycle)
