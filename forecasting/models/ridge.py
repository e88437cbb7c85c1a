"""The linear baseline: the floor alone."""

from __future__ import annotations

from torch import Tensor, nn

from forecasting.inputs import Inputs
from forecasting.models.floor import Floor
from forecasting.windows import Batch, Windows


class Ridge(nn.Module):
    """Linear in the lookback and the covariates, in closed form, with the penalty chosen on validation.

    Args:
        inputs: What the model is given.
        period_table: Whether to try a table over the day, week or year beneath it.
    """

    def __init__(self, inputs: Inputs, *, period_table: bool = True) -> None:
        super().__init__()
        self.floor = Floor(inputs, period_table=period_table, linear=True, learned=False)

    def forward(self, batch: Batch) -> Tensor:
        """Forecast ``[B, H]``."""
        return self.floor(batch)[0]

    def solve(self, training: Windows, validation: Windows) -> None:
        """Set table and weights to their solution on the training windows."""
        self.floor.solve(training, validation)
