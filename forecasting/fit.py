"""Fit one forecaster: scale, solve, train, calibrate."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from common.bundle import write_bundle
from common.errors import InputError
from common.training import TrainingRecord, log_training, seed_everything, train
from forecasting.calibrate import interval_widths
from forecasting.models import build
from forecasting.series import Panel
from forecasting.windows import Batch, Rows, Split, Windows, has_targets, origins_within, training_scale

CHECK_WINDOWS = 1024
"""Most validation windows used to choose weights by; calibration uses all of them."""
INFERENCE_BATCH = 256


@dataclass(frozen=True)
class Forecaster:
    """A fitted model with all it needs to forecast new rows.

    Attributes:
        kind: Kind of model.
        settings: Its settings, as plain data.
        lookback: Rows it looks back.
        horizon: Times it forecasts.
        levels: Levels of its intervals, in percent.
        model: The network.
        widths: Half-widths of the intervals, ``[levels, H]``, scaled.
        scales: Centre and scale of each series it was fitted on, by name.
        step: Median step of these series, in nanoseconds.
    """

    kind: str
    settings: dict[str, Any]
    lookback: int
    horizon: int
    levels: tuple[float, ...]
    model: nn.Module
    widths: Tensor
    scales: dict[str, tuple[float, float]]
    step: int

    def write(self, folder: Any, *, data: dict[str, Any], card: str) -> None:
        """Write as a bundle into an existing folder; ``data`` says how files are laid out."""
        spec = {
            "model": {"kind": self.kind, **self.settings},
            "lookback": self.lookback,
            "horizon": self.horizon,
            "levels": list(self.levels),
            "widths": self.widths.double().tolist(),
            "scales": {name: list(pair) for name, pair in self.scales.items()},
            "step_seconds": self.step / 1e9,
            "data": data,
        }
        write_bundle(folder, kind="forecast", spec=spec, state=self.model.state_dict(), card=card)


@dataclass(frozen=True)
class FitRecord:
    """How a fit went.

    Attributes:
        windows: Number of training windows.
        validation_windows: Number of validation windows.
        training: Record of the training; None for a model in closed form.
        seconds: Wall-clock time in all.
    """

    windows: int
    validation_windows: int
    training: TrainingRecord | None
    seconds: float


def fit(
    panel: Panel,
    split: Split,
    *,
    kind: str,
    settings: dict[str, Any],
    learning_rate: float | None,
    lookback: int,
    horizon: int,
    levels: tuple[float, ...],
    training: dict[str, Any],
    seed: int,
) -> tuple[Forecaster, FitRecord]:
    """Fit a forecaster on the training part, choosing and calibrating on the validation part.

    Args:
        panel: The series.
        split: Where validation and test begin; test rows are not looked at.
        kind: Kind of model.
        settings: Settings of the model.
        learning_rate: Largest learning rate; None for a model in closed form.
        lookback: Rows a window looks back.
        horizon: Times a window forecasts.
        levels: Levels of the intervals, in percent, increasing.
        training: ``steps``, ``batch_size``, ``weight_decay``, ``warmup``, ``validate_every``, ``patience`` and
            ``loss``.
        seed: Seed of the initial weights, the order of windows and dropout.

    Returns:
        The forecaster and how the fit went.

    Raises:
        InputError: If no series is long enough for a single training window.
    """
    started = time.perf_counter()
    options = dict(training)
    loss, batch_size = options.pop("loss"), options.pop("batch_size")
    centre, scale = training_scale(panel, split.validation)
    rows = Rows(panel, centre=centre, scale=scale)
    first = panel.starts[:-1]
    fitting = origins_within(panel, first, split.validation, lookback=lookback, horizon=horizon)
    checking = origins_within(panel, split.validation, split.test, lookback=lookback, horizon=horizon)
    _require_windows(panel, split, rows, fitting[1], lookback=lookback, horizon=horizon)
    size = {"lookback": lookback, "horizon": horizon}

    seed_everything(seed)
    model = build(kind, settings=settings, **size)
    if hasattr(model, "solve"):
        with torch.no_grad():
            model.solve(  # pyright: ignore[reportCallIssue]
                Windows(rows, *fitting, **size, batch_size=INFERENCE_BATCH),
                Windows(rows, *checking, **size, batch_size=INFERENCE_BATCH),
            )
    record = None
    if learning_rate is not None:
        every = max(1, len(checking[0]) // CHECK_WINDOWS)
        check = Windows(rows, checking[0][::every], checking[1][::every], **size, batch_size=INFERENCE_BATCH)
        record = train(
            model,
            LOSSES[loss],
            training=Windows(rows, *fitting, **size, batch_size=batch_size, shuffle_seed=seed),
            validation=check if len(check.origins) else None,
            seed=seed,
            learning_rate=learning_rate,
            clip=1.0,
            description=kind,
            **options,
        )
        log_training(kind, record)
    model.eval()
    calibrating = checking if has_targets(rows.observed, checking[1], horizon) else fitting
    widths = interval_widths(model, Windows(rows, *calibrating, **size, batch_size=INFERENCE_BATCH), levels)
    forecaster = Forecaster(
        kind=kind,
        settings=settings,
        **size,
        levels=levels,
        model=model,
        widths=widths.double(),
        scales={name: (float(c), float(s)) for name, c, s in zip(panel.ids, centre, scale, strict=True)},
        step=int(rows.step.median()),
    )
    return forecaster, FitRecord(len(fitting[0]), len(checking[0]), record, time.perf_counter() - started)


def absolute_error(model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
    """Sum of absolute errors over observed targets, and their number."""
    return ((model(batch) - batch.target).abs() * batch.target_observed).sum(), batch.target_observed.sum()


def squared_error(model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
    """Sum of squared errors over observed targets, and their number."""
    return ((model(batch) - batch.target).square() * batch.target_observed).sum(), batch.target_observed.sum()


LOSSES = {"mae": absolute_error, "mse": squared_error}


def _require_windows(panel: Panel, split: Split, rows: Rows, origins: Tensor, *, lookback: int, horizon: int) -> None:
    if not len(origins):
        longest = int((split.validation - panel.starts[:-1]).max())
        raise InputError(
            f"no series is long enough to train on: the longest training part has {longest} rows, and one window "
            f"needs at least 1 row of lookback and {horizon} of horizon, better {lookback} + {horizon}",
            remedy="a smaller horizon, smaller split.validation and split.test, or longer series",
        )
    if not has_targets(rows.observed, origins, horizon):
        raise InputError(
            "no value is observed in the rows to train on, after the first of each series",
            remedy="check data.target (long) or data.channels (wide)",
        )
