"""Bundles: read back exactly, and refused with one sentence when they are not what they should be."""

import json

import pytest
import torch
from torch import nn

from common.bundle import read_bundle, write_bundle
from common.errors import BundleError


@pytest.fixture
def run(tmp_path):
    torch.manual_seed(0)
    write_bundle(tmp_path, kind="forecast", spec={"lookback": 7}, state=nn.Linear(3, 2).state_dict(), card="# a card\n")
    return tmp_path


def test_round_trip(run):
    torch.manual_seed(0)
    expected = nn.Linear(3, 2)
    bundle = read_bundle(run, "forecast")
    model = nn.Linear(3, 2)
    bundle.load_into(model)
    assert bundle.spec == {"lookback": 7}
    assert torch.equal(model.weight, expected.weight)
    assert torch.equal(model.bias, expected.bias)
    assert (run / "card.md").read_text() == "# a card\n"
    assert sorted(p.name for p in run.iterdir()) == ["bundle.json", "card.md", "model.safetensors"]


def test_weights_of_another_shape_are_refused(run):
    with pytest.raises(BundleError, match="do not fit the model"):
        read_bundle(run, "forecast").load_into(nn.Linear(4, 2))


def edit(run, **changes):
    path = run / "bundle.json"
    manifest = json.loads(path.read_text())
    manifest.update(changes)
    path.write_text(json.dumps({k: v for k, v in manifest.items() if v is not None}))


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda run: edit(run, kind="segment"), "of kind 'segment', but this command needs 'forecast'"),
        (lambda run: edit(run, format=99), "is of format 99"),
        (lambda run: edit(run, spec=None), "lacks the keys spec"),
        (lambda run: (run / "bundle.json").write_text("{"), "is not JSON"),
        (lambda run: (run / "bundle.json").write_text("[]"), "lacks the keys"),
        (lambda run: (run / "bundle.json").unlink(), "this folder has no bundle.json"),
        (lambda run: (run / "model.safetensors").unlink(), "model.safetensors is missing"),
        (lambda run: (run / "model.safetensors").write_bytes(b"cut"), "damaged or changed"),
    ],
)
def test_damage_is_one_sentence(run, damage, says):
    damage(run)
    with pytest.raises(BundleError, match=says):
        read_bundle(run, "forecast")


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(BundleError, match="there is no such folder"):
        read_bundle(tmp_path / "none", "forecast")


def test_a_pickle_in_place_of_the_weights_is_not_run(run, tmp_path):
    import pickle

    from common.files import sha256

    class Bomb:
        def __reduce__(self):
            return (open, (str(tmp_path / "boom"), "w"))

    weights = run / "model.safetensors"
    weights.write_bytes(pickle.dumps(Bomb()))
    edit(run, weights_sha256=sha256(weights))
    with pytest.raises(BundleError, match="not a safetensors file"):
        read_bundle(run, "forecast")
    assert not (tmp_path / "boom").exists()
