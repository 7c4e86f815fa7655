"""Objects are followed as they are, and waited for."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from kubernetes.aio.client import Configuration

from triage_local.apiserver import ApiServer
from triage_local.demo import following
from triage_local.demo.following import Followed
from triage_local.exceptions import PatienceError
from triage_local.kubelet.cluster import MERGE, Cluster

Json = dict[str, Any]

_CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with ApiServer() as server:
        cluster = Cluster(Configuration(host=server.url))
        yield cluster
        await cluster.close()


@asynccontextmanager
async def _following(cluster: Cluster, seen: list[str]) -> AsyncIterator[Followed]:
    def note(before: Json | None, after: Json) -> None:
        seen.append(f"{(before or {}).get('data')} {after.get('data')}")

    followed = Followed(cluster, _CONFIG_MAPS, note)
    task = asyncio.create_task(followed.run())
    yield followed
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def _write(cluster: Cluster, **data: str) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "thing"}, "data": data}
    await cluster.request("POST", _CONFIG_MAPS, body)


def _has(key: str, value: str) -> Any:
    def find(objects: Mapping[str, Json]) -> Json | None:
        thing = objects.get("thing")
        return thing if thing and thing["data"].get(key) == value else None

    return find


async def test_changes_are_told_with_what_was_before(cluster: Cluster) -> None:
    seen: list[str] = []
    await _write(cluster, colour="red")
    async with _following(cluster, seen) as followed:
        await followed.until(_has("colour", "red"), "red")
        await cluster.request(
            "PATCH", f"{_CONFIG_MAPS}/thing", {"data": {"colour": "blue"}}, content_type=MERGE
        )
        found = await followed.until(_has("colour", "blue"), "blue")
        assert found["metadata"]["name"] == "thing"
        await cluster.request("DELETE", f"{_CONFIG_MAPS}/thing")
        await followed.until(lambda objects: True if "thing" not in objects else None, "gone")
    assert seen == ["None {'colour': 'red'}", "{'colour': 'red'} {'colour': 'blue'}"]


async def test_what_does_not_come_is_named(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "PATIENCE_SECONDS", 0.05)
    async with _following(cluster, []) as followed:
        with pytest.raises(PatienceError, match="in vain: a thing of gold"):
            await followed.until(_has("colour", "gold"), "a thing of gold")
