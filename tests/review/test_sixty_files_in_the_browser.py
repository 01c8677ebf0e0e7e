"""Sixty Parquet files from the audit over a real Chromium to sixty corrected files."""

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from typer.testing import CliRunner

from neighboragg._cli.app import app
from neighboragg.labels._review_set import load_review_set


def run(*arguments):
    done = CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "300"})
    assert done.exit_code == 0, (done.output, done.exception)
    return done.output


def test_what_is_decided_in_the_browser_is_what_changes_in_the_files(browser, run_server, tmp_path):
    from playwright.sync_api import expect

    rng = np.random.default_rng(0)
    y = rng.choice(["cat", "dog"], 180)
    frame = pd.DataFrame(rng.normal(size=(180, 2)) + 6 * (y == "dog")[:, None], columns=["size", "weight"])
    frame = frame.assign(kind=y, id=[f"p{i}" for i in range(180)])
    frame.loc[[4, 60, 177], "kind"] = ["dog" if label == "cat" else "cat" for label in y[[4, 60, 177]]]
    (tmp_path / "pets").mkdir()
    for i in range(60):
        frame[3 * i : 3 * i + 3].to_parquet(tmp_path / "pets" / f"{i:02}.parquet")
    flagged = tmp_path / "s.csv"
    run("audit", tmp_path / "pets", "--label", "kind", "--flag", 3, "--n-random", 2, "-o", flagged)
    review_set = load_review_set(tmp_path / "s.review.json")
    items = review_set.flagged
    assert sorted(item.row for item in items) == [4, 60, 177]
    with run_server(review_set, "s.review.json") as server:
        page = browser.new_page()
        page.goto(server.address)
        for item, key in zip(items, "rkx", strict=True):
            expect(page.locator("html.scripted h1")).to_contain_text(item.title, timeout=30_000)
            page.keyboard.press(key)
        expect(page.locator("#status")).to_contain_text("3 of 3 looked at", timeout=30_000)
        page.close()
    output = run("correct", flagged, "-o", tmp_path / "fixed")
    assert output == f"1 labels changed, 1 rows dropped: {tmp_path / 'fixed'}\n"
    relabeled, _, dropped = items
    expected = frame.copy()
    expected.loc[relabeled.row, "kind"] = y[relabeled.row]
    files = sorted((tmp_path / "fixed").iterdir())
    assert [path.name for path in files] == [f"{i:02}.parquet" for i in range(60)]
    found = pd.concat([pq.read_table(path).to_pandas() for path in files])
    pd.testing.assert_frame_equal(
        found.reset_index(drop=True), expected.drop(index=dropped.row).reset_index(drop=True)
    )
    changed = {relabeled.row // 3, dropped.row // 3}
    same = [
        i for i, path in enumerate(files) if path.read_bytes() == (tmp_path / "pets" / path.name).read_bytes()
    ]
    assert same == [i for i in range(60) if i not in changed]
