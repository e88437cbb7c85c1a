"""Where and how a figure was made."""

from __future__ import annotations

import os
import platform
import shlex
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path


def provenance(seeds: Iterable[int]) -> dict[str, str]:
    """Command, date, machine, seeds and versions, label to value, for :class:`Comparison`."""
    return {
        "Command": shlex.join(["farview", *sys.argv[1:]]),
        "Date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "Machine": f"{_processor()}, {os.cpu_count()} cores",
        "Seeds": ", ".join(map(str, seeds)),
        "Versions": ", ".join(f"{name} {version(name)}" for name in ("farview", "torch", "timm", "scikit-learn"))
        + f", Python {platform.python_version()}",
    }


def _processor() -> str:
    """Name of the processor, as far as the system tells it."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
