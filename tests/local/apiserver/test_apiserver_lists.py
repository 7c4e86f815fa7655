"""Lists: selectors, pages, tables."""

import pytest

from support.gadgets import Gadgets
from support.kube import Json, Rest, a_config_map, a_pod

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


def names(body: Json) -> list[str]:
    return [item["metadata"]["name"] for item in body["items"]]


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ("", ["a", "b", "c"]),
        ("app=x", ["a", "b"]),
        ("app==x,tier=1", ["a"]),
        ("app!=x", ["c"]),
        ("tier", ["a", "b"]),
        ("!tier", ["c"]),
        ("tier in (1, 3)", ["a"]),
        ("tier notin (1)", ["b", "c"]),
        ("app in (x,y),tier!=2", ["a", "c"]),
    ],
)
async def test_a_label_selector_selects(
    rest: Rest, config_maps: str, selector: str, selected: list[str]
) -> None:
    for name, labels in (
        ("a", {"app": "x", "tier": "1"}),
        ("b", {"app": "x", "tier": "2"}),
        ("c", {"app": "y"}),
    ):
        await rest.post(config_maps, a_config_map(name, labels=labels))
    listed = await rest.get(
        config_maps, labelSelector=selector, fieldSelector="metadata.name!=kube-root-ca.crt"
    )
    assert names(listed.body) == selected


async def test_a_field_selector_selects(rest: Rest, pods: str) -> None:
    await rest.post(pods, a_pod("a", node="n1"))
    await rest.post(pods, a_pod("b"))
    assert names((await rest.get(pods, fieldSelector="spec.nodeName=n1")).body) == ["a"]
    assert names((await rest.get(pods, fieldSelector="metadata.name=b,status.phase=Pending")).body) == ["b"]
    assert names((await rest.get(pods, fieldSelector="spec.nodeName!=")).body) == ["a"]


async def test_a_field_that_is_not_selectable_is_a_bad_request(rest: Rest, pods: str) -> None:
    answer = await rest.get(pods, fieldSelector="spec.priority=1")
    assert (answer.code, answer.body["reason"]) == (400, "BadRequest")
    assert "field label not supported: spec.priority" in answer.body["message"]


@pytest.mark.parametrize("selector", ["a in x", "=", "a=b c"])
async def test_a_selector_that_is_none_is_a_bad_request(rest: Rest, pods: str, selector: str) -> None:
    assert (await rest.get(pods, labelSelector=selector)).code == 400


async def test_a_custom_field_selects(rest: Rest, gadgets: Gadgets) -> None:
    await rest.post(gadgets.path, gadgets.one("a", {"report": "r", "mode": "A"}))
    await rest.post(gadgets.path, gadgets.one("b", {"report": "r", "mode": "B"}))
    assert names((await rest.get(gadgets.path, fieldSelector="spec.mode=B")).body) == ["b"]


async def test_pages_show_one_moment(rest: Rest, gadgets: Gadgets) -> None:
    for name in "abcde":
        await rest.post(gadgets.path, gadgets.one(name, {"report": "r"}))
    first = (await rest.get(gadgets.path, limit=2)).body
    assert names(first) == ["a", "b"]
    assert first["metadata"]["remainingItemCount"] == 3
    await rest.delete(f"{gadgets.path}/c")
    await rest.merge(f"{gadgets.path}/d", {"spec": {"size": 9}})
    await rest.post(gadgets.path, gadgets.one("dd", {"report": "r"}))
    second = (await rest.get(gadgets.path, limit=2, **{"continue": first["metadata"]["continue"]})).body
    assert names(second) == ["c", "d"]
    assert second["items"][1]["spec"]["size"] == 3
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    third = (await rest.get(gadgets.path, limit=2, **{"continue": second["metadata"]["continue"]})).body
    assert names(third) == ["e"]
    assert not third["metadata"].get("continue")


async def test_a_version_that_is_still_to_come_times_out(rest: Rest, pods: str) -> None:
    version = int(await rest.version(pods)) + 100_000
    answer = await rest.get(pods, resourceVersion=version)
    assert (answer.code, answer.body["reason"]) == (504, "Timeout")
    assert "Too large resource version" in answer.body["message"]


async def test_a_list_across_namespaces_has_them_all(rest: Rest, namespace: str) -> None:
    await rest.post(f"/api/v1/namespaces/{namespace}/configmaps", a_config_map("one"))
    listed = (await rest.get("/api/v1/configmaps", fieldSelector="metadata.name=one")).body
    assert listed["kind"] == "ConfigMapList"
    assert namespace in [item["metadata"]["namespace"] for item in listed["items"]]


async def test_a_table_of_pods_has_what_kubectl_prints(rest: Rest, pods: str) -> None:
    await rest.post(pods, a_pod("one", node="n1"))
    table = (await rest.get(pods, accept=TABLE)).body
    columns = [column["name"] for column in table["columnDefinitions"]]
    cells = dict(zip(columns, table["rows"][0]["cells"], strict=True))
    assert table["kind"] == "Table"
    assert columns[:5] == ["Name", "Ready", "Status", "Restarts", "Age"]
    assert (cells["Name"], cells["Ready"], cells["Status"], cells["Node"]) == ("one", "0/1", "Pending", "n1")
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    assert table["rows"][0]["object"]["metadata"]["name"] == "one"


async def test_a_table_of_custom_resources_has_their_columns(rest: Rest, gadgets: Gadgets) -> None:
    await rest.post(gadgets.path, gadgets.one("one", {"report": "r"}))
    conditions = [{"type": "Other", "status": "False"}, {"type": "Ready", "status": "True"}]
    await rest.merge(f"{gadgets.path}/one/status", {"status": {"conditions": conditions}})
    table = (await rest.get(f"{gadgets.path}/one", accept=TABLE)).body
    assert [(c["name"], c["priority"]) for c in table["columnDefinitions"]] == [
        ("Name", 0),
        ("Phase", 0),
        ("Ready", 0),
        ("Size", 1),
        ("Age", 0),
    ]
    name, phase, ready, size, age = table["rows"][0]["cells"]
    assert (name, phase, ready, size) == ("one", None, "True", 3)
    assert age.endswith("s")


async def test_metadata_alone_can_be_listed(rest: Rest, gadgets: Gadgets) -> None:
    await rest.post(gadgets.path, gadgets.one("one", {"report": "r"}))
    accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
    listed = (await rest.get(gadgets.path, accept=accept)).body
    assert listed["kind"] == "PartialObjectMetadataList"
    assert names(listed) == ["one"]
    assert "spec" not in listed["items"][0]
