"""How long a page of the review takes with 200, 20,000 and 200,000 flagged rows, half of them decided.

Requests go to the application itself, without network and browser. Each figure is a median; the ratio is that to
the smallest set. Starting takes longer for more rows, pages must not.
"""

import argparse
import re
import sqlite3
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks._record import save
from neighboragg._review.routes import create_app
from neighboragg._review.store import DecisionStore
from neighboragg.labels._review_set import Neighbor, ReviewItem, ReviewSet

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

SIZES = (200, 20_000, 200_000)
TOKEN = "a-token-for-the-benchmark"
CLASSES = ("cat", "dog", "hen", "cow")
COLUMNS = ("weight", "height", "age", "legs", "color")


def review_set(n_flagged: int, seed: int) -> ReviewSet:
    """Rows of a small table with two neighbors of each class, and 50 random unflagged rows."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n_flagged + 50, 3)).round(3).tolist()
    given = rng.integers(0, 4, size=n_flagged + 50)
    scores = rng.normal(size=n_flagged + 50).tolist()

    def content(row: int) -> dict[str, Any]:
        return dict(zip(COLUMNS, (*values[row], row % 4, f"color {row % 977}"), strict=True))

    def item(row: int) -> ReviewItem:
        near = tuple(Neighbor(other, 0.5, content(other)) for other in range(row % 50, row % 50 + 2))
        return ReviewItem(
            row=row, content=content(row), given=CLASSES[given[row]], suggested=CLASSES[given[row] - 1],
            score=scores[row], trust=(0.1, 0.2, 0.3, 0.4), reasons=("The neighbors disagree.",),
            given_neighbors=near, suggested_neighbors=near, queue="flagged" if row < n_flagged else "random",
        )  # fmt: skip

    items = tuple(item(row) for row in range(n_flagged + 50))
    return ReviewSet(
        classes=CLASSES, n_rows=10 * n_flagged, n_flagged=n_flagged, items=items, columns=COLUMNS
    )


def decide_half(path: Path, rows: ReviewSet) -> None:
    """Keep the more suspicious half of the rows, in one transaction."""
    DecisionStore(path, rows).close()
    entries = [(item.row, item.given) for item in rows.flagged[: rows.n_flagged // 2]]
    connection = sqlite3.connect(path)
    with connection:
        connection.executemany(
            "INSERT INTO decisions (item, action, label, reviewer, time, based_on) "
            "VALUES (?, 'keep', ?, 'Ada', '2025-01-01T00:00:00.000Z', 0)",
            entries,
        )
    connection.close()


class Pages:
    """The pages of one set, each kind of request a method."""

    def __init__(self, n_flagged: int, folder: Path, seed: int) -> None:
        rows = review_set(n_flagged, seed)
        path = folder / f"{n_flagged}.sqlite"
        decide_half(path, rows)
        start = time.perf_counter()
        self.app = create_app(rows, path, token=TOKEN)
        self.start_seconds = time.perf_counter() - start
        self._client = TestClient(self.app, base_url="http://127.0.0.1")
        self._rows = rows.flagged[n_flagged // 2 :]
        self._last = self._client.get("/", params={"token": TOKEN}).text

    def kinds(self) -> dict[str, Callable[[int], None]]:
        """The requests by name; each takes the number of its repetition."""
        return {
            "a row": lambda number: self._get(self._path(number)),
            "a row, one class": lambda number: self._get(self._path(number), label="cat"),
            "a row, search": lambda number: self._get(self._path(number), search="color 1"),
            "the first decided row": lambda number: self._get("/", show="done"),
            "the first undecided row": lambda number: self._get("/"),
            "a decision and the next row": self._decide,
            "a new search, rare text": lambda number: self._get("/", search=f"color {200 + number}"),
            "a new search, frequent text": lambda number: self._get(
                "/", search=f"color {1 + number % 9}", low=f"{-9 - number}"
            ),
        }

    def _path(self, number: int) -> str:
        return f"/item/{self._rows[number].row}"

    def _get(self, path: str, **query: str) -> None:
        answer = self._client.get(path, params=query)
        assert answer.status_code == 200, answer.status_code
        self._last = answer.text

    def _decide(self, number: int) -> None:
        found = {
            name: re.search(rf'name="{name}" value="(\w+)"', self._last)
            for name in ("csrf", "row", "version")
        }
        fields = {name: match[1] for name, match in found.items() if match}
        answer = self._client.post("/decide", data=fields | {"action": "skip"})
        assert answer.status_code == 200, answer.status_code
        self._last = answer.text


def measure(sites: list[Pages], repetitions: int) -> list[dict[str, Any]]:
    """Median time of each kind of request; the sets take turns, so that what else runs hits all of them alike."""
    found: list[dict[str, Any]] = [{"start_seconds": site.start_seconds} for site in sites]
    for kind in sites[0].kinds():
        times: list[list[float]] = [[] for _ in sites]
        # The first page of a filter also looks for its rows; it is not counted.
        for number in range(repetitions + 1):
            for site, own in zip(sites, times, strict=True):
                start = time.perf_counter()
                site.kinds()[kind](number)
                own.append(1000 * (time.perf_counter() - start))
        for result, own in zip(found, times, strict=True):
            result[f"{kind}, ms"] = statistics.median(own[1:])
            result[f"{kind}, ratio"] = statistics.median(own[1:]) / statistics.median(times[0][1:])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=40)
    repetitions = parser.parse_args().repetitions
    with TemporaryDirectory() as folder:
        sites = [Pages(size, Path(folder), 0) for size in SIZES]
        results = measure(sites, repetitions)
        for site in sites:
            site.app.state.store.close()
    print(f"{'median of a page, ms':<30}" + "".join(f"{size:>10,}" for size in SIZES) + "   ratios")
    for kind in sites[0].kinds():
        times = "".join(f"{result[f'{kind}, ms']:>10.1f}" for result in results)
        print(f"{kind:<30}{times}   " + " ".join(f"{result[f'{kind}, ratio']:.2f}" for result in results))
    print(f"{'start, s':<30}" + "".join(f"{result['start_seconds']:>10.1f}" for result in results))
    save("review_pages", [{"n_flagged": size} | row for size, row in zip(SIZES, results, strict=True)], 0)


if __name__ == "__main__":
    main()
