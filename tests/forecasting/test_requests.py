"""Times to forecast: those that follow, and those that a file asks for."""

import numpy as np
import pandas as pd
import pytest

JOB = """\
data:
  path: f.csv
  id: shop
  time: at
  target: sold
  future: [promo, day]
  categorical: [day]
lookback: 24
horizon: 12
model: {kind: lstm, dim: 8}
training: {steps: 150, validate_every: 50}
"""


def rows(first, count, shop, form="%d.%m.%Y %H:%M"):
    stamps = pd.date_range(first, periods=count, freq="h")
    generator = np.random.default_rng(len(shop))
    promo = generator.integers(0, 2, count)
    return pd.DataFrame({
        "shop": shop, "at": stamps.strftime(form), "sold": (20 + 10 * promo + generator.normal(size=count)).round(2),
        "promo": promo, "day": stamps.day_name(),
    })  # fmt: skip


@pytest.fixture(scope="module")
def fitted(farview_forecast, tmp_path_factory):
    """A run with covariates known ahead, its data, and the rows that follow."""
    folder = tmp_path_factory.mktemp("ahead")
    data = pd.concat([rows("2024-01-01", 500, "007"), rows("2024-01-03", 400, "NA")])
    data.to_csv(folder / "f.csv", index=False)
    (folder / "job.yaml").write_text(JOB)
    done = farview_forecast("fit", folder / "job.yaml", "-o", folder / "run")
    assert done.exit_code == 0, done.output
    ahead = pd.concat([rows("2024-01-19 16:00", 8, "NA"), rows("2024-01-21 20:00", 12, "007")])
    return folder, data, ahead.drop(columns="sold")


def predict(farview_forecast, folder, out, at, data="f.csv", code=0):
    done = farview_forecast("predict", folder / "run", folder / data, "-o", out, "--at", at)
    assert done.exit_code == code, done.output
    return pd.read_csv(out, dtype={"shop": str}, keep_default_na=False), done


def test_times_come_back_as_asked_for_in_their_order(fitted, farview_forecast, tmp_path):
    folder, _, ahead = fitted
    asked = ahead.sample(frac=1, random_state=0)
    asked.to_csv(tmp_path / "at.csv", index=False)
    table, _ = predict(farview_forecast, folder, tmp_path / "o.csv", tmp_path / "at.csv")
    assert table[["shop", "at"]].to_numpy().tolist() == asked[["shop", "at"]].to_numpy().tolist()
    # One time at a time, or in another order: the same forecasts.
    ahead.to_csv(tmp_path / "all.csv", index=False)
    ordered, _ = predict(farview_forecast, folder, tmp_path / "p.csv", tmp_path / "all.csv")
    both = table.merge(ordered, on=["shop", "at"])
    assert len(both) == 20
    np.testing.assert_allclose(both["forecast_x"], both["forecast_y"], rtol=1e-6)


def test_what_is_known_ahead_matters(fitted, farview_forecast, tmp_path):
    folder, _, ahead = fitted
    means = []
    for promo in (0, 1):
        ahead.assign(promo=promo).to_csv(tmp_path / "at.csv", index=False)
        table, _ = predict(farview_forecast, folder, tmp_path / "o.csv", tmp_path / "at.csv")
        means.append(table["forecast"].mean())
    assert means[1] > means[0] + 0.5


def test_one_file_may_hold_both(fitted, farview_forecast, tmp_path, caplog):
    caplog.set_level("INFO", logger="farview")
    folder, data, ahead = fitted
    ahead.to_csv(tmp_path / "at.csv", index=False)
    apart, _ = predict(farview_forecast, folder, tmp_path / "o.csv", tmp_path / "at.csv")
    both = pd.concat([data, ahead])
    both.to_csv(folder / "both.csv", index=False)
    together, _ = predict(farview_forecast, folder, tmp_path / "p.csv", folder / "both.csv", data="both.csv")
    pd.testing.assert_frame_equal(together, apart, rtol=1e-6)
    assert "900 rows not after the last value of their series passed over" in caplog.text


def test_series_that_are_not_in_the_data_are_listed(fitted, farview_forecast, tmp_path):
    folder, _, ahead = fitted
    pd.concat([ahead, ahead.head(2).assign(shop="new")]).to_csv(tmp_path / "at.csv", index=False)
    table, _ = predict(farview_forecast, folder, tmp_path / "o.csv", tmp_path / "at.csv", code=1)
    assert len(table) == 20
    failed = pd.read_csv(tmp_path / "o.csv.failed.csv")
    assert failed.to_numpy().tolist() == [["new", "its times are asked for, but DATA has no such series"]]


def test_a_category_that_training_did_not_have_is_none(fitted, farview_forecast, tmp_path):
    folder, _, ahead = fitted
    ahead.assign(day="Feastday").to_csv(tmp_path / "at.csv", index=False)
    table, _ = predict(farview_forecast, folder, tmp_path / "o.csv", tmp_path / "at.csv")
    assert np.isfinite(table["forecast"]).all()


def test_times_off_the_grid_are_forecast_as_they_are(farview_forecast, tmp_path):
    generator = np.random.default_rng(0)
    minutes = np.sort(generator.choice(30 * 1440, 900, replace=False))
    stamps = pd.Timestamp("2024-01-01") + pd.to_timedelta(minutes, unit="min")
    frame = pd.DataFrame({"ds": stamps, "y": np.sin(2 * np.pi * minutes / 1440) + 0.05 * generator.normal(size=900)})
    frame.to_csv(tmp_path / "f.csv", index=False)
    job = "data: {path: f.csv}\nlookback: 48\nhorizon: 8\nmodel: {kind: informer, dim: 16, heads: 2}\n"
    (tmp_path / "job.yaml").write_text(job + "training: {steps: 5, validate_every: 5}\n")
    assert farview_forecast("fit", tmp_path / "job.yaml", "-o", tmp_path / "run").exit_code == 0
    last = stamps[-1]
    asked = [str(last + pd.Timedelta(minutes=m)) for m in (7, 31, 32)]
    (tmp_path / "at.csv").write_text("ds\n" + "\n".join(asked) + "\n")
    table, _ = predict(farview_forecast, tmp_path, tmp_path / "o.csv", tmp_path / "at.csv")
    assert table["ds"].tolist() == asked
    truth = np.sin(2 * np.pi * (minutes[-1] + np.array([7, 31, 32])) / 1440)
    np.testing.assert_allclose(table["forecast"].astype(float), truth, atol=0.5)


def test_at_and_horizon_exclude_each_other(fitted, farview_forecast, tmp_path):
    folder, _, ahead = fitted
    ahead.to_csv(tmp_path / "at.csv", index=False)
    at = ("--at", tmp_path / "at.csv", "--horizon", 3)
    done = farview_forecast("predict", folder / "run", folder / "f.csv", "-o", tmp_path / "o.csv", *at)
    assert done.exit_code == 2
    assert "--at asks for times of its own" in done.stderr
