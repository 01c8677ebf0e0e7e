"""The intervals on the page are valid for any order of review, and never narrower than the decisions allow."""

import numpy as np
import pytest
from scipy.stats import binom

from neighboragg._review import queue
from neighboragg._review.queue import Counts
from neighboragg._review.store import Decision
from neighboragg.labels._review_set import ReviewItem, ReviewSet
from neighboragg.promises import errors_left_interval, precision_interval
from sizes import draws


def item(row, queue, score=0.0):
    return ReviewItem(
        row=row, content={"text": ""}, given="a", suggested="b", score=score, trust=(0.5, 0.5), queue=queue
    )


def decision(row, wrong):
    return Decision(row + 1, row, "relabel" if wrong else "keep", "b" if wrong else "a", "Ada", "", 0)


def plan(n_flagged=40, n_random=30, n_rows=400, sample_size=20, seed=0, listed=None):
    flagged = [item(row, "flagged", float(row)) for row in range(listed or n_flagged)]
    drawn = [item(200 + row, "random") for row in range(n_random)]
    return ReviewSet(
        classes=("a", "b"),
        n_rows=n_rows,
        n_flagged=n_flagged,
        items=tuple(flagged + drawn),
        sample_size=sample_size,
        seed=seed,
    )


def review_statistics(review_set, decisions, confidence_level=0.95):
    counts = []
    for items in (review_set.flagged, review_set.sample, review_set.random):
        found = [decisions[entry.row].action for entry in items if entry.row in decisions]
        wrong, right = found.count("relabel"), found.count("keep")
        counts.append(Counts(wrong, right, len(items) - wrong - right))
    return queue.review_statistics(review_set, *counts, confidence_level=confidence_level)


def decide_all(items, wrong):
    return {entry.row: decision(entry.row, entry.row in wrong) for entry in items}


def test_nothing_decided():
    statistics = review_statistics(plan(), {})
    assert statistics.precision == (0.0, 1.0)
    assert statistics.errors_left == (0, 330)
    assert statistics.errors_estimate is None
    assert statistics.n_unseen == 330
    assert (statistics.flagged.open, statistics.sample.open, statistics.random.open) == (40, 20, 30)


def test_nothing_listed():
    statistics = review_statistics(plan(n_flagged=0, n_random=0), {})
    assert statistics.precision is None
    assert statistics.errors_left is None


def test_a_completed_sample_gives_the_exact_interval():
    review_set = plan()
    sample = [entry.row for entry in review_set.sample]
    statistics = review_statistics(
        review_set, decide_all(review_set.sample, sample[:15]), confidence_level=0.9
    )
    expected = precision_interval(15, 20, n_flagged=40, confidence_level=0.9)
    assert statistics.precision == expected
    assert statistics.confidence_level == 0.9
    drawn = [entry.row for entry in review_set.random]
    statistics = review_statistics(review_set, decide_all(review_set.random, drawn[:2]))
    assert statistics.errors_left == errors_left_interval(2, 30, 330)
    assert statistics.errors_estimate == pytest.approx(22)


def test_decisions_in_score_order_alone_do_not_give_an_estimate():
    """Twenty wrong labels at the top bound the share from below, but do not inform about the rest."""
    review_set = plan(sample_size=1)
    top = review_set.flagged[:20]
    unsampled = [entry for entry in top if entry not in review_set.sample]
    statistics = review_statistics(review_set, decide_all(unsampled, {entry.row for entry in unsampled}))
    assert statistics.precision == (len(unsampled) / 40, 1.0)
    assert statistics.flagged.wrong == statistics.flagged.decided == len(unsampled)


def test_open_rows_widen_both_ends():
    review_set = plan()
    sample = [entry.row for entry in review_set.sample]
    decisions = decide_all(review_set.sample, sample[:10])
    for row, action in ((sample[0], "unsure"), (sample[-1], "skip")):
        decisions[row] = Decision(1, row, action, None, "Ada", "", 0)
    statistics = review_statistics(review_set, decisions)
    assert (statistics.sample.wrong, statistics.sample.right, statistics.sample.open) == (9, 9, 2)
    low = precision_interval(9, 20, n_flagged=40)[0]
    high = precision_interval(11, 20, n_flagged=40)[1]
    assert statistics.precision == (low, high)


def test_when_all_flagged_rows_are_decided_the_share_is_known():
    review_set = plan()
    statistics = review_statistics(review_set, decide_all(review_set.flagged, set(range(10))))
    assert statistics.precision == (0.25, 0.25)


def test_certainty_beats_a_sample_that_misleads():
    """The sample shows no wrong label, the rest is known to be all wrong: only what is certain remains."""
    review_set = plan()
    sample = {entry.row for entry in review_set.sample}
    wrong = {entry.row for entry in review_set.flagged} - sample
    decisions = decide_all(review_set.flagged, wrong)
    left_open = sorted(wrong)[0]
    del decisions[left_open]
    assert review_statistics(review_set, decisions).precision == (19 / 40, 20 / 40)


def test_a_set_that_lists_some_flagged_rows_speaks_for_those():
    review_set = plan(n_flagged=80, listed=40)
    statistics = review_statistics(review_set, decide_all(review_set.flagged, set(range(40))))
    assert statistics.precision == (1.0, 1.0)
    assert statistics.n_unseen == 400 - 80 - 30


@pytest.mark.parametrize("n_wrong", [4, 20, 33])
def test_the_precision_holds_whatever_the_order_and_whenever_one_looks(n_wrong):
    """Score order, peeking after every tenth decision, some rows left open: one miss anywhere is a miss."""
    repetitions, level = draws(150), 0.9
    rng = np.random.default_rng(n_wrong)
    missed = 0
    for seed in range(repetitions):
        review_set = plan(seed=seed, sample_size=15, n_random=0)
        # Low scores are worse, as they are in life; the sample must not care.
        wrong = set(range(n_wrong))
        order = [entry for entry in review_set.flagged if rng.random() > 0.1]
        decisions = {}
        for place, entry in enumerate(review_set.sample + tuple(order)):
            decisions[entry.row] = decision(entry.row, entry.row in wrong)
            if place % 10 == 4:
                low, high = review_statistics(review_set, decisions, confidence_level=level).precision
                if not low <= n_wrong / 40 <= high:
                    missed += 1
                    break
    assert missed <= binom.ppf(1 - 1e-6, repetitions, 1 - level)


def test_the_errors_left_hold_whatever_is_open():
    repetitions, level = draws(300, 1500), 0.9
    rng = np.random.default_rng(5)
    review_set = plan(n_random=30)
    rows = [entry.row for entry in review_set.random]
    missed = 0
    for _ in range(repetitions):
        # 360 unflagged rows, 40 of them wrong; the random rows are any 30 of them.
        drawn = rng.permutation(360)[:30] < 40
        wrong = {row for row, is_wrong in zip(rows, drawn, strict=True) if is_wrong}
        decisions = decide_all(review_set.random, wrong)
        for row in rows[: rng.integers(0, 30)]:
            # What is hard is left open more often where the label is wrong.
            if rng.random() < (0.5 if row in wrong else 0.1):
                del decisions[row]
        low, high = review_statistics(review_set, decisions, confidence_level=level).errors_left
        missed += not low <= 40 - len(wrong) <= high
    assert missed <= binom.ppf(1 - 1e-6, repetitions, 1 - level)
