"""Transformer baseline: full attention (Vaswani et al. 2017) over patches of the lookback."""

from __future__ import annotations

from torch import Tensor, nn

from forecasting.inputs import Inputs
from forecasting.models.backbone import Backbone
from forecasting.windows import Batch


class Transformer(nn.Module):
    """What the attention of the informer is without sparsity, distilling and floor.

    Args:
        inputs: What the model is given.
        dim: Width of a token.
        heads: Number of attention heads.
        layers: Number of encoder blocks.
        patch: Rows in a token.
        dropout: Probability of dropping a feature in training.
    """

    def __init__(
        self, inputs: Inputs, *, dim: int = 64, heads: int = 4, layers: int = 2, patch: int = 8, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.attention = Backbone(
            inputs, dim=dim, heads=heads, layers=layers, patch=patch, dropout=dropout, distil=False, mechanism="full"
        )
        nn.init.zeros_(self.attention.out.weight)
        nn.init.zeros_(self.attention.out.bias)

    def forward(self, batch: Batch, values: Tensor) -> Tensor:
        """``[B, L]`` to ``[B, H]``."""
        return self.attention(batch, values)
