"""What controllers do for objects: garbage collection, emptying namespaces and definitions."""

import asyncio

import pytest

from support.gadgets import Gadgets
from support.kube import Rest, a_config_map, a_pod, owned_by

pytestmark = pytest.mark.usefixtures("controllers")

PATIENCE_SECONDS = 60
"""A real garbage collector notices a new custom resource within 30 seconds."""


async def gone(rest: Rest, path: str) -> None:
    """Return when the object is not there any more."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (await rest.get(path)).code != 404:
            await asyncio.sleep(0.02)


async def test_a_dependent_goes_with_its_owner(rest: Rest, gadgets: Gadgets, pods: str) -> None:
    owner = (await rest.post(gadgets.path, gadgets.one("owner", {"report": "r"}))).body
    await rest.post(pods, a_pod("one", ownerReferences=owned_by(owner, controller=True)))
    await rest.delete(f"{gadgets.path}/owner")
    await gone(rest, f"{pods}/one")


async def test_a_dependent_with_another_owner_stays_without_the_first(rest: Rest, config_maps: str) -> None:
    first = (await rest.post(config_maps, a_config_map("first"))).body
    second = (await rest.post(config_maps, a_config_map("second"))).body
    references = owned_by(first) + owned_by(second)
    await rest.post(config_maps, a_config_map("one", ownerReferences=references))
    await rest.delete(f"{config_maps}/first")
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            left = (await rest.get(f"{config_maps}/one")).body["metadata"]["ownerReferences"]
            if left == owned_by(second):
                break
            await asyncio.sleep(0.02)
    await rest.delete(f"{config_maps}/second")
    await gone(rest, f"{config_maps}/one")


async def test_an_object_whose_owner_never_was_goes(rest: Rest, config_maps: str) -> None:
    reference = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "none",
        "uid": "00000000-0000-0000-0000-000000000000",
    }
    await rest.post(config_maps, a_config_map("one", ownerReferences=[reference]))
    await gone(rest, f"{config_maps}/one")


async def test_a_new_owner_of_the_same_name_is_another_owner(rest: Rest, config_maps: str) -> None:
    old = (await rest.post(config_maps, a_config_map("owner"))).body
    await rest.post(config_maps, a_config_map("one", ownerReferences=owned_by(old)))
    await rest.delete(f"{config_maps}/owner")
    await rest.post(config_maps, a_config_map("owner"))
    await gone(rest, f"{config_maps}/one")
    assert (await rest.get(f"{config_maps}/owner")).code == 200


async def test_an_owner_deleted_in_the_foreground_goes_last(rest: Rest, config_maps: str) -> None:
    owner = (await rest.post(config_maps, a_config_map("owner"))).body
    references = owned_by(owner, blockOwnerDeletion=True)
    held = a_config_map("one", ownerReferences=references, finalizers=["example.dev/hold"])
    await rest.post(config_maps, held)
    await rest.delete(f"{config_maps}/owner", propagationPolicy="Foreground")
    async with asyncio.timeout(PATIENCE_SECONDS):
        while "deletionTimestamp" not in (await rest.get(f"{config_maps}/one")).body["metadata"]:
            await asyncio.sleep(0.02)
    assert (await rest.get(f"{config_maps}/owner")).body["metadata"]["finalizers"] == ["foregroundDeletion"]
    await rest.merge(f"{config_maps}/one", {"metadata": {"finalizers": None}})
    await gone(rest, f"{config_maps}/owner")
    assert (await rest.get(f"{config_maps}/one")).code == 404


async def test_orphans_stay(rest: Rest, config_maps: str) -> None:
    owner = (await rest.post(config_maps, a_config_map("owner"))).body
    await rest.post(config_maps, a_config_map("one", ownerReferences=owned_by(owner)))
    await rest.delete(f"{config_maps}/owner", propagationPolicy="Orphan")
    await gone(rest, f"{config_maps}/owner")
    assert "ownerReferences" not in (await rest.get(f"{config_maps}/one")).body["metadata"]


async def test_a_deleted_namespace_is_emptied_first(
    rest: Rest, namespace: str, pods: str, config_maps: str
) -> None:
    await rest.post(config_maps, a_config_map("one"))
    await rest.post(pods, a_pod("free"))
    await rest.post(pods, a_pod("held", finalizers=["example.dev/hold"]))
    await rest.delete(f"/api/v1/namespaces/{namespace}")
    await gone(rest, f"{pods}/free")
    assert (await rest.get(f"{config_maps}/one")).code == 200, "pods go first"
    terminating = (await rest.get(f"/api/v1/namespaces/{namespace}")).body
    assert terminating["status"]["phase"] == "Terminating"
    refused = await rest.post(config_maps, a_config_map("late"))
    assert (refused.code, refused.body["reason"]) == (403, "Forbidden")
    assert refused.body["details"]["causes"][0]["reason"] == "NamespaceTerminating"
    await rest.merge(f"{pods}/held", {"metadata": {"finalizers": None}})
    await gone(rest, f"/api/v1/namespaces/{namespace}")


async def test_a_deleted_definition_takes_its_objects_along(rest: Rest, gadgets: Gadgets) -> None:
    await rest.post(gadgets.path, gadgets.one("one", {"report": "r"}))
    definition = f"{gadgets.definitions}/gadgets.{gadgets.group}"
    await rest.delete(definition)
    await gone(rest, definition)
    await gone(rest, gadgets.path)
    assert (await rest.get(f"/apis/{gadgets.group}/v1")).code == 404
