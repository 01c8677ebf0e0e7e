"""Review sets: checks with whole messages, and files that come back as they were."""

import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neighboragg.exceptions import FileFormatError, InvalidInputError, InvalidParameterError
from neighboragg.labels._review_set import Neighbor, ReviewItem, ReviewSet, load_review_set, save_review_set
from sizes import examples

scalars = st.one_of(
    st.none(), st.text(), st.integers(), st.booleans(), st.floats(allow_nan=False, allow_infinity=False)
)


@examples(50)
@given(
    content=st.dictionaries(st.text(min_size=1), scalars, min_size=2),
    reason=st.text(),
    score=st.floats(-1e9, 1e9),
)
def test_a_loaded_file_equals_the_saved_set(tmp_path_factory, content, reason, score):
    item = ReviewItem(
        row=4,
        content=content,
        given="a",
        suggested="b",
        score=score,
        trust=(0.25, 0.75),
        reasons=(reason,),
        given_neighbors=(Neighbor(5, 0.5, content),),
        suggested_neighbors=(Neighbor(6, 1.5, {}), Neighbor(7, 2.5, content, "line 9")),
        details=content,
        facts=content,
        name="line 6",
    )
    review_set = ReviewSet(
        classes=("a", "b"),
        n_rows=9,
        n_flagged=2,
        items=(item,),
        columns=tuple(content),
        sample_size=3,
        seed=8,
        title="T",
    )
    path = tmp_path_factory.mktemp("sets") / "set.json"
    save_review_set(path, review_set)
    assert load_review_set(path) == review_set
    assert load_review_set(path).fingerprint == review_set.fingerprint


def test_numpy_values_and_nan_are_saved_as_json(tmp_path, make_item):
    content = {"weight": np.float32(1.5), "legs": np.int64(4), "note": np.bool_(True), "gap": float("nan")}
    item = make_item(
        np.int64(3), content=content, score=np.float64(-1.0), trust=tuple(np.array([0.0, 1.0, 0.5]))
    )
    columns = ("weight", "legs", "note", "gap")
    review_set = ReviewSet(
        classes=("cat", "dog", "hen"), n_rows=100, n_flagged=1, items=(item,), columns=columns
    )
    save_review_set(tmp_path / "set.json", review_set)
    loaded = load_review_set(tmp_path / "set.json")
    assert loaded.items[0].content == {"weight": 1.5, "legs": 4, "note": True, "gap": None}
    assert loaded.fingerprint == review_set.fingerprint
    assert [path.name for path in tmp_path.iterdir()] == ["set.json"]


def test_kinds_of_content(make_item):
    assert make_item(1).kind == "table"
    assert make_item(1, content={"text": "a"}).kind == "text"
    assert make_item(1, content={"image": "a.png"}).kind == "image"


def test_orders(make_review_set):
    review_set = make_review_set()
    assert [item.row for item in review_set.flagged] == list(range(12))
    sample = [item.row for item in review_set.sample]
    assert len(sample) == 5 and sample != sorted(sample)
    assert sample == [item.row for item in make_review_set().sample]
    assert sorted(item.row for item in review_set.random) == list(range(50, 56))
    assert [item.row for item in make_review_set(seed=1).sample] != sample
    shuffled = make_review_set(items=review_set.items[::-1])
    assert [item.row for item in shuffled.sample] == sample
    assert shuffled.fingerprint == review_set.fingerprint != make_review_set(seed=1).fingerprint


def test_the_random_order_ignores_scores(make_review_set):
    """Over many seeds every row is in the sample about as often as any other."""
    seeds = 1000
    counts = np.zeros(12)
    items = make_review_set(n_random=0).items
    for seed in range(seeds):
        review_set = make_review_set(items=items, seed=seed)
        counts[[item.row for item in review_set.sample]] += 1
    # Five of twelve; six standard deviations.
    share = 5 / 12
    assert np.abs(counts / seeds - share).max() < 6 * np.sqrt(share * (1 - share) / seeds)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_rows": 0}, "The 'n_rows' parameter of ReviewSet must be an int >= 1. Got 0 instead."),
        ({"n_flagged": -1}, "The 'n_flagged' parameter of ReviewSet must be an int >= 0. Got -1 instead."),
        ({"sample_size": 0}, "The 'sample_size' parameter of ReviewSet must be an int >= 1. Got 0 instead."),
        ({"seed": 1.5}, "The 'seed' parameter of ReviewSet must be an int >= 0. Got 1.5 instead."),
    ],
)
def test_parameters_of_a_set(changes, message):
    fields = {"classes": ("a", "b"), "n_rows": 9, "n_flagged": 0, "items": ()}
    with pytest.raises(InvalidParameterError, match=f"^{re.escape(message)}$"):
        ReviewSet(**(fields | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"classes": ("a",)},
            "A review set needs two or more classes, none of them empty. Got ['a'].\n"
            "Hint: list every label a row may get, as text.",
        ),
        (
            {"classes": ("a", "")},
            "A review set needs two or more classes, none of them empty. Got ['a', ''].\n"
            "Hint: list every label a row may get, as text.",
        ),
        ({"classes": (1, 2)}, "classes must be a list of texts. Got (1, 2)."),
        ({"classes": "ab"}, "classes must be a list of texts. Got 'ab'."),
        ({"columns": ("x", "x")}, "columns must differ from one another. Got ['x', 'x']."),
        (
            {"n_flagged": 101},
            "The review set lists 0 flagged items, of n_flagged=101 flagged rows among n_judged=100 rows judged "
            "of n_rows=100; each number must be at most the next.",
        ),
    ],
)
def test_a_set_that_does_not_fit(changes, message):
    fields = {"classes": ("a", "b"), "n_rows": 100, "n_flagged": 0, "items": ()}
    with pytest.raises(InvalidInputError, match=f"^{re.escape(message)}$"):
        ReviewSet(**(fields | changes))


def test_items_that_do_not_fit_the_set(make_item, make_review_set):
    with pytest.raises(InvalidInputError) as caught:
        make_review_set(items=(make_item(1), make_item(1, queue="random")))
    assert str(caught.value) == (
        "Row 1 occurs more than once in the review set.\n"
        "Hint: a row is either flagged or one of the random unflagged rows."
    )
    with pytest.raises(InvalidInputError) as caught:
        make_review_set(items=(make_item(1), make_item(2)), n_flagged=1)
    assert str(caught.value) == (
        "The review set lists 2 flagged items, of n_flagged=1 flagged rows among n_judged=100 rows judged "
        "of n_rows=100; each number must be at most the next."
    )
    with pytest.raises(InvalidInputError) as caught:
        make_review_set(items=(make_item(1, queue="random"),), n_flagged=100)
    assert str(caught.value) == (
        "The review set has 1 random items, but only 0 rows are not flagged.\n"
        "Hint: random items are drawn from the unflagged rows."
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"row": 100}, "Item of row 100: row must be an int from 0 to n_rows - 1, with n_rows=100."),
        ({"row": True}, "Item of row True: row must be an int from 0 to n_rows - 1, with n_rows=100."),
        ({"queue": "x"}, "Item of row 3: queue must be 'flagged' or 'random'. Got 'x'."),
        (
            {"given": "cow"},
            "Item of row 3: given='cow' is not among the 3 classes.\n"
            "Hint: labels are text; convert numbers with str().",
        ),
        (
            {"suggested": 1},
            "Item of row 3: suggested=1 is not among the 3 classes.\n"
            "Hint: labels are text; convert numbers with str().",
        ),
        ({"suggested": "cat"}, "Item of row 3: is flagged, but the suggested label 'cat' is the given one."),
        ({"score": float("nan")}, "Item of row 3: score must be a finite number. Got nan."),
        (
            {"trust": (0.5, 0.5)},
            "Item of row 3: trust must hold 3 numbers in [0, 1], one for each class. Got [0.5, 0.5].",
        ),
        (
            {"trust": (0.5, 0.5, 1.5)},
            "Item of row 3: trust must hold 3 numbers in [0, 1], one for each class. Got [0.5, 0.5, 1.5].",
        ),
        ({"reasons": (1,)}, "Item of row 3: reasons must be a list of texts. Got (1,)."),
        (
            {"content": {"weight": [1]}},
            "Item of row 3: the value of 'weight' must be text, a finite number, true, false or missing. Got [1].",
        ),
        (
            {"content": {"weight": float("inf")}},
            "Item of row 3: the value of 'weight' must be text, a finite number, true, false or missing. Got inf.",
        ),
        (
            {"details": {"weight": [1]}},
            "Item of row 3: the value of 'weight' must be text, a finite number, true, false or missing. Got [1].",
        ),
        (
            {"content": {"height": 1}},
            "Item of row 3: 'height' is not among the 3 columns of the review set.\n"
            "Hint: content is {column: value}, {'text': …} or {'image': path}.",
        ),
        (
            {"given_neighbors": (Neighbor(-1, 0.0, {}),)},
            "Item of row 3, neighbor -1: row must be an int from 0 to n_rows - 1, with n_rows=100.",
        ),
        (
            {"given_neighbors": (Neighbor(1, -1.0, {}),)},
            "Item of row 3, neighbor 1: distance must be a finite number >= 0. Got -1.0.",
        ),
        (
            {"content": {"image": "a.svg"}},
            "Item of row 3: image must end in one of .avif, .bmp, .gif, .jpeg, .jpg, .png, .webp. Got 'a.svg'.\n"
            "Hint: convert other images to PNG.",
        ),
    ],
)
def test_an_item_that_cannot_be_used(make_item, make_review_set, changes, message):
    with pytest.raises(InvalidInputError, match=f"^{re.escape(message)}$"):
        make_review_set(items=(make_item(3, **changes),), n_flagged=1)


@pytest.mark.parametrize("path", ["/etc/a.png", "../a.png", "a/../../b.png", "a\\b.png", "a\0.png", 5, None])
def test_image_paths_stay_below_their_folder(make_item, make_review_set, path):
    with pytest.raises(InvalidInputError) as caught:
        make_review_set(items=(make_item(3, content={"image": path}),), n_flagged=1)
    assert str(caught.value) == (
        f"Item of row 3: image must be a path below the folder of images, with forward slashes. Got {path!r}."
    )


@pytest.mark.parametrize("kind", ["text", "image"])
def test_neighbors_are_of_the_kind_of_their_item(make_item, make_review_set, kind):
    near = (Neighbor(1, 0.5, {"weight": 1.0}),)
    with pytest.raises(InvalidInputError) as caught:
        make_review_set(items=(make_item(3, content={kind: "a.png"}, given_neighbors=near),), n_flagged=1)
    assert str(caught.value) == (
        f"Item of row 3, neighbor 1: content must be {{'{kind}': …}}, as that of its item. Got {{'weight': 1.0}}."
    )


def test_a_random_row_need_not_have_another_suggestion(make_item, make_review_set):
    item = make_item(3, queue="random", suggested="cat")
    assert make_review_set(items=(item,), n_flagged=0).random == (item,)


def record(**changes):
    item = {"row": 1, "content": {"text": "x"}, "given": "a", "suggested": "b", "score": -1, "trust": [0, 1]}
    whole = {
        "format": "neighboragg review set",
        "format_number": 1,
        "classes": ["a", "b"],
        "n_rows": 9,
        "n_flagged": 1,
        "items": [item],
    }
    return whole | changes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "{path} is not a review set: it is not JSON (Expecting property name enclosed in double quotes: "
              "line 1 column 2 (char 1))."),
        ("[]", "{path} is not a review set: its 'format' is not 'neighboragg review set'.\n"
               "Hint: write it with neighboragg.labels._review_set.save_review_set."),
        (record(format="x"), "{path} is not a review set: its 'format' is not 'neighboragg review set'.\n"
                             "Hint: write it with neighboragg.labels._review_set.save_review_set."),
        (record(format_number=2), "{path} has format number 2; this version of neighboragg reads 1.\n"
                                  "Hint: update neighboragg."),
        (record(items=None), "{path} is not a usable review set. The file: 'items' must be a list. Got None."),
        (record(items=[3]), "{path} is not a usable review set. Item 0 must be an object. Got 3."),
        (record(items=[{}]), "{path} is not a usable review set. Item 0 has no 'row'."),
        (record(n_rows=True), "{path} is not a usable review set. The file: 'n_rows' must be a whole number. "
                              "Got True."),
        (record(n_rows=0), "{path} is not a usable review set. Item of row 1: row must be an int from 0 to n_rows - 1, "
                           "with n_rows=0."),
        (record(sample_size=0), "{path} is not a usable review set. The 'sample_size' parameter of ReviewSet must be "
                                "an int >= 1. Got 0 instead."),
    ],
)  # fmt: skip
def test_files_that_cannot_be_used(tmp_path, text, message):
    path = tmp_path / "set.json"
    path.write_text(text if isinstance(text, str) else json.dumps(text))
    with pytest.raises(FileFormatError) as caught:
        load_review_set(path)
    assert str(caught.value) == message.replace("{path}", str(path))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"score": "low"}, "Item 0: 'score' must be a number. Got 'low'."),
        ({"content": []}, "Item 0: 'content' must be an object. Got []."),
        ({"given": 1}, "Item 0: 'given' must be text. Got 1."),
        ({"given_neighbors": [1]}, "Item 0, given neighbor 0 must be an object. Got 1."),
        ({"suggested_neighbors": [{}]}, "Item 0, suggested neighbor 0 has no 'row'."),
        ({"color": "red"}, "Item 0 has 'color', which is not a field of ReviewItem."),
    ],
)
def test_fields_of_an_item(tmp_path, changes, message):
    whole = record()
    whole["items"][0] |= changes
    path = tmp_path / "set.json"
    path.write_text(json.dumps(whole))
    with pytest.raises(FileFormatError) as caught:
        load_review_set(path)
    assert str(caught.value) == f"{path} is not a usable review set. {message}"


def test_a_file_that_is_not_text(tmp_path):
    path = tmp_path / "set.json"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(FileFormatError, match="is not a review set: it is not JSON"):
        load_review_set(path)
