"""An API server that stops and starts again, or forgets: what it keeps, and what its clients notice."""

from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from support.kube import Rest, a_config_map, rest_client
from support.servers import a_server
from triage_local.apiserver import ApiServer
from triage_local.lone import LoneApiServer

_CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
async def server() -> AsyncIterator[ApiServer | LoneApiServer]:
    async with a_server() as server:
        yield server


@pytest.fixture
async def rest(server: ApiServer | LoneApiServer, tmp_path: Path) -> AsyncIterator[Rest]:
    kubeconfig = tmp_path / "kubeconfig"
    server.write_kubeconfig(kubeconfig)
    async with rest_client(kubeconfig) as rest:
        yield rest


async def test_a_stopped_server_goes_on_where_it_was(server: ApiServer | LoneApiServer, rest: Rest) -> None:
    created = (await rest.post(_CONFIG_MAPS, a_config_map("one"))).body
    url = server.url
    async with rest.watch(_CONFIG_MAPS) as events:
        await server.stop()
        with pytest.raises(aiohttp.ClientPayloadError):
            async for _ in events:
                pass
    with pytest.raises(aiohttp.ClientConnectorError):
        await rest.get(_CONFIG_MAPS)
    await server.start()
    assert server.url == url
    assert (await rest.get(f"{_CONFIG_MAPS}/one")).body == created


async def test_a_watch_and_a_page_from_before_a_restart_are_told_to_begin_anew(
    server: ApiServer | LoneApiServer, rest: Rest
) -> None:
    for name in ("one", "two", "three"):
        await rest.post(_CONFIG_MAPS, a_config_map(name))
    page = (await rest.get(_CONFIG_MAPS, limit=1)).body["metadata"]
    await rest.post(_CONFIG_MAPS, a_config_map("four"))
    version = await rest.version(_CONFIG_MAPS)
    await server.stop()
    if isinstance(server, ApiServer):
        server.faults.expire()
    else:
        await server.forget(int(version))
    await server.start()
    async with rest.watch(_CONFIG_MAPS, resourceVersion=page["resourceVersion"]) as events:
        event = await anext(events)
    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")
    answer = await rest.get(_CONFIG_MAPS, limit=1, **{"continue": page["continue"]})
    assert (answer.code, answer.body["reason"]) == (410, "Expired")
    assert answer.body["message"].startswith("The provided continue parameter is too old")
    # The refusal has a token with which the list goes on, although it shows another moment.
    rest_of_it = await rest.get(_CONFIG_MAPS, **{"continue": answer.body["metadata"]["continue"]})
    assert [item["metadata"]["name"] for item in rest_of_it.body["items"]][-2:] == ["three", "two"]
