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


@pytest.fixture(scope="module")
def ridge(farview_forecast, tmp_path_factory):
    """Fits ridge regression on a frame; answers with what its run forecasts at times."""
    folder = tmp_path_factory.mktemp("ridge")

    def fit(frame, name, data=""):
        frame.to_csv(folder / f"{name}.csv", index=False)
        job = f"data: {{path: {name}.csv{data}}}\nlookback: 24\nhorizon: 12\nmodel: {{kind: ridge}}\n"
        (folder / f"{name}.yaml").write_text(job)
        done = farview_forecast("fit", folder / f"{name}.yaml", "-o", folder / name)
        assert done.exit_code == 0, done.output

        def at(times=None, code=0):
            more = []
            if times is not None:
                pd.DataFrame(times).to_csv(folder / "at.csv", index=False)
                more = ["--at", folder / "at.csv"]
            out = folder / "o.csv"
            done = farview_forecast("predict", folder / name, folder / f"{name}.csv", "-o", out, *more)
            assert done.exit_code == code, done.output
            if code == 1:
                return out.with_name("o.csv.failed.csv").read_text()
            return done.output if code else pd.read_csv(out)

        return at

    return fit


def walk(stamps):
    values = np.random.default_rng(0).normal(size=len(stamps)).cumsum()
    return pd.DataFrame({"ds": stamps.strftime("%Y-%m-%d %H:%M:%S"), "y": values})


def test_a_time_between_two_steps_is_forecast_as_the_nearest_and_spoils_no_other(ridge):
    stamps = pd.date_range("2024-01-01", periods=400, freq="h")
    frame = walk(stamps)
    frame["y"] += 20 * np.sin(np.pi * stamps.hour / 12)  # a day that the period table keeps
    at = ridge(frame, "hourly")
    plain = at()
    hours = [0.4, 4, 6.6, 12]
    found = at({"ds": [(stamps[-1] + pd.Timedelta(hours=h)).strftime("%Y-%m-%d %H:%M:%S") for h in hours]})
    nearest = plain.iloc[[0, 3, 6, 11]].reset_index(drop=True)
    np.testing.assert_allclose(found["forecast"][[1, 3]], nearest["forecast"][[1, 3]], rtol=1e-6)
    np.testing.assert_allclose(found["forecast"], nearest["forecast"], atol=5)  # the hour of the day is their own
    assert (found["forecast"] != nearest["forecast"]).tolist() == [True, False, True, False]
    for table in (found, nearest):
        table["width"] = table["hi-80"] - table["lo-80"]
    np.testing.assert_allclose(found["width"], nearest["width"], rtol=1e-5)
    assert "1 time is more than 12 steps of 1 hour after the last value" in at(
        {"ds": [str(stamps[-1] + pd.Timedelta(hours=13))]}, code=2
    )


def test_what_is_forecast_of_irregular_times_depends_on_how_far_they_are(ridge):
    generator = np.random.default_rng(1)
    stamps = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.cumsum(generator.uniform(0.5, 1.5, 600)), unit="h")
    frame = walk(stamps.floor("s"))
    frame.loc[599, "ds"] = (stamps[598] + pd.Timedelta(hours=1)).floor("s").strftime("%Y-%m-%d %H:%M:%S")
    at = ridge(frame, "irregular")
    last = pd.Timestamp(frame["ds"].iloc[-1])
    step = pd.Timestamp(at()["ds"].iloc[0]) - last

    def ask(*steps, code=0):
        return at({"ds": [str((last + k * step).floor("s")) for k in steps]}, code)

    alone, both, all_of_them = ask(11), ask(1, 11), ask(*range(1, 13))
    for column in ("forecast", "lo-80", "hi-95"):
        assert alone[column].iloc[0] == both[column].iloc[1] == all_of_them[column].iloc[10]
        assert both[column].iloc[0] == all_of_them[column].iloc[0]
    for near in (ask(0.2, 0.3, 0.4), ask(11.8, 11.9, 12)):  # nearer to each other than the steps of the training
        assert near["forecast"].nunique() == 3
    assert "more than 12 steps" in ask(13, code=2)


def test_a_resampled_run_forecasts_steps_alone(ridge):
    stamps = pd.date_range("2024-01-01", periods=24 * 60, freq="h")
    at = ridge(walk(stamps), "daily", ", resample: 1d")
    assert at()["ds"].tolist()[:2] == ["2024-03-01 00:00:00", "2024-03-02 00:00:00"]
    assert len(at({"ds": ["2024-03-02 00:00:00"]})) == 1
    assert "no step of 1 day begins at 2024-03-02 13:00:00" in at({"ds": ["2024-03-02 13:00:00"]}, code=2)


def test_series_of_a_wide_file_that_end_earlier_are_forecast_as_far_as_they_can_be(ridge):
    stamps = pd.date_range("2024-01-01", periods=400, freq="h")
    frame = walk(stamps).assign(z=lambda f: f["y"].where(f.index < 395))
    at = ridge(frame, "wide", ", layout: wide")
    found = at({"ds": pd.date_range(stamps[-1], periods=13, freq="h")[1:].strftime("%Y-%m-%d %H:%M:%S")})
    assert found["unique_id"].value_counts().to_dict() == {"y": 12, "z": 7}


def test_an_empty_category_counts_as_none(fitted, farview_forecast, tmp_path, caplog):
    caplog.set_level("INFO", logger="farview")
    folder, _, ahead = fitted
    for i, text in enumerate(("never seen", "")):
        ahead.assign(day=text).to_csv(tmp_path / f"{i}.csv", index=False)
    tables = [predict(farview_forecast, folder, tmp_path / f"o{i}.csv", tmp_path / f"{i}.csv")[0] for i in (0, 1)]
    pd.testing.assert_frame_equal(*tables)
    assert "column 'day' is empty for 20 of the times asked for, which counts as none" in caplog.text


def test_a_time_off_the_grid_moves_none_that_is_on_it(ridge):
    days = pd.bdate_range("2020-01-01", "2021-02-23")
    frame = pd.DataFrame({"ds": days.strftime("%Y-%m-%d"), "y": np.resize([10.0, 2, 5, 1, 30], len(days))})
    at = ridge(frame.assign(y=frame["y"] + 0.1 * np.random.default_rng(0).normal(size=len(days))), "business")
    plain = at().set_index("ds")["forecast"]
    found = at({"ds": ["2021-02-27", "2021-02-28", "2021-03-01"]}).set_index("ds")["forecast"]
    assert abs(found["2021-03-01"] - plain["2021-03-01"]) < 1e-4


def test_series_of_one_row_step_as_the_others_do(ridge):
    months = pd.date_range("2010-01-01", "2020-12-01", freq="MS").strftime("%Y-%m-%d")
    frame = pd.DataFrame({"unique_id": "a", "ds": months, "y": np.arange(len(months)) % 12})
    single = pd.DataFrame({"unique_id": ["z"], "ds": ["2020-12-01"], "y": [5]})
    table = ridge(pd.concat([frame, single]), "months")()
    for name in "az":
        expected = pd.date_range("2021-01-01", periods=12, freq="MS").strftime("%Y-%m-%d").tolist()
        assert table.loc[table["unique_id"] == name, "ds"].tolist() == expected


def test_series_whose_times_are_all_beyond_the_horizon_are_listed(ridge):
    stamps = pd.date_range("2024-01-01", periods=400, freq="h")
    frame = walk(stamps).assign(z=lambda f: f["y"].where(f.index < 350))
    at = ridge(frame, "ended", ", layout: wide")
    times = {"ds": pd.date_range(stamps[-1], periods=13, freq="h")[1:].strftime("%Y-%m-%d %H:%M:%S")}
    reason = "the times asked for are beyond the horizon after its last value"
    assert at(times, code=1) == f"unique_id,reason\nz,{reason}\n"


def test_only_unknown_series(fitted, farview_forecast, tmp_path):
    folder, _, ahead = fitted
    ahead.assign(shop="x").to_csv(tmp_path / "at.csv", index=False)
    at = ("--at", tmp_path / "at.csv")
    done = farview_forecast("predict", folder / "run", folder / "f.csv", "-o", tmp_path / "o.csv", *at)
    assert done.exit_code == 2
    assert "DATA has no such series as 'x'" in done.stderr
