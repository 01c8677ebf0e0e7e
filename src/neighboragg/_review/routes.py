"""The review page as a FastAPI application."""

import os
import re
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Request, Response
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse
from starlette.exceptions import HTTPException

from neighboragg._core.checks import check_real
from neighboragg._review.app import LOOPBACK_HOSTS
from neighboragg._review.export import LOG_COLUMNS, label_rows, log_rows, to_csv, to_parquet
from neighboragg._review.page import Site, check_name, link, thumbnail
from neighboragg._review.queue import ReviewFilter
from neighboragg._review.store import Decision, DecisionConflictError, DecisionStore
from neighboragg._web import Guard, RefusedError, read_form
from neighboragg.exceptions import InvalidInputError, InvalidParameterError, MissingExtraError
from neighboragg.labels import ReviewSet

_STATIC = Path(__file__).parent / "static"
_STATIC_TYPES = {"review.css": "text/css", "review.js": "text/javascript", "icon.svg": "image/svg+xml"}


def create_app(
    review_set: ReviewSet,
    store_path: str | os.PathLike[str],
    *,
    token: str,
    image_root: str | os.PathLike[str] | None = None,
    allowed_hosts: Sequence[str] = LOOPBACK_HOSTS,
    lease_seconds: float = 300.0,
    confidence_level: float = 0.95,
    clock: Callable[[], float] = time.time,
) -> FastAPI:
    """Return the review page of a review set as a FastAPI application."""
    owner = "create_app"
    if not isinstance(token, str) or not re.fullmatch(r"[A-Za-z0-9_-]{16,}", token):
        raise InvalidParameterError(
            "The 'token' parameter of create_app must have at least 16 letters, digits, '-' or '_'.\n"
            "Hint: secrets.token_urlsafe(32)."
        )
    check_real(lease_seconds, "lease_seconds", owner, low=0, high=float("inf"), closed="left")
    check_real(confidence_level, "confidence_level", owner, low=0, high=1)
    if image_root is None and any(item.kind == "image" for item in review_set.items):
        raise InvalidInputError(
            "The review set has images, but create_app got image_root=None.\n"
            "Hint: pass the folder that the image paths are relative to."
        )
    store = DecisionStore(store_path, review_set, clock=clock)
    site = Site.build(
        review_set,
        store,
        token=token,
        image_root=None if image_root is None else Path(image_root),
        lease_seconds=lease_seconds,
        confidence_level=confidence_level,
    )

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        store.close()

    # The generated documentation pages load scripts from another host, and traces would leak the token in the
    # address. Versions of FastAPI without telemetry ignore the setting.
    app = FastAPI(
        title=review_set.title,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        lifespan=lifespan,
        telemetry={
            "tracing": False,
            "metrics": False,
            "logs": False,
            "operation_spans": False,
            "auto_configure": False,
        },
    )
    app.state.store = store
    app.state.site = site

    def refuse(error: RefusedError) -> Response:
        return HTMLResponse(site.refusal(error), status_code=error.status)

    app.add_middleware(
        Guard,
        token=token,
        cookie=f"neighboragg_review_{review_set.fingerprint[:8]}",
        allowed_hosts=allowed_hosts,
        refuse=refuse,
    )
    _add_errors(app, refuse)
    _add_pages(app, site)
    _add_forms(app, site)
    _add_files(app, site)
    return app


def _add_errors(app: FastAPI, refuse: Callable[[RefusedError], Response]) -> None:
    @app.exception_handler(RefusedError)
    def refused(request: Request, error: RefusedError) -> Response:
        return refuse(error)

    @app.exception_handler(InvalidInputError)
    @app.exception_handler(InvalidParameterError)
    def invalid(request: Request, error: Exception) -> Response:
        return refuse(RefusedError(400, "That did not work", f"{error} Nothing was saved."))

    @app.exception_handler(MissingExtraError)
    def missing(request: Request, error: Exception) -> Response:
        return refuse(RefusedError(501, "Not installed", str(error)))

    @app.exception_handler(sqlite3.Error)
    def broken(request: Request, error: Exception) -> Response:
        text = (
            f"The file of decisions cannot be used at the moment: {error}. Your last decision was not saved."
        )
        return refuse(RefusedError(503, "Not saved", text))

    @app.exception_handler(HTTPException)
    def unknown(request: Request, error: HTTPException) -> Response:
        return refuse(RefusedError(error.status_code, str(error.detail), "There is no such page."))


def _add_pages(app: FastAPI, site: Site) -> None:
    @app.get("/")
    def start(request: Request) -> Response:
        return _go_on(site, _filter(site, request), request.state.session, after=None, did=None)

    @app.get("/item/{number}")
    def item(request: Request, number: str) -> Response:
        row = int(number) if _is_whole(number) else -1
        if row not in site.items:
            raise RefusedError(404, "No such row", f"Row {number[:20]} is not in the review set.")
        chosen, did = _filter(site, request), _did(site, request)
        return HTMLResponse(site.item_page(row, request.state.session, chosen, did))

    @app.get("/done")
    def done(request: Request) -> Response:
        chosen, did = _filter(site, request), _did(site, request)
        return HTMLResponse(site.done_page(request.state.session, chosen, did))


def _add_forms(app: FastAPI, site: Site) -> None:
    async def form(request: Request) -> dict[str, str]:
        return await read_form(request, token=site.token)

    Form = Annotated[dict[str, str], Depends(form)]

    @app.post("/decide")
    def decide(request: Request, fields: Form) -> Response:
        session = request.state.session
        chosen = ReviewFilter.from_query(fields, site.review_set.classes)
        row, based_on = _whole(fields, "row"), _whole(fields, "version")
        attempt = _attempt(site, row, fields) | {"reviewer": site.store.sessions.reviewer(session)}
        try:
            decision = site.store.record(row, based_on=based_on, **attempt)
        except DecisionConflictError as error:
            return HTMLResponse(site.conflict_page(error, attempt, session, chosen), status_code=409)
        return _go_on(site, chosen, session, after=row, did=decision)

    @app.post("/undo")
    def undo(request: Request, fields: Form) -> Response:
        session = request.state.session
        chosen = ReviewFilter.from_query(fields, site.review_set.classes)
        reviewer = site.store.sessions.reviewer(session)
        try:
            decision = site.store.undo(_whole(fields, "undoes"), reviewer=reviewer)
        except DecisionConflictError as error:
            attempt = {"action": "undo", "label": None, "note": ""}
            return HTMLResponse(site.conflict_page(error, attempt, session, chosen), status_code=409)
        return _redirect(f"/item/{decision.row}", chosen, decision)

    @app.post("/reviewer")
    def reviewer(request: Request, fields: Form) -> Response:
        chosen = ReviewFilter.from_query(fields, site.review_set.classes)
        site.store.sessions.rename(request.state.session, check_name(fields.get("name", "")))
        row = fields.get("row", "")
        return _redirect(f"/item/{int(row)}" if _is_whole(row) else "/", chosen, None)


def _add_files(app: FastAPI, site: Site) -> None:
    @app.get("/static/{name}")
    def static(name: str) -> Response:
        if name not in _STATIC_TYPES:
            raise RefusedError(404, "Not Found", "There is no such page.")
        return FileResponse(
            _STATIC / name, media_type=_STATIC_TYPES[name], headers={"Cache-Control": "no-cache"}
        )

    @app.get("/images/{path:path}")
    def image(request: Request, path: str) -> Response:
        file, kind = site.image(path)
        headers = {"Cache-Control": "private, max-age=3600"}
        if request.query_params.get("small") == "1" and (copy := thumbnail(file)) is not None:
            return Response(copy, media_type="image/jpeg", headers=headers)
        return FileResponse(file, media_type=kind, headers=headers)

    @app.get("/export.csv")
    def labels_csv() -> Response:
        return _download(to_csv(label_rows(site.store, site.review_set)).encode(), "text/csv", "labels.csv")

    @app.get("/export.parquet")
    def labels_parquet() -> Response:
        rows = label_rows(site.store, site.review_set)
        return _download(to_parquet(rows), "application/vnd.apache.parquet", "labels.parquet")

    @app.get("/log.csv")
    def log_csv() -> Response:
        return _download(
            to_csv(log_rows(site.store.log()), LOG_COLUMNS).encode(), "text/csv", "decisions.csv"
        )


def _go_on(
    site: Site, chosen: ReviewFilter, session: str, *, after: int | None, did: Decision | None
) -> Response:
    """Redirect to the next row: while deciding, one that nobody else is reviewing; otherwise the following one."""
    queue = site.queues.filtered(chosen)
    if chosen.show == "todo":
        row = site.store.sessions.hand_out(queue.rows("todo"), session=session, seconds=site.lease_seconds)
    elif after is None:
        row = next(queue.rows(chosen.show), None)
    else:
        row = queue.around(after, chosen.show)[1]
    return _redirect("/done" if row is None else f"/item/{row}", chosen, did)


def _attempt(site: Site, row: int, fields: dict[str, str]) -> dict[str, Any]:
    """Convert the fields of a form to parameters of `DecisionStore.record`."""
    action, label, note = fields.get("action", ""), None, fields.get("note", "")
    new_class = False
    if action == "enter":
        # The Enter key in a field acts as the button next to it.
        action = "new_class" if fields.get("new_class", "").strip() else "note"
    if action == "note":
        # A note alone does not change the decision; a row without a decision becomes unsure.
        if not note.strip():
            raise InvalidInputError("There is nothing to save: the note is empty.")
        in_force = site.store.in_force(row)
        action, label = (in_force.action, in_force.label) if in_force else ("unsure", None)
    elif action == "new_class":
        action, label, new_class = "relabel", fields.get("new_class", ""), True
    elif action == "class":
        action, label = "relabel", fields.get("chosen_class", "")
    elif action == "relabel":
        label = fields.get("new_label")
    # A reviewer may have added this class before.
    new_class = new_class or label in site.queues.new_classes
    return {"action": action, "label": label, "note": note, "new_class": new_class}


def _redirect(path: str, chosen: ReviewFilter, did: Decision | None) -> Response:
    return RedirectResponse(link(path, chosen.query(), did=did and did.id), status_code=303)


def _filter(site: Site, request: Request) -> ReviewFilter:
    return ReviewFilter.from_query(request.query_params, site.review_set.classes)


def _did(site: Site, request: Request) -> Decision | None:
    """Return the log entry that led to this page; the address contains only its number."""
    number = request.query_params.get("did", "")
    return site.store.entry(int(number)) if _is_whole(number) else None


def _whole(fields: dict[str, str], name: str) -> int:
    text = fields.get(name, "")
    if not _is_whole(text):
        raise InvalidInputError(f"The field {name!r} must be a whole number. Got {text!r}.")
    return int(text)


def _is_whole(text: str) -> bool:
    # SQLite stores integers of up to 19 digits.
    return text.isascii() and text.isdecimal() and len(text) < 19


def _download(content: bytes, kind: str, name: str) -> Response:
    return Response(
        content, media_type=kind, headers={"Content-Disposition": f'attachment; filename="{name}"'}
    )
