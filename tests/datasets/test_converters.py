"""The converters, on made-up files whose answer is known."""

import numpy as np
import pyogrio.raw
import pytest
import rasterio
import shapely
from rasterio.transform import from_origin

import datasets
from common.errors import DatasetError
from datasets import sentinel2_osm, zurich

SENTINEL = datasets.load_card("sentinel2-osm").classes
ZURICH = datasets.load_card("zurich-summer").classes


def write(path, pixels, resolution):
    """A GeoTIFF under whatever name; GDAL goes by content."""
    count, height, width = pixels.shape
    grid = {"crs": "EPSG:32633", "transform": from_origin(1000, 2000, resolution, resolution)}
    with rasterio.open(
        path, "w", driver="GTiff", count=count, height=height, width=width, dtype=pixels.dtype, **grid
    ) as raster:
        raster.write(pixels)


def polygons(path, shapes):
    """Polygons given as (fclass, left, bottom, right, top) in metres from the corner (1000, 1900)."""
    geometry = shapely.to_wkb(
        [shapely.box(1000 + left, 1900 + bottom, 1000 + right, 1900 + top) for _, left, bottom, right, top in shapes]
    )
    kinds = np.array([kind for kind, *_ in shapes], dtype=object)
    pyogrio.raw.write(
        path, np.asarray(geometry), [kinds], ["fclass"], geometry_type="Polygon", crs="EPSG:32633", driver="GPKG"
    )


@pytest.fixture
def raw(tmp_path):
    """A scene of 10 x 10 pixels of 10 m; band N holds its number everywhere."""
    folder = tmp_path / "raw"
    folder.mkdir()
    for names, size, resolution in ((sentinel2_osm.BANDS_10M, 10, 10), (sentinel2_osm.BANDS_20M, 5, 20)):
        for name in names:
            value = int(name[1:].replace("8A", "80"))
            write(folder / f"{name}.jp2", np.full((1, size, size), value, np.uint16), resolution)
    return folder


def test_sentinel2_bands_keep_their_grid_and_names(raw, tmp_path):
    polygons(raw / "landuse.gpkg", [("water", 0, 0, 10, 10)])
    sentinel2_osm.convert(raw, tmp_path, classes=SENTINEL)
    with rasterio.open(tmp_path / "optical_10m.tif") as fine:
        assert fine.descriptions == ("B02", "B03", "B04", "B08")
        assert fine.read()[:, 0, 0].tolist() == [2, 3, 4, 8]
        assert (fine.res, fine.bounds, fine.crs.to_epsg()) == ((10, 10), (1000, 1900, 1100, 2000), 32633)
    with rasterio.open(tmp_path / "optical_20m.tif") as coarse:
        assert coarse.descriptions == ("B05", "B06", "B07", "B8A", "B11", "B12")
        assert coarse.read()[:, 0, 0].tolist() == [5, 6, 7, 80, 11, 12]
        assert (coarse.res, coarse.bounds) == ((20, 20), (1000, 1900, 1100, 2000))


@pytest.mark.parametrize("order", [1, -1])
def test_sentinel2_labels_by_hand(raw, tmp_path, order):
    shapes = [
        ("meadow", 0, 0, 60, 100),
        ("water", 20, 20, 40, 40),
        ("grass", 80, 0, 100, 16),
        ("farm", 50, 80, 80, 100),
    ]
    polygons(raw / "landuse.gpkg", shapes[::order])
    sentinel2_osm.convert(raw, tmp_path, classes=SENTINEL)
    expected = np.full((10, 10), 255)
    expected[:, :6] = 2  # meadow and grass are grassland
    expected[8:, 8:] = 2  # 16 m high: the centre of the second row of pixels is inside
    expected[:2, 5:8] = 0  # the farm is smaller than the meadow it overlaps, so it wins
    expected[6:8, 2:4] = 5  # the pond lies on top of the meadow, in whichever order they are stored
    with rasterio.open(tmp_path / "labels.tif") as raster:
        np.testing.assert_array_equal(raster.read(1), expected)
        assert raster.nodata == 255
        assert raster.tags(1)["CLASS_2"] == "grassland"
        assert raster.colormap(1)[5][:3] == SENTINEL[5].rgb


def test_sentinel2_refuses_a_kind_it_does_not_know(raw, tmp_path):
    polygons(raw / "landuse.gpkg", [("volcano", 0, 0, 10, 10)])
    with pytest.raises(DatasetError, match="unknown kind: volcano"):
        sentinel2_osm.convert(raw, tmp_path, classes=SENTINEL)


def colour_coded(folder, rows):
    write(folder / "zh17_gt.tif", np.array(rows, np.uint8).transpose(2, 0, 1), 0.6)  # [H, W, 3] -> [3, H, W]
    write(folder / "zh17.tif", np.ones((4, len(rows), len(rows[0])), np.uint16), 0.6)


def test_zurich_colours_become_codes(tmp_path):
    colour_coded(tmp_path, [[(0, 0, 0), (100, 100, 100), (0, 125, 0)], [(255, 255, 255), (0, 255, 0), (150, 150, 255)]])
    (tmp_path / "out").mkdir()
    zurich.convert(tmp_path, tmp_path / "out", classes=ZURICH)
    with rasterio.open(tmp_path / "out/labels.tif") as raster:
        assert raster.read(1).tolist() == [[0, 1, 2], [255, 3, 6]]
    assert (tmp_path / "out/image.tif").read_bytes() == (tmp_path / "zh17.tif").read_bytes()


def test_zurich_refuses_a_colour_it_does_not_know(tmp_path):
    colour_coded(tmp_path, [[(1, 2, 3), (0, 0, 0)]])
    (tmp_path / "out").mkdir()
    with pytest.raises(DatasetError, match=r"colours of no class: \[\[1, 2, 3\]\]"):
        zurich.convert(tmp_path, tmp_path / "out", classes=ZURICH)
