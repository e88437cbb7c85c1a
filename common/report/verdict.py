"""What a comparison allows one to say, in plain sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from common.report import scores
from common.report.comparison import Comparison, Metric, Row, Test
from common.report.significance import LEVEL

Outcome = Literal["better", "worse", "noise", "contradicted", "untested"]


@dataclass(frozen=True)
class _Duel:
    """The best attention model against one other model, on the primary metric."""

    attention: Row
    rival: Row
    metric: Metric
    test: Test | None

    @property
    def ahead(self) -> bool:
        """Whether the score of the attention model is better, whatever the test says."""
        return scores.ranked([self.rival, self.attention], self.metric)[0] is self.attention

    @property
    def outcome(self) -> Outcome:
        if self.test is None or self.test.blocks < 2:
            return "untested"
        if self.test.p_adjusted >= LEVEL:
            return "noise"
        tested_ahead = (self.test.difference < 0) == (self.test.model == self.attention.model)
        if tested_ahead != self.ahead:
            return "contradicted"
        return "better" if self.ahead else "worse"

    def sentence(self, rival: str) -> str:
        """By how much, and whether that can be told from noise; ``rival`` says what the other model is."""
        ours, theirs = (scores.mean(row, self.metric) or 0.0 for row in (self.attention, self.rival))
        places = scores.decimals([ours, theirs], self.metric)
        change = scores.gain(ours, theirs, self.metric)
        by = "" if change is None else f"{abs(change):.1f}% "
        stand = f"{by}better than" if self.ahead else "level with" if ours == theirs else f"{by}worse than"
        figures = f"{scores.number(ours, places)} against {scores.number(theirs, places)}"
        head = f"{self.attention.model} is {stand} {rival}, {self.rival.model}, on {self.metric.label}, {figures}"
        return f"{head}; {self._support()}."

    def _support(self) -> str:
        if self.test is None:
            return "the difference was not tested, so it shows nothing either way"
        if self.outcome == "untested":
            return "the test set holds fewer than two independent blocks, too few to test the difference"
        p = f"adjusted p {_relation(self.test.p_adjusted)}, {self.test.blocks} blocks"
        return {
            "better": f"the difference stands out from the variation over the test set ({p})",
            "worse": f"the difference stands out from the variation over the test set ({p})",
            "noise": f"that is within the noise of the test set ({p})",
            "contradicted": f"but the losses of the single test items point the other way ({p})",
        }[self.outcome]


def verdict(comparison: Comparison) -> tuple[str, ...]:
    """Say who is best, whether attention is better than the best baseline and the floor, and the bill.

    A win is claimed only where the score is better and the paired test, adjusted for all tests of the
    comparison, carries it, against the best baseline and against the floor. The best attention model and
    the best baseline are picked by their test scores; the adjustment over all pairs covers that choice.

    Args:
        comparison: The comparison.

    Returns:
        Sentences, the first of them the answer in short.
    """
    metric = comparison.metrics[0]
    ranking = scores.ranked(comparison.rows, metric)
    attention = scores.ranked(comparison.rows, metric, "attention")
    baselines = scores.ranked(comparison.rows, metric, "baseline")
    floor = scores.floor_row(comparison)
    if metric.better is None:
        return (f"No verdict: {metric.label} has no better end.",)
    if not attention or not (baselines or floor):
        return ("No verdict: it takes an attention model and another model with a score.",)

    duels: dict[str, _Duel] = {}
    if baselines:
        duels["the best baseline"] = _duel(comparison, attention[0], baselines[0])
    if floor:
        duels["the floor"] = _duel(comparison, attention[0], floor)
    rival = next(iter(duels.values())).rival
    sentences = [_headline(duels, rival)]
    sentences += [duel.sentence(name) for name, duel in duels.items()]
    if ranking[0] is not attention[0]:
        sentences.append(_leader(ranking[0], metric))
    sentences.append(_bill(attention[0], rival))
    sentences.append(_seeds(attention[0], rival, metric))
    if len(attention) > 1:
        sentences.append(
            f"{attention[0].model} is the best of {len(attention)} attention models by its test score; "
            "the adjusted p-values allow for that choice."
        )
    return (*sentences, *_absent(comparison.rows, metric))


def _duel(comparison: Comparison, attention: Row, rival: Row) -> _Duel:
    names = {attention.model, rival.model}
    tests = [test for test in comparison.tests if {test.model, test.against} == names]
    return _Duel(attention, rival, comparison.metrics[0], tests[0] if tests else None)


def _headline(duels: dict[str, _Duel], rival: Row) -> str:
    outcomes = {duel.outcome for duel in duels.values()}
    if outcomes == {"better"} and rival.role == "floor":
        return "Attention is better than the floor here; there is no baseline to hold it against."
    if outcomes == {"better"}:
        return "Attention is better here; whether the gain is worth the bill below is for its user to say."
    if "worse" in outcomes:
        return "Attention loses here: it does not earn its cost."
    if "contradicted" in outcomes:
        return "No winner is called: score and test point in different directions."
    if "untested" in outcomes:
        return "No winner is called: the test set does not allow a test, or none was made."
    if _cheaper(next(iter(duels.values())).attention, rival):
        return "Attention is not shown to be better here, but it costs no more either."
    unclear = " or ".join(name for name, duel in duels.items() if duel.outcome == "noise")
    return f"Attention does not earn its cost here: no advantage over {unclear} stands out from the noise."


def _leader(best: Row, metric: Metric) -> str:
    value = scores.mean(best, metric) or 0.0
    role = {"attention": "an attention model", "baseline": "a baseline", "floor": "the floor itself"}[best.role]
    return f"The best score on {metric.label} is that of {best.model}, {role} ({value:.{metric.digits}g})."


def _cheaper(attention: Row, rival: Row) -> bool:
    return attention.fit_seconds <= rival.fit_seconds and attention.predict_seconds <= rival.predict_seconds


def _bill(attention: Row, rival: Row) -> str:
    items = (
        ("fit time", attention.fit_seconds, rival.fit_seconds, scores.seconds),
        ("prediction time", attention.predict_seconds, rival.predict_seconds, scores.seconds),
        ("parameters", attention.parameters, rival.parameters, lambda value: scores.count(int(value))),
    )
    parts = []
    for name, ours, theirs, write in items:
        figures = f"{write(ours)} against {write(theirs)}"
        parts.append(f"{_times(ours / theirs)} the {name} ({figures})" if theirs else f"{name} {figures}")
    return f"The bill of {attention.model} against {rival.model}: {', '.join(parts[:-1])} and {parts[-1]}."


def _seeds(attention: Row, rival: Row, metric: Metric) -> str:
    ours, theirs = scores.values(attention, metric), scores.values(rival, metric)
    if len(ours) < 2:
        return f"{attention.model} was trained with one seed: its spread over seeds is unknown."
    apart = max(ours) < min(theirs) or max(theirs) < min(ours)
    overlap = "do not overlap" if apart else "overlap, so that another seed could turn the order"
    return f"Over {len(ours)} seeds, the scores of {attention.model} and those of {rival.model} {overlap}."


def _absent(rows: tuple[Row, ...], metric: Metric) -> list[str]:
    """A mean over the seeds that went well must not hide those that did not."""
    counts = [(row.model, len(row.scores) - len(scores.values(row, metric)), len(row.scores)) for row in rows]
    return [
        f"{model} has no finite {metric.label} for {absent} of {total} seeds, and its figures leave them out."
        for model, absent, total in counts
        if absent
    ]


def _times(ratio: float) -> str:
    return f"{ratio:,.0f} times" if ratio >= 10 else f"{ratio:.2g} times"


def _relation(p: float) -> str:
    shown = scores.probability(p)
    return shown if shown.startswith("<") else f"= {shown}"
