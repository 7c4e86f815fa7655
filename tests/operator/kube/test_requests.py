"""The operator's requests: what is asked again, what is not, and what each answer means."""

import asyncio
import base64
import time
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from support.operated import NAMESPACE, Cluster
from triage_local.apiserver.faults import Answer
from triage_operator.exceptions import (
    KubeConfigError,
    KubeConflictError,
    KubeExpiredError,
    KubeRefusedError,
    KubeUnavailableError,
)
from triage_operator.kube import Kube, Object
from triage_operator.settings import KubeSettings

PROXIED = """\
apiVersion: v1
kind: Config
current-context: one
clusters: [{name: one, cluster: {server: "https://api.invalid"}}]
contexts: [{name: one, context: {cluster: one, user: one}}]
users: [{name: one, user: {}}]
"""

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "one", "labels": {"app": "x"}},
    "spec": {"containers": [{"name": "agent", "image": "agent:1"}]},
}


@pytest.fixture
async def kube(cluster: Cluster) -> AsyncIterator[Kube]:
    async with cluster.connect(patience_seconds=1.5, request_timeout_seconds=0.5) as kube:
        yield kube


async def test_what_is_not_there_is_none(kube: Kube) -> None:
    assert await kube.get_pod(NAMESPACE, "none") is None
    assert await kube.get_run(NAMESPACE, "none") is None


async def test_a_name_that_is_taken_is_a_conflict(kube: Kube) -> None:
    await kube.create_pod(NAMESPACE, POD)
    with pytest.raises(KubeConflictError, match="already exists"):
        await kube.create_pod(NAMESPACE, POD)


async def test_a_pod_is_deleted_only_if_it_is_the_one_that_was_meant(kube: Kube) -> None:
    made = await kube.create_pod(NAMESPACE, POD)
    await kube.delete_pod(NAMESPACE, "one", uid="another")
    assert await kube.get_pod(NAMESPACE, "one") is not None
    await kube.delete_pod(NAMESPACE, "one", uid=made["metadata"]["uid"])
    assert await kube.get_pod(NAMESPACE, "one") is None
    # Gone already is as good.
    await kube.delete_pod(NAMESPACE, "one", uid=made["metadata"]["uid"])


@pytest.mark.parametrize("status", [429, 500, 503, 504])
async def test_later_means_asking_again(status: int, cluster: Cluster, kube: Kube) -> None:
    cluster.server.faults.answer(Answer(target="/pods/one", status=status, left=2))
    await kube.create_pod(NAMESPACE, POD)
    assert await kube.get_pod(NAMESPACE, "one") is not None


async def test_the_api_servers_retry_after_is_kept(cluster: Cluster, kube: Kube) -> None:
    cluster.server.faults.answer(Answer(target="/pods/one", status=429, retry_after_seconds=1))
    started = time.monotonic()
    await kube.get_pod(NAMESPACE, "one")
    assert time.monotonic() - started >= 1.0


async def test_a_retry_after_beyond_the_patience_is_left_to_the_caller(cluster: Cluster, kube: Kube) -> None:
    cluster.server.faults.answer(Answer(target="/pods/one", status=429, retry_after_seconds=60))
    with pytest.raises(KubeUnavailableError) as raised:
        await kube.get_pod(NAMESPACE, "one")
    assert raised.value.retry_after_seconds == 60


async def test_an_answer_that_does_not_come_is_not_waited_for(cluster: Cluster, kube: Kube) -> None:
    cluster.server.faults.answer(Answer(target="/pods/one", delay_seconds=30))
    started = time.monotonic()
    assert await kube.get_pod(NAMESPACE, "one") is None
    assert time.monotonic() - started < 5


async def test_an_api_server_that_is_away_is_unavailable_and_comes_back(cluster: Cluster, kube: Kube) -> None:
    await cluster.server.stop()
    with pytest.raises(KubeUnavailableError):
        await kube.get_pod(NAMESPACE, "one")
    asking = asyncio.create_task(kube.get_pod(NAMESPACE, "one"))
    await cluster.server.start()
    assert await asking is None


async def test_a_refusal_has_the_api_servers_words_and_is_not_repeated(cluster: Cluster, kube: Kube) -> None:
    nameless: Object = {**POD, "spec": {"containers": []}}
    with pytest.raises(KubeRefusedError, match="containers"):
        await kube.create_pod(NAMESPACE, nameless)
    cluster.server.faults.answer(Answer(method="GET", target="/pods/one", status=403))
    with pytest.raises(KubeRefusedError, match="fault on demand"):
        await kube.get_pod(NAMESPACE, "one")


async def test_lists_are_read_page_by_page(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("triage_operator.kube.PAGE", "2")
    async with cluster.connect() as kube:
        for number in range(5):
            name = f"pod-{number}"
            labels = {"app": "x" if number else "y"}
            await kube.create_pod(NAMESPACE, {**POD, "metadata": {"name": name, "labels": labels}})
        names = [pod["metadata"]["name"] async for pod in kube.list_pods(None, label_selector="app=x")]
        assert names == ["pod-1", "pod-2", "pod-3", "pod-4"]
        cluster.server.faults.answer(Answer(target="continue=.", status=410))
        with pytest.raises(KubeExpiredError):
            _ = [pod async for pod in kube.list_pods(NAMESPACE, label_selector="app=x")]


async def test_a_status_is_not_written_over_a_change(cluster: Cluster, kube: Kube) -> None:
    read = await cluster.create_run()
    await cluster.change_run(suspend=True)
    with pytest.raises(KubeConflictError):
        await kube.write_run_status({**read, "status": {"phase": "Running"}})


async def test_a_cluster_is_told_by_the_uid_of_its_system_namespace(kube: Kube) -> None:
    assert len(await kube.cluster_id()) == 36
    assert await kube.served_resources() >= {"triageruns", "triageagents"}


async def test_a_kubeconfig_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(KubeConfigError, match="no kubeconfig at"):
        async with Kube.connect(KubeSettings(config=str(tmp_path / "missing"))):
            pass


async def test_requests_keep_to_the_limit(cluster: Cluster) -> None:
    async with cluster.connect(requests_per_second=50.0, burst=2) as kube:
        started = time.monotonic()
        await asyncio.gather(*(kube.get_pod(NAMESPACE, "one") for _ in range(7)))
        assert time.monotonic() - started >= 0.1


async def test_a_proxys_password_reaches_the_proxy_and_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bytes] = []

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as proxy:
        port = proxy.sockets[0].getsockname()[1]
        monkeypatch.setenv("HTTPS_PROXY", f"http://user:hunter2@127.0.0.1:{port}")
        monkeypatch.delenv("NO_PROXY", raising=False)
        config = tmp_path / "kubeconfig"
        config.write_text(PROXIED)
        async with Kube.connect(KubeSettings(config=str(config), patience_seconds=0.0)) as kube:
            with pytest.raises(KubeUnavailableError) as refused:
                await kube.get_pod(NAMESPACE, "one")
            async with kube.session() as session:
                with pytest.raises(aiohttp.ClientError) as watched:
                    await session.get(f"{kube.server}/api/v1/pods")
    assert "407" in str(refused.value)
    assert "hunter2" not in f"{refused.value} {watched.value!r}"
    credentials = base64.b64encode(b"user:hunter2")
    assert [credentials in request for request in asked] == [True, True]
