"""Attention from the lookback to the requested times: patch tokens, an encoder, and a generative decoder.

Patches after Nie et al. 2023 ("PatchTST"); a decoder whose queries are the requested times, all at once, after Zhou et
al. 2021 ("Informer"). Rotary positions are elapsed times (Su et al. 2021), so that nothing needs to be regular.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from common.attention import Attention
from common.blocks import DecoderBlock, Distil, EncoderBlock, FeedForward
from common.stacks import Encoder
from forecasting.encodings import future_features, history_features
from forecasting.inputs import Inputs
from forecasting.windows import Batch


class Backbone(nn.Module):
    """One number for each requested time, in units of the window's spread.

    Args:
        inputs: What the model is given.
        dim: Width of a token.
        heads: Number of attention heads.
        layers: Number of encoder blocks.
        patch: Rows in a token.
        dropout: Probability of dropping a feature in training.
        distil: Whether the tokens are halved between two blocks.
        mechanism: Mechanism of the encoder's attention, and its options.
    """

    def __init__(
        self,
        inputs: Inputs,
        *,
        dim: int,
        heads: int,
        layers: int,
        patch: int,
        dropout: float,
        distil: bool,
        **mechanism: Any,
    ) -> None:
        super().__init__()
        self.patch = min(patch, inputs.lookback)
        self.inlet = nn.Linear(self.patch * inputs.history, dim)
        blocks: list[EncoderBlock | Distil] = []
        for layer in range(layers):
            if layer and distil:
                blocks.append(Distil(dim))
            attention = Attention(dim, heads, position="rotary", **mechanism)
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
        self.norm = nn.LayerNorm(dim)
        self.out = nn.Linear(dim, 1)

    def forward(self, batch: Batch, values: Tensor) -> Tensor:
        """Answer.

        Args:
            batch: The windows.
            values: ``[B, L]``, normalised.

        Returns:
            ``[B, H]``.
        """
        memory, real, times = self._encode(history_features(batch, values), batch)
        asked = self.request(future_features(batch))  # [B, H, dim]
        decoded = self.decoder(
            asked, memory, memory_padding_mask=real, positions=batch.future_steps, memory_positions=times
        )
        return self.out(self.norm(decoded)).squeeze(-1)

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
