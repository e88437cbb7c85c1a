"""Training: the best weights are kept, and the same seed gives the same bytes."""

import math

import pytest
import torch
from torch import nn

from common.training import score, train


def objective(model, batch):
    error = (model(batch[0]) - batch[1]).square()
    return error.sum(), torch.tensor(error.numel())


def data(count=64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 3, generator=generator)
    return x, x @ torch.tensor([[1.0], [-2.0], [0.5]])


def run(model, *, steps=60, learning_rate=0.05, validation=True, **options):
    x, y = data()
    batches = [(x[i::4], y[i::4]) for i in range(4)]
    settings = {
        "validate_every": 10, "patience": 3, "weight_decay": 0.0, "warmup": 5, "clip": 10.0, "seed": 1,
        "description": "test", **options,
    }  # fmt: skip
    check = [data(seed=2)] if validation else None
    return train(
        model, objective, training=batches, validation=check, steps=steps, learning_rate=learning_rate, **settings
    )


def linear(seed=0):
    torch.manual_seed(seed)
    return nn.Linear(3, 1)


def test_it_finds_the_solution():
    model = linear()
    record = run(model, steps=300, patience=100)
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


def test_an_interrupt_reaches_the_caller():
    def interrupted(_model, _batch):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(
            linear(), interrupted, training=[data()], validation=None, steps=3, validate_every=1, patience=1,
            learning_rate=0.1, weight_decay=0.0, warmup=0, clip=1.0, seed=0, description="test",
        )  # fmt: skip
