"""Reading and windowing of a large file: time against pandas alone, memory, and batches a second.

Run from the root of the project: ``.venv/bin/python benchmarks/series_in.py [ROWS] [SERIES]`` (about five minutes; ten
million rows and a thousand series by default). Each measurement of time and memory is a process of its own.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from measure import save

LOOKBACK, HORIZON, BATCH = 168, 24, 256
REPEATS = 5

PANDAS = """
import pandas, pyarrow, pyarrow.csv
before()
frame = pandas.read_csv(path, engine="pyarrow")
"""
FARVIEW = """
import numpy, pyarrow, pyarrow.csv, torch
from forecasting.series.read import read_panel
from forecasting.windows import Rows, Windows, origins_within, split_rows, training_scale
before()
panel = read_panel(path)
split = split_rows(panel, validation=0.15, test=0.15)
rows = Rows(panel, **dict(zip(("centre", "scale"), training_scale(panel, split.validation))))
found = origins_within(panel, panel.starts[:-1], split.validation, lookback=168, horizon=24)
windows = Windows(rows, *found, lookback=168, horizon=24, batch_size=256)
assert len(panel.values) == count
"""
FRAME = """
import json, pathlib, resource, sys, time
path, count = pathlib.Path(sys.argv[1]), int(sys.argv[2])
start = {{}}
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
def before():
    start.update(memory=peak(), time=time.perf_counter())
{body}
print(json.dumps({{"seconds": time.perf_counter() - start["time"], "bytes": peak() - start["memory"]}}))
"""


def write_file(path: Path, rows: int, series: int) -> None:
    """A long CSV: hourly stamps, values with three decimals."""
    import pyarrow as pa
    import pyarrow.csv as csv

    generator = np.random.default_rng(0)
    each = rows // series
    stamps = np.datetime64("2020-01-01T00:00:00") + np.arange(each) * np.timedelta64(3600, "s")
    texts = pa.array(np.char.replace(stamps.astype(str), "T", " "))
    with path.open("wb") as file:
        for number in range(series):
            values = np.round(100 + 10 * generator.standard_normal(each), 3)
            names = pa.array([f"S{number:05d}"]).take(pa.array(np.zeros(each, dtype=np.int64)))
            table = pa.table({"unique_id": names, "ds": texts, "y": values})
            csv.write_csv(table, file, csv.WriteOptions(include_header=number == 0, quoting_style="none"))


def measured(body: str, path: Path, rows: int) -> dict[str, float]:
    """Median seconds and bytes of several processes, and how far the seconds go apart."""
    found = []
    for _ in range(REPEATS):
        code = FRAME.format(body=body)
        done = subprocess.run([sys.executable, "-c", code, path, str(rows)], capture_output=True, text=True, check=True)
        found.append(json.loads(done.stdout))
    seconds = sorted(each["seconds"] for each in found)
    return {
        "seconds": statistics.median(seconds),
        "least": seconds[0],
        "most": seconds[-1],
        "bytes": statistics.median(each["bytes"] for each in found),
    }


def loaders(rows_total: int, series: int) -> list[dict[str, str]]:
    """Batches a second of our windows, and of a DataLoader that slices item by item into the same batches."""
    import torch
    from torch.utils.data import DataLoader, Dataset

    torch.set_num_threads(1)

    from forecasting.series.clock import clock
    from forecasting.series.panel import Panel, find_steps
    from forecasting.series.style import TimeStyle
    from forecasting.windows import Rows, Windows, origins_within

    each = rows_total // series
    start = int(np.datetime64("2020-01-01", "ns").astype(np.int64))
    times = np.tile(start + np.arange(each) * 3600 * 10**9, series)
    starts = np.arange(series + 1) * each
    values = np.random.default_rng(0).standard_normal(len(times))
    panel = Panel(
        ids=tuple(map(str, range(series))), id_columns={}, starts=starts, times=times, values=values,
        steps=find_steps(times, starts, clock("UTC", 0, 0)), time_columns=("ds",), style=TimeStyle("%Y-%m-%d"),
    )  # fmt: skip
    rows = Rows(panel, centre=np.zeros(series), scale=np.ones(series))
    low, count = origins_within(panel, starts[:-1], starts[1:], lookback=LOOKBACK, horizon=HORIZON)
    windows = Windows(rows, low, count, lookback=LOOKBACK, horizon=HORIZON, batch_size=BATCH)
    phases = rows.phases(rows.times[: 50 * each])  # made beforehand, which our windows do as they go

    class Items(Dataset):
        """One window an item, with all that a batch of ours holds."""

        def __len__(self) -> int:
            return 49 * each

        def __getitem__(self, number: int) -> tuple[torch.Tensor, ...]:
            origin = LOOKBACK + number
            past, ahead = slice(origin - LOOKBACK, origin), slice(origin, origin + HORIZON)
            last = rows.times[origin - 1]
            return (
                rows.values[past], rows.observed[past], ((rows.times[past] - last) / 3.6e12).float(), phases[past],
                ((rows.times[ahead] - last) / 3.6e12).float(), phases[ahead], rows.values[ahead], rows.observed[ahead],
            )  # fmt: skip

    def per_second(loader: object, batches: int) -> float:
        best = 0.0
        for _ in range(REPEATS):
            iterator = iter(loader)  # pyright: ignore[reportArgumentType]
            next(iterator)
            started = time.perf_counter()
            for _ in range(batches):
                next(iterator)
            best = max(best, batches / (time.perf_counter() - started))
        return best

    ours = per_second(windows.shuffled(0, seed=0), 200)
    theirs = per_second(DataLoader(Items(), batch_size=BATCH, shuffle=True), 20)
    return [
        {
            "rows": f"{rows_total:,}",
            "loader": name,
            "batches a second": f"{value:,.1f}",
            "times": f"{value / theirs:.0f}",
        }
        for name, value in (("farview", ours), ("DataLoader over slices", theirs))
    ]


def main() -> None:
    """Measure, and write the results."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    series = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.csv"
        write_file(path, rows, series)
        size = path.stat().st_size
        pandas, farview = (measured(body, path, rows) for body in (PANDAS, FARVIEW))
    numeric = 16 * rows  # a time and a value a row, eight bytes each
    table = [
        {
            "what": name,
            "seconds, median (least to most)": f"{each['seconds']:.2f} ({each['least']:.2f} to {each['most']:.2f})",
            "times pandas, medians": f"{each['seconds'] / pandas['seconds']:.2f}",
            "times pandas, least": f"{each['least'] / pandas['least']:.2f}",
            "peak (MB)": f"{each['bytes'] / 1e6:,.0f}",
            "times the numeric data": f"{each['bytes'] / numeric:.1f}",
        }
        for name, each in (
            ("pandas.read_csv(engine='pyarrow')", pandas),
            ("farview: read, split, scale, index", farview),
        )
    ]
    save(
        "series_in",
        table,
        note=f"A long CSV of {rows:,} rows and {series:,} series ({size / 1e6:,.0f} MB), read and made ready for "
        f"training, {REPEATS} processes each. Memory is the peak beyond what imports take; the numeric data are "
        f"{numeric / 1e6:,.0f} MB, a time and a value a row. Goals: at most 2 times the time of pandas, at most 3 "
        "times the numeric data. Pandas has two speeds here, as memory of its size is at hand or must be cleared.",
        seeds=[0],
    )
    save(
        "series_in_batches",
        [row for factor in (1, 10) for row in loaders(factor * rows, series)],
        note=f"Batches a second on one thread: {BATCH} windows of lookback {LOOKBACK} and horizon {HORIZON} in random "
        f"order, with values, masks, elapsed times and calendar phases. Goal: 50 times the loader "
        "that slices.",
        seeds=[0],
    )


if __name__ == "__main__":
    main()
