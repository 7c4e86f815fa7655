"""Events: what they say, and that none is worth waiting for."""

import asyncio
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from support.operated import Cluster, until
from triage_contract.api import TriageRun, parse_run
from triage_contract.states import Outcome, Phase
from triage_local.apiserver.faults import Answer
from triage_operator.actions import Action, ConfirmDeath, EndAttempt, Wait
from triage_operator.announcing import Announcer, build_event, is_announced
from triage_operator.reasons import Reason

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def _wait(reason: Reason) -> Wait:
    return Wait(reason=reason, message="So it is.", phase=Phase.WAITING, until=None)


def _ending(outcome: Outcome) -> EndAttempt:
    return EndAttempt(
        reason=Reason.LOST,
        message="It ended.",
        serial=1,
        epoch=1,
        outcome=outcome,
        cause=None,
        counted=False,
        exit_code=None,
        confirmed=False,
    )


def _run(name: str = "tokens") -> TriageRun:
    return parse_run(
        {
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": str(uuid4()),
                "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": {"report": "x"},
        }
    )


def test_an_event_is_about_its_run_and_bounded() -> None:
    run = _run("n" * 253)
    event = build_event(
        run, action="EndAttempt", reason=Reason.LOST, message="m" * 2000, identity="op", now=NOW
    )
    assert event["involvedObject"]["uid"] == run.metadata.uid
    assert len(event["message"]) == 1024
    assert len(event["metadata"]["generateName"]) < 250
    assert event["type"] == "Warning"


def test_the_ordinary_course_is_no_warning() -> None:
    event = build_event(
        _run(), action="EndRun", reason=Reason.COMPLETED, message="Done.", identity="op", now=NOW
    )
    assert event["type"] == "Normal"


@pytest.mark.parametrize(
    ("action", "is_news", "told"),
    [
        (_wait(Reason.IN_DOUBT), True, True),
        (_wait(Reason.IN_DOUBT), False, False),
        (_wait(Reason.RUNNING), True, False),
        (_ending(Outcome.LOST), False, True),
        (_ending(Outcome.FINISHED), False, False),
        (_ending(Outcome.IN_DOUBT), False, False),
        (
            ConfirmDeath(reason=Reason.LOST, message="The process of attempt 1 is dead.", serial=1, epoch=1),
            True,
            False,
        ),
    ],
)
def test_each_thing_is_told_once(action: Action, is_news: bool, told: bool) -> None:
    assert is_announced(action, is_news=is_news) is told


async def test_what_is_to_be_told_once_is_told_once_by_any_number_of_operators(cluster: Cluster) -> None:
    run = _run()
    async with cluster.connect() as kube:
        for identity in ("first", "second"):
            announcer = Announcer(kube, identity=identity)
            working = asyncio.create_task(announcer.work())
            for once in ("repair 1", "repair 1", f"repair by {identity}"):
                announcer.announce(run, action="Repair", reason=Reason.REPAIRED, message=once, once=once)
            await cluster.told("Repaired", times=2 if identity == "first" else 3)
            working.cancel()
            await asyncio.wait((working,))
        assert sorted(await cluster.told("Repaired")) == [
            "repair 1",
            "repair by first",
            "repair by second",
        ]


async def test_events_are_recorded_in_the_background_and_one_that_is_refused_is_dropped(
    cluster: Cluster,
) -> None:
    cluster.server.faults.answer(Answer(method="POST", target="/events", status=403))
    async with cluster.connect() as kube:
        announcer = Announcer(kube, identity="op")
        working = asyncio.create_task(announcer.work())
        for reason in (Reason.LOST, Reason.RESUMING, Reason.COMPLETED):
            announcer.announce(_run(), action="Wait", reason=reason, message="So it is.")

        async def recorded() -> list[str] | None:
            reasons = sorted(await cluster.reasons())
            return reasons if len(reasons) == 2 else None

        assert await until(recorded) == ["Completed", "Resuming"]
        working.cancel()
        await asyncio.wait((working,))
