"""Real files: the audit names what is known of them, and what it suggests is fitted and forecast as it is."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from forecasting.audit.run import audit

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif("FARVIEW_DATA" not in os.environ, reason="FARVIEW_DATA does not name the folder of the data"),
]


def series(name):
    return Path(os.environ["FARVIEW_DATA"]) / "series" / name


def test_half_hourly_demand_in_utc_follows_the_clock_of_melbourne():
    found = audit(series("vic_electricity.csv"), {"target": "Demand"})
    assert found.data["time"] == "Time"
    assert found.zone == "Australia/Melbourne"
    assert {period.calendar for period in found.series[0].periods} >= {"day", "week"}
    assert found.series[0].last == "2014-12-31T12:30:00Z"


def test_daily_visits_have_gaps_and_weekly_prices_the_newest_first():
    visits = audit(series("wikipedia_visits.csv"), {}).series[0]
    assert (visits.rows, visits.gaps, visits.missing_times, visits.longest_gap) == (2905, 29, 59, "20 days")
    gasoline = audit(series("us_gasoline.csv"), {})
    assert "the newest rows come first: sorted by time" in gasoline.notes
    assert gasoline.series[0].step == "7 days"
    assert (gasoline.series[0].first, gasoline.series[0].last) == ("02/8/1991", "04/30/2021")


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("air_passengers.csv", "1961-01"),
        ("us_gasoline.csv", "05/7/2021"),
        ("wikipedia_visits.csv", "2016-01-21"),
        ("exchange_rate.csv", "2010/10/11 0:00"),
    ],
)
def test_what_is_suggested_runs(name, first, farview_forecast, tmp_path):
    job, run, out = tmp_path / "job.yaml", tmp_path / "run", tmp_path / "o.csv"
    quick = ("--set", "training.steps=2", "--set", "training.validate_every=2", "--set", "model.dim=16")
    for arguments in (
        ("audit", series(name), "--suggest", job), ("fit", job, "-o", run, *quick),
        ("predict", run, series(name), "-o", out),
    ):  # fmt: skip
        done = farview_forecast(*arguments)
        assert done.exit_code == 0, done.output
    table = pd.read_csv(out)
    time = next(column for column in table if column not in ("unique_id", "forecast"))
    assert table[time][0] == first
    assert np.isfinite(table.select_dtypes("number")).all(axis=None)
