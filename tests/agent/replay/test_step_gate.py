"""Where a run may be left, and what is waited for before."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from triage_agent.replay.gate import INSIDE_CALL, Gate

PATIENT = 3600.0


class Step:
    """A step in a task of its own, which ends when it is told to."""

    def __init__(self, enter: Callable[[], Awaitable[Callable[[], None]]]) -> None:
        self.entered = asyncio.Event()
        self.over = asyncio.Event()
        self.task = asyncio.create_task(self._run(enter))

    async def _run(self, enter: Callable[[], Awaitable[Callable[[], None]]]) -> None:
        end = await enter()
        self.entered.set()
        await self.over.wait()
        end()
        await asyncio.Event().wait()

    async def cancel(self) -> None:
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task


async def settle() -> None:
    """Let everything that can go on go on."""
    for _ in range(5):
        await asyncio.sleep(0)


async def is_still(gate: Gate, patience_seconds: float = PATIENT) -> bool:
    waiting = asyncio.create_task(gate.stillness(patience_seconds))
    await settle()
    await asyncio.sleep(0.01 if patience_seconds < 1 else 0)
    done = waiting.done()
    waiting.cancel()
    return done


async def test_an_open_gate_lets_through_and_is_never_still() -> None:
    gate = Gate()
    step = Step(gate.enter_question)
    await settle()
    assert step.entered.is_set()
    assert not await is_still(gate, 0)


async def test_a_shut_gate_holds_and_the_run_can_be_left() -> None:
    gate = Gate()
    gate.shut()
    assert not await is_still(gate)
    step = Step(gate.enter_call)
    await settle()
    assert not step.entered.is_set()
    assert await is_still(gate)


@pytest.mark.parametrize("by_cancelling", [False, True])
async def test_what_is_under_way_is_waited_for(by_cancelling: bool) -> None:
    gate = Gate()
    question, call = Step(gate.enter_question), Step(gate.enter_call)
    await settle()
    gate.shut()
    Step(gate.enter_question)
    await settle()
    for step in (question, call):
        assert not await is_still(gate)
        if by_cancelling:
            await step.cancel()
        else:
            step.over.set()
        await settle()
    assert await is_still(gate)


async def test_a_question_is_waited_for_until_patience_ends_a_call_for_ever() -> None:
    gate = Gate()
    question, call = Step(gate.enter_question), Step(gate.enter_call)
    await settle()
    gate.shut()
    assert not await is_still(gate, 0)
    call.over.set()
    await settle()
    assert await is_still(gate, 0)
    assert not await is_still(gate)
    question.over.set()


async def test_steps_inside_a_call_pass_a_shut_gate_and_count_as_the_call() -> None:
    gate = Gate()
    outer = Step(gate.enter_call)
    await settle()
    gate.shut()
    token = INSIDE_CALL.set("outer")
    inner = Step(gate.enter_question)
    INSIDE_CALL.reset(token)
    Step(gate.enter_question)
    await settle()
    assert inner.entered.is_set()
    assert not await is_still(gate)
    outer.over.set()
    await settle()
    assert await is_still(gate)
