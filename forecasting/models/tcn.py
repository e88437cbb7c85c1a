"""TCN baseline: dilated causal convolutions on residual paths (Bai, Kolter & Koltun 2018)."""

from __future__ import annotations

import math

from torch import Tensor, nn
from torch.nn.functional import pad

from forecasting.encodings import future_features, history_features
from forecasting.inputs import Inputs
from forecasting.models.head import DirectHead
from forecasting.windows import Batch


class TCN(nn.Module):
    """As many levels of doubling dilation as it takes to see the whole lookback.

    Args:
        inputs: What the model is given.
        dim: Number of channels.
        kernel: Width of a kernel.
        dropout: Probability of dropping a channel's value in training.
    """

    def __init__(
        self,
        inputs: Inputs,
        *,
        dim: int = 32,
        kernel: int = 3,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        # Two convolutions a level reach 2 (kernel - 1) (2^levels - 1) rows back.
        levels = max(1, math.ceil(math.log2(inputs.lookback / (2 * (kernel - 1)) + 1)))
        self.inlet = nn.Linear(inputs.history, dim)
        self.levels = nn.ModuleList(_Level(dim, kernel, 2**level, dropout) for level in range(levels))
        self.head = DirectHead(dim, inputs)

    def forward(self, batch: Batch, values: Tensor) -> Tensor:
        """``[B, L]`` to ``[B, H]``."""
        rows = self.inlet(history_features(batch, values)).transpose(1, 2)  # [B, dim, L]
        for level in self.levels:
            rows = level(rows)
        return self.head(rows[:, :, -1], future_features(batch))


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
