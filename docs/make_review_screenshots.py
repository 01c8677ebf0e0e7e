"""Screenshots of the review page: docs/images/review-light.png, review-dark.png and review-phone.png.

Run with the `review` extra, playwright and an installed Chromium: ``python docs/make_review_screenshots.py``.
The data are scikit-learn's wines with twelve labels changed on purpose.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from playwright.sync_api import Browser, expect, sync_playwright
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from neighboragg._core.types import Array
from neighboragg.labels._review_set import Neighbor, ReviewItem, ReviewSet, save_review_set

IMAGES = Path(__file__).parent / "images"
CLASSES = ("Barolo", "Grignolino", "Barbera")
CHROMIUM_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SCREENSHOTS = {"light": (1280, 1240), "dark": (1280, 1240), "phone": (390, 844)}
SERVER = "import sys; from neighboragg import review; review(sys.argv[1], open_browser=False)"


def wine_review_set() -> ReviewSet:
    """Flag the 14 least trusted labels of a spoilt table, and draw 30 of the others."""
    rng = np.random.default_rng(7)
    table = load_wine()
    labels = table.target.copy()
    spoilt = rng.choice(len(labels), size=12, replace=False)
    labels[spoilt] = (labels[spoilt] + rng.integers(1, 3, size=12)) % 3
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1))
    trust = cross_val_predict(model, table.data, labels, cv=5, method="predict_proba")
    rows = np.arange(len(labels))
    alternatives = trust.copy()
    alternatives[rows, labels] = 0.0
    scores = np.log(trust[rows, labels]) - np.log(alternatives.max(axis=1))
    flagged = np.argsort(scores)[:14]
    drawn = rng.choice(np.setdiff1d(rows, flagged), size=30, replace=False)
    scaled = StandardScaler().fit_transform(table.data)
    names = [name.replace("_", " ") for name in table.feature_names]

    def content(row: int) -> dict[str, float]:
        return {name: float(value) for name, value in zip(names, table.data[row], strict=True)}

    def nearest(row: int, label: int) -> tuple[Neighbor, ...]:
        others = np.setdiff1d(np.flatnonzero(labels == label), [row])
        distances, found = NearestNeighbors(n_neighbors=4).fit(scaled[others]).kneighbors(scaled[[row]])
        pairs = zip(others[found[0]], distances[0], strict=True)
        return tuple(Neighbor(int(other), float(distance), content(other)) for other, distance in pairs)

    def item(row: int, queue: str) -> ReviewItem:
        given, suggested = int(labels[row]), int(alternatives[row].argmax())
        near = (nearest(row, given), nearest(row, suggested))
        return ReviewItem(
            row=int(row),
            content=content(row),
            given=CLASSES[given],
            suggested=CLASSES[suggested],
            score=float(scores[row]),
            trust=tuple(trust[row].tolist()),
            reasons=reasons(given, suggested, trust[row], near),
            given_neighbors=near[0],
            suggested_neighbors=near[1],
            queue=queue,
        )

    items = [item(row, "flagged") for row in flagged] + [item(row, "random") for row in drawn]
    return ReviewSet(
        classes=CLASSES,
        n_rows=len(labels),
        n_flagged=len(flagged),
        items=tuple(items),
        columns=tuple(names),
        title="Wines: label review",
    )


def reasons(
    given: int, suggested: int, trust: Array, near: tuple[tuple[Neighbor, ...], tuple[Neighbor, ...]]
) -> tuple[str, ...]:
    """Say in words what the numbers say."""
    distances = [side[0].distance for side in near]
    nearer = "farther" if distances[0] > distances[1] else "nearer"
    return (
        f"A model that has not seen this row gives {CLASSES[given]} {trust[given]:.0%} and "
        f"{CLASSES[suggested]} {trust[suggested]:.0%}.",
        f"The nearest {CLASSES[given]} is {nearer} ({distances[0]:.1f}) than the nearest "
        f"{CLASSES[suggested]} ({distances[1]:.1f}).",
    )


def photograph(browser: Browser, address: str, name: str) -> None:
    """Decide some rows by keys, then take the screenshot."""
    width, height = SCREENSHOTS[name]
    context = browser.new_context(
        color_scheme="dark" if name == "dark" else "light", viewport={"width": width, "height": height}
    )
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector("html.scripted")
    for place, key in enumerate("rrk", start=1):
        page.keyboard.press(key)
        expect(page.locator("#status")).to_contain_text(f"{place} of ")
    page.wait_for_load_state("networkidle")
    page.screenshot(path=IMAGES / f"review-{name}.png")
    context.close()


def main() -> None:
    """Serve the wines, and take the screenshots."""
    IMAGES.mkdir(exist_ok=True)
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    for name in SCREENSHOTS:
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "wines.json"
            save_review_set(source, wine_review_set())
            command = [sys.executable, "-c", SERVER, str(source)]
            with (
                subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server,
                sync_playwright() as playwright,
            ):
                assert server.stdout is not None
                address = server.stdout.readline().partition(": ")[2].strip()
                browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_ARGUMENTS)
                try:
                    photograph(browser, address, name)
                finally:
                    browser.close()
                    server.terminate()


if __name__ == "__main__":
    main()
