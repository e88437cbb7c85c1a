"""Reading files of series."""

import gzip

import numpy as np
import pandas as pd
import pytest

from common.errors import InputError
from forecasting.requests import time_columns
from forecasting.series.read import read_panel
from forecasting.series.steps import grid
from forecasting.series.style import write_times

read = read_panel


def write(folder, text, name="f.csv"):
    path = folder / name
    path.write_text(text)
    return path


LONG = """\
unique_id,ds,y
b,2024-01-02,4
a,2024-01-01,1
b,2024-01-01,3
a,2024-01-03,
a,2024-01-02,2
"""


def test_long_is_sorted_within_series_that_stay_in_the_order_of_the_file(tmp_path):
    panel = read(write(tmp_path, LONG))
    assert panel.ids == ("b", "a")
    assert panel.starts.tolist() == [0, 2, 5]
    np.testing.assert_array_equal(panel.values, [3, 4, 1, 2, np.nan])
    days = (panel.times - pd.Timestamp("2024-01-01").value) // (86_400 * 10**9)
    assert days.tolist() == [0, 1, 0, 1, 2]


def test_identifiers_stay_text(tmp_path):
    panel = read(write(tmp_path, "unique_id,ds,y\n007,2024-01-01,1\n007,2024-01-02,2\n"))
    assert panel.ids == ("007",)


def test_one_series_without_identifier(tmp_path):
    panel = read(write(tmp_path, "when,load\n2024-01-01,1\n2024-01-02,2\n"), time="when", target="load")
    assert (panel.ids, panel.id_columns) == (("load",), {})


def test_wide_and_its_numeric_columns(tmp_path):
    path = write(tmp_path, "date,p,q,note\n2024-01-01,1,5,x\n2024-01-02,,6,y\n")
    panel = read(path, layout="wide", time="date")
    assert panel.ids == ("p", "q")
    np.testing.assert_array_equal(panel.values, [1, np.nan, 5, 6])
    assert read(path, layout="wide", time="date", channels=("q",)).ids == ("q",)


def test_compressed_and_parquet_are_the_same(tmp_path):
    plain = read(write(tmp_path, LONG))
    with gzip.open(tmp_path / "f.csv.gz", "wt") as stream:
        stream.write(LONG)
    frame = pd.read_csv(tmp_path / "f.csv")
    frame.to_parquet(tmp_path / "text.parquet")
    frame.assign(ds=pd.to_datetime(frame["ds"])).to_parquet(tmp_path / "stamps.parquet")
    for name in ("f.csv.gz", "text.parquet", "stamps.parquet"):
        other = read(tmp_path / name)
        assert other.ids == plain.ids, name
        np.testing.assert_array_equal(other.times, plain.times, err_msg=name)
        np.testing.assert_array_equal(other.values, plain.values, err_msg=name)


DOUBLE = "ds,y\n2024-01-01,1\n2024-01-02,5\n2024-01-02,\n2024-01-02,8\n2024-01-03,2\n"


@pytest.mark.parametrize(("policy", "second"), [("mean", 6.5), ("last", 8.0)])
def test_duplicates_by_policy(tmp_path, policy, second):
    panel = read(write(tmp_path, DOUBLE), duplicates=policy)
    np.testing.assert_array_equal(panel.values, [1, second, 2])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "f.csv: the file is empty"),
        ("ds,y\n", "the file has a heading but no rows"),
        ("date,y\n2024-01-01,1\n", "there is no column 'ds'; the columns are 'date', 'y'"),
        ("ds,value\n2024-01-01,1\n", "there is no column 'y'; the columns are 'ds', 'value'"),
        ("ds,y\n2024-01-01,1\n2024-01-02,high\n", "f.csv, line 3: column 'y' holds 'high', which is not a number"),
        ("ds,y\n2024-01-01,1\n2024-01-02,inf\n", "f.csv, line 3: column 'y' holds an infinite value"),
        ("unique_id,ds,y\na,2024-01-01,1\n,2024-01-02,2\n", "f.csv, line 3: column 'unique_id' names no series"),
        (DOUBLE, "has the time 2024-01-02 twice .2 such rows"),
        ('ds,y\n2024-01-01,1\n"2024-01-02,1\n', "line 3: the row has 1 field"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path, text, says):
    with pytest.raises(InputError, match=says):
        read(write(tmp_path, text))


def test_wide_without_numbers_and_a_missing_file(tmp_path):
    with pytest.raises(InputError, match="no column of numbers"):
        read(write(tmp_path, "ds,a\n2024-01-01,x\n"), layout="wide")
    with pytest.raises(InputError, match="there is no such file"):
        read(tmp_path / "none.csv")


def test_blank_lines_do_not_move_the_numbers_of_lines(tmp_path):
    with pytest.raises(InputError, match="line 6: cannot read 'no date'"):
        read(write(tmp_path, "ds,y\n2024-01-01,1\n\n\n2024-01-02,2\nno date,3\n"))


def test_a_series_may_be_called_na(tmp_path):
    panel = read(write(tmp_path, "unique_id,ds,y\nNA,2024-01-01,1\nEU,2024-01-01,NA\n"))
    assert panel.ids == ("NA", "EU")
    np.testing.assert_array_equal(panel.values, [1, np.nan])


def test_a_comma_at_the_end_of_each_row_moves_nothing(tmp_path):
    panel = read(write(tmp_path, "ds,y\n2024-01-01,1,\n2024-01-02,2,\n"))
    np.testing.assert_array_equal(panel.values, [1, 2])


def test_one_bad_cell_of_a_wide_file_is_named_and_columns_of_text_are_left_out(tmp_path):
    text = "ds,a,b,note\n2024-01-01,1,2,dry\n2024-01-02,3,wet,wet\n"
    with pytest.raises(InputError, match="line 3: column 'b' holds 'wet', which is not a number"):
        read(write(tmp_path, text), layout="wide")
    assert read(write(tmp_path, text.replace("wet,wet", "4,wet")), layout="wide").ids == ("a", "b")


def test_a_file_is_what_its_first_bytes_say(tmp_path):
    for name in ("fake.csv.gz", "fake.csv.xz", "f.txt"):
        (tmp_path / name).write_text("ds,y\n2024-01-01,1\n")
        assert read(tmp_path / name).values.tolist() == [1]
    (tmp_path / "fake.parquet").write_text("ds,y\n2024-01-01,1\n")
    with pytest.raises(InputError, match="this is not Parquet"):
        read(tmp_path / "fake.parquet")


def test_names_of_parquet_keep_their_type(tmp_path):
    frame = pd.DataFrame(
        {"unique_id": [7, 7, 3], "ds": pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-01"]), "y": 1.5}
    )
    frame.to_parquet(tmp_path / "f.parquet")
    panel = read(tmp_path / "f.parquet")
    assert panel.ids == ("7", "3")
    assert panel.id_columns["unique_id"].dtype == np.int64
    zoned = frame.assign(ds=frame["ds"].dt.tz_localize("Europe/Berlin"))
    zoned.to_parquet(tmp_path / "z.parquet")
    panel = read(tmp_path / "z.parquet", timezone="Europe/Berlin")
    assert panel.times[0] == pd.Timestamp("2023-12-31 23:00").value


def test_series_named_by_two_columns(tmp_path):
    text = "store,item,ds,y\nb,1,2024-01-01,1\na,1,2024-01-01,2\nb,2,2024-01-01,3\nb,1,2024-01-02,4\n"
    panel = read(write(tmp_path, text), id=["store", "item"])
    assert panel.ids == ("b/1", "a/1", "b/2")
    assert panel.id_columns["store"].tolist() == ["b", "a", "b"]
    np.testing.assert_array_equal(panel.values, [1, 4, 2, 3])


def test_covariates_go_with_their_rows(tmp_path):
    text = "unique_id,ds,y,t,sky,size\nb,2024-01-03,3,30,grey,5\nb,2024-01-01,1,10,blue,5\na,2024-01-01,7,,grey,\n"
    panel = read(write(tmp_path, text), past=["t"], future=["sky"], static=["size"], categorical=["sky"])
    # The second day of b is missing, and has a row without anything.
    np.testing.assert_array_equal(panel.values, [1, 3, 7])
    np.testing.assert_array_equal(panel.numbers["t"], [10, 30, np.nan])
    sky = panel.categories["sky"]
    assert [sky.texts[code] for code in sky.codes] == ["blue", "grey", "grey"]
    np.testing.assert_array_equal(panel.static_numbers["size"], [5, np.nan])


def test_gaps_of_a_regular_series_become_rows_without_values(tmp_path):
    days = [1, 2, 3, 6, 7]
    text = "ds,y,t\n" + "".join(f"2024-01-0{day},{day},{day}\n" for day in days)
    panel = read(write(tmp_path, text), past=["t"])
    np.testing.assert_array_equal(panel.values, [1, 2, 3, np.nan, np.nan, 6, 7])
    np.testing.assert_array_equal(panel.numbers["t"], [1, 2, 3, np.nan, np.nan, 6, 7])
    assert panel.absent.tolist() == [False, False, False, True, True, False, False]
    assert np.diff(panel.times).tolist() == [86_400 * 10**9] * 6
    assert panel.notes == ("2 times missing between the first and the last of regular series: kept as gaps",)


def test_resampling_is_done_where_asked_for(tmp_path):
    stamps = ["2024-01-01 00:10", "2024-01-01 00:50", "2024-01-01 01:30", "2024-01-01 03:00"]
    text = "ds,y\n" + "".join(f"{stamp},{value}\n" for stamp, value in zip(stamps, [1, 3, 5, 7], strict=True))
    for how, first, empty in (("mean", 2, np.nan), ("sum", 4, 0), ("last", 3, np.nan)):
        panel = read(write(tmp_path, text), resample="1h", how=how)
        np.testing.assert_array_equal(panel.values, [first, 5, empty, 7])
        assert panel.times[0] == pd.Timestamp("2024-01-01").value
    with pytest.raises(InputError, match="'often' is not a length of time"):
        read(write(tmp_path, text), resample="often")


def test_resampling_across_the_end_of_daylight_saving(tmp_path):
    stamps = pd.date_range("2021-10-29", "2021-11-02", freq="15min", tz="Europe/Berlin", inclusive="left")
    frame = pd.DataFrame({"ds": stamps.strftime("%Y-%m-%d %H:%M"), "y": np.arange(len(stamps))})
    path = write(tmp_path, frame.to_csv(index=False))
    for step in ("1h", "30min", "1d"):
        panel = read(path, timezone="Europe/Berlin", resample=step, how="sum")
        expected = pd.Series(np.arange(len(stamps)), index=stamps).resample(step.replace("d", "D")).sum()
        np.testing.assert_array_equal(panel.values, expected)
        assert panel.times.tolist() == expected.index.as_unit("ns").astype("int64").tolist()
        assert panel.steps[0].regular


@pytest.mark.parametrize("step", ["7min", "25min", "45min", "1h", "75min", "2h", "6h", "7h", "1d", "36h", "1w"])
@pytest.mark.parametrize("zone", ["Europe/Berlin", "Australia/Lord_Howe", "America/Santiago"])
@pytest.mark.parametrize("start", ["2021-03-20", "2021-08-25", "2021-10-20"])
def test_resampling_loses_no_event(tmp_path, step, zone, start):
    generator = np.random.default_rng(0)
    seconds = np.sort(generator.choice(86_400 * 20, 3000, replace=False))
    stamps = pd.Timestamp(start, tz="UTC") + pd.to_timedelta(seconds, unit="s")
    frame = pd.DataFrame({"ds": stamps.strftime("%Y-%m-%dT%H:%M:%SZ"), "y": 1})
    panel = read(write(tmp_path, frame.to_csv(index=False)), timezone=zone, resample=step, how="sum")
    assert panel.values.sum() == 3000
    assert panel.steps[0].regular
    back = min(5, len(panel.times) - 1)
    following = grid(int(panel.times[-1]), panel.steps[0], panel.clock(30 * 86_400 * 10**9), -back, 3)
    assert following[: back + 1].tolist() == panel.times[-back - 1 :].tolist()
    assert (np.diff(following) > 0).all()


def test_days_that_begin_at_one_o_clock_once(tmp_path):
    """Where the clock is put forward at midnight, that day begins an hour late, and no other does."""
    for first, days in (("2018-11-04 03:00", 30), ("2018-10-20 03:00", 16)):  # it is the first day, or the last
        stamps = pd.date_range(first, periods=24 * days - 1, freq="h", tz="UTC").strftime("%Y-%m-%dT%H:%M:%SZ")
        text = pd.DataFrame({"ds": stamps, "y": 1}).to_csv(index=False)
        panel = read(write(tmp_path, text), timezone="America/Sao_Paulo", resample="1d", how="sum")
        assert panel.values.sum() == len(stamps)
        following = grid(int(panel.times[-1]), panel.steps[0], panel.clock(10 * 86_400 * 10**9), 1, 4)
        local = pd.DatetimeIndex(following, tz="UTC").tz_convert("America/Sao_Paulo")
        assert (local.hour == 0).all()
    dates = "ds,y\n" + "".join(f"2018-11-{day:02d},{day}\n" for day in range(1, 20))
    panel = read(write(tmp_path, dates), timezone="America/Sao_Paulo")
    assert write_times(panel.times, panel.style).tolist() == [f"2018-11-{day:02d}" for day in range(1, 20)]


def test_a_week_of_business_days_is_full(tmp_path):
    days = pd.bdate_range("2021-01-04", "2021-02-26")
    text = pd.DataFrame({"ds": days, "y": 1}).to_csv(index=False)
    assert read(write(tmp_path, text), resample="1w", how="sum").values.tolist() == [5] * 8


def test_steps_that_are_far_too_short_are_refused(tmp_path):
    text = "ds,y\n2024-01-01 00:00,1\n2024-01-01 01:00,2\n2024-01-01 02:00,2\n"
    with pytest.raises(InputError, match="steps of 1us would be 7,200,000,000 for 3 rows"):
        read(write(tmp_path, text), resample="1us")


def test_days_without_events_sum_to_zero_and_days_of_an_outage_are_gaps(tmp_path):
    generator = np.random.default_rng(0)
    seconds = np.sort(generator.choice(86_400 * 40, 60, replace=False))
    stamps = pd.Timestamp("2024-03-01") + pd.to_timedelta(seconds, unit="s")
    frame = pd.DataFrame({"ds": stamps, "y": 1.5, "flag": generator.integers(0, 2, 60), "size": 3})
    path = write(tmp_path, frame.to_csv(index=False))
    panel = read(path, resample="1d", how="sum", past=["flag"], static=["size"])
    days = frame.set_index("ds").resample("1D")
    assert (days["y"].count() == 0).any()
    np.testing.assert_array_equal(panel.values, days["y"].sum())
    np.testing.assert_allclose(panel.numbers["flag"], days["flag"].mean(), rtol=1e-6)
    assert panel.static_numbers["size"].tolist() == [3]
    assert any(note.endswith("without any event: the sum is 0") for note in panel.notes)
    metered = pd.DataFrame({"ds": pd.date_range("2024-03-01", periods=240, freq="h"), "y": 1.0}).drop(range(50, 130))
    panel = read(write(tmp_path, metered.to_csv(index=False)), resample="1d", how="sum")
    np.testing.assert_array_equal(panel.values, [24, 24, 2, np.nan, np.nan, 14, 24, 24, 24, 24])
    assert "2 steps with fewer values than the others" in panel.notes
    metered.loc[metered.index[24:40], "y"] = np.nan
    panel = read(write(tmp_path, metered.to_csv(index=False)), resample="1d", how="sum")
    assert panel.values[1] == 8
    assert "3 steps with fewer values than the others" in panel.notes


def test_weeks_begin_on_mondays_and_steps_that_are_not_full_are_left_out(tmp_path):
    days = pd.DataFrame({"ds": pd.date_range("2024-01-03", periods=30), "y": 1})  # from a Wednesday
    panel = read(write(tmp_path, days.to_csv(index=False)), resample="1w", how="sum")
    assert panel.values.tolist() == [7, 7, 7]
    assert write_times(panel.times, panel.style).tolist() == ["2024-01-08", "2024-01-15", "2024-01-22"]
    assert "9 rows of first and last steps that are not full left out" in panel.notes
    panel = read(write(tmp_path, days.head(3).to_csv(index=False)), resample="1w", how="sum")
    assert panel.values.tolist() == [3]


@pytest.mark.parametrize("policy", ["mean", "last"])
def test_what_is_missing_does_not_displace_what_is_there(tmp_path, policy):
    text = "ds,y,kind,z\n2024-01-01,1,x,5\n2024-01-01,,,\n2024-01-02,2,y,6\n"
    panel = read(write(tmp_path, text), duplicates=policy, past=["kind", "z"], categorical=["kind"])
    assert (panel.values.tolist(), panel.numbers["z"].tolist()) == ([1, 2], [5, 6])
    kinds = panel.categories["kind"]
    assert [kinds.texts[code] for code in kinds.codes] == ["x", "y"]


def test_names_in_several_columns_are_never_the_same(tmp_path):
    text = "s,i,ds,y\na/b,c,2024-01-01,1\na,b/c,2024-01-01,2\na\\,b,2024-01-01,3\n"
    panel = read(write(tmp_path, text), id=["s", "i"])
    assert len(set(panel.ids)) == 3
    assert panel.id_columns["s"].tolist() == ["a/b", "a", "a\\"]


@pytest.mark.parametrize("value", ["1e38", "-1e300"])
def test_numbers_whose_squares_are_infinite_are_refused(tmp_path, value):
    with pytest.raises(InputError, match=r"line 3: column 'y' holds .* beyond the largest number"):
        read(write(tmp_path, f"ds,y\n2024-01-01,1\n2024-01-02,{value}\n"))


@pytest.mark.parametrize(("separator", "decimal"), [(";", ","), ("\t", "."), ("|", ","), (",", ".")])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_dialects(tmp_path, separator, decimal, encoding):
    values = ["1.5", "-2.25", "", "1000.0"]
    lines = [separator.join(("Zeit", "Höhe"))]
    lines += [f"2024-01-0{i + 1}{separator}{value.replace('.', decimal)}" for i, value in enumerate(values)]
    (tmp_path / "f.csv").write_bytes("\r\n".join(lines).encode(encoding))
    panel = read(tmp_path / "f.csv", time="Zeit", target="Höhe")
    np.testing.assert_array_equal(panel.values, [1.5, -2.25, np.nan, 1000])


def test_thousands_are_grouped_and_other_words_for_missing(tmp_path):
    text = "ds;y\n01.01.2024;1.234,5\n13.01.2024;?\n25.01.2024;12.000,0\n"
    np.testing.assert_array_equal(read(write(tmp_path, text)).values, [1234.5, np.nan, 12_000])
    text = 'ds,y\n2024-01-01,"1,234.5"\n2024-01-02,off\n2024-01-03,"7,000"\n'
    np.testing.assert_array_equal(read(write(tmp_path, text), missing=["off"]).values, [1234.5, np.nan, 7000])


@pytest.mark.parametrize(
    ("numbers", "values"),
    [
        (["1,5", "2.345", "1.234.567,5", "-2,0-"[:-1]], [1.5, 2345, 1234567.5, -2]),
        (["1.5", "2,345", "1,23,456.5", "7,000,000"], [1.5, 2345, 123456.5, 7e6]),
        (["1,5", "3,25-", "\u22122,5", "1.000,00-"], [1.5, -3.25, -2.5, -1000]),
        (["1,234,567", "12", "123", "1"], [1234567, 12, 123, 1]),
    ],
)
def test_marks_of_decimals_and_of_thousands(tmp_path, numbers, values):
    rows = "".join(f"2024-01-0{i + 1};{number};192.168.100.200\n" for i, number in enumerate(numbers))
    np.testing.assert_array_equal(read(write(tmp_path, "ds;y;address\n" + rows)).values, values)


@pytest.mark.parametrize("numbers", [["1,5", "3.5"], ["1,5", "1.2345"], ["1.5", "49,9"], ["1.5", "0,123"]])
def test_a_mark_that_stands_wrong_makes_no_number(tmp_path, numbers):
    rows = "".join(f"2024-01-{i + 1:02d};{number}\n" for i, number in enumerate([numbers[0]] * 9 + numbers[1:]))
    with pytest.raises(InputError, match=r"line 11: column 'y' holds .*, which is not a number"):
        read(write(tmp_path, "ds;y\n" + rows))


def test_a_separator_within_quotes_is_none(tmp_path):
    rows = "".join(f'2024-01-{day:02d},"DE|LU",{day}.5\n' for day in range(1, 10))
    np.testing.assert_array_equal(read(write(tmp_path, "ds,zone,y\n" + rows)).values, np.arange(1, 10) + 0.5)


def test_widths_of_fields_below_the_heading_are_passed_over(tmp_path):
    rows = "".join(f"USGS\t2024-01-{day:02d} 00:00\t{day}\n" for day in range(1, 10))
    panel = read(write(tmp_path, "# note\nagency\tds\ty\n5s\t20d\t14n\n" + rows))
    assert panel.values.tolist() == list(range(1, 10))


def test_a_heading_of_several_lines_is_counted_as_one(tmp_path):
    text = '"Time\n(UTC)","Load\n(MW)"\n' + "".join(f"2024-01-{day:02d},{day}\n" for day in range(1, 10))
    panel = read(write(tmp_path, text), time="Time\n(UTC)", target="Load\n(MW)")
    assert (panel.values.tolist(), panel.notes) == (list(range(1, 10)), ())


@pytest.mark.parametrize(
    ("heading", "names"),
    [
        ("Price,Close,High\nTicker,AAPL,AAPL\nDate,,\n", ("Close AAPL", "High AAPL")),
        (",North,South\nDate,Min,Min\n", ("North Min", "South Min")),
        ("a,b,c\nDate,p,q\n", ("p", "q")),
    ],
)
def test_a_heading_of_several_rows_names_what_one_leaves_open(tmp_path, heading, names):
    rows = "".join(f"2024-01-{day:02d},{day},{day}.5\n" for day in range(1, 20))
    assert read(write(tmp_path, heading + rows), layout="wide", time="Date").ids == names


def test_one_cell_of_text_decides_no_decimal_mark(tmp_path):
    rows = "".join(f"2024-01-{i + 1:02d};{i}.5;{'1.100.200' if i == 3 else 'v2'}\n" for i in range(9))
    np.testing.assert_array_equal(read(write(tmp_path, "ds;y;version\n" + rows)).values, np.arange(9) + 0.5)


@pytest.mark.parametrize("row", ["2024-01-03,,5", ",01:00,5"])
def test_a_part_of_the_time_that_is_missing_is_no_midnight(tmp_path, row):
    text = f"date,time,y\n2024-01-01,00:30,1\n2024-01-02,00:30,2\n{row}\n"
    with pytest.raises(InputError, match=r"line 4: the time \(date time\) is missing"):
        read(write(tmp_path, text), time=["date", "time"])


def test_a_slow_and_a_fast_way_read_the_same(tmp_path):
    """Times and numbers that pyarrow cannot read in the plain way are read as text, with the same result."""
    generator = np.random.default_rng(0)
    stamps = pd.date_range("2024-01-01", periods=500, freq="37min")
    frame = pd.DataFrame({"unique_id": "s", "ds": stamps, "y": generator.normal(size=500).round(4)})
    plain = read(write(tmp_path, frame.to_csv(index=False)))
    odd = frame.assign(ds=stamps.strftime("%d.%m.%Y %H:%M"), y=[f" +{v}" if v > 0 else f"{v} " for v in frame["y"]])
    slow = read(write(tmp_path, odd.to_csv(index=False)))
    np.testing.assert_array_equal(plain.times, slow.times)
    np.testing.assert_array_equal(plain.values, slow.values)


def test_texts_with_line_breaks_and_parts_that_end_anywhere(tmp_path, monkeypatch):
    monkeypatch.setattr("forecasting.series.tables.PART", 97)
    monkeypatch.setattr("forecasting.series.tables.BLOCK", 64)
    rows = "".join(f'2024-01-{day:02d},"rain\nand ""wind"", {day}",{day}.5\n' for day in range(1, 29))
    panel = read(write(tmp_path, "ds,note,y\n" + rows.rstrip("\n")))
    np.testing.assert_array_equal(panel.values, np.arange(1, 29) + 0.5)
    for encoding in ("utf-16", "cp1252"):
        text = "Zeit;Höhe\n" + "".join(f"2024-01-{day:02d};{day},25\n" for day in range(1, 29))
        (tmp_path / "f.csv").write_bytes(text.encode(encoding))
        np.testing.assert_array_equal(
            read(tmp_path / "f.csv", time="Zeit", target="Höhe").values, np.arange(1, 29) + 0.25
        )


def test_letters_of_another_encoding_far_down_are_named(tmp_path):
    text = b"ds,y,id\n" + b"".join(b"2024-01-01 %02d:%02d:00,1,a\n" % (i // 60 % 24, i % 60) for i in range(1440)) * 4
    (tmp_path / "f.csv").write_bytes(text + "2024-02-01 00:00:00,1,é\n".encode("cp1252"))
    with pytest.raises(InputError, match=r"not all of it is text in the encoding 'utf-8'"):
        read(tmp_path / "f.csv", id="id", duplicates="last")


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["$1,234.50", "$7.25", ""], [1234.5, 7.25, np.nan]),
        (["10.024,40 €", "7,25 €"], [10024.4, 7.25]),
        (["4.99%", "-0.5 %"], [4.99, -0.5]),
        (["(0.06)", "1.5"], [-0.06, 1.5]),
        (["\u22121.08", "2.5"], [-1.08, 2.5]),
        (["10\u202f060,88", "7,5"], [10060.88, 7.5]),
        (["10\u202f060,88", "9\u202f007,50"], [10060.88, 9007.5]),
        (["10 024,40 €", "7,25 €"], [10024.4, 7.25]),
        (["9'808.27", "7.5"], [9808.27, 7.5]),
        (["True", "false"], [1, 0]),
        (["1,0E+02", "2,5E-01"], [100, 0.25]),
    ],
)
def test_numbers_as_people_write_them(tmp_path, cells, numbers):
    rows = "".join(f"2024-01-0{i + 1}\t{cell}\n" for i, cell in enumerate(cells))
    panel = read(write(tmp_path, "ds\ty\n" + rows))
    np.testing.assert_allclose(panel.values, numbers)


def test_lines_that_end_with_a_carriage_return_and_zeros_at_the_end(tmp_path):
    (tmp_path / "f.csv").write_bytes(LONG.replace("\n", "\r").encode())
    assert read(tmp_path / "f.csv").ids == ("b", "a")
    (tmp_path / "g.csv").write_bytes(LONG.encode() + bytes(300))
    assert len(read(tmp_path / "g.csv").values) == 5


def test_a_first_row_without_values_is_no_line_of_units(tmp_path):
    panel = read(write(tmp_path, "ds,y\n2024-01-01,NA\n" + "".join(f"2024-01-0{i},{i}\n" for i in range(2, 8))))
    np.testing.assert_array_equal(panel.values, [2, 3, 4, 5, 6, 7])
    assert panel.notes == ("1 row before the first value of their series left out",)


def test_rows_before_the_first_value_of_a_series_are_left_out_and_counted(tmp_path):
    frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=6), "a": [np.nan, 1, np.nan, 3, 4, np.nan]})
    frame["b"], frame["c"] = [1.0, 2, 3, 4, 5, 6], np.nan
    panel = read(write(tmp_path, frame.to_csv(index=False)), layout="wide", channels=["a", "b", "c"])
    assert np.diff(panel.starts).tolist() == [5, 6, 6]
    np.testing.assert_array_equal(panel.values[:5], [1, np.nan, 3, 4, np.nan])
    assert panel.read == 6
    assert panel.notes == ("1 row before the first value of their series left out",)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("21.03.2021 22:00 - 21.03.2021 23:00", "21.03.2021 23:00 - 22.03.2021 00:00"),
        ("2021-03-01T22:00Z/2021-03-01T23:00Z", "2021-03-01T23:00Z/2021-03-02T00:00Z"),
        ("2021-03-01 22:00 - 23:00", "2021-03-01 23:00 - 24:00"),
        ("3/21/2021 10:00 PM to 3/21/2021 11:00 PM", "3/21/2021 11:00 PM to 3/22/2021 12:00 AM"),
        ("2021-03-01 -- 2021-03-08", "2021-03-08 -- 2021-03-15"),
    ],
)
def test_times_that_are_spans_count_from_their_beginning_and_come_back_as_spans(tmp_path, first, second):
    panel = read(write(tmp_path, f"time;y\n{first};1\n{second};2\n"), time="time")
    assert panel.times[1] - panel.times[0] == (7 * 24 if "--" in first else 1) * 3600 * 10**9
    assert write_times(panel.times, panel.style).tolist() == [first, second]


def test_spans_of_two_columns(tmp_path):
    rows = "2021-03-01,22:00 - 23:00,1\n2021-03-01,23:00 - 00:00,2\n"
    panel = read(write(tmp_path, "day,hours,y\n" + rows), time=["day", "hours"])
    back = time_columns(panel.times, panel)
    assert back["day"].tolist() == ["2021-03-01"] * 2
    assert back["hours"].tolist() == ["22:00 - 23:00", "23:00 - 00:00"]


def test_what_is_told_of_the_columns_below_their_names_is_passed_over(tmp_path):
    told = "Title,Rate,Index\nDescription,AUD/USD; see notes,Weighted\nUnits,USD,Index\n,,\n"
    told += "Published,04-Jan-2023,04-Jan-2023\n"
    told += "Id,1234567,7654321\nSeries ID,FXRUSD,FXRTWI\nNotes,,\n"
    rows = "".join(f"{i:02d}-Jan-2018,0.78{i},64.{i}\n" for i in range(1, 25))
    panel = read(write(tmp_path, "F11.1  EXCHANGE RATES\n" + told + rows), time="Title", layout="wide")
    assert panel.ids == ("Rate", "Index")
    assert panel.values[0] == 0.781
    assert panel.notes == (
        "1 line before the heading passed over", "7 lines of units below the heading passed over",
    )  # fmt: skip


@pytest.mark.parametrize("name", ["forecast", "lo-80", "hi-97.5", "model"])
def test_a_column_called_as_the_forecasts_are_is_refused(tmp_path, name):
    with pytest.raises(InputError, match=f"the column '{name}' is called as"):
        read(write(tmp_path, LONG.replace("unique_id", name)), id=name)


def test_times_of_parquet_keep_their_zone_and_type(tmp_path):
    stamps = pd.date_range("2021-10-30 22:00", periods=5, freq="h", tz="Europe/Berlin")
    for times in (stamps, stamps.tz_localize(None), (stamps.as_unit("ns").astype("int64") // 10**9).to_numpy() + 0.25):
        frame = pd.DataFrame({"ds": times, "y": np.arange(5.0)})
        frame.to_parquet(tmp_path / "f.parquet")
        panel = read(tmp_path / "f.parquet")
        back = pd.Series(write_times(panel.times, panel.style))
        if frame["ds"].dtype == float:
            assert back.tolist() == frame["ds"].tolist()
        else:
            assert [str(t) for t in back] == [str(t) for t in frame["ds"]]


def test_days_of_parquet_stay_days(tmp_path):
    days = pd.date_range("2021-01-01", periods=5).date
    pd.DataFrame({"ds": days, "y": np.arange(5.0)}).to_parquet(tmp_path / "f.parquet")
    panel = read(tmp_path / "f.parquet")
    assert panel.steps[0].text() == "1 day"
    assert write_times(panel.times, panel.style).tolist() == list(days)


def test_fractions_of_seconds_since_1970_come_back_as_they_were(tmp_path):
    texts = [f"1609804800.{i}50" for i in range(5)]
    panel = read(write(tmp_path, "ds,y\n" + "".join(f"{text},1\n" for text in texts)))
    assert write_times(panel.times, panel.style).tolist() == texts


def test_the_file_of_a_data_logger(tmp_path):
    rows = "".join(f'"2024-01-0{i} 00:00:00",{i},{i / 2}\n' for i in range(1, 9))
    heading = '"TOA5","station","CR1000"\n"TIMESTAMP","RECORD","AirT"\n"TS","RN","Deg C"\n"","","Avg"\n'
    panel = read(write(tmp_path, heading + rows), time="TIMESTAMP", target="AirT")
    np.testing.assert_array_equal(panel.values, np.arange(1, 9) / 2)
    assert panel.notes == (
        "1 line before the heading passed over", "2 lines of units below the heading passed over",
    )  # fmt: skip


@pytest.mark.parametrize(
    "preamble",
    ['"Station","Berlin"\n', "Site,Foo\nFrom,2021-01-05\n\n", "# station 5, x\n", "# station, 5, x\n# a,b\n"],
)
def test_lines_before_the_heading_may_be_as_wide(tmp_path, preamble):
    rows = "".join(f"2024-01-0{i},{i}\n" for i in range(1, 9))
    panel = read(write(tmp_path, preamble + "time,value\n" + rows), time="time", target="value")
    np.testing.assert_array_equal(panel.values, np.arange(1, 9))
    assert len(panel.notes) == 1
    assert "before the heading passed over" in panel.notes[0]
