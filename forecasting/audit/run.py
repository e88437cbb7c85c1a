"""The audit of a file: what it holds, what is odd, and a configuration that a fit accepts as it is."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from common.errors import InputError
from forecasting.audit.clocks import ZONES, find_clock
from forecasting.audit.findings import SeriesAudit, audit_series
from forecasting.audit.leaks import find_leaks
from forecasting.audit.roles import find_roles
from forecasting.series.clock import DAY, HOUR, check_zone, clock
from forecasting.series.panel import Panel
from forecasting.series.read import read_panel
from forecasting.series.steps import length_of_time
from forecasting.series.tables import Source, open_source
from forecasting.series.tidy import count

MOST_PERIODS = 20
"""Series whose periods are looked for, evenly picked from all."""

SHORT = 30  # rows, below which a series shows little of how far forecasts are off


@dataclass(frozen=True)
class FileAudit:
    """What a file of series is like.

    Attributes:
        path: The file.
        data: Keys of ``data:`` in a configuration, as recognised and stated.
        rows: Rows of the file.
        dialect: How it is written, in words.
        notes: What reading did with odd rows, one sentence each.
        remarks: What the columns were taken for, and what else they could be.
        findings: What is odd about the file as a whole.
        zone: Local time zone to state, if the times tell.
        series: What each series is like.
    """

    path: str
    data: dict[str, Any]
    rows: int
    dialect: str
    notes: tuple[str, ...]
    remarks: tuple[str, ...]
    findings: tuple[str, ...]
    zone: str | None
    series: tuple[SeriesAudit, ...]

    def as_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        plain = asdict(self)
        for series in plain["series"]:
            for period in series["periods"] or ():
                period["seconds"] = period.pop("nanoseconds") / 1e9
        return plain


def audit(path: Path, stated: dict[str, Any]) -> FileAudit:
    """Look at a file of series.

    Args:
        path: The file.
        stated: Keys of ``data:`` that are known already.

    Raises:
        InputError: If the file cannot be read; the message says what to state.
    """
    if stated.get("timezone") is not None:
        check_zone(stated["timezone"])
    reading = {key: stated.get(key) for key in ("encoding", "separator", "decimal")}
    source = open_source(path, **reading)
    roles = find_roles(source, stated)
    policy = roles.data.get("duplicates", "error")
    panel = read_panel(path, **{**roles.data, "duplicates": "mean" if policy == "error" else policy})
    data = dict(roles.data)
    findings = []
    repeated = int(panel.repeats.sum())
    if policy == "error" and repeated > 0.3 * len(panel.times) and _is_half_clock(panel):
        raise InputError(
            f"the hours of {' '.join(panel.time_columns)!r} go from 1 to 12 and stand twice a day",
            where=path,
            remedy="write AM or PM behind them, or hours up to 23",
        )
    if repeated and policy == "error":
        data["duplicates"] = "mean"
    local = _zone_of_repeats(path, panel, roles.data) if repeated and policy == "error" else None
    if local is not None:
        findings.append(f"the times that stand twice are those of the hour that the clock of {local} shows twice")
        data.pop("duplicates")
        panel = read_panel(path, **{**roles.data, "timezone": local})
        repeated = 0
    chosen = set(np.linspace(0, len(panel.ids) - 1, min(MOST_PERIODS, len(panel.ids))).round().astype(int).tolist())
    series = tuple(audit_series(panel, i, periods=i in chosen) for i in range(len(panel.ids)))
    if "resample" not in data and _are_events(panel, series):
        findings.append(
            "times are irregular and stand several times: events rather than series; the suggested configuration sums "
            "them up by day"
        )
        data.update(resample="1d", how="sum")
        data.pop("duplicates", None)
    elif repeated > 0.3 * len(panel.times):
        findings.append(
            f"{repeated:,} rows have a time that stands already: if they are several series, a column must name them"
        )
    clock_findings, zone = find_clock(panel, zone_stated="timezone" in data or "/" in panel.style.zone)
    zone = local or zone
    findings += [*clock_findings, *find_leaks(panel)]
    longest = max(each.rows for each in series)
    if longest < SHORT:
        findings.append(f"the longest series has {count(longest, 'row')}: intervals rest on few errors, if any")
    if len(chosen) < len(panel.ids):
        findings.append(f"periods were looked for in {len(chosen)} of {len(panel.ids):,} series")
    return FileAudit(
        path=str(path),
        data=data,
        rows=panel.read,
        dialect=_dialect(source),
        notes=panel.notes,
        remarks=tuple(roles.remarks),
        findings=tuple(findings),
        zone=zone,
        series=series,
    )


def _zone_of_repeats(path: Path, panel: Panel, data: dict[str, Any]) -> str | None:
    """The zone in whose local clock no time of the file stands twice; None if there is none."""
    step = panel.steps[0]
    if panel.style.aware or "timezone" in data or step is None or step.nanoseconds > HOUR:
        return None
    for zone in ZONES:
        pieces = clock(zone, int(panel.times.min()), int(panel.times.max()))
        back = int((np.diff(pieces.offsets) < 0).sum())
        if not 0 < panel.repeats.max() <= back * HOUR // step.nanoseconds:
            continue
        try:
            read_panel(path, **{**data, "timezone": zone, "duplicates": "error"})
        except InputError:
            continue
        return zone
    return None


def _is_half_clock(panel: Panel) -> bool:
    """Whether times have hours from 1 to 12 only, and all of them."""
    own = panel.times[~panel.absent] if len(panel.absent) else panel.times
    hours = np.unique(panel.clock().local(own) % DAY // HOUR)
    return "%H" in panel.style.format and hours.tolist() == list(range(1, 13))


def _dialect(source: Source) -> str:
    dialect = source.dialect
    if dialect is None:
        return "Parquet"
    names = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
    return (
        f"CSV, {dialect.encoding}, {names.get(dialect.separator, dialect.separator)} between fields, decimal "
        f"{'comma' if dialect.decimal == ',' else 'point'}"
    )


def _are_events(panel: Panel, series: tuple[SeriesAudit, ...]) -> bool:
    """Whether rows are things that happened rather than values that were read."""
    irregular = np.median([each.regular for each in series if each.step_seconds is not None] or [1.0]) < 0.1
    return bool(irregular and panel.repeats.sum() > 0.01 * len(panel.times))


def sizes(found: FileAudit) -> tuple[int, int]:
    """A lookback and a horizon that suit the usual step and length of the series.

    Raises:
        InputError: If no series has two rows.
    """
    known = [each for each in found.series if each.step_seconds is not None]
    if not known:
        raise InputError(
            "no series has two times, so that there is nothing to learn from", where=found.path, remedy="more rows"
        )
    if "resample" in found.data:
        step = (length_of_time(found.data["resample"]) or 0) / 1e9
        lengths = [each.span_seconds / step for each in known]
    else:
        step = float(np.median([each.step_seconds or 0.0 for each in known]))
        lengths = [each.rows + each.missing_times for each in known]
    day = 86_400.0
    if step < day:
        horizon, lookback = min(48, max(1, round(day / step))), min(336, max(16, round(7 * day / step)))
    elif step < 6 * day:
        horizon, lookback = 14, 56
    elif step < 27 * day:
        horizon, lookback = 8, 104
    elif step < 80 * day:
        horizon, lookback = 12, 36
    else:
        horizon, lookback = 4, 12
    # Half of all rows are in series as long or longer: shorter ones are forecast by what is learned from these.
    ordered = np.sort(lengths)
    usual = float(ordered[np.searchsorted(np.cumsum(ordered), 0.5 * ordered.sum())])
    return max(1, min(lookback, math.floor(0.35 * usual))), max(1, min(horizon, math.floor(0.15 * usual)))
