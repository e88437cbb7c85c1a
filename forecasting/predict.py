"""Batch forecasts: a file of series in, a file of forecasts with intervals out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch

from common.errors import UsageError
from common.progress import log, progress
from forecasting.fit import INFERENCE_BATCH, Forecaster
from forecasting.series import Panel
from forecasting.timestamps import write_times
from forecasting.windows import Rows, Windows, training_scale


@dataclass(frozen=True)
class Forecasts:
    """What a forecast of a panel gave.

    Attributes:
        table: One row a series and time: the file's own column names, ``forecast``, ``lo-80``, ``hi-80``, ...
        failed: One row a series that could not be forecast: its name and the reason.
    """

    table: pd.DataFrame
    failed: pd.DataFrame


def forecast(
    forecaster: Forecaster, panel: Panel, *, horizon: int | None = None, levels: tuple[float, ...] | None = None
) -> Forecasts:
    """Forecast the times that follow each series' last row.

    Args:
        forecaster: The fitted model.
        panel: The series; those the model was not fitted on are scaled by what the panel holds of them.
        horizon: Times to forecast, at most the model's; all of them by default.
        levels: Which of the model's levels to give, in percent; all of them by default.

    Returns:
        Forecasts in original units, series in the order of the panel.

    Raises:
        UsageError: If the horizon is longer than the model's, or a level was not calibrated.
    """
    horizon = forecaster.horizon if horizon is None else horizon
    chosen = _levels(forecaster, levels)
    if not 1 <= horizon <= forecaster.horizon:
        raise UsageError(
            f"the run forecasts up to {forecaster.horizon} steps, {horizon} were asked for",
            where="--horizon",
            remedy=f"a horizon of 1 to {forecaster.horizon}, or fit again with a larger one",
        )
    reasons = _unfit(panel, forecaster.lookback)
    good = [i for i, reason in enumerate(reasons) if reason is None]
    failed = pd.DataFrame(
        [(panel.ids[i], reason) for i, reason in enumerate(reasons) if reason is not None],
        columns=pd.Index([panel.id_name or "series", "reason"]),
    )
    if not good:
        return Forecasts(_table(panel, np.zeros(0, np.int64), [], np.zeros(0), {}), failed)
    asked = panel.select(good)
    _warn_on_step(forecaster, asked)
    centre, scale = _scales(forecaster, asked)
    extended = asked.extended(forecaster.horizon)
    mean = _run(forecaster, extended, centre, scale)[:, :horizon]  # [series, horizon]

    def original(scaled: np.ndarray) -> np.ndarray:
        return (scaled * scale[:, None] + centre[:, None]).ravel()

    columns = {}
    for level, width in chosen:
        columns[f"lo-{level:g}"] = original(mean - width[:horizon])
        columns[f"hi-{level:g}"] = original(mean + width[:horizon])
    later = (extended.starts[1:] - forecaster.horizon)[:, None] + np.arange(horizon)
    names = [name for name in asked.ids for _ in range(horizon)]
    return Forecasts(_table(asked, extended.times[later.ravel()], names, original(mean), columns), failed)


def _levels(forecaster: Forecaster, levels: tuple[float, ...] | None) -> list[tuple[float, np.ndarray]]:
    known = dict(zip(forecaster.levels, forecaster.widths.numpy(), strict=True))
    missing = [level for level in levels or () if level not in known]
    if missing:
        raise UsageError(
            f"the run has no interval of {missing[0]:g}%",
            where="--levels",
            remedy=f"one or more of {', '.join(f'{level:g}' for level in known)}, or fit again with others",
        )
    return [(level, known[level]) for level in (levels or forecaster.levels)]


def _unfit(panel: Panel, lookback: int) -> list[str | None]:
    """For each series, why it cannot be forecast, or None."""
    reasons: list[str | None] = []
    seen = np.concatenate([[0], np.cumsum(~np.isnan(panel.values))])
    begin, end = panel.starts[:-1], panel.starts[1:]
    ever = seen[end] > seen[begin]
    lately = seen[end] > seen[np.maximum(begin, end - lookback)]
    for step, some, recent in zip(panel.steps, ever, lately, strict=True):
        if not some:
            reasons.append("every value is missing")
        elif not recent:
            reasons.append(f"every value of the last {lookback} rows, which is how far the run looks back, is missing")
        elif step is None:
            reasons.append("a single row has no step to continue by")
        else:
            reasons.append(None)
    return reasons


def _scales(forecaster: Forecaster, panel: Panel) -> tuple[np.ndarray, np.ndarray]:
    own_centre, own_scale = training_scale(panel, panel.starts[1:])
    pairs = [forecaster.scales.get(name, (own_centre[i], own_scale[i])) for i, name in enumerate(panel.ids)]
    unknown = sum(name not in forecaster.scales for name in panel.ids)
    if unknown:
        log.info("%d of %d series were not in training; they are scaled by their own rows", unknown, len(panel.ids))
    array = np.array(pairs)
    return array[:, 0], array[:, 1]


def _warn_on_step(forecaster: Forecaster, panel: Panel) -> None:
    step = float(np.median([s.nanoseconds for s in panel.steps if s is not None]))
    if not 0.5 <= step / forecaster.step <= 2:
        log.warning(
            "warning: the run was fitted on steps of %s, the data has steps of %s; forecasts will be poor",
            pd.Timedelta(forecaster.step),
            pd.Timedelta(int(step)),
        )


@torch.no_grad()
def _run(forecaster: Forecaster, extended: Panel, centre: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Scaled forecasts ``[series, H]`` of the rows that a panel was extended by."""
    origins = torch.from_numpy(extended.starts[1:] - forecaster.horizon)
    windows = Windows(
        Rows(extended, centre=centre, scale=scale),
        torch.arange(len(origins)),
        origins,
        lookback=forecaster.lookback,
        horizon=forecaster.horizon,
        batch_size=INFERENCE_BATCH,
    )
    parts = []
    with progress("forecasting", len(origins)) as advance:
        for batch in windows:
            parts.append(forecaster.model(batch).double())
            advance(len(batch.series))
    return torch.cat(parts).numpy()


def _table(
    panel: Panel, times: np.ndarray, names: list[str], mean: np.ndarray, columns: dict[str, np.ndarray]
) -> pd.DataFrame:
    head = {} if panel.id_name is None else {panel.id_name: names}
    return pd.DataFrame({**head, panel.time_name: write_times(times, panel.style), "forecast": mean, **columns})
