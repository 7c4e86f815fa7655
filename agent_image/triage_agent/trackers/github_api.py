"""GitHub's REST API: requests with patience, and what an answer, or none, says about what has happened."""

import asyncio
import logging
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Self
from urllib.request import getproxies, proxy_bypass

import httpx

from triage_agent.exceptions import UnansweredError, UnservedError
from triage_agent.redacting import redacted
from triage_agent.trackers.github_answers import message_of, patience_asked
from triage_contract.texts import MASK

PUBLIC_URL: Final = "https://api.github.com"

REQUEST_SECONDS: Final = 20.0
"""After this long a request has had its effect, or never will: half of it is for the way, see ``_SOCKET_OPTIONS``,
and GitHub itself ends what takes it more than 10 s.
https://docs.github.com/en/rest/using-the-rest-api/troubleshooting-the-rest-api#timeouts"""

PATIENCE_SECONDS: Final = 90.0
"""Enough for one secondary rate limit, and for a GitHub that is away for a minute."""

RETRY_SECONDS: Final = 2.0
"""Pause before another request, where GitHub does not want a longer one."""

_TCP_SECONDS: Final = 10
_SOCKET_OPTIONS: Final = (
    # What a process has sent and nobody received is not sent again for ever, after the process has died either.
    [(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _TCP_SECONDS * 1000)] if sys.platform == "linux" else []
)

_NOT_SENT: Final = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
)
"""Errors before the first byte of a request: nothing has happened."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class GitHubSettings:
    """Where issues go. ``repository`` is ``owner/name``; the token is a secret, sent to ``url`` only."""

    repository: str
    token: str = field(repr=False)
    url: str = PUBLIC_URL
    request_seconds: float = REQUEST_SECONDS
    patience_seconds: float = PATIENCE_SECONDS
    retry_seconds: float = RETRY_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class _Setback:
    """A request without an answer that counts.

    ``nothing_happened``: that is certain, also of a request that would have changed something.
    """

    reason: str
    nothing_happened: bool
    pause_seconds: float = 0.0
    """What GitHub wants to be waited for."""


class GitHubApi:
    """A few requests over the same connection; an async context manager."""

    def __init__(self, settings: GitHubSettings) -> None:
        self._settings = settings
        self._url = httpx.URL(settings.url)
        self._client = httpx.AsyncClient(
            base_url=self._url,
            headers={
                "Authorization": f"Bearer {settings.token}",
                "Accept": "application/vnd.github+json",
                "X-GitHub-Api-Version": "2022-11-28",
                "User-Agent": "triage-operator",
            },
            # A connection that is not there in time is known to have carried nothing.
            timeout=httpx.Timeout(settings.request_seconds, connect=settings.request_seconds / 2),
            transport=httpx.AsyncHTTPTransport(
                proxy=_proxy_for(self._url), socket_options=list(_SOCKET_OPTIONS)
            ),
        )

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        await self._client.__aexit__(kind, error, trace)

    async def get(self, url: str, params: Mapping[str, str] | None = None) -> httpx.Response:
        """Read, again and again while GitHub is away.

        Raises:
            UnservedError: refused, or away for too long.
        """
        # httpx would put empty parameters in place of those that a link has.
        options = {"params": params} if params else {}
        return self._accepted(await self._patiently("GET", url, **options))

    async def post(self, url: str, content: Mapping[str, str]) -> httpx.Response:
        """Change something, once at most.

        Raises:
            UnservedError: refused, or never reached: nothing has happened.
            UnansweredError: sent, and not answered: nobody knows whether it has happened.
        """
        return self._accepted(await self._patiently("POST", url, json=content))

    def next_page(self, page: httpx.Response) -> str | None:
        """Give the URL of the page after this one; None: it is the last.

        Raises:
            UnservedError: it leads elsewhere, where the token is not to go.
        """
        link = page.links.get("next", {}).get("url")
        if link is None:
            return None
        url = self._url.join(link)
        if (url.scheme, url.host, url.port) != (self._url.scheme, self._url.host, self._url.port):
            raise UnservedError(f"GitHub's next page is at {redacted(url.host)}, not at {self._url.host}")
        return str(url)

    async def _patiently(self, method: str, url: str, **options: Any) -> httpx.Response:
        deadline = time.monotonic() + self._settings.patience_seconds
        while True:
            answer = await self._ask(method, url, **options)
            if isinstance(answer, httpx.Response):
                return answer
            if method != "GET" and not answer.nothing_happened:
                raise UnansweredError(f"GitHub {answer.reason}: nobody knows whether the issue is filed")
            pause = max(self._settings.retry_seconds, answer.pause_seconds)
            if time.monotonic() + pause > deadline:
                raise UnservedError(f"GitHub {answer.reason}")
            logger.warning("tracker unreachable", extra={"action": "file_issue", "reason": answer.reason})
            await asyncio.sleep(pause)

    async def _ask(self, method: str, url: str, **options: Any) -> httpx.Response | _Setback:
        try:
            # httpx bounds each read and write: a server that dribbles could take for ever.
            async with asyncio.timeout(self._settings.request_seconds):
                answer = await self._client.request(method, url, **options)
        except _NOT_SENT as error:
            return _Setback(reason=f"cannot be reached ({type(error).__name__})", nothing_happened=True)
        except (httpx.HTTPError, TimeoutError) as error:
            return _Setback(reason=f"did not answer ({type(error).__name__})", nothing_happened=False)
        pause_seconds = patience_asked(answer)
        if pause_seconds is not None:
            return _Setback(
                reason=f"limits the rate of requests for {pause_seconds:.0f} s",
                nothing_happened=True,
                pause_seconds=pause_seconds,
            )
        if answer.status_code >= 500 or answer.status_code == httpx.codes.REQUEST_TIMEOUT:
            return _Setback(reason=f"answered {answer.status_code}", nothing_happened=False)
        return answer

    def _accepted(self, answer: httpx.Response) -> httpx.Response:
        if answer.is_success:
            return answer
        message = message_of(answer).replace(self._settings.token, MASK)
        raise UnservedError(redacted(f"GitHub refused with {answer.status_code}: {message}"))


def _proxy_for(url: httpx.URL) -> str | None:
    """Give the environment's proxy for a URL; a token goes through none in the clear."""
    if url.scheme != "https" or proxy_bypass(url.host):
        return None
    return getproxies().get("https")
