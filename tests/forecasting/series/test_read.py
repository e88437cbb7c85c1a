"""Reading files of series."""

import gzip

import numpy as np
import pandas as pd
import pytest

from common.errors import InputError
from forecasting.series.read import read_panel

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
