"""The address that the page listens on, its printed output, and its requirements."""

import re
import socket
import stat
import warnings
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest
from typer.testing import CliRunner

from neighboragg import review
from neighboragg.exceptions import (
    FileFormatError,
    InvalidInputError,
    InvalidParameterError,
    MissingExtraError,
)
from neighboragg.labels._review_set import save_review_set

with warnings.catch_warnings():
    # Starlette is moving to another HTTP client; it says so when this module is imported.
    warnings.filterwarnings("ignore", message="Using `httpx` with `starlette.testclient` is deprecated")
    from starlette.testclient import TestClient

TOKEN = "a-token-for-the-tests"


@pytest.fixture
def started(monkeypatch):
    """Run `serve` up to the moment the server would start, and note what it was given."""
    notes = {"opened": []}

    def run(server, sockets):
        notes["address"] = sockets[0].getsockname()
        notes["app"] = server.config.app
        notes["config"] = server.config

    def open_browser(address):
        file = Path(url2pathname(urlsplit(address).path))
        modes = (stat.S_IMODE(path.stat().st_mode) for path in (file, file.parent))
        notes["file"] = (file.read_text(), *modes)
        notes["opened"].append(address)

    monkeypatch.setattr("uvicorn.Server.run", run)
    monkeypatch.setattr("webbrowser.open", open_browser)
    return notes


@pytest.fixture
def source(tmp_path, review_set):
    save_review_set(tmp_path / "set.json", review_set)
    return tmp_path / "set.json"


def test_by_default_only_this_machine(started, source, capsys, tmp_path):
    review(source)
    host, port = started["address"]
    assert host == "127.0.0.1"
    printed = capsys.readouterr().out
    assert re.fullmatch(rf"Review page: http://127\.0\.0\.1:{port}/\?token=[\w-]{{43}}\n", printed)
    assert (tmp_path / "set.decisions.sqlite").exists()
    # The token stands in the address, so addresses are not logged.
    assert started["config"].access_log is False


def test_the_browser_is_given_a_private_file_and_not_the_token(started, source, capsys):
    """The command line of a browser is visible to everybody on the machine."""
    review(source, token=TOKEN)
    (opened,) = started["opened"]
    assert opened.startswith("file:///") and TOKEN not in opened
    content, file_mode, folder_mode = started["file"]
    assert f"/?token={TOKEN}" in content
    assert (oct(file_mode), oct(folder_mode)) == ("0o600", "0o700")
    # It is gone when the server has ended.
    assert not Path(url2pathname(urlsplit(opened).path)).parent.exists()


def test_each_start_has_its_own_token(started, source, capsys):
    review(source)
    review(source)
    first, second = capsys.readouterr().out.splitlines()
    assert first.partition("token=")[2] != second.partition("token=")[2]


def test_what_is_asked_for(started, source, capsys, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    review(source, port=port, store_path=tmp_path / "other.sqlite", token=TOKEN, browser=False)
    assert capsys.readouterr().out == f"Review page: http://127.0.0.1:{port}/?token={TOKEN}\n"
    assert started["opened"] == []
    assert (tmp_path / "other.sqlite").exists()


def test_an_open_address_is_warned_of(started, source, capsys):
    review(source, host="0.0.0.0", browser=False)
    out = capsys.readouterr().out
    assert f"http://{socket.gethostname()}:" in out
    name = socket.gethostname()
    assert out.endswith(
        "Warning: other machines can reach this address, and the connection is not encrypted.\n"
        f"The page accepts the host names 127.0.0.1, localhost, ::1, 0.0.0.0, {name}; allow others with "
        "--allow-host.\n"
    )


def test_names_are_allowed_on_the_command_line(started, tmp_path, review_set):
    from neighboragg._cli.app import app

    save_review_set(tmp_path / "s.review.json", review_set)
    names = ["--allow-host", "Review.example", "--allow-host", "b.example"]
    result = CliRunner().invoke(app, ["review", str(tmp_path / "s.csv"), "--no-browser", *names])
    assert result.exit_code == 0, result.output
    client = TestClient(started["app"], base_url="http://127.0.0.1")
    answers = {
        name: client.get("/", headers={"host": name}).status_code
        for name in ("review.example:80", "b.example", "localhost", "c.example")
    }
    started["app"].state.store.close()
    assert answers == {"review.example:80": 403, "b.example": 403, "localhost": 403, "c.example": 400}
    assert started["opened"] == []


def test_names_of_the_loopback(started, source, capsys):
    review(source, host="localhost", browser=False)
    assert re.fullmatch(r"Review page: http://localhost:\d+/\?token=\S+\n", capsys.readouterr().out)


def test_ipv6_addresses_stand_in_brackets(started, source, capsys, monkeypatch):
    """Listening is left out: not every machine has IPv6."""

    class Listener:
        def __enter__(self):
            return self

        def __exit__(self, *error):
            pass

        def getsockname(self):
            return ("::1", 80)

    families = []

    def create(address, family):
        families.append((address, family))
        return Listener()

    monkeypatch.setattr("socket.create_server", create)
    review(source, host="::1", token=TOKEN, browser=False)
    assert families == [(("::1", 0), socket.AF_INET6)]
    assert capsys.readouterr().out == f"Review page: http://[::1]:80/?token={TOKEN}\n"


def test_an_interrupt_ends_it_in_order(started, source, capsys, monkeypatch):
    def interrupt(server, sockets):
        started["app"] = server.config.app
        raise KeyboardInterrupt

    monkeypatch.setattr("uvicorn.Server.run", interrupt)
    review(source, browser=False)
    assert started["app"].state.store._database._connection is None


def test_a_port_in_use_is_named(source):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(InvalidParameterError) as caught:
            review(source, port=port, browser=False)
    message = str(caught.value)
    assert message.startswith(f"Cannot listen on 127.0.0.1, port {port}: ")
    assert message.endswith(".\nHint: use port 0 for any free port.")


def test_a_wrong_file(tmp_path):
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(FileFormatError, match="is not a review set"):
        review(tmp_path / "x.json", browser=False)


@pytest.mark.parametrize("package", ["fastapi", "jinja2", "uvicorn"])
def test_a_missing_package_names_the_extra(source, review_set, tmp_path, monkeypatch, package):
    from importlib import import_module

    def missing(module):
        if module == package:
            raise ImportError(module)
        return import_module(module)

    monkeypatch.setattr("neighboragg._core.packages.import_module", missing)
    with pytest.raises(MissingExtraError) as caught:
        review(source)
    assert str(caught.value) == (
        f"The review page needs the package {package!r}, which is not installed.\n"
        'Hint: pip install "neighboragg[review]"'
    )


def test_a_wrong_image_folder_is_reported(started, tmp_path, make_item, make_review_set):
    items = tuple(make_item(row, content={"image": f"cat/{row}.png"}) for row in range(2))
    save_review_set(tmp_path / "set.json", make_review_set(items=items, n_flagged=2))
    with pytest.raises(InvalidInputError) as caught:
        review(tmp_path / "set.json", browser=False)
    assert str(caught.value) == (
        f"None of the 2 images to review is in {tmp_path}; the first is cat/0.png.\n"
        "Hint: pass --images with the folder that was audited, or the folder of the table."
    )
    (tmp_path / "images" / "cat").mkdir(parents=True)
    (tmp_path / "images" / "cat" / "1.png").write_bytes(b"")
    review(tmp_path / "set.json", browser=False, images=tmp_path / "images")
    assert "address" in started
