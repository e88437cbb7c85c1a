"""Fit one forecaster: scale, solve, train, calibrate."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from common.bundle import write_bundle
from common.checkpoint import Checkpoint
from common.errors import InputError
from common.progress import log
from common.training import TrainingRecord, log_training, seed_everything, train
from forecasting.calibrate import interval_widths
from forecasting.inputs import Inputs
from forecasting.models import build
from forecasting.normalise import last_observed
from forecasting.series.panel import Panel
from forecasting.windows import Batch, Split, Windows, origins_within, training_scale

CHECK_WINDOWS = 1024
"""Most validation windows used to choose weights by."""
MOST_WINDOWS = 200_000
"""Most windows, evenly spaced, that a closed form is solved on, and that intervals are calibrated by."""
INFERENCE_BATCH = 256


@dataclass(frozen=True)
class Forecaster:
    """A fitted model with all it needs to forecast new rows.

    Attributes:
        kind: Kind of model.
        settings: Its settings, as plain data.
        inputs: What the model is given.
        levels: Levels of its intervals, in percent.
        model: The network.
        widths: Half-widths of the intervals, ``[levels, H]``, scaled.
        naive_widths: As ``widths``, of forecasts that repeat the last value.
        scales: Centre and scale of each series it was fitted on, by name.
        spreads: Usual scale of a series, in units of its level, and as it is.
        step: Median step of these series, in nanoseconds.
    """

    kind: str
    settings: dict[str, Any]
    inputs: Inputs
    levels: tuple[float, ...]
    model: nn.Module
    widths: Tensor
    naive_widths: Tensor
    scales: dict[str, tuple[float, float]]
    spreads: tuple[float, float]
    step: int

    @property
    def lookback(self) -> int:
        """Rows it looks back."""
        return self.inputs.lookback

    @property
    def horizon(self) -> int:
        """Times it forecasts."""
        return self.inputs.horizon

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
            "covariates": [asdict(each) for each in self.inputs.covariates],
            "period_seconds": [period / 1e9 for period in self.inputs.periods],
            "naive_widths": self.naive_widths.double().tolist(),
            "spreads": list(self.spreads),
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
    inputs: Inputs,
    levels: tuple[float, ...],
    training: dict[str, Any],
    seed: int,
    checkpoint: Checkpoint | None = None,
    resume: bool = False,
) -> tuple[Forecaster, FitRecord]:
    """Fit a forecaster on the training part, choosing and calibrating on the validation part.

    Args:
        panel: The series.
        split: Where validation and test begin; test rows are not looked at.
        kind: Kind of model.
        settings: Settings of the model.
        learning_rate: Largest learning rate; None for a model in closed form.
        inputs: What the model is given.
        levels: Levels of the intervals, in percent, increasing.
        training: ``batch_size``, ``loss``, and what :func:`common.training.train` takes under the same names.
        seed: Seed of the initial weights, the order of windows and dropout.
        checkpoint: Where to keep the state of the training.
        resume: Whether to go on from it.

    Returns:
        The forecaster and how the fit went.

    Raises:
        InputError: If no series is long enough for a single training window.
        UsageError: If the training to go on with is another one.
    """
    started = time.perf_counter()
    options = dict(training)
    loss, batch_size = options.pop("loss"), options.pop("batch_size")
    centre, scale = training_scale(panel, split.validation)
    rows = inputs.rows(panel, centre, scale)
    size = {"lookback": inputs.lookback, "horizon": inputs.horizon}
    fitting = origins_within(panel, panel.starts[:-1], split.validation, **size)
    checking = origins_within(panel, split.validation, split.test, **size)

    def windows(part: tuple[np.ndarray, np.ndarray], batch: int = INFERENCE_BATCH, **options: Any) -> Windows:
        return Windows(rows, *part, **size, batch_size=batch, **options)

    def some(part: tuple[np.ndarray, np.ndarray]) -> Windows:
        return windows(part, every=max(1, -(-int(part[1].sum()) // MOST_WINDOWS)))

    varies = _varies(panel, split)
    if not varies.any():
        log.warning("warning: no series varies in its training part: intervals will have no width")
    _require_windows(panel, split, windows(fitting), **size)
    seed_everything(seed)
    model = build(kind, inputs, settings)
    if hasattr(model, "solve"):
        with torch.no_grad():
            model.solve(some(fitting), some(checking))  # pyright: ignore[reportCallIssue]
    record = None
    validation = windows(checking)
    if learning_rate is not None:
        every = max(1, validation.total // CHECK_WINDOWS)
        record = train(
            model,
            LOSSES[loss],
            training=partial(windows(fitting, batch_size).shuffled, seed=seed),
            validation=windows(checking, every=every) if validation.total else None,
            seed=seed,
            learning_rate=learning_rate,
            description=kind,
            checkpoint=checkpoint,
            resume=resume,
            **options,
        )
        log_training(kind, record)
    model.eval()
    calibrating = some(checking if validation.has_targets() else fitting)
    forecaster = Forecaster(
        kind=kind,
        settings=settings,
        inputs=inputs,
        levels=levels,
        model=model,
        widths=interval_widths(model, calibrating, levels).double(),
        naive_widths=interval_widths(repeat_last, calibrating, levels).double(),
        scales={name: (float(c), float(s)) for name, c, s in zip(panel.ids, centre, scale, strict=True)},
        spreads=_usual_spreads(centre[varies], scale[varies]),
        step=int(rows.step.median()),
    )
    return forecaster, FitRecord(windows(fitting).total, validation.total, record, time.perf_counter() - started)


def repeat_last(batch: Batch) -> Tensor:
    """The last observed value for all requested times, ``[B, H]``: what a series falls back to."""
    return last_observed(batch.values, batch.observed).expand(-1, batch.target.shape[1])


def _varies(panel: Panel, split: Split) -> np.ndarray:
    """Which series have two values in their training part, boolean ``[series]``."""
    parts = [panel.values[begin:end] for begin, end in zip(panel.starts[:-1], split.validation, strict=True)]
    return np.array([not np.isnan(part).all() and np.nanmax(part) > np.nanmin(part) for part in parts])


def _usual_spreads(centre: np.ndarray, scale: np.ndarray) -> tuple[float, float]:
    """Median scale of series that vary, in units of their level and as it is; zero without any."""
    if not len(scale):
        return 0.0, 0.0
    level = np.maximum(np.abs(centre), 1e-300)
    return float(np.median(scale / level)), float(np.median(scale))


def absolute_error(model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
    """Sum of absolute errors over observed targets, and their number."""
    return ((model(batch) - batch.target).abs() * batch.target_observed).sum(), batch.target_observed.sum()


def squared_error(model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
    """Sum of squared errors over observed targets, and their number."""
    return ((model(batch) - batch.target).square() * batch.target_observed).sum(), batch.target_observed.sum()


LOSSES = {"mae": absolute_error, "mse": squared_error}


def _require_windows(panel: Panel, split: Split, training: Windows, *, lookback: int, horizon: int) -> None:
    if not training.total:
        longest = int((split.validation - panel.starts[:-1]).max())
        raise InputError(
            f"no series is long enough to train on: the longest training part has {longest} rows, and one window "
            f"needs at least 1 row of lookback and {horizon} of horizon, better {lookback} + {horizon}",
            remedy="a smaller horizon, smaller split.validation and split.test, or longer series",
        )
    if not training.has_targets():
        raise InputError(
            "no value is observed in the rows to train on, after the first of each series",
            remedy="check data.target (long) or data.channels (wide)",
        )
