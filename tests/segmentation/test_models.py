import numpy as np
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingClassifier

from common.errors import UsageError
from segmentation.models import build_model

BANDS = {"optical": 4, "sar": 2, "height": 1}
SWIN = {"embed_dim": 8, "depths": (1, 1), "heads": (2, 2), "window": 4}
OPTIONS = {
    "swin-fusion": {
        "primary": SWIN,
        "secondary": SWIN,
        "patch": 2,
        "width": 8,
        "modality_dropout": 0.5,
        "dropout": 0.1,
    },
    "unet": {"encoder": "mobilenet_v2", "decoder_channels": (8, 8, 8)},
    "pixel-boosting": {"iterations": 2, "leaves": 4},
}


def made(kind="swin-fusion", bands=BANDS, opened=True):
    torch.manual_seed(0)
    model = build_model(kind, bands=bands, classes=3, options=OPTIONS[kind])
    if opened:
        with torch.no_grad():
            for parameter in model.parameters():
                if not parameter.any():  # gates and other parameters that start at zero
                    parameter.normal_(std=0.5)
    return model.eval()


def inputs(size=(19, 23), batch=2):
    draw = torch.Generator().manual_seed(1)
    images = {name: torch.randn(batch, count, *size, generator=draw) for name, count in BANDS.items()}
    return images, {name: torch.ones(batch, 1, *size, dtype=torch.bool) for name in BANDS}


def without(images, available, *names):
    return (
        {name: torch.zeros_like(image) if name in names else image for name, image in images.items()},
        {name: torch.zeros_like(mask) if name in names else mask for name, mask in available.items()},
    )


@pytest.mark.parametrize("kind", list(OPTIONS))
@pytest.mark.parametrize("size", [(19, 23), (8, 8), (3, 40)])
def test_logits_have_the_size_of_the_input(kind, size):
    assert made(kind, opened=False)(*inputs(size)).shape == (2, 3, *size)


def test_closed_gates_leave_the_primary_path_alone():
    model = made(opened=False)
    images, available = inputs()
    expected = model(*without(images, available, "sar", "height"))
    torch.testing.assert_close(model(images, available), expected, rtol=0, atol=0)
    opened = made()
    assert not torch.allclose(opened(images, available), opened(*without(images, available, "sar", "height")))


def test_an_absent_modality_leaves_the_model_without_it():
    """With the same weights, and whatever is in its place."""
    full = made()
    kept = {name: count for name, count in BANDS.items() if name != "height"}
    lacking = made(bands=kept)
    lacking.load_state_dict({name: full.state_dict()[name] for name in lacking.state_dict()})
    images, available = inputs()
    expected = lacking({n: images[n] for n in kept}, {n: available[n] for n in kept})
    absent = {**available, "height": torch.zeros_like(available["height"])}
    torch.testing.assert_close(full(images, absent), expected)
    assert not torch.allclose(full(images, available), expected)


def test_an_absent_region_changes_nothing_far_away():
    model = made()
    images, available = inputs((64, 64))
    holed = {name: mask.clone() for name, mask in available.items()}
    holed["sar"][..., :8, :8] = False
    there, holed_there = model(images, available), model(images, holed)
    assert not torch.allclose(there[..., :8, :8], holed_there[..., :8, :8])
    torch.testing.assert_close(there[..., 40:, 40:], holed_there[..., 40:, 40:])


def test_samples_of_a_batch_do_not_touch_each_other():
    model = made()
    images, available = inputs(batch=3)
    alone = model({n: i[1:2] for n, i in images.items()}, {n: a[1:2] for n, a in available.items()})
    torch.testing.assert_close(model(images, available)[1:2], alone, rtol=1e-5, atol=1e-6)


def test_gradient_reaches_every_parameter():
    model = made().train()
    model.modality_dropout = 0.0
    images, available = inputs((32, 32))
    for name in available:
        available[name][..., :6, :6] = False  # so that the absent tokens are used
    model(images, available).square().sum().backward()
    idle = [name for name, parameter in model.named_parameters() if parameter.grad is None or not parameter.grad.any()]
    assert idle == []


def test_modality_dropout_hides_secondary_modalities_in_training_only():
    model = made().train()
    model.decoder.smooth[2].p = 0.0
    images, available = inputs()
    torch.manual_seed(0)
    outputs = torch.stack([model(images, available)[0] for _ in range(20)])
    distinct = {tuple(np.round(output.flatten()[:4].tolist(), 4)) for output in outputs}
    assert len(distinct) == 4  # both, either or none of the two
    model.eval()
    torch.testing.assert_close(model(images, available), model(images, available), rtol=0, atol=0)


@pytest.mark.parametrize("present", [(0, 1, 2), (0, 2)], ids=["three classes", "two of three"])
def test_trees_equal_scikit_learn(present):
    """The trees of the floor, read out of scikit-learn, answer as scikit-learn does."""
    draw = np.random.default_rng(0)
    pixels = draw.normal(size=(1500, 7)).astype(np.float32)
    labels = np.array(present)[pixels[:, : len(present)].argmax(axis=1)]
    pixels[::5, 4:] = np.nan
    pixels[::7, 0] = np.nan
    weights = draw.random(1500).astype(np.float32) + 0.5
    options = {"iterations": 8, "leaves": 9}
    model = build_model("pixel-boosting", bands=BANDS, classes=3, options=options)
    model.grow(torch.from_numpy(pixels), torch.from_numpy(labels), torch.from_numpy(weights), seed=0)
    reference = HistGradientBoostingClassifier(
        max_iter=8, max_leaf_nodes=9, max_depth=6, early_stopping=False, random_state=0
    ).fit(pixels, labels, sample_weight=weights)
    image = torch.from_numpy(pixels.T.reshape(1, 7, 30, 50))
    images = dict(zip(BANDS, image.nan_to_num(0).split(list(BANDS.values()), dim=1), strict=True))
    nothing = dict(zip(BANDS, image.isnan().split(list(BANDS.values()), dim=1), strict=True))
    probabilities = model(
        {n: torch.where(nothing[n], torch.nan, i) for n, i in images.items()},
        {n: torch.ones_like(i[:, :1], dtype=torch.bool) for n, i in images.items()},
    ).softmax(dim=1)
    found = probabilities[0].flatten(1).T.numpy()  # [1500, 3]
    np.testing.assert_allclose(found[:, list(present)], reference.predict_proba(pixels), atol=1e-6)


def test_an_unknown_kind_is_refused():
    with pytest.raises(UsageError, match="no model of kind 'resnet'"):
        build_model("resnet", bands=BANDS, classes=3, options={})
