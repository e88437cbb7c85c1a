"""The commands ``farview segment ...``, also there as ``rio segment ...``."""

from __future__ import annotations

from pathlib import Path

import click

from common.cli import Group
from common.errors import UsageError
from common.progress import configure_logging, log

A_FILE = click.Path(path_type=Path)
SETTING = click.option(
    "--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Change a setting, as in training.steps=500."
)


@click.group(cls=Group)
def segment() -> None:
    """Class maps from co-registered rasters."""
    if not log.handlers:  # under rio, which sets up no log of ours
        configure_logging("text")


@segment.command()
@click.argument("config", type=A_FILE)
@click.option("-o", "--output", "run", type=A_FILE, help="Run folder to write; runs/NAME by default, after CONFIG.")
@SETTING
def fit(config: Path, run: Path | None, overrides: tuple[str, ...]) -> None:
    """Train the model that CONFIG describes and write a run folder.

    \b
    Example:
      farview segment fit configs/segment/synthetic.yaml -o runs/synthetic --set training.steps=200
    """
    from segmentation.config import load_segment_config
    from segmentation.fit import fit as run_fit

    run = run or Path("runs") / config.stem
    run_fit(load_segment_config(config, overrides), run)
    click.echo(run)


@segment.command()
@click.argument("run", type=A_FILE)
@click.option(
    "--modality", "modalities", multiple=True, required=True, metavar="NAME=FILE", help="Raster of a modality."
)
@click.option("-o", "--output", "class_map", type=A_FILE, required=True, help="Class map to write, a GeoTIFF.")
@click.option("--probabilities", type=A_FILE, help="Also write the probability of each class.")
@click.option("--confidence", type=A_FILE, help="Also write the probability of the chosen class.")
@click.option("--tile", type=click.IntRange(min=16), default=256, show_default=True, help="Side of a tile, in pixels.")
@click.option("--overlap", type=click.IntRange(min=0), default=32, show_default=True, help="Pixels that tiles share.")
@click.option("--batch-size", type=click.IntRange(min=1), default=4, show_default=True, help="Tiles a forward pass.")
def predict(
    run: Path,
    modalities: tuple[str, ...],
    class_map: Path,
    probabilities: Path | None,
    confidence: Path | None,
    tile: int,
    overlap: int,
    batch_size: int,
) -> None:
    """Predict a scene of any size, tile by tile, with a RUN that fit wrote.

    The map lies on the grid of the primary modality; files on other grids are warped as they are read.

    \b
    Example:
      farview segment predict runs/synthetic --modality optical=optical.tif --modality sar=sar.tif -o classes.tif
    """
    from segmentation.predict import predict as run_predict

    run_predict(
        run,
        _files(modalities),
        class_map,
        probabilities=probabilities,
        confidence=confidence,
        tile=tile,
        overlap=overlap,
        batch_size=batch_size,
    )
    click.echo(class_map)


@segment.command()
@click.argument("config", type=A_FILE)
@click.option("-o", "--output", "folder", type=A_FILE, required=True, help="Folder to write.")
@SETTING
def compare(config: Path, folder: Path, overrides: tuple[str, ...]) -> None:
    """Train the model of CONFIG and its baselines alike, and report which is better where nobody looked.

    \b
    Example:
      farview segment compare configs/segment/synthetic.yaml -o comparison --set compare.seeds=[0,1,2]
    """
    from segmentation.compare import compare as run_compare
    from segmentation.config import load_segment_config

    click.echo(run_compare(load_segment_config(config, overrides), folder))
    log.info("wrote %s", folder / "report.html")


def _files(modalities: tuple[str, ...]) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for each in modalities:
        name, separator, file = each.partition("=")
        if not (name and separator and file):
            raise UsageError("a modality is written NAME=FILE", where=f"--modality {each}")
        if name in files:
            raise UsageError(f"the modality {name!r} is given twice", where=f"--modality {each}")
        files[name] = Path(file)
    return files
