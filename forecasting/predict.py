"""Batch forecasts: a file of series in, a file of forecasts with intervals out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch

from common.errors import UsageError
from common.progress import log, progress
from forecasting.fit import INFERENCE_BATCH, Forecaster
from forecasting.requests import Requests, following, without_open_end
from forecasting.series.panel import Panel
from forecasting.series.tidy import count
from forecasting.windows import Windows, has_values, scale_of_level, training_scale

FALLBACK = "last-value"
LEAST_VALUES = 3
"""A series with fewer values repeats the last one."""


@dataclass(frozen=True)
class Forecasts:
    """What a forecast of a panel gave.

    Attributes:
        table: One row a series and time: the file's own columns, ``forecast``, ``lo-80``, ``hi-80``, ..., and the
            ``model`` that forecast it, as some series fall back to their last value.
        failed: One row a series that could not be forecast: its name and the reason.
    """

    table: pd.DataFrame
    failed: pd.DataFrame


def forecast(
    forecaster: Forecaster,
    panel: Panel,
    *,
    horizon: int | None = None,
    levels: tuple[float, ...] | None = None,
    requests: Callable[[Panel], Requests] | None = None,
) -> Forecasts:
    """Forecast the times that follow each series' last row.

    Args:
        forecaster: The fitted model.
        panel: The series; those the model was not fitted on are scaled by what the panel holds of them.
        horizon: Times to forecast, at most the model's; all of them by default.
        levels: Which of the model's levels to give, in percent; all of them by default.
        requests: Says which times to forecast of the series, which then end with their last value; the next ones by
            default.

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
    ahead = [each.name for each in forecaster.inputs.covariates if each.role == "future"]
    if ahead and requests is None:
        raise UsageError(
            f"the run uses values that are known ahead ({', '.join(ahead)})",
            where="--at",
            remedy="give them for the times to forecast: --at FUTURE.csv",
        )
    empty = _empty(panel)
    failed = [_failure(panel, i, "every value is missing") for i in np.flatnonzero(empty).tolist()]
    asked = panel.select(np.flatnonzero(~empty).tolist())
    if not len(asked.ids):
        intervals = [f"{side}-{level:g}" for level, *_ in chosen for side in ("lo", "hi")]
        heading = [*panel.id_columns, *panel.time_columns, "forecast", *intervals, "model"]
        return Forecasts(pd.DataFrame(columns=pd.Index(heading)), pd.DataFrame(failed))
    _warn_on_step(forecaster, asked)
    centre, scale = _scales(forecaster, asked)
    asked = _without_open_end(asked)
    if requests is None:
        wanted = following(asked, forecaster.inputs, forecaster.step, horizon)
    else:
        wanted = requests(asked)
        known = [{name: each[name] for name in panel.id_columns} for each in failed]
        failed += [each for each in wanted.failed if {name: each[name] for name in panel.id_columns} not in known]
    recent = asked.tail(forecaster.lookback)
    extended = replace(recent.extended(wanted.times, wanted.numbers, wanted.categories), steps=wanted.steps)
    _tell_of_unknown_texts(forecaster, extended)
    mean = _run(forecaster, extended, centre, scale)  # [series, H]
    widths = {f"{level:g}": np.outer(scale, width) for level, width, _ in chosen}
    mean = mean * scale[:, None] + centre[:, None]
    varies = _varies(asked)
    naive = ~varies
    if naive.any():
        spread = np.where(varies, scale, _usual_spread(forecaster, asked))[naive]
        mean[naive] = _last_values(asked)[naive, None]
        for level, _, width in chosen:
            widths[f"{level:g}"][naive] = np.outer(spread, width)
        log.info(
            "%d of %d series repeat their last value: constant, or fewer than %d values",
            naive.sum(), len(naive), LEAST_VALUES,
        )  # fmt: skip
    columns = {**wanted.columns, "forecast": mean[wanted.series, wanted.place]}
    for level, width in widths.items():
        half = width[wanted.series, wanted.place]
        columns[f"lo-{level}"], columns[f"hi-{level}"] = columns["forecast"] - half, columns["forecast"] + half
    digits = np.where(naive, np.inf, 6 - np.floor(np.log10(scale)))[wanted.series]
    for name in [name for name in columns if name not in wanted.columns]:
        columns[name] = _rounded(columns[name], digits)
    columns["model"] = np.where(naive, FALLBACK, forecaster.kind).astype(object)[wanted.series]
    finite = np.asarray(np.isfinite(mean).all(axis=1))
    reason = "the forecast is not finite: values or covariates are too far from those of the training"
    failed += [_failure(asked, i, reason) for i in np.flatnonzero(~finite).tolist()]
    return Forecasts(pd.DataFrame(columns)[finite[wanted.series]].reset_index(drop=True), pd.DataFrame(failed))


def _failure(panel: Panel, series: int, reason: str) -> dict[str, Any]:
    """What the file calls a series that cannot be forecast, and why."""
    names = {name: column[series] for name, column in panel.id_columns.items()}
    return {**(names or {"series": panel.ids[series]}), "reason": reason}


def _without_open_end(panel: Panel) -> Panel:
    """The panel with each series ending at its last value, which the forecasts then follow."""
    shorter = without_open_end(panel)
    cut = int((np.diff(shorter.starts) < np.diff(panel.starts)).sum())
    if cut:
        log.info(
            "%d of %d series end with rows without a value: their forecasts begin after the last value",
            cut, len(panel.ids),
        )  # fmt: skip
    return shorter


def _empty(panel: Panel) -> np.ndarray:
    """Series without any value, boolean ``[series]``."""
    return ~has_values(panel, panel.starts[1:])


def _rounded(values: np.ndarray, digits: np.ndarray) -> np.ndarray:
    """Values rounded to decimals of their own, ``[N]`` each: what a network in float32 can tell apart, and no more."""
    digits = np.where(np.abs(digits) > 300, np.inf, digits)  # of what a power of ten can be
    power = np.power(10.0, np.abs(np.where(np.isinf(digits), 0, digits)))
    rounded = np.where(digits >= 0, np.rint(values * power) / power, np.rint(values / power) * power)
    return np.where(np.isfinite(digits), rounded, values)


def _varies(panel: Panel) -> np.ndarray:
    """Series that have enough values to show how they vary, and do, boolean ``[series]``."""
    found = np.zeros(len(panel.ids), dtype=bool)
    for i in range(len(panel.ids)):
        values = panel.values[panel.rows(i)]
        values = values[~np.isnan(values)]
        found[i] = len(values) >= LEAST_VALUES and values.min() < values.max()
    return found


def _last_values(panel: Panel) -> np.ndarray:
    """The last observed value of each series, ``[series]``."""
    last = np.zeros(len(panel.ids))
    for i in range(len(panel.ids)):
        values = panel.values[panel.rows(i)]
        last[i] = values[~np.isnan(values)][-1]
    return last


def _usual_spread(forecaster: Forecaster, panel: Panel) -> np.ndarray:
    """A scale for series that show none: as much of their level as is usual among the series of the training."""
    of_level, absolute = forecaster.spreads
    level = np.abs(_last_values(panel))
    return np.where(level > 0, of_level * level, absolute)


def _levels(forecaster: Forecaster, levels: tuple[float, ...] | None) -> list[tuple[float, np.ndarray, np.ndarray]]:
    """Levels asked for, with the half-widths of the model's intervals and of those around the last value."""
    pairs = zip(forecaster.widths.numpy(), forecaster.naive_widths.numpy(), strict=True)
    known = dict(zip(forecaster.levels, pairs, strict=True))
    missing = [level for level in levels or () if level not in known]
    if missing:
        raise UsageError(
            f"the run has no interval of {missing[0]:g}%",
            where="--levels",
            remedy=f"one or more of {', '.join(f'{level:g}' for level in known)}, or fit again with others",
        )
    return [(level, *known[level]) for level in (levels or forecaster.levels)]


def _scales(forecaster: Forecaster, panel: Panel) -> tuple[np.ndarray, np.ndarray]:
    """Centre and scale of each series: those of the training; its own if it was not there, or was constant."""
    centre, scale = training_scale(panel, panel.starts[1:])
    own = 0
    for i, name in enumerate(panel.ids):
        learned = forecaster.scales.get(name)
        if learned is None or learned[1] == scale_of_level(learned[0]):
            own += learned is None or scale[i] != scale_of_level(centre[i])
        else:
            centre[i], scale[i] = learned
    if own:
        log.info(
            "%d of %d series were not in training, or constant there: they are scaled by their own rows",
            own, len(panel.ids),
        )  # fmt: skip
    return centre, scale


def _tell_of_unknown_texts(forecaster: Forecaster, panel: Panel) -> None:
    for each in forecaster.inputs.covariates:
        if each.categories is None:
            continue
        column = (panel.static_categories if each.role == "static" else panel.categories).get(each.name)
        unknown = [] if column is None else [text for text in column.texts if text not in each.categories]
        if unknown:
            log.info(
                "column %r: %s that the training did not have count as none: %s",
                each.name, count(len(unknown), "text"), ", ".join(unknown[:3]) + (", ..." if len(unknown) > 3 else ""),
            )  # fmt: skip


def _warn_on_step(forecaster: Forecaster, panel: Panel) -> None:
    known = [step.nanoseconds for step in panel.steps if step is not None]
    step = float(np.median(known)) if known else forecaster.step
    if not 0.8 <= step / forecaster.step <= 1.25:  # months and irregular steps vary a little
        log.warning(
            "warning: the run was fitted on steps of %s, the data has steps of %s; forecasts will be poor",
            pd.Timedelta(forecaster.step),
            pd.Timedelta(int(step)),
        )


@torch.no_grad()
def _run(forecaster: Forecaster, extended: Panel, centre: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Scaled forecasts ``[series, H]`` of the rows that a panel was extended by."""
    windows = Windows(
        forecaster.inputs.rows(extended, centre, scale),
        extended.starts[1:] - forecaster.horizon,
        np.ones(len(extended.ids), dtype=np.int64),
        lookback=forecaster.lookback,
        horizon=forecaster.horizon,
        batch_size=INFERENCE_BATCH,
    )
    parts = []
    with progress("forecasting", windows.total) as advance:
        for batch in windows:
            parts.append(forecaster.model(batch).double())
            advance(len(batch.series))
    return torch.cat(parts).numpy()
