"""The model card of a run."""

from __future__ import annotations

import math

import numpy as np

from forecasting.evaluate import evaluate
from forecasting.fit import FitRecord, Forecaster
from forecasting.series.panel import Panel
from forecasting.windows import Split

MOST_WINDOWS = 50_000


def model_card(forecaster: Forecaster, panel: Panel, split: Split, record: FitRecord) -> str:
    """Describe a fitted model in Markdown: data, split, scores and limits."""
    parameters = sum(tensor.numel() for tensor in forecaster.model.state_dict().values() if tensor.is_floating_point())
    step = forecaster.step / 1e9
    training = record.training
    lines = [
        f"# {forecaster.kind}",
        "",
        f"A forecaster of kind `{forecaster.kind}`, {parameters:,} parameters: it sees {forecaster.lookback} steps of "
        f"about {step:,.0f} s and forecasts the next {forecaster.horizon}.",
        "",
        "## Data",
        "",
        f"- series: {len(panel.ids):,}",
        f"- rows: {len(panel.values):,}, missing {np.isnan(panel.values).mean():.2%}",
        f"- training windows: {record.windows:,}; validation windows: {record.validation_windows:,}",
        "",
        "## Training",
        "",
        f"- {record.seconds:.0f} s in all"
        + (f", {training.steps} steps, weights of step {training.best_step} kept" if training else ", closed form"),
        "",
        "## Scores",
        "",
        f"Errors in standard deviations of each series' training part, over all windows or {MOST_WINDOWS:,} evenly "
        "spaced ones where there are more.",
        "",
        "| part | windows | MAE | RMSE | " + " | ".join(f"inside {level:g}%" for level in forecaster.levels) + " |",
        "| --- | --- | --- | --- | " + " | ".join("---" for _ in forecaster.levels) + " |",
    ]
    stop = panel.starts[1:]
    for part, first, end in (("validation", split.validation, split.test), ("test", split.test, stop)):
        found = evaluate(forecaster, panel, first, end, most=MOST_WINDOWS)
        if math.isnan(found.scores["mae"]):
            lines.append(f"| {part} | {found.windows:,} | no value observed |" + " |" * (len(forecaster.levels) + 1))
            continue
        inside = " | ".join(f"{found.scores[f'coverage-{level:g}']:.1f}%" for level in forecaster.levels)
        lines.append(
            f"| {part} | {found.windows:,} | {found.scores['mae']:.4g} | {found.scores['rmse']:.4g} | {inside} |"
        )
    lines += [
        "",
        "## Limits",
        "",
        "Weights and intervals were chosen on the validation part, so that only the test row is an honest score. "
        "Intervals assume that the errors to come are like those of the validation part.",
        "",
    ]
    return "\n".join(lines)
