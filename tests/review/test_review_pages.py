"""Pages without JavaScript: rows in order, forms, filters, conflicts, statistics."""

import re
import sqlite3

import pytest


class Clock:
    now = 1_700_000_000.0

    def __call__(self):
        return self.now


def test_rows_come_most_suspicious_first(open_pages, review_set):
    (page,) = open_pages(review_set)
    seen = []
    for _ in range(12):
        seen.append(page.row)
        page.decide("keep")
    assert seen == list(range(12))
    assert "Nothing left to review here" in page.text
    assert "12 of 12 looked at." in page.text
    assert page.get("/done").status_code == 200
    page.undo()
    assert page.row == 11
    assert "Row 11: decision undone." in page.text


def test_a_row_shows_its_evidence(open_pages, review_set):
    (page,) = open_pages(review_set)
    page.get("/item/2")
    text = page.text
    assert "Label given hen" in text and "Label suggested cat" in text
    assert "score −4.80" in text
    assert "dog" in text and "0.700" in text and 'width="70.00%"' in page.html
    assert "reason 2 &amp; more" in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "Labeled hen given Row 90 91 distance 0 0.5" in text
    assert "Labeled cat suggested Row 92 93 distance 1 1.5" in text
    # Weight 2 against a median of 90.5, in standard deviations of about 40; the note is nobody else's.
    assert re.search(r"weight 2 90.5 ≠ hen 92.5 ≠ cat", text)
    assert re.search(r"note &lt;script&gt;alert\(1\)&lt;/script&gt; note 90 ≠ hen note 92 ≠ cat", text)
    assert re.search(r"legs 2 3 ≠ hen 3 ≠ cat", text)


def test_missing_values_and_unlisted_neighbors(open_pages, make_item, make_review_set):
    content = {"weight": None, "legs": float("nan"), "note": True}
    near = make_item(1).given_neighbors
    item = make_item(3, content=content, given_neighbors=near, suggested_neighbors=())
    (page,) = open_pages(make_review_set(items=(item,), n_flagged=1))
    assert "weight missing 90.5 ≠ cat" in page.text
    assert "legs missing 3 ≠ cat" in page.text
    assert "note true note 90 ≠ cat" in page.text
    assert "No neighbors of this class are listed." in page.text


def test_a_wide_table_shows_the_columns_that_differ_most(open_pages, make_item, make_review_set):
    names = tuple(f"c{number}" for number in range(20))
    near = make_item(1).given_neighbors[:1]
    near = tuple(type(one)(one.row, one.distance, dict.fromkeys(names, 0.0)) for one in near)
    content = dict.fromkeys(names, 0.0) | {"c19": 5.0}
    item = make_item(3, content=content, given_neighbors=near, suggested_neighbors=())
    (page,) = open_pages(make_review_set(items=(item,), n_flagged=1, columns=names))
    assert page.text.count("≠ cat") == 1
    first, _, rest = page.text.partition("Columns that differ less (8)")
    assert "c19 5 0 ≠ cat" in first
    assert "c11 0" in rest.partition("Nearest neighbors")[0]


def test_text_rows(open_pages, make_item, make_review_set):
    near = tuple(
        type(one)(one.row, one.distance, {"text": f"near {one.row}"}) for one in make_item(1).neighbors
    )
    item = make_item(3, content={"text": "first line\nsecond"}, given_neighbors=near, suggested_neighbors=())
    (page,) = open_pages(make_review_set(items=(item,), n_flagged=1))
    assert '<p class="text">first line\nsecond</p>' in page.html
    assert "near 91 row 91 · distance 0.5" in page.text


def test_many_classes(open_pages, make_item, make_review_set):
    classes = tuple(f"class {number}" for number in range(12))
    item = make_item(
        3, given="class 11", suggested="class 0", trust=tuple(number / 20 for number in range(12))
    )
    (page,) = open_pages(make_review_set(items=(item,), n_flagged=1, classes=classes))
    assert "not shown: 5." in page.text
    assert "data-number" not in page.html
    bars = re.search(r'<table class="bars">(.*?)</table>', page.html, re.S)[1]
    assert re.findall(r">(class \d+)", bars) == [f"class {number}" for number in (11, 10, 9, 8, 7, 6, 0)]


@pytest.mark.parametrize(
    ("action", "label", "said", "kept"),
    [
        ("keep", None, "Row 0 kept.", ("keep", "cat")),
        ("relabel", "dog", "Row 0 relabeled as dog.", ("relabel", "dog")),
        ("relabel", "hen", "Row 0 relabeled as hen.", ("relabel", "hen")),
        ("relabel", "cat", "Row 0 kept.", ("keep", "cat")),
        ("skip", "dog", "Row 0 skipped.", ("skip", None)),
        ("unsure", "dog", "Row 0 marked unsure.", ("unsure", None)),
    ],
)
def test_actions(open_pages, review_set, action, label, said, kept):
    (page,) = open_pages(review_set)
    page.decide(action, label)
    assert page.row == 1
    assert f"{said} 1 of 12 looked at." in page.text
    decision = page.app.state.store.current()[0]
    assert (decision.action, decision.label, decision.reviewer) == (*kept, "reviewer 1")
    page.get("/item/0")
    assert "by reviewer 1" in page.text and "You may decide again." in page.text
    assert "History of this row (1)" in page.text


def test_a_row_is_excluded(open_pages, review_set):
    (page,) = open_pages(review_set)
    page.decide("exclude", note="a copy of row 7")
    assert "Row 0 excluded, with a note. 1 of 12 looked at." in page.text
    page.get("/item/0")
    assert "This row was excluded, noting “a copy of row 7” by reviewer 1" in page.text
    # Nobody said that its label is wrong, or right.
    assert "0 of 0 decided flagged rows" in page.text
    page.get("/", params={"show": "done"})
    assert page.row == 0


def test_a_new_class_can_be_given_to_other_rows(open_pages, review_set):
    (page,) = open_pages(review_set)
    assert '<option value="cow"' not in page.html
    page.decide("class", chosen_class="cow")
    assert page.answer.status_code == 400
    page.enter()
    page.decide("new_class", new_class="cow")
    assert "Row 0 relabeled as cow." in page.text
    assert '<option value="cow">cow</option>' in page.html
    page.decide("class", chosen_class="cow")
    assert "Row 1 relabeled as cow." in page.text
    assert "2 of 2 decided flagged rows had a wrong label" in page.text
    page.undo()
    page.get("/item/0")
    page.undo()
    assert '<option value="cow"' not in page.html


def test_a_note_alone_decides_nothing_new(open_pages, review_set):
    (page,) = open_pages(review_set)
    store = page.app.state.store
    page.decide("note", note="ask Bob")
    assert "Row 0 marked unsure, with a note." in page.text
    assert (store.in_force(0).action, store.in_force(0).note) == ("unsure", "ask Bob")
    for key, field, label in (("relabel", "new_label", "hen"), ("new_class", "new_class", "cow")):
        page.get("/item/0")
        page.decide(key, **{field: label})
        page.get("/item/0")
        page.decide("note", note="Bob agrees")
        assert f"Row 0 relabeled as {label}, with a note." in page.text
        assert (store.in_force(0).label, store.in_force(0).note) == (label, "Bob agrees")
    page.decide("note", note=" ")
    assert page.answer.status_code == 400
    assert "There is nothing to save: the note is empty." in page.text


def test_the_enter_key_saves_the_text(open_pages, review_set):
    (page,) = open_pages(review_set)
    # Without a script a browser presses the first button of the form.
    assert (
        re.search(r'<form id="decide".*?<button[^>]*name="action" value="(\w+)"', page.html, re.S)[1]
        == "enter"
    )
    page.decide("enter", note="hm", new_class="")
    page.decide("enter", note="", new_class="cow")
    log = page.app.state.store.log()
    assert [(entry.action, entry.label, entry.note) for entry in log] == [
        ("unsure", None, "hm"),
        ("relabel", "cow", ""),
    ]


def test_search(open_pages, make_item, make_review_set):
    items = [
        make_item(0),
        make_item(1, content={"text": "Straße"}, details={"city": "Oslo"}),
        make_item(2, name="line 400"),
    ]
    (page,) = open_pages(make_review_set(items=tuple(items), n_flagged=3))

    def found(text):
        page.get("/", params={"search": text})
        rows = []
        while "No rows match" not in page.text and "Nothing left" not in page.text:
            rows.append(int(re.search(r'name="row" value="(\d+)"', page.html)[1]))
            page.decide("skip", search=text)
        while "Undo" in page.text and 'name="undoes"' in page.html:
            page.undo()
        return rows

    assert found("STRASSE") == [1]
    assert found("oslo") == [1]
    assert found("Line 400") == [2]
    assert found("note 0") == [0]
    assert found("row 0") == [0]
    assert found("dog") == [0, 1]
    assert found("%") == found("no such text") == []
    assert "Showing not yet looked at with “no such text”. Clear" in page.text


def test_rows_are_called_as_in_the_file(open_pages, make_item, make_review_set):
    near = make_item(1).given_neighbors
    near = tuple(type(one)(one.row, one.distance, one.content, f"line {one.row + 2}") for one in near)
    items = (make_item(3, name="line 5", given_neighbors=near), make_item(4))
    (page,) = open_pages(make_review_set(items=items, n_flagged=2))
    assert '<h1 id="row-heading">Line 5</h1>' in page.html
    assert "Row line 92 line 93 distance" in page.text
    assert "· rows are counted from 0" not in page.text
    page.decide("keep")
    assert "Line 5 kept. 1 of 2 looked at." in page.text and "Undo line 5" in page.text
    assert "· rows are counted from 0" in page.text


def test_flagged_neighbors_are_marked(open_pages, make_item, make_review_set):
    items = tuple(make_item(row) for row in (3, 91))
    (page,) = open_pages(make_review_set(items=items, n_flagged=2))
    assert "Row 90 91 flagged distance" in page.text


def test_other_columns_and_facts(open_pages, make_item, make_review_set):
    item = make_item(
        3, content={"text": "hello"}, details={"city": "Oslo", "age": None}, facts={"votes": 0.25}
    )
    (page,) = open_pages(make_review_set(items=(item,), n_flagged=1))
    assert "hello Other columns (2) city Oslo age missing" in page.text
    assert "votes 0.25" in page.text


def test_the_thing_to_judge_comes_first(open_pages, review_set):
    (page,) = open_pages(review_set)
    order = [page.html.index(f'id="{name}"') for name in ("thing", "trust-heading", "neighbors-heading")]
    assert order == sorted(order)


def test_an_address_with_an_unknown_decision(open_pages, review_set):
    (page,) = open_pages(review_set)
    for did in ("7", "x", "9" * 30):
        page.get("/item/0", params={"did": did})
        assert page.answer.status_code == 200
        assert "looked at." not in page.text


def test_going_back_and_forth(open_pages, review_set):
    (page,) = open_pages(review_set)
    page.decide("keep")

    def way(key):
        found = re.search(rf'href="(/item/\d+)[^"]*" data-key="{key}"', page.html)
        return found and found[1]

    assert (way("p"), way("n j")) == ("/item/0", "/item/2")
    page.get("/item/0")
    assert (way("p"), way("n j")) == (None, "/item/1")
    page.get("/item/11")
    assert (way("p"), way("n j")) == ("/item/10", None)


def test_filters(open_pages, review_set):
    (page,) = open_pages(review_set)

    def rows(**query):
        page.get("/", params=query)
        found = []
        while (
            "Row" in (re.search(r"<h1[^>]*>(.*?)</h1>", page.html, re.S) or [""])[1] and page.row not in found
        ):
            found.append(page.row)
            after = re.search(r'href="([^"]+)" data-key="n j"', page.html)
            if not after:
                break
            page.get(after[1].replace("&amp;", "&"))
        return found

    assert rows() == list(range(12))
    assert rows(label="cat") == [0, 2, 3, 5, 6, 8, 9, 11]
    assert rows(low="-4.7", high="-4.5") == [3, 4, 5]
    assert rows(label="cat", low="-4.7", high="-4.5") == [3, 5]
    assert sorted(rows(queue="random")) == list(range(50, 56))
    assert rows(queue="sample") == [item.row for item in review_set.sample]
    assert rows(low="3") == []
    assert "No rows match" in page.text and "Clear the filter" in page.text


def test_a_filter_travels_along(open_pages, review_set):
    (page,) = open_pages(review_set)
    page.get("/", params={"queue": "random", "label": "cat", "low": "-1", "high": "9.5"})
    first = page.row
    hidden = dict(re.findall(r'name="(queue|label|low|high)" value="([^"]+)"', page.html))
    assert hidden == {"queue": "random", "label": "cat", "low": "-1.0", "high": "9.5"}
    page.decide("keep", **hidden)
    assert page.row != first and page.row >= 50
    assert page.answer.url.params["label"] == "cat"
    assert "Clear" in page.text


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"low": "abc"}, "The lowest score must be a number. Got &#39;abc&#39;."),
        ({"high": "inf"}, "The highest score must be a number. Got &#39;inf&#39;."),
        ({"label": "cow"}, "There is no class &#39;cow&#39;."),
        ({"queue": "x"}, "There is no queue &#39;x&#39; showing &#39;todo&#39;."),
        ({"show": "x"}, "There is no queue &#39;flagged&#39; showing &#39;x&#39;."),
    ],
)
def test_filters_that_mean_nothing(open_pages, review_set, query, message):
    (page,) = open_pages(review_set)
    assert page.get("/", params=query).status_code == 400
    assert message in page.text


def test_skipped_rows_can_be_shown_again(open_pages, make_review_set):
    (page,) = open_pages(make_review_set(n_flagged=3, n_random=0))
    for action in ("skip", "keep", "unsure"):
        page.decide(action)
    assert "Come back to 2 skipped or unsure" in page.text
    page.get("/", params={"show": "later"})
    assert page.row == 0
    page.decide("skip", show="later")
    assert page.row == 2
    page.decide("keep", show="later")
    assert "Nothing left" in page.text
    page.get("/", params={"show": "later"})
    assert page.row == 0
    page.get("/", params={"show": "done"})
    assert page.row == 1
    page.decide("unsure", show="done")
    assert page.row == 2
    page.get("/", params={"show": "all"})
    assert (page.row, page.answer.url.params["show"]) == (0, "all")
    page.get("/item/1", params={"show": "done"})
    assert "of 1 " not in page.text.partition("Label given")[0]


def test_two_reviewers_get_different_rows(open_pages, review_set):
    clock = Clock()
    first, second, third = open_pages(review_set, n=3, clock=clock, lease_seconds=100)
    assert [page.row for page in (first, second, third)] == [0, 1, 2]
    first.decide("keep")
    assert first.row == 3
    second.get("/item/3")
    assert "reviewer 1 is looking at this row too." in second.text
    clock.now += 101
    third.get("/")
    assert third.row == 1


def test_a_conflict_is_shown_and_overwrites_nothing(open_pages, review_set):
    first, second = open_pages(review_set, n=2)
    first.get("/item/4")
    second.get("/item/4")
    first.decide("keep")
    second.decide("relabel", "hen")
    assert second.answer.status_code == 409
    assert "Row 4 was changed while you were looking at it" in second.text
    assert "has not been saved" in second.text
    assert re.search(r"reviewer 1, [-\d]+ [:\d]+ UTC kept dog", second.text)
    assert "You, just now relabeled as hen" in second.text
    store = first.app.state.store
    assert [(entry.action, entry.reviewer) for entry in store.log(4)] == [("keep", "reviewer 1")]

    found = re.search(r'name="version" value="(\d+)"', second.html)[1]
    second.post("/decide", {"row": "4", "version": found, "action": "relabel", "new_label": "hen"})
    assert second.answer.status_code == 200
    assert store.current()[4].label == "hen"
    assert [entry.based_on for entry in store.log(4)] == [0, store.log(4)[0].id]


def test_a_conflict_over_the_same_decision(open_pages, review_set):
    first, second = open_pages(review_set, n=2)
    for page in (first, second):
        page.get("/item/4")
    for page in (first, second):
        page.decide("relabel", "hen")
    assert second.answer.status_code == 409
    assert "You both made the same decision" in second.text
    assert "Replace it with mine" not in second.text


def test_a_conflict_with_an_undo(open_pages, review_set):
    first, second = open_pages(review_set, n=2)
    first.get("/item/4")
    first.decide("keep")
    second.get("/item/4")
    first.undo()
    second.decide("unsure")
    assert second.answer.status_code == 409
    assert "undone No decision is in force now." in second.text
    second.get("/item/4")
    second.decide("unsure")
    first.get("/item/4")
    first.decide("keep")
    second.get("/item/4")
    first.undo()
    second.decide("relabel", "hen")
    assert "undone In force again: marked unsure by reviewer 2." in second.text


def test_an_undo_that_comes_too_late(open_pages, review_set):
    first, second = open_pages(review_set, n=2)
    first.get("/item/4")
    first.decide("keep")
    second.get("/item/4")
    second.decide("unsure")
    first.undo()
    assert first.answer.status_code == 409
    assert "You, just now undone" in first.text
    assert "Replace it with mine" not in first.text
    first.get("/item/4")
    assert "Undo row" not in first.text


def test_sending_a_decision_twice(open_pages, review_set):
    (page,) = open_pages(review_set)
    page.get("/item/4")
    before = page.html
    page.decide("keep")
    page.html = before
    page.decide("keep")
    assert page.answer.status_code == 200
    assert len(page.app.state.store.log()) == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"action": "destroy"}, "Got &#39;destroy&#39; instead."),
        ({"row": "x"}, "The field &#39;row&#39; must be a whole number. Got &#39;x&#39;."),
        ({"row": "77"}, "Row 77 is not in the review set."),
        ({"version": "-1"}, "The field &#39;version&#39; must be a whole number. Got &#39;-1&#39;."),
        ({"version": "9" * 25}, "must be a whole number."),
        ({"action": "relabel"}, "the new label None is not among the 3 classes."),
        ({"queue": "x"}, "There is no queue"),
    ],
)
def test_forms_that_mean_nothing(open_pages, review_set, changes, message):
    (page,) = open_pages(review_set)
    page.decide(**({"action": "keep"} | changes))
    assert page.answer.status_code == 400
    assert message in page.text and "Nothing was saved." in page.text
    assert page.app.state.store.log() == []


def test_pages_that_do_not_exist(open_pages, review_set):
    (page,) = open_pages(review_set)
    assert page.get("/item/77").status_code == 404
    assert "Row 77 is not in the review set." in page.text
    for number in ("x", "-1", "1.0", "9" * 5000, "٣"):
        assert page.get(f"/item/{number}").status_code == 404
    assert page.get("/docs").status_code == 404
    assert page.get("/openapi.json").status_code == 404
    assert page.get("/static/secret").status_code == 404


def test_names(open_pages, review_set):
    first, second = open_pages(review_set, n=2)
    assert ("reviewer 1" in first.text, "reviewer 2" in second.text) == (True, True)
    first.post("/reviewer", {"name": "  Ada   Lovelace ", "row": "5", "queue": "sample"})
    assert (first.row, first.answer.url.params["queue"]) == (5, "sample")
    first.decide("keep")
    assert first.app.state.store.current()[5].reviewer == "Ada Lovelace"
    first.post("/reviewer", {"name": "Éva", "row": ""})
    assert first.answer.status_code == 200 and "Éva" in first.text
    for name in ("", "=HYPERLINK(1)", "<b>", "x" * 41, "-x"):
        second.enter()
        second.post("/reviewer", {"name": name})
        assert second.answer.status_code == 400
        assert "have up to 40 letters" in second.text


def test_the_statistics_show_their_counts(open_pages, review_set):
    (page,) = open_pages(review_set)
    assert page.text.count("Not known yet") == 2
    page.decide("relabel", "dog")
    assert "1 of 1 decided flagged rows had a wrong label" in page.text
    page.get("/", params={"queue": "sample"})
    while "Nothing left" not in page.text:
        page.decide("relabel", "hen" if page.row % 3 != 2 else "dog", queue="sample")
    assert "from the random sample of 5: 5 wrong, 0 right, 0 open." in page.text
    assert re.search(r"\d+ % – 100 %", page.text)
    page.get("/", params={"queue": "random"})
    while "Nothing left" not in page.text:
        page.decide("keep", queue="random")
    assert "Errors left among the 82 unflagged rows not drawn at random 0 – " in page.text
    assert "from the 6 random unflagged rows: 0 wrong, 6 right, 0 open. Best guess: 0." in page.text
    assert "are not a random sample" in page.text
    page.get("/")
    while "Nothing left" not in page.text:
        page.decide("keep")
    assert "Known, not estimated: all 12 flagged rows are decided." in page.text


def test_statistics_without_samples(open_pages, make_item, make_review_set):
    (page,) = open_pages(make_review_set(n_random=0, n_flagged=4))
    assert "Nothing can be said: the review set has no random unflagged rows" in page.text
    assert "queue=random" not in page.html


def test_statistics_of_random_rows_alone(open_pages, make_item, make_review_set):
    item = make_item(3, queue="random", suggested="cat")
    (page,) = open_pages(make_review_set(items=(item,), n_flagged=0, n_rows=100))
    assert "No rows match" in page.text
    page.get("/", params={"queue": "random"})
    assert "No flagged rows are listed." in page.text
    assert "nothing speaks against it" in page.text
    assert 'value="relabel" data-key="r"' not in page.html
    page.decide("keep", queue="random")
    assert "Best guess: 0." in page.text


def test_a_part_of_the_flagged_rows(open_pages, make_review_set):
    (page,) = open_pages(make_review_set(n_flagged=4, items=make_review_set(n_flagged=3).items))
    assert "It speaks for the 3 flagged rows listed here, not for all 4." in page.text


def test_a_failing_disk_is_reported(open_pages, review_set, monkeypatch):
    (page,) = open_pages(review_set)

    def fail(*args, **kwargs):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr("neighboragg._review.store._append", fail)
    page.decide("keep")
    assert page.answer.status_code == 503
    assert "database or disk is full. Your last decision was not saved." in page.text
    monkeypatch.undo()
    page.enter()
    page.decide("keep")
    assert page.answer.status_code == 200


def test_the_store_closes_with_the_server_and_opens_again(open_pages, review_set):
    (page,) = open_pages(review_set)
    with page.client:
        page.decide("keep")
    assert page.app.state.store._database._connection is None
    with page.client:
        page.enter()
    assert page.row == 1


def test_landmarks_and_labels(open_pages, review_set):
    """Every field has a label, the page has its landmarks, and keys are announced."""
    (page,) = open_pages(review_set)
    html = page.html
    for landmark in (
        "<header",
        "<main",
        "<nav",
        "<aside",
        'role="status" aria-live="polite"',
        'href="#main"',
    ):
        assert landmark in html
    assert '<html lang="en">' in html and html.count("<h1") == 1
    visible = re.findall(r'<(?:input|select)(?![^>]*type="hidden")[^>]*\sid="([^"]+)"', html)
    assert len(visible) == len(re.findall(r'<(?:input|select)(?![^>]*type="hidden")', html)) == 10
    labeled = set(re.findall(r'<label for="([^"]+)"', html)) | {"keys-on"}
    assert set(visible) <= labeled
    identifiers = re.findall(r'\sid="([^"]+)"', html)
    assert len(identifiers) == len(set(identifiers))
    assert set(re.findall(r'aria-keyshortcuts="([^"]+)"', html)) >= {
        *"krusxlcw/?",
        "n j",
    }
