"""Outputs that appear whole or not at all."""

import json

import pytest

from common.errors import InputError, UsageError
from common.files import atomic_folder, atomic_path, check_output, existing_file, sha256, write_json


def test_a_file_appears_when_complete(tmp_path):
    target = tmp_path / "deep" / "out.csv"
    with atomic_path(target) as partial:
        assert partial.suffix == ".csv"
        partial.write_text("new")
        assert not target.exists()
    assert target.read_text() == "new"
    assert [p.name for p in target.parent.iterdir()] == ["out.csv"]


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, failure):
    target = tmp_path / "out.csv"
    target.write_text("old")
    with pytest.raises(failure), atomic_path(target) as partial:  # noqa: PT012
        partial.write_text("half")
        raise failure
    assert target.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["out.csv"]


def is_ours(folder):
    return (folder / "mark").exists()


def test_a_folder_of_an_earlier_run_is_replaced_as_a_whole(tmp_path):
    target = tmp_path / "run"
    for name in ("first", "second"):
        with atomic_folder(target, is_ours) as folder:
            (folder / "mark").touch()
            (folder / name).touch()
    assert sorted(p.name for p in target.iterdir()) == ["mark", "second"]
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_a_folder_with_other_files_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(UsageError, match="left alone"), atomic_folder(tmp_path, is_ours):
        pass
    assert (tmp_path / "thesis.tex").read_text() == "years of work"
    with pytest.raises(UsageError, match="is a file"), atomic_folder(tmp_path / "thesis.tex", is_ours):
        pass


def test_a_target_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot write here"), atomic_path(tmp_path / "file" / "out"):
        pass


def test_json_and_hash(tmp_path):
    write_json(tmp_path / "a.json", {"ü": [1, 2.5]})
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8")) == {"ü": [1, 2.5]}
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "b.json", float("nan"))
    assert not (tmp_path / "b.json").exists()
    (tmp_path / "abc").write_bytes(b"abc")
    assert sha256(tmp_path / "abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_existing_file(tmp_path):
    with pytest.raises(InputError, match="is a folder"):
        existing_file(tmp_path, "the data")
    with pytest.raises(InputError, match=r"no such file \(the data\)"):
        existing_file(tmp_path / "x", "the data")


def test_folders_made_for_an_output_that_did_not_come_are_removed(tmp_path):
    with pytest.raises(KeyboardInterrupt), atomic_path(tmp_path / "a" / "b" / "c.txt"):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []
    with atomic_path(tmp_path / "a" / "b" / "c.txt") as partial:
        partial.write_text("done")
    assert (tmp_path / "a" / "b" / "c.txt").read_text() == "done"


def test_an_output_does_not_destroy_what_it_is_made_from(tmp_path):
    (tmp_path / "data.csv").write_text("data")
    (tmp_path / "run").mkdir()
    inputs = {"the data": tmp_path / "data.csv", "the run": tmp_path / "run"}
    check_output(tmp_path / "new.csv", inputs)
    for target, says in (("data.csv", "over the data"), ("run/x.csv", "over the run"), ("run", "is a folder")):
        with pytest.raises(UsageError, match=says):
            check_output(tmp_path / target, inputs)
