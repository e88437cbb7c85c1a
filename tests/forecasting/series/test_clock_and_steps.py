"""Local clocks, steps and grids against pandas."""

import numpy as np
import pandas as pd
import pytest

from common.errors import InputError
from forecasting.series.clock import check_zone, clock, moments
from forecasting.series.steps import duration, grid, infer_step, slots

DAY = 86_400 * 10**9


def ns(index):
    index = pd.DatetimeIndex(index)
    if index.tz is not None:
        index = index.tz_convert("UTC").tz_localize(None)
    return index.as_unit("ns").astype("int64").to_numpy()


@pytest.mark.parametrize(
    "zone", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "UTC", "Asia/Kolkata"]
)
def test_local_times_and_back(zone):
    stamps = pd.date_range("2019-12-25", "2022-02-01", freq="15min", tz="UTC")
    utc, wall = ns(stamps), ns(stamps.tz_convert(zone).tz_localize(None))
    assert (clock(zone, utc[0], utc[-1]).local(utc) == wall).all()
    one = np.zeros(len(wall), dtype=int)
    found = moments(wall, one, zone)
    assert (found.times == utc).all()
    assert not found.gap.any()
    assert not found.once.any()
    # Newest first, and two series one after the other.
    assert (moments(wall[::-1].copy(), one, zone).times[::-1] == utc).all()
    both = moments(np.tile(wall, 2), np.repeat([0, 1], len(wall)), zone)
    assert (both.times == np.tile(utc, 2)).all()


def test_hours_that_stand_once_or_never():
    wall = ns(["2024-03-31 01:30", "2024-03-31 02:30", "2024-10-27 01:30", "2024-10-27 02:30", "2024-10-27 03:30"])
    found = moments(wall, np.zeros(5, dtype=int), "Europe/Berlin")
    assert found.gap.tolist() == [False, True, False, False, False]
    assert found.fold.tolist() == found.once.tolist() == [False, False, False, True, False]
    assert found.times[3] == ns(["2024-10-27 00:30"])[0]  # the first of the two
    assert found.times[1] == ns(["2024-03-31 01:30"])[0]  # behind the gap


def test_fixed_offsets_and_unknown_zones():
    times = ns(["2024-01-01"])
    assert clock("UTC+05:30", 0, 0).local(times)[0] - times[0] == int(5.5 * 3600) * 10**9
    assert clock("UTC-03:00", 0, 0).local(times)[0] - times[0] == -3 * 3600 * 10**9
    for zone in ("Berlin", "Europe", "UTC+1"):
        with pytest.raises(InputError, match=f"'{zone.replace('+', '.')}' is not a time zone"):
            check_zone(zone)


DAYS = pd.date_range("2021-01-01", periods=300, freq="D", tz="Europe/Berlin").delete([99])
HOURS6 = [t for t in pd.date_range("2021-01-01", periods=4800, freq="h", tz="Europe/Berlin") if t.hour % 6 == 0]


@pytest.mark.parametrize(
    ("index", "zone", "kind", "text"),
    [
        (pd.date_range("2021-01-01", periods=50, freq="h"), "UTC", "fixed", "1 hour"),
        (pd.date_range("2021-01-01", periods=50, freq="h").delete([5, 6, 30]), "UTC", "fixed", "1 hour"),
        (pd.date_range("2021-03-27", periods=50, freq="h", tz="UTC"), "Europe/Berlin", "fixed", "1 hour"),
        (pd.date_range("2021-01-01", periods=30, freq="MS"), "UTC", "months", "1 month"),
        (pd.date_range("2021-01-31", periods=30, freq="ME").delete(4), "UTC", "months", "1 month"),
        (pd.date_range("2021-01-01", periods=30, freq="QS"), "UTC", "months", "3 months"),
        (pd.date_range("1900-01-01", periods=130, freq="YS"), "UTC", "months", "1 year"),
        (pd.date_range("2021-01-01", periods=30, freq="MS", tz="Europe/Berlin"), "Europe/Berlin", "months", "1 month"),
        (pd.date_range("2021-01-29", periods=30, freq="BME"), "UTC", "months", "1 month, last business day"),
        (pd.date_range("2021-01-01", periods=30, freq="BMS").delete(7), "UTC", "months", "1 month, first business day"),
        (pd.bdate_range("2021-01-01", periods=80).delete([7, 20]), "UTC", "business", "business day"),
        (pd.date_range("2021-01-01", periods=20, freq="D"), "UTC", "local", "1 day"),
        (DAYS, "Europe/Berlin", "local", "1 day"),
        (pd.date_range("2021-01-04", periods=60, freq="7D"), "UTC", "local", "7 days"),
        (pd.DatetimeIndex(HOURS6), "Europe/Berlin", "local", "6 hours"),
    ],
)  # fmt: skip
def test_a_grid_goes_through_all_times(index, zone, kind, text):
    times = ns(index)
    local = clock(zone, times[0], times[-1] + 400 * DAY)
    step = infer_step(times, local)
    assert (step.kind, step.text(), step.regular) == (kind, text, True)
    place = slots(times, step, local)
    assert (grid(int(times[0]), step, local, 0, int(place[-1]) + 1)[place] == times).all()
    # What follows goes on as pandas would.
    more = grid(int(times[-1]), step, local, 1, 4)
    assert slots(np.concatenate([times[-1:], more]), step, local).tolist() == [0, 1, 2, 3]


def test_what_follows_is_what_the_calendar_says():
    def after(texts, zone="UTC", count=2):
        times = ns(texts)
        local = clock(zone, times[0], times[-1] + 400 * DAY)
        found = grid(int(times[-1]), infer_step(times, local), local, 1, count + 1)
        return [str(t) for t in pd.DatetimeIndex(found.astype("datetime64[ns]"))]

    assert after(["2024-01-31", "2024-02-29", "2024-03-31"])[0] == "2024-04-30 00:00:00"
    assert after(["2022-12-30", "2023-01-30", "2023-02-28"])[0] == "2023-03-30 00:00:00"
    ends = pd.date_range("2016-01-29", periods=9, freq="BME")
    assert after(ends[:8]) == [str(ends[8]), "2016-10-31 00:00:00"]
    friday = pd.bdate_range("2024-01-01", periods=15)
    assert friday[-1].day_name() == "Friday"
    assert after(friday)[0] == "2024-01-22 00:00:00"  # a Monday
    # Midnight in Berlin is 23:00 UTC in winter, 22:00 in summer.
    days = pd.date_range("2024-03-20", "2024-03-30", freq="D", tz="Europe/Berlin")
    assert after(days, "Europe/Berlin") == ["2024-03-30 23:00:00", "2024-03-31 22:00:00"]
    hours = pd.date_range("2024-03-30 20:00", periods=4, freq="h")
    assert after(hours, "Europe/Berlin") == ["2024-03-31 00:00:00", "2024-03-31 01:00:00"]


def test_irregular_times_have_a_median_step():
    times = ns(["2021-01-01 00:00:00", "2021-01-01 00:05:02", "2021-01-01 00:10:01", "2021-01-01 03:00:00"])
    step = infer_step(times, clock("UTC", 0, 0))
    assert (step.regular, step.nanoseconds) == (False, 302 * 10**9)
    # A grid that would be nearly all holes is none.
    sparse = infer_step(ns(["2021-01-01", "2021-01-02", "2021-01-03", "2023-01-01"]), clock("UTC", 0, 0))
    assert not sparse.regular
    assert infer_step(times[:1], clock("UTC", 0, 0)) is None


def test_lengths_in_words():
    assert [duration(x * 10**9) for x in (0.5, 1, 90, 3600, 5400, 86_400, 604_800)] == [
        "500 milliseconds", "1 second", "1.5 minutes", "1 hour", "1.5 hours", "1 day", "7 days",
    ]  # fmt: skip
