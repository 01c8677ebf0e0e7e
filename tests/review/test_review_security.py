"""Access to the page, limits on requests, and content that must never run."""

import io
import re

import numpy as np
import pytest
from PIL import Image

from neighboragg._review.routes import create_app
from neighboragg.exceptions import InvalidInputError, InvalidParameterError

TOKEN = "a-token-for-the-tests"
PATHS = [
    "/",
    "/item/1",
    "/done",
    "/export.csv",
    "/export.parquet",
    "/log.csv",
    "/images/a.png",
    "/none",
    "/docs",
]


@pytest.mark.parametrize("path", PATHS)
def test_nothing_without_the_token(open_pages, review_set, path):
    (page,) = open_pages(review_set)
    page.client.cookies.clear()
    answer = page.get(path)
    assert answer.status_code == 403
    assert "This page is locked" in page.text
    assert "note" not in page.text
    answer = page.get(path, params={"token": TOKEN[:-1]})
    assert answer.status_code == 403
    assert "Wrong key" in page.text
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("cookie", ["", "x", f"{TOKEN}.", f"{TOKEN[:-1]}.abc", ".abc", "é.abc"])
def test_a_wrong_cookie_is_refused(open_pages, review_set, cookie):
    (page,) = open_pages(review_set)
    (name,) = page.client.cookies
    page.client.cookies.clear()
    answer = page.get("/", headers={"cookie": f"{name}={cookie}".encode()})
    assert answer.status_code == 403


def test_the_token_becomes_a_cookie_and_leaves_the_address(open_pages, review_set):
    (page,) = open_pages(review_set)
    page.client.cookies.clear()
    answer = page.get("/item/3", params={"token": TOKEN, "label": "cat"}, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/item/3?label=cat")
    cookie = answer.headers["set-cookie"]
    assert re.fullmatch(
        rf"neighboragg_review_\w{{8}}={TOKEN}\.[0-9a-f]{{32}}; HttpOnly; Path=/; SameSite=lax", cookie
    )
    assert page.get(answer.headers["location"]).status_code == 200


def test_a_session_outlives_the_token(open_pages, review_set, tmp_path):
    """After a restart with another token the same browser is the same reviewer."""
    (page,) = open_pages(review_set)
    name, value = next(iter(page.client.cookies.items()))
    app = create_app(review_set, tmp_path / "decisions.sqlite", token="another-token-of-a-restart")
    again = type(page)(app)
    headers = {"cookie": f"{name}={value}"}
    assert again.get("/", headers=headers).status_code == 403
    again.get("/?token=another-token-of-a-restart", headers=headers, follow_redirects=False)
    assert again.client.cookies[name] == f"another-token-of-a-restart.{value.partition('.')[2]}"
    app.state.store.close()


@pytest.mark.parametrize("path", ["//evil.example/x", "///evil.example", "/\\evil.example"])
def test_the_token_leads_nowhere_else(open_pages, review_set, path):
    (page,) = open_pages(review_set)
    answer = page.get(f"http://127.0.0.1:8000{path}?token={TOKEN}", follow_redirects=False)
    assert re.match(r"/(?![/\\])", answer.headers["location"])


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "", "[::2]:80", "0.0.0.0"]
)
@pytest.mark.parametrize("path", ["/", "/static/review.js"])
def test_other_host_names_are_refused(open_pages, review_set, host, path):
    (page,) = open_pages(review_set)
    assert page.get(path, headers={"host": host}).status_code == 400
    assert page.get(path, headers={"host": host}, params={"token": TOKEN}).status_code == 400


@pytest.mark.full(keep=6)
@pytest.mark.parametrize(
    "host", ["localhost:80/static/", "localhost/static/", "127.0.0.1:80/static/?", "localhost:x"]
)
@pytest.mark.parametrize("path", PATHS)
def test_a_path_in_the_host_header_opens_nothing(open_pages, review_set, host, path):
    """Old versions of Starlette put it before the path of the request."""
    (page,) = open_pages(review_set)
    page.client.cookies.clear()
    assert page.get(path, headers={"host": host}).status_code == 400
    assert "note" not in page.text and "Review.example" not in page.text


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:99", "LOCALHOST", "[::1]:8000", "[::1]"])
def test_loopback_names_are_allowed(open_pages, review_set, host):
    (page,) = open_pages(review_set)
    assert page.get("/item/1", headers={"host": host}).status_code == 200


def test_other_names_can_be_allowed(open_pages, review_set):
    (page,) = open_pages(review_set, allowed_hosts=["127.0.0.1", "Review.example"])
    assert page.get("/item/1", headers={"host": "review.example:80"}).status_code == 200
    assert page.get("/item/1", headers={"host": "localhost"}).status_code == 400


FORMS = [
    ("/decide", {"row": "3", "version": "0", "action": "keep"}),
    ("/undo", {"undoes": "1"}),
    ("/reviewer", {"name": "Mallory"}),
]


@pytest.mark.parametrize(("path", "fields"), FORMS)
def test_forms_need_the_tokens_of_this_session(open_pages, review_set, path, fields):
    first, second = open_pages(review_set, n=2)
    csrf = re.search(r'name="csrf" value="(\w+)"', second.html)[1]
    assert first.client.post(path, data=fields).status_code == 403
    assert first.client.post(path, data=fields | {"csrf": ""}).status_code == 403
    assert first.client.post(path, data=fields | {"csrf": csrf}).status_code == 403
    assert first.client.post(path, data=fields | {"csrf": "é"}).status_code == 403
    first.client.cookies.clear()
    assert first.client.post(path, data=fields | {"csrf": csrf}).status_code == 403
    assert second.post(path, fields, headers={"sec-fetch-site": "cross-site"}).status_code == 403
    second.enter()
    assert second.app.state.store.log() == []
    assert "Mallory" not in second.text
    assert second.get(path).status_code == 405


def test_only_small_plain_forms_are_read(open_pages, review_set):
    (page,) = open_pages(review_set)
    assert page.client.post("/decide", json={"row": 3}).status_code == 415
    assert page.client.post("/decide", data={"row": "3" * 70_000}).status_code == 413
    plain = {"content-type": "application/x-www-form-urlencoded"}
    assert page.client.post("/decide", content=b"\xff\xfe", headers=plain).status_code == 400
    assert page.client.post("/decide", content=b"a=1&" * 60, headers=plain).status_code == 400
    assert page.app.state.store.log() == []


@pytest.mark.full(keep=11)
@pytest.mark.parametrize("path", [*PATHS, "/static/review.css", "/static/review.js", "/static/none"])
def test_headers_of_every_answer(open_pages, review_set, path):
    (page,) = open_pages(review_set)
    for headers in ({}, {"host": "evil.example"}):
        answer = page.get(path, headers=headers, follow_redirects=False)
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["cache-control"] == (
            "no-cache" if path in ("/static/review.css", "/static/review.js") and not headers else "no-store"
        )


def test_all_content_is_escaped(open_pages, make_item, make_review_set):
    bad = "\"'><script>alert(1)</script>"
    items = tuple(
        make_item(
            row,
            content=content,
            given=bad,
            suggested="dog",
            trust=(0.5, 0.5),
            reasons=(bad,),
            given_neighbors=(),
        )
        for row, content in enumerate([{bad: bad, "b": 1}, {"text": bad}])
    )
    review_set = make_review_set(
        items=items,
        classes=(bad, "dog"),
        columns=(bad, "b", "weight", "legs", "note"),
        n_flagged=2,
        title=bad,
    )
    page, other = open_pages(review_set, n=2)
    for row in (0, 1):
        page.get(f"/item/{row}", params={"label": bad})
        assert page.answer.status_code == 200
        assert "<script>alert" not in page.html
        assert page.html.count("&lt;script&gt;alert(1)&lt;/script&gt;") > 5
        # The one script is the page's own file, and no attribute is an event handler.
        assert re.findall(r"<script[^>]*>", page.html) == ['<script src="/static/review.js" defer>']
        assert not re.search(r"<[^>]*\s(on\w+|style)=", page.html)
    other.get("/item/0")
    page.get("/item/0")
    page.decide("relabel", bad)
    other.decide("relabel", "dog")
    assert other.answer.status_code == 409
    assert "<script>alert" not in other.html
    page.get("/done", params={"low": bad})
    assert page.answer.status_code == 400
    assert "<script>alert" not in page.html


def test_nothing_comes_from_other_hosts(open_pages, review_set):
    (page,) = open_pages(review_set)
    page.get("/item/1")
    sources = re.findall(r'(?:src|href|action)="([^"]*)"', page.html)
    assert len(sources) > 10
    assert all(source.startswith(("/", "#")) and not source.startswith("//") for source in sources)
    for name in ("review.css", "review.js"):
        text = page.get(f"/static/{name}").text
        assert not re.search(r"https?:|//\w|@import|url\(", text)


def image_set(make_item, make_review_set, paths):
    items = tuple(make_item(row, content={"image": path}) for row, path in enumerate(paths))
    return make_review_set(items=items, n_flagged=len(items))


def test_images_come_only_from_their_folder(open_pages, make_item, make_review_set, tmp_path):
    root = tmp_path / "images"
    (root / "sub").mkdir(parents=True)
    for name in ("a b.png", "sub/c.JPG", "unlisted.png"):
        (root / name).write_bytes(name.encode())
    (tmp_path / "secret.png").write_bytes(b"secret")
    (root / "link.png").symlink_to(tmp_path / "secret.png")
    review_set = image_set(make_item, make_review_set, ["a b.png", "sub/c.JPG", "link.png", "missing.png"])
    (page,) = open_pages(review_set, image_root=root)
    answer = page.get("/images/a%20b.png")
    assert (answer.status_code, answer.content, answer.headers["content-type"]) == (
        200,
        b"a b.png",
        "image/png",
    )
    assert page.get("/images/sub/c.JPG").headers["content-type"] == "image/jpeg"
    for path in ("link.png", "missing.png", "unlisted.png", "../secret.png", "%2e%2e/secret.png", "..%2fsecret.png",
                 "sub/../../secret.png", "/etc/passwd", "sub", ""):  # fmt: skip
        answer = page.get(f"/images/{path}")
        assert answer.status_code == 404, path
        assert b"secret" not in answer.content.replace(path.encode(), b"")
    page.get("/item/0")
    assert 'src="/images/a%20b.png"' in page.html


def test_neighbors_are_shown_by_small_copies(open_pages, make_item, make_review_set, tmp_path):
    root = tmp_path / "images"
    root.mkdir()
    pixels = np.random.default_rng(0).integers(0, 256, (600, 900, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(root / "large.png")
    Image.fromarray(pixels[:9, :9]).save(root / "little.png")
    (root / "broken.png").write_bytes(b"no image " * 20_000)
    (tmp_path / "secret.png").write_bytes((root / "large.png").read_bytes())
    (root / "link.png").symlink_to(tmp_path / "secret.png")
    names = ["large.png", "little.png", "broken.png", "link.png"]
    (page,) = open_pages(image_set(make_item, make_review_set, names), image_root=root)
    answer = page.get("/images/large.png?small=1")
    assert answer.headers["content-type"] == "image/jpeg"
    assert Image.open(io.BytesIO(answer.content)).size == (320, 213)
    for name in names[:3]:
        assert page.get(f"/images/{name}").content == (root / name).read_bytes()
    for name in names[1:3]:
        answer = page.get(f"/images/{name}?small=1")
        assert (answer.content, answer.headers["content-type"]) == ((root / name).read_bytes(), "image/png")
    for path in ("link.png", "../secret.png", "%2e%2e/secret.png", "missing.png"):
        assert page.get(f"/images/{path}?small=1").status_code == 404
    # A changed image has another copy.
    Image.fromarray(pixels[:, :600]).save(root / "large.png")
    assert Image.open(io.BytesIO(page.get("/images/large.png?small=1").content)).size == (320, 320)


def test_images_need_a_folder(make_item, make_review_set, tmp_path):
    review_set = image_set(make_item, make_review_set, ["a.png"])
    with pytest.raises(InvalidInputError) as caught:
        create_app(review_set, tmp_path / "d.sqlite", token=TOKEN)
    assert str(caught.value) == (
        "The review set has images, but create_app got image_root=None.\n"
        "Hint: pass the folder that the image paths are relative to."
    )


@pytest.mark.parametrize("token", ["", "short", "with spaces in between", "semi;colon-in-the-token", None])
def test_tokens_that_are_too_weak(review_set, tmp_path, token):
    with pytest.raises(InvalidParameterError) as caught:
        create_app(review_set, tmp_path / "d.sqlite", token=token)
    assert str(caught.value) == (
        "The 'token' parameter of create_app must have at least 16 letters, digits, '-' or '_'.\n"
        "Hint: secrets.token_urlsafe(32)."
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"lease_seconds": -1},
            "'lease_seconds' parameter of create_app must be a number in [0, inf). Got -1 instead.",
        ),
        (
            {"confidence_level": 1},
            "'confidence_level' parameter of create_app must be a number in (0, 1). Got 1 instead.",
        ),
    ],
)
def test_parameters_of_the_page(review_set, tmp_path, options, message):
    with pytest.raises(InvalidParameterError, match=f"^The {re.escape(message)}$"):
        create_app(review_set, tmp_path / "d.sqlite", token=TOKEN, **options)
