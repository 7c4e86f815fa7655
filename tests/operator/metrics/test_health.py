"""Health: green says ok, red says why."""

import aiohttp
import pytest

from triage_operator.health import serving
from triage_operator.hearing import Hearing
from triage_operator.settings import ServingSettings

SETTINGS = ServingSettings(host="127.0.0.1", port=0)


async def _scrape() -> bytes:
    return b"triage_leader 1.0\n"


async def test_metrics_and_states_are_served_until_the_block_ends() -> None:
    faults: list[str] = []

    def ready() -> str | None:
        return faults[-1] if faults else None

    async with (
        serving(SETTINGS, scrape=_scrape, alive=lambda: None, ready=ready) as port,
        aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session,
    ):
        async with session.get("/metrics") as response:
            assert await response.text() == "triage_leader 1.0\n"
            assert response.content_type == "text/plain"
        async with session.get("/readyz") as response:
            assert (response.status, await response.text()) == (200, "ok\n")
        faults.append("no sweep for 130 s")
        async with session.get("/readyz") as response:
            assert (response.status, await response.text()) == (503, "no sweep for 130 s\n")
        async with session.get("/healthz") as response:
            assert response.status == 200
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientConnectionError):
            await session.get(f"http://127.0.0.1:{port}/healthz")


def test_a_watch_that_is_not_heard_grows_old(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("triage_operator.hearing.time.monotonic", lambda: now[0])
    hearing = Hearing(("pods", "triageruns"))
    now[0] = 130.0
    hearing.hear("pods")
    now[0] = 135.0
    assert hearing.age_seconds("pods") == 5.0
    assert hearing.age_seconds("triageruns") == 35.0
