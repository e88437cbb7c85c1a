"""How times are written: recognised, read against pandas and the calendar, and written back as they were."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import InputError
from forecasting.series.style import UNREAD, day_or_month_first, read_times, recognise, split_format, write_times


def recognised(texts, names=("ds",), stated=None):
    texts = pd.Series(texts, dtype="string")
    return recognise(texts, names=names, stated=stated, day_first=day_or_month_first(texts) if not stated else False)


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
        (["13/05/21 14:00"], "cannot read '13/05/21 14:00' as a time"),
        (["1", "2", "3"], "state data.time_format"),
    ],
)
def test_what_may_be_read_in_two_ways_is_refused(texts, says):
    with pytest.raises(InputError, match=says):
        recognised(texts)


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
