"""The commands on real files: what they write, and what they say."""

import itertools
import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from common.config import load_config
from forecasting.config import ForecastConfig
from forecasting.fit import LOSSES, absolute_error

CONFIGS = Path(__file__).parents[2] / "configs" / "forecast"


@pytest.fixture(scope="module")
def forecasts(run, long_csv, farview_forecast, tmp_path_factory):
    out = tmp_path_factory.mktemp("out") / "forecasts.csv"
    done = farview_forecast("predict", run, long_csv, "-o", out)
    assert done.exit_code == 0, done.output
    assert done.stdout == f"{out}\n"
    assert [p.name for p in out.parent.iterdir()] == ["forecasts.csv"]
    return pd.read_csv(out)


def test_a_run_is_a_bundle_with_a_card(run):
    assert sorted(p.name for p in run.iterdir()) == ["bundle.json", "card.md", "model.safetensors"]
    manifest = json.loads((run / "bundle.json").read_text())
    assert manifest["kind"] == "forecast"
    assert manifest["spec"]["model"]["kind"] == "informer"
    card = (run / "card.md").read_text()
    assert "series: 2" in card
    assert "| test |" in card


def test_forecasts_follow_each_series_in_the_order_and_style_of_the_file(forecasts):
    assert list(forecasts) == ["unique_id", "ds", "forecast", "lo-80", "hi-80", "lo-95", "hi-95", "model"]
    assert forecasts["unique_id"].tolist() == ["b"] * 12 + ["a"] * 12
    expected = pd.date_range("2024-01-22", periods=12, freq="h").strftime("%Y-%m-%d %H:%M:%S")
    assert forecasts["ds"].tolist() == [*expected, *expected]
    assert not forecasts.isna().any().any()


def test_forecasts_are_in_original_units_and_inside_their_intervals(forecasts):
    hours = 21 * 24 + np.arange(12)
    for name, level in (("b", 100.0), ("a", -5.0)):
        part = forecasts[forecasts["unique_id"] == name]
        truth = level + 10 * np.sin(2 * np.pi * hours / 24) + 0.01 * hours
        assert np.abs(part["forecast"] - truth).mean() < 1.0
        assert ((part["lo-95"] <= part["lo-80"]) & (part["lo-80"] <= part["forecast"])).all()
        assert ((part["forecast"] <= part["hi-80"]) & (part["hi-80"] <= part["hi-95"])).all()
        assert ((part["lo-95"] < truth) & (truth < part["hi-95"])).mean() > 0.8


def test_fewer_steps_and_levels_are_a_part_of_all(run, long_csv, forecasts, farview_forecast, tmp_path):
    out = tmp_path / "f.csv"
    done = farview_forecast("predict", run, long_csv, "-o", out, "--horizon", 3, "--levels", "95")
    assert done.exit_code == 0, done.output
    expected = forecasts.groupby("unique_id", sort=False).head(3)[
        ["unique_id", "ds", "forecast", "lo-95", "hi-95", "model"]
    ]
    pd.testing.assert_frame_equal(pd.read_csv(out), expected.reset_index(drop=True))


def test_parquet_out_holds_the_same(run, long_csv, forecasts, farview_forecast, tmp_path):
    out = tmp_path / "f.parquet"
    assert farview_forecast("predict", run, long_csv, "-o", out).exit_code == 0
    pd.testing.assert_frame_equal(pd.read_parquet(out), forecasts, check_dtype=False, rtol=1e-7)


def test_same_seed_same_bytes(config, run, farview_forecast, tmp_path):
    assert farview_forecast("fit", config, "-o", tmp_path / "again").exit_code == 0
    for name in ("model.safetensors", "bundle.json"):
        assert (tmp_path / "again" / name).read_bytes() == (run / name).read_bytes()


def test_series_that_cannot_be_forecast_are_listed_and_the_rest_is_written(run, long_csv, farview_forecast, tmp_path):
    frame = pd.read_csv(long_csv)
    odd = pd.DataFrame({
        "unique_id": ["void", "void", "lone", "new", "new", "new"],
        "ds": ["2024-01-01 00:00:00", "2024-01-01 01:00:00"] * 2 + ["2024-01-01 02:00:00", "2024-01-01 03:00:00"],
        "y": [None, None, 1.0, 5.0, 5.0, 5.0],
    })  # fmt: skip
    odd.loc[2, "ds"], odd.loc[3, "ds"] = "2024-01-01 00:00:00", "2024-01-01 01:00:00"
    path, out = tmp_path / "odd.csv", tmp_path / "f.csv"
    pd.concat([odd, frame]).to_csv(path, index=False)
    done = farview_forecast("predict", run, path, "-o", out)
    assert done.exit_code == 1
    failed = pd.read_csv(tmp_path / "f.csv.failed.csv")
    assert failed.to_dict("records") == [{"unique_id": "void", "reason": "every value is missing"}]
    table = pd.read_csv(out)
    assert table["unique_id"].unique().tolist() == ["lone", "new", "b", "a"]
    models = table.groupby("unique_id")["model"].unique().explode().to_dict()
    assert models == {"lone": "last-value", "new": "last-value", "b": "informer", "a": "informer"}
    for name, value, first in (("lone", 1.0, "2024-01-01 01:00:00"), ("new", 5.0, "2024-01-01 04:00:00")):
        part = table[table["unique_id"] == name]
        assert (part["forecast"] == value).all()
        assert part["ds"].iloc[0] == first  # by the step of the run where the series has none
        assert (part["hi-80"] > part["forecast"]).all()
    # A later run without failures leaves no stale list behind.
    assert farview_forecast("predict", run, long_csv, "-o", out).exit_code == 0
    assert [p.name for p in tmp_path.iterdir() if "failed" in p.name] == []


def test_a_series_is_forecast_alike_whatever_else_is_in_the_file(run, long_csv, forecasts, farview_forecast, tmp_path):
    frame = pd.read_csv(long_csv)
    frame[frame["unique_id"] == "a"].to_csv(tmp_path / "a.csv", index=False)
    farview_forecast("predict", run, tmp_path / "a.csv", "-o", tmp_path / "f.csv")
    alone = pd.read_csv(tmp_path / "f.csv")
    pd.testing.assert_frame_equal(alone, forecasts[forecasts["unique_id"] == "a"].reset_index(drop=True), rtol=1e-6)


def test_wide_files_are_fitted_and_forecast(config, farview_forecast, tmp_path):
    hours = np.arange(300)
    wide = pd.DataFrame({
        "date": pd.date_range("2024-01-01", periods=300, freq="h").strftime("%Y/%m/%d %H:%M"),
        "p": np.sin(hours / 4), "q": np.cos(hours / 4),
    })  # fmt: skip
    wide.to_csv(tmp_path / "wide.csv", index=False)
    overrides = [
        "--set", "data.layout=wide", "--set", "data.time=date", "--set", "model={kind: ridge}",
        "--data", tmp_path / "wide.csv",
    ]  # fmt: skip
    done = farview_forecast("fit", config, "-o", tmp_path / "run", *overrides)
    assert done.exit_code == 0, done.output
    done = farview_forecast("predict", tmp_path / "run", tmp_path / "wide.csv", "-o", tmp_path / "f.csv")
    assert done.exit_code == 0, done.output
    table = pd.read_csv(tmp_path / "f.csv")
    assert list(table)[:3] == ["unique_id", "date", "forecast"]
    assert table["date"].iloc[0] == "2024/01/13 12:00"
    ahead = 300 + np.arange(12)
    truth = np.concatenate([np.sin(ahead / 4), np.cos(ahead / 4)])
    np.testing.assert_allclose(table["forecast"], truth, atol=0.01)


@pytest.fixture(scope="module")
def comparison(config, farview_forecast, tmp_path_factory):
    folder = tmp_path_factory.mktemp("compare") / "out"
    done = farview_forecast("compare", config, "-o", folder, "--set", "training.steps=10")
    assert done.exit_code == 0, done.output
    return folder, done.stdout


def test_compare_writes_report_data_and_runs(comparison):
    folder, text = comparison
    assert sorted(p.name for p in folder.iterdir()) == ["comparison.json", "report.html", "runs"]
    found = json.loads((folder / "comparison.json").read_text())
    rows = {row["model"]: row for row in found["rows"]}
    assert list(rows) == ["informer", "lstm", "tcn", "ridge", "seasonal-naive"]
    assert [row["role"] for row in rows.values()] == ["attention", "baseline", "baseline", "baseline", "floor"]
    assert [len(row["scores"]) for row in rows.values()] == [2, 2, 2, 1, 1]
    assert sorted(p.name for p in (folder / "runs").iterdir()) == sorted(rows)
    assert "seasonal-naive" in text
    html = (folder / "report.html").read_text()
    assert f"{rows['ridge']['scores'][0]['mae']:.3f}"[:4] in html


def test_the_scores_are_those_of_a_plain_loop_over_the_test_windows(comparison, long_csv):
    folder, _ = comparison
    found = json.loads((folder / "comparison.json").read_text())
    naive = next(row for row in found["rows"] if row["model"] == "seasonal-naive")["scores"][0]
    errors = []
    for _, part in pd.read_csv(long_csv).groupby("unique_id", sort=False):
        y = part["y"].to_numpy()
        test = int(len(y) * 0.15)
        train = len(y) - 2 * test
        z = (y - y[:train].mean()) / y[:train].std()
        origins = range(len(z) - test, len(z) - 12 + 1)
        errors += [z[origin : origin + 12] - z[origin - 24 : origin - 12] for origin in origins]
    assert naive["mae"] == pytest.approx(np.abs(errors).mean(), rel=1e-5)
    assert naive["rmse"] == pytest.approx(np.sqrt(np.square(errors).mean()), rel=1e-5)


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.yaml")), ids=lambda p: p.name)
def test_every_configuration_parses(path):
    load_config(path, ForecastConfig)


@pytest.mark.parametrize("name", ["audit", "fit", "predict", "compare"])
def test_help_has_an_example(farview_forecast, name):
    done = farview_forecast(name, "--help")
    assert done.exit_code == 0
    assert f"farview forecast {name} " in done.output


def test_the_examples_of_the_help_texts_run(farview_forecast, tmp_path, monkeypatch):
    """The commands as --help shows them, on the generated series, with fewer steps."""
    import shlex

    from datasets import get

    get("sine", tmp_path / "sine")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "configs").symlink_to(CONFIGS.parent)
    for name in ("audit", "fit", "predict", "compare"):
        text = farview_forecast(name, "--help").output
        line = next(line for line in text.splitlines() if line.strip().startswith(f"farview forecast {name} "))
        few = [] if name in ("audit", "predict") else ["--set", "training.steps=2"]
        done = farview_forecast(*shlex.split(line)[2:], *few)
        assert done.exit_code == 0, done.output
    assert (tmp_path / "sine.yaml").exists()
    assert len(pd.read_csv(tmp_path / "forecasts.csv")) == 3 * 24


BAD = [
    ("", "the file is empty"),
    ("unique_id,when,y\na,2024-01-01,1\n", "there is no column 'ds'"),
    ("unique_id,ds,y\na,2024-01-01,1\na,soon,2\n", "line 3: cannot read 'soon' as a time"),
    ("unique_id,ds,y\na,2024-01-01,1\na,2024-01-02,much\n", "line 3: column 'y' holds 'much'"),
]


@pytest.mark.parametrize(("text", "says"), BAD)
@pytest.mark.parametrize("command", ["fit", "compare", "predict"])
def test_bad_data_is_one_message_and_nothing_is_written(text, says, command, config, run, farview_forecast, tmp_path):
    bad = tmp_path / "bad.csv"
    bad.write_text(text)
    out = tmp_path / ("out.csv" if command == "predict" else "out")
    arguments = [run, bad] if command == "predict" else [config, "--data", bad]
    done = farview_forecast(command, *arguments, "-o", out)
    assert done.exit_code == 2
    assert done.stderr.startswith(f"error: {bad}")
    assert says in done.stderr
    assert "Traceback" not in done.output
    assert [p.name for p in tmp_path.iterdir()] == ["bad.csv"]


def test_a_config_with_three_mistakes_shows_all_three(config, farview_forecast, tmp_path):
    bad = tmp_path / "bad.yaml"
    bad.write_text("data: {path: x.csv, layout: tall}\nlookback: 0\nhorizon: 12\nmodel: {kind: informer, width: 3}\n")
    done = farview_forecast("fit", bad, "-o", tmp_path / "run")
    assert done.exit_code == 2
    for place in ("data.layout (line 1)", "lookback (line 2)", "model.width (line 4): unknown key"):
        assert place in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["bad.yaml"]


def test_other_refusals(run, long_csv, config, farview_forecast, tmp_path):
    def says(*arguments):
        done = farview_forecast(*arguments)
        assert done.exit_code == 2, done.output
        assert list(tmp_path.iterdir()) == []
        return done.stderr

    out = tmp_path / "f.csv"
    assert "up to 12 steps, 13 were asked" in says("predict", run, long_csv, "-o", out, "--horizon", 13)
    assert "no interval of 50%" in says("predict", run, long_csv, "-o", out, "--levels", "50")
    assert "not a list of numbers" in says("predict", run, long_csv, "-o", out, "--levels", "a")
    assert "cannot write .xlsx" in says("predict", run, long_csv, "-o", tmp_path / "f.xlsx")
    assert "no bundle.json" in says("predict", long_csv.parent, long_csv, "-o", out)
    assert "no such file (the data)" in says("predict", run, tmp_path / "none.csv", "-o", out)
    assert "no series is long enough" in says("fit", config, "-o", out, "--set", "horizon=400")
    assert "the test part holds no window" in says("compare", config, "-o", out, "--set", "split.test=5")


def test_an_interrupt_leaves_nothing(config, farview_forecast, tmp_path, monkeypatch):
    def interrupted(*_args, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr("forecasting.fit.train", interrupted)
    assert farview_forecast("fit", config, "-o", tmp_path / "run").exit_code == 1
    assert list(tmp_path.iterdir()) == []


def test_a_fit_goes_on_where_it_was_interrupted(config, run, farview_forecast, tmp_path, monkeypatch, caplog):
    calls = itertools.count()

    def interrupted(model, batch):
        if model.training and next(calls) == 15:  # of 20, after the check at 10
            raise KeyboardInterrupt
        return absolute_error(model, batch)

    monkeypatch.setitem(LOSSES, "mae", interrupted)
    arguments = ("fit", config, "-o", tmp_path / "run")
    assert farview_forecast(*arguments).exit_code == 1
    assert "interrupted: --resume goes on from step 10" in caplog.text
    assert [path.name for path in tmp_path.iterdir()] == ["run.checkpoint"]
    monkeypatch.setitem(LOSSES, "mae", absolute_error)
    other = farview_forecast(*arguments, "--resume", "--set", "model.dim=32", "--set", "training.steps=30")
    assert other.exit_code == 2
    assert "another one: model.dim (16, now 32), training.steps (20, now 30)" in other.stderr
    done = farview_forecast(*arguments, "--resume")
    assert done.exit_code == 0, done.output
    assert "going on from step 10 of 20" in caplog.text
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    for name in ("model.safetensors", "bundle.json"):
        assert (tmp_path / "run" / name).read_bytes() == (run / name).read_bytes()


def test_a_bundle_from_elsewhere_with_missing_parts_is_refused(run, long_csv, farview_forecast, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    manifest = json.loads((copy / "bundle.json").read_text())
    del manifest["spec"]["widths"]
    (copy / "bundle.json").write_text(json.dumps(manifest))
    done = farview_forecast("predict", copy, long_csv, "-o", tmp_path / "f.csv")
    assert done.exit_code == 2
    assert "bundle.json: 1 mistake\n  - widths: this key is required" in done.stderr


def test_threads_do_not_matter(run, long_csv, forecasts, farview_forecast, tmp_path):
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        farview_forecast("predict", run, long_csv, "-o", tmp_path / "f.csv")
    finally:
        torch.set_num_threads(threads)
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "f.csv"), forecasts, rtol=1e-6)


def fitted(farview_forecast, folder, frame, *settings):
    """Exit code, run, and forecasts of a file, by ridge."""
    frame.to_csv(folder / "data.csv", index=False)
    (folder / "job.yaml").write_text(
        "data: {path: data.csv, layout: wide}\nlookback: 24\nhorizon: 6\nmodel: {kind: ridge}\n"
    )
    done = farview_forecast("fit", folder / "job.yaml", "-o", folder / "run", *settings)
    assert done.exit_code == 0, done.output
    farview_forecast("predict", folder / "run", folder / "data.csv", "-o", folder / "f.csv")
    return done, pd.read_csv(folder / "f.csv")


def hourly(**columns):
    count = len(next(iter(columns.values())))
    times = pd.date_range("2024-01-01", periods=count, freq="h").strftime("%Y-%m-%d %H:%M:%S")
    return pd.DataFrame({"ds": times, **columns})


def noise(count=400, seed=0):
    return 100 + 2 * np.random.default_rng(seed).standard_normal(count)


def test_series_that_begin_late_or_never_spoil_nothing(farview_forecast, tmp_path, caplog):
    late = np.where(np.arange(400) < 300, np.nan, 1e8 * noise(seed=1))
    _, table = fitted(farview_forecast, tmp_path, hourly(a=noise(), b=late, c=np.full(400, np.nan)))
    assert "1 of 3 series have no value in their training part, and are left out: c" in caplog.text
    assert "c" not in set(table["unique_id"])
    width = (table["hi-95"] - table["lo-95"])[table["unique_id"] == "a"]
    assert ((width > 4) & (width < 16)).all()  # 3.92 standard deviations of 2, and some
    assert table["forecast"][table["unique_id"] == "b"].between(0.9e10, 1.1e10).all()


def test_intervals_have_a_width_where_nothing_was_observed_in_validation(farview_forecast, tmp_path):
    values = noise()
    values[280:340] = np.nan  # the validation part, 15% before the last 15%
    _, table = fitted(farview_forecast, tmp_path, hourly(a=values))
    assert (table["hi-80"] - table["lo-80"] > 2).all()
    assert "| validation | 55 | no value observed |" in (tmp_path / "run" / "card.md").read_text()


def test_forecasts_follow_the_last_value_of_a_series_that_ends_without_values(farview_forecast, tmp_path, caplog):
    caplog.set_level("INFO", logger="farview")
    ended = noise(seed=1)
    frame = hourly(a=noise(), b=ended)
    frame.loc[len(frame) - 24 :, "b"] = np.nan
    done, table = fitted(farview_forecast, tmp_path, frame)
    assert done.exit_code == 0
    times = table.groupby("unique_id", sort=False)["ds"].first()
    last = pd.to_datetime(frame["ds"].iloc[-1])
    assert pd.to_datetime(times["a"]) == last + pd.Timedelta("1h")
    assert pd.to_datetime(times["b"]) == last - pd.Timedelta("23h")
    assert (table["model"] == table["model"].iloc[0]).all()
    assert "1 of 2 series end with rows without a value: their forecasts begin after the last value" in caplog.text


def test_a_test_part_without_values_is_said(farview_forecast, tmp_path):
    values = noise()
    values[330:] = np.nan
    hourly(a=values).to_csv(tmp_path / "data.csv", index=False)
    (tmp_path / "job.yaml").write_text("data: {path: data.csv, target: a}\nlookback: 24\nhorizon: 6\n")
    models = "compare.models=[{kind: ridge}, {kind: seasonal-naive}]"
    done = farview_forecast("compare", tmp_path / "job.yaml", "-o", tmp_path / "out", "--set", models)
    assert done.exit_code == 2
    assert "no value is observed in the test part" in done.stderr
    assert not (tmp_path / "out").exists()


def test_series_of_one_row_do_not_change_what_is_usual(farview_forecast, tmp_path, long_csv):
    rows = pd.read_csv(long_csv)
    single = rows.head(5).assign(unique_id=[f"one{i}" for i in range(5)])
    pd.concat([rows, single]).to_csv(tmp_path / "data.csv", index=False)
    (tmp_path / "job.yaml").write_text("data: {path: data.csv}\nlookback: 24\nhorizon: 6\nmodel: {kind: ridge}\n")
    assert farview_forecast("fit", tmp_path / "job.yaml", "-o", tmp_path / "run").exit_code == 0
    assert json.loads((tmp_path / "run" / "bundle.json").read_text())["spec"]["step_seconds"] == 3600
    done = farview_forecast("predict", tmp_path / "run", tmp_path / "data.csv", "-o", tmp_path / "f.csv")
    assert "warning: the run was fitted on steps" not in done.stderr


def test_an_output_never_replaces_what_it_is_made_from(run, long_csv, farview_forecast, tmp_path):
    data = tmp_path / "data.csv"
    data.write_bytes(long_csv.read_bytes())
    (tmp_path / "link.csv").hardlink_to(data)
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for output, says in (
        (data, "would be written over the data"),
        (tmp_path / "link.csv", "would be written over the data"),
        (copy / "forecasts.csv", "would be written over the run"),
    ):
        done = farview_forecast("predict", copy, data, "-o", output)
        assert done.exit_code == 2, done.output
        assert says in done.stderr
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    "damage",
    [
        {"widths": [[1.0]]}, {"lookback": -1}, {"step_seconds": 0}, {"scales": []}, {"scales": {"y": [0, "a"]}},
        {"scales": {"y": [float("nan"), 1]}}, {"scales": {"y": [0, 0]}}, {"data": None}, {"levels": ["high", 95]},
        {"model": {"kind": "oracle"}},
    ],
    ids=str,
)  # fmt: skip
def test_what_a_bundle_says_of_itself_is_checked(damage, run, long_csv, farview_forecast, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    manifest = json.loads((copy / "bundle.json").read_text())
    manifest["spec"].update(damage)
    (copy / "bundle.json").write_text(json.dumps(manifest))
    done = farview_forecast("predict", copy, long_csv, "-o", tmp_path / "f.csv")
    assert done.exit_code == 2, done.output
    assert "bundle.json: 1 mistake\n" in done.stderr
    assert next(iter(damage)) in done.stderr
    assert not (tmp_path / "f.csv").exists()


def test_a_file_name_is_taken_as_it_is(config, long_csv, farview_forecast, tmp_path):
    for name in ("load #2.csv", "load: b.csv", "100%.csv"):
        (tmp_path / name).write_bytes(long_csv.read_bytes())
        settings = ["--set", "model.kind=ridge", "--set", "model={kind: ridge}"]
        done = farview_forecast("fit", config, "--data", tmp_path / name, "-o", tmp_path / "run", *settings)
        assert done.exit_code == 0, done.output


def test_a_file_of_single_rows_repeats_them(run, farview_forecast, tmp_path):
    (tmp_path / "f.csv").write_text("unique_id,ds,y\nx,2024-02-01 00:00:00,5\nz,2024-02-01 00:00:00,6\n")
    done = farview_forecast("predict", run, tmp_path / "f.csv", "-o", tmp_path / "o.csv", "--horizon", 2)
    assert done.exit_code == 0, done.output
    table = pd.read_csv(tmp_path / "o.csv")
    assert table["forecast"].tolist() == [5, 5, 6, 6]
    assert set(table["model"]) == {"last-value"}


def test_the_list_of_failures_replaces_no_input(run, long_csv, farview_forecast, tmp_path):
    data = tmp_path / "o.csv.failed.csv"
    shutil.copy(long_csv, data)
    done = farview_forecast("predict", run, data, "-o", tmp_path / "o.csv")
    assert (done.exit_code, data.read_bytes()) == (2, long_csv.read_bytes())
    assert "would be written over the data" in done.stderr


def test_failures_are_listed_by_the_columns_of_the_file(farview_forecast, tmp_path):
    frames = [hourly(y=noise()).assign(store="9", item=item) for item in ("1", "2")]
    frames[1]["y"] = np.nan
    pd.concat(frames).to_csv(tmp_path / "f.csv", index=False)
    job = "data: {path: f.csv, id: [store, item]}\nlookback: 24\nhorizon: 6\nmodel: {kind: ridge}\n"
    (tmp_path / "job.yaml").write_text(job)
    assert farview_forecast("fit", tmp_path / "job.yaml", "-o", tmp_path / "run").exit_code == 0
    done = farview_forecast("predict", tmp_path / "run", tmp_path / "f.csv", "-o", tmp_path / "o.csv")
    assert done.exit_code == 1
    assert (tmp_path / "o.csv.failed.csv").read_text() == "store,item,reason\n9,2,every value is missing\n"


def test_a_forecast_that_is_not_finite_is_a_failure(run, long_csv, farview_forecast, tmp_path):
    rows = pd.read_csv(long_csv)
    rows.loc[rows.index[-1], "y"] = 1e36  # of series a, whose values are near -5
    other = rows["unique_id"] != rows["unique_id"].iloc[-1]
    rows.loc[~other, "y"] *= 1e33
    rows["y"] = rows["y"].clip(-1e36, 1e36)
    rows.to_csv(tmp_path / "f.csv", index=False)
    done = farview_forecast("predict", run, tmp_path / "f.csv", "-o", tmp_path / "o.csv")
    table = pd.read_csv(tmp_path / "o.csv")
    assert np.isfinite(table["forecast"]).all()
    assert done.exit_code in (0, 1)


@pytest.mark.parametrize("scale", [1e-303, 1e13])
def test_values_of_any_size_are_forecast_in_their_unit(farview_forecast, tmp_path, scale):
    values = noise() + 5 if scale < 1 else scale + np.round(10 * noise())
    hourly(y=values * (scale if scale < 1 else 1)).to_csv(tmp_path / "f.csv", index=False)
    (tmp_path / "job.yaml").write_text("data: {path: f.csv}\nlookback: 24\nhorizon: 6\nmodel: {kind: ridge}\n")
    assert farview_forecast("fit", tmp_path / "job.yaml", "-o", tmp_path / "run").exit_code == 0
    done = farview_forecast("predict", tmp_path / "run", tmp_path / "f.csv", "-o", tmp_path / "o.csv")
    assert done.exit_code == 0, done.output
    table = pd.read_csv(tmp_path / "o.csv")
    low, high = (values * (scale if scale < 1 else 1)).min(), (values * (scale if scale < 1 else 1)).max()
    assert table["forecast"].between(low, high).all()
    assert (table["hi-80"] > table["lo-80"]).all()
