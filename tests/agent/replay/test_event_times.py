"""Event times go forward, whatever the clocks say."""

import pytest

from triage_agent.replay.clock import monotonic_times

T = 1_790_000_000.0


class Clocks:
    """A wall clock and a monotonic one, both set by hand."""

    def __init__(self, wall: float) -> None:
        self.wall_seconds = wall
        self.monotonic_seconds = 50.0

    def times(self, last: float | None) -> list[float]:
        """Two times at once, one after 2 s in which the wall clock is set back a day, one more at once."""
        now = monotonic_times(last, wall=lambda: self.wall_seconds, monotonic=lambda: self.monotonic_seconds)
        times = [now(), now()]
        self.monotonic_seconds += 2
        self.wall_seconds -= 86_400
        return [*times, now(), now()]


@pytest.mark.parametrize("hours", [-1, 0, 1])
@pytest.mark.parametrize("last", [None, T])
def test_each_time_is_later_than_all_before(hours: int, last: float | None) -> None:
    times = Clocks(T + hours * 3600).times(last)
    # The session table keeps microseconds.
    assert times == sorted(times)
    assert len({round(time * 1e6) for time in [*times, last or 0.0]}) == 5
    assert times[0] > (last or 0.0)


def test_the_first_time_is_the_wall_clocks_if_that_is_right() -> None:
    assert Clocks(T + 3600).times(T)[0] == pytest.approx(T + 3600, abs=1e-5)


def test_a_clock_behind_the_last_event_goes_on_from_there() -> None:
    times = Clocks(T - 3600).times(T)
    assert times[0] == pytest.approx(T, abs=1e-5)
    assert times[2] == pytest.approx(T + 2, abs=1e-5)
