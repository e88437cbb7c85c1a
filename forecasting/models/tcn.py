"""TCN baseline: dilated causal convolutions on residual paths (Bai, Kolter & Koltun 2018)."""

from __future__ import annotations

import math

from torch import Tensor, nn
from torch.nn.functional import pad

from forecasting.encodings import future_features, history_features
from forecasting.inputs import Inputs
from forecasting.models.head import DirectHead
from forecasting.normalise import last_observed, spread
from forecasting.period import PeriodTable
from forecasting.windows import Batch, Windows


class TCN(nn.Module):
    """As many levels of doubling dilation as it takes to see the whole lookback.

    Args:
        inputs: What the model is given.
        dim: Number of channels.
        kernel: Width of a kernel.
        dropout: Probability of dropping a channel's value in training.
        period_table: Whether to take off, and add again, a learned table over the day, week or year.
    """

    def __init__(
        self,
        inputs: Inputs,
        *,
        dim: int = 32,
        kernel: int = 3,
        dropout: float = 0.0,
        period_table: bool = True,
    ) -> None:
        super().__init__()
        self.use_table = period_table
        self.period = PeriodTable(learned=period_table)
        # Two convolutions a level reach 2 (kernel - 1) (2^levels - 1) rows back.
        levels = max(1, math.ceil(math.log2(inputs.lookback / (2 * (kernel - 1)) + 1)))
        self.inlet = nn.Linear(inputs.history, dim)
        self.levels = nn.ModuleList(_Level(dim, kernel, 2**level, dropout) for level in range(levels))
        self.head = DirectHead(dim, inputs)

    def forward(self, batch: Batch) -> Tensor:
        """Forecast ``[B, H]``."""
        rest = self.period.remove(batch)
        last, scale = last_observed(rest.values, rest.observed), spread(rest.values, rest.observed)
        rows = self.inlet(history_features(rest, (rest.values - last) / scale)).transpose(1, 2)  # [B, dim, L]
        for level in self.levels:
            rows = level(rows)
        return self.period(batch.future_phases) + last + scale * self.head(rows[:, :, -1], future_features(batch))

    def solve(self, training: Windows, validation: Windows) -> None:  # noqa: ARG002 - the signature of all models
        """Start the table from the mean of each phase."""
        if self.use_table:
            self.period.solve(training)


class _Level(nn.Module):
    def __init__(self, dim: int, kernel: int, dilation: int, dropout: float) -> None:
        super().__init__()
        self.reach = (kernel - 1) * dilation
        self.first = nn.utils.parametrizations.weight_norm(nn.Conv1d(dim, dim, kernel, dilation=dilation))
        self.second = nn.utils.parametrizations.weight_norm(nn.Conv1d(dim, dim, kernel, dilation=dilation))
        self.activation = nn.Sequential(nn.ReLU(), nn.Dropout(dropout))

    def forward(self, rows: Tensor) -> Tensor:
        """``[B, dim, L]`` to ``[B, dim, L]``, no output seeing a later row."""
        inner = self.activation(self.first(pad(rows, (self.reach, 0))))
        inner = self.activation(self.second(pad(inner, (self.reach, 0))))
        return (rows + inner).relu()
