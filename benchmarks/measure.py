"""What every benchmark shares: the machine's name, and results as ``results/NAME.json``."""

from __future__ import annotations

import json
import os
import platform
import shlex
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def save(name: str, table: list[dict[str, Any]], *, note: str, seeds: list[int]) -> None:
    """Write the figures of one table with all it takes to read and repeat them.

    Args:
        name: Of the table, and of the script that makes it.
        table: One dictionary a row, heading to text or number.
        note: What was measured and how, in sentences.
        seeds: Seeds used; none where nothing is drawn.
    """
    result = {
        "name": name,
        "note": note,
        "table": table,
        "command": shlex.join(["python", str(Path(sys.argv[0])), *sys.argv[1:]]),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": f"{_processor()}, {os.cpu_count()} cores, {platform.system()}",
        "versions": f"torch {version('torch')}, Python {platform.python_version()}",
        "seeds": seeds,
    }
    path = HERE / "results" / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
