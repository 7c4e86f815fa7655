"""A plain HTTP client of a Kubernetes API server, and objects to send to one."""

import asyncio
import json
import ssl
from base64 import b64decode
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from aiohttp import ClientSession, StreamReader, TCPConnector

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Status code, JSON body and headers."""

    code: int
    body: Json
    headers: Mapping[str, str]


class Rest:
    """Requests with JSON bodies, relative to the server's URL."""

    def __init__(self, session: ClientSession) -> None:
        self._session = session

    async def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        query: Mapping[str, str | int] | None = None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> Answer:
        """One request and its answer. The other methods take the query as keyword arguments."""
        headers = {"Content-Type": content_type, "Accept": accept}
        data = None if body is None else json.dumps(body)
        async with self._session.request(method, path, data=data, headers=headers, params=query) as response:
            # A path without any resource is answered in plain text.
            is_json = response.content_type == "application/json"
            body = await response.json() if is_json else {"text": await response.text()}
            return Answer(code=response.status, body=body, headers=response.headers)

    async def get(self, path: str, *, accept: str = "application/json", **query: str | int) -> Answer:
        """GET."""
        return await self.request("GET", path, None, query, accept=accept)

    async def post(self, path: str, body: Any, **query: str | int) -> Answer:
        """POST."""
        return await self.request("POST", path, body, query)

    async def put(self, path: str, body: Any, **query: str | int) -> Answer:
        """PUT."""
        return await self.request("PUT", path, body, query)

    async def merge(self, path: str, body: Any, **query: str | int) -> Answer:
        """A merge patch."""
        return await self.request("PATCH", path, body, query, content_type="application/merge-patch+json")

    async def strategic(self, path: str, body: Any) -> Answer:
        """A strategic merge patch."""
        return await self.request("PATCH", path, body, content_type="application/strategic-merge-patch+json")

    async def json_patch(self, path: str, body: Any) -> Answer:
        """A JSON patch."""
        return await self.request("PATCH", path, body, content_type="application/json-patch+json")

    async def delete(self, path: str, body: Any = None, **query: str | int) -> Answer:
        """DELETE."""
        return await self.request("DELETE", path, body, query)

    @asynccontextmanager
    async def watch(self, path: str, **query: str | int) -> AsyncIterator[AsyncIterator[Json]]:
        """The events of a watch, whose connection lasts as long as the block."""
        async with self._session.get(path, params={"watch": "true", **query}) as response:
            assert response.status == 200, await response.text()
            yield _events(response.content)

    async def version(self, path: str) -> str:
        """The resource version of a list."""
        answer = await self.get(path, limit=1)
        return str(answer.body["metadata"]["resourceVersion"])


async def _events(lines: StreamReader) -> AsyncIterator[Json]:
    async for line in lines:
        yield json.loads(line)


@asynccontextmanager
async def rest_client(kubeconfig: Path) -> AsyncIterator[Rest]:
    """A client for the only cluster and user of a kubeconfig."""
    content = yaml.safe_load(kubeconfig.read_text())
    cluster, user = content["clusters"][0]["cluster"], content["users"][0]["user"]
    context: ssl.SSLContext | bool = True
    if "certificate-authority-data" in cluster:
        context = ssl.create_default_context(cadata=b64decode(cluster["certificate-authority-data"]).decode())
    elif cluster.get("insecure-skip-tls-verify"):
        context = False
    headers = {"Authorization": f"Bearer {user['token']}"}
    async with ClientSession(
        cluster["server"], headers=headers, connector=TCPConnector(ssl=context)
    ) as session:
        yield Rest(session)
    if cluster["server"].startswith("https:"):
        await end_of_tls()


async def end_of_tls() -> None:
    """Wait for the end of connections that were just closed: it comes a moment later, and nothing tells when."""
    await asyncio.sleep(0.25)


def a_pod(name: str, *, node: str = "", **metadata: Any) -> Json:
    """A pod with one container ``agent``, which may be bound to a node."""
    spec: Json = {"restartPolicy": "Never", "containers": [{"name": "agent", "image": "agent:1"}]}
    if node:
        spec["nodeName"] = node
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata}, "spec": spec}


def a_config_map(name: str, data: Mapping[str, str] | None = None, **metadata: Any) -> Json:
    """A config map."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, **metadata},
        "data": dict(data or {}),
    }


def owned_by(owner: Json, **more: Any) -> list[Json]:
    """``ownerReferences`` that name one owner."""
    names = {"apiVersion": owner["apiVersion"], "kind": owner["kind"]}
    return [{**names, "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], **more}]
