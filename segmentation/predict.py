"""Predict one scene from its files."""

from __future__ import annotations

import time
from pathlib import Path

from common.errors import UsageError
from common.files import check_output
from common.progress import log, progress
from segmentation.inference import predict_rows
from segmentation.outputs import map_writer
from segmentation.predictor import load_predictor
from segmentation.scene import Scene
from segmentation.tiles import TilePlan


def predict(
    run: Path,
    files: dict[str, Path],
    class_map: Path,
    *,
    probabilities: Path | None,
    confidence: Path | None,
    tile: int,
    overlap: int,
    batch_size: int,
) -> None:
    """Write a class map, and more if asked for, on the grid of the primary modality.

    Args:
        run: The run folder.
        files: File of each modality.
        class_map: The output.
        probabilities: Where to write the probability of each class.
        confidence: Where to write the largest probability.
        tile: Side of a tile in pixels.
        overlap: Pixels shared by neighbouring tiles.
        batch_size: Tiles a forward pass.

    Raises:
        UsageError: If the run or an input cannot be used.
    """
    predictor = load_predictor(run)
    asked = [path for path in (class_map, probabilities, confidence) if path is not None]
    _check_outputs(asked, run, files)
    scene = Scene(files, predictor.modalities, predictor.reference)
    absent = [modality.name for modality in predictor.modalities if modality.name not in files]
    if absent and not getattr(predictor.model, "tolerates_absence", False):
        raise UsageError(
            f"{', '.join(absent)} is missing, and a model of kind {predictor.options['kind']} cannot do without",
            remedy=" ".join(f"--modality {name}=FILE" for name in absent),
        )
    with scene:
        plan = TilePlan(scene.grid.box, tile, overlap)
        outputs = {"class_map": class_map, "probabilities": probabilities, "confidence": confidence}
        started = time.perf_counter()
        with (
            map_writer(scene.grid, predictor.classes, **outputs) as writer,
            progress("predict", len(plan.rows)) as advance,
        ):
            for rows in predict_rows(predictor, scene, plan, batch_size=batch_size):
                writer.write(rows)
                advance()
        seconds = time.perf_counter() - started
        height, width = scene.grid.height, scene.grid.width
    if absent:
        log.info("predicted without %s", ", ".join(absent))
    log.info(
        "%s: %d x %d pixels in %.1f s (%.2f Mpx/s)", class_map, height, width, seconds, height * width / 1e6 / seconds
    )


def _check_outputs(outputs: list[Path], run: Path, files: dict[str, Path]) -> None:
    """Refuse names that are no GeoTIFF's, to write over an input, or two outputs into one file."""
    for path in outputs:
        check_output(path, {"the run": run, **{f"the input {name}": file for name, file in files.items()}})
        if path.suffix.lower() not in (".tif", ".tiff"):
            raise UsageError("a GeoTIFF is to be written", where=path, remedy="a name ending in .tif")
    if len({path.resolve() for path in outputs}) < len(outputs):
        raise UsageError("two outputs have one name", where=outputs[0], remedy="choose another file name")
