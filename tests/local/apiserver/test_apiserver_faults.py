"""The emulator's own abilities: faults on demand, a forgotten history."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace

import aiohttp
import aiohttp.web
import pytest

from support.kube import Json, Rest, a_config_map
from triage_local.apiserver import Answer, ApiServer


async def first_names(events: AsyncIterator[Json], count: int) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    async with asyncio.timeout(10):
        async for event in events:
            if event["type"] != "BOOKMARK":
                found.append((event["type"], event["object"]["metadata"]["name"]))
            if len(found) == count:
                break
    return found


async def test_dropped_watches_break_off(
    emulator: ApiServer, rest: Rest, config_maps: str, pods: str
) -> None:
    async with rest.watch(config_maps) as dropped, rest.watch(pods, allowWatchBookmarks="true") as kept:
        assert emulator.faults.drop_watches("configmaps") == 1
        with pytest.raises(aiohttp.ClientPayloadError):
            await anext(dropped)
        assert (await anext(kept))["type"] == "BOOKMARK"


async def test_a_half_open_watch_says_nothing_and_stays(
    emulator: ApiServer, rest: Rest, config_maps: str
) -> None:
    async with rest.watch(config_maps, allowWatchBookmarks="true", timeoutSeconds=1) as events:
        await anext(events)
        assert emulator.faults.freeze_watches() == 1
        await rest.post(config_maps, a_config_map("one"))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.5):
                await anext(events)


async def test_a_lost_deletion_is_never_told(emulator: ApiServer, rest: Rest, config_maps: str) -> None:
    for name in ("one", "two"):
        await rest.post(config_maps, a_config_map(name))
    version = await rest.version(config_maps)
    emulator.faults.lose_deleted("configmaps", 1)
    async with rest.watch(config_maps, resourceVersion=version) as events:
        await rest.delete(f"{config_maps}/one")
        await rest.delete(f"{config_maps}/two")
        assert await first_names(events, 1) == [("DELETED", "two")]
    async with rest.watch(config_maps, resourceVersion=version) as again:
        assert await first_names(again, 1) == [("DELETED", "two")]
    assert (await rest.get(config_maps)).body["items"] == []


async def test_a_truncated_watch_ends_within_a_line(
    emulator: ApiServer, rest: Rest, config_maps: str
) -> None:
    version = await rest.version(config_maps)
    async with rest.watch(config_maps, resourceVersion=version) as events:
        emulator.faults.truncate_watches()
        await rest.post(config_maps, a_config_map("one"))
        with pytest.raises(ValueError, match=r"Unterminated|Expecting"):
            await anext(events)


async def test_a_failing_watch_ends_with_an_error_event(
    emulator: ApiServer, rest: Rest, config_maps: str
) -> None:
    async with rest.watch(config_maps) as events:
        emulator.faults.fail_watches(500)
        received = [event async for event in events]
    assert [event["type"] for event in received] == ["ERROR"]
    assert received[0]["object"]["code"] == 500


async def test_an_expired_version_is_gone(emulator: ApiServer, rest: Rest, config_maps: str) -> None:
    for name in ("one", "two"):
        await rest.post(config_maps, a_config_map(name))
    page = (await rest.get(config_maps, limit=1)).body["metadata"]
    emulator.faults.expire()
    assert (await rest.get(config_maps)).code == 200
    assert (await rest.get(config_maps, limit=1, **{"continue": page["continue"]})).code == 200
    await rest.post(config_maps, a_config_map("three"))
    emulator.faults.expire()
    answer = await rest.get(config_maps, limit=1, **{"continue": page["continue"]})
    assert (answer.code, answer.body["reason"]) == (410, "Expired")
    async with rest.watch(config_maps, resourceVersion=page["resourceVersion"]) as events:
        event = await anext(events)
    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")


async def test_the_next_requests_get_the_asked_for_answer(
    emulator: ApiServer, rest: Rest, config_maps: str
) -> None:
    emulator.faults.answer(
        Answer(method="POST", target="configmaps", status=429, left=2, retry_after_seconds=3)
    )
    for _ in range(2):
        answer = await rest.post(config_maps, a_config_map("one"))
        assert (answer.code, answer.body["reason"]) == (429, "TooManyRequests")
        assert answer.headers["Retry-After"] == "3"
    assert (await rest.post(config_maps, a_config_map("one"))).code == 201


@pytest.mark.parametrize(
    ("status", "reason"), [(410, "Expired"), (500, "InternalError"), (503, "ServiceUnavailable")]
)
async def test_refusals_have_their_reason(
    emulator: ApiServer, rest: Rest, config_maps: str, status: int, reason: str
) -> None:
    emulator.faults.answer(Answer(status=status))
    answer = await rest.get(config_maps)
    assert (answer.code, answer.body["reason"], answer.body["kind"]) == (status, reason, "Status")


async def test_an_answer_can_be_delayed(emulator: ApiServer, rest: Rest, config_maps: str) -> None:
    emulator.faults.answer(Answer(delay_seconds=0.3))
    begun = time.monotonic()
    assert (await rest.get(config_maps)).code == 200
    assert time.monotonic() - begun >= 0.3


@pytest.mark.parametrize("fault", [Answer(status=500, applied=True), Answer(delay_seconds=30, applied=True)])
async def test_a_request_can_take_effect_although_its_answer_is_lost(
    emulator: ApiServer, rest: Rest, config_maps: str, fault: Answer
) -> None:
    emulator.faults.answer(replace(fault))
    with suppress(TimeoutError):
        async with asyncio.timeout(0.5):
            assert (await rest.post(config_maps, a_config_map("one"))).code == 500
    assert (await rest.get(f"{config_maps}/one")).code == 200


async def test_faults_can_be_taken_back(emulator: ApiServer, rest: Rest, config_maps: str) -> None:
    emulator.faults.answer(Answer(status=500))
    emulator.faults.lose_deleted("configmaps", 1)
    emulator.faults.clear()
    await rest.post(config_maps, a_config_map("one"))
    version = await rest.version(config_maps)
    await rest.delete(f"{config_maps}/one")
    async with rest.watch(config_maps, resourceVersion=version) as events:
        assert await first_names(events, 1) == [("DELETED", "one")]


async def test_faults_are_there_over_http(emulator: ApiServer, rest: Rest, config_maps: str) -> None:
    answered = await rest.post("/faults/answer", {"target": "configmaps", "status": 503})
    assert (answered.code, answered.body) == (200, {"result": None})
    assert (await rest.get(config_maps)).code == 503
    async with rest.watch(config_maps):
        assert (await rest.post("/faults/drop_watches", {})).body == {"result": 1}
    await rest.post("/faults/answer", {"status": 503})
    await rest.delete("/faults")
    assert (await rest.get(config_maps)).code == 200


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ({"status": 418}, "418"),
        ({"wrong": 1}, "wrong"),
        ({"left": 0}, "left"),
        ({"target": "("}, "expression"),
    ],
)
async def test_a_wrong_fault_is_a_bad_request(emulator: ApiServer, body: Json, word: str) -> None:
    async with aiohttp.ClientSession(emulator.url) as session:
        async with session.post("/faults/answer", json=body) as answer:
            assert answer.status == 400
            assert word in await answer.text()
        async with session.post("/faults/nothing") as answer:
            assert answer.status == 404


async def test_a_client_that_goes_leaves_no_watch_behind(
    emulator: ApiServer, rest: Rest, config_maps: str
) -> None:
    async with rest.watch(config_maps):
        pass
    async with asyncio.timeout(10):
        while emulator.faults.drop_watches():
            await asyncio.sleep(0.02)


async def test_the_log_of_a_pod_comes_from_its_kubelet(emulator: ApiServer, rest: Rest, pods: str) -> None:
    async def log(request: aiohttp.web.Request) -> aiohttp.web.Response:
        return aiohttp.web.Response(text=f"{request.path} {request.query_string}\n")

    application = aiohttp.web.Application()
    application.router.add_get("/containerLogs/{path:.*}", log)
    runner = aiohttp.web.AppRunner(application)
    await runner.setup()
    await aiohttp.web.TCPSite(runner, "127.0.0.1", 0).start()
    status = {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": runner.addresses[0][1]}},
    }
    await rest.merge("/api/v1/nodes/n1/status", {"status": status})
    pod = {
        "metadata": {"name": "one"},
        "spec": {"nodeName": "n1", "containers": [{"name": "agent", "image": "i"}]},
    }
    created = (await rest.post(pods, pod)).body
    async with (
        aiohttp.ClientSession(emulator.url) as session,
        session.get(f"{pods}/one/log", params={"tailLines": "5"}) as answer,
    ):
        expected = f"/containerLogs/{created['metadata']['namespace']}/one/agent tailLines=5\n"
        assert (answer.status, await answer.text()) == (200, expected)
    await runner.cleanup()
