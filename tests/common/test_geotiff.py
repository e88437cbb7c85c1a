import subprocess
import sys

import numpy as np
import pytest
import rasterio
from rasterio.crs import CRS
from rasterio.transform import from_origin

from common.errors import FarviewError
from common.geotiff import new_geotiff

pytest.importorskip("resource")

WHERE = {"crs": CRS.from_epsg(32633), "transform": from_origin(500_000, 5_800_000, 10, 10)}
# Writes in a process of its own, in which no file may grow beyond a limit: that fails writes as a full disk does.
LIMITED = """
import resource, sys
from pathlib import Path
import numpy as np
from common.errors import FarviewError
from common.geotiff import new_geotiff
path, side, limit = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
values = np.random.default_rng(0).random((2, side, side), dtype=np.float32)
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    with new_geotiff(path, crs=None, transform=None, height=side, width=side, count=2, dtype="float32") as raster:
        raster.write(values)
except FarviewError as error:
    print(f"{error.exit_code} {error}")
"""


def noise(rows, columns):
    return np.random.default_rng(0).random((2, rows, columns), dtype=np.float32)


def test_rows_written_piece_by_piece_are_there(tmp_path):
    values = noise(600, 300)
    values[:, :5] = np.nan
    with new_geotiff(
        tmp_path / "a.tif", **WHERE, height=600, width=300, count=2, dtype="float32", predictor=3
    ) as raster:
        for first in range(0, 600, 170):
            raster.write(values[:, first : first + 170], first)
    with rasterio.open(tmp_path / "a.tif") as made:
        np.testing.assert_array_equal(made.read(), values)
        assert (made.profile["tiled"], made.block_shapes[0], made.compression.name) == (True, (256, 256), "deflate")


@pytest.mark.parametrize("share", [0.001, 0.5, 0.999], ids=["header", "half", "end"])
@pytest.mark.parametrize("side", [100, 1500], ids=["written at the end", "written on the way"])
def test_a_file_that_did_not_fit_is_never_taken_for_whole(tmp_path, share, side):
    """GDAL itself says nothing of a failure at the end."""

    def write(name, limit):
        arguments = [sys.executable, "-c", LIMITED, str(tmp_path / name), str(side), str(limit)]
        return subprocess.run(arguments, capture_output=True, text=True, check=True).stdout

    assert write("whole.tif", 1 << 30) == ""
    said = write("cut.tif", int((tmp_path / "whole.tif").stat().st_size * share))
    assert said.startswith(("1 cut.tif: could not be written completely", "1 cut.tif: cannot be created"))
    assert "try: " in said


def test_a_byte_that_changed_is_noticed(tmp_path):
    path = tmp_path / "a.tif"
    with new_geotiff(path, **WHERE, height=256, width=256, count=2, dtype="float32", compress="none") as raster:
        raster.write(noise(256, 256))
    damaged = bytearray(path.read_bytes())
    damaged[-1000] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(FarviewError, match="could not be written completely"):
        raster.check()
