"""Watches: what happened since a version, through selectors, with bookmarks, for a time."""

import asyncio
from collections.abc import AsyncIterator

from support.gadgets import Gadgets
from support.kube import Json, Rest, a_config_map, a_pod


async def following(events: AsyncIterator[Json], count: int) -> list[tuple[str, str]]:
    """Type and name of the next events."""
    found: list[tuple[str, str]] = []
    async with asyncio.timeout(10):
        while len(found) < count:
            event = await anext(events)
            if event["type"] != "BOOKMARK":
                found.append((event["type"], event["object"]["metadata"]["name"]))
    return found


async def test_a_watch_tells_what_happened_since_a_version_and_what_happens(
    rest: Rest, config_maps: str
) -> None:
    version = await rest.version(config_maps)
    await rest.post(config_maps, a_config_map("one", labels={"l": "x"}))
    # Unlabelled ones may appear: controllers put their own into every new namespace.
    async with rest.watch(config_maps, resourceVersion=version, labelSelector="l") as events:
        assert await following(events, 1) == [("ADDED", "one")]
        await rest.merge(f"{config_maps}/one", {"data": {"a": "1"}})
        await rest.delete(f"{config_maps}/one")
        assert await following(events, 2) == [("MODIFIED", "one"), ("DELETED", "one")]


async def test_a_watch_without_a_version_begins_with_what_is_there(rest: Rest, config_maps: str) -> None:
    await rest.post(config_maps, a_config_map("one", labels={"l": "x"}))
    async with rest.watch(config_maps, labelSelector="l") as events:
        assert await following(events, 1) == [("ADDED", "one")]


async def test_a_deletion_shows_the_last_state_with_a_version_of_its_own(rest: Rest, pods: str) -> None:
    version = await rest.version(pods)
    await rest.post(pods, a_pod("one"))
    running = (await rest.merge(f"{pods}/one/status", {"status": {"phase": "Running"}})).body
    await rest.delete(f"{pods}/one")
    async with rest.watch(pods, resourceVersion=version) as events, asyncio.timeout(10):
        async for event in events:
            if event["type"] == "DELETED":
                break
    assert event["object"]["status"]["phase"] == "Running"
    assert int(event["object"]["metadata"]["resourceVersion"]) > int(running["metadata"]["resourceVersion"])


async def test_an_object_that_is_selected_no_more_looks_deleted(rest: Rest, config_maps: str) -> None:
    version = await rest.version(config_maps)
    await rest.post(config_maps, a_config_map("one"))
    async with rest.watch(config_maps, resourceVersion=version, labelSelector="l=x") as events:
        for labels in ({"l": "x"}, {"l": "x", "m": "y"}, {"l": None}):
            await rest.merge(f"{config_maps}/one", {"metadata": {"labels": labels}})
        assert await following(events, 3) == [("ADDED", "one"), ("MODIFIED", "one"), ("DELETED", "one")]


async def test_a_watch_of_one_name_sees_no_other(rest: Rest, config_maps: str) -> None:
    version = await rest.version(config_maps)
    async with rest.watch(config_maps, resourceVersion=version, fieldSelector="metadata.name=two") as events:
        await rest.post(config_maps, a_config_map("one"))
        await rest.post(config_maps, a_config_map("two"))
        assert await following(events, 1) == [("ADDED", "two")]


async def test_a_watch_ends_after_its_time(rest: Rest, config_maps: str) -> None:
    version = await rest.version(config_maps)
    async with (
        rest.watch(config_maps, resourceVersion=version, timeoutSeconds=1) as events,
        asyncio.timeout(10),
    ):
        assert [event async for event in events if event["type"] != "ADDED"] == []


async def test_a_streamed_list_ends_with_a_bookmark(rest: Rest, gadgets: Gadgets) -> None:
    await rest.post(gadgets.path, gadgets.one("one", {"report": "r"}))
    async with (
        rest.watch(
            gadgets.path,
            sendInitialEvents="true",
            allowWatchBookmarks="true",
            resourceVersionMatch="NotOlderThan",
        ) as events,
        asyncio.timeout(10),
    ):
        first, second = await anext(events), await anext(events)
        assert (first["type"], first["object"]["metadata"]["name"]) == ("ADDED", "one")
        assert second["type"] == "BOOKMARK"
        meta = second["object"]["metadata"]
        assert meta["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert int(meta["resourceVersion"]) >= int(first["object"]["metadata"]["resourceVersion"])
        await rest.delete(f"{gadgets.path}/one")
        assert await following(events, 1) == [("DELETED", "one")]


async def test_a_table_can_be_watched(rest: Rest, pods: str) -> None:
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    version = await rest.version(pods)
    await rest.post(pods, a_pod("one"))
    answer = await rest.get(pods, accept=accept, watch="true", resourceVersion=version, timeoutSeconds=1)
    assert answer.body["type"] == "ADDED"
    assert answer.body["object"]["kind"] == "Table"
    assert answer.body["object"]["rows"][0]["cells"][0] == "one"


async def test_a_change_between_versions_is_seen_once_by_each_watch(rest: Rest, gadgets: Gadgets) -> None:
    await rest.post(gadgets.path, gadgets.one("one", {"report": "r"}))
    version = await rest.version(gadgets.path)
    async with (
        rest.watch(gadgets.path, resourceVersion=version) as first,
        rest.watch(gadgets.path, resourceVersion=version) as second,
    ):
        await rest.merge(f"{gadgets.path}/one/status", {"status": {"phase": "Done"}})
        await rest.post(gadgets.path, gadgets.one("two", {"report": "r"}))
        expected = [("MODIFIED", "one"), ("ADDED", "two")]
        assert await following(first, 2) == expected
        assert await following(second, 2) == expected
