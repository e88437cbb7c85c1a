"""An audit as a text for people, and as a configuration for a fit."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from forecasting.audit.run import FileAudit, sizes
from forecasting.series.clock import DAY

MOST_SERIES = 25
COLUMNS = ("series", "rows", "from", "to", "step", "regular", "gaps", "twice", "missing", "periods")


def as_text(found: FileAudit) -> str:
    """The audit as a table, and what is odd below it."""
    data = found.data
    time = data["time"] if isinstance(data["time"], str) else ", ".join(data["time"])
    ids = data.get("id")
    named = "one series" if ids is None else f"series named by {ids if isinstance(ids, str) else ', '.join(ids)}"
    if data.get("layout") == "wide":
        named = "one column a series"
    lines = [
        found.path,
        f"  {found.dialect}; {found.rows:,} rows, {len(found.series):,} series",
        f"  time: {time}; {named}" + (f"; target: {data['target']}" if "target" in data else ""),
    ]
    roles = [role for role in ("static", "past", "future") if data.get(role)]
    lines += [f"  {role}: {', '.join(data[role])}" for role in roles]
    lines += ["", *_table(found)]
    if len(found.series) > MOST_SERIES:
        lines.append(f"... and {len(found.series) - MOST_SERIES:,} more series, all of them with --json")
    odd = [*found.notes, *found.findings, *_grouped(found)]
    lines += ["", "odd:" if odd else "nothing odd was found"]
    lines += [f"  - {each}" for each in odd]
    if found.remarks:
        lines += ["", "columns:", *(f"  - {each}" for each in found.remarks)]
    return "\n".join(lines)


def _grouped(found: FileAudit) -> list[str]:
    """Findings on series; those that differ in figures only stand in one line, with the first of them."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for series in found.series:
        for finding in series.findings:
            groups.setdefault(re.sub(r"[-+\d.:,/]+", "#", finding), []).append((series.name, finding))
    lines = []
    for members in groups.values():
        name, finding = members[0]
        others = f" and {len(members) - 1:,} more series" if len(members) > 1 else ""
        lines.append(f"{name}{others}: {finding}" if len(found.series) > 1 else finding)
    return lines


def _table(found: FileAudit) -> list[str]:
    rows: list[tuple[str, ...]] = [COLUMNS]
    for each in found.series[:MOST_SERIES]:
        gaps = f"{each.gaps} ({each.missing_times} times, up to {each.longest_gap})" if each.gaps else "0"
        periods = ", ".join(period.text() for period in each.periods or ()) or ("-" if each.periods is not None else "")
        cells = [each.name, f"{each.rows:,}", each.first, each.last, each.step or "-", f"{each.regular:.1%}", gaps]
        rows.append((*cells, f"{each.duplicates:,}", f"{each.missing:.1%}", periods))
    widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def as_config(found: FileAudit, target: Path) -> str:
    """A configuration that a fit accepts as it is, with what it could say otherwise as comments.

    Args:
        found: The audit.
        target: Where it will stand, as the path of the data is relative to it.
    """
    lookback, horizon = sizes(found)
    data = {"path": _relative(Path(found.path), target), **found.data}
    if found.zone is not None and "timezone" not in data:
        data["timezone"] = found.zone
    lines = ["# Suggested by: farview forecast audit", *(f"# {each}" for each in found.remarks)]
    lines += [f"# {each}" for each in (*found.notes, *found.findings)]
    periods = _other_periods(found)
    settings = {"data": data, "lookback": lookback, "horizon": horizon}
    if periods:
        settings["periods"] = periods
    return "\n".join(lines) + "\n" + yaml.safe_dump(settings, sort_keys=False, allow_unicode=True, width=110)


def _relative(path: Path, target: Path) -> str:
    """The path of the data as seen from the configuration, where it lies below it; else in full."""
    path, folder = path.absolute(), target.absolute().parent
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)


def _other_periods(found: FileAudit) -> list[str]:
    """Periods that are none of the calendar, found in most of the series that were looked at."""
    looked = [each for each in found.series if each.periods is not None]
    counts: dict[str, int] = {}
    for each in looked:
        for period in each.periods or ():
            harmonic = any(abs(x / period.nanoseconds - round(x / period.nanoseconds)) < 0.05 for x in (DAY, 7 * DAY))
            if period.calendar is None and not harmonic and period.power > 0.1:
                text = f"{period.nanoseconds / 1e9:.0f}s"
                counts[text] = counts.get(text, 0) + 1
    return [text for text, count in counts.items() if 2 * count > len(looked)]
