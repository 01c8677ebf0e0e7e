"""Review sets, pages without a server, and pages in a real browser."""

import importlib.util
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import warnings
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

import neighboragg
from neighboragg._review.routes import create_app
from neighboragg.labels._review_set import Neighbor, ReviewItem, ReviewSet, save_review_set

with warnings.catch_warnings():
    # Starlette is moving to another HTTP client; it says so when this module is imported.
    warnings.filterwarnings("ignore", message="Using `httpx` with `starlette.testclient` is deprecated")
    from starlette.testclient import TestClient

CLASSES = ("cat", "dog", "hen")
TOKEN = "a-token-for-the-tests"
SCRIPT = "<script>alert(1)</script>"
SERVER = "import sys; from neighboragg import review; review(sys.argv[1], token=sys.argv[2], browser=False)"
CHROMIUM_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def table(row):
    return {"weight": float(row), "legs": 4 if row % 2 else 2, "note": SCRIPT if row == 2 else f"note {row}"}


def build_item(row, /, **changes):
    near = [Neighbor(90 + place, 0.5 * place, table(90 + place)) for place in range(4)]
    if len(changes.get("content", "xy")) == 1:
        near = []
    fields = {
        "row": row,
        "content": table(row),
        "given": CLASSES[row % 3],
        "suggested": CLASSES[(row + 1) % 3],
        "score": row / 10 - 5,
        "trust": (0.2, 0.7, 0.1),
        "reasons": (f"reason {row} & more",),
        "given_neighbors": tuple(near[:2]),
        "suggested_neighbors": tuple(near[2:]),
    }
    return ReviewItem(**(fields | changes))


def build_review_set(n_flagged=12, n_random=6, **changes):
    items = [build_item(row) for row in range(n_flagged)]
    items += [build_item(50 + row, queue="random") for row in range(n_random)]
    fields = {
        "classes": CLASSES,
        "n_rows": 100,
        "n_flagged": n_flagged,
        "items": tuple(items),
        "columns": ("weight", "legs", "note"),
        "sample_size": 5,
    }
    return ReviewSet(**(fields | changes))


@pytest.fixture
def make_item():
    return build_item


@pytest.fixture
def make_review_set():
    return build_review_set


@pytest.fixture
def review_set():
    return build_review_set()


class Page:
    """A browser without a browser: keeps its cookies, and fills in the forms it is shown."""

    def __init__(self, app):
        self.client = TestClient(app, base_url="http://127.0.0.1:8000")
        self.html = ""
        self.answer = None

    def get(self, path, **options):
        return self._take(self.client.get(path, **options))

    def enter(self, path="/"):
        return self.get(path, params={"token": TOKEN})

    def post(self, path, fields, **options):
        csrf = re.search(r'name="csrf" value="(\w+)"', self.html)
        return self._take(self.client.post(path, data={"csrf": csrf[1]} | fields, **options))

    def decide(self, action, new_label=None, **changes):
        """Send the decision form of the page last seen."""
        row, version = re.search(
            r'name="row" value="(\d+)">\s*<input type="hidden" name="version" value="(\d+)"', self.html
        ).groups()
        fields = {"row": row, "version": version, "action": action}
        return self.post("/decide", fields | ({"new_label": new_label} if new_label else {}) | changes)

    def undo(self, **changes):
        found = re.search(r'name="undoes" value="(\d+)"', self.html)
        return self.post("/undo", {"undoes": found[1] if found else ""} | changes)

    @property
    def row(self):
        """The row shown."""
        return int(re.search(r"<h1[^>]*>Row (\d+)</h1>", self.html)[1])

    @property
    def text(self):
        """The page as one line without tags; what is escaped stays so."""
        return " ".join(re.sub(r"<[^>]*>", " ", self.html).split())

    def _take(self, answer):
        self.answer, self.html = answer, answer.text
        return answer


@pytest.fixture
def open_pages(tmp_path):
    """Return a function that makes an app and some sessions in it."""
    apps = []

    def build(review_set, n=1, store="decisions.sqlite", **options):
        app = create_app(review_set, tmp_path / store, token=TOKEN, **options)
        apps.append(app)
        pages = [Page(app) for _ in range(n)]
        for page in pages:
            page.app = app
            page.enter()
        return pages

    yield build
    for app in apps:
        app.state.store.close()


@pytest.fixture(scope="session")
def chromium(request):
    """Path of an installed Chromium; without one the browser tests are skipped, and fail where CI is set."""
    names = ("chromium", "chromium-browser", "google-chrome")
    path = next(filter(None, map(shutil.which, names)), None)
    has_driver = importlib.util.find_spec("playwright") is not None
    if path is None or not has_driver:
        missing = "no Chromium was found" if path is None else "playwright is not installed"
        message = f"BROWSER TESTS OF THE REVIEW PAGE NOT RUN: {missing}."
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        # A lone "s" among the dots is easily missed.
        with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            sys.stderr.write(f"\n{message}\n")
        pytest.skip(message)
    return path


@pytest.fixture(scope="module")
def browser(chromium):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_ARGUMENTS)
        yield started
        started.close()


class Server:
    """The page in a process of its own, which can be killed and started again on the same port."""

    def __init__(self, source):
        self.source = source
        self.store = source.with_suffix(".decisions.sqlite")
        self.port = 0
        self.process = None

    def start(self):
        code = SERVER if not self.port else SERVER.replace("browser=", f"port={self.port}, browser=")
        folder = str(Path(neighboragg.__file__).parents[1])
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])}
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, str(self.source), TOKEN],
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.address = self.process.stdout.readline().partition(": ")[2].strip()
        self.origin, _, _ = self.address.partition("/?")
        self.port = int(self.origin.rpartition(":")[2])

    def kill(self):
        """As ``kill -9``."""
        self.process.kill()
        self._reap()

    def stop(self):
        self.process.terminate()
        self._reap()

    def _reap(self):
        self.process.wait()
        self.process.stdout.close()


@pytest.fixture
def run_server(tmp_path):
    @contextmanager
    def run(review_set, name="set.json"):
        source = tmp_path / name
        save_review_set(source, review_set)
        server = Server(source)
        server.start()
        try:
            yield server
        finally:
            server.stop()

    return run


@pytest.fixture
def serve_here(tmp_path):
    """As `run_server`, in a thread of this process: quicker, for what does not end in a kill."""
    import uvicorn

    @contextmanager
    def run(review_set):
        store = tmp_path / "set.decisions.sqlite"
        app = create_app(review_set, store, token=TOKEN, image_root=tmp_path)
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, ws="none"))
        with socket.create_server(("127.0.0.1", 0)) as listener:
            origin = f"http://127.0.0.1:{listener.getsockname()[1]}"
            thread = threading.Thread(target=server.run, args=([listener],))
            thread.start()
            try:
                yield SimpleNamespace(origin=origin, address=f"{origin}/?token={TOKEN}", store=store)
            finally:
                server.should_exit = True
                thread.join()

    return run
