"""The forecaster: a linear floor in closed form, and beside it sparse attention behind a gate.

After Zhou et al. 2021 ("Informer"): ProbSparse encoder with distilling, and a generative decoder whose
queries are the requested times. What differs is said in docs/architecture.md.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from forecasting.inputs import Inputs
from forecasting.models.backbone import Backbone
from forecasting.models.floor import Floor
from forecasting.normalise import last_observed, spread
from forecasting.windows import Batch, Windows


class Informer(nn.Module):
    """Period table and ridge floor, plus gated attention.

    The forecast is ``table(future) + linear(history - table) + gate * spread * attention``. Table and linear map are
    set in closed form; the gate starts at zero, so training starts from the floor, and the weights kept are
    the best on validation, those of the start among them.

    Args:
        inputs: What the model is given.
        dim: Width of a token.
        heads: Number of attention heads.
        layers: Number of encoder blocks; between two of them the tokens are halved.
        patch: Rows in a token.
        factor: ProbSparse constant.
        dropout: Probability of dropping a feature in training.
        period_table: Whether to try a table over the day, week or year, and to learn it.
        linear: Whether to have the linear path; without it the forecast starts from the last value.
    """

    def __init__(
        self,
        inputs: Inputs,
        *,
        dim: int = 64,
        heads: int = 4,
        layers: int = 2,
        patch: int = 8,
        factor: float = 5.0,
        dropout: float = 0.0,
        period_table: bool = True,
        linear: bool = True,
    ) -> None:
        super().__init__()
        self.floor = Floor(inputs, period_table=period_table, linear=linear, learned=True)
        self.attention = Backbone(
            inputs, dim=dim, heads=heads, layers=layers, patch=patch, dropout=dropout, distil=True,
            mechanism="probsparse", factor=factor,
        )  # fmt: skip
        self.gate = nn.Parameter(torch.zeros(()))

    def forward(self, batch: Batch) -> Tensor:
        """Forecast ``[B, H]``."""
        floor, rest = self.floor(batch)
        last, scale = last_observed(rest.values, rest.observed), spread(rest.values, rest.observed)
        return floor + self.gate * scale * self.attention(rest, (rest.values - last) / scale)

    def solve(self, training: Windows, validation: Windows) -> None:
        """Set the floor to its solution on the training windows."""
        self.floor.solve(training, validation)
