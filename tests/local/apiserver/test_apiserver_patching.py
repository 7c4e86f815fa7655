"""Merge, JSON and strategic merge patches."""

from typing import Any

import pytest

from support.gadgets import Gadgets
from support.kube import Rest, a_config_map, a_pod


async def test_a_merge_patch_sets_and_removes(rest: Rest, config_maps: str) -> None:
    await rest.post(config_maps, a_config_map("one", {"a": "1", "b": "2"}))
    answer = await rest.merge(f"{config_maps}/one", {"data": {"a": None, "c": "3"}})
    assert answer.body["data"] == {"b": "2", "c": "3"}


async def test_a_merge_patch_with_an_old_version_is_a_conflict(rest: Rest, config_maps: str) -> None:
    created = (await rest.post(config_maps, a_config_map("one"))).body
    await rest.merge(f"{config_maps}/one", {"data": {"a": "1"}})
    version = created["metadata"]["resourceVersion"]
    answer = await rest.merge(
        f"{config_maps}/one", {"metadata": {"resourceVersion": version}, "data": {"a": "2"}}
    )
    assert (answer.code, answer.body["reason"]) == (409, "Conflict")


async def test_a_json_patch_is_applied_in_order(rest: Rest, config_maps: str) -> None:
    await rest.post(config_maps, a_config_map("one", {"a": "1"}, annotations={"x/y": "2"}))
    operations = [
        {"op": "test", "path": "/data/a", "value": "1"},
        {"op": "replace", "path": "/data/a", "value": "3"},
        {"op": "copy", "from": "/data/a", "path": "/data/b"},
        {"op": "remove", "path": "/metadata/annotations/x~1y"},
        {"op": "add", "path": "/metadata/labels", "value": {"l": "m"}},
    ]
    answer = await rest.json_patch(f"{config_maps}/one", operations)
    assert answer.body["data"] == {"a": "3", "b": "3"}
    assert answer.body["metadata"]["labels"] == {"l": "m"}
    assert not answer.body["metadata"].get("annotations")


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/metadata/resourceVersion", "value": "0"},
        {"op": "remove", "path": "/data/none"},
        {"op": "replace", "path": "/nothing/at/all", "value": 1},
    ],
)
async def test_a_json_patch_that_does_not_fit_changes_nothing(
    rest: Rest, config_maps: str, operation: dict[str, Any]
) -> None:
    created = (await rest.post(config_maps, a_config_map("one", {"a": "1"}))).body
    operations = [{"op": "replace", "path": "/data/a", "value": "2"}, operation]
    answer = await rest.json_patch(f"{config_maps}/one", operations)
    assert (answer.code, answer.body["reason"]) == (422, "Invalid")
    assert (await rest.get(f"{config_maps}/one")).body == created


async def test_a_json_patch_that_is_no_list_is_a_bad_request(rest: Rest, config_maps: str) -> None:
    await rest.post(config_maps, a_config_map("one"))
    assert (await rest.json_patch(f"{config_maps}/one", {"data": {}})).code == 400


async def test_a_strategic_patch_joins_conditions_by_type(rest: Rest, pods: str) -> None:
    await rest.post(pods, a_pod("one"))
    for kind, status in (("A", "True"), ("B", "True"), ("A", "False")):
        await rest.strategic(
            f"{pods}/one/status", {"status": {"conditions": [{"type": kind, "status": status}]}}
        )
    conditions = (await rest.get(f"{pods}/one")).body["status"]["conditions"]
    assert sorted((c["type"], c["status"]) for c in conditions) == [("A", "False"), ("B", "True")]


async def test_a_strategic_patch_removes_one_condition(rest: Rest, pods: str) -> None:
    await rest.post(pods, a_pod("one"))
    both = [{"type": "A", "status": "True"}, {"type": "B", "status": "True"}]
    await rest.strategic(f"{pods}/one/status", {"status": {"conditions": both}})
    removal = {"status": {"conditions": [{"type": "A", "$patch": "delete"}]}}
    answer = await rest.strategic(f"{pods}/one/status", removal)
    assert [c["type"] for c in answer.body["status"]["conditions"]] == ["B"]


async def test_a_strategic_patch_replaces_container_statuses(rest: Rest, pods: str) -> None:
    await rest.post(pods, a_pod("one"))

    def statuses(reason: str) -> dict[str, Any]:
        state = {"waiting": {"reason": reason}}
        entry = {
            "name": "agent",
            "image": "agent:1",
            "imageID": "",
            "ready": False,
            "restartCount": 0,
            "state": state,
        }
        return {"status": {"containerStatuses": [entry]}}

    await rest.strategic(f"{pods}/one/status", statuses("A"))
    answer = await rest.strategic(f"{pods}/one/status", statuses("B"))
    found = answer.body["status"]["containerStatuses"]
    assert [entry["state"]["waiting"]["reason"] for entry in found] == ["B"]


async def test_a_strategic_patch_joins_containers_by_name(rest: Rest, pods: str) -> None:
    await rest.post(pods, a_pod("one"))
    patch = {"spec": {"containers": [{"name": "agent", "image": "agent:2"}]}}
    answer = await rest.strategic(f"{pods}/one", patch)
    assert answer.code == 200
    assert [c["image"] for c in answer.body["spec"]["containers"]] == ["agent:2"]


async def test_a_custom_resource_takes_no_strategic_patch(rest: Rest, gadgets: Gadgets) -> None:
    await rest.post(gadgets.path, gadgets.one("one", {"report": "r"}))
    answer = await rest.strategic(f"{gadgets.path}/one", {"spec": {"size": 4}})
    assert (answer.code, answer.body["reason"]) == (415, "UnsupportedMediaType")
