"""The review page: routes, app and server."""

import html
import ipaddress
import os
import re
import secrets
import socket
import sqlite3
import sys
import time
import webbrowser
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends, FastAPI, Request, Response
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse
from starlette.exceptions import HTTPException

from neighboragg._core.checks import check_real
from neighboragg._core.packages import import_extra
from neighboragg._review.export import LOG_COLUMNS, label_rows, log_rows, to_csv, to_parquet
from neighboragg._review.page import Site, check_name, link, thumbnail
from neighboragg._review.queue import ReviewFilter
from neighboragg._review.store import Decision, DecisionConflictError, DecisionStore
from neighboragg._web import Guard, RefusedError, read_form
from neighboragg.exceptions import InvalidInputError, InvalidParameterError, MissingExtraError
from neighboragg.labels import ReviewSet, load_review_set

if TYPE_CHECKING:
    from fastapi import FastAPI

_STATIC = Path(__file__).parent / "static"
_STATIC_TYPES = {"review.css": "text/css", "review.js": "text/javascript", "icon.svg": "image/svg+xml"}


def build_app(
    review_set: ReviewSet,
    store_path: str | os.PathLike[str],
    *,
    token: str,
    image_root: Path | None,
    allowed_hosts: Sequence[str],
    lease_seconds: float,
    confidence_level: float,
    clock: Callable[[], float],
) -> FastAPI:
    """Return the application; see `create_app`."""
    store = DecisionStore(store_path, review_set, clock=clock)
    site = Site.build(
        review_set,
        store,
        token=token,
        image_root=image_root,
        lease_seconds=lease_seconds,
        confidence_level=confidence_level,
    )

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        store.close()

    # The generated documentation pages load scripts from another host; traces would carry the token in the
    # address away. Versions of FastAPI without telemetry ignore the setting.
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
    """Lead to the next row: while deciding, one that nobody else has; while looking back, the one after."""
    queue = site.queues.filtered(chosen)
    if chosen.show == "todo":
        row = site.store.sessions.hand_out(queue.rows("todo"), session=session, seconds=site.lease_seconds)
    elif after is None:
        row = next(queue.rows(chosen.show), None)
    else:
        row = queue.around(after, chosen.show)[1]
    return _redirect("/done" if row is None else f"/item/{row}", chosen, did)


def _attempt(site: Site, row: int, fields: dict[str, str]) -> dict[str, Any]:
    """Return what a form asks for, as the parameters of `DecisionStore.record`."""
    action, label, note = fields.get("action", ""), None, fields.get("note", "")
    new_class = False
    if action == "enter":
        # The Enter key in a field stands for the button beside it.
        action = "new_class" if fields.get("new_class", "").strip() else "note"
    if action == "note":
        # A note alone leaves what is decided as it is; a row that is not decided becomes unsure.
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
    # Somebody may have named this class before.
    new_class = new_class or label in site.queues.new_classes
    return {"action": action, "label": label, "note": note, "new_class": new_class}


def _redirect(path: str, chosen: ReviewFilter, did: Decision | None) -> Response:
    return RedirectResponse(link(path, chosen.query(), did=did and did.id), status_code=303)


def _filter(site: Site, request: Request) -> ReviewFilter:
    return ReviewFilter.from_query(request.query_params, site.review_set.classes)


def _did(site: Site, request: Request) -> Decision | None:
    """Return the entry that led to this page, to say what was done; only a number stands in the address."""
    number = request.query_params.get("did", "")
    return site.store.entry(int(number)) if _is_whole(number) else None


def _whole(fields: dict[str, str], name: str) -> int:
    text = fields.get(name, "")
    if not _is_whole(text):
        raise InvalidInputError(f"The field {name!r} must be a whole number. Got {text!r}.")
    return int(text)


def _is_whole(text: str) -> bool:
    # SQLite holds integers of up to 19 digits.
    return text.isascii() and text.isdecimal() and len(text) < 19


def _download(content: bytes, kind: str, name: str) -> Response:
    return Response(
        content, media_type=kind, headers={"Content-Disposition": f'attachment; filename="{name}"'}
    )


LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "::1")


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
) -> "FastAPI":
    """Return the review page of a review set as a FastAPI application."""
    owner = "create_app"
    if not isinstance(token, str) or not re.fullmatch(r"[A-Za-z0-9_-]{16,}", token):
        raise InvalidParameterError(
            "The 'token' parameter of create_app must have 16 or more letters, digits, '-' or '_'.\n"
            "Hint: secrets.token_urlsafe(32)."
        )
    check_real(lease_seconds, "lease_seconds", owner, low=0, high=float("inf"), closed="left")
    check_real(confidence_level, "confidence_level", owner, low=0, high=1)
    if image_root is None and any(item.kind == "image" for item in review_set.items):
        raise InvalidInputError(
            "The review set has images, but create_app got image_root=None.\n"
            "Hint: pass the folder that the image paths are relative to."
        )
    for module in ("fastapi", "jinja2"):
        import_extra(module, extra="review", purpose="The review page")

    return build_app(
        review_set,
        store_path,
        token=token,
        image_root=None if image_root is None else Path(image_root),
        allowed_hosts=allowed_hosts,
        lease_seconds=lease_seconds,
        confidence_level=confidence_level,
        clock=clock,
    )


def review(
    review_set_path: str | os.PathLike[str],
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    store_path: str | os.PathLike[str] | None = None,
    token: str | None = None,
    open_browser: bool = True,
    image_root: str | os.PathLike[str] | None = None,
    allow_hosts: Sequence[str] = (),
) -> None:
    """Serve the review page until interrupted, and print its address.

    Parameters
    ----------
    review_set_path : path-like
        The review set, a JSON file.
    host : str, default="127.0.0.1"
        Address to listen on; by default only this machine can connect.
    port : int, default=0
        Port to listen on; 0 takes a free one.
    store_path : path-like, default=None
        The SQLite file of the decisions. If None, it lies beside the review set and is named after it:
        ``name.decisions.sqlite``.
    token : str, default=None
        The secret in the address. If None, a new random one.
    open_browser : bool, default=True
        Whether to open the address in the default browser.
    image_root : path-like, default=None
        Folder that image paths are relative to. If None, the folder of the review set.
    allow_hosts : sequence of str, default=()
        Host names under which browsers may call, besides those of this machine's loopback, `host`, and this
        machine's name if `host` is not the loopback.

    See Also
    --------
    create_app : The application alone.

    Notes
    -----
    The browser is not given the address itself, since the command line of a browser is visible to everybody on
    the machine: it opens a small file that only this user can read, which leads to the address. Where a browser
    may not read that file, open the address that is printed.

    The page is served without encryption. On an address other than the loopback, anyone on the way can read the
    token; put a proxy with TLS before it.

    Examples
    --------
    >>> from neighboragg import review
    >>> review("suspicious.json", port=8000)  # doctest: +SKIP
    Review page: http://127.0.0.1:8000/?token=…
    """
    uvicorn = import_extra("uvicorn", extra="review", purpose="The review page")
    source = Path(review_set_path)
    names = _host_names(host, allow_hosts)
    secret = secrets.token_urlsafe(32) if token is None else token
    review_set = load_review_set(source)
    pictures = source.resolve().parent if image_root is None else Path(image_root)
    _check_pictures(review_set, pictures)
    app = create_app(
        review_set,
        source.with_suffix(".decisions.sqlite") if store_path is None else store_path,
        token=secret,
        image_root=pictures,
        allowed_hosts=names,
    )
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, ws="none", server_header=False, proxy_headers=False
    )
    try:
        with _listen(host, port) as listener:
            address = f"http://{_url_host(host)}:{listener.getsockname()[1]}/?token={secret}"
            sys.stdout.write(f"Review page: {address}\n")
            if not _is_loopback(host):
                sys.stdout.write(
                    "Warning: other machines can reach this address, and the connection is not encrypted.\n"
                    f"The page answers to the names {', '.join(names)}; allow others with --allow-host.\n"
                )
            sys.stdout.flush()
            with _private_page(address) if open_browser else nullcontext() as page:
                if page is not None:
                    webbrowser.open(page)
                uvicorn.Server(config).run(sockets=[listener])
    except KeyboardInterrupt:
        # The usual way to end; uvicorn has shut down in order and passes the signal on.
        pass
    finally:
        app.state.store.close()


def _check_pictures(review_set: ReviewSet, root: Path) -> None:
    """Raise if all pictures are missing: then it is the folder that is wrong."""
    paths = [str(item.content["image"]) for item in review_set.items if item.kind == "image"]
    if paths and not any((root / path).is_file() for path in paths):
        raise InvalidInputError(
            f"None of the {len(paths):,} pictures to review is below {root}; the first is {paths[0]}.\n"
            "Hint: --images folder, the folder that was audited, or that of the table."
        )


def _listen(host: str, port: int) -> socket.socket:
    """Return a listening socket: browsers that come before the server is up wait in its queue."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        raise InvalidParameterError(
            f"Cannot listen on {host}, port {port}: {error}.\nHint: port 0 takes a free one."
        ) from error


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _host_names(host: str, others: Sequence[str]) -> tuple[str, ...]:
    own = () if _is_loopback(host) else (socket.gethostname(),)
    return tuple(dict.fromkeys((*LOOPBACK_HOSTS, host, *own, *others)))


@contextmanager
def _private_page(address: str) -> Iterator[str]:
    """Yield the address of a file that leads to the page and that only this user can read."""
    with TemporaryDirectory(prefix="neighboragg-") as folder:
        page = Path(folder) / "review.html"
        page.touch(mode=0o600)
        target = html.escape(address)
        page.write_text(
            f'<!doctype html><meta charset="utf-8"><title>Label review</title>'
            f'<meta http-equiv="refresh" content="0; url={target}"><p><a href="{target}">Go to the review</a></p>',
            encoding="utf-8",
        )
        yield page.as_uri()


def _url_host(host: str) -> str:
    """Return the host as it stands in an address; a wildcard is no address to go to."""
    if host in ("0.0.0.0", "::"):
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host
