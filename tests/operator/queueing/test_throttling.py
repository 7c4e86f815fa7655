"""The client-side limit: a burst at once, then a steady rate."""

import asyncio

from triage_operator.throttling import Throttle


async def test_a_burst_goes_through_at_once_and_what_follows_waits_its_turn() -> None:
    throttle = Throttle(per_second=50, burst=3)
    loop = asyncio.get_running_loop()
    started = loop.time()
    for _ in range(3):
        await throttle.take()
    assert loop.time() - started < 0.015
    for _ in range(3):
        await throttle.take()
    assert loop.time() - started >= 0.059


async def test_a_pause_saves_up_no_more_than_the_burst() -> None:
    throttle = Throttle(per_second=100, burst=2)
    loop = asyncio.get_running_loop()
    await throttle.take()
    await asyncio.sleep(0.1)
    started = loop.time()
    for _ in range(4):
        await throttle.take()
    assert loop.time() - started >= 0.019
