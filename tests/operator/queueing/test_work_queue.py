"""The work queue: level-triggered, one worker per key, delays that a wake makes void."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from triage_operator.queueing import WorkQueue


class Worker:
    """Works on keys as a test lets it."""

    def __init__(self) -> None:
        self.begun: asyncio.Queue[str] = asyncio.Queue()
        self.let_go = asyncio.Semaphore(0)
        self.at_once = 0
        self.most_at_once = 0
        self.done: list[str] = []

    async def work(self, key: str) -> None:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        self.begun.put_nowait(key)
        await self.let_go.acquire()
        self.at_once -= 1
        self.done.append(key)


@contextmanager
def _working(queue: WorkQueue[str], worker: Worker, workers: int) -> Iterator[asyncio.Task[None]]:
    task = asyncio.create_task(queue.work(worker.work, workers=workers))
    try:
        yield task
    finally:
        task.cancel()


async def test_a_key_that_is_woken_often_before_its_turn_is_worked_on_once() -> None:
    queue: WorkQueue[str] = WorkQueue()
    worker = Worker()
    for key in ("a", "b", "a", "a"):
        queue.wake(key)
    assert len(queue) == 2
    with _working(queue, worker, 1):
        worker.let_go.release()
        assert [await worker.begun.get(), await worker.begun.get()] == ["a", "b"]
        assert len(queue) == 0
        assert "a" not in queue


async def test_a_key_that_is_woken_while_it_is_worked_on_is_worked_on_again_and_never_twice_at_once() -> None:
    queue: WorkQueue[str] = WorkQueue()
    worker = Worker()
    with _working(queue, worker, 3):
        queue.wake("a")
        assert await worker.begun.get() == "a"
        queue.wake("a")
        queue.wake("a")
        assert "a" in queue
        queue.wake("b")
        assert await worker.begun.get() == "b"
        worker.let_go.release()
        worker.let_go.release()
        assert await worker.begun.get() == "a"
        worker.let_go.release()
    assert worker.most_at_once == 2


async def test_no_more_workers_than_asked_for_are_at_work_at_once() -> None:
    queue: WorkQueue[str] = WorkQueue()
    worker = Worker()
    for key in "abcdef":
        queue.wake(key)
    with _working(queue, worker, 2):
        for _ in "abcdef":
            await worker.begun.get()
            worker.let_go.release()
    assert worker.most_at_once == 2


async def test_a_delayed_key_comes_when_its_time_has_come() -> None:
    queue: WorkQueue[str] = WorkQueue()
    worker = Worker()
    with _working(queue, worker, 1):
        started = asyncio.get_running_loop().time()
        queue.wake_after("a", 0.05)
        assert "a" in queue
        assert len(queue) == 0
        assert await worker.begun.get() == "a"
        assert asyncio.get_running_loop().time() - started >= 0.049


async def test_a_later_delay_replaces_an_earlier_one_and_a_wake_makes_it_void() -> None:
    queue: WorkQueue[str] = WorkQueue()
    worker = Worker()
    queue.wake_after("a", 0.0)
    queue.wake_after("b", 0.01)
    queue.wake_after("b", 3600)
    queue.wake_after("c", 3600)
    queue.wake("c")
    # A key that waits for its turn anyhow needs no delay.
    queue.wake_after("c", 3600)
    for _ in range(3):
        worker.let_go.release()
    with _working(queue, worker, 1):
        assert [await worker.begun.get(), await worker.begun.get()] == ["a", "c"]
        assert "b" in queue
        assert "c" not in queue


async def test_a_cleared_queue_forgets_what_no_worker_has_taken() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.wake("a")
    queue.wake_after("b", 0.01)
    queue.clear()
    assert len(queue) == 0
    assert "a" not in queue
    assert "b" not in queue


async def test_an_error_of_the_task_ends_the_workers() -> None:
    queue: WorkQueue[str] = WorkQueue()

    async def fail(_key: str) -> None:
        raise ArithmeticError

    queue.wake("a")
    raised: BaseException | None = None
    try:
        await queue.work(fail, workers=2)
    except* ArithmeticError as group:
        raised = group
    assert raised is not None
