"""Errors of a fitted forecaster on every window of a part of the rows."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
import torch

from forecasting.fit import INFERENCE_BATCH, Forecaster
from forecasting.series.panel import Panel
from forecasting.windows import Windows, origins_within


@dataclass(frozen=True)
class Evaluation:
    """Errors on scaled values.

    Attributes:
        scores: ``mae``, ``mse``, ``rmse``, and ``coverage-80`` and the like in percent, over all observed targets; NaN
            where none is observed.
        losses: Mean absolute error at each origin time, the series averaged, ``[T]`` in order of time.
        by_horizon: Mean absolute error at each step ahead, ``[H]``.
        windows: Number of windows.
        seconds: Wall-clock time to forecast them all.
    """

    scores: dict[str, float]
    losses: np.ndarray
    by_horizon: np.ndarray
    windows: int
    seconds: float


@torch.no_grad()
def evaluate(
    forecaster: Forecaster, panel: Panel, first: np.ndarray, stop: np.ndarray, *, most: int | None = None
) -> Evaluation:
    """Forecast every window whose targets lie in ``[first, stop)`` of their series, stride 1, none dropped.

    Args:
        forecaster: A model fitted on this panel.
        panel: The series.
        first: ``[series]``, first row to forecast.
        stop: ``[series]``, row after the last.
        most: Forecast no more windows than so many, evenly spaced; None for all.

    Returns:
        The errors.
    """
    started = time.perf_counter()
    pairs = np.array([forecaster.scales[name] for name in panel.ids])
    rows = forecaster.inputs.rows(panel, pairs[:, 0], pairs[:, 1])
    size = {"lookback": forecaster.lookback, "horizon": forecaster.horizon}
    found = origins_within(panel, first, stop, **size)
    every = 1 if most is None else max(1, -(-int(found[1].sum()) // most))
    windows = Windows(rows, *found, **size, batch_size=INFERENCE_BATCH, every=every)
    errors, observed = [], []
    for batch in windows:
        errors.append(((forecaster.model(batch) - batch.target) * batch.target_observed).double().abs())
        observed.append(batch.target_observed)
    empty = torch.zeros(0, forecaster.horizon)
    error = torch.cat(errors or [empty.double()]).numpy()  # [N, H]
    seen = torch.cat(observed or [empty.bool()]).numpy()
    seconds = time.perf_counter() - started

    total = int(seen.sum()) or math.nan
    mse = float(np.square(error).sum() / total)
    scores = {"mae": error.sum() / total, "mse": mse, "rmse": math.sqrt(mse)}
    for level, width in zip(forecaster.levels, forecaster.widths.numpy(), strict=True):
        scores[f"coverage-{level:g}"] = 100 * float(((error <= width) & seen).sum()) / total
    return Evaluation(
        scores={name: float(value) for name, value in scores.items()},
        losses=_by_time(error, seen, panel.times[windows.place(torch.arange(windows.total))[1].numpy()]),
        by_horizon=error.sum(axis=0) / np.maximum(1, seen.sum(axis=0)),
        windows=windows.total,
        seconds=seconds,
    )


def _by_time(error: np.ndarray, seen: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Mean error of each window with a target, averaged over the series that share an origin time."""
    count = seen.sum(axis=1)
    used = count > 0
    loss = error.sum(axis=1)[used] / count[used]
    _, group = np.unique(times[used], return_inverse=True)
    return np.bincount(group, weights=loss) / np.bincount(group)
