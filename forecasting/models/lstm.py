"""LSTM baseline: a recurrent encoder (Hochreiter & Schmidhuber 1997) with a direct multi-horizon head."""

from __future__ import annotations

from torch import Tensor, nn

from forecasting.encodings import future_features, history_features
from forecasting.inputs import Inputs
from forecasting.models.head import DirectHead
from forecasting.normalise import last_observed, spread
from forecasting.period import PeriodTable
from forecasting.windows import Batch, Windows


class LSTM(nn.Module):
    """Encodes the lookback row by row; the last state answers for all requested times.

    Args:
        inputs: What the model is given.
        dim: Width of the state.
        layers: Number of layers.
        dropout: Probability of dropping a feature between layers in training.
        period_table: Whether to take off, and add again, a learned table over the day, week or year.
    """

    def __init__(
        self,
        inputs: Inputs,
        *,
        dim: int = 64,
        layers: int = 1,
        dropout: float = 0.0,
        period_table: bool = True,
    ) -> None:
        super().__init__()
        self.use_table = period_table
        self.period = PeriodTable(learned=period_table)
        self.encoder = nn.LSTM(inputs.history, dim, layers, batch_first=True, dropout=dropout if layers > 1 else 0.0)
        self.head = DirectHead(dim, inputs)

    def forward(self, batch: Batch) -> Tensor:
        """Forecast ``[B, H]``."""
        rest = self.period.remove(batch)
        last, scale = last_observed(rest.values, rest.observed), spread(rest.values, rest.observed)
        states, _ = self.encoder(history_features(rest, (rest.values - last) / scale))  # [B, L, dim]
        return self.period(batch.future_phases) + last + scale * self.head(states[:, -1], future_features(batch))

    def solve(self, training: Windows, validation: Windows) -> None:  # noqa: ARG002 - the signature of all models
        """Start the table from the mean of each phase."""
        if self.use_table:
            self.period.solve(training)
