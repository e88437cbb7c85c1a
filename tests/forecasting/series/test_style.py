"""How times are written: recognised, read against pandas and the calendar, and written back as they were."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import InputError
from forecasting.series.forms import recognise
from forecasting.series.orders import date_orders
from forecasting.series.style import UNREAD, read_times, split_format, write_times

NONE = frozenset()


def series(texts):
    return pd.Series(texts, dtype="string")


def recognised(texts, names=("ds",), stated=None, zone=None):
    texts = pd.Series(texts, dtype="string")
    return recognise(texts, names=names, stated=stated, orders=frozenset() if stated else date_orders(texts), zone=zone)


def read(texts, **options):
    return read_times(pd.Series(texts, dtype="string"), recognised(texts, **options))


def ns(text):
    return pd.Timestamp(text).value


FORMS = [
    (["2024-02-29 23:00:00", "2024-03-01 00:00:00"], ["2024-02-29 23:00", "2024-03-01 00:00"]),
    (["2011-12-31T13:00:00Z", "2011-12-31T13:30:00Z"], ["2011-12-31 13:00", "2011-12-31 13:30"]),
    (["2024-01-01 00:00:00 UTC"], ["2024-01-01 00:00"]),
    (["2013/1/1 0:00", "2013/12/31 23:00"], ["2013-01-01 00:00", "2013-12-31 23:00"]),
    (["04/30/2021", "02/8/1991"], ["2021-04-30 00:00", "1991-02-08 00:00"]),
    (["03.04.2021 10:00", "30.04.2021 11:00"], ["2021-04-03 10:00", "2021-04-30 11:00"]),
    (["16/12/2006 17:24:00"], ["2006-12-16 17:24"]),
    (["1949-01", "1949-02"], ["1949-01-01 00:00", "1949-02-01 00:00"]),
    (["202103", "202104"], ["2021-03-01", "2021-04-01"]),
    (["20240131"], ["2024-01-31"]),
    (["2024013107"], ["2024-01-31 07:00"]),
    (["1949", "1950"], ["1949-01-01", "1950-01-01"]),
    (["2021Q1", "2021Q4"], ["2021-01-01", "2021-10-01"]),
    (["2021-Q2"], ["2021-04-01"]),
    (["1/2/2021 1:00 PM", "1/22/2021 11:00 AM"], ["2021-01-02 13:00", "2021-01-22 11:00"]),
    (["Jan 2, 2021", "Feb 28, 2021"], ["2021-01-02", "2021-02-28"]),
    (["01.01.2021 24:00", "13.01.2021 01:00"], ["2021-01-02 00:00", "2021-01-13 01:00"]),
    (["2021-01-01T24:00:00"], ["2021-01-02 00:00"]),
    (["2021-01-01 00:00:00.123"], ["2021-01-01 00:00:00.123"]),
    (["13/01/21 07:30", "14/01/21 07:30"], ["2021-01-13 07:30", "2021-01-14 07:30"]),
    (["1/5/99", "1/25/99", "2/3/00"], ["1999-01-05", "1999-01-25", "2000-02-03"]),
    (["21-01-30", "21-01-31", "21-02-01"], ["2021-01-30", "2021-01-31", "2021-02-01"]),
    (["30-01-21", "31-01-21", "01-02-21"], ["2021-01-30", "2021-01-31", "2021-02-01"]),
    (["5-Jan-21", "13-Jan-21"], ["2021-01-05", "2021-01-13"]),
    (["Jan-21", "Feb-21"], ["2021-01-01", "2021-02-01"]),
    (["05JAN2021:10:00:00"], ["2021-01-05 10:00"]),
    (["Jan 2021", "May 2021"], ["2021-01-01", "2021-05-01"]),
    (["2021 January", "2021 May"], ["2021-01-01", "2021-05-01"]),
    (["2021-Jan-05", "2021-Dec-31"], ["2021-01-05", "2021-12-31"]),
    (["Tue, 05 Jan 2021 10:00:00 GMT"], ["2021-01-05 10:00"]),
    (["Jan 5, 2021 3:00 pm", "Jan 25, 2021 12:00 am"], ["2021-01-05 15:00", "2021-01-25 00:00"]),
    (["2021-01-25 3", "2021-01-25 15"], ["2021-01-25 03:00", "2021-01-25 15:00"]),
    (["1/25/2021 3 PM"], ["2021-01-25 15:00"]),
    (["10:00:00 25.1.2021"], ["2021-01-25 10:00"]),
    (["25. 1. 2021 7:05"], ["2021-01-25 07:05"]),
    (["2021/01", "2021/02"], ["2021-01-01", "2021-02-01"]),
    (["01/2021", "12/2021"], ["2021-01-01", "2021-12-01"]),
    (["2021M01", "2021M12"], ["2021-01-01", "2021-12-01"]),
    (["Q1 2021", "Q4 2021"], ["2021-01-01", "2021-10-01"]),
    (["Q3-21"], ["2021-07-01"]),
    (["2020-W53", "2021-W01"], ["2020-12-28", "2021-01-04"]),
    (["2021-W05-7"], ["2021-02-07"]),
    (["2021-005", "2021-366"][:1], ["2021-01-05"]),
    (["2021-01-05 10.30"], ["2021-01-05 10:30"]),
    (["2021-01-05 10h30"], ["2021-01-05 10:30"]),
    (["2021-01-05_10-30-00"], ["2021-01-05 10:30"]),
    (["2021:01:05 10:30:00"], ["2021-01-05 10:30"]),
    (["20210105T103000Z"], ["2021-01-05 10:30"]),
    (["20210105 1030"], ["2021-01-05 10:30"]),
    (["2021-01-05 10:30:00,125"], ["2021-01-05 10:30:00.125"]),
    (["25.01.2021 10:30 Uhr"], ["2021-01-25 10:30"]),
]


@pytest.mark.parametrize(("texts", "utc"), FORMS, ids=lambda value: value[0])
def test_forms_people_use_are_read_and_written_back(texts, utc):
    times = read(texts)
    assert times.tolist() == [ns(text) for text in utc]
    assert write_times(times, recognised(texts)).tolist() == texts


@pytest.mark.parametrize(
    ("texts", "utc"),
    [
        (["1609459200", "1609462800"], ["2021-01-01 00:00", "2021-01-01 01:00"]),
        (["1609459200000"], ["2021-01-01 00:00"]),
        (["1609459200123456"], ["2021-01-01 00:00:00.123456"]),
        (["1609459200.25"], ["2021-01-01 00:00:00.25"]),
        (["-86400"], ["1969-12-31"]),
    ],
)
def test_numbers_since_1970(texts, utc):
    times = read(texts, stated="s" if texts == ["-86400"] else None)
    assert times.tolist() == [ns(text) for text in utc]
    style = recognised(texts, stated="s" if texts == ["-86400"] else None)
    assert [str(x) for x in write_times(times, style).tolist()] == texts


def test_offsets_are_kept_in_the_zone_of_the_file():
    from dataclasses import replace

    texts = ["2024-03-31 01:59:00+01:00", "2024-03-31 03:00:00+02:00"]
    times = read(texts)
    assert times.tolist() == [ns("2024-03-31 00:59"), ns("2024-03-31 01:00")]
    assert write_times(times, replace(recognised(texts), zone="Europe/Berlin")).tolist() == texts
    for suffix in ("+0100", "+01"):
        texts = [f"2024-01-01 00:00:00{suffix}"]
        assert write_times(read(texts), replace(recognised(texts), zone="UTC+01:00")).tolist() == texts


def test_times_over_several_columns():
    texts = ["2010 1 1 0", "2010 1 1 23"]
    names = ("year", "month", "day", "hour")
    assert read(texts, names=names).tolist() == [ns("2010-01-01 00:00"), ns("2010-01-01 23:00")]
    assert write_times(read(texts, names=names), recognised(texts, names=names)).tolist() == texts
    assert read(["2010 1 1 24"], names=names).tolist() == [ns("2010-01-02")]
    assert split_format("%d/%m/%Y %H:%M", 2) == ["%d/%m/%Y", "%H:%M"]
    assert split_format("%b %d %Y %H:%M", 2) == ["%b %d %Y", "%H:%M"]


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        (["03/04/2021", "05/06/2021"], "'03/04/2021' may be day or month first"),
        (["soon"], "cannot read 'soon' as a time"),
        (["03/04/21", "05/06/21"], "'03/04/21' may be day or month first, (?s:.)*%d/%m/%y"),
        (["19-01-01", "20-01-01"], "'19-01-01' may be day or year first"),
        (["21-01-13", "21-01-14"], "'21-01-13' may be day or year first"),
        (["05/01/19", "05/01/20", "05/01/21"], "'05/01/19' may be day or month first"),
        (["Jan-01", "Jan-02"], "the number of 'Jan-01' may be a day or a year"),
        (["Jan-30", "Jan-31", "Feb-01"], "may be a day or a year"),
        (["1-Jan", "2-Jan"], "cannot read '1-Jan' as a time"),
        (["44197.5"], "excel for the days of a spreadsheet"),
        (["2021.25"], "cannot read '2021.25' as a time"),
        (["2021-01-05 10:00 CET"], r"the times name their clock \(CET\)"),
        (["1", "2", "3"], "state data.time_format"),
    ],
)
def test_what_may_be_read_in_two_ways_is_refused(texts, says):
    with pytest.raises(InputError, match=says):
        recognised(texts)


def test_the_names_of_clocks_tell_the_hour_that_stands_twice():
    from dataclasses import replace

    texts = ["2021-10-31 02:00 CEST", "2021-10-31 02:00 CET", "2021-10-31 03:00 CET"]
    style = replace(recognised(texts, zone="Europe/Berlin"), zone="Europe/Berlin")
    times = read_times(pd.Series(texts, dtype="string"), style)
    assert times.tolist() == [ns("2021-10-31 00:00"), ns("2021-10-31 01:00"), ns("2021-10-31 02:00")]
    assert write_times(times, style).tolist() == texts
    assert read_times(pd.Series(["2021-10-31 04:00"], dtype="string"), style).tolist() == [UNREAD]
    with pytest.raises(InputError, match="CEST is no clock of America/New_York, whose clocks are EDT, EST"):
        recognised(texts, zone="America/New_York")


def test_names_of_clocks_that_come_later_in_the_year_are_known():
    style = recognise(series(["2021-03-27 02:00 CET"]), names=("ds",), stated=None, orders=NONE, zone="Europe/Berlin")
    after = pd.Timestamp("2021-03-28 05:00", tz="Europe/Berlin").value
    assert write_times(np.array([after]), style).tolist() == ["2021-03-28 05:00 CEST"]
    style = recognise(series(["2021-01-01 02:00 EST"]), names=("ds",), stated=None, orders=NONE, zone="UTC-05:00")
    summer = pd.Timestamp("2021-07-01 05:00", tz="UTC").value
    assert write_times(np.array([summer]), style).tolist() == ["2021-07-01 00:00 EST"]
    alaska = ["2021-01-01 02:00 AKST"]  # whose offset was called YST, too
    assert write_times(read(alaska, zone="America/Anchorage"), recognised(alaska, zone="America/Anchorage")) == alaska
    london = ["2021-03-27 23:00 GMT", "2021-03-28 02:00 BST"]
    style = recognise(series(london), names=("ds",), stated=None, orders=NONE, zone="Europe/London")
    times = read_times(series(london), style)
    assert np.diff(times).tolist() == [2 * 3600 * 10**9]
    assert write_times(times, style).tolist() == london


@pytest.mark.parametrize(("step", "zone"), [("30min", "Europe/London"), ("15min", "Europe/Berlin")])
def test_numbered_intervals_of_days_on_which_the_clock_changes(step, zone):
    stamps = pd.date_range("2021-03-01", "2021-11-30", freq=step, tz=zone, inclusive="left")
    number = (stamps - stamps.normalize()) // pd.Timedelta(step) + 1
    assert number.max() == pd.Timedelta("25h") / pd.Timedelta(step)
    texts = series(stamps.strftime("%d.%m.%Y ") + number.astype(str))
    style = recognise(texts, names=("date", "period"), stated=None, orders=frozenset({"dmY"}), zone=zone)
    assert style.format == "%d.%m.%Y %K"
    times = read_times(texts, style)
    assert times.tolist() == stamps.as_unit("ns").astype("int64").tolist()
    assert write_times(times, style).tolist() == texts.tolist()
    beyond = series(["28.03.2021 " + str(int(pd.Timedelta("23h") / pd.Timedelta(step)) + 1), "29.03.2021 0"])
    assert read_times(beyond, style).tolist() == [UNREAD, UNREAD]


@pytest.mark.parametrize("freq", ["D", "ME", "W", "B"])
def test_years_of_two_digits_that_come_first(freq):
    stamps = pd.date_range("2001-01-31", periods=240, freq=freq)
    assert date_orders(series(stamps.strftime("%d-%m-%y"))) == {"dmy"}
    assert "dmy" in date_orders(series(sorted(stamps.strftime("%d-%m-%y"))))  # which is not taken for the year
    assert "ymd" in date_orders(series(stamps.strftime("%y-%m-%d")))
    assert date_orders(series(pd.date_range("2019-03-07", periods=240).strftime("%y-%m-%d"))) == {"ymd"}


def test_years_of_two_digits_are_before_2050():
    stamps = pd.date_range("1968-10-01", periods=200)
    assert read(stamps.strftime("%m/%d/%y")).tolist() == stamps.as_unit("ns").astype("int64").tolist()
    months = pd.date_range("1955-01-01", periods=300, freq="MS")
    assert read(months.strftime("%b-%y")).tolist() == months.as_unit("ns").astype("int64").tolist()


@pytest.mark.parametrize("form", ["{}:{}", "{}-{}"])
def test_a_number_beside_the_year_that_never_passes_four_is_a_quarter(form):
    texts = [form.format(1990 + i // 4, i % 4 + 1) for i in range(40)]
    quarters = pd.date_range("1990-01-01", periods=40, freq="QS")
    assert read(texts).tolist() == quarters.as_unit("ns").astype("int64").tolist()
    assert write_times(read(texts), recognised(texts)).tolist() == texts
    with pytest.raises(InputError, match="may be a month or half of a year"):
        recognised([form.format(1990 + i // 2, i % 2 + 1) for i in range(40)])


@pytest.mark.parametrize("form", ["%d-%b-%Y %I.%M.%S %p", "%d-%b-%y %I.%M.%S.%f %p"])
def test_clocks_of_points_with_half_of_the_day(form):
    stamps = pd.date_range("2021-01-05", periods=60, freq="h")
    texts = stamps.strftime(form).str.upper()
    assert read(texts).tolist() == stamps.as_unit("ns").astype("int64").tolist()
    assert write_times(read(texts), recognised(texts)).tolist() == texts.tolist()


def test_days_of_a_spreadsheet():
    texts = ["44197", "44197.0416666667", "44197.5"]
    style = recognised(texts, stated="excel")
    times = read_times(pd.Series(texts, dtype="string"), style)
    assert times.tolist() == [ns("2021-01-01 00:00"), ns("2021-01-01 01:00"), ns("2021-01-01 12:00")]
    assert write_times(times, style).tolist() == [float(text) for text in texts]
    assert write_times(times[:1], style).tolist() == [44197]
    assert not style.aware  # a spreadsheet knows no zone


def test_midnight_may_be_a_date_alone():
    texts = ["25.01.2021", "25.01.2021 01:00", "26.01.2021"]
    assert read(texts).tolist() == [ns("2021-01-25"), ns("2021-01-25 01:00"), ns("2021-01-26")]
    texts = ["1/25/2021", "1/25/2021 1:00:00 AM"]
    assert read(texts).tolist() == [ns("2021-01-25"), ns("2021-01-25 01:00")]


def test_a_stated_format_decides():
    assert read(["03/04/2021"], stated="%d/%m/%Y").tolist() == [ns("2021-04-03")]


def test_what_cannot_be_read_is_marked_and_the_rest_is_read():
    texts = pd.Series(["2024-01-01", "yesterday", "2024-02-30", "2024-01-02 05:00", None], dtype="string")
    times = read_times(texts, recognised(["2024-01-01"]))
    assert times.tolist() == [ns("2024-01-01"), UNREAD, UNREAD, ns("2024-01-02 05:00"), UNREAD]
    aware = recognised(["2024-01-01 00:00:00Z"])
    assert read_times(pd.Series(["2024-01-01 01:00:00"], dtype="string"), aware).tolist() == [UNREAD]
    naive = recognised(["2024-01-01 00:00:00"])
    mixed = pd.Series(["2024-01-01 01:00:00Z", "2024-01-01 02:00:00"], dtype="string")
    assert read_times(mixed, naive).tolist() == [UNREAD, ns("2024-01-01 02:00")]


FORMS_STATED = ["%Y-%m-%d %H:%M:%S", "%d.%m.%Y %H:%M:%S", "%m/%d/%Y %I:%M:%S %p", "%Y%m%d%H%M%S", "%Y-%m-%dT%H:%M:%S"]
STAMPS = st.datetimes(min_value=pd.Timestamp("1900-01-01"), max_value=pd.Timestamp("2200-01-01"))


@given(st.lists(STAMPS, min_size=1, max_size=9), st.sampled_from(FORMS_STATED))
@settings(max_examples=60, deadline=None)
def test_any_time_comes_back_as_it_was(stamps, form):
    texts = [stamp.strftime(form) for stamp in stamps]
    style = recognised(texts, stated=form)
    times = read_times(pd.Series(texts, dtype="string"), style)
    assert times.tolist() == [pd.Timestamp(stamp).floor("s").value for stamp in stamps]
    assert write_times(times, style).tolist() == texts


def test_writing_keeps_the_order():
    style = recognised(["2024-01-01"])
    times = np.array([ns("2024-01-03"), ns("2024-01-01"), ns("2024-01-03")])
    assert write_times(times, style).tolist() == ["2024-01-03", "2024-01-01", "2024-01-03"]


DATES = [
    "%d/%m/%y", "%m/%d/%y", "%y-%m-%d", "%d-%m-%y", "%d.%m.%y", "%d/%m/%Y", "%m-%d-%Y", "%Y.%m.%d", "%d-%b-%y",
    "%d %B %Y", "%b %d, %Y", "%d%b%Y", "%Y%m%d", "%Y-%j", "%G-W%V-%u", "%a %d %b %Y", "%Y:%m:%d",
]  # fmt: skip
CLOCKS = [
    "", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S%p", "T%H:%M", " %Hh%M", "_%H-%M-%S", " %H.%M", ":%H:%M:%S",
]  # fmt: skip


@given(
    start=st.datetimes(min_value=pd.Timestamp("1972-01-01"), max_value=pd.Timestamp("2035-01-01")),
    step=st.sampled_from(["1min", "1h", "7h", "1D", "7D", "MS", "YS"]), count=st.integers(1, 40),
    date=st.sampled_from(DATES), clock=st.sampled_from(CLOCKS),
)  # fmt: skip
@settings(max_examples=300, deadline=None)
def test_what_is_read_is_right(start, step, count, date, clock):
    stamps = pd.date_range(pd.Timestamp(start).floor("min"), periods=count, freq=step)
    texts = [stamp.strftime(date + clock) for stamp in stamps]
    known = pd.to_datetime(pd.Series(texts), format=date + clock)  # without what the format leaves out
    if "%y" in date:  # of which none is from 2050 on
        known = known.mask(known.dt.year >= 2050, known - pd.DateOffset(years=100))
    try:
        style = recognised(texts)
    except InputError:
        return
    times = read_times(pd.Series(texts, dtype="string"), style)
    if (times == UNREAD).any():  # which a file is refused for
        return
    assert times.tolist() == known.astype("datetime64[ns]").astype("int64").tolist()
    assert write_times(times, style).tolist() == texts


def test_times_are_written_as_finely_as_the_file_has_them():
    moment = np.array([ns("2021-01-01 00:00:00.123456789")])
    assert write_times(moment, recognised(["1609459200"])).tolist() == [1609459200]
    assert write_times(moment, recognised(["1609459200.5"])).tolist() == ["1609459200.1"]
    assert write_times(moment, recognised(["1609459200000000000"])).tolist() == [1609459200123456789]
    assert write_times(moment, recognised(["2021-01-01 00:00:00.000"])).tolist() == ["2021-01-01 00:00:00.123"]
