"""Which column is what, by names and contents."""

import numpy as np
import pandas as pd
import pytest

from common.errors import InputError
from forecasting.audit.roles import find_roles
from forecasting.requests import time_columns
from forecasting.series.read import read_panel
from forecasting.series.tables import open_source

STAMPS = pd.date_range("2024-01-01", periods=60, freq="h")


def roles(tmp_path, frame, **stated):
    path = tmp_path / "f.csv"
    frame.to_csv(path, index=False)
    return find_roles(open_source(path, encoding=None, separator=None, decimal=None), stated)


def values(seed=0, count=60):
    return np.random.default_rng(seed).normal(size=count).round(3)


def test_one_series(tmp_path):
    found = roles(tmp_path, pd.DataFrame({"when": STAMPS, "load": values()}))
    assert found.data == {"time": "when", "target": "load"}


def test_wide(tmp_path):
    frame = pd.DataFrame({"date": STAMPS, "a": values(), "b": values(1), "note": "dry"})
    found = roles(tmp_path, frame)
    assert found.data == {"time": "date", "layout": "wide", "channels": ["a", "b"]}
    assert any("--set data.target=b" in remark for remark in found.remarks)


def test_long_with_static_and_other_columns(tmp_path):
    frames = [
        pd.DataFrame({"park": name, "size": size, "at": STAMPS, "cars": values(size), "sky": ["grey", "blue"] * 30})
        for name, size in (("north", 10), ("south", 20), ("east", 30))
    ]
    found = roles(tmp_path, pd.concat(frames))
    assert found.data == {
        "time": "at", "id": "park", "target": "cars", "static": ["size"], "past": ["sky"], "categorical": ["sky"],
    }  # fmt: skip


def test_two_columns_name_the_series(tmp_path):
    frames = [
        pd.DataFrame({"store": store, "item": item, "ds": STAMPS, "y": values(store * 9 + item)})
        for store in range(3)
        for item in range(4)
    ]
    assert roles(tmp_path, pd.concat(frames)).data == {"time": "ds", "id": ["store", "item"], "target": "y"}


def test_times_over_columns(tmp_path):
    parts = {"year": STAMPS.year, "month": STAMPS.month, "day": STAMPS.day, "hour": STAMPS.hour}
    assert roles(tmp_path, pd.DataFrame({**parts, "y": values()})).data["time"] == ["year", "month", "day", "hour"]
    frame = pd.DataFrame({"Date": STAMPS.strftime("%d/%m/%Y"), "Time": STAMPS.strftime("%H:%M:%S"), "y": values()})
    frame["Date"] = ["16/12/2023"] * 30 + ["17/12/2023"] * 30
    assert roles(tmp_path, frame).data == {"time": ["Date", "Time"], "target": "y"}


def test_counts_of_rows_and_constants_are_left_out(tmp_path):
    frame = pd.DataFrame({"No": range(1, 61), "ds": STAMPS, "k": 7, "level": values()})
    found = roles(tmp_path, frame)
    assert found.data == {"time": "ds", "target": "level"}
    assert len(found.remarks) == 2


def test_what_is_stated_stays(tmp_path):
    frame = pd.DataFrame({"ds": STAMPS, "a": values(), "b": values(1), "c": values(2)})
    found = roles(tmp_path, frame, target="b", future=["c"])
    assert found.data == {"target": "b", "future": ["c"], "time": "ds", "past": ["a"]}


def test_a_finer_column_of_times_wins(tmp_path):
    frame = pd.DataFrame(
        {"Date": STAMPS.strftime("%Y-%m-%d"), "Time": STAMPS.strftime("%Y-%m-%dT%H:%M:%SZ"), "x": values()}
    )
    assert roles(tmp_path, frame).data == {"time": "Time", "target": "x"}


def test_numbers_are_times_only_under_a_name_of_time(tmp_path):
    seconds = 1_700_000_000 + 3600 * np.arange(60)
    assert roles(tmp_path, pd.DataFrame({"epoch": seconds, "x": values()})).data == {"time": "epoch", "target": "x"}
    with pytest.raises(InputError, match="no column holds times"):
        roles(tmp_path, pd.DataFrame({"sensor": seconds, "x": values()}))


def test_hours_in_a_column_of_their_own(tmp_path):
    for name, first in (("Hour", 0), ("HourEnding", 1), ("HE", 1)):
        hours = np.tile(np.arange(24) + first, 20)
        days = pd.date_range("2024-01-01", periods=20).repeat(24).strftime("%m/%d/%Y")
        found = roles(tmp_path, pd.DataFrame({"Date": days, name: hours, "Load": values(count=480)}))
        assert found.data == {"time": ["Date", name], "target": "Load"}
        panel = read_panel(tmp_path / "f.csv", **found.data)
        assert panel.times[0] == pd.Timestamp("2024-01-01").value + first * 3600 * 10**9
        assert (np.diff(panel.times) == 3600 * 10**9).all()


def test_a_clock_of_twelve_hours_in_a_column_of_its_own(tmp_path):
    stamps = pd.date_range("2024-01-01", periods=60, freq="h")
    frame = pd.DataFrame({"Date": stamps.strftime("%m/%d/%Y"), "Time": stamps.strftime("%I:%M %p"), "y": values()})
    found = roles(tmp_path, frame, time_format="%m/%d/%Y %I:%M %p")
    assert found.data["time"] == ["Date", "Time"]
    panel = read_panel(tmp_path / "f.csv", **found.data)
    written = time_columns(panel.times, panel)
    assert written["Date"].tolist() == frame["Date"].tolist()
    assert written["Time"].tolist() == frame["Time"].tolist()


def test_a_stated_form_helps_to_find_the_times(tmp_path):
    frame = pd.DataFrame({"when": STAMPS.strftime("%d|%m|%Y %H"), "y": values()})
    assert roles(tmp_path, frame, time_format="%d|%m|%Y %H").data["time"] == "when"


def test_a_column_of_true_and_false_is_a_category(tmp_path):
    frame = pd.DataFrame({"ds": STAMPS, "y": values(), "open": [True, False] * 30})
    found = roles(tmp_path, frame)
    assert found.data == {"time": "ds", "target": "y", "past": ["open"], "categorical": ["open"]}


def test_a_target_that_is_nearly_all_numbers_is_named(tmp_path):
    frame = pd.DataFrame({"ds": STAMPS, "y": [*map(str, values())][:50] + [f"<{i}" for i in range(10)]})
    with pytest.raises(InputError, match="no column holds numbers alone; 'y' holds '<0', too"):
        roles(tmp_path, frame)


def test_neither_the_target_nor_an_empty_column_is_a_covariate(tmp_path):
    frame = pd.DataFrame({"ds": STAMPS, "y": ["yes", "no"] * 30, "z": values(), "empty": None})
    found = roles(tmp_path, frame, target="y")
    assert found.data == {"target": "y", "time": "ds", "past": ["z"]}


def test_a_year_beside_the_name_of_a_month_or_a_quarter(tmp_path):
    stamps = pd.date_range("1990-01-01", periods=60, freq="MS")
    frame = pd.DataFrame({"Year": stamps.year, "Month": stamps.strftime("%b"), "y": values()})
    quarters = pd.date_range("1990-01-01", periods=60, freq="QS")
    for column, index in (("Month", stamps), ("Quarter", quarters), ("qtr", quarters)):
        if column == "Quarter":
            frame = pd.DataFrame({"Year": index.year, column: [f"Q{q}" for q in index.quarter], "y": values()})
        if column == "qtr":
            frame = pd.DataFrame({"Year": index.year, column: index.quarter, "y": values()})
        found = roles(tmp_path, frame)
        assert found.data == {"time": ["Year", column], "target": "y"}
        panel = read_panel(tmp_path / "f.csv", **found.data)
        assert panel.times.tolist() == index.as_unit("ns").astype("int64").tolist()
        written = time_columns(panel.times, panel)
        assert [written[name].tolist() for name in ("Year", column)] == [
            frame[name].astype(str).tolist() for name in ("Year", column)
        ]


@pytest.mark.parametrize(
    ("columns", "freq"),
    [
        ({"year": "%G", "week": "%V"}, "W-MON"), ({"Year": "%Y", "DOY": "%j"}, "D"),
        ({"year": "%Y", "day_of_year": "%j", "hour": "%H"}, "h"),
        ({"Jahr": "%Y", "Monat": "%m", "Tag": "%d", "Stunde": "%H"}, "h"),
        ({"YY": "%y", "MM": "%m", "DD": "%d", "HR": "%H"}, "h"),
        ({"#YY": "%Y", "MM": "%m", "DD": "%d", "hh": "%H", "mm": "%M"}, "10min"),
    ],
)  # fmt: skip
def test_parts_of_times_in_columns_of_their_own(tmp_path, columns, freq):
    stamps = pd.date_range("2018-01-01", periods=60, freq=freq)
    frame = pd.DataFrame({**{name: stamps.strftime(form) for name, form in columns.items()}, "y": values()})
    found = roles(tmp_path, frame)
    assert found.data == {"time": list(columns), "target": "y"}
    panel = read_panel(tmp_path / "f.csv", **found.data)
    assert panel.times.tolist() == stamps.as_unit("ns").astype("int64").tolist()
    written = time_columns(panel.times, panel)
    assert all(written[name].tolist() == frame[name].tolist() for name in columns)


def test_parts_of_the_date_beside_it_are_not_the_time(tmp_path):
    frame = pd.DataFrame({"date": STAMPS, "year": STAMPS.year, "month": STAMPS.month, "y": values()})
    assert roles(tmp_path, frame).data["time"] == "date"


def test_numbered_half_hours(tmp_path):
    stamps = pd.date_range("2024-01-01", periods=96, freq="30min")
    number = stamps.hour * 2 + stamps.minute // 30 + 1
    frame = pd.DataFrame(
        {"SETTLEMENT_DATE": stamps.strftime("%d-%b-%Y"), "SETTLEMENT_PERIOD": number, "y": values()[0]}
    )
    frame["y"] = np.arange(96) % 7
    assert roles(tmp_path, frame).data["time"] == ["SETTLEMENT_DATE", "SETTLEMENT_PERIOD"]


@pytest.mark.parametrize("form", ["%H.%M.%S", "%I %p", "%H:%M"])
def test_times_of_day_beside_dates(tmp_path, form):
    stamps = pd.date_range("2024-01-13", periods=60, freq="h")
    frame = pd.DataFrame({"Date": stamps.strftime("%d/%m/%Y"), "Time": stamps.strftime(form), "y": values()})
    found = roles(tmp_path, frame)
    assert found.data["time"] == ["Date", "Time"]
    panel = read_panel(tmp_path / "f.csv", **found.data)
    assert panel.times.tolist() == stamps.as_unit("ns").astype("int64").tolist()
    assert time_columns(panel.times, panel)["Time"].tolist() == frame["Time"].tolist()


@pytest.mark.parametrize("form", ["%Hh%M", "HE%H", "%H%M", "%H:%M-%H:59", "%I:%Ma"])
def test_times_of_day_of_an_unknown_form_are_no_names_of_series(tmp_path, form):
    stamps = pd.date_range("2024-01-13", periods=240, freq="h")
    frame = pd.DataFrame({"Date": stamps.strftime("%d/%m/%Y"), "Time": stamps.strftime(form), "y": np.arange(240) % 7})
    with pytest.raises(InputError, match="column 'Time' looks like a part of the time beside 'Date'"):
        roles(tmp_path, frame)


def test_one_time_of_day_that_cannot_be_read_is_named(tmp_path):
    stamps = pd.date_range("2024-01-13", periods=240, freq="h")
    frame = pd.DataFrame(
        {"Date": stamps.strftime("%d/%m/%Y"), "Time": stamps.strftime("%H:%M"), "y": np.arange(240) % 7}
    )
    frame.loc[77, "Time"] = "O5:00"
    found = roles(tmp_path, frame)
    with pytest.raises(InputError, match="line 79: cannot read '16/01/2024 O5:00'"):
        read_panel(tmp_path / "f.csv", **found.data)


def test_a_length_of_time_is_no_time_of_day(tmp_path):
    days = pd.date_range("2024-01-13", periods=60).strftime("%Y-%m-%d")
    frame = pd.DataFrame(
        {"Date": days, "Users": values(), "Avg. Session Duration": [f"00:{i:02d}:07" for i in range(60)]}
    )
    assert roles(tmp_path, frame).data == {"time": "Date", "target": "Users"}
    frame = pd.DataFrame({"Date": days, "Time": "07:30", "level": values()})
    assert roles(tmp_path, frame).data["time"] == ["Date", "Time"]


def test_months_numbered_in_a_column_called_period(tmp_path):
    stamps = pd.date_range("2001-01-01", periods=60, freq="MS")
    frame = pd.DataFrame({"year": stamps.year, "period": stamps.strftime("M%m"), "value": values()})
    found = roles(tmp_path, frame)
    assert found.data["time"] == ["year", "period"]
    panel = read_panel(tmp_path / "f.csv", **found.data)
    assert panel.times.tolist() == stamps.as_unit("ns").astype("int64").tolist()


def test_a_few_texts_among_numbers_make_no_category(tmp_path):
    frame = pd.DataFrame({"date": STAMPS, "temp": values(), "load": np.arange(60) % 7}).astype({"load": object})
    frame.loc[50, "load"] = "12 kW"
    found = roles(tmp_path, frame)
    assert "categorical" not in found.data
    with pytest.raises(InputError, match="line 52: column 'load' holds '12 kW'"):
        read_panel(tmp_path / "f.csv", **found.data)


def test_numbers_with_many_texts_among_them_are_names(tmp_path):
    invoices = [f"C{i}" if i % 12 == 0 else str(489_400 + i // 4) for i in range(60)]
    found = roles(tmp_path, pd.DataFrame({"date": STAMPS, "Invoice": invoices, "y": values()}))
    assert "Invoice" in found.data["categorical"]


def test_units_that_all_numbers_of_a_column_have(tmp_path):
    frame = pd.DataFrame({
        "time": STAMPS, "temp": [f"{v:.1f} °C" for v in values()], "rain": [f"{i % 3} mm" for i in range(60)],
    })  # fmt: skip
    found = roles(tmp_path, frame)
    assert found.data["channels"] == ["temp", "rain"]
    panel = read_panel(tmp_path / "f.csv", **found.data)
    np.testing.assert_allclose(panel.values[:60], np.round(values(), 1))
    assert "numbers are written with mm or °C, which is left out" in panel.notes


def test_parts_of_the_date_and_other_times_are_no_values(tmp_path):
    frame = pd.DataFrame({
        "Store": 1, "DayOfWeek": STAMPS.dayofweek + 1, "Date": STAMPS, "TIMESTAMP_END": STAMPS.strftime("%Y%m%d%H%M"),
        "Sales": values(),
    })  # fmt: skip
    found = roles(tmp_path, pd.concat([frame, frame.assign(Store=2)]))
    assert found.data == {"time": "Date", "id": "Store", "target": "Sales"}
    assert "column 'DayOfWeek' is a part of the date, and is left out" in found.remarks
    assert "column 'TIMESTAMP_END' holds times, and is left out" in found.remarks
    assert roles(tmp_path, frame[["Date", "DayOfWeek"]]).data["target"] == "DayOfWeek"  # there is nothing else


def test_categories_that_are_stated_stand_beside_those_found(tmp_path):
    frame = pd.concat([
        pd.DataFrame({"id": s, "region": s.upper(), "ds": STAMPS, "y": values(), "z": ["wet", "dry"] * 30})
        for s in "ab"
    ])  # fmt: skip
    data = roles(tmp_path, frame, past=["z"], categorical=["z"]).data
    assert (data["static"], data["categorical"]) == (["region"], ["z", "region"])


def test_a_column_called_so_names_series_whose_times_do_not_coincide(tmp_path):
    generator = np.random.default_rng(0)
    frames = [
        pd.DataFrame({
            "station": name, "y": values(i),
            "ds": pd.Timestamp("2024-01-01") + pd.to_timedelta(np.sort(generator.integers(0, 10**6, 60)), unit="s"),
        })
        for i, name in enumerate(("north", "south"))
    ]  # fmt: skip
    for frame in (pd.concat(frames), pd.concat(frames).sort_values("ds")):
        assert roles(tmp_path, frame).data == {"time": "ds", "id": "station", "target": "y"}


def test_covariates_that_are_stated_in_part(tmp_path):
    frame = pd.concat([
        pd.DataFrame({"id": s, "kind": s * 2, "ds": STAMPS, "y": values(), "t": values(1),
                      "w": ["N", "S"] * 30, "c": 1})
        for s in "ab"
    ])  # fmt: skip
    found = roles(tmp_path, frame, future=["w"], categorical=["w"])
    assert (found.data["static"], found.data["past"], found.data["categorical"]) == (["kind"], ["t"], ["w", "kind"])
    found = roles(tmp_path, frame, past=["c"])
    assert (found.data["static"], found.data["past"]) == (["kind"], ["c"])
    assert "left out, since data.past is stated without them: 't', 'w'" in found.remarks
    assert "column 'c' never changes, and says nothing" in found.remarks


def test_events_that_all_count_one(tmp_path):
    frame = pd.concat([pd.DataFrame({"id": s, "ds": STAMPS, "y": 1}) for s in "ab"])
    assert roles(tmp_path, frame).data == {"time": "ds", "id": "id", "target": "y"}


def test_series_of_other_steps_are_told_apart_by_a_column_called_so(tmp_path):
    frames = [
        pd.DataFrame({"id": freq, "ds": pd.date_range("2024-01-01", periods=60, freq=freq), "y": values()})
        for freq in ("h", "D", "MS")
    ]
    assert roles(tmp_path, pd.concat(frames)).data == {"time": "ds", "id": "id", "target": "y"}


def test_months_in_the_heading_are_remarked(tmp_path):
    months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    frame = pd.DataFrame({"Year": np.arange(1950, 2010), **{name: values(i) for i, name in enumerate(months)}})
    assert any("the columns look like the months of a year" in remark for remark in roles(tmp_path, frame).remarks)


def successive(column, *names, gap):
    """Series of sixty days that begin so many days after each other."""
    starts = pd.date_range("2024-01-01", periods=len(names), freq=f"{gap}D")
    return pd.concat([
        pd.DataFrame({column: name, "ds": pd.date_range(start, periods=60, freq="D"), "y": values(i)})
        for i, (name, start) in enumerate(zip(names, starts, strict=True))
    ])  # fmt: skip


@pytest.mark.parametrize(
    "frame",
    [
        successive("store", "North", "South", gap=100),
        successive("store", "North", "South", gap=40),
        successive("store", 101, 102, gap=40),
        successive("what", "b", "a", "c", gap=40),
        successive("what", "b", "a", gap=100).sort_values("what", kind="stable"),
        successive("what", "a", "b", gap=100)[::-1].sort_values("what", kind="stable"),
    ],
)
def test_series_that_share_few_times_or_none(tmp_path, frame):
    column = frame.columns[0]
    assert roles(tmp_path, frame).data == {"time": "ds", "id": column, "target": "y"}


def test_a_state_that_changes_names_no_series(tmp_path):
    frame = successive("phase", "before", "after", gap=60)
    assert roles(tmp_path, frame).data == {"time": "ds", "target": "y", "past": ["phase"], "categorical": ["phase"]}
