"""What counts as the same answer, and what variables of dashboards come to."""

import json
import math
from pathlib import Path

import pytest
from observe.comparing import compact, differences, shown
from observe.dashboards import filled_in, read_dashboards
from observe.prometheus import Series
from observe.truth import labels_of

OOM = labels_of({"cause": "oom"})
DRAIN = labels_of({"cause": "drain"})


def test_two_operators_that_told_of_the_same_are_added_and_who_told_does_not_matter() -> None:
    answer = (
        Series(labels={"cause": "oom", "instance": "a", "__name__": "losses"}, points=((0, 1), (1, 2))),
        Series(labels={"cause": "oom", "instance": "b", "agent": ""}, points=((1, 3),)),
    )
    assert compact(answer) == {OOM: 5}


def test_what_is_not_there_counts_as_zero() -> None:
    assert differences({OOM: 2, DRAIN: 0}, {OOM: 2}, 0.0) == ()
    assert differences({}, {OOM: 1}, 0.0) == ("oom: 0, not 1",)
    assert differences({DRAIN: 1}, {}, 0.0) == ("drain: 1, not 0",)


def test_an_answer_may_be_off_by_a_share_and_no_further() -> None:
    assert differences({OOM: 5.1}, {OOM: 5}, 0.03) == ()
    assert differences({OOM: 6}, {OOM: 5}, 0.03) == ("oom: 6, not 5",)
    assert differences({OOM: 5.1}, {OOM: 5}, 0.0) == ("oom: 5.1, not 5",)


def test_no_number_is_the_same_as_no_number_or_nothing() -> None:
    assert differences({OOM: math.nan}, {}, 0.0) == ()
    assert differences({OOM: math.nan}, {OOM: math.nan}, 0.0) == ()
    assert differences({OOM: math.nan}, {OOM: 1.0}, 0.0) == ("oom: nan, not 1",)


def test_the_largest_values_are_shown() -> None:
    vector = {
        labels_of({"cause": name, "namespace": "docs"}): float(value) for value, name in enumerate("abc")
    }
    assert shown(vector, most=2) == "c 2, b 1 and 1 more"


@pytest.mark.parametrize(
    ("query", "filled"),
    [
        ("rate(x[$__rate_interval])", "rate(x[90s])"),
        ("x offset ${__range}", "x offset 90s"),
        ("x / $__range_s", "x / 90"),
        ('x{y="$z"}', 'x{y="$z"}'),
    ],
)
def test_ranges_are_as_long_as_the_incident(query: str, filled: str) -> None:
    assert filled_in(query, 90) == filled


def test_variables_stand_for_all_there_is(tmp_path: Path) -> None:
    panel = {
        "title": "Losses",
        "type": "stat",
        "gridPos": {"x": 0, "y": 1, "w": 4, "h": 3},
        "targets": [{"expr": 'x{agent=~"${agent:regex}", namespace=~"$namespace"}[$__range]'}],
    }
    source = {
        "title": "Recovery",
        "templating": {"list": [{"name": "agent", "allValue": ".+"}, {"name": "namespace"}]},
        "panels": [{"type": "row", "panels": [panel]}],
    }
    (tmp_path / "recovery.json").write_text(json.dumps(source))
    (dashboard,) = read_dashboards(tmp_path)
    (read,) = dashboard.panels
    assert (read.title, read.kind, read.width) == ("Losses", "stat", 4)
    assert [target.query for target in read.targets] == ['x{agent=~".+", namespace=~".*"}[$__range]']
