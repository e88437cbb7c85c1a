import numpy as np
import pytest
import rasterio
from rasterio.transform import from_origin
from rasterio.warp import Resampling, reproject, transform

from common.errors import InputError, UsageError
from segmentation.scene import Band, Modality, Scene, bind_bands, grid_of, open_raster
from segmentation.tiles import Box


def modality(name, count=1, **options):
    return Modality(name, tuple(Band(None, index) for index in range(1, count + 1)), **options)


@pytest.fixture
def reference(tmp_path, write_raster):
    values = np.random.default_rng(0).integers(1, 1000, (1, 40, 50)).astype(np.uint16)
    return write_raster(tmp_path / "reference.tif", values)


def mercator(size):
    """A transform of Web Mercator whose raster begins inside the reference grid, 100 m from its corner."""
    (west,), (north,) = transform("EPSG:32633", "EPSG:3857", [500_100], [5_799_900])
    return from_origin(west, north, size, size)


def read(files, *modalities, box=None):
    with Scene(files, modalities, modalities[0].name) as scene:
        return scene.read(box or scene.grid.box)


def test_a_file_on_the_grid_is_read_as_it_is(reference):
    with rasterio.open(reference) as dataset:
        expected = dataset.read()
    image = read({"a": reference}, modality("a"), box=Box(3, 5, 20, 30))["a"]
    np.testing.assert_array_equal(image.values, expected[:, 3:23, 5:35])
    assert image.values.dtype == np.float32
    assert image.available.all()


@pytest.mark.parametrize("resampling", ["nearest", "bilinear", "cubic"])
def test_another_grid_is_aligned_as_rasterio_reproject_does(tmp_path, write_raster, reference, resampling):
    """Another resolution, extent and reference system at once."""
    smooth = np.add.outer(np.arange(30.0), 2 * np.arange(40.0))[None].astype(np.float32) + 100
    other = write_raster(tmp_path / "other.tif", smooth, crs="EPSG:3857", transform=mercator(30))
    image = read({"a": reference, "b": other}, modality("a"), modality("b", resampling=resampling))["b"]
    expected = np.full((40, 50), np.nan, dtype=np.float32)
    with rasterio.open(other) as source, rasterio.open(reference) as target:
        reproject(
            source.read(1),
            expected,
            src_transform=source.transform,
            src_crs=source.crs,
            dst_transform=target.transform,
            dst_crs=target.crs,
            src_nodata=None,
            dst_nodata=np.nan,
            resampling=Resampling[resampling],
            init_dest_nodata=True,
        )
    assert 0.1 < image.available.mean() < 1  # it covers a part
    both = image.available & np.isfinite(expected)
    assert both.sum() >= 0.95 * image.available.sum()
    np.testing.assert_allclose(image.values[0][both], expected[both], atol=0.02)
    assert (image.values[0][~image.available] == 0).all()


def test_twice_the_pixel_size_is_not_shifted_by_half_a_pixel(tmp_path, write_raster, reference):
    coarse = np.repeat(np.arange(25.0, dtype=np.float32)[None], 20, axis=0)[None]
    file = write_raster(tmp_path / "coarse.tif", coarse, transform=from_origin(500_000, 5_800_000, 20, 20))
    image = read({"a": reference, "b": file}, modality("a"), modality("b"))["b"]
    # The centre of fine column c lies at (c + 0.5) / 2 - 0.5 in coarse columns.
    expected = ((np.arange(50) + 0.5) / 2 - 0.5).clip(0, 24)
    np.testing.assert_allclose(image.values[0, 10], expected, atol=1e-5)


def test_windows_agree_with_the_whole(tmp_path, write_raster, reference):
    values = np.random.default_rng(3).random((1, 60, 60)).astype(np.float32)
    file = write_raster(tmp_path / "b.tif", values, crs="EPSG:3857", transform=mercator(20))
    modalities = modality("a"), modality("b")
    with Scene({"a": reference, "b": file}, modalities, "a") as scene:
        whole = scene.read(scene.grid.box)["b"]
        part = scene.read(Box(7, 11, 13, 17))["b"]
    np.testing.assert_array_equal(part.available, whole.available[7:20, 11:28])
    np.testing.assert_allclose(part.values, whole.values[:, 7:20, 11:28], atol=1e-5)


def test_nodata_and_nan_in_any_band_make_a_pixel_unavailable(tmp_path, write_raster):
    values = np.ones((2, 4, 5), dtype=np.float32)
    values[0, 1, 2] = -9999
    values[1, 3, 4] = np.nan
    file = write_raster(tmp_path / "a.tif", values, nodata=-9999)
    image = read({"a": file}, modality("a", 2))["a"]
    expected = np.ones((4, 5), dtype=bool)
    expected[1, 2] = expected[3, 4] = False
    np.testing.assert_array_equal(image.available, expected)
    assert np.isfinite(image.values).all()


def test_scale_and_offset_come_from_the_tags_unless_stated(tmp_path, write_raster):
    file = write_raster(tmp_path / "a.tif", np.full((1, 3, 3), 500, dtype=np.int16))
    with rasterio.open(file, "r+") as raster:
        raster.scales, raster.offsets = (0.1,), (2.0,)
    assert read({"a": file}, modality("a"))["a"].values[0, 0, 0] == pytest.approx(52.0)
    assert read({"a": file}, modality("a", scale=1.0, offset=-1.0))["a"].values[0, 0, 0] == 499.0


def test_an_absent_modality_is_unavailable(reference):
    image = read({"a": reference}, modality("a"), modality("b", 3))["b"]
    assert image.values.shape == (3, 40, 50)
    assert not image.values.any()
    assert not image.available.any()


def test_bands_are_bound_by_name_in_another_order(tmp_path, write_raster):
    values = np.arange(3, dtype=np.uint8)[:, None, None] * np.ones((3, 2, 2), dtype=np.uint8)
    trained = write_raster(tmp_path / "trained.tif", values, names=["red", "green", "blue"])
    other = write_raster(tmp_path / "other.tif", values, names=["blue", "green", "red"])
    bands = bind_bands(trained, ["blue", 1])
    assert bands == (Band("blue", 3), Band("red", 1))
    assert read({"a": other}, Modality("a", bands))["a"].values[:, 0, 0].tolist() == [0, 2]
    unnamed = write_raster(tmp_path / "unnamed.tif", values)
    assert read({"a": unnamed}, Modality("a", bands))["a"].values[:, 0, 0].tolist() == [2, 0]


def test_each_unusable_file_gets_one_message(tmp_path, write_raster, reference):
    text = tmp_path / "text.tif"
    text.write_text("no raster")
    plain = np.ones((1, 8, 8), dtype=np.uint8)
    nowhere = write_raster(tmp_path / "nowhere.tif", plain, crs=None)
    far = write_raster(tmp_path / "far.tif", plain, transform=from_origin(900_000, 100_000, 10, 10))
    waves = write_raster(tmp_path / "waves.tif", plain.astype(np.complex64))
    cases = {
        tmp_path / "absent.tif": "no such file",
        tmp_path: "folder",
        text: "cannot be opened as a raster",
        nowhere: "no coordinate reference system",
        far: "does not touch",
        waves: "complex",
    }
    for path, message in cases.items():
        with pytest.raises(InputError, match=message):
            read({"a": reference, "b": path}, modality("a"), modality("b"))
    with pytest.raises(InputError, match="band 2 is needed, but the file has 1 band"):
        read({"a": reference}, modality("a", 2))
    with pytest.raises(InputError, match="no band named 'nir'"):
        bind_bands(write_raster(tmp_path / "n.tif", plain, names=["red"]), ["nir"])
    with pytest.raises(UsageError, match="'c' is unknown"):
        read({"a": reference, "c": reference}, modality("a"))
    with pytest.raises(UsageError, match="'a' is missing"):
        read({"b": reference}, modality("a"), modality("b"))


@pytest.mark.data
@pytest.mark.parametrize(
    ("file", "share"),
    [
        ("cog_rgb_mask.tif", 0.9692),  # a mask band
        ("cog_rgba.tif", 0.8870),  # an alpha band, which is no band of the image
        ("cog_nodata_nan.tif", 0.4888),  # nodata 0, and NaN besides
        ("all-nodata.tif", 0.0),
        ("image_51px.tif", 1.0),
    ],
)
def test_availability_of_real_files(real_data, file, share):
    path = real_data / "trouble" / file
    bands = bind_bands(path, None)
    image = read({"a": path}, Modality("a", bands))["a"]
    with rasterio.open(path) as dataset:
        stored = dataset.read([band.index for band in bands]).astype(np.float32)
        masks = dataset.read_masks([band.index for band in bands])
    expected = (masks == 255).all(axis=0) & np.isfinite(stored).all(axis=0)
    assert len(bands) == (3 if "rgb" in file else stored.shape[0])
    np.testing.assert_array_equal(image.available, expected)
    assert image.available.mean() == pytest.approx(share, abs=1e-3)
    np.testing.assert_array_equal(image.values[:, expected], stored[:, expected])


@pytest.mark.data
def test_real_modalities_of_two_reference_systems_are_brought_together(real_data):
    files = {"rgb": real_data / "trouble/rgb1.tif", "nir": real_data / "trouble/rgb1_fake_nir_epsg3857.tif"}
    images = read(files, modality("rgb", 3), modality("nir"))
    both = images["rgb"].available & images["nir"].available
    assert both.sum() > 0.95 * images["rgb"].available.sum()
    # The made-up near infrared follows the visible bands, if it lies where it belongs.
    inside = images["rgb"].values[:, both].mean(axis=0), images["nir"].values[0, both]
    here = np.corrcoef(*inside)[0, 1]
    shifted = np.roll(images["nir"].values[0], 5, axis=1)[both]
    assert here > np.corrcoef(inside[0], shifted)[0, 1]


@pytest.mark.data
def test_a_damaged_block_is_reported_with_its_place(real_data):
    path = real_data / "trouble/corrupt.tif"
    with pytest.raises(InputError, match="cannot be read in rows"):
        read({"a": path}, modality("a", 3))


@pytest.mark.data
def test_control_points_alone_are_refused_with_the_remedy(real_data):
    with open_raster(real_data / "trouble/cog_gcps.tif") as dataset, pytest.raises(InputError, match="gdalwarp"):
        grid_of(dataset)
