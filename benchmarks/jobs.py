"""The commands as a user meets them: how long ``--help`` and the two demonstrations take, and what they find.

Run from the root of the project: ``.venv/bin/python benchmarks/jobs.py``. Needs a package index, or the wheels in the
cache, for the demonstration on real data.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import save

FARVIEW = [sys.executable, "-P", "-m", "common.cli"]


def timed(*arguments: str) -> float:
    """Wall-clock seconds of one command, which must succeed."""
    started = time.perf_counter()
    subprocess.run([*FARVIEW, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def scores(folder: Path) -> list[dict[str, object]]:
    """The score tables of a demonstration."""
    rows = []
    for job in ("forecast", "segment"):
        found = json.loads((folder / job / "comparison.json").read_text(encoding="utf-8"))
        metric = found["metrics"][0]
        for row in found["rows"]:
            values = [seed[metric["name"]] for seed in row["scores"]]
            rows.append(
                {
                    "job": found["title"],
                    "model": row["model"],
                    "metric": metric["label"],
                    "score": f"{statistics.mean(values):.4g}",
                    "seeds": len(values),
                    "fit (s)": f"{row['fit_seconds']:.1f}",
                    "parameters": f"{row['parameters']:,}",
                }
            )
    return rows


def main() -> None:
    """Measure, and write both tables."""
    helps = [timed("--help") for _ in range(11)]
    table = [
        {"command": "farview --help", "seconds": f"{statistics.median(helps):.2f}", "runs": 11,
         "spread": f"{min(helps):.2f} to {max(helps):.2f}", "goal": "under 0.4"},
    ]  # fmt: skip
    with tempfile.TemporaryDirectory() as scratch:
        for name, options in (("farview demo", ()), ("farview demo --offline", ("--offline",))):
            folder = Path(scratch) / name.replace(" ", "")
            seconds = timed("demo", "-o", str(folder), *options)
            table.append({"command": name, "seconds": f"{seconds:.0f}", "runs": 1, "spread": "", "goal": "under 300"})
            if not options:
                save(
                    "demo_scores",
                    scores(folder),
                    note="Scores of the demonstration on held-out data, as in its report; one seed, so that nothing "
                    "is known of the spread over seeds. The paired tests are in the report.",
                    seeds=[0],
                )
    save("jobs", table, note="Wall-clock time of whole commands, after one install.", seeds=[0])


if __name__ == "__main__":
    main()
