"""Baselines against attention on one file of series."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch

from common.errors import InputError
from common.progress import log
from common.report.comparison import Comparison, Figure, Metric, Role, Row
from common.report.figures import forecast_figure
from common.report.plotting import PALETTE, layout, lines
from common.report.provenance import provenance
from common.report.significance import compare_all
from forecasting.evaluate import Evaluation, evaluate
from forecasting.fit import FitRecord, Forecaster, fit
from forecasting.inputs import Inputs
from forecasting.series.panel import Panel
from forecasting.windows import Split, origins_within

ATTENTION = frozenset({"informer"})
FLOOR = "seasonal-naive"


@dataclass(frozen=True)
class Contender:
    """One model of a comparison, fitted once a seed.

    Attributes:
        forecasters: One a seed; a model that draws nothing is fitted once.
        records: How the fits went.
        evaluations: Errors on the test part.
    """

    forecasters: tuple[Forecaster, ...]
    records: tuple[FitRecord, ...]
    evaluations: tuple[Evaluation, ...]


def compare(
    panel: Panel,
    split: Split,
    models: list[dict[str, Any]],
    *,
    seeds: tuple[int, ...],
    title: str,
    **common: Any,
) -> tuple[Comparison, dict[str, Contender]]:
    """Fit each model the same way, and score it on the test part that none has seen.

    Args:
        panel: The series.
        split: Where validation and test begin.
        models: ``kind``, ``settings`` and ``learning_rate`` of each; ``seasonal-naive`` among them.
        seeds: One fit a seed of each model that draws at random.
        title: Heading of the comparison.
        **common: What :func:`forecasting.fit.fit` takes for all models alike.

    Returns:
        The comparison, and the fitted models by kind.

    Raises:
        InputError: If there is no test window, or none with a value.
    """
    inputs: Inputs = common["inputs"]
    stop = panel.starts[1:]
    testing = origins_within(panel, split.test, stop, lookback=inputs.lookback, horizon=inputs.horizon)
    if not testing[1].any():
        raise InputError(
            f"the test part holds no window: it must be at least the horizon, {inputs.horizon} rows, long",
            remedy="a larger split.test, or a smaller horizon",
        )
    if all(np.isnan(panel.values[first:end]).all() for first, end in zip(split.test, stop, strict=True)):
        raise InputError("no value is observed in the test part", remedy="a larger split.test")
    contenders = {}
    for model in models:
        kind = model["kind"]
        fitted, records, evaluations = [], [], []
        # What has a closed form draws nothing, and comes out the same for every seed.
        for seed in seeds if model["learning_rate"] is not None else seeds[:1]:
            forecaster, record = fit(panel, split, **model, seed=seed, **common)
            evaluation = evaluate(forecaster, panel, split.test, stop)
            log.info("%s, seed %d: test MAE %.4g (scaled)", kind, seed, evaluation.scores["mae"])
            fitted.append(forecaster)
            records.append(record)
            evaluations.append(evaluation)
        contenders[kind] = Contender(tuple(fitted), tuple(records), tuple(evaluations))
    return _comparison(panel, split, contenders, seeds=seeds, title=title, **common), contenders


def _comparison(
    panel: Panel, split: Split, contenders: dict[str, Contender], *, seeds: tuple[int, ...], title: str, **common: Any
) -> Comparison:
    unit, factor = _unit(panel, contenders)
    inputs, levels = common["inputs"], common["levels"]
    horizon = inputs.horizon
    metrics = (
        Metric("mae", f"MAE ({unit})"),
        Metric("rmse", f"RMSE ({unit})"),
        *(Metric(f"coverage-{level:g}", f"inside {level:g}% interval (%)", better=None, digits=3) for level in levels),
    )
    rows = tuple(_row(kind, contender, factor) for kind, contender in contenders.items())
    losses = {
        kind: factor * np.stack([evaluation.losses for evaluation in contender.evaluations])
        for kind, contender in contenders.items()
    }
    attention = [kind for kind in contenders if kind in ATTENTION]
    windows = next(iter(contenders.values())).evaluations[0].windows
    plain = Comparison(
        title=title,
        task="forecast",
        data=_facts(panel, split),
        protocol=(
            f"Each model sees {inputs.lookback} steps and forecasts the next {horizon}. Weights, penalty and season "
            "are chosen on the validation part, which also sets the width of the intervals; the test part is used "
            f"for the scores alone. All {windows:,} test windows count, one at each step, and none overlaps the "
            "training targets. All networks have the same inputs, normalisation, period table, loss, steps and batch "
            "size. Tests compare the mean absolute error at each origin, in blocks of two horizons."
        ),
        metrics=metrics,
        rows=rows,
        tests=compare_all(losses, attention, FLOOR, block=2 * horizon, seed=seeds[0]),
        provenance=provenance(seeds),
    )
    figures = (_horizon_figure(contenders, unit, factor), _last_window_figure(panel, contenders, unit))
    return replace(plain, figures=figures)


def _unit(panel: Panel, contenders: dict[str, Contender]) -> tuple[str, float]:
    """One series is scored in its own unit; several, each in standard deviations of its training part."""
    if len(panel.ids) != 1:
        return "training standard deviations", 1.0
    forecaster = next(iter(contenders.values())).forecasters[0]
    return f"units of {panel.ids[0]}", forecaster.scales[panel.ids[0]][1]


def _row(kind: str, contender: Contender, factor: float) -> Row:
    role: Role = "attention" if kind in ATTENTION else "floor" if kind == FLOOR else "baseline"
    scores = tuple(
        {name: value * (factor if name in ("mae", "rmse") else 1.0) for name, value in evaluation.scores.items()}
        for evaluation in contender.evaluations
    )
    state = contender.forecasters[0].model.state_dict()
    return Row(
        model=kind,
        role=role,
        scores=scores,
        parameters=sum(tensor.numel() for tensor in state.values() if tensor.is_floating_point()),
        fit_seconds=float(np.mean([record.seconds for record in contender.records])),
        predict_seconds=float(np.mean([evaluation.seconds for evaluation in contender.evaluations])),
    )


def _facts(panel: Panel, split: Split) -> dict[str, str]:
    lengths = np.diff(panel.starts)
    missing = float(np.isnan(panel.values).mean())
    step = sorted({step.nanoseconds for step in panel.steps if step is not None})
    first, last = pd.Timestamp(int(panel.times.min())), pd.Timestamp(int(panel.times.max()))
    facts = {
        "Series": f"{len(panel.ids):,}",
        "Rows": f"{len(panel.values):,}",
        "From": f"{first} UTC",
        "To": f"{last} UTC",
        "Usual step": " to ".join(str(pd.Timedelta(s)) for s in dict.fromkeys((step[0], step[-1]))),
        "Missing": f"{missing:.2%}",
        "Rows to train on, validate on, test on": (
            f"{int((split.validation - panel.starts[:-1]).sum()):,}, {int((split.test - split.validation).sum()):,}, "
            f"{int((panel.starts[1:] - split.test).sum()):,}"
        ),
    }
    if len(panel.ids) > 1:
        facts["Rows a series"] = f"{lengths.min():,} to {lengths.max():,}"
    return facts


def _horizon_figure(contenders: dict[str, Contender], unit: str, factor: float) -> Figure:
    look = layout("steps ahead", f"MAE ({unit})", height=380)
    look["yaxis"]["rangemode"] = "tozero"
    data = []
    for colour, (kind, contender) in zip(PALETTE * 2, contenders.items(), strict=False):
        error = factor * np.mean([evaluation.by_horizon for evaluation in contender.evaluations], axis=0)
        data.append(lines(list(range(1, len(error) + 1)), error, {"color": colour, "width": 2}, name=kind))
    return Figure(
        "Error by distance",
        "Mean absolute error of all test windows at each step ahead.",
        {"data": data, "layout": look},
    )


@torch.no_grad()
def _last_window_figure(panel: Panel, contenders: dict[str, Contender], unit: str) -> Figure:
    """The last window of the first series that has one: not chosen by its errors."""
    some = next(iter(contenders.values())).forecasters[0]
    pairs = np.array([some.scales[name] for name in panel.ids])
    lengths = np.diff(panel.starts)
    number = int(np.argmax(lengths > some.horizon))
    centre, scale = pairs[number]
    origin = int(panel.starts[number + 1]) - some.horizon
    batch = some.inputs.rows(panel, pairs[:, 0], pairs[:, 1]).gather(
        torch.tensor([number]), torch.tensor([origin]), lookback=some.lookback, horizon=some.horizon
    )
    models = sorted(contenders, key=lambda kind: kind not in ATTENTION)
    forecasts = {
        kind: contenders[kind].forecasters[0].model(batch)[0].double().numpy() * scale + centre for kind in models
    }
    lead = contenders[models[0]].forecasters[0]
    width = lead.widths[0].numpy() * scale
    history = slice(max(int(panel.starts[number]), origin - min(some.lookback, 4 * some.horizon)), origin)
    future = slice(origin, origin + some.horizon)
    times, observed = panel.times.astype("datetime64[ns]"), panel.values
    return forecast_figure(
        times[history],
        observed[history],
        times[future],
        observed[future],
        forecasts,
        (forecasts[models[0]] - width, forecasts[models[0]] + width),
        f"The last test window of {panel.ids[number]}",
        "Always the last window, whichever model does well on it; times in UTC.",
        label=unit.removeprefix("units of ") if len(panel.ids) == 1 else panel.ids[number],
        interval_name=f"{some.levels[0]:g}% interval of {models[0]}",
    )
