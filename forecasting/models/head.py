"""The head of the recurrent and convolutional baselines: all requested times at once from one summary."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu

from common.positions import LearnedPosition
from forecasting.inputs import Inputs


class DirectHead(nn.Module):
    """Direct multi-horizon output: the summary meets the features of each requested time.

    Args:
        dim: Width of the summary.
        inputs: What the model is given.
    """

    def __init__(self, dim: int, inputs: Inputs) -> None:
        super().__init__()
        self.time = nn.Linear(inputs.future, dim)
        self.place = LearnedPosition(inputs.horizon, dim)
        self.mix = nn.Linear(2 * dim, dim)
        self.out = nn.Linear(dim, 1)
        # Training starts from the last value, and not from noise around it.
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, summary: Tensor, future: Tensor) -> Tensor:
        """``[B, dim]`` and ``[B, H, features]`` to ``[B, H]``."""
        query = self.time(future) + self.place(future.shape[1])  # [B, H, dim]
        both = torch.cat((summary.unsqueeze(1).expand_as(query), query), dim=-1)
        return self.out(gelu(self.mix(both))).squeeze(-1)
