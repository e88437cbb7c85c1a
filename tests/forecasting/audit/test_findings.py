"""What an audit finds in series that were made to have it."""

import json

import numpy as np
import pandas as pd
import pytest
import yaml

from forecasting.audit.findings import audit_series
from forecasting.audit.leaks import find_leaks
from forecasting.audit.periods import find_periods
from forecasting.audit.run import audit

HOUR = 3600 * 10**9


def wave(times, period, seed=0, noise=0.3):
    return np.sin(2 * np.pi * times / period) + noise * np.random.default_rng(seed).normal(size=len(times))


@pytest.mark.parametrize("period", [24 * HOUR, 168 * HOUR, int(12.42 * HOUR), 37 * HOUR])
@pytest.mark.parametrize("regular", [True, False])
def test_a_period_is_found_whatever_the_steps(period, regular):
    generator = np.random.default_rng(1)
    times = np.arange(3000) * HOUR
    if not regular:  # at odd moments, half of them missing
        times = np.sort(times + generator.integers(0, HOUR, len(times)))[generator.random(3000) < 0.5]
    step = HOUR if regular else int(np.median(np.diff(times)))
    found = find_periods(times, wave(times, period), step)
    assert found
    assert abs(found[0].nanoseconds / period - 1) < 0.03
    assert found[0].power == pytest.approx(0.5 / 0.59, abs=0.08)  # what the sine has of the variance
    assert found[0].strength > 0.5


def test_noise_trends_and_few_values_have_no_period():
    times = np.arange(2000) * HOUR
    generator = np.random.default_rng(0)
    assert find_periods(times, generator.normal(size=2000), HOUR) == []
    assert find_periods(times, generator.normal(size=2000).cumsum(), HOUR) == []
    assert find_periods(times, np.arange(2000.0), HOUR) == []
    assert find_periods(times[:10], generator.normal(size=10), HOUR) == []


def test_a_day_is_no_week_but_a_week_is_one():
    times = np.arange(24 * 60) * HOUR
    assert [each.calendar for each in find_periods(times, wave(times, 24 * HOUR), HOUR)] == ["day"]
    workdays = np.where(times // (24 * HOUR) % 7 < 5, 1.0, 0.3)
    both = find_periods(times, workdays * (2 + wave(times, 24 * HOUR)), HOUR)
    assert {each.calendar for each in both} == {"day", "week"}


def test_figures_of_a_series(make_panel):
    values = np.random.default_rng(0).normal(50, 5, 100)
    values[[3, 4]] = np.nan
    values[20] = 5000.0
    found = audit_series(make_panel(values), 0, periods=False)
    assert (found.rows, found.step, found.regular, found.gaps, found.missing) == (100, "1 hour", 1.0, 0, 0.02)
    assert found.first == "1970-01-01 00:00:00"
    assert found.outliers == 1
    assert found.findings[0].endswith(": 5000")
    assert found.findings[0].startswith("1 value is far outside the usual 4")


def test_a_level_that_shifts_at_once_is_told_from_a_trend(make_panel):
    noise = np.random.default_rng(0).normal(size=600)
    shifted = noise + np.where(np.arange(600) < 300, 0, 30)
    findings = audit_series(make_panel(shifted), 0, periods=False).findings
    assert len(findings) == 1
    assert findings[0].startswith("the level shifts about 1970-01-13 12:00:00, from -0")
    assert audit_series(make_panel(noise + np.arange(600) * 0.1), 0, periods=False).findings == ()
    assert audit_series(make_panel(noise), 0, periods=False).findings == ()


def test_growth_is_no_level_shift(make_panel):
    for seed in range(10):
        noise = np.random.default_rng(seed).normal(1, 0.1, 1500)
        found = audit_series(make_panel(100 * np.exp(0.003 * np.arange(1500)) * noise), 0, periods=False)
        assert not any("level shifts" in each for each in found.findings)


def write(tmp_path, frame, name="f.csv"):
    frame.to_csv(tmp_path / name, index=False)
    return tmp_path / name


@pytest.mark.parametrize(
    ("freq", "pattern"), [("QS", [1, 5, 2, 8]), ("B", [10, 2, 5, 1, 8]), ("MS", [1, 3, 2, 5, 4, 9, 7, 8, 6, 2, 1, 0])]
)
def test_periods_of_steps_that_vary_in_length_are_as_strong_as_they_are(tmp_path, freq, pattern):
    y = np.resize(np.array(pattern, dtype=float), 480) + 0.3 * np.random.default_rng(0).normal(size=480)
    frame = pd.DataFrame({"ds": pd.date_range("1900-01-01", periods=480, freq=freq), "y": y})
    found = audit(write(tmp_path, frame), {}).series[0].periods
    k = len(pattern)
    assert max(each.strength for each in found) == pytest.approx(np.corrcoef(y[k:], y[:-k])[0, 1], abs=0.03)


@pytest.mark.parametrize(("other", "size"), [(12.42, 7), (29.5, 10), (37, 8)])
def test_two_waves_do_not_hide_each_other(tmp_path, other, size):
    hours = np.arange(3000)
    y = 10 * np.sin(2 * np.pi * hours / 24) + size * np.sin(2 * np.pi * hours / other)
    y += np.random.default_rng(0).normal(size=3000)
    frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=3000, freq="h"), "y": y})
    found = audit(write(tmp_path, frame), {}).series[0].periods
    assert sorted(round(each.nanoseconds / 3.6e12, 1) for each in found) == pytest.approx(sorted([24, other]), abs=0.1)


def test_no_period_is_found_in_what_wanders():
    times = np.arange(2000) * 3600 * 10**9
    for seed in range(20):
        walk = np.random.default_rng(seed).normal(size=2000).cumsum()
        assert find_periods(times, walk, 3600 * 10**9) == []


def test_codes_at_both_ends_and_several_outliers(make_panel):
    y = np.random.default_rng(0).normal(100, 1, 600)
    y[50:60], y[200:210] = -999, 9999
    found = audit_series(make_panel(y), 0, periods=False)
    assert found.outliers == 20
    assert [each.split(" far")[0] for each in found.findings] == ["-999 stands 10 times", "9999 stands 10 times"]
    y = np.random.default_rng(0).normal(100, 1, 600)
    y[[5, 90, 300, 400]] = 1e4, 2e4, 3e4, 4e4
    assert audit_series(make_panel(y), 0, periods=False).outliers == 4
    y[:500] = -999
    assert audit_series(make_panel(y), 0, periods=False).findings[0].startswith("-999 stands 500 times far")


def test_a_fast_wave_of_a_long_series_has_no_mirror(tmp_path):
    y = np.sin(2 * np.pi * np.arange(3000) / 3.7) + 0.1 * np.random.default_rng(0).normal(size=3000)
    frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=3000, freq="h"), "y": y})
    found = audit(write(tmp_path, frame), {}).series[0].periods
    assert [round(each.nanoseconds / 3.6e12, 1) for each in found] == [3.7]


def test_leaks_are_looked_for_in_the_longest_series(tmp_path):
    stamps = pd.date_range("2024-01-01", periods=240, freq="h")
    y = np.random.default_rng(0).normal(size=240)
    long = pd.DataFrame({"id": "b", "ds": stamps, "y": y, "x": 2 * y + 1, "lag": np.roll(y, 1)})
    found = audit(write(tmp_path, pd.concat([long.head(20).assign(id="a"), long])), {"past": ["x", "lag"]}).findings
    assert "covariate 'x' is the target itself in another unit: it would give the answer away" in found
    assert "covariate 'lag' is the target of 1 row before: it tells no more than the lookback does" in found


def test_leaks(tmp_path):
    generator = np.random.default_rng(0)
    stamps = pd.date_range("2024-01-01", periods=240, freq="h")
    y = generator.normal(size=240).cumsum()
    frame = pd.DataFrame({
        "ds": stamps, "y": y, "copy": 3 * y + 1, "next": np.roll(y, -1), "before": np.roll(y, 2),
        "fair": y + generator.normal(size=240), "of_the_day": np.repeat(generator.normal(size=10), 24),
    })  # fmt: skip
    found = audit(write(tmp_path, frame), {"target": "y"}).findings
    assert [f for f in found if "'copy'" in f] == [
        "covariate 'copy' is the target itself in another unit: it would give the answer away"
    ]
    assert any("'next' is the target of 1 row later" in f for f in found)
    assert any("'before' is the target of 2 rows before" in f for f in found)
    assert any("'of_the_day' changes at midnight only" in f for f in found)
    assert not any("'fair'" in f for f in found)
    wide = audit(write(tmp_path, frame[["ds", "y", "copy", "fair"]].rename(columns={"y": "a"})), {}).findings
    assert wide == ("series 'copy' is 'a' itself in another unit",)


def habits(zone, stamps):
    local = stamps.tz_localize("UTC").tz_convert(zone)
    hour = (local.hour + local.minute / 60).to_numpy()
    return np.exp(-((hour - 8) ** 2)) + 0.5 * np.exp(-((hour - 19) ** 2) / 4)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Australia/Melbourne", "America/New_York"])
def test_habits_that_follow_daylight_saving(tmp_path, zone):
    stamps = pd.date_range("2021-01-01", "2023-12-31", freq="h")
    noise = 0.05 * np.random.default_rng(0).normal(size=len(stamps))
    frame = pd.DataFrame({"ds": stamps.strftime("%Y-%m-%dT%H:%M:%SZ"), "y": habits(zone, stamps) + noise})
    found = audit(write(tmp_path, frame), {})
    assert found.zone == zone
    assert found.findings == (
        f"times are in UTC, but habits follow daylight saving as in {zone} or another zone of its rule",
    )
    steady = frame.assign(y=habits("Asia/Tokyo", stamps) + noise)
    assert audit(write(tmp_path, steady), {}).findings == ()


def test_a_clock_that_is_changed(tmp_path):
    stamps = pd.date_range("2021-01-01", "2023-12-31", freq="h", tz="Europe/Berlin")
    frame = pd.DataFrame({"ds": stamps.strftime("%Y-%m-%d %H:%M:%S"), "y": np.arange(len(stamps)) % 7})
    found = audit(write(tmp_path, frame), {})
    assert found.zone == "Europe/Berlin"
    twice = "the times that stand twice are those of the hour that the clock of Europe/Berlin shows twice"
    assert twice in found.findings
    assert "duplicates" not in found.data
    once = audit(write(tmp_path, frame.drop_duplicates("ds")), {})  # a logger that wrote over it
    assert once.zone == "Europe/Berlin"
    assert any("changed as in Europe/Berlin" in each for each in once.findings)
    # With the zone stated, every hour is there and none stands twice.
    known = audit(write(tmp_path, frame), {"timezone": "Europe/Berlin"})
    assert known.series[0].duplicates == known.series[0].gaps == 0
    assert known.notes == ("6 rows in the hour that Europe/Berlin shows twice: told apart by their order",)


def test_json_holds_all_and_the_suggestion_is_a_configuration(tmp_path, farview_forecast):
    stamps = pd.date_range("2024-01-01", periods=300, freq="h")
    y = np.sin(2 * np.pi * np.arange(300) / 24) + 0.1 * np.random.default_rng(0).normal(size=300)
    frame = pd.concat(
        [pd.DataFrame({"shop": name, "at": stamps.strftime("%d.%m.%Y %H:%M"), "sold": y.round(3)}) for name in "ab"]
    )
    path = write(tmp_path, frame)
    done = farview_forecast("audit", path, "--json", "--suggest", tmp_path / "job.yaml")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert [series["name"] for series in found["series"]] == ["a", "b"]
    assert found["series"][0]["periods"][0]["seconds"] == 86_400
    job = yaml.safe_load((tmp_path / "job.yaml").read_text())
    assert job["data"] == {"path": "f.csv", "time": "at", "id": "shop", "target": "sold"}
    quick = ("--set", "training.steps=2", "--set", "model={kind: ridge}")
    assert farview_forecast("fit", tmp_path / "job.yaml", "-o", tmp_path / "run", *quick).exit_code == 0
    done = farview_forecast("predict", tmp_path / "run", path, "-o", tmp_path / "o.csv")
    assert done.exit_code == 0, done.output
    table = pd.read_csv(tmp_path / "o.csv")
    assert table["at"][0] == "13.01.2024 12:00"
    assert np.isfinite(table["forecast"]).all()


def test_events_are_told_from_series(tmp_path):
    generator = np.random.default_rng(0)
    minutes = np.sort(generator.integers(0, 90 * 1440, 6000))
    stamps = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.repeat(minutes, 2), unit="min")
    frame = pd.DataFrame(
        {"ds": stamps, "article": generator.choice(list("abc"), 12_000), "y": generator.integers(1, 9, 12_000)}
    )
    found = audit(write(tmp_path, frame), {})
    assert (found.data["resample"], found.data["how"]) == ("1d", "sum")
    assert any("events rather than series" in each for each in found.findings)


def test_no_leak_between_unlike_series(make_panel):
    generator = np.random.default_rng(0)
    assert find_leaks(make_panel(generator.normal(size=100), generator.normal(size=100))) == []


def test_values_far_off_do_not_hide_a_period(tmp_path):
    frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=480, freq="h")})
    frame["y"] = 100 + 10 * np.sin(np.arange(480) * 2 * np.pi / 24)
    frame.loc[[100, 250, 400], "y"] = 1e6
    found = audit(write(tmp_path, frame), {}).series[0]
    assert found.outliers == 3
    assert found.periods[0].calendar == "day"
    assert found.periods[0].strength > 0.8


def test_offsets_that_change_are_told_of(tmp_path):
    def notes(stamps, **stated):
        frame = pd.DataFrame({"ds": [stamp.isoformat(sep=" ") for stamp in stamps], "y": np.arange(100) % 7})
        return audit(write(tmp_path, frame), stated).notes

    assert notes(pd.date_range("2021-11-05", periods=100, freq="h", tz="America/Chicago")) == (
        "times have the offsets of America/Chicago, which is taken for the local zone",
    )
    odd = [*pd.date_range("2021-11-05", periods=50, freq="h", tz="UTC+02:00"),
           *pd.date_range("2021-11-07 00:00", periods=50, freq="h", tz="UTC").tz_convert("UTC+05:00")]  # fmt: skip
    assert notes(odd) == (
        "times state different offsets from UTC: forecasts are written in UTC, or data.timezone if stated",
    )
    assert notes(odd, timezone="Europe/Berlin") == ()


def test_three_centuries_are_longer_than_nanoseconds_in_one_number_can_count(tmp_path):
    years = pd.DataFrame({"Year": np.arange(1700, 2020), "y": 10 + np.sin(np.arange(320) * 2 * np.pi / 11)})
    found = audit(write(tmp_path, years), {}).series[0]
    assert (found.step, found.gaps, round(found.span_seconds / 86_400 / 365.2425)) == ("1 year", 0, 319)
    assert found.periods[0].nanoseconds == pytest.approx(11 * 365.2425 * 86_400e9, rel=0.01)
    days = pd.DataFrame({"ds": pd.date_range("1700-01-01", "2020-01-01", freq="7D").strftime("%Y-%m-%d")})
    days = days.assign(y=np.arange(len(days)) % 5).drop(index=[400, 16_000])
    found = audit(write(tmp_path, days), {}).series[0]
    assert (found.step, found.missing_times) == ("7 days", 2)


def test_part_of_a_day_is_no_habit(tmp_path):
    frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=400, freq="min"), "y": np.arange(400) % 7})
    assert audit(write(tmp_path, frame), {}).series[0].findings == ()


def test_series_that_nothing_names_are_told_of(tmp_path):
    frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=100, freq="h").repeat(2), "y": np.arange(200) % 7})
    found = audit(write(tmp_path, frame), {}).findings
    assert found == ("100 rows have a time that stands already: if they are several series, a column must name them",)
