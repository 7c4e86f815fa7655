"""Calls in doubt, from the loss of their attempt until somebody knows what became of them."""

import asyncio
from typing import Any

import pytest
from kubernetes.aio.client import CoreV1Api, V1Node, V1NodeSpec, V1ObjectMeta, V1Taint
from sqlalchemy.exc import DBAPIError

from support.databases import Database
from support.operated import Cluster, Json, operating, settings_for, until
from support.stub_agent import StubAgent, StubAgents
from triage_operator.steps import Step

CALL = "call-1"


async def _die_inside(
    cluster: Cluster, agents: StubAgents, *, kind: str = "Undeclared", seen: bool = True
) -> StubAgent:
    """Have the first attempt die inside a call; ``seen``: its node tells of it."""
    pod, agent = await agents.start(1)
    await agent.call(CALL)
    await agent.begin(CALL, kind)
    await agent.die()
    if seen:
        await cluster.end_pod(pod, 137)
    else:
        await cluster.remove_pod(pod)
    return agent


async def _decide(cluster: Cluster, action: str, attempt: int = 1, **more: Any) -> None:
    decision = {"call": CALL, "attempt": attempt, "action": action, **more}
    await cluster.change_run(decisions=[decision])


async def _row(database: Database, *columns: str) -> tuple[object, ...]:
    shown = ", ".join(columns)
    [row] = await database.values(f"SELECT {shown} FROM triage.tool_calls WHERE call_id = '{CALL}'")
    return row


async def test_a_run_that_died_in_an_undeclared_tool_parks_without_a_pod_and_shows_the_call(
    cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    await cluster.create_agent()
    async with operating(settings_for(cluster, database)):
        await cluster.create_run()
        await _die_inside(cluster, agents)
        status = await cluster.held_up("InDoubt")
        [message] = await cluster.told("InDoubt")
        assert len(await cluster.pods()) == 1
    assert status["phase"] == "Waiting"
    (call,) = status["waitingFor"]
    assert call.pop("since")
    assert call == {
        "call": CALL,
        "tool": "send_mail",
        "attempt": 1,
        "arguments": '{"to": "ops"}',
        "why": "It began, its end is not known, and nobody declared what repeating it does.",
    }
    assert CALL in message
    [token] = await database.values("SELECT token FROM triage.fences")
    assert token == (None,)


async def test_what_was_done_is_the_calls_result_and_its_zombie_cannot_say_otherwise(
    cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    await cluster.create_agent()
    async with operating(settings_for(cluster, database)):
        await cluster.create_run()
        pod, zombie = await agents.start(1)
        await zombie.call(CALL)
        await zombie.begin(CALL)
        await cluster.remove_pod(pod)
        await cluster.held_up("InDoubt")
        await _decide(cluster, "Done", result={"id": 7, "note": "seen\x00by ops"})
        _, agent = await agents.start(2)
        with pytest.raises(DBAPIError, match="attempt 1 is not the current one"):
            await zombie.end(CALL)
        answer = await agent.begin(CALL)
        await agent.answer("Done.", after=CALL)
        await agent.finish()
        await cluster.run_in("Succeeded")
    assert (answer["is_begun"], answer["result"]) == (False, {"id": 7, "note": "seen\ufffdby ops"})
    assert await _row(database, "state", "settled_by", "epoch") == ("settled", "decision", 1)
    status = (await cluster.run())["status"]
    assert status["waitingFor"] == []
    assert status["noProgress"] == 0


async def test_what_may_run_again_runs_once_and_the_decision_holds_for_no_later_attempt(
    cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    await cluster.create_agent()
    async with operating(settings_for(cluster, database)):
        await cluster.create_run()
        await _die_inside(cluster, agents)
        await cluster.held_up("InDoubt")
        await _decide(cluster, "RunAgain")
        pod, agent = await agents.start(2)
        assert (await agent.begin(CALL))["is_begun"]
        await agent.die()
        await cluster.end_pod(pod, 137)

        async def parked_again() -> Json | None:
            (call,) = (await cluster.run())["status"].get("waitingFor") or [{}]
            return call if call.get("attempt") == 2 else None

        await until(parked_again)
        assert len(await cluster.pods()) == 2
        reasons = await cluster.reasons()
    assert await _row(database, "state", "epoch", "begun_times", "cleared_by") == ("begun", 2, 2, None)
    assert (reasons.count("InDoubt"), reasons.count("Decided")) == (2, 1)
    assert "DecisionIgnored" not in reasons


async def test_a_person_lets_a_run_fail(cluster: Cluster, database: Database, agents: StubAgents) -> None:
    await cluster.create_agent()
    async with operating(settings_for(cluster, database)):
        await cluster.create_run()
        await _die_inside(cluster, agents)
        await cluster.held_up("InDoubt")
        await _decide(cluster, "Fail")
        status = (await cluster.run_in("Failed"))["status"]
    finished = next(one for one in status["conditions"] if one["type"] == "Finished")
    assert finished["reason"] == "InDoubt"
    assert "A person decided" in finished["message"]


@pytest.mark.parametrize(("in_doubt", "phase"), [("Fail", "Failed"), ("Retry", "Recovering")])
async def test_an_agent_says_what_becomes_of_undeclared_calls(
    in_doubt: str, phase: str, cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    await cluster.create_agent(resume={"inDoubt": in_doubt})
    async with operating(settings_for(cluster, database)):
        await cluster.create_run()
        await _die_inside(cluster, agents)
        await cluster.run_in(phase)
        assert len(await cluster.pods()) == (1 if in_doubt == "Fail" else 2)


async def test_a_decision_that_comes_early_is_carried_out_at_the_attempts_end(
    cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    await cluster.create_agent()
    async with operating(settings_for(cluster, database)):
        await cluster.create_run()
        pod, agent = await agents.start(1)
        await agent.call(CALL)
        await agent.begin(CALL)
        await _decide(cluster, "Done")

        async def seen() -> Json | None:
            run = await cluster.run()
            return run if run["status"]["observedGeneration"] == run["metadata"]["generation"] else None

        await until(seen)
        assert await _row(database, "state") == ("begun",)
        await agent.die()
        await cluster.end_pod(pod, 137)
        await cluster.pod_of(2)
    assert await _row(database, "state", "settled_by") == ("settled", "decision")


async def test_a_decision_about_no_call_in_doubt_is_told_once_and_does_nothing(
    cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    await cluster.create_agent()
    settings = settings_for(cluster, database)
    async with operating(settings):
        await cluster.create_run()
        await _die_inside(cluster, agents)
        await cluster.held_up("InDoubt")
        await _decide(cluster, "Done", attempt=5)
        [message] = await cluster.told("DecisionIgnored")
        assert "was begun by attempt 1, not 5" in message
    # The next operator knows nothing of it.
    async with operating(settings):
        await cluster.change_run(deadlineSeconds=100_000)

        async def seen() -> Json | None:
            run = await cluster.run()
            return run if run["status"]["observedGeneration"] == run["metadata"]["generation"] else None

        await until(seen)
        assert (await cluster.reasons()).count("DecisionIgnored") == 1
    assert await _row(database, "state") == ("begun",)


async def test_an_operator_that_dies_after_a_decision_is_followed_by_one_that_goes_on(
    cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    class Crash(BaseException):
        pass

    async def checkpoint(step: Step) -> None:
        if step is Step.DECISION_CARRIED_OUT:
            raise Crash

    async def decide_and_crash() -> None:
        async with operating(settings_for(cluster, database), checkpoint) as task:
            await cluster.create_run()
            await _die_inside(cluster, agents)
            await cluster.held_up("InDoubt")
            await _decide(cluster, "RunAgain")
            await asyncio.wait((task,), timeout=10)

    await cluster.create_agent()
    with pytest.raises(BaseExceptionGroup):
        await decide_and_crash()
    assert await _row(database, "state", "cleared_by") == ("begun", "decision")
    async with operating(settings_for(cluster, database)):
        await agents.start(2)
    assert len(await cluster.pods()) == 2


async def test_what_did_not_happen_runs_again_once_the_process_is_seen_dead(
    cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    await cluster.create_agent()
    async with operating(settings_for(cluster, database)):
        await cluster.create_run()
        await _die_inside(cluster, agents, kind="Reconcile")
        _, agent = await agents.start(2)
        assert await agent.settle(CALL, "not_happened")
        assert (await agent.begin(CALL, "Reconcile"))["is_begun"]
    [(confirmed,)] = await database.values("SELECT confirmed_at FROM triage.attempts WHERE epoch = 1")
    assert confirmed is not None


async def test_what_did_not_happen_parks_while_the_process_may_live_until_a_node_is_out_of_service(
    cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    nodes = CoreV1Api(cluster.client)
    await nodes.create_node(V1Node(metadata=V1ObjectMeta(name="node-1"), spec=V1NodeSpec()))
    await cluster.create_agent()
    async with operating(settings_for(cluster, database, evidence_seconds=0.2)):
        await cluster.create_run()
        await _die_inside(cluster, agents, kind="Reconcile", seen=False)
        second, agent = await agents.start(2)
        assert not await agent.settle(CALL, "not_happened")
        await agent.finish("in_doubt", error="nobody knows")
        await agent.die()
        await cluster.end_pod(second, 85)
        status = await cluster.held_up("InDoubt")
        assert "may still be alive" in status["waitingFor"][0]["why"]
        assert status["noProgress"] == 0
        assert (await cluster.reasons()).count("InDoubt") == 1
        taint = V1Taint(key="node.kubernetes.io/out-of-service", value="nodeshutdown", effect="NoExecute")
        await nodes.patch_node("node-1", {"spec": {"taints": [taint.to_dict()]}})
        _, third = await agents.start(3)
        assert await third.settle(CALL, "not_happened")


async def test_word_of_a_death_that_comes_late_frees_a_parked_call(
    cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    await cluster.create_agent()
    async with operating(settings_for(cluster, database, kubelet_word_seconds=0.1)):
        await cluster.create_run()
        first, agent = await agents.start(1)
        await agent.call(CALL)
        await agent.begin(CALL, "Reconcile")
        await database.values("UPDATE triage.fences SET token = NULL")
        second, asking = await agents.start(2)
        assert not await asking.settle(CALL, "not_happened")
        await asking.finish("in_doubt", error="nobody knows")
        await cluster.end_pod(second, 85)
        await cluster.held_up("InDoubt")
        await agent.die()
        await cluster.end_pod(first, 137)
        _, third = await agents.start(3)
        assert await third.settle(CALL, "not_happened")


async def test_what_its_outside_world_does_not_know_parks_whatever_is_known_of_the_process(
    cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    await cluster.create_agent()
    async with operating(settings_for(cluster, database)):
        await cluster.create_run()
        await _die_inside(cluster, agents, kind="Reconcile")
        second, agent = await agents.start(2)
        assert not await agent.settle(CALL, "unknown")
        await agent.finish("in_doubt", error="nobody knows")
        await agent.die()
        await cluster.end_pod(second, 85)
        status = await cluster.held_up("InDoubt")
        assert len(await cluster.pods()) == 2
    assert status["waitingFor"][0]["why"] == (
        "Its outside world was asked, and could not tell: It was asked."
    )


async def test_each_repair_is_told_once_and_the_run_says_so_meanwhile(
    cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    settings = settings_for(cluster, database)
    await cluster.create_agent()
    async with operating(settings):
        await cluster.create_run()
        _, agent = await agents.start(1)
        await agent.note_repair("Call call-1 was lost.")
        assert await cluster.told("Repaired") == ["Call call-1 was lost."]
        conditions = (await cluster.run())["status"]["conditions"]
        assert {one["reason"] for one in conditions} == {"Repaired"}
    async with operating(settings):
        await agent.answer("Done.")
        await agent.finish()
        await cluster.run_in("Succeeded")
        await cluster.told("Completed")
        reasons = await cluster.reasons()
    assert (reasons.count("Repaired"), reasons.count("Completed")) == (1, 1)


async def test_a_database_that_is_an_older_copy_stops_the_run_until_it_has_caught_up(
    cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    await cluster.create_agent()
    async with operating(settings_for(cluster, database)):
        await cluster.create_run()
        pod, agent = await agents.start(1)
        await cluster.run_in("Running")
        newer = (await cluster.run())["status"]["attempts"]
        await cluster.edit_status(attempt=3, attempts=[*newer, {"epoch": 2}, {"epoch": 3}])
        status = await cluster.held_up("DatabaseBehind")
        await agent.die()
        await cluster.end_pod(pod, 137)
        await cluster.told("DatabaseBehind")
        assert len(await cluster.pods()) == 1
        assert [one["epoch"] for one in status["attempts"]] == [1, 2, 3]
        await cluster.edit_status(attempt=1, attempts=newer)
        await agents.finish(2)
        await cluster.run_in("Succeeded")


async def test_an_attempt_by_hand_is_shown_as_one(
    cluster: Cluster, database: Database, agents: StubAgents
) -> None:
    await cluster.create_agent()
    async with operating(settings_for(cluster, database)):
        await cluster.create_run(suspend=True)
        await cluster.run_in("Suspended")
        await cluster.change_run(suspend=False)
        await agents.start(1)
        await database.values("UPDATE triage.attempts SET pod = NULL, pod_uid = NULL")
        await cluster.change_run(deadlineSeconds=100_000)
        [message] = await cluster.told("ByHand")
    assert message == "Attempt 1 was begun by hand and runs outside of the cluster."
