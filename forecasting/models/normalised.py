"""What all networks start from: the period table taken off, and each window around its last value and by its spread."""

from __future__ import annotations

from torch import Tensor, nn

from forecasting.normalise import last_observed, spread
from forecasting.period import PeriodTable
from forecasting.windows import Batch, Windows


class Normalised(nn.Module):
    """``table(future) + last + spread * network``: a baseline's network is given what that of the informer is given.

    Args:
        network: Maps a batch and its normalised values ``[B, L]`` to ``[B, H]``; zero before training, so that this
            starts from the last value.
        period_table: Whether to take off, and add again, a learned table over the day, week or year.
    """

    def __init__(self, network: nn.Module, *, period_table: bool = True) -> None:
        super().__init__()
        self.use_table = period_table
        self.period = PeriodTable(learned=period_table)
        self.network = network

    def forward(self, batch: Batch) -> Tensor:
        """Forecast ``[B, H]``."""
        rest = self.period.remove(batch)
        last, scale = last_observed(rest.values, rest.observed), spread(rest.values, rest.observed)
        return self.period(batch.future_phases) + last + scale * self.network(rest, (rest.values - last) / scale)

    def solve(self, training: Windows, validation: Windows) -> None:  # noqa: ARG002 - the signature of all models
        """Start the table from the mean of each phase."""
        if self.use_table:
            self.period.solve(training)
