"""Timestamps against pandas and the calendar."""

import numpy as np
import pandas as pd
import pytest

from common.errors import InputError
from forecasting.timestamps import DAY, Step, following_times, infer_step, local_phases, parse_times, write_times


def parse(texts, time_format=None, timezone=None):
    series = pd.Series(texts, dtype="string")
    return parse_times(series, time_format=time_format, timezone=timezone, place=lambda row: f"f.csv, line {row + 2}")


def ns(text):
    return pd.Timestamp(text).value


@pytest.mark.parametrize(
    ("texts", "utc"),
    [
        (["2024-02-29 23:00:00", "2024-03-01 00:00:00"], ["2024-02-29 23:00", "2024-03-01 00:00"]),
        (["2024-02-29", "2024-03-01 06:30:00"], ["2024-02-29 00:00", "2024-03-01 06:30"]),
        (["2011-12-31T13:00:00Z", "2011-12-31T13:30:00Z"], ["2011-12-31 13:00", "2011-12-31 13:30"]),
        (["2024-03-31 01:00:00+01:00", "2024-03-31 03:00:00+02:00"], ["2024-03-31 00:00", "2024-03-31 01:00"]),
        (["2013/1/1 0:00", "2013/12/31 23:00"], ["2013-01-01 00:00", "2013-12-31 23:00"]),
        (["04/30/2021", "02/8/1991"], ["2021-04-30 00:00", "1991-02-08 00:00"]),
        (["03.04.2021 10:00", "30.04.2021 11:00"], ["2021-04-03 10:00", "2021-04-30 11:00"]),
        (["1949-01", "1949-02"], ["1949-01-01 00:00", "1949-02-01 00:00"]),
    ],
)
def test_formats_people_use(texts, utc):
    times, _ = parse(texts)
    assert times.tolist() == [ns(t) for t in utc]


def test_local_time_is_held_in_utc():
    times, style = parse(["2024-07-01 12:00:00"], timezone="Europe/Berlin")
    assert times[0] == ns("2024-07-01 10:00")
    assert write_times(times, style).tolist() == ["2024-07-01 12:00:00"]


@pytest.mark.parametrize(
    "texts",
    [
        ["2024-02-29 23:00:00", "2024-03-01 00:00:00"],
        ["2011-12-31T13:00:00Z", "2011-12-31T13:30:00Z"],
        ["1949-01", "1949-02"],
        ["04/30/2021", "05/07/2021"],
    ],
)
def test_times_are_written_as_they_were_read(texts):
    times, style = parse(texts)
    assert write_times(times, style).tolist() == texts


def test_a_stated_zone_changes_only_offsets_written_in_numbers():
    texts = ["2024-03-31 01:59:00+01:00", "2024-03-31 03:00:00+02:00"]
    times, style = parse(texts, timezone="Europe/Berlin")
    assert write_times(times, style).tolist() == texts
    times, style = parse(["2024-07-01T12:00:00Z"], timezone="Europe/Berlin")
    assert write_times(times, style).tolist() == ["2024-07-01T12:00:00Z"]


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        (["2024-01-01", "2024-01-02", "yesterday"], "f.csv, line 4: cannot read 'yesterday' as a time"),
        (["2024-01-01", "2024-02-30"], "f.csv, line 3: cannot read '2024-02-30'"),
        (["soon", "2024-01-02"], "f.csv, line 2: cannot read 'soon' as a time"),
        (["2024-01-01", None], "f.csv, line 3: the time is missing"),
        (["03/04/2021", "05/06/2021"], "f.csv, line 2: '03/04/2021' may be day or month first"),
        (["20240101", "20240102"], "cannot read '20240101' as a time"),
    ],
)
def test_what_cannot_be_read_is_named_by_its_line(texts, says):
    with pytest.raises(InputError, match=says):
        parse(texts)


def test_an_ambiguous_format_can_be_stated():
    times, _ = parse(["03/04/2021"], time_format="%d/%m/%Y")
    assert times[0] == ns("2021-04-03")


def test_an_unknown_zone_and_an_hour_that_does_not_exist():
    with pytest.raises(InputError, match="'Berlin' is not a time zone"):
        parse(["2024-01-01"], timezone="Berlin")
    for text in ("2024-03-31 02:30:00", "2024-10-27 02:30:00"):
        with pytest.raises(
            InputError, match=rf"line 3: the time '{text}' does not exist in Europe/Berlin, or exists t"
        ):
            parse(["2024-03-31 00:30:00", text], timezone="Europe/Berlin")
    with pytest.raises(InputError, match="'Europe' is not a time zone"):
        parse(["2024-01-01"], timezone="Europe")


def test_a_first_row_without_its_midnight_does_not_set_the_style():
    times, style = parse(["2024-01-01", "2024-01-01 01:00:00"])
    assert times.tolist() == [ns("2024-01-01"), ns("2024-01-01 01:00")]
    assert write_times(times, style).tolist() == ["2024-01-01 00:00:00", "2024-01-01 01:00:00"]


def test_times_with_one_offset_keep_it():
    for suffix in ("+01:00", "+0100", "+01"):
        times, style = parse([f"2024-01-01 00:00:00{suffix}", f"2024-01-01 01:00:00{suffix}"])
        assert times.tolist() == [ns("2023-12-31 23:00"), ns("2024-01-01 00:00")]
        assert write_times(times, style).tolist() == ["2024-01-01 00:00:00+01:00", "2024-01-01 01:00:00+01:00"]
        assert local_phases(times, style.zone)[0].tolist() == [0, 0, 0]  # midnight, a Monday, the first of the year
    _, style = parse(["2024-03-31 01:00:00+01:00", "2024-03-31 03:00:00+02:00"])
    assert style.zone == "UTC"


def test_some_times_with_an_offset_and_some_without_are_refused():
    with pytest.raises(InputError, match="line 2: the time '2024-01-01 00:00:00' has no offset"):
        parse(["2024-01-01 00:00:00", "2024-01-01 01:00:00Z"])


def test_phases_are_of_the_local_clock():
    # Monday 1 July 2024, 18:00 in Berlin (UTC+2).
    phases = local_phases(np.array([ns("2024-07-01 16:00")]), "Europe/Berlin")[0]
    np.testing.assert_allclose(phases, [18 / 24, 0.75 / 7, (6 + 0.75 / 31) / 12], atol=1e-6)


def test_months_have_twelve_phases():
    starts = pd.date_range("2023-01-01", periods=24, freq="MS").as_unit("ns").asi8
    assert np.floor(local_phases(starts, "UTC")[:, 2] * 12 + 1e-3).tolist() == [*range(12)] * 2


def test_steps():
    def step(*texts):
        return infer_step(np.array([ns(t) for t in texts]), "UTC")

    assert step("2024-01-01", "2024-01-02", "2024-01-03", "2024-01-09") == Step(0, DAY)
    assert step("2024-01-01", "2024-02-01", "2024-03-01") == Step(1, int(365.2425 / 12 * DAY), day=1)
    assert step("2024-01-31", "2024-02-29", "2024-03-31").months == 1
    assert step("2024-01-01", "2024-04-01", "2024-07-01").months == 3
    assert step("2023-01-28", "2023-02-28", "2023-03-28").day == 28
    assert step("2022-12-30", "2023-01-30", "2023-02-28").day == 30
    assert step("2024-02-29", "2024-03-31", "2024-04-30").day == 31
    assert step("2024-01-01", "2024-01-29", "2024-02-26") == Step(0, 28 * DAY)
    assert step("2024-01-01") is None


def test_following_times_keep_to_the_local_clock():
    def after(text, step, zone="UTC"):
        return [str(pd.Timestamp(t)) for t in following_times(ns(text), step, 2, zone)]

    hour = Step(0, DAY // 24)
    assert after("2024-03-31 00:00", hour, "Europe/Berlin") == ["2024-03-31 01:00:00", "2024-03-31 02:00:00"]
    # Midnight in Berlin is 23:00 UTC in winter, 22:00 in summer.
    day = Step(0, DAY)
    assert after("2024-03-29 23:00", day, "Europe/Berlin") == ["2024-03-30 23:00:00", "2024-03-31 22:00:00"]
    assert after("1960-12-01", Step(1, 30 * DAY, day=1)) == ["1961-01-01 00:00:00", "1961-02-01 00:00:00"]
    assert after("2024-01-31", Step(1, 30 * DAY, day=31)) == ["2024-02-29 00:00:00", "2024-03-31 00:00:00"]
    assert after("2023-02-28", Step(1, 30 * DAY, day=28)) == ["2023-03-28 00:00:00", "2023-04-28 00:00:00"]
    assert after("2023-02-28", Step(1, 30 * DAY, day=30)) == ["2023-03-30 00:00:00", "2023-04-30 00:00:00"]
