"""What the demonstration runs, and how."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from importlib import resources
from pathlib import Path

from common.errors import FarviewError
from common.files import atomic_folder
from common.progress import log
from common.report.comparison import FILE, Comparison
from common.report.html import write_report

FOLDER_VARIABLES = ("FARVIEW_DATA", "FARVIEW_CACHE")
STDERR = 2  # the descriptor, which a command inherits whatever sys.stderr has become
REPORT = "report.html"
OUTPUTS = {
    "forecasts.csv": "forecasts with intervals for the times after the last value",
    "classes.tif": "the class map of the whole scene, on its grid",
    REPORT: "both comparisons: was attention worth its cost?",
}

# Run in the folder of the demonstration, so that the paths in them are those that a user sees there.
REAL = (
    "datasets get hourly-electricity -o data/hourly-electricity",
    "datasets get sentinel2-osm -o data/sentinel2-osm",
    "forecast compare configs/forecast/electricity.yaml -o forecast",
    "forecast predict forecast/runs/informer data/hourly-electricity/hourly_electricity.csv -o forecasts.csv",
    "segment compare configs/segment/sentinel2.yaml -o segment",
    "segment predict segment/runs/swin-fusion --modality optical_10m=data/sentinel2-osm/optical_10m.tif"
    " --modality optical_20m=data/sentinel2-osm/optical_20m.tif -o classes.tif",
)
GENERATED = (
    "datasets get sine -o data/sine",
    "datasets get synthetic-scene -o data/synthetic-scene",
    "forecast compare configs/forecast/sine.yaml -o forecast",
    "forecast predict forecast/runs/informer data/sine/sine.csv -o forecasts.csv",
    "segment compare configs/segment/synthetic.yaml -o segment",
    "segment predict segment/runs/swin-fusion --modality optical=data/synthetic-scene/optical.tif"
    " --modality sar=data/synthetic-scene/sar.tif -o classes.tif",
)


def run(folder: Path, *, offline: bool) -> dict[Path, str]:
    """Run the commands of the demonstration in ``folder``.

    Args:
        folder: Folder to write; one of an earlier demonstration is replaced.
        offline: Use generated data.

    Returns:
        What was made, path to description.

    Raises:
        UsageError: If ``folder`` holds something else.
        FarviewError: If a command fails.
    """
    started = time.perf_counter()
    with atomic_folder(folder, _is_demo) as target:
        _copy_configurations(target)
        for command in GENERATED if offline else REAL:
            log.info("$ farview %s", command)
            _run(shlex.split(command), target)
        comparisons = [Comparison.read(target / job / FILE) for job in ("forecast", "segment")]
        write_report(comparisons, target / REPORT, title="farview demo")
    log.info("done in %.0f s; made in %s:", time.perf_counter() - started, folder)
    return {folder / name: what for name, what in OUTPUTS.items()}


def _is_demo(folder: Path) -> bool:
    return all((folder / name).exists() for name in OUTPUTS)


def _copy_configurations(target: Path) -> None:
    with resources.as_file(resources.files("common.demo") / "configs") as configurations:
        shutil.copytree(configurations, target / "configs")


def _run(arguments: list[str], folder: Path) -> None:
    """Run one command, what it says going to standard error."""
    # The command runs in another folder than the user's, so relative paths in its environment are made absolute.
    paths = {name: str(Path(os.environ[name]).resolve()) for name in FOLDER_VARIABLES if os.environ.get(name)}
    # -P keeps modules that happen to lie in the folder from being imported.
    command = [sys.executable, "-P", "-m", "common.cli", *arguments]
    done = subprocess.run(command, cwd=folder, env={**os.environ, **paths}, stdout=STDERR, check=False)
    if done.returncode:
        raise FarviewError(
            f"the demo stopped: `farview {shlex.join(arguments)}` failed (exit code {done.returncode})",
            remedy="what its message above says",
        )
