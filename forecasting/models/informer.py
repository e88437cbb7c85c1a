"""The forecaster: a linear floor in closed form, and beside it sparse attention behind a gate.

After Zhou et al. 2021 ("Informer"): ProbSparse encoder with distilling, and a generative decoder whose
queries are the requested times. What differs is said in docs/architecture.md.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from common.attention import Attention
from common.blocks import DecoderBlock, Distil, EncoderBlock, FeedForward
from common.stacks import Encoder
from forecasting.encodings import future_features, history_features
from forecasting.inputs import Inputs
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
        self.patch = min(patch, inputs.lookback)
        self.floor = Floor(inputs, period_table=period_table, linear=linear, learned=True)
        self.inlet = nn.Linear(self.patch * inputs.history, dim)
        blocks: list[EncoderBlock | Distil] = []
        for layer in range(layers):
            if layer:
                blocks.append(Distil(dim))
            attention = Attention(dim, heads, mechanism="probsparse", factor=factor, position="rotary")
            feed_forward = FeedForward(dim, dropout=dropout)
            blocks.append(EncoderBlock(dim, attention=attention, feed_forward=feed_forward, dropout=dropout))
        self.encoder = Encoder(blocks)
        self.request = nn.Linear(inputs.future, dim)
        self.decoder = DecoderBlock(
            dim,
            attention=Attention(dim, heads, position="rotary"),
            cross=Attention(dim, heads, position="rotary"),
            feed_forward=FeedForward(dim, dropout=dropout),
            dropout=dropout,
        )
        self.out = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 1))
        self.gate = nn.Parameter(torch.zeros(()))

    def forward(self, batch: Batch) -> Tensor:
        """Forecast ``[B, H]``."""
        floor, rest = self.floor(batch)
        last, scale = last_observed(rest.values, rest.observed), spread(rest.values, rest.observed)
        memory, real, times = self._encode(history_features(rest, (rest.values - last) / scale), rest)
        asked = self.request(future_features(batch))  # [B, H, dim]
        decoded = self.decoder(
            asked, memory, memory_padding_mask=real, positions=batch.future_steps, memory_positions=times
        )
        return floor + self.gate * scale * self.out(decoded).squeeze(-1)

    def solve(self, training: Windows, validation: Windows) -> None:
        """Set the floor to its solution on the training windows."""
        self.floor.solve(training, validation)

    def _encode(self, rows: Tensor, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """Tokens ``[B, S, dim]`` of the lookback, which of them are real ``[B, S]``, and their times ``[B, S]``."""
        missing = -rows.shape[1] % self.patch
        rows = nn.functional.pad(rows, (0, 0, missing, 0))
        # [B, L, features] -> [B, S, patch, features] -> [B, S, patch features]
        tokens = self.inlet(rows.unflatten(1, (-1, self.patch)).flatten(2))
        real = nn.functional.pad(batch.observed, (missing, 0)).unflatten(1, (-1, self.patch)).any(dim=2)
        # A token stands at its last row; the padding before the first row never is.
        times = batch.steps[:, self.patch - 1 - missing :: self.patch]
        memory = self.encoder(tokens, key_padding_mask=real, positions=times)
        return memory, self.encoder.mask_of_output(real), self.encoder.positions_of_output(times)
