"""Pods through the asynchronous client: creation, status, watches, graceful deletion."""

import pytest
from kubernetes.aio import client, watch


def a_pod(name: str) -> client.V1Pod:
    return client.V1Pod(
        metadata=client.V1ObjectMeta(name=name, labels={"app": "test"}),
        spec=client.V1PodSpec(
            restart_policy="Never", containers=[client.V1Container(name="agent", image="agent:1")]
        ),
    )


async def test_a_new_pod_is_pending_and_a_second_one_of_its_name_is_refused(core: client.CoreV1Api) -> None:
    created = await core.create_namespaced_pod("default", a_pod("one"))
    assert created.status is not None
    assert created.status.phase == "Pending"
    assert created.metadata is not None
    assert created.metadata.uid
    with pytest.raises(client.ApiException) as refusal:
        await core.create_namespaced_pod("default", a_pod("one"))
    assert (refusal.value.status, refusal.value.reason) == (409, "Conflict")


async def test_a_bound_pod_stays_for_its_grace_period(core: client.CoreV1Api) -> None:
    await core.create_namespaced_pod("default", a_pod("one"))
    binding = client.V1Binding(
        metadata=client.V1ObjectMeta(name="one"), target=client.V1ObjectReference(kind="Node", name="n1")
    )
    await core.create_namespaced_pod_binding_without_preload_content("one", "default", binding)
    deleted = await core.delete_namespaced_pod("one", "default")
    assert deleted.metadata is not None
    assert deleted.metadata.deletion_grace_period_seconds == 30
    await core.delete_namespaced_pod("one", "default", grace_period_seconds=0)
    with pytest.raises(client.ApiException) as refusal:
        await core.read_namespaced_pod("one", "default")
    assert refusal.value.status == 404


async def test_a_watch_tells_what_happens_after_a_version(core: client.CoreV1Api) -> None:
    listed = await core.list_namespaced_pod("default")
    assert listed.metadata is not None
    await core.create_namespaced_pod("default", a_pod("one"))
    await core.patch_namespaced_pod_status("one", "default", {"status": {"phase": "Running"}})
    await core.delete_namespaced_pod("one", "default")
    seen = []
    async with watch.Watch() as events:  # type: ignore[no-untyped-call]
        async for event in events.stream(
            core.list_namespaced_pod, "default", resource_version=listed.metadata.resource_version
        ):
            seen.append((event["type"], event["object"].status.phase))
            if event["type"] == "DELETED":
                break
    assert seen == [("ADDED", "Pending"), ("MODIFIED", "Running"), ("DELETED", "Running")]
