"""LSTM baseline with attention: an encoder-decoder with additive attention (Bahdanau et al. 2015)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from common.attention import Attention
from forecasting.encodings import future_features, history_features
from forecasting.inputs import Inputs
from forecasting.windows import Batch

MOST_PAIRS = 1 << 20  # queries times keys, of all windows of a batch, whose scores are in memory at a time


class LSTMA(nn.Module):
    """Encodes the lookback row by row; a second LSTM goes over the requested times, and looks back by attention.

    The decoder is given the requested times and not its own last answer, so that errors do not add up, and attention
    follows its states, which are then all known at once.

    Args:
        inputs: What the model is given.
        dim: Width of the states.
        layers: Number of layers of encoder and decoder.
        dropout: Probability of dropping a feature between layers in training.
    """

    def __init__(self, inputs: Inputs, *, dim: int = 64, layers: int = 1, dropout: float = 0.0) -> None:
        super().__init__()
        dropout = dropout if layers > 1 else 0.0
        self.encoder = nn.LSTM(inputs.history, dim, layers, batch_first=True, dropout=dropout)
        self.decoder = nn.LSTM(inputs.future, dim, layers, batch_first=True, dropout=dropout)
        self.attention = Attention(dim, 1, mechanism="additive")
        self.mix = nn.Linear(2 * dim, dim)
        self.out = nn.Linear(dim, 1)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, batch: Batch, values: Tensor) -> Tensor:
        """``[B, L]`` to ``[B, H]``."""
        memory, state = self.encoder(history_features(batch, values))  # [B, L, dim]
        asked, _ = self.decoder(future_features(batch), state)  # [B, H, dim]
        size = max(1, MOST_PAIRS // (memory.shape[0] * memory.shape[1]))
        # The scores of all pairs would not fit, so those of some are worked out anew for the gradient.
        found = [checkpoint(self.attention, part, memory, use_reentrant=False) for part in asked.split(size, dim=1)]
        return self.out(torch.tanh(self.mix(torch.cat((asked, torch.cat(found, dim=1)), dim=-1)))).squeeze(-1)
