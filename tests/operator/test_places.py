"""Places: who waits, who is next, and that nobody counts while another takes a place."""

import asyncio
from datetime import UTC, datetime, timedelta

from triage_operator.places import AgentKey, Places

AGENT = AgentKey("docs", "default")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def _places(**queued: bool) -> Places:
    places = Places()
    for age, (name, waits) in enumerate(queued.items()):
        places.note(AGENT, ("docs", name), NOW + timedelta(seconds=age), queued=waits)
    return places


def test_only_older_runs_that_wait_are_ahead() -> None:
    places = _places(first=False, second=True, third=True, fourth=True)
    assert places.ahead(AGENT, ("docs", "third"), NOW + timedelta(seconds=2)) == 1
    assert places.ahead(AGENT, ("docs", "second"), NOW + timedelta(seconds=1)) == 0
    assert places.ahead(AGENT, ("docs", "new"), NOW + timedelta(seconds=9)) == 3
    assert places.ahead(AgentKey("docs", "other"), ("docs", "new"), NOW) == 0


def test_runs_of_the_same_second_are_ordered_by_name() -> None:
    places = Places()
    for name in ("b", "a"):
        places.note(AGENT, ("docs", name), NOW, queued=True)
    assert places.next_in_line(AGENT) == ("docs", "a")
    assert places.ahead(AGENT, ("docs", "b"), NOW) == 1


def test_the_oldest_that_waits_is_next_until_it_has_its_place() -> None:
    places = _places(first=False, second=True, third=True)
    assert places.next_in_line(AGENT) == ("docs", "second")
    places.note(AGENT, ("docs", "second"), NOW, queued=False)
    assert places.next_in_line(AGENT) == ("docs", "third")
    places.forget(("docs", "third"))
    assert places.next_in_line(AGENT) is None
    assert places.unfinished(AGENT) == (("docs", "first"), ("docs", "second"))
    places.forget(("docs", "unheard-of"))


def test_runs_that_are_seen_together_are_in_the_line_by_age_until_they_are_decided_about() -> None:
    places = Places()
    for name, second in (("young", 2), ("old", 1)):
        metadata = {"namespace": "docs", "name": name, "creationTimestamp": f"2026-01-01T00:00:0{second}Z"}
        places.expect({"metadata": metadata, "spec": {}})
    assert places.ahead(AGENT, ("docs", "young"), NOW + timedelta(seconds=2)) == 1
    assert places.note(AGENT, ("docs", "old"), NOW + timedelta(seconds=1), queued=False)
    assert places.next_in_line(AGENT) == ("docs", "young")
    # Seen again, it is known: it has its place.
    metadata = {"namespace": "docs", "name": "old", "creationTimestamp": "2026-01-01T00:00:01Z"}
    places.expect({"metadata": metadata, "spec": {}})
    assert places.ahead(AGENT, ("docs", "young"), NOW + timedelta(seconds=2)) == 0
    assert places.forget(("docs", "young")) == AGENT
    assert places.forget(("docs", "old")) == AGENT
    assert places.forget(("docs", "old")) is None


async def test_a_turn_is_one_at_a_time_for_each_agent() -> None:
    places = _places()
    inside: list[str] = []

    async def take(name: str, agent: AgentKey) -> None:
        async with places.turn(agent):
            inside.append(f"{name} in")
            await asyncio.sleep(0)
            inside.append(f"{name} out")

    await asyncio.gather(take("a", AGENT), take("b", AGENT))
    assert inside == ["a in", "a out", "b in", "b out"]
    async with places.turn(AGENT):
        await asyncio.wait_for(take("c", AgentKey("docs", "other")), 1)
