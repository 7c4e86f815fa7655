"""The API server, as plain dictionaries: requests, and a list that follows its changes."""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import aiohttp
from kubernetes.aio import client

from triage_local.kubelet.exceptions import ClusterError

Json: TypeAlias = dict[str, Any]

MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"

_TIMEOUT = aiohttp.ClientTimeout(total=30)
_RETRY_SECONDS = 0.2
_SILENCE_SECONDS = 2
"""How long after its end a watch is thought to be half open."""


class Cluster:
    """Requests through the official client, without its models: what is built here are dictionaries."""

    def __init__(self, configuration: client.Configuration, *, watch_seconds: int = 10) -> None:
        """Prepare.

        Args:
            configuration: Where the API server is.
            watch_seconds: Length of a watch. Each one begins with a list, so that a lost event or a connection
                that is half open is made good for after this time, without any bookkeeping of versions.
        """
        self._client = client.ApiClient(configuration)
        self._watch_seconds = watch_seconds

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()  # type: ignore[no-untyped-call]

    async def request(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        *,
        content_type: str = "application/json",
    ) -> Json:
        """Send a request and return the object that answers it.

        Raises:
            ClusterError: Any status but 2xx, or no answer.
        """
        response = await self._send(method, path, body, content_type, query={}, bounds=_TIMEOUT)
        try:
            return await _read(response)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ClusterError(0, f"{method} {path}: {error!r}") from error

    async def create_missing(self, path: str, body: Json) -> None:
        """Create an object unless one of its name is there."""
        try:
            await self.request("POST", path, body)
        except ClusterError as error:
            if error.status != 409:
                raise

    async def follow(
        self,
        path: str,
        *,
        synced: Callable[[list[Json]], None],
        changed: Callable[[str, Json], None],
        field_selector: str = "",
    ) -> None:
        """Tell a list and its changes, over and over; never returns.

        Args:
            path: Of the list.
            synced: Told the whole list, at first and again every few seconds.
            changed: Told ``ADDED``, ``MODIFIED`` or ``DELETED`` with the object.
            field_selector: Which objects of the list.
        """
        selection = {"fieldSelector": field_selector} if field_selector else {}
        while True:
            try:
                response = await self._send("GET", path, None, "", query=selection, bounds=_TIMEOUT)
                listed = await _read(response)
                synced(listed["items"])
                version = listed["metadata"]["resourceVersion"]
                await self._watch(path, {**selection, "resourceVersion": version}, changed)
            except (ClusterError, aiohttp.ClientError, TimeoutError, ValueError):
                # No answer, 410, a line cut short: whatever it is, the next list tells where things stand.
                await asyncio.sleep(_RETRY_SECONDS)

    async def _watch(self, path: str, query: Mapping[str, str], changed: Callable[[str, Json], None]) -> None:
        query = {**query, "watch": "true", "timeoutSeconds": str(self._watch_seconds)}
        bounds = aiohttp.ClientTimeout(sock_connect=5, sock_read=self._watch_seconds + _SILENCE_SECONDS)
        response = await self._send("GET", path, None, "", query=query, bounds=bounds)
        try:
            while line := await response.content.readline():
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return
                changed(event["type"], event["object"])
        finally:
            response.close()

    async def _send(
        self,
        method: str,
        path: str,
        body: Json | None,
        content_type: str,
        *,
        query: Mapping[str, str],
        bounds: aiohttp.ClientTimeout,
    ) -> aiohttp.ClientResponse:
        headers = {"Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = content_type
        request = await self._client.param_serialize(
            method,
            path,
            query_params=list(query.items()),
            header_params=headers,
            body=body,
            auth_settings=["BearerToken"],
        )
        try:
            answer = await self._client.call_api(*request, _request_timeout=bounds)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ClusterError(0, f"{method} {path}: {error!r}") from error
        response: aiohttp.ClientResponse = answer.response
        if not 200 <= response.status < 300:
            text = await response.text()
            raise ClusterError(response.status, _message(text))
        return response


async def _read(response: aiohttp.ClientResponse) -> Json:
    body: Json = json.loads(await response.read())
    return body


def _message(text: str) -> str:
    try:
        return str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        return text[:500]
