"""The generated scene: georeference, radiometry, and that only both modalities together tell all classes apart."""

import numpy as np
import pytest
import rasterio
from rasterio.crs import CRS
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis

import datasets
from datasets.scene import write_scene

CLASSES = datasets.load_card("synthetic-scene").classes


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scene")
    write_scene(folder, classes=CLASSES, size=256, seed=0)
    return folder


@pytest.fixture(scope="module")
def pixels(scene):
    """Optical [N, 4], radar [N, 2] and class [N] of the labelled pixels away from class borders."""
    with rasterio.open(scene / "optical.tif") as raster:
        optical = raster.read().astype(float)
    with rasterio.open(scene / "sar.tif") as raster:
        sar = raster.read().repeat(2, axis=1).repeat(2, axis=2)
    with rasterio.open(scene / "labels.tif") as raster:
        labels = raster.read(1)
    blocks = labels.reshape(128, 2, 128, 2)
    pure = (blocks.min(axis=(1, 3)) == blocks.max(axis=(1, 3))).repeat(2, 0).repeat(2, 1) & (labels != 255)
    return optical[:, pure].T, sar[:, pure].T, labels[pure]


def test_the_three_files_lie_on_top_of_each_other(scene):
    grids = {}
    for name, bands, dtype, width in [
        ("optical", ("B02", "B03", "B04", "B08"), "uint16", 256),
        ("sar", ("VV", "VH"), "float32", 128),
        ("labels", ("class",), "uint8", 256),
    ]:
        with rasterio.open(scene / f"{name}.tif") as raster:
            assert raster.descriptions == bands
            assert set(raster.dtypes) == {dtype}
            assert raster.shape == (width, width)
            assert raster.crs == CRS.from_epsg(32633)
            grids[name] = raster.bounds, raster.res
    assert grids["optical"] == grids["labels"]
    assert grids["optical"][0] == grids["sar"][0] == (500_000, 5_797_440, 502_560, 5_800_000)
    assert (grids["optical"][1], grids["sar"][1]) == ((10, 10), (20, 20))


def test_labels_carry_names_colours_and_unlabelled_ground(scene):
    with rasterio.open(scene / "labels.tif") as raster:
        labels = raster.read(1)
        assert raster.nodata == 255
        assert raster.tags(1)["CLASS_4"] == "built-up"
        assert raster.colormap(1)[0] == (0x2F, 0x6F, 0xD0, 255)
    assert set(np.unique(labels)) == {0, 1, 2, 3, 4, 255}
    assert (labels == 255).mean() == pytest.approx(0.15, abs=0.001)
    same = (labels[:, 1:] == labels[:, :-1]).mean()
    assert same > 0.95  # regions are smooth; independent pixels would agree in a fifth


def test_class_means_are_those_of_the_tables(pixels):
    optical, sar, labels = pixels
    red, infrared = (optical[:, band] for band in (2, 3))
    ndvi = (infrared - red) / (infrared + red)
    by_class = [ndvi[labels == code].mean() for code in range(5)]
    assert by_class[0] < 0 < by_class[3] < 0.3 < by_class[1]
    assert by_class[1] == pytest.approx(by_class[2], abs=0.01)  # grassland and forest
    assert by_class[3] == pytest.approx(by_class[4], abs=0.01)  # bare soil and built-up
    intensity = 10 * np.log10([(10 ** (sar[labels == code, 0] / 10)).mean() for code in range(5)])
    np.testing.assert_allclose(intensity, [-18, -12, -6, -18, -6], atol=0.3)


def test_speckle_is_of_a_single_look(pixels):
    _, sar, labels = pixels
    for code in range(5):
        intensity = 10 ** (sar[labels == code, 0] / 10)
        assert (intensity.mean() / intensity.std()) ** 2 == pytest.approx(1, rel=0.15)


def test_only_both_modalities_together_tell_all_classes_apart(pixels):
    optical, sar, labels = pixels
    scores = {}
    for name, features in {"optical": optical, "sar": sar, "both": np.hstack([optical, sar])}.items():
        scores[name] = (
            QuadraticDiscriminantAnalysis().fit(features[::2], labels[::2]).score(features[1::2], labels[1::2])
        )
    assert scores["optical"] < 0.75
    assert scores["sar"] < 0.75
    assert 0.85 < scores["both"] < 0.95  # speckle leaves something to gain from the neighbours


def test_another_seed_gives_another_scene(scene, tmp_path):
    write_scene(tmp_path, classes=CLASSES, size=256, seed=1)
    assert (tmp_path / "labels.tif").read_bytes() != (scene / "labels.tif").read_bytes()
