import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import rasterio
import yaml
from rasterio.transform import from_origin

from common.bundle import read_bundle
from common.config import load_config
from common.report.comparison import Comparison
from segmentation.cli import segment
from segmentation.config import SegmentConfig, load_segment_config

CONFIGS = Path(__file__).parents[2] / "configs" / "segment"


def files(folder, *names):
    return [part for name in names for part in ("--modality", f"{name}={folder / name}.tif")]


@pytest.fixture
def predicted(run_folder, scene, farview_segment, tmp_path):
    """Outputs of a prediction in tiles smaller than the scene."""
    paths = {name: tmp_path / f"{name}.tif" for name in ("classes", "probabilities", "confidence")}
    result = farview_segment(
        "predict", run_folder, *files(scene, "optical", "sar"), "-o", paths["classes"], "--tile", 32, "--overlap", 8,
        "--probabilities", paths["probabilities"], "--confidence", paths["confidence"],
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in paths.values())
    return paths


def test_the_map_lies_on_the_grid_of_the_primary_modality(predicted, scene):
    with rasterio.open(scene / "optical.tif") as source, rasterio.open(predicted["classes"]) as made:
        assert made.transform == source.transform
        assert made.crs == source.crs
        assert made.shape == source.shape
        assert (made.count, made.dtypes, made.nodata) == (1, ("uint8",), 255)
        assert made.profile["tiled"]
        assert made.compression.name == "deflate"
        assert made.colormap(1)[7] == (255, 255, 0, 255)
        assert made.tags(1) == {"CLASS_3": "water", "CLASS_7": "field", "CLASS_9": "wood"}
        assert set(np.unique(made.read(1))) <= {3, 7, 9}


def test_the_map_is_right_where_labels_are(predicted, scene):
    with rasterio.open(scene / "labels.tif") as source, rasterio.open(predicted["classes"]) as made:
        labels, classes = source.read(1), made.read(1)
    assert (labels == classes)[labels != 255].mean() > 0.85


def test_probabilities_and_confidence_agree_with_the_classes(predicted):
    rasters = {name: rasterio.open(path) for name, path in predicted.items()}
    probabilities = rasters["probabilities"].read()
    assert rasters["probabilities"].descriptions == ("water", "field", "wood")
    np.testing.assert_allclose(probabilities.sum(axis=0), 1, atol=1e-5)
    np.testing.assert_array_equal(rasters["classes"].read(1), np.array([3, 7, 9])[probabilities.argmax(axis=0)])
    np.testing.assert_array_equal(rasters["confidence"].read(1), probabilities.max(axis=0))


def test_batches_change_nothing(run_folder, scene, farview_segment, tmp_path):
    maps = []
    for batch_size in (1, 5):
        path = tmp_path / f"{batch_size}.tif"
        arguments = [*files(scene, "optical", "sar"), "-o", tmp_path / "c.tif", "--probabilities", path]
        result = farview_segment("predict", run_folder, *arguments, "--tile", 40, "--batch-size", batch_size)
        assert result.exit_code == 0, result.output
        with rasterio.open(path) as raster:
            maps.append(raster.read())
    np.testing.assert_allclose(maps[0], maps[1], atol=1e-6)


def test_a_missing_modality_is_done_without(run_folder, scene, farview_segment, tmp_path):
    result = farview_segment("predict", run_folder, *files(scene, "optical"), "-o", tmp_path / "classes.tif")
    assert result.exit_code == 0, result.output
    with rasterio.open(scene / "labels.tif") as source, rasterio.open(tmp_path / "classes.tif") as made:
        labels, classes = source.read(1), made.read(1)
    water = labels == 3  # the primary modality tells water from the rest
    assert (classes == 3)[water].mean() > 0.8


def test_no_data_gives_nodata(run_folder, scene, write_raster, farview_segment, tmp_path):
    """And a scene smaller than a tile, of an odd size, on a grid of its own, is mapped whole."""
    with rasterio.open(scene / "optical.tif") as source:
        values = source.read()[:, :37, :41]
    values[:, :10] = 0
    transform = from_origin(500_000, 5_800_000, 10, 10)
    file = write_raster(tmp_path / "optical.tif", values, names=["green", "nir"], nodata=0, transform=transform)
    result = farview_segment("predict", run_folder, "--modality", f"optical={file}", "-o", tmp_path / "classes.tif")
    assert result.exit_code == 0, result.output
    with rasterio.open(tmp_path / "classes.tif") as made:
        classes = made.read(1)
    assert classes.shape == (37, 41)
    assert (classes[:10] == 255).all()
    assert (classes[10:] != 255).all()


def test_the_run_folder_says_what_it_is(run_folder):
    bundle = read_bundle(run_folder, "segment")
    assert [modality["name"] for modality in bundle.spec["modalities"]] == ["optical", "sar"]
    assert [band["name"] for band in bundle.spec["modalities"][0]["bands"]] == ["green", "nir"]
    card = (run_folder / "card.md").read_text()
    assert "water, field, wood" in card
    assert re.search(r"\| test \| 0\.\d{4} \|", card)


def test_the_same_seed_gives_the_same_bytes(config, run_folder, farview_segment, tmp_path):
    assert farview_segment("fit", config, "-o", tmp_path / "again").exit_code == 0
    name = "model.safetensors"
    assert (tmp_path / "again" / name).read_bytes() == (run_folder / name).read_bytes()


def test_statistics_are_those_of_the_training_strip(run_folder, scene):
    statistics = read_bundle(run_folder, "segment").spec["statistics"]["optical"]
    with rasterio.open(scene / "optical.tif") as source:
        strip = source.read().astype(np.float64)[:, :, : 120 // 2 - 1]  # half of it, less half the guard
    np.testing.assert_allclose(statistics["mean"], strip.mean(axis=(1, 2)), rtol=1e-9)
    np.testing.assert_allclose(statistics["std"], strip.std(axis=(1, 2)), rtol=1e-6)


def test_compare_reports_every_model(config, farview_segment, scene, tmp_path):
    folder = tmp_path / "comparison"
    result = farview_segment("compare", config, "-o", folder)
    assert result.exit_code == 0, result.output
    comparison = Comparison.read(folder / "comparison.json")
    roles = {row.model: row.role for row in comparison.rows}
    assert roles == {
        "swin-fusion": "attention", "unet": "baseline", "pixel-boosting": "floor", "majority-class": "floor"
    }  # fmt: skip
    assert all(model in result.output for model in roles)
    with rasterio.open(scene / "labels.tif") as source:
        test = source.read(1)[:, 91:]  # the last quarter, less half the guard
    shares = np.bincount(test[test != 255], minlength=10)[[3, 7, 9]] / (test != 255).sum()
    assert comparison.rows[-1].scores[0]["accuracy"] in [pytest.approx(share) for share in shares]
    assert comparison.rows[0].scores[0]["accuracy"] > 0.6
    assert {test.model for test in comparison.tests} >= {"swin-fusion", "unet"}
    errors = {row.model: 1 - row.scores[0]["accuracy"] for row in comparison.rows}
    for test in comparison.tests:
        assert test.difference == pytest.approx(errors[test.model] - errors[test.against])
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "Maps of the test ground" in page
    # The kept runs are runs like any other.
    for model in ("unet", "pixel-boosting"):
        run = folder / "runs" / model
        made = farview_segment("predict", run, *files(scene, "optical", "sar"), "-o", tmp_path / f"{model}.tif")
        assert made.exit_code == 0, made.output
    lacking = farview_segment("predict", run, *files(scene, "optical"), "-o", tmp_path / "lacking.tif")
    assert lacking.exit_code == 2
    assert "sar is missing" in lacking.output


def test_fit_replaces_a_run_but_nothing_else(config, farview_segment, tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    result = farview_segment("fit", config, "-o", tmp_path)
    assert result.exit_code == 2
    assert "left alone" in result.output
    assert (tmp_path / "thesis.txt").read_text() == "mine"


def refusals(scene, run_folder, tmp_path, write_raster):
    one_band = write_raster(tmp_path / "one.tif", np.ones((1, 20, 20), dtype=np.uint16))
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    manifest = json.loads((run_folder / "bundle.json").read_text())
    (foreign / "bundle.json").write_text(json.dumps({**manifest, "kind": "forecast"}))
    optical, output = f"optical={scene / 'optical.tif'}", ("-o", tmp_path / "out.tif")
    return {
        "there is no such file": (run_folder, "--modality", "optical=absent.tif", *output),
        "band 2 is needed, but the file has 1 band": (run_folder, "--modality", f"optical={one_band}", *output),
        "of kind 'forecast'": (foreign, "--modality", optical, *output),
        "has no bundle.json": (tmp_path, "--modality", optical, *output),
        "'radar' is unknown": (run_folder, "--modality", optical, "--modality", f"radar={one_band}", *output),
        "'optical' is missing": (run_folder, "--modality", f"sar={scene / 'sar.tif'}", *output),
        "written NAME=FILE": (run_folder, "--modality", "optical.tif", *output),
        "given twice": (run_folder, "--modality", optical, "--modality", optical, *output),
        "written over the input": (run_folder, "--modality", optical, "-o", scene / "optical.tif"),
        "written over the run": (run_folder, "--modality", optical, "-o", run_folder / "classes.tif"),
        "is a folder": (run_folder, "--modality", optical, "-o", tmp_path),
        "a GeoTIFF is to be written": (run_folder, "--modality", optical, "-o", tmp_path / "classes.png"),
        "two outputs have one name": (run_folder, "--modality", optical, *output, "--confidence", tmp_path / "out.tif"),
        "cannot cover": (run_folder, "--modality", optical, *output, "--tile", 32, "--overlap", 32),
    }


def test_each_mistake_gets_one_message_and_leaves_nothing(scene, run_folder, farview_segment, tmp_path, write_raster):
    for message, arguments in refusals(scene, run_folder, tmp_path, write_raster).items():
        before = sorted(tmp_path.rglob("*"))
        result = farview_segment("predict", *arguments)
        assert result.exit_code == 2, (message, result.output)
        assert message in result.output
        assert result.output.startswith("error: ")
        assert "Traceback" not in result.output
        assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "damage",
    [{"modalities": []}, {"statistics": {}}, {"classes": [{"code": 1, "name": "a", "colour": "red"}]}, {"model": {}}],
    ids=str,
)
def test_what_a_bundle_says_of_itself_is_checked(damage, run_folder, scene, farview_segment, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(run_folder, copy)
    manifest = json.loads((copy / "bundle.json").read_text())
    manifest["spec"].update(damage)
    (copy / "bundle.json").write_text(json.dumps(manifest))
    result = farview_segment("predict", copy, *files(scene, "optical"), "-o", tmp_path / "out.tif")
    assert result.exit_code == 2, result.output
    assert "bundle.json: " in result.output
    assert next(iter(damage)) in result.output


def test_a_run_of_another_kind_is_left_alone(config, run_folder, farview_segment, tmp_path):
    shutil.copytree(run_folder, tmp_path / "run")
    manifest = json.loads((run_folder / "bundle.json").read_text())
    (tmp_path / "run" / "bundle.json").write_text(json.dumps({**manifest, "kind": "forecast"}))
    result = farview_segment("fit", config, "-o", tmp_path / "run")
    assert result.exit_code == 2
    assert "left alone" in result.output


def test_a_tile_far_larger_than_the_scene_costs_nothing(run_folder, scene, farview_segment, tmp_path):
    for tile in (128, 8192):
        name = tmp_path / f"{tile}.tif"
        result = farview_segment("predict", run_folder, *files(scene, "optical"), "-o", name, "--tile", tile)
        assert result.exit_code == 0, result.output
    assert (tmp_path / "128.tif").read_bytes() == (tmp_path / "8192.tif").read_bytes()


def test_a_label_that_is_no_class_is_named(config, scene, farview_segment, tmp_path):
    tree = yaml.safe_load(config.read_text())
    tree["data"]["classes"] = [{"code": 3, "name": "water"}, {"code": 7, "name": "field"}]
    path = scene / "two.yaml"
    path.write_text(yaml.safe_dump(tree))
    result = farview_segment("fit", path, "-o", tmp_path / "run")
    assert result.exit_code == 2
    assert "holds the value 9" in result.output
    assert list(tmp_path.iterdir()) == []


def test_three_mistakes_are_all_shown(config, farview_segment, tmp_path):
    settings = ["--set", "tile=8", "--set", "model.patsh=2", "--set", "data.reference=radar"]
    result = farview_segment("fit", config, "-o", tmp_path / "run", *settings)
    assert result.exit_code == 2
    for text in ("3 mistakes", "tile", "did you mean 'patch'", "'radar' is not a modality"):
        assert text in result.output


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.yaml")), ids=lambda path: path.name)
def test_every_configuration_parses_and_its_files_are_beside_it(path):
    load_config(path, SegmentConfig)
    scene = load_segment_config(path).data.scenes[0]
    assert scene.labels.parent.resolve().parent.name == "data"


@pytest.mark.parametrize("name", sorted(segment.commands))
def test_help_shows_an_example_that_click_accepts(name, farview_segment, monkeypatch):
    result = farview_segment(name, "--help")
    assert result.exit_code == 0
    example = re.search(r"Example:\n\s+farview segment (.*)", result.output)
    assert example
    command, *arguments = example[1].split()
    assert segment.commands[command].make_context(command, arguments, resilient_parsing=False).params


def test_rio_has_the_same_commands():
    rio = shutil.which("rio", path=Path(sys.executable).parent)
    done = subprocess.run([str(rio), "segment", "--help"], capture_output=True, text=True, check=True)
    for name in segment.commands:
        assert f"\n  {name} " in done.stdout
