"""Hearing: whether the watches still tell anything.

A watch tells nothing while nothing happens, and a frozen one looks the same. So watches are short: each is asked for
anew every ``WATCH_SECONDS``, and an answer to that is a sign of life, as an event is.
"""

import time
from typing import Final

import aiohttp

WATCH_SECONDS: Final = 30
"""Longest life of one watch request: it goes on where it was, at the cost of one request."""

INACTIVITY_SECONDS: Final = WATCH_SECONDS + 10.0
"""Without a word, until a connection is given up for half-open."""


class Hearing:
    """When the API server was last heard on each watched resource, by their plural names."""

    def __init__(self, resources: tuple[str, ...]) -> None:
        now = time.monotonic()
        self._heard_at = dict.fromkeys(resources, now)

    def hear(self, resource: str) -> None:
        """Take note that the API server was heard."""
        self._heard_at[resource] = time.monotonic()

    def age_seconds(self, resource: str) -> float:
        """Say how long ago that was; a resource that was never heard counts from the start."""
        return time.monotonic() - self._heard_at[resource]

    async def notice(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        """Take note of each answer to a list or watch: a middleware of the session that watches."""
        response = await handler(request)
        resource = request.url.name
        if response.ok and resource in self._heard_at:
            self.hear(resource)
        return response
