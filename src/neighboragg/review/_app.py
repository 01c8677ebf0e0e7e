"""The review page as an ASGI application."""

import os
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from neighboragg._optional import import_extra
from neighboragg._validation import check_real
from neighboragg.exceptions import InvalidInputError, InvalidParameterError
from neighboragg.review._items import ReviewSet

if TYPE_CHECKING:
    from fastapi import FastAPI

__all__ = ["LOOPBACK_HOSTS", "create_app"]

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
    """Return the review page of a review set as a FastAPI application.

    Parameters
    ----------
    review_set : ReviewSet
        The rows to review.
    store_path : path-like
        The SQLite file of the decisions; made if it does not exist.
    token : str
        The secret that opens the page, as ``/?token=…``: 16 or more letters, digits, ``-`` and ``_``.
    image_root : path-like, default=None
        Folder that image paths are relative to. Needed if the review set has images.
    allowed_hosts : sequence of str, default=("127.0.0.1", "localhost", "::1")
        Host names under which browsers may call, without port.
    lease_seconds : float, default=300.0
        How long a row that was handed to one browser is kept from the others' queues.
    confidence_level : float, default=0.95
        Level of the intervals on the page.
    clock : callable, default=time.time
        Seconds since 1970.

    Returns
    -------
    app : fastapi.FastAPI
        For any ASGI server with one process or several. All its assets are its own; nothing is fetched from
        other hosts.

    See Also
    --------
    serve : Run it on this machine.

    Notes
    -----
    The token is compared once, then travels in a cookie (HttpOnly, SameSite=Lax), and the browser is led on
    to an address without it. Every form carries a second token derived from the cookie, without which nothing is
    written. Requests under another host name are refused, which defeats DNS rebinding. Pages allow no inline
    script, no frame and no foreign resource. Names of reviewers are what they say they are: whoever has the
    token may use any name.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from neighboragg.review import ReviewItem, ReviewSet, create_app
    >>> item = ReviewItem(row=3, content={"text": "meow"}, given="dog", suggested="cat", score=-2.0,
    ...                   trust=(0.9, 0.1))
    >>> review_set = ReviewSet(classes=("cat", "dog"), n_rows=100, n_flagged=1, items=(item,))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     app = create_app(review_set, Path(folder) / "d.sqlite", token="a-long-random-secret")
    ...     app.state.store.close()
    >>> app.title
    'Label review'
    """
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
    from neighboragg.review._routes import build_app

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
