"""The server that shows the review page on this machine."""

import html
import ipaddress
import os
import secrets
import socket
import sys
import webbrowser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory

from neighboragg._core.packages import import_extra, publish
from neighboragg.exceptions import InvalidInputError, InvalidParameterError
from neighboragg.labels import AuditFiles, Origin, ReviewSet, load_review_set

PACKAGES = ("uvicorn", "fastapi", "jinja2")
LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "::1")


def review(
    file: str | os.PathLike[str] = "suspicious.csv",
    *,
    images: str | os.PathLike[str] | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    allow_host: Sequence[str] = (),
    browser: bool = True,
    store_path: str | os.PathLike[str] | None = None,
    token: str | None = None,
) -> None:
    """Serve the review page until interrupted, and print its address.

    Parameters
    ----------
    file : path-like, default="suspicious.csv"
        CSV file that the audit wrote, or a review set (a JSON file).
    images : path-like, default=None
        Folder that image paths are relative to. If None, that of the audited source if it exists, else the folder of
        the file.
    host : str, default="127.0.0.1"
        Address to listen on; by default only this machine can connect.
    port : int, default=0
        Port to listen on; 0 takes a free one.
    allow_host : sequence of str, default=()
        Host names under which browsers may call, in addition to those of this machine's loopback, `host`, and this
        machine's name if `host` is not the loopback.
    browser : bool, default=True
        Whether to open the address in the default browser.
    store_path : path-like, default=None
        The SQLite file for the decisions. If None, it is stored next to the review set as
        ``name.decisions.sqlite``.
    token : str, default=None
        The secret in the address. If None, a random one is generated.

    Notes
    -----
    Only people who have the token in the address can open the page. Every user of the machine can see the command
    line of a browser, so the browser opens a small file that only you can read and that redirects to the address. If
    the browser cannot read this file, open the printed address.

    The connection is not encrypted. If `host` is not the loopback, anyone on the network path can read the token; use a
    proxy with TLS.

    Examples
    --------
    >>> from neighboragg import review
    >>> review("suspicious.csv", port=8000)  # doctest: +SKIP
    Review page: http://127.0.0.1:8000/?token=…
    """
    uvicorn, *_ = (import_extra(name, extra="review", purpose="The review page") for name in PACKAGES)
    from neighboragg._review.routes import create_app

    source = Path(file)
    if source.suffix.lower() == ".csv":
        source = AuditFiles(source).existing_review()
    names = _host_names(host, allow_host)
    secret = secrets.token_urlsafe(32) if token is None else token
    review_set = load_review_set(source)
    root = _image_root(review_set, source) if images is None else Path(images)
    _check_images(review_set, root)
    app = create_app(
        review_set,
        source.with_suffix(".decisions.sqlite") if store_path is None else store_path,
        token=secret,
        image_root=root,
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
                    f"The page accepts the host names {', '.join(names)}; allow others with --allow-host.\n"
                )
            sys.stdout.flush()
            with _private_page(address) if browser else nullcontext() as page:
                if page is not None:
                    webbrowser.open(page)
                uvicorn.Server(config).run(sockets=[listener])
    except KeyboardInterrupt:
        # The usual way to stop; uvicorn has shut down cleanly and passes the signal on.
        pass
    finally:
        app.state.store.close()


def _image_root(review_set: ReviewSet, path: Path) -> Path:
    """Folder that image paths are relative to: that of the audited source, or of the review set."""
    origin = Origin.read(review_set)
    root = path.resolve().parent if origin is None else Path(origin.root)
    return root if root.is_dir() else path.resolve().parent


def _check_images(review_set: ReviewSet, root: Path) -> None:
    """Raise if all images are missing, because then the folder must be wrong."""
    paths = [str(item.content["image"]) for item in review_set.items if item.kind == "image"]
    if paths and not any((root / path).is_file() for path in paths):
        raise InvalidInputError(
            f"None of the {len(paths):,} images to review is in {root}; the first is {paths[0]}.\n"
            "Hint: pass --images with the folder that was audited, or the folder of the table."
        )


def _listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; it queues browsers that connect before the server is ready."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        raise InvalidParameterError(
            f"Cannot listen on {host}, port {port}: {error}.\nHint: use port 0 for any free port."
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
    """Yield the address of a file that redirects to the page and that only this user can read."""
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
    """Return the host as written in an address; a wildcard becomes the name of this machine."""
    if host in ("0.0.0.0", "::"):
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host


publish(globals())
