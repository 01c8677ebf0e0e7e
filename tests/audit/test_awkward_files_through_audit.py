"""A dozen awkward files through audit, decisions and correct: equal bytes outside the decided cells."""

import csv
import io

import numpy as np
import pytest

from neighboragg import Table, audit, correct
from neighboragg._review.store import DecisionStore
from neighboragg.labels import Columns
from neighboragg.labels._review_set import load_review_set

LABELS = ["01", "1.0", 'qu"ote, comma']


def contents_of(seed):
    """Rows of three classes with a few wrong labels, written in one of many ways; text, and where labels stand."""
    rng = np.random.default_rng(seed)
    sep, end, quoting = (
        ",;\t|"[seed % 4],
        ["\n", "\r\n"][seed % 2],
        [csv.QUOTE_MINIMAL, csv.QUOTE_ALL][seed // 2 % 2],
    )
    codes = rng.integers(0, 3, 60)
    rows = [
        [f"{value:.3f}" for value in rng.normal(size=2) + 4 * code]
        + ["", f"note {sep} {i}\nnew line", LABELS[code]]
        for i, code in enumerate(codes)
    ]
    rows[5][-1] = LABELS[(codes[5] + 1) % 3]
    rows[9][-1] = ""
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=sep, lineterminator=end, quoting=quoting).writerows(
        [["a", "a", "", "note é", "y "], *rows]
    )
    return text.getvalue(), sep


@pytest.mark.full(keep=2)
@pytest.mark.parametrize("seed", range(12))
def test_only_decided_cells_change(tmp_path, seed):
    text, sep = contents_of(seed)
    mark, encoding = [
        (b"", "utf-8"),
        (b"\xef\xbb\xbf", "utf-8"),
        (b"\xff\xfe", "utf-16-le"),
        (b"", "cp1252"),
    ][seed % 4]
    named = "cp1252" if encoding == "cp1252" else None
    table, fixed = tmp_path / "t.csv", tmp_path / "c.csv"
    table.write_bytes(mark + text.encode(encoding))
    found = audit(Table(table, encoding=named), label="y ", flag=3, by=Columns(ignore=["note é"]))
    files = found.write(tmp_path / "s.csv")
    review_set = load_review_set(files.review)
    with DecisionStore(files.decisions, review_set) as store:
        for item in review_set.flagged:
            store.record(item.row, action="relabel", label=item.suggested, reviewer="Ada", based_on=0)
    done = correct(files.flagged, fixed)
    assert done.n_changed == 3
    changed = {item.row: item.suggested for item in review_set.flagged}
    assert 5 in changed
    before = list(csv.reader(io.StringIO(text, newline=""), delimiter=sep))
    after = fixed.read_bytes()
    assert after.startswith(mark)
    after = after[len(mark) :].decode(encoding)
    for i, (old, new) in enumerate(
        zip(before, csv.reader(io.StringIO(after, newline=""), delimiter=sep), strict=True)
    ):
        assert new == ([*old[:-1], changed[i - 1]] if i - 1 in changed else old)
    # The bytes of all that is between the decided cells are those of the table.
    place = 0
    for row in sorted(changed):
        note = text.index(f"note {sep} {row}\nnew line")
        assert text[place:note] in after
        place = text.index("\n", note + len(f"note {sep} {row}\nnew line"))
    assert after.endswith(text[place:])
