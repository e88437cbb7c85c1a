"""Small series with known structure, and a run fitted on them once."""

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from forecasting.cli import forecast
from forecasting.series.clock import clock
from forecasting.series.panel import Panel, find_steps
from forecasting.series.style import TimeStyle

HOUR = 3600 * 10**9


@pytest.fixture(scope="session")
def farview_forecast():
    """Runs ``farview forecast ...`` in this process."""

    def run(*arguments):
        return CliRunner().invoke(forecast, [str(a) for a in arguments])

    return run


def _panel(*series, step=HOUR, start=0, zone="UTC"):
    times = np.concatenate([start + step * np.arange(len(values), dtype=np.int64) for values in series])
    starts = np.concatenate([[0], np.cumsum([len(v) for v in series])]).astype(np.int64)
    ids = tuple(f"s{i}" for i in range(len(series)))
    return Panel(
        ids=ids,
        id_columns={"unique_id": np.array(ids, dtype=object)},
        starts=starts,
        times=times,
        values=np.concatenate([np.asarray(v, dtype=np.float64) for v in series]),
        steps=find_steps(times, starts, clock(zone, int(times.min()), int(times.max()))),
        time_columns=("ds",),
        style=TimeStyle("%Y-%m-%d %H:%M:%S", zone),
    )


@pytest.fixture(scope="session")
def make_panel():
    """Builds a panel of hourly series from arrays of values."""
    return _panel


@pytest.fixture(scope="session")
def long_csv(tmp_path_factory):
    """Two hourly series of three weeks: a daily cycle and a trend, with different levels, and little noise."""
    generator = np.random.default_rng(0)
    hours = np.arange(21 * 24)
    frames = []
    for name, level in (("b", 100.0), ("a", -5.0)):
        values = (
            level + 10 * np.sin(2 * np.pi * hours / 24) + 0.01 * hours + 0.3 * generator.standard_normal(len(hours))
        )
        times = pd.date_range("2024-01-01", periods=len(hours), freq="h").strftime("%Y-%m-%d %H:%M:%S")
        frames.append(pd.DataFrame({"unique_id": name, "ds": times, "y": values}))
    path = tmp_path_factory.mktemp("series") / "long.csv"
    pd.concat(frames).to_csv(path, index=False)
    return path


CONFIG = """\
data: {path: long.csv}
lookback: 48
horizon: 12
levels: [80, 95]
model: {kind: informer, dim: 16, heads: 2, layers: 2, patch: 6}
training: {steps: 20, batch_size: 32, warmup: 0.25, validate_every: 10}
compare:
  models:
    - {kind: informer, dim: 16, heads: 2, patch: 6}
    - {kind: lstm, dim: 8}
    - {kind: tcn, dim: 8}
    - {kind: ridge}
    - {kind: seasonal-naive}
  seeds: [0, 1]
"""


@pytest.fixture(scope="session")
def config(long_csv):
    path = long_csv.with_name("job.yaml")
    path.write_text(CONFIG)
    return path


@pytest.fixture(scope="session")
def run(config, farview_forecast, tmp_path_factory):
    """A fitted run."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    done = farview_forecast("fit", config, "-o", folder)
    assert done.exit_code == 0, done.output
    return folder
