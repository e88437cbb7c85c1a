"""Ridge regression from lookback to horizon in closed form, around the last value (NLinear, Zeng et al. 2023)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from forecasting.inputs import Inputs
from forecasting.normalise import last_observed
from forecasting.period import PeriodTable
from forecasting.windows import Batch, Windows

Pairs = Iterable[tuple[Tensor, Tensor]]
PENALTIES = tuple(10.0**k for k in range(-7, 2))
"""Candidates for the penalty, in units of the mean variance of the inputs."""


class Ridge(nn.Module):
    """Linear in the lookback after the period table is taken off, with the penalty chosen on validation.

    Args:
        inputs: What the model is given.
        period_table: Whether to take off, and add again, the mean of each phase of the day, week or year.
    """

    def __init__(self, inputs: Inputs, *, period_table: bool = True) -> None:
        super().__init__()
        self.use_table = period_table
        self.period = PeriodTable(learned=False)
        self.linear = LinearPath(inputs.lookback, inputs.horizon)

    def forward(self, batch: Batch) -> Tensor:
        """Forecast ``[B, H]``."""
        return self.linear(self.period.remove(batch)) + self.period(batch.future_phases)

    def solve(self, training: Windows, validation: Windows) -> None:
        """Set the table and the weights to their solution on the training windows."""
        if self.use_table:
            self.period.solve(training)
        self.linear.solve(training, validation, prepare=self.period.remove)


class LinearPath(nn.Module):
    """A linear map of the lookback around its last value. A missing value counts as equal to the last observed one.

    Args:
        lookback: Rows a window looks back.
        horizon: Times a window forecasts.
    """

    def __init__(self, lookback: int, horizon: int) -> None:
        super().__init__()
        self.register_buffer("weight", torch.zeros(lookback, horizon))
        self.register_buffer("bias", torch.zeros(horizon))
        self.weight: Tensor
        self.bias: Tensor

    def forward(self, batch: Batch) -> Tensor:
        """Forecast ``[B, H]``; before :meth:`solve`, the last value."""
        last = last_observed(batch.values, batch.observed)
        return last + ((batch.values - last) * batch.observed) @ self.weight + self.bias

    @torch.no_grad()
    def solve(self, training: Windows, validation: Windows, *, prepare: Callable[[Batch], Batch]) -> None:
        """Set the weights to the ridge solution on the training windows, each batch changed by ``prepare`` first."""

        def pairs(windows: Windows) -> Pairs:
            for batch in map(prepare, windows):
                last = last_observed(batch.values, batch.observed)
                # A window whose target has a hole cannot enter the normal equations of all horizons at once.
                whole = batch.target_observed.all(dim=1)
                yield ((batch.values - last) * batch.observed)[whole], (batch.target - last)[whole]

        weight, bias = ridge_weights(pairs(training), pairs(validation), *self.weight.shape)
        self.weight.copy_(weight)
        self.bias.copy_(bias)


class Moments(NamedTuple):
    """Sums over windows, in float64: what least squares needs to know of them."""

    windows: float
    x: Tensor
    y: Tensor
    xx: Tensor
    xy: Tensor
    yy: Tensor


def moments(pairs: Pairs, inputs: int, outputs: int) -> Moments:
    """Sum products over batches of inputs ``[B, L]`` and outputs ``[B, H]``."""
    count = 0.0
    x, y = torch.zeros(inputs, dtype=torch.float64), torch.zeros(outputs, dtype=torch.float64)
    xx, xy = torch.zeros(inputs, inputs, dtype=torch.float64), torch.zeros(inputs, outputs, dtype=torch.float64)
    yy = torch.zeros((), dtype=torch.float64)
    for left, right in pairs:
        left, right = left.double(), right.double()
        count += len(left)
        x += left.sum(dim=0)
        y += right.sum(dim=0)
        xx += left.T @ left
        xy += left.T @ right
        yy += right.square().sum()
    return Moments(count, x, y, xx, xy, yy)


def ridge_weights(training: Pairs, validation: Pairs, inputs: int, outputs: int) -> tuple[Tensor, Tensor]:
    """Solve ridge regression for every candidate penalty, and keep the one with the least squared error.

    The intercept is not penalised. One eigendecomposition serves all penalties, and both errors follow from
    sums, so that the data is passed through once.

    Args:
        training: Batches of inputs ``[B, L]`` and outputs ``[B, H]``.
        validation: The same, to choose the penalty by; the mildest is kept where there is none.
        inputs: ``L``.
        outputs: ``H``.

    Returns:
        Weight ``[L, H]`` and bias ``[H]``, float64; zeros without a training window.
    """
    fit = moments(training, inputs, outputs)
    if not fit.windows:
        return torch.zeros(inputs, outputs), torch.zeros(outputs)
    mean_x, mean_y = fit.x / fit.windows, fit.y / fit.windows
    covariance = fit.xx / fit.windows - torch.outer(mean_x, mean_x)
    cross = fit.xy / fit.windows - torch.outer(mean_x, mean_y)
    values, vectors = torch.linalg.eigh(covariance)
    unit = values.clamp(min=0).mean().clamp(min=1e-12)
    projected = vectors.T @ cross
    check = moments(validation, inputs, outputs)

    solutions: list[tuple[Tensor, Tensor]] = []
    for penalty in PENALTIES:
        weight = vectors @ (projected / (values.clamp(min=0) + penalty * unit)[:, None])
        solutions.append((weight, mean_y - mean_x @ weight))
    return min(solutions, key=lambda solution: _squared_error(check, *solution))


def _squared_error(sums: Moments, weight: Tensor, bias: Tensor) -> float:
    """``sum (x W + b - y)^2`` from sums."""
    quadratic = ((sums.xx @ weight) * weight).sum() + 2 * (sums.x @ weight @ bias) + sums.windows * bias.square().sum()
    return float(quadratic - 2 * (sums.xy * weight).sum() - 2 * sums.y @ bias + sums.yy)
