"""Signs of life: what a look says that the last one did not."""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta

from triage_operator.lives import Lives
from triage_operator.stored import Look

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def _look(
    seconds: float = 0,
    held: Collection[int] = (),
    free: Collection[int] = (),
    silent: Collection[int] = (),
    released: Collection[int] = (),
    cramped: Collection[tuple[int, int]] = (),
    resumed: Collection[int] = (),
) -> Look:
    return Look(
        now=NOW + timedelta(seconds=seconds),
        held=frozenset(held),
        free=frozenset(free),
        silent=frozenset(silent),
        released=frozenset(released),
        cramped=frozenset(cramped),
        resumed=frozenset(resumed),
    )


def test_a_new_claim_is_news_once() -> None:
    lives = Lives()
    assert lives.take(_look(held={1})) == {1}
    assert lives.take(_look(held={1})) == frozenset()
    assert lives.take(_look(held={1, 2})) == {2}


def test_a_lock_that_was_held_and_is_free_is_news_and_dated() -> None:
    lives = Lives()
    lives.take(_look(0, held={1}))
    assert lives.take(_look(1, free={1})) == {1}
    assert lives.take(_look(2, free={1})) == frozenset()
    assert lives.sign(1, NOW).lock_free_since == NOW + timedelta(seconds=1)


def test_a_lock_that_is_held_again_is_as_if_it_had_never_been_free() -> None:
    lives = Lives()
    lives.take(_look(0, held={1}))
    lives.take(_look(1, free={1}))
    lives.take(_look(2, held={1}))
    assert lives.sign(1, NOW).lock_free_since is None
    assert lives.take(_look(3, free={1})) == {1}


def test_a_lock_that_was_never_seen_held_says_nothing() -> None:
    lives = Lives()
    lives.take(_look(0, free={1}))
    assert lives.take(_look(1, free={1})) == frozenset()
    assert lives.sign(1, NOW).lock_free_since is None


def test_silence_and_release_are_news_once_and_again_after_they_ended() -> None:
    lives = Lives()
    lives.take(_look(held={1, 2}))
    assert lives.take(_look(held={1, 2}, silent={1}, released={2})) == {1, 2}
    assert lives.take(_look(held={1, 2}, silent={1}, released={2})) == frozenset()
    assert lives.take(_look(held={1, 2})) == frozenset()
    assert lives.take(_look(held={1, 2}, silent={1})) == {1}


def test_memory_near_its_limit_is_news_once_for_each_limit() -> None:
    lives = Lives()
    lives.take(_look(held={1}))
    assert lives.take(_look(held={1}, cramped={(1, 256)})) == {1}
    assert lives.take(_look(held={1}, cramped={(1, 256)})) == frozenset()
    assert lives.take(_look(held={1}, cramped={(1, 384)})) == {1}
    assert lives.take(_look(held={1}, cramped={(1, 384)}, released={1})) == {1}


def test_the_database_counts_as_reachable_since_the_first_look_after_a_gap() -> None:
    lives = Lives()
    assert lives.sign(None, NOW).reachable_since == NOW
    lives.take(_look(1))
    lives.take(_look(2))
    assert lives.sign(None, NOW).reachable_since == NOW + timedelta(seconds=1)
    lives.lose_sight()
    lives.take(_look(9))
    assert lives.sign(None, NOW).reachable_since == NOW + timedelta(seconds=9)


def test_locks_that_a_restarted_server_dropped_are_not_held_against_anybody() -> None:
    lives = Lives()
    lives.take(_look(0, held={1, 2}))
    lives.lose_sight()
    lives.take(_look(5, free={1, 2}))
    assert lives.sign(1, NOW).lock_free_since is None
    lives.take(_look(6, held={1}, free={2}))
    assert lives.take(_look(7, free={1, 2})) == {1}


def test_what_was_told_before_a_gap_is_told_again_after_it() -> None:
    lives = Lives()
    look = _look(held={1}, released={2}, silent={3}, resumed={1}, cramped={(1, 256)})
    assert lives.take(look) == {1, 2, 3}
    assert lives.take(look) == frozenset()
    lives.lose_sight()
    assert lives.take(look) == {1, 2, 3}
