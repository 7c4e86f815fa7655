"""Decisions in worlds where everything goes wrong in any order."""

from collections.abc import Callable
from functools import partial
from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

from support.world import World
from triage_contract.database.rows import AttemptRow
from triage_contract.states import Cause, Outcome, RunState
from triage_operator.actions import Wait

Happening = Callable[[World], None]


def _round(world: World, *, works: bool = True) -> None:
    """Let a world go on: the operator acts until it waits, then everybody else does what is due."""
    action = world.reconcile()
    for _ in range(60):
        if isinstance(action, Wait):
            break
        action = world.reconcile()
    else:
        raise AssertionError(f"the operator does not come to rest: {action}")
    world.start_pods()
    world.beat()
    if works:
        world.work()
    world.leave()
    world.report_deaths()
    world.pass_time(1.0 if action.until is None else (action.until - world.now).total_seconds())
    world.beat()


def _suspend(world: World, *, suspended: bool) -> None:
    world.suspended = suspended


def _to_work_and(mishap: Happening, world: World) -> None:
    """Have a mishap befall an attempt at work."""
    for _ in range(4):
        if world.newest_process is None:
            _round(world, works=False)
    mishap(world)
    world.reconcile()


MISHAPS: list[Happening] = [
    World.kill,
    World.freeze,
    World.drain,
    World.vanish,
    World.grow,
    *(partial(World.exit, code=code) for code in (0, 1, 137, 82, 87)),
    partial(World.exit, code=137, reason="OOMKilled"),
]
HAPPENINGS: list[Happening] = [
    *(partial(_to_work_and, mishap) for mishap in MISHAPS),
    partial(World.reconcile, dies_halfway=True),  # type: ignore[list-item]
    World.report_deaths,
    World.give_memory,
    World.refuse_memory,
    *(partial(World.pass_time, seconds=seconds) for seconds in (0.1, 3.0, 40.0, 400.0)),
    *(partial(_suspend, suspended=suspended) for suspended in (True, False)),
    partial(_round, works=False),
    partial(_round, works=True),
]
RESUMES = st.fixed_dictionaries(
    {
        "maxNoProgress": st.sampled_from([0, 1, 2, 3, 3, 5]),
        "maxAttempts": st.sampled_from([2, 5, 20, 20]),
        "backoff": st.fixed_dictionaries(
            {"initialSeconds": st.integers(1, 9), "maxSeconds": st.integers(9, 90)}
        ),
    }
)

_OWN_FAULTS = {Cause.SIGKILL, Cause.APP_ERROR, Cause.EXIT0_UNFINISHED, Cause.UNRESPONSIVE}


def _fruitless(attempts: tuple[AttemptRow, ...]) -> int:
    """Count the attempts since the last progress that died by their own fault, as plainly as it can be said."""
    count = 0
    for attempt in attempts:
        if attempt.progressed:
            count = 0
        elif attempt.outcome is Outcome.LOST and attempt.cause in _OWN_FAULTS:
            count += 1
    return count


def _check(world: World, resume: dict[str, Any]) -> None:
    open_attempts = [attempt for attempt in world.attempts if attempt.ended_at is None]
    assert open_attempts in ([], world.attempts[-1:]), "one attempt at a time"
    assert world.token is None or open_attempts, "only an open attempt may write"
    assert len(world.attempts) <= resume["maxAttempts"]
    for before in world.opened_with:
        spent = _fruitless(before)
        assert spent == 0 or spent < resume["maxNoProgress"]
        assert resume["maxNoProgress"] > 0 or not any(attempt.claimed_at for attempt in before)
    assert world.state is not RunState.SUCCEEDED or world.steps_left == 0


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(
    steps=st.integers(3, 12),
    resume=RESUMES,
    happenings=st.lists(st.sampled_from(HAPPENINGS), min_size=8, max_size=40),
)
def test_every_run_ends_within_its_budget_and_one_attempt_at_a_time(
    steps: int, resume: dict[str, Any], happenings: list[Happening]
) -> None:
    world = World(steps=steps, resume=resume)

    for happening in happenings:
        happening(world)
        _check(world, resume)
    event(f"{len(world.attempts)} attempts")

    world.suspended = False
    rounds = 0
    while world.state is RunState.ACTIVE:
        _round(world)
        _check(world, resume)
        rounds += 1
        assert rounds < 100, f"no end in sight: {world.decide()}"
    assert world.state is not RunState.FAILED or world.steps_left > 0
    assert world.token is None

    for _ in range(6):
        _round(world)
        world.pass_time(60)
    assert not world.running_pods
