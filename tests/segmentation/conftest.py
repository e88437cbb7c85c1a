"""A tiny scene of two modalities on two grids, and runs fitted on it once."""

from pathlib import Path

import numpy as np
import pytest
import rasterio
import yaml
from click.testing import CliRunner
from rasterio.transform import from_origin

from segmentation.cli import segment

CLASSES = {3: "water", 7: "field", 9: "wood"}
COLOURS = {3: (0, 0, 255, 255), 7: (255, 255, 0, 255), 9: (0, 128, 0, 255)}


@pytest.fixture(scope="session")
def write_raster():
    """Writes bands ``[B, H, W]`` as a GeoTIFF."""

    def write(path, bands, *, transform=None, crs="EPSG:32633", names=None, **options):
        bands = np.asarray(bands)
        count, height, width = bands.shape
        profile = {"count": count, "height": height, "width": width, "dtype": bands.dtype.name, "crs": crs, **options}
        transform = transform or from_origin(500_000, 5_800_000, 10, 10)
        with rasterio.open(path, "w", driver="GTiff", transform=transform, **profile) as raster:
            raster.write(bands)
            for index, name in enumerate(names or [], start=1):
                raster.set_band_description(index, name)
        return path

    return write


@pytest.fixture(scope="session")
def scene(tmp_path_factory, write_raster):
    """Folder of ``optical.tif`` (96 x 120 pixels), ``sar.tif`` (half the resolution) and ``labels.tif``.

    Optical tells water from land, SAR tells wood from field.
    """
    folder = tmp_path_factory.mktemp("scene")
    draw = np.random.default_rng(0)
    rows, columns = np.mgrid[:96, :120] // 12
    truth = (rows * 5 + columns * 3) % 7 % 3  # [96, 120] in squares of 12 pixels
    optical = np.array([[200, 900, 900], [100, 1500, 1500]])[:, truth] + draw.normal(0, 40, (2, 96, 120))
    sar = np.array([[-15.0, -15.0, -6.0]])[:, truth[::2, ::2]] + draw.normal(0, 0.5, (1, 48, 60))
    write_raster(folder / "optical.tif", optical.astype(np.uint16), names=["green", "nir"])
    coarse = from_origin(500_000, 5_800_000, 20, 20)
    write_raster(folder / "sar.tif", sar.astype(np.float32), transform=coarse, names=["VV"])
    labels = np.array(list(CLASSES), dtype=np.uint8)[truth]
    labels[40:44] = 255
    write_raster(folder / "labels.tif", labels[None], nodata=255)
    with rasterio.open(folder / "labels.tif", "r+") as raster:
        raster.write_colormap(1, COLOURS)
        raster.update_tags(1, **{f"CLASS_{code}": name for code, name in CLASSES.items()})
    return folder


TINY_SWIN = {"embed_dim": 8, "depths": [1, 1], "heads": [2, 2], "window": 4}


@pytest.fixture(scope="session")
def config(scene):
    """The configuration file beside the scene."""
    tree = {
        "data": {
            "scenes": [
                {"name": "tiny", "modalities": {"optical": "optical.tif", "sar": "sar.tif"}, "labels": "labels.tif"}
            ]
        },
        "split": {"train": 0.5, "validation": 0.25, "test": 0.25, "guard": 2},
        "tile": 32,
        "model": {"kind": "swin-fusion", "patch": 4, "width": 16, "primary": TINY_SWIN, "secondary": TINY_SWIN},
        "training": {"steps": 40, "batch_size": 4, "learning_rate": 0.01, "warmup": 0.05, "validate_every": 20},
        "compare": {
            "baselines": {
                "unet": {"kind": "unet", "encoder": "mobilenet_v2", "decoder_channels": [16, 8, 8]},
                "pixel-boosting": {"kind": "pixel-boosting", "iterations": 5, "leaves": 7, "pixels": 2000},
            },
            "block": 12,
        },
    }
    path = scene / "tiny.yaml"
    path.write_text(yaml.safe_dump(tree, sort_keys=False))
    return path


@pytest.fixture(scope="session")
def farview_segment():
    """Runs ``farview segment ...`` in this process."""

    def run(*arguments):
        return CliRunner().invoke(segment, [str(argument) for argument in arguments])

    return run


@pytest.fixture(scope="session")
def run_folder(config, farview_segment, tmp_path_factory):
    """A run of the attention model."""
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    result = farview_segment("fit", config, "-o", folder)
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture(scope="session")
def real_data():
    """The folder of real rasters."""
    import os

    folder = os.environ.get("FARVIEW_DATA")
    if not folder:
        pytest.skip("FARVIEW_DATA is not set")
    return Path(folder) / "rasters"
