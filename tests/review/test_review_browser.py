"""The page in a real Chromium: keys, reload, undo, two browsers, a killed server, export."""

import csv
import io
import re

import pytest

from neighboragg._review.export import corrected_labels, export_labels
from neighboragg.labels._review_set import Neighbor

SCRIPT = "<script>alert(1)</script>"


@pytest.fixture
def expect(chromium):
    from playwright.sync_api import expect

    # Only a failing test waits so long; a busy machine may need more than the default of five seconds.
    expect.set_options(timeout=30_000)
    return expect


class Reviewer:
    """One browser profile at the page, and what must not happen in it."""

    def __init__(self, browser, expect, address, **options):
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.expect = expect
        self.problems = []
        # A 409 is logged as an error too; it is the conflict page. And a server may stop while a style sheet of
        # the last page is still on its way.
        self.expected = ["409", "ERR_CONNECTION_REFUSED"]
        self.page.on("dialog", lambda dialog: (self.problems.append(dialog.message), dialog.dismiss()))
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("console", self._console)
        self.page.goto(address)

    def _console(self, message):
        if message.type == "error" and not any(text in message.text for text in self.expected):
            self.problems.append(message.text)

    def see(self, row):
        """Wait until a row is shown and its keys work."""
        self.expect(self.page.locator("html.scripted h1")).to_have_text(f"Row {row}")

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)

    def press_at_once(self, keys):
        """Press keys faster than any answer can come."""
        self.page.evaluate(
            "keys => { for (const key of keys) document.body.dispatchEvent("
            "new KeyboardEvent('keydown', {key, bubbles: true, cancelable: true})) }",
            keys,
        )

    def status(self, text):
        self.expect(self.page.locator("#status")).to_contain_text(text)

    def close(self):
        self.context.close()
        assert self.problems == []


@pytest.fixture
def visit(browser, expect):
    """Return a function that opens a browser profile at an address."""
    opened = []

    def open_one(address, **options):
        opened.append(Reviewer(browser, expect, address, **options))
        return opened[-1]

    yield open_one
    for reviewer in opened:
        reviewer.close()


def test_ten_rows_by_keyboard(visit, serve_here, review_set, tmp_path):
    with serve_here(review_set) as server:
        me = visit(server.address)
        me.see(0)
        assert "token" not in me.page.url
        plan = [("k", "keep"), ("r", "relabel"), ("3", "keep"), ("3", "relabel"), ("u", "unsure")]
        for row, (key, _) in enumerate(plan):
            me.see(row)
            me.press(key)
        me.see(5)
        me.status("Row 4 marked unsure. 5 of 12 looked at.")

        me.page.reload()
        me.see(5)
        me.expect(me.page.locator("progress")).to_have_js_property("value", 5)

        me.press("s")
        me.see(6)
        me.press("r")
        me.see(7)
        me.press("z")
        me.see(6)
        me.status("Row 6: decision undone.")
        me.press("k")
        me.see(7)

        # Chosen from the list: l goes to it, typing selects, Enter commits.
        me.press("l")
        me.expect(me.page.locator("#chosen-class")).to_be_focused()
        me.page.keyboard.type("1")
        me.press("Enter")
        me.see(8)
        me.press("p")
        me.see(7)
        me.expect(me.page.locator("#decision")).to_contain_text("relabeled as cat")
        me.press("n")
        me.see(8)
        me.press("j")
        me.see(9)
        me.press("p")
        me.see(8)
        me.press("k")
        me.see(9)
        me.press("r")
        me.see(10)

        expected = {
            0: ("keep", "cat"),
            1: ("relabel", "hen"),
            2: ("keep", "hen"),
            3: ("relabel", "hen"),
            4: ("unsure", ""),
            5: ("skip", ""),
            6: ("keep", "cat"),
            7: ("relabel", "cat"),
            8: ("keep", "hen"),
            9: ("relabel", "dog"),
        }
        with me.page.expect_download() as download:
            me.page.get_by_role("link", name="Decided labels, CSV").click()
        rows = list(csv.DictReader(io.StringIO(download.value.path().read_text())))
        assert {int(row["row"]): (row["action"], row["decided"]) for row in rows} == expected
        assert {row["reviewer"] for row in rows} == {"reviewer 1"}

    store = tmp_path / "set.decisions.sqlite"
    assert {
        row["row"]: (row["action"], row["decided"] or "") for row in export_labels(store, review_set)
    } == expected
    given = ["cat", "dog", "hen"] * 33 + ["cat"]
    corrected = corrected_labels(given, store, review_set)
    changed = {row: label for row, label in enumerate(corrected) if label != given[row]}
    assert changed == {1: "hen", 3: "hen", 7: "cat", 9: "dog"}


@pytest.mark.full
def test_a_killed_server_loses_nothing(visit, run_server, review_set):
    with run_server(review_set) as server:
        me = visit(server.address)
        me.see(0)
        me.press("k")
        me.see(1)
        me.press("r")
        me.see(2)
        # What the page was still fetching, such as its icon, may fail now.
        me.expected.append("net::ERR_")
        server.kill()
        server.start()
        # The page that was open goes on where it was: the form it holds is still good.
        me.press("u")
        me.see(3)
        server.kill()
        server.start()
        me.page.reload()
        me.see(3)
        rows = export_labels(server.store, review_set)
        assert [(row["row"], row["action"], row["decided"]) for row in rows] == [
            (0, "keep", "cat"),
            (1, "relabel", "hen"),
            (2, "unsure", None),
        ]


def test_two_browsers_at_once(visit, serve_here, review_set):
    with serve_here(review_set) as server:
        ada, bob = visit(server.address), visit(server.address)
        ada.see(0)
        bob.see(1)
        ada.press("k")
        ada.see(2)
        bob.press("k")
        bob.see(3)

        # Both look at one row; the first decision stands, the second is shown beside it.
        bob.page.goto(f"{server.origin}/item/2")
        bob.see(2)
        bob.status("reviewer 1 is looking at this row too.")
        ada.press("r")
        ada.see(3)
        bob.press("k")
        bob.expect(bob.page.locator("h1")).to_have_text("Row 2 was changed while you were looking at it")
        bob.expect(bob.page.locator("#theirs")).to_have_text("relabeled as cat")
        bob.expect(bob.page.locator("#yours")).to_have_text("kept hen")
        assert export_labels(server.store, review_set)[2]["decided"] == "cat"
        bob.page.get_by_role("button", name="Replace it with mine").click()
        bob.see(4)
        ada.page.goto(f"{server.origin}/item/2")
        ada.see(2)
        ada.expect(ada.page.locator("#decision")).to_contain_text("This row was kept by reviewer 2")
        rows = export_labels(server.store, review_set)
        assert [(row["row"], row["reviewer"]) for row in rows] == [
            (0, "reviewer 1"),
            (1, "reviewer 2"),
            (2, "reviewer 2"),
        ]


def test_a_script_in_the_data_is_shown_as_text(visit, serve_here, review_set):
    with serve_here(review_set) as server:
        me = visit(server.address)
        me.page.goto(f"{server.origin}/item/2")
        me.see(2)
        me.expect(me.page.get_by_role("cell", name=SCRIPT, exact=True)).to_be_visible()
        assert me.page.locator("script").count() == 1
        # Even a script that got into the page would not run.
        me.page.evaluate(
            "const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s)"
        )
        assert me.page.evaluate("window.ran") is None
        assert re.search("Content Security Policy", me.problems.pop())


def test_everything_works_without_javascript(visit, serve_here, review_set):
    with serve_here(review_set) as server:
        me = visit(server.address, java_script_enabled=False)
        heading = me.page.locator("h1")
        me.expect(heading).to_have_text("Row 0")
        me.page.get_by_role("button", name="Keep cat").click()
        me.expect(heading).to_have_text("Row 1")
        me.page.get_by_label("Other class").select_option("cat")
        me.page.get_by_role("button", name="Set this class").click()
        me.expect(heading).to_have_text("Row 2")
        me.page.get_by_role("button", name="Undo row 1").click()
        me.expect(heading).to_have_text("Row 1")
        me.page.get_by_role("link", name="Next").click()
        me.expect(heading).to_have_text("Row 2")
        me.page.get_by_role("button", name="Search").click()
        me.page.get_by_label("Class, given or suggested").select_option("cat")
        me.page.get_by_label("Score from").fill("-4.65")
        me.page.get_by_role("button", name="Apply").click()
        me.expect(heading).to_have_text("Row 5")
        me.page.get_by_role("button", name="More").click()
        me.page.get_by_label("Note").fill("looks odd")
        me.page.get_by_label("New class").fill("cow")
        me.press("Enter")
        me.expect(me.page.locator("#status")).to_contain_text("Row 5 relabeled as cow, with a note.")


@pytest.mark.full
def test_keys_leave_fields_alone_and_can_be_switched_off(visit, serve_here, review_set):
    with serve_here(review_set) as server:
        me = visit(server.address)
        me.see(0)
        me.page.get_by_text("reviewer 1").first.click()
        field = me.page.get_by_label("Your name, for decisions from now on")
        field.fill("")
        field.press_sequentially("skurk")
        me.press("Enter")
        me.see(0)
        me.expect(me.page.get_by_role("button", name="skurk")).to_be_visible()
        me.press("?")
        me.page.get_by_label("Keys are on").uncheck()
        me.page.keyboard.press("Escape")
        me.press("k", "1")
        me.page.reload()
        me.see(0)
        me.press("k")
        me.page.get_by_role("button", name="Keys").click()
        me.expect(me.page.get_by_label("Keys are on")).not_to_be_checked()
        me.page.get_by_label("Keys are on").check()
        me.page.keyboard.press("Escape")
        me.press("Control+k", "k")
        me.see(1)
        rows = export_labels(server.store, review_set)
        assert [(row["row"], row["action"], row["reviewer"]) for row in rows] == [(0, "keep", "skurk")]


@pytest.mark.full(keep=1)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone(visit, serve_here, review_set, scheme):
    with serve_here(review_set) as server:
        me = visit(server.address, viewport={"width": 360, "height": 740}, color_scheme=scheme)
        me.see(0)
        assert me.page.evaluate("document.documentElement.scrollWidth") == 360
        background = me.page.evaluate("getComputedStyle(document.body).backgroundColor")
        brightness = sum(map(int, re.findall(r"\d+", background)))
        assert (brightness < 3 * 64) == (scheme == "dark")
        # The first stop of the Tab key is the link past the header, and focus is seen.
        me.press("Tab")
        link = me.page.get_by_role("link", name="Skip to the row")
        me.expect(link).to_be_focused()
        me.expect(link).to_be_in_viewport()
        me.press("Enter")
        me.expect(me.page.locator("#main")).to_be_focused()
        keep = me.page.get_by_role("button", name="Keep cat")
        me.expect(keep).to_be_in_viewport()
        keep.focus()
        me.press("Shift+Tab", "Tab")
        assert me.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        keep.click()
        me.see(1)


SCREENS = pytest.mark.parametrize("screen", [(1280, 800), (390, 844)], ids=["desk", "phone"])


def visible_part(me, selector):
    """Top and bottom of an element in the window, and where the bar of buttons begins."""
    box = me.page.locator(selector).bounding_box()
    bar = me.page.locator(".actions").bounding_box()
    return box["y"], box["y"] + box["height"], bar["y"]


@pytest.mark.full
@SCREENS
@pytest.mark.parametrize("kind", ["text", "image", "table"])
def test_the_thing_to_judge_is_on_the_first_screen(
    visit, serve_here, make_item, make_review_set, tmp_path, screen, kind
):
    from PIL import Image

    Image.new("RGB", (640, 480), "red").save(tmp_path / "red.png")
    content = {
        "text": {"text": "A question of some length about animals. " * 6},
        "image": {"image": "red.png"},
    }
    items = [make_item(row, **({"content": content[kind]} if kind in content else {})) for row in (3, 4)]
    with serve_here(make_review_set(items=tuple(items), n_flagged=2)) as server:
        me = visit(server.address, viewport=dict(zip(("width", "height"), screen, strict=True)))
        me.see(3)
        # With the line that says what was done, as on every row but the first.
        me.press("k")
        me.see(4)
        me.page.wait_for_load_state("networkidle")
        inner = {"text": "#thing .text", "image": "#thing img", "table": "#thing tbody"}[kind]
        top, bottom, bar = visible_part(me, inner)
        assert 0 <= top < bottom <= bar
        for selector in (".labels .given", ".labels .suggested"):
            top, bottom, _ = visible_part(me, selector)
            assert 0 <= top < bottom <= bar
        # The row comes before what is said about it.
        assert me.page.locator("#thing").bounding_box()["y"] <= me.page.locator(".bars").bounding_box()["y"]
        assert me.page.evaluate("document.documentElement.scrollWidth") == screen[0]


@pytest.mark.full
@SCREENS
def test_twenty_fast_keys_make_twenty_decisions(visit, serve_here, make_review_set, screen):
    review_set = make_review_set(n_flagged=25)
    with serve_here(review_set) as server:
        me = visit(server.address, viewport=dict(zip(("width", "height"), screen, strict=True)))
        me.see(0)
        keys = "krusx" * 4
        me.press_at_once(keys)
        me.see(20)
        me.status("Row 19 excluded. 20 of 25 looked at.")
        rows = export_labels(server.store, review_set)
        actions = {"k": "keep", "r": "relabel", "u": "unsure", "s": "skip", "x": "exclude"}
        assert [(row["row"], row["action"]) for row in rows] == [
            (row, actions[key]) for row, key in enumerate(keys)
        ]


@pytest.mark.full
def test_keys_beyond_the_last_row_are_named_and_do_nothing(visit, serve_here, make_review_set):
    review_set = make_review_set(n_flagged=3)
    with serve_here(review_set) as server:
        me = visit(server.address)
        me.see(0)
        me.press_at_once("kkkkz")
        me.expect(me.page.locator("h1")).to_have_text("Nothing left to review here")
        me.status("3 of 3 looked at. Not applied: the keys k z")
        assert [row["row"] for row in export_labels(server.store, review_set)] == [0, 1, 2]


@pytest.mark.full
def test_keys_that_follow_into_a_field_do_nothing(visit, serve_here, review_set):
    with serve_here(review_set) as server:
        me = visit(server.address)
        me.see(0)
        me.press_at_once("kckk")
        me.see(1)
        me.status("Not applied: the keys k k")
        assert [row["row"] for row in export_labels(server.store, review_set)] == [0]


@pytest.mark.full(keep=1)
@SCREENS
def test_note_exclusion_new_class_search_and_keys(visit, serve_here, review_set, screen):
    with serve_here(review_set) as server:
        me = visit(server.address, viewport=dict(zip(("width", "height"), screen, strict=True)))
        me.see(0)
        # A note goes along with the decision that follows it.
        me.press("c")
        me.expect(me.page.locator("#note")).to_be_focused()
        me.page.keyboard.type("skurk, see row 7")
        me.press("Escape", "r")
        me.see(1)
        me.status("Row 0 relabeled as dog, with a note.")
        # Or is saved alone.
        me.press("c")
        me.expect(me.page.locator("#note")).to_be_focused()
        me.page.keyboard.type("ask Bob")
        me.press("Enter")
        me.see(2)
        me.status("Row 1 marked unsure, with a note.")
        me.press("x")
        me.see(3)
        me.press("w")
        me.expect(me.page.locator("#new-class")).to_be_focused()
        me.page.keyboard.type("cow")
        me.press("Enter")
        me.see(4)
        me.status("Row 3 relabeled as cow.")
        # The new class is in the list now.
        me.press("l")
        me.expect(me.page.locator("#chosen-class")).to_be_focused()
        me.page.keyboard.type("cow")
        me.press("Enter")
        me.see(5)
        me.press("z")
        me.see(4)
        me.press("/")
        me.expect(me.page.locator("#filter-search")).to_be_focused()
        me.page.keyboard.type("note 9")
        me.press("Enter")
        me.see(9)
        me.expect(me.page.locator(".narrowed")).to_contain_text("with “note 9”")
        me.press("?")
        me.expect(me.page.get_by_role("heading", name="Keys")).to_be_visible()
        me.press("?")
        me.expect(me.page.get_by_role("heading", name="Keys")).to_be_hidden()
        rows = export_labels(server.store, review_set)
        assert [(row["row"], row["action"], row["decided"], row["note"]) for row in rows] == [
            (0, "relabel", "dog", "skurk, see row 7"),
            (1, "unsure", None, "ask Bob"),
            (2, "exclude", None, ""),
            (3, "relabel", "cow", ""),
        ]


@pytest.mark.full
def test_the_private_file_leads_to_the_page(visit, serve_here, review_set, tmp_path):
    from neighboragg._review.app import _private_page

    with serve_here(review_set) as server, _private_page(server.address) as file:
        me = visit(file)
        me.see(0)
        assert "token" not in me.page.url
        # Opened once more, the browser is the same reviewer.
        me.page.goto(file)
        me.see(0)
        me.expect(me.page.get_by_role("button", name="reviewer 1")).to_be_visible()


@pytest.mark.full
def test_back_and_forward(visit, serve_here, review_set):
    with serve_here(review_set) as server:
        me = visit(server.address)
        me.see(0)
        me.press("n")
        me.see(1)
        me.press("n")
        me.see(2)
        me.page.go_back()
        me.see(1)
        me.page.go_forward()
        me.see(2)
        assert me.page.url.endswith("/item/2")


@pytest.mark.full
def test_a_server_that_does_not_answer_is_reported(visit, run_server, review_set):
    with run_server(review_set) as server:
        me = visit(server.address)
        me.see(0)
        me.expected.append("net::ERR_")
        server.kill()
        me.press("k", "k")
        me.status("Nothing was saved: the server does not answer.")
        server.start()
        me.press("k")
        me.see(1)
        assert len(export_labels(server.store, review_set)) == 1


def test_an_image_is_shown_without_requests_to_other_hosts(
    visit, serve_here, make_item, make_review_set, tmp_path
):
    from PIL import Image

    Image.new("RGB", (8, 8), "red").save(tmp_path / "red one.png")
    item = make_item(3, content={"image": "red one.png"})
    with serve_here(make_review_set(items=(item,), n_flagged=1)) as server:
        me = visit("about:blank")
        asked = []
        me.page.on("request", lambda request: asked.append(request.url))
        me.page.goto(server.address)
        me.see(3)
        image = me.page.get_by_role("img", name="Image of row 3: red one.png")
        me.expect(image).to_have_js_property("naturalWidth", 8)
        assert len(asked) >= 5
        assert all(url.startswith(server.origin) for url in asked)


AWKWARD_NAMES = [
    "cat/plain.png",
    "cat/a b'c&d #1?x=2%41.png",
    'dog/"><img src=x onerror=alert(1)>.png',
    "dög/日本 <b>.PNG",
    "dog/javascript:alert(1).png",
]


@pytest.mark.full
def test_images_with_awkward_names_can_be_reviewed(visit, serve_here, make_item, make_review_set, tmp_path):
    from PIL import Image

    for width, name in enumerate(AWKWARD_NAMES, start=5):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new("RGB", (width, 4), "red").save(tmp_path / name)
    near = [Neighbor(90 + i, 0.5, {"image": name}, name=name) for i, name in enumerate(AWKWARD_NAMES)]
    items = [
        make_item(
            i,
            content={"image": name},
            name=name,
            given_neighbors=tuple(near[:2]),
            suggested_neighbors=tuple(near[2:]),
        )
        for i, name in enumerate(AWKWARD_NAMES)
    ]
    review_set = make_review_set(items=tuple(items), n_flagged=len(items))
    with serve_here(review_set) as server:
        me = visit(server.address)
        for width, name in enumerate(AWKWARD_NAMES, start=5):
            me.expect(me.page.locator("html.scripted #thing img")).to_have_attribute(
                "alt", f"Image of {name}: {name}"
            )
            me.expect(me.page.locator("h1")).to_have_text(name)
            me.expect(me.page.locator("#thing img")).to_have_js_property("naturalWidth", width)
            thumbs = me.page.locator(".thumbs img")
            me.expect(thumbs).to_have_count(5)
            for i in range(5):
                thumbs.nth(i).scroll_into_view_if_needed()
                me.expect(thumbs.nth(i)).to_have_js_property("naturalWidth", 5 + i)
            me.press("r")
        me.expect(me.page.locator("h1")).to_have_text("Nothing left to review here")
        assert [row["action"] for row in export_labels(server.store, review_set)] == ["relabel"] * 5
