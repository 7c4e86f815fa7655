"""A new image of an agent in the middle of ten runs: taken up by the next attempt, or by all, a few at a time."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

import pytest
from sqlalchemy import text

from support.kind.cluster import AGENT_IMAGE, Kind
from support.kind.releases import tagged_anew
from support.kind.site import KindSite
from support.sight import Json
from triage_contract.states import Cause

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(600)]

_NAMES: Final = tuple(f"rolled-{number}" for number in range(10))
_AT_A_TIME: Final = 4
# A run is away from when it is asked to leave until its next attempt has written something.
_MOST_AWAY_AT_A_TIME: Final = text(
    "WITH away AS (SELECT a.serial, a.handoff_requested_at AS since, next.first_write_at AS until"
    " FROM triage.attempts a JOIN triage.runs r ON r.id = a.run_id"
    " JOIN triage.attempts next ON next.run_id = a.run_id AND next.epoch = a.epoch + 1"
    " WHERE r.namespace = :space AND a.handoff_requested_at IS NOT NULL)"
    " SELECT max(n) FROM (SELECT count(*) AS n FROM away one JOIN away other"
    " ON other.since <= one.since AND other.until > one.since GROUP BY one.serial) AS counts"
)


async def test_a_new_image_is_for_the_next_attempt(kind: Kind, site: KindSite) -> None:
    async with tagged_anew(kind, AGENT_IMAGE, "next") as image, site.held(*_NAMES) as holds:
        await site.change("TriageAgent", "default", image=image)
        lost, *others = _NAMES
        lost_at = await site.kill(lost)
        await holds[lost].cut_off()
        await site.went_on("SIGKILL, and a new image", lost, lost_at)
        for name in others:
            await holds[name].release()
        status = await site.succeeded(lost, [Cause.SIGKILL])
        assert [one["image"] for one in status["attempts"]] == [AGENT_IMAGE, image]
        for name in others:
            status = await site.succeeded(name)
            assert [one["image"] for one in status["attempts"]] == [AGENT_IMAGE]


async def test_a_new_image_takes_over_a_few_runs_at_a_time(kind: Kind, site: KindSite) -> None:
    rollout = {"strategy": "Restart", "maxUnavailable": _AT_A_TIME}
    await site.change("TriageAgent", "default", rollout=rollout)
    async with tagged_anew(kind, AGENT_IMAGE, "next") as image, site.held(*_NAMES) as holds:
        await site.change("TriageAgent", "default", image=image)
        released: dict[str, datetime] = {}

        def leaving(runs: Mapping[str, Json]) -> set[str] | None:
            wanted = 1 if released else _AT_A_TIME
            asked = {name for name, run in runs.items() if _is_handing_off(run)} - released.keys()
            return asked if len(asked) >= wanted else None

        while released.keys() < {*_NAMES}:
            asked = await site.runs.until(leaving, "further runs are asked to leave")
            for name in asked:
                await site.asked_to_hand_off(name)
                released[name] = datetime.now(UTC)
                await holds[name].release()
        for name, left_at in released.items():
            await site.went_on("a new image, since the tool's end", name, left_at)
            status = await site.succeeded(name, [Cause.ROLLOUT])
            assert [one["image"] for one in status["attempts"]] == [AGENT_IMAGE, image]
            assert status["noProgress"] == 0
    async with site.engine.connect() as connection:
        most = (await connection.execute(_MOST_AWAY_AT_A_TIME, {"space": site.namespace})).scalar_one()
    assert most == _AT_A_TIME


def _is_handing_off(run: Json) -> bool:
    conditions = (run.get("status") or {}).get("conditions") or []
    return any((one["type"], one["reason"]) == ("Progressing", "HandingOff") for one in conditions)
