"""DLinear baseline: trend and remainder of the lookback, each mapped by a linear layer (Zeng et al. 2023)."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import avg_pool1d, pad

from forecasting.encodings import future_features
from forecasting.inputs import Inputs
from forecasting.windows import Batch


class DLinear(nn.Module):
    """The sum of two linear maps, of a moving mean and of what is left, and of one of what is known ahead.

    Args:
        inputs: What the model is given.
        kernel: Rows of the moving mean.
    """

    def __init__(self, inputs: Inputs, *, kernel: int = 25) -> None:
        super().__init__()
        self.kernel = kernel
        self.trend = nn.Linear(inputs.lookback, inputs.horizon)
        self.remainder = nn.Linear(inputs.lookback, inputs.horizon)
        self.known = nn.Linear(inputs.future, 1)
        for layer in (self.trend, self.remainder, self.known):
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, batch: Batch, values: Tensor) -> Tensor:
        """``[B, L]`` to ``[B, H]``."""
        values = values * batch.observed
        before = (self.kernel - 1) // 2
        padded = pad(
            values.unsqueeze(1), (before, self.kernel - 1 - before), mode="replicate"
        )  # [B, 1, L + kernel - 1]
        trend = avg_pool1d(padded, self.kernel, stride=1).squeeze(1)
        return self.trend(trend) + self.remainder(values - trend) + self.known(future_features(batch)).squeeze(-1)
