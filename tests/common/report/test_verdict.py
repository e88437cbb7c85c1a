from __future__ import annotations

import pytest

from common.report.comparison import Metric
from common.report.verdict import verdict

FLOOR = {"naive": (0.5,)}
RIDGE = {"ridge": (0.4,)}


def test_a_win_needs_both_tests(make):
    sentences = verdict(
        make(
            {"informer": (0.36, 0.36)}, RIDGE, FLOOR,
            [("informer", "ridge", -0.04, 0.003), ("informer", "naive", -0.14, 0.0004)],
        )
    )  # fmt: skip
    assert sentences == (
        "Attention is better here; whether the gain is worth the bill below is for its user to say.",
        "informer is 10.0% better than the best baseline, ridge, on MSE, 0.3600 against 0.4000; "
        "the difference stands out from the variation over the test set (adjusted p = 0.003, 20 blocks).",
        "informer is 28.0% better than the floor, naive, on MSE, 0.3600 against 0.5000; "
        "the difference stands out from the variation over the test set (adjusted p < 0.001, 20 blocks).",
        "The bill of informer against ridge: 12 times the fit time (5.7 min against 28.0 s), "
        "2 times the prediction time (3 s against 1.5 s) and 6.2 times the parameters (400,000 against 65,000).",
        "Over 2 seeds, the scores of informer and those of ridge do not overlap.",
    )


@pytest.mark.parametrize(
    ("p_ridge", "p_naive", "unclear"),
    [
        (0.2, 0.001, "the best baseline"),
        (0.001, 0.2, "the floor"),
        (0.2, 0.2, "the best baseline or the floor"),
        (0.05, 0.001, "the best baseline"),  # the level itself is not under it
    ],
)
def test_an_advantage_within_the_noise_is_no_win(make, p_ridge, p_naive, unclear):
    sentences = verdict(
        make(
            {"informer": (0.39,)}, RIDGE, FLOOR,
            [("informer", "ridge", -0.01, p_ridge), ("informer", "naive", -0.11, p_naive)],
        )
    )  # fmt: skip
    assert sentences[0] == (
        f"Attention does not earn its cost here: no advantage over {unclear} stands out from the noise."
    )
    assert "within the noise of the test set" in " ".join(sentences)


def test_a_loss_is_called_a_loss_and_the_leader_named(make):
    tests = [("informer", "ridge", 0.04, 0.001), ("informer", "naive", -0.06, 0.001)]
    sentences = verdict(make({"informer": (0.44,)}, RIDGE, FLOOR, tests))
    assert sentences[0] == "Attention loses here: it does not earn its cost."
    assert sentences[1].startswith("informer is 10.0% worse than the best baseline, ridge, on MSE")
    assert "The best score on MSE is that of ridge, a baseline (0.4)." in sentences


def test_the_floor_may_be_the_best(make):
    tests = [("informer", "ridge", -0.1, 0.001), ("informer", "naive", 0.1, 0.001)]
    sentences = verdict(make({"informer": (0.6,)}, {"ridge": (0.7,)}, FLOOR, tests))
    assert sentences[0] == "Attention loses here: it does not earn its cost."
    assert "The best score on MSE is that of naive, the floor itself (0.5)." in sentences


def test_a_test_against_the_score_calls_no_winner(make):
    tests = [("informer", "ridge", 0.01, 0.001), ("informer", "naive", -0.14, 0.001)]
    sentences = verdict(make({"informer": (0.36,)}, RIDGE, FLOOR, tests))
    assert sentences[0] == "No winner is called: score and test point in different directions."
    assert "point the other way" in sentences[1]


def test_a_test_may_be_given_the_other_way_round(make):
    tests = [("ridge", "informer", 0.04, 0.001), ("naive", "informer", 0.14, 0.001)]
    assert verdict(make({"informer": (0.36,)}, RIDGE, FLOOR, tests))[0].startswith("Attention is better here")


def test_no_test_no_winner(make):
    sentences = verdict(make({"informer": (0.36,)}, RIDGE, FLOOR))
    assert sentences[0].startswith("No winner is called")
    assert "was not tested" in sentences[1]


def test_too_few_blocks_no_winner(make):
    tests = [("informer", "ridge", -0.04, 0.001), ("informer", "naive", -0.14, 0.001)]
    sentences = verdict(make({"informer": (0.36,)}, RIDGE, FLOOR, tests, blocks=1))
    assert sentences[0].startswith("No winner is called")
    assert "fewer than two independent blocks" in sentences[1]


def test_higher_is_better(make):
    # Losses fall where the score rises: the sign of the difference is that of losses.
    tests = [("swin", "unet", -0.02, 0.001), ("swin", "boosting", -0.2, 0.001)]
    sentences = verdict(
        make({"swin": (0.72,)}, {"unet": (0.70,), "deeplab": (0.6,)}, {"boosting": (0.5,)}, tests, "higher")
    )
    assert sentences[0].startswith("Attention is better here")
    assert sentences[1].startswith("swin is 2.9% better than the best baseline, unet, on MSE, 0.7200 against 0.7000")


def test_the_best_of_several_attention_models_is_judged_and_that_is_said(make):
    tests = [("a", "ridge", -0.04, 0.001), ("a", "naive", -0.14, 0.001), ("b", "ridge", 0.2, 0.001)]
    sentences = verdict(make({"b": (0.6,), "a": (0.36,)}, RIDGE, FLOOR, tests))
    assert sentences[1].startswith("a is 10.0% better")
    assert sentences[-1].startswith("a is the best of 2 attention models by its test score")


def test_seeds(make):
    def last(attention, ridge):
        return verdict(make({"informer": attention}, {"ridge": ridge}, FLOOR))[-1]

    assert last((0.36,), (0.4,)) == "informer was trained with one seed: its spread over seeds is unknown."
    assert last((0.36, 0.41), (0.4,)).endswith("overlap, so that another seed could turn the order.")
    assert last((0.36, 0.37), (0.4, 0.39)).endswith("do not overlap.")


def test_noise_at_no_higher_cost(make):
    comparison = make({"informer": (0.39,)}, {}, FLOOR, [("informer", "naive", -0.01, 0.5)])
    cheap = [*comparison.rows]
    object.__setattr__(cheap[0], "fit_seconds", 0.0)
    object.__setattr__(cheap[0], "predict_seconds", 0.1)
    assert verdict(comparison)[0] == "Attention is not shown to be better here, but it costs no more either."


def test_without_baselines_the_bill_is_held_against_the_floor(make):
    sentences = verdict(make({"informer": (0.36,)}, {}, FLOOR, [("informer", "naive", -0.14, 0.001)]))
    assert sentences[0] == "Attention is better than the floor here; there is no baseline to hold it against."
    assert sentences[2] == (
        "The bill of informer against naive: fit time 5.7 min against 0 s, "
        "30 times the prediction time (3 s against 0.1 s) and parameters 400,000 against 0."
    )


def test_nothing_to_judge(make):
    assert verdict(make({}, RIDGE, FLOOR)) == (
        "No verdict: it takes an attention model and another model with a score.",
    )
    assert verdict(make({"informer": (0.3,)}, {}, {}))[0].startswith("No verdict")
    coverage = (Metric("mse", "Coverage", None),)
    assert verdict(make({"informer": (0.3,)}, RIDGE, FLOOR, metrics=coverage)) == (
        "No verdict: Coverage has no better end.",
    )


def test_seeds_without_a_score_are_left_out_and_named(make):
    tests = [("informer", "ridge", -0.04, 0.001), ("informer", "naive", -0.14, 0.001)]
    nan = float("nan")
    sentences = verdict(make({"informer": (0.36, nan, 0.36), "diverged": (nan,)}, RIDGE, FLOOR, tests))
    assert sentences[1].startswith("informer is 10.0% better")
    assert sentences[-2:] == (
        "informer has no finite MSE for 1 of 3 seeds, and its figures leave them out.",
        "diverged has no finite MSE for 1 of 1 seeds, and its figures leave them out.",
    )
