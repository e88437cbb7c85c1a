"""A linear map from lookback to horizon, by ridge regression in closed form, around the last value.

That is NLinear (Zeng et al. 2023), solved and not trained, and without its intercept, which would add a mean of the
training part to every forecast, wherever the level of the series has gone since.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from forecasting.covariates import width
from forecasting.inputs import Inputs
from forecasting.normalise import last_observed
from forecasting.windows import Batch, Windows

Pairs = Iterable[tuple[Tensor, Tensor]]
PENALTIES = tuple(10.0 ** (k / 2) for k in range(-14, 5))
"""Candidates for the penalty, in units of the mean square of the inputs."""
MOST_COLUMNS = 2048
"""Most columns of covariates that enter; the rows of the lookback that are over are left out, the oldest first."""


class LinearPath(nn.Module):
    """A linear map of the lookback around its last value, and of the covariates of lookback and horizon.

    A missing value counts as equal to the last observed one.

    Args:
        inputs: What the model is given.
    """

    def __init__(self, inputs: Inputs) -> None:
        super().__init__()
        by_row = [each for each in inputs.covariates if each.role != "static"]
        self.past, self.ahead = width(by_row, ahead=False), width(by_row, ahead=True)
        if self.ahead * inputs.horizon > MOST_COLUMNS:
            self.ahead = 0
        room = MOST_COLUMNS - self.ahead * inputs.horizon
        self.rows = min(inputs.lookback, room // self.past) if self.past else 0  # of covariates, the latest
        columns = inputs.lookback + self.past * self.rows + self.ahead * inputs.horizon
        self.register_buffer("weight", torch.zeros(columns, inputs.horizon))
        self.weight: Tensor

    def forward(self, batch: Batch) -> Tensor:
        """Forecast ``[B, H]``; before :meth:`solve`, the last value."""
        last, columns = self._columns(batch)
        return last + columns @ self.weight

    @torch.no_grad()
    def solve(self, training: Windows, validation: Windows, *, prepare: Callable[[Batch], Batch]) -> float:
        """Set the weights to the ridge solution on the training windows, each batch changed by ``prepare`` first.

        Returns:
            The mean squared error on the validation windows; NaN without any.
        """

        def pairs(windows: Windows) -> Pairs:
            for batch in map(prepare, windows):
                last, columns = self._columns(batch)
                # A window whose target has a hole cannot enter the normal equations of all horizons at once.
                whole = batch.target_observed.all(dim=1)
                yield columns[whole], (batch.target - last)[whole]

        weight, error = ridge_weights(pairs(training), pairs(validation), *self.weight.shape)
        self.weight.copy_(weight)
        return error

    def _columns(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The last value ``[B, 1]``, and what the map is applied to, ``[B, columns]``."""
        last = last_observed(batch.values, batch.observed)
        parts = [(batch.values - last) * batch.observed]
        if self.rows:
            parts.append(batch.covariates[:, -self.rows :, : self.past].flatten(1))  # [B, rows, C] -> [B, rows C]
        if self.ahead:
            parts.append(batch.future_covariates[:, :, : self.ahead].flatten(1))  # [B, H, F] -> [B, H F]
        return last, torch.cat(parts, dim=1)


class Moments(NamedTuple):
    """Sums over windows, in float64: what least squares needs to know of them."""

    windows: float
    xx: Tensor
    xy: Tensor
    yy: Tensor


def moments(pairs: Pairs, inputs: int, outputs: int) -> Moments:
    """Sum products over batches of inputs ``[B, L]`` and outputs ``[B, H]``."""
    count = 0.0
    xx, xy = torch.zeros(inputs, inputs, dtype=torch.float64), torch.zeros(inputs, outputs, dtype=torch.float64)
    yy = torch.zeros((), dtype=torch.float64)
    for left, right in pairs:
        left, right = left.double(), right.double()
        count += len(left)
        xx += left.T @ left
        xy += left.T @ right
        yy += right.square().sum()
    return Moments(count, xx, xy, yy)


def ridge_weights(training: Pairs, validation: Pairs, inputs: int, outputs: int) -> tuple[Tensor, float]:
    """Solve ridge regression for every candidate penalty, and keep the one with the least squared error.

    One eigendecomposition serves all penalties, and both errors follow from sums, so that the data is passed through
    once.

    Args:
        training: Batches of inputs ``[B, L]`` and outputs ``[B, H]``.
        validation: The same, to choose the penalty by; the mildest is kept where there is none.
        inputs: ``L``.
        outputs: ``H``.

    Returns:
        Weight ``[L, H]``, float64, zeros without a training window; and its mean squared error on validation, NaN
        without a window there.
    """
    fit = moments(training, inputs, outputs)
    if not fit.windows:
        return torch.zeros(inputs, outputs), math.nan
    values, vectors = torch.linalg.eigh(fit.xx / fit.windows)
    values = values.clamp(min=0)
    unit = values.mean().clamp(min=1e-12)
    projected = vectors.T @ (fit.xy / fit.windows)
    check = moments(validation, inputs, outputs)
    solutions = (vectors @ (projected / (values + penalty * unit)[:, None]) for penalty in PENALTIES)
    error, weight = min(((_squared_error(check, weight), weight) for weight in solutions), key=lambda pair: pair[0])
    return weight, error / (check.windows * outputs) if check.windows else math.nan


def _squared_error(sums: Moments, weight: Tensor) -> float:
    """``sum (x W - y)^2`` from sums."""
    return float(((sums.xx @ weight) * weight).sum() - 2 * (sums.xy * weight).sum() + sums.yy)
