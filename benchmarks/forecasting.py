"""Forecasters on real series, one table a command: ``.venv/bin/python benchmarks/forecasting.py TABLE`` from the root.

Tables:
    protocol: whether errors on ETTh1 are reckoned as published ones are (under a minute).

The data is that of the folder named by the environment variable ``FARVIEW_DATA``.
"""

from __future__ import annotations

import os
import sys
import tempfile
from functools import cache
from pathlib import Path

from measure import save

sys.path.insert(0, str(Path(__file__).parents[1]))  # where `forecasting` is the package, and not this file

from forecasting.config import TrainingConfig
from forecasting.evaluate import Evaluation, evaluate
from forecasting.fit import fit
from forecasting.inputs import Inputs
from forecasting.series.panel import Panel
from forecasting.series.read import read_panel
from forecasting.windows import Split, split_rows

HORIZONS = (96, 192, 336, 720)
ETT_ROWS, ETT_PART = 14_400, 2_880  # 8,640 hours to train on, and twice 2,880
CLOSED = TrainingConfig().model_dump()  # what has a closed form uses none of it


@cache
def ett() -> tuple[Panel, Split]:
    """ETTh1 in the published split: what comes after the first twenty months is not used."""
    source = Path(os.environ["FARVIEW_DATA"]) / "series" / "ETTh1.csv"
    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder) / source.name
        part.write_text("".join(source.read_text().splitlines(keepends=True)[: 1 + ETT_ROWS]))
        panel = read_panel(part, layout="wide", time="date")
    return panel, split_rows(panel, validation=ETT_PART, test=ETT_PART)


def test_of_closed_form(kind: str, settings: dict, lookback: int, horizon: int) -> Evaluation:
    """Errors on the test part of a model that needs no training."""
    panel, split = ett()
    model, _ = fit(
        panel, split, kind=kind, settings=settings, learning_rate=None, levels=(80.0, 95.0), seed=0,
        inputs=Inputs(lookback=lookback, horizon=horizon), training=CLOSED,
    )  # fmt: skip
    return evaluate(model, panel, split.test, panel.starts[1:])


def protocol() -> None:
    """Repeating the last value, and a ridge regression, against what is known of them."""
    # A lookback shorter than a day leaves seasonal-naive no season but none.
    lines = [("repeat-last", "seasonal-naive", {}, 16, 96, "1.294")]
    known = dict(zip(HORIZONS, (".370", ".403", ".425", ".421"), strict=True))
    lines += [("ridge", "ridge", {"period_table": False}, 336, horizon, known[horizon]) for horizon in HORIZONS]
    table = []
    for name, kind, settings, lookback, horizon, expected in lines:
        found = test_of_closed_form(kind, settings, lookback, horizon)
        table.append({
            "model": name, "lookback": lookback, "horizon": horizon, "windows": f"{found.windows // 7} x 7",
            "MSE": f"{found.scores['mse']:.4f}", "MSE known": expected, "MAE": f"{found.scores['mae']:.4f}",
        })  # fmt: skip
        print(table[-1], flush=True)
    note = (
        "ETTh1, 7 channels, rows 8,640 / 2,880 / 2,880, scaled by mean and deviation of the training rows, every test "
        "window counted. The MAE known of repeat-last is .713. The ridge regression is shared over channels, around "
        "the last value, with its penalty chosen on validation."
    )
    save("forecast_protocol", table, note=note, seeds=[])


TABLES = {"protocol": protocol}

if __name__ == "__main__":
    TABLES[sys.argv[1]]()
