"""Training: the best weights are kept, and the same seed gives the same bytes."""

import itertools
import math

import pytest
import torch
from torch import nn

from common.checkpoint import Checkpoint
from common.errors import InputError, UsageError
from common.training import score, train


def objective(model, batch):
    error = (model(batch[0]) - batch[1]).square()
    return error.sum(), torch.tensor(error.numel())


def data(count=64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 3, generator=generator)
    return x, x @ torch.tensor([[1.0], [-2.0], [0.5]])


SETTINGS = {
    "validate_every": 10, "patience": 3, "weight_decay": 0.0, "warmup": 0.08, "clip": 10.0, "seed": 1,
    "accumulate": 1, "precision": "float32", "description": "test",
}  # fmt: skip


def batches(parts=4):
    """Batches in turn, each a share of the data."""
    x, y = data()
    return lambda start: ((x[i % parts :: parts], y[i % parts :: parts]) for i in itertools.count(start))


def run(model, *, steps=60, learning_rate=0.05, validation=True, parts=4, goal=objective, **options):
    check = [data(seed=2)] if validation else None
    return train(
        model, goal, training=batches(parts), validation=check, steps=steps, learning_rate=learning_rate,
        **{**SETTINGS, **options},
    )  # fmt: skip


def linear(seed=0):
    torch.manual_seed(seed)
    return nn.Linear(3, 1)


def test_it_finds_the_solution():
    model = linear()
    record = run(model, steps=300, patience=100, warmup=0.02)
    assert record.steps == 300
    torch.testing.assert_close(model.weight, torch.tensor([[1.0, -2.0, 0.5]]), atol=1e-3, rtol=0)
    assert record.best_score < 1e-5
    assert [step for step, _, _ in record.history] == list(range(0, 301, 10))


def test_the_start_is_kept_when_training_only_makes_it_worse():
    model = linear()
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[1.0, -2.0, 0.5]]))
        model.bias.zero_()
    before = model.weight.clone()
    record = run(model, learning_rate=5.0)
    assert record.best_step == 0
    assert torch.equal(model.weight, before)
    assert record.steps == 30  # three checks without a better score


def test_same_seed_same_bytes():
    models = [nn.Sequential(linear(), nn.Dropout(0.5)) for _ in range(3)]
    for model, seed in zip(models, (1, 1, 2), strict=True):
        run(model, seed=seed)
    assert torch.equal(models[0][0].weight, models[1][0].weight)
    assert not torch.equal(models[0][0].weight, models[2][0].weight)


def test_without_validation_the_last_weights_are_kept():
    record = run(linear(), steps=12, validation=False)
    assert (record.steps, record.best_step) == (12, 12)
    assert math.isnan(record.best_score)


def test_score_does_not_depend_on_the_batches():
    model = linear()
    x, y = data()
    whole = score(model, objective, [(x, y)])
    uneven = score(model, objective, [(x[:5], y[:5]), (x[5:], y[5:])])
    expected = float((model(x) - y).detach().square().mean())
    assert math.isclose(whole, expected, rel_tol=1e-6)
    assert math.isclose(uneven, expected, rel_tol=1e-6)


def stops_after(calls):
    """The objective, and an interrupt after so many calls in training."""
    made = itertools.count(1)

    def interrupted(model, batch):
        if model.training and next(made) > calls:
            raise KeyboardInterrupt
        return objective(model, batch)

    return interrupted


def network():
    return nn.Sequential(linear(), nn.Dropout(0.5), nn.Linear(1, 1))


def test_an_interrupt_reaches_the_caller():
    with pytest.raises(KeyboardInterrupt):
        run(linear(), goal=stops_after(0))


@pytest.mark.parametrize("stop", [3, 10, 25, 59])
@pytest.mark.parametrize(("accumulate", "validation"), [(1, True), (2, True), (1, False)])
def test_resuming_equals_going_through(tmp_path, stop, accumulate, validation):
    options = {"accumulate": accumulate, "validation": validation, "patience": 99}
    whole, parted = network(), network()
    expected = run(whole, **options)
    checkpoint = Checkpoint(tmp_path / "run.checkpoint", {"a": "1"})
    with pytest.raises(KeyboardInterrupt):
        run(parted, **options, checkpoint=checkpoint, goal=stops_after(stop * accumulate))
    assert checkpoint.path.exists() == (stop >= 10)
    parted = network()  # as a new process makes it
    found = run(parted, **options, checkpoint=checkpoint, resume=True)
    for name, tensor in whole.state_dict().items():
        assert torch.equal(parted.state_dict()[name], tensor)
    assert (found.steps, found.best_step) == (expected.steps, expected.best_step)
    assert repr(found.history) == repr(expected.history)


def test_resuming_what_has_ended_trains_no_more(tmp_path):
    checkpoint = Checkpoint(tmp_path / "run.checkpoint", {})
    done, again = network(), network()
    record = run(done, learning_rate=5.0, checkpoint=checkpoint)
    assert record.steps < 60  # patience ended it
    assert run(again, learning_rate=5.0, checkpoint=checkpoint, resume=True, goal=stops_after(0)).steps == record.steps
    assert torch.equal(done[0].weight, again[0].weight)


def test_without_resume_a_training_begins_anew(tmp_path):
    checkpoint = Checkpoint(tmp_path / "run.checkpoint", {})
    first, second = network(), network()
    run(first, steps=20, checkpoint=checkpoint)
    run(second, steps=20, checkpoint=checkpoint)
    assert torch.equal(first[0].weight, second[0].weight)


def test_a_checkpoint_of_another_training_is_refused_with_what_differs(tmp_path):
    path = tmp_path / "run.checkpoint"
    Checkpoint(path, {"the data": "a1", "dim": "64", "gone": "1"}).save({"step": 1})
    assert Checkpoint(path, {"the data": "a1", "dim": "64", "gone": "1"}).load() == {"step": 1}
    with pytest.raises(UsageError, match=r"dim \(64, now 32\), gone \(1, now not there\)"):
        Checkpoint(path, {"the data": "a1", "dim": "32"}).load()


@pytest.mark.parametrize("keep", [0, 10, 300])
def test_a_damaged_checkpoint_is_said_to_be(tmp_path, keep):
    path = tmp_path / "run.checkpoint"
    checkpoint = Checkpoint(path, {})
    checkpoint.save({"weights": torch.zeros(100)})
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(InputError, match="damaged"):
        checkpoint.load()


def test_a_checkpoint_runs_no_code(tmp_path):
    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "trapped"), "w"))

    torch.save({"made_of": {}, "step": Trap()}, tmp_path / "run.checkpoint")
    with pytest.raises(InputError, match="damaged"):
        Checkpoint(tmp_path / "run.checkpoint", {}).load()
    assert not (tmp_path / "trapped").exists()


def test_gradients_of_several_batches_are_averaged():
    """Two halves, averaged, are the whole."""
    whole, halves = linear(), linear()
    run(whole, parts=1, steps=30)
    record = run(halves, parts=2, accumulate=2, steps=30)
    torch.testing.assert_close(whole.weight, halves.weight)
    assert record.history[1][1] == pytest.approx(run(linear(), parts=1, steps=30).history[1][1], rel=1e-4)


def test_bf16_trains_as_float32_does_within_its_precision():
    exact, rough = linear(), linear()
    run(exact, steps=200, patience=99)
    run(rough, steps=200, patience=99, precision="bf16")
    assert rough.weight.dtype == torch.float32
    assert not torch.equal(exact.weight, rough.weight)
    torch.testing.assert_close(exact.weight, rough.weight, atol=0.03, rtol=0)
