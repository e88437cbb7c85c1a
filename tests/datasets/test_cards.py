"""The cards, and the commands that show them."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import datasets
from common.config import validate
from common.errors import ConfigError, UsageError
from datasets.card import CARDS, Card, GeneratorSource, PypiSource, files_of
from datasets.cli import datasets as group

DIGEST = "0" * 64


def tree(**changes):
    """A valid card as plain data, with changes."""
    files = [{"path": "a.csv", "sha256": DIGEST}]
    return {
        "name": "tiny",
        "summary": "tiny",
        "description": "tiny",
        "task": "forecast",
        "size": "1 row",
        "licence": "MIT",
        "folder": "series",
        "columns": {"ds": "time"},
        "split": "by time",
        "sources": [{"kind": "https", "base": "https://example.org/", "files": files}],
    } | changes


@pytest.mark.parametrize("name", datasets.card_names())
def test_every_card_parses_and_its_parts_fit(name):
    card = datasets.load_card(name)
    assert card.name == name
    paths = []
    for source in card.sources:
        if isinstance(source, GeneratorSource):
            from datasets.scene import write_scene
            from datasets.sine import sine_series

            function = {"sine": sine_series, "scene": write_scene}[source.function]
            known = {"folder": None, "classes": None} if source.function == "scene" else {}
            inspect.signature(function).bind(**known, **source.arguments)
            continue
        paths += [file.path for file in files_of(source)]
        if isinstance(source, PypiSource):
            assert source.wheel.startswith(f"{source.package}-{source.version}-")
    assert len(set(paths)) == len(paths)
    assert len({each.code for each in card.classes}) == len(card.classes)
    assert card.unlabelled not in {each.code for each in card.classes}


def test_the_sets_of_the_demo_and_of_the_benchmarks_are_there():
    wanted = {"hourly-electricity", "sentinel2-osm", "sine", "synthetic-scene", "etth1", "ombria", "terramind"}
    assert wanted <= set(datasets.card_names())
    assert len(datasets.card_names()) == 29


def test_every_checksum_file_belongs_to_a_card():
    named = {
        source.checksums
        for name in datasets.card_names()
        for source in datasets.load_card(name).sources
        if source.kind == "folder" and source.checksums
    }
    assert {path.name for path in CARDS.glob("*.sha256")} == named == {"ombria.sha256"}


def test_ombria_lists_every_chip_of_five_folders():
    files = files_of(datasets.load_card("ombria").sources[0])
    assert len(files) == 5 * (624 + 70)
    assert sum(file.path.startswith("OmbriaS1/test/MASK/") for file in files) == 70


@pytest.mark.parametrize("path", ["../x", "a/../../x", "/etc/x", "a\\b", "C:x", ""])
@pytest.mark.parametrize("key", ["path", "origin"])
def test_a_path_that_leaves_its_folder_is_refused(path, key):
    files = [{"path": "a.csv", "sha256": DIGEST} | {key: path}]
    source = {"kind": "https", "base": "https://example.org/", "files": files}
    with pytest.raises(ConfigError, match="stays inside its folder"):
        validate(tree(sources=[source]), Card, where="tiny.yaml")


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"colums": {}}, "colums"),
        ({"columns": {}}, "states its columns"),
        ({"task": "segment"}, "its bands"),
        ({"folder": None}, "folder below FARVIEW_DATA"),
        ({"sources": [{"kind": "ftp"}]}, "ftp"),
        ({"sources": [{"kind": "https", "base": "http://example.org/", "files": []}]}, "base"),
        ({"sources": [{"kind": "folder", "remedy": "none"}]}, "either files or checksums"),
        ({"classes": [{"code": 0, "name": "a", "colour": "red"}]}, "colour"),
    ],
)
def test_a_card_that_breaks_a_rule_is_refused(changes, rule):
    assert validate(tree(), Card, where="tiny.yaml").name == "tiny"
    with pytest.raises(ConfigError, match=rule):
        validate(tree(**changes), Card, where="tiny.yaml")


def test_list_prints_one_line_a_data_set():
    result = CliRunner().invoke(group, ["list"])
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["NAME", "TASK", "SIZE", "LICENCE", "SUMMARY"]
    assert [line.split()[0] for line in lines[1:]] == datasets.card_names()
    assert "CC-BY-ND-4.0" in next(line for line in lines if line.startswith("etth1"))


@pytest.mark.parametrize("name", datasets.card_names())
def test_show_prints_what_a_user_has_to_know(name):
    result = CliRunner().invoke(group, ["show", name])
    card = datasets.load_card(name)
    assert result.exit_code == 0
    text = " ".join(result.stdout.split())
    assert card.licence in text
    assert card.split in text
    assert all(note in text for note in card.notes)
    assert all(column in result.stdout for column in (*card.columns, *card.bands))


def test_an_unknown_name_says_what_was_meant():
    with pytest.raises(UsageError, match=r"no data set 'ettH1', did you mean etth1"):
        datasets.load_card("ettH1")
    result = CliRunner().invoke(group, ["show", "no-such-thing-at-all"])
    assert result.exit_code == 2
    assert "farview datasets list" in result.output
    assert "did you mean" not in result.output


def test_a_name_cannot_leave_the_cards():
    with pytest.raises(UsageError, match="no data set"):
        datasets.load_card("../cards/etth1")


def test_the_commands_import_nothing_heavy():
    heavy = {"torch", "pandas", "rasterio", "pydantic", "pooch"}
    code = f"import sys, datasets.cli; print({heavy} & set(sys.modules))"
    root = Path(datasets.__file__).parent.parent
    result = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"
