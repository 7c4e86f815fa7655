"""When marks begin."""

from observe.intervals import marked


def test_a_mark_that_is_interrupted_is_one_and_a_later_one_another() -> None:
    points = [(float(time), 1.0) for time in (*range(10, 20), *range(25, 70), *range(90, 95))]
    assert marked(points) == [10, 90]


def test_what_is_zero_is_no_mark() -> None:
    assert marked([(1.0, 0.0), (2.0, 1.0)]) == [2]
    assert marked([]) == []
