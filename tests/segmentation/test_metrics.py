import numpy as np
import pytest
from sklearn import metrics as reference

from segmentation.metrics import block_errors, confusion_matrix, score


@pytest.fixture
def maps():
    draw = np.random.default_rng(1)
    labels = draw.integers(0, 4, (40, 50)).astype(np.uint8)
    labels[labels == 2] = 1  # class 2 stands in no label
    predicted = np.where(draw.random((40, 50)) < 0.6, labels, draw.integers(0, 4, (40, 50))).astype(np.uint8)
    labels[draw.random((40, 50)) < 0.3] = 255
    return labels, predicted


def test_confusion_and_scores_equal_scikit_learn(maps):
    labels, predicted = maps
    true, made = labels[labels != 255], predicted[labels != 255]
    confusion = confusion_matrix(labels, predicted, 4)
    np.testing.assert_array_equal(confusion[:, :4], reference.confusion_matrix(true, made, labels=range(4)))
    found, present = score(confusion), [0, 1, 3]
    by_class = reference.jaccard_score(true, made, labels=present, average=None)
    np.testing.assert_allclose(found.iou[present], by_class)
    assert np.isnan(found.iou[2])
    assert found.mean_iou == pytest.approx(by_class.mean())
    assert found.macro_f1 == pytest.approx(reference.f1_score(true, made, labels=present, average="macro"))
    assert found.accuracy == pytest.approx(reference.accuracy_score(true, made))


def test_a_labelled_pixel_without_prediction_is_an_error():
    labels = np.array([[0, 0, 1, 1]], dtype=np.uint8)
    predicted = np.array([[0, 255, 1, 1]], dtype=np.uint8)
    found = score(confusion_matrix(labels, predicted, 2))
    assert found.accuracy == 0.75
    np.testing.assert_allclose(found.iou, [0.5, 1.0])


def test_blocks_count_every_labelled_pixel_once(maps):
    labels, predicted = maps
    squares = block_errors(labels, predicted, 16)
    assert len(squares) == 3 * 4
    first = (labels[:16, :16] != 255) & (labels[:16, :16] != predicted[:16, :16])
    assert squares[0].tolist() == [first.sum(), (labels[:16, :16] != 255).sum()]
    wrong, labelled = squares.sum(axis=0)
    assert wrong / labelled == pytest.approx(1 - score(confusion_matrix(labels, predicted, 4)).accuracy)


def test_blocks_without_labels_are_left_out():
    labels = np.full((4, 8), 255, dtype=np.uint8)
    labels[:, :4] = 0
    assert block_errors(labels, np.zeros_like(labels), 4).tolist() == [[0, 16]]
