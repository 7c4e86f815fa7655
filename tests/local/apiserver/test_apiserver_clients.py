"""The official clients and kopf."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import kopf
import kubernetes
import pytest
from kubernetes import aio

from support.gadgets import Gadgets
from support.kube import Rest, a_pod


async def test_the_asynchronous_client_creates_lists_and_watches(
    aio_api: aio.client.ApiClient, namespace: str
) -> None:
    core = aio.client.CoreV1Api(aio_api)
    listed = await core.list_namespaced_pod(namespace)
    assert listed.metadata is not None
    pod = aio.client.V1Pod.from_dict(a_pod("one"))
    assert pod is not None
    await core.create_namespaced_pod(namespace, pod)
    await core.patch_namespaced_pod_status("one", namespace, {"status": {"phase": "Running"}})
    await core.delete_namespaced_pod("one", namespace)
    seen = []
    version = listed.metadata.resource_version
    async with aio.watch.Watch() as watch, asyncio.timeout(10):  # type: ignore[no-untyped-call]
        async for event in watch.stream(core.list_namespaced_pod, namespace, resource_version=version):
            seen.append((event["type"], event["object"].status.phase))
            if event["type"] == "DELETED":
                break
    # The second change is the deletion timestamp.
    assert seen == [("ADDED", "Pending"), *[("MODIFIED", "Running")] * 2, ("DELETED", "Running")]


async def test_the_asynchronous_client_keeps_leases(aio_api: aio.client.ApiClient, namespace: str) -> None:
    coordination = aio.client.CoordinationV1Api(aio_api)
    body = aio.client.V1Lease(
        metadata=aio.client.V1ObjectMeta(name="leader"),
        spec=aio.client.V1LeaseSpec(holder_identity="a", renew_time=datetime.now(UTC)),
    )
    lease = await coordination.create_namespaced_lease(namespace, body)
    assert lease.spec is not None
    lease.spec.holder_identity = "b"
    await coordination.replace_namespaced_lease("leader", namespace, lease)
    lease.spec.holder_identity = "c"
    with pytest.raises(aio.client.ApiException) as refusal:
        await coordination.replace_namespaced_lease("leader", namespace, lease)
    assert refusal.value.status == 409
    kept = await coordination.read_namespaced_lease("leader", namespace)
    assert kept.spec is not None
    assert kept.spec.holder_identity == "b"


async def test_both_event_apis_show_the_same_events(rest: Rest, namespace: str) -> None:
    event = {
        "metadata": {"name": "one"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "regarding": {"kind": "Pod", "name": "p", "namespace": namespace},
        "reason": "Tested",
        "note": "It was tested.",
        "action": "Testing",
        "type": "Normal",
        "reportingController": "test",
        "reportingInstance": "test-1",
    }
    created = await rest.post(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events", event)
    assert (created.code, created.body["note"]) == (201, "It was tested.")
    core = f"/api/v1/namespaces/{namespace}/events"
    listed = (await rest.get(core, fieldSelector="involvedObject.name=p,reason=Tested")).body["items"]
    assert [(item["message"], item["reportingComponent"]) for item in listed] == [("It was tested.", "test")]


async def test_the_blocking_client_works_with_custom_resources(kubeconfig: Path, gadgets: Gadgets) -> None:
    def use() -> tuple[str, str]:
        with kubernetes.config.new_client_from_config(str(kubeconfig)) as api:  # type: ignore[no-untyped-call]
            customs = kubernetes.client.CustomObjectsApi(api)
            where = (gadgets.group, "v1", gadgets.namespace, "gadgets")
            customs.create_namespaced_custom_object(*where, gadgets.one("one", {"report": "r"}))
            patch = {"status": {"phase": "Done"}}
            changed: Any = customs.patch_namespaced_custom_object_status(*where, "one", patch)
            listed: Any = customs.list_namespaced_custom_object(*where)
            return changed["status"]["phase"], listed["items"][0]["metadata"]["name"]

    assert await asyncio.to_thread(use) == ("Done", "one")


async def test_kopf_sees_events_and_writes_status(
    kubeconfig: Path, rest: Rest, gadgets: Gadgets, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = kopf.OperatorRegistry()
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    seen: asyncio.Queue[tuple[str | None, str]] = asyncio.Queue()

    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))

    @kopf.on.login(registry=registry)
    def login(*, settings: kopf.OperatorSettings, **_: Any) -> kopf.ConnectionInfo | None:
        return kopf.login_with_kubeconfig(settings=settings)

    @kopf.on.event(gadgets.group, "v1", "gadgets", registry=registry)
    async def heard(*, type: str | None, name: str, patch: kopf.Patch, status: kopf.Status, **_: Any) -> None:
        if not status:
            patch.status["phase"] = "Seen"
        seen.put_nowait((type, name))

    async def next_event() -> tuple[str | None, str]:
        async with asyncio.timeout(20):
            return await seen.get()

    await rest.post(gadgets.path, gadgets.one("before", {"report": "r"}))
    stop = asyncio.Event()
    operator = asyncio.create_task(
        kopf.operator(
            registry=registry,
            settings=settings,
            namespaces=[gadgets.namespace],
            standalone=True,
            stop_flag=stop,
        )
    )
    try:
        assert await next_event() == (None, "before")
        assert await next_event() == ("MODIFIED", "before")
        await rest.post(gadgets.path, gadgets.one("after", {"report": "r"}))
        assert await next_event() == ("ADDED", "after")
        assert await next_event() == ("MODIFIED", "after")
        await rest.delete(f"{gadgets.path}/before")
        assert await next_event() == ("DELETED", "before")
        assert (await rest.get(f"{gadgets.path}/after")).body["status"] == {"phase": "Seen"}
    finally:
        stop.set()
        await operator
