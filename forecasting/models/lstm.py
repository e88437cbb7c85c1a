"""LSTM baseline with direct multi-horizon output (Wen et al. 2017)."""

from __future__ import annotations

from torch import Tensor, nn

from forecasting.encodings import future_features, history_features
from forecasting.inputs import Inputs
from forecasting.models.head import DirectHead
from forecasting.windows import Batch


class LSTM(nn.Module):
    """Encodes the lookback row by row; the last state answers for all requested times.

    Args:
        inputs: What the model is given.
        dim: Width of the state.
        layers: Number of layers.
        dropout: Probability of dropping a feature between layers in training.
    """

    def __init__(self, inputs: Inputs, *, dim: int = 64, layers: int = 1, dropout: float = 0.0) -> None:
        super().__init__()
        self.encoder = nn.LSTM(inputs.history, dim, layers, batch_first=True, dropout=dropout if layers > 1 else 0.0)
        self.head = DirectHead(dim, inputs)

    def forward(self, batch: Batch, values: Tensor) -> Tensor:
        """``[B, L]`` to ``[B, H]``."""
        states, _ = self.encoder(history_features(batch, values))  # [B, L, dim]
        return self.head(states[:, -1], future_features(batch))
