"""Which times to forecast: those that follow each series, or those that a file asks for with what is known of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from common.errors import InputError
from common.progress import log
from forecasting.inputs import Inputs
from forecasting.series.clock import DAY, Clock
from forecasting.series.columns import Coded
from forecasting.series.panel import Panel, runs
from forecasting.series.rows import FileRows, read_rows
from forecasting.series.steps import Step, grid, slots
from forecasting.series.style import split_format, write_times


@dataclass(frozen=True)
class Requests:
    """Times to forecast.

    A model forecasts ``H`` times of each series at once, of which some are asked for.

    Attributes:
        times: ``int64 [series, H]``, the times that are forecast.
        series: ``int64 [N]``, series of each time that is asked for, in the order of the output.
        place: ``int64 [N]``, which of the ``H`` it is.
        columns: Names of the series and times as they are to be written, ``[N]`` by column.
        numbers: Covariates known ahead that are numbers, ``float32 [series, H]`` by column, NaN where missing.
        categories: Those that are texts, with codes ``[series, H]``, -1 where missing.
        steps: Step of each series that its windows are cut by: irregular where times off its grid are asked for.
        failed: Series that cannot be forecast at all, by what the file calls them, with the reason.
    """

    times: np.ndarray
    series: np.ndarray
    place: np.ndarray
    columns: dict[str, np.ndarray]
    numbers: dict[str, np.ndarray] = field(default_factory=dict)
    categories: dict[str, Coded] = field(default_factory=dict)
    steps: tuple[Step | None, ...] = ()
    failed: list[dict[str, Any]] = field(default_factory=list)


def following(panel: Panel, inputs: Inputs, usual: int, horizon: int) -> Requests:
    """The next times of each series.

    Args:
        panel: The series.
        inputs: What the model is given.
        usual: Step of a series that has none of its own, in nanoseconds.
        horizon: How many times to ask for.
    """
    times = _next_times(panel, inputs.horizon, usual)
    count = len(panel.ids)
    columns = {name: np.repeat(column, horizon) for name, column in panel.id_columns.items()}
    return Requests(
        times=times,
        series=np.repeat(np.arange(count), horizon),
        place=np.tile(np.arange(horizon), count),
        columns={**columns, **time_columns(times[:, :horizon].ravel(), panel)},
        steps=panel.steps,
    )


def read_requests(
    path: Path,
    panel: Panel,
    inputs: Inputs,
    usual: int,
    *,
    wide: bool,
    resampled: bool,
    **reading: Any,
) -> Requests:
    """Read the times to forecast, and what is known of them, from a file in the columns of the series' own.

    Rows that are not after the last value of their series are passed over, so that one file may hold both.

    Args:
        path: CSV or Parquet.
        panel: The series, which end with their last value.
        inputs: What the model is given.
        usual: Step of a series that has none of its own, in nanoseconds.
        wide: Whether each time is asked for of all series.
        resampled: Whether the series were resampled, so that times off their grid mean nothing.
        reading: How to read it, as :func:`forecasting.series.read.read_rows` takes it.

    Raises:
        InputError: If a time cannot be forecast, or a value known ahead is missing.
    """
    ahead = [each for each in inputs.covariates if each.role == "future"]
    rows = read_rows(
        path,
        ids=() if wide else tuple(panel.id_columns),
        times=panel.time_columns,
        numbers=[each.name for each in ahead if each.categories is None],
        texts=[each.name for each in ahead if each.categories is not None],
        **reading,
    )
    place_of = {name: i for i, name in enumerate(panel.ids)}
    known = np.array([place_of.get(name, -1) for name in rows.names])
    if wide or not panel.id_columns:
        count = len(panel.ids)
        series, row = np.repeat(np.arange(count), len(rows.times)), np.tile(np.arange(len(rows.times)), count)
    else:
        series, row = known[rows.codes], np.arange(len(rows.times))
    strangers = () if wide or not panel.id_columns else np.flatnonzero(known < 0).tolist()
    reason = "its times are asked for, but DATA has no such series"
    failed = [{**{name: column[i] for name, column in rows.id_columns.items()}, "reason": reason} for i in strangers]
    for note in rows.notes:
        log.info("%s: %s", path, note)
    if (series < 0).all():
        raise InputError(
            f"DATA has no such series as {rows.names[0]!r}",
            where=path,
            remedy=f"those of DATA, such as {panel.ids[0]!r}",
        )
    last = panel.times[panel.starts[1:] - 1]
    later = (series >= 0) & (rows.times[row] > last[series])
    passed = np.setdiff1d(row[series >= 0], row[later])
    if len(passed):
        log.info("%s: %d rows not after the last value of their series passed over", path, len(passed))
    series, row = series[later], row[later]
    if not len(row):
        raise InputError("no row is later than the last value of its series", where=path, remedy="rows to come")
    times = _next_times(panel, inputs.horizon, usual)
    steps = list(panel.steps)
    place = np.zeros(len(row), dtype=np.int64)
    reached = np.ones(len(row), dtype=bool)
    local = panel.clock(int(rows.times.max()) - int(panel.times.max()) + 10 * DAY)
    order = np.lexsort((rows.times[row], series))
    for own in np.split(order, np.flatnonzero(np.diff(series[order])) + 1):  # the rows of one series, by time
        i = int(series[own[0]])
        where = f"{path}, series {panel.ids[i]}"
        asked, step = rows.times[row[own]], panel.steps[i] or Step(usual)
        if len(np.unique(asked)) < len(asked):
            raise InputError("a time is asked for twice", where=where)
        beyond = _beyond(asked, int(last[i]), step, local, inputs.horizon)
        if beyond.any() and not (wide and len(panel.ids) > 1):
            raise _too_far(int(beyond.sum()), step, inputs.horizon, where)
        reached[own[beyond]] = False  # of a wide file, whose series may end at other times
        own, asked = own[~beyond], asked[~beyond]
        place[own] = _places(asked, times[i], int(last[i]), where)
        off = times[i, place[own]] != asked
        if off.any() and resampled:
            raise InputError(
                f"no step of {step.text()} begins at {rows.written[panel.time_columns[0]][row[own[off][0]]]}",
                where=where,
                remedy="give the times at which steps begin, with what is known of each step",
            )
        if off.any():
            times[i, place[own]] = asked
            steps[i] = replace(step, regular=False)
    if not reached.all():
        if not reached.any():
            raise _too_far(len(reached), panel.steps[0] or Step(usual), inputs.horizon, str(path))
        for i in np.setdiff1d(series, series[reached]).tolist():
            names = {name: column[i] for name, column in panel.id_columns.items()}
            failed.append({**names, "reason": "the times asked for are beyond the horizon after its last value"})
        log.info("%s: %d times beyond the horizon of their series left out", path, int((~reached).sum()))
        series, row, place = series[reached], row[reached], place[reached]
    for name in rows.numbers:
        lacking = np.isnan(rows.numbers[name][row])
        _refuse_lacking(lacking, name, rows, row, panel, series)
    for name, column in rows.texts.items():
        blank = int((column.codes[row] < 0).sum())
        if blank:
            log.info("%s: column %r is empty for %d of the times asked for, which counts as none", path, name, blank)

    def spread(column: np.ndarray, nothing: float) -> np.ndarray:
        found = np.full(times.shape, nothing, dtype=column.dtype)
        found[series, place] = column[row]
        return found

    ids = {name: panel.id_columns[name][series] for name in panel.id_columns}
    return Requests(
        times=times,
        series=series,
        place=place,
        columns={**ids, **{name: texts[row] for name, texts in rows.written.items()}},
        numbers={name: spread(column.astype(np.float32), np.nan) for name, column in rows.numbers.items()},
        categories={name: Coded(spread(column.codes, -1), column.texts) for name, column in rows.texts.items()},
        steps=tuple(steps),
        failed=failed,
    )


def _beyond(asked: np.ndarray, last: int, step: Step, local: Clock, horizon: int) -> np.ndarray:
    """Which times are more than the horizon after the last value, boolean ``[N]``."""
    if step.regular:
        return slots(np.concatenate([[last], asked]), step, local)[1:] > horizon
    return (asked - last) / step.nanoseconds > horizon + 0.5


def _too_far(count: int, step: Step, horizon: int, where: str) -> InputError:
    return InputError(
        f"{'1 time is' if count == 1 else f'{count} times are'} more than {horizon} steps of {step.text()} after the "
        "last value",
        where=where,
        remedy=f"ask for up to {horizon}, or fit with a larger horizon",
    )


def _places(asked: np.ndarray, times: np.ndarray, last: int, where: str) -> np.ndarray:
    """Which of the times that a model forecasts those asked for are, or are the next to, one each."""
    place = np.searchsorted(times, asked).clip(max=len(times) - 1)
    own = times[place] == asked
    if own.all():
        return place
    if len(asked) > len(times):
        raise InputError(
            f"{len(asked)} times are asked for, the run forecasts up to {len(times)}",
            where=where,
            remedy="ask for fewer, or fit with a larger horizon",
        )
    free = np.ones(len(times), dtype=bool)
    free[place[own]] = False
    steps = np.interp(asked - last, np.append(0, times - last), np.arange(len(times) + 1)) - 1
    for i in np.flatnonzero(~own).tolist():  # the nearest of those that are left
        left = np.flatnonzero(free)
        place[i] = left[np.abs(left - steps[i]).argmin()]
        free[place[i]] = False
    return place


def _refuse_lacking(
    lacking: np.ndarray, name: str, rows: FileRows, row: np.ndarray, panel: Panel, series: np.ndarray
) -> None:
    if lacking.any():
        first = int(lacking.argmax())
        raise InputError(
            f"column {name!r}, which must be known ahead, is missing for {int(lacking.sum())} of the times asked for, "
            f"first of series {panel.ids[series[first]]!r}",
            where=rows.source.place(int(row[first])),
            remedy="complete it, or fit without it",
        )


def _next_times(panel: Panel, horizon: int, usual: int) -> np.ndarray:
    """The times after the last of each series, ``int64 [series, H]``; by the usual step where a series has none."""
    known = Counter(step for step in panel.steps if step is not None and abs(step.nanoseconds / usual - 1) < 0.25)
    spare = known.most_common(1)[0][0] if known else Step(usual, regular=True)
    longest = max((step or spare).nanoseconds for step in panel.steps)
    local = panel.clock(2 * horizon * longest + 10 * DAY)
    last = panel.times[panel.starts[1:] - 1].tolist()
    return np.stack(
        [grid(end, step or spare, local, 1, horizon + 1) for end, step in zip(last, panel.steps, strict=True)]
    )


def time_columns(times: np.ndarray, panel: Panel) -> dict[str, np.ndarray]:
    """Times in the columns and the style of the file, by column."""
    if len(panel.time_columns) == 1:
        return {panel.time_columns[0]: write_times(times, panel.style)}
    formats = split_format(panel.style.format, len(panel.time_columns))
    styles = [replace(panel.style, format=each, span=None) for each in formats]
    styles[-1] = replace(styles[-1], span=panel.style.span)
    parts = [write_times(times, style) for style in styles]
    return dict(zip(panel.time_columns, parts, strict=True))


def without_open_end(panel: Panel) -> Panel:
    """The panel without rows after the last value of each series; a series without any value keeps its last row."""
    seen = np.where(np.isnan(panel.values), -1, np.arange(len(panel.values)))
    last = np.maximum.reduceat(seen, panel.starts[:-1])
    lengths = np.where(last < 0, 1, last - panel.starts[:-1] + 1)
    if (lengths == np.diff(panel.starts)).all():
        return panel
    kept, starts = runs(panel.starts[:-1], lengths)
    return replace(panel.taking(kept), starts=starts)
