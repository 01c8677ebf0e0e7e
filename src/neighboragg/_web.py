"""Access control for local web pages: host names, tokens, cookies, security headers and forms."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Sequence
from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_LARGEST_FORM = 64 * 1024
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class RefusedError(Exception):
    """A refused request, with the status and the text of the error page."""

    def __init__(self, status: int, title: str, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.title = title
        self.text = text


class Guard:
    """Middleware that checks the host name and the token, and sets security headers."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        token: str,
        cookie: str,
        allowed_hosts: Sequence[str],
        refuse: Callable[[RefusedError], Response],
    ) -> None:
        self._app = app
        self._token = token
        self._cookie = cookie
        self._hosts = frozenset(host.lower() for host in allowed_hosts)
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        try:
            answer: ASGIApp = self._check(Request(scope)) or self._app
        except RefusedError as error:
            answer = self._refuse(error)
        await answer(scope, receive, send_guarded)

    def _check(self, request: Request) -> Response | None:
        """Return a response to send instead of the page, or None; store the session in the request state."""
        header = request.headers.get("host", "")
        if _host_name(header) not in self._hosts:
            raise RefusedError(
                400,
                "Unknown host name",
                f"This page does not accept the host name {header!r}. Open the address that was printed when the page "
                "was started, or allow this name with --allow-host.",
            )
        # Use the path of the connection: old versions of Starlette build request.url from the Host header.
        path = str(request.scope["path"])
        if path.startswith("/static/"):
            return None
        session = self._session(request)
        if "token" in request.query_params:
            return self._enter(request, session)
        if session is None:
            raise RefusedError(
                403,
                "This page is locked",
                "Open the complete address that was printed when the page was started; it contains the key.",
            )
        request.state.session = session
        return None

    def _session(self, request: Request) -> str | None:
        """Return the session from the cookie if its token is correct."""
        token, _, session = request.cookies.get(self._cookie, "").partition(".")
        return session if session and _same(token, self._token) else None

    def _enter(self, request: Request, session: str | None) -> Response:
        """Exchange the token in the address for a cookie, and redirect to the address without the token."""
        if not _same(request.query_params["token"], self._token):
            raise RefusedError(
                403,
                "Wrong key",
                "The key in this address is not valid for the running page. It changes each time the page is started; "
                "open the address that was printed last.",
            )
        # A session, and with it the reviewer's name, survives a restart of the server with another token.
        former = request.cookies.get(self._cookie, "").partition(".")[2]
        session = session or (former if former.isalnum() else "") or secrets.token_hex(16)
        rest = [pair for pair in request.query_params.multi_items() if pair[0] != "token"]
        # Only one leading slash: two would start the name of another host.
        target = (
            "/" + quote(str(request.scope["path"]).lstrip("/\\")) + (f"?{urlencode(rest)}" if rest else "")
        )
        response = RedirectResponse(target, status_code=303)
        # Lax, not Strict: the page is opened from a file, and a browser would not send a strict cookie then.
        # All changes are POST requests with a token of their own.
        response.set_cookie(self._cookie, f"{self._token}.{session}", httponly=True, samesite="lax")
        return response


def csrf_token(token: str, session: str) -> str:
    """Return the token that a form of this session must contain."""
    return hmac.new(token.encode(), f"form:{session}".encode(), hashlib.sha256).hexdigest()


async def read_form(request: Request, *, token: str) -> dict[str, str]:
    """Return the fields of a form that one of our own pages sent."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise RefusedError(415, "Not saved", "Only the forms of this page are accepted.")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LARGEST_FORM:
            raise RefusedError(413, "Not saved", "The form is too large.")
    try:
        fields = dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=50))
    except ValueError:
        raise RefusedError(400, "Not saved", "The form cannot be read.") from None
    foreign = request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none")
    if foreign or not _same(fields.get("csrf", ""), csrf_token(token, request.state.session)):
        raise RefusedError(
            403,
            "Not saved",
            "This form came from another page or from an earlier run of the server. Reload the page.",
        )
    return fields


def _host_name(header: str) -> str:
    """Return the name in a Host header without port and brackets, or an empty string if the header is malformed."""
    found = re.fullmatch(r"(?:\[([0-9A-Fa-f:.]+)\]|([\w.-]+))(?::\d{1,5})?", header, re.ASCII)
    return (found[1] or found[2]).lower() if found else ""


def _same(first: str, second: str) -> bool:
    # Constant time, so timing reveals nothing; bytes, because compare_digest accepts only ASCII text.
    return hmac.compare_digest(first.encode(errors="replace"), second.encode())
