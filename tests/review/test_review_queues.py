"""Queues and filters return the same rows as a plain list, without iterating over it."""

import sys
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from neighboragg._review.queue import Queues, ReviewFilter
from neighboragg._review.store import DecisionStore

ACTIONS = ("keep", "relabel", "exclude", "skip", "unsure")
SHOWN = {"todo": {None}, "later": {"skip", "unsure"}, "done": {"keep", "relabel", "exclude"}}
SHOWN["all"] = set().union(*SHOWN.values())
FILTERS = [
    ReviewFilter(),
    ReviewFilter("sample"),
    ReviewFilter("random"),
    ReviewFilter(label="cat"),
    ReviewFilter(low=-4.5, high=-2.05),
    ReviewFilter(search="note 1"),
    ReviewFilter(label="dog", search="NOTE 2", low=-4.0),
    ReviewFilter(search="nowhere"),
]


def matches(chosen, item):
    texts = [item.title, item.given, item.suggested, *map(str, item.content.values())]
    return (
        (not chosen.label or chosen.label in (item.given, item.suggested))
        and (chosen.low is None or item.score >= chosen.low)
        and (chosen.high is None or item.score <= chosen.high)
        and any(chosen.search.lower() in text.lower() for text in texts)
    )


def check(queues, review_set, actions):
    """Compare every filter with the list of its rows."""
    for chosen in FILTERS:
        order = [item.row for item in getattr(review_set, chosen.queue)]
        rows = [item.row for item in getattr(review_set, chosen.queue) if matches(chosen, item)]
        queue = queues.filtered(chosen)
        assert len(queue) == len(rows)
        assert queue.counts.wrong == sum(actions.get(row) == "relabel" for row in rows)
        assert queue.counts.right == sum(actions.get(row) == "keep" for row in rows)
        for show, kinds in SHOWN.items():
            shown = [row for row in rows if actions.get(row) in kinds]
            assert list(queue.rows(show)) == shown
            assert queue.count(show) == len(shown)
            for place, row in enumerate(order):
                before = [other for other in order[:place] if other in shown]
                after = [other for other in order[place + 1 :] if other in shown]
                assert queue.around(row, show) == (
                    before[-1] if before else None,
                    after[0] if after else None,
                )
                assert queue.number(row, show) == (shown.index(row) + 1 if row in shown else None)


@pytest.fixture
def some_set(make_review_set):
    return make_review_set(n_flagged=30, n_random=12, sample_size=9)


def test_queues_follow_the_decisions(tmp_path, some_set):
    """Of this process, and of another one that writes to the same file."""
    rng = np.random.default_rng(0)
    path = tmp_path / "d.sqlite"
    with DecisionStore(path, some_set) as store, DecisionStore(path, some_set) as other:
        queues = Queues(some_set, store)
        actions, undoable = {}, []
        check(queues, some_set, actions)
        for step in range(60):
            writer = (store, other)[step % 2]
            if undoable and rng.random() < 0.3:
                decision = undoable.pop()
                writer.undo(decision.id, reviewer="Ada")
                before = store.in_force(decision.row)
                actions[decision.row] = before and before.action
            else:
                item = some_set.items[rng.integers(len(some_set.items))]
                action = ACTIONS[rng.integers(5)]
                undoable.append(
                    writer.record(
                        item.row,
                        action=action,
                        label=item.suggested,
                        reviewer="Ada",
                        based_on=store.version(item.row),
                    )
                )
                actions[item.row] = action
            if step % 10 == 0:
                check(queues, some_set, actions)
        check(queues, some_set, actions)
        # One that starts now sees the same.
        check(Queues(some_set, other), some_set, actions)


def test_filters_are_forgotten_in_the_end_and_found_again(tmp_path, some_set):
    with DecisionStore(tmp_path / "d.sqlite", some_set) as store:
        queues = Queues(some_set, store)
        kept = queues.filtered(FILTERS[3])
        assert queues.filtered(replace(FILTERS[3], show="done")) is kept
        for number in range(40):
            queues.filtered(ReviewFilter(search=f"{number}"))
        store.record(0, action="keep", reviewer="Ada", based_on=0)
        again = queues.filtered(FILTERS[3])
        assert again is not kept
        assert again.count("done") == 1


def work_of(action):
    """Number of Python calls that an action takes."""
    count = 0

    def note(frame, event, argument):
        nonlocal count
        count += 1

    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("query", [{}, {"label": "cat"}, {"search": "note 1"}, {"show": "done"}])
def test_a_page_of_many_rows_takes_as_much_work_as_one_of_few(open_pages, make_item, make_review_set, query):
    calls = []
    for n_flagged in (50, 2000):
        items = tuple(make_item(row, name=f"line {row}") for row in range(n_flagged))
        (page,) = open_pages(
            make_review_set(items=items, n_flagged=n_flagged, n_rows=5000), store=f"{n_flagged}.sqlite"
        )
        site = page.app.state.site
        chosen = ReviewFilter.from_query(query, site.review_set.classes)
        for row in range(5):
            site.store.record(row, action="keep", reviewer="Ada", based_on=0)
        site.item_page(20, "session", chosen, None)
        calls.append(work_of(partial(site.item_page, 21, "session", chosen, None)))
    assert calls[1] <= 1.1 * calls[0]
