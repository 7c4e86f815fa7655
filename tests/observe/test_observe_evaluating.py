"""What queries should come to, over samples whose sums can be done in the head."""

import math
from collections.abc import Iterable, Mapping

import pytest
from observe.evaluating import Evaluator, NotKnownError
from observe.truth import labels_of

WINDOW_SECONDS = 100


def _samples(*samples: tuple[Mapping[str, str], float]) -> dict[frozenset[tuple[str, str]], float]:
    return {labels_of(labels): value for labels, value in samples}


LOSSES = _samples(
    ({"namespace": "docs", "agent": "one", "cause": "oom"}, 2),
    ({"namespace": "docs", "agent": "two", "cause": "oom"}, 3),
    ({"namespace": "docs", "agent": "two", "cause": "drain"}, 1),
)
SAMPLES = {
    "losses": LOSSES,
    "resumes": _samples(({"namespace": "docs", "agent": "two", "cause": "oom"}, 4)),
    "seconds_bucket": _samples(({"le": "1"}, 0), ({"le": "5"}, 3), ({"le": "10"}, 4), ({"le": "+Inf"}, 4)),
    "waiting": {},
}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("losses", LOSSES),
        ("sum(losses)", {(): 6}),
        ('sum(losses{agent=~"t.*", cause!="drain"})', {(): 3}),
        ('sum(losses{agent=~".*", cause!~"d.*"})', {(): 5}),
        ("sum by (cause) (losses)", {(("cause", "oom"),): 5, (("cause", "drain"),): 1}),
        (
            "max without (agent, namespace) (losses)",
            {(("cause", "oom"),): 3, (("cause", "drain"),): 1},
        ),
        ("sum(increase(losses[100s]))", {(): 6}),
        ("sum(rate(losses[200s]))", {(): 0.03}),
        ("sum(losses) - (sum(losses offset 100s) or 0 * sum(losses))", {(): 6}),
        ("sum(losses) - (sum(max_over_time(losses[5m] offset 100s)) or 0 * sum(losses))", {(): 6}),
        ("100 * sum(resumes) / sum(losses)", {(): 400 / 6}),
        ("sum(resumes) / clamp_min(sum(losses), 10)", {(): 0.4}),
        ("losses > 2", {(("agent", "two"), ("cause", "oom"), ("namespace", "docs")): 3}),
        (
            "sum by (agent, cause) (losses) - on (agent, cause) sum by (agent, cause) (resumes)",
            {(("agent", "two"), ("cause", "oom")): -1},
        ),
        ("sum by (cause) (losses) unless sum by (cause) (resumes)", {(("cause", "drain"),): 1}),
        ("sum(waiting) or vector(0)", {(): 0}),
        ("topk(1, sum by (cause) (losses))", {(("cause", "oom"),): 5}),
        ("histogram_quantile(0.5, seconds_bucket)", {(): 1 + 4 * 2 / 3}),
        ("histogram_quantile(0.99, seconds_bucket)", {(): 5 + 5 * 0.96}),
        ("count(losses) * -1", {(): -3}),
    ],
)
def test_a_query_comes_to_what_was_counted(
    query: str, expected: Mapping[Iterable[tuple[str, str]], float]
) -> None:
    found = Evaluator(SAMPLES, WINDOW_SECONDS).evaluate(query)
    assert found == pytest.approx({frozenset(labels): value for labels, value in expected.items()})


def test_a_share_of_nothing_is_no_number() -> None:
    (value,) = Evaluator(SAMPLES, WINDOW_SECONDS).evaluate("vector(0) / vector(0)").values()
    assert math.isnan(value)


@pytest.mark.parametrize(
    "query",
    [
        "reconcile_seconds_count",
        "increase(losses[50s])",
        "losses offset 20s",
        "max_over_time(waiting[100s:1s])",
        "losses @ 12",
        "label_replace(losses, 'a', '$1', 'b', '.*')",
    ],
)
def test_what_the_tables_do_not_tell_is_said(query: str) -> None:
    with pytest.raises(NotKnownError):
        Evaluator(SAMPLES, WINDOW_SECONDS).evaluate(query)
