"""Run the review page on this machine."""

import ipaddress
import os
import secrets
import socket
import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path

from neighboragg._optional import import_extra
from neighboragg.exceptions import InvalidParameterError
from neighboragg.review._app import LOOPBACK_HOSTS, create_app
from neighboragg.review._files import load_review_set

__all__ = ["serve"]


def serve(
    review_set_path: str | os.PathLike[str],
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    store_path: str | os.PathLike[str] | None = None,
    token: str | None = None,
    open_browser: bool = True,
    image_root: str | os.PathLike[str] | None = None,
    allowed_hosts: Sequence[str] | None = None,
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
    allowed_hosts : sequence of str, default=None
        Host names under which browsers may call. If None, those of this machine's loopback, and for another
        `host` that address and this machine's name.

    See Also
    --------
    create_app : The application alone.

    Notes
    -----
    The page is served without encryption. On an address other than the loopback, anyone on the way can read the
    token; put a proxy with TLS before it.

    Examples
    --------
    >>> from neighboragg.review import serve
    >>> serve("suspicious.json", port=8000)  # doctest: +SKIP
    Review page: http://127.0.0.1:8000/?token=…
    """
    uvicorn = import_extra("uvicorn", extra="review", purpose="The review page")
    source = Path(review_set_path)
    secret = secrets.token_urlsafe(32) if token is None else token
    app = create_app(
        load_review_set(source),
        source.with_suffix(".decisions.sqlite") if store_path is None else store_path,
        token=secret,
        image_root=source.resolve().parent if image_root is None else image_root,
        allowed_hosts=_host_names(host) if allowed_hosts is None else allowed_hosts,
    )
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, ws="none", server_header=False, proxy_headers=False
    )
    try:
        with _listen(host, port) as listener:
            address = f"http://{_url_host(host)}:{listener.getsockname()[1]}/?token={secret}"
            sys.stdout.write(f"Review page: {address}\n")
            if not _is_loopback(host):
                sys.stdout.write("Warning: other machines can reach this address, and it is not encrypted.\n")
            sys.stdout.flush()
            if open_browser:
                webbrowser.open(address)
            uvicorn.Server(config).run(sockets=[listener])
    except KeyboardInterrupt:
        # The usual way to end; uvicorn has shut down in order and passes the signal on.
        pass
    finally:
        app.state.store.close()


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


def _host_names(host: str) -> tuple[str, ...]:
    return (*LOOPBACK_HOSTS, host) if _is_loopback(host) else (*LOOPBACK_HOSTS, host, socket.gethostname())


def _url_host(host: str) -> str:
    """Return the host as it stands in an address; a wildcard is no address to go to."""
    if host in ("0.0.0.0", "::"):
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host
