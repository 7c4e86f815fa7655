"""The dashboards: what they ask exists, and what Grafana's own linter wants holds."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from dashboards.panels import RUNBOOKS
from dashboards.rendering import BUILDERS

from support.charts import CHART, render
from support.promtool import ROOT, promtool
from triage_operator.metrics.declared import DECLARED, Kind

Json = dict[str, Any]
SUFFIXES = {
    Kind.COUNTER: ("_total",),
    Kind.GAUGE: ("",),
    Kind.HISTOGRAM: ("_bucket", "_sum", "_count"),
}
EXPORTED = {
    f"{metric.full_name}{suffix}": {*metric.labels, *(("le",) if suffix == "_bucket" else ())}
    for metric in DECLARED
    for suffix in SUFFIXES[metric.kind]
}
SCRAPED = {"instance", "job"}
NAMES = [*BUILDERS]


def _dashboard(name: str) -> Json:
    dashboard: Json = json.loads((CHART / "dashboards" / f"{name}.json").read_text(encoding="utf-8"))
    return dashboard


def _queries(dashboard: Json) -> Iterator[str]:
    for panel in dashboard["panels"]:
        yield from (target["expr"] for target in panel["targets"])
    yield from (mark["expr"] for mark in dashboard["annotations"]["list"])


def _alerts() -> Iterator[str]:
    (rule,) = render({"alerts": {"enabled": True}}).of("PrometheusRule")
    yield from (rule["expr"] for rule in rule["spec"]["groups"][0]["rules"])


ASKED = [*(query for name in NAMES for query in _queries(_dashboard(name))), *_alerts()]


@pytest.mark.parametrize("query", ASKED)
def test_each_query_asks_for_metrics_and_labels_that_are_exported(query: str) -> None:
    metrics = set(re.findall(r"\btriage_\w+", query))
    assert metrics <= set(EXPORTED)
    known = SCRAPED.union(*(EXPORTED[metric] for metric in metrics))
    named = [
        label.strip()
        for labels in re.findall(r"\b(?:by|on|without) \(([^)]*)\)", query)
        for label in labels.split(",")
    ]
    matched = re.findall(r'(\w+)(?:=~|!~|!=|=)"', query)
    assert {*filter(None, named), *matched} <= known


def test_each_query_is_promql(tmp_path: Path) -> None:
    rules = [
        {
            "record": f"triage:query_{number}",
            "expr": re.sub(r"\$\{?\w+\}?", lambda it: "5m" if "__" in it[0] else "x", query),
        }
        for number, query in enumerate(ASKED)
    ]
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}))
    assert f"{len(ASKED)} rules found" in promtool("check", "rules", file)


@pytest.mark.parametrize("name", NAMES)
def test_each_panel_has_a_title_a_sentence_a_unit_and_the_chosen_source(name: str) -> None:
    dashboard = _dashboard(name)
    titles = [panel["title"] for panel in dashboard["panels"]]
    assert len(set(titles)) == len(titles)
    for panel in dashboard["panels"]:
        assert panel["description"].endswith(".")
        assert panel["fieldConfig"]["defaults"]["unit"]
        assert panel["datasource"]["uid"] == "${datasource}"
        for target in panel["targets"]:
            assert target["datasource"]["uid"] == "${datasource}"
            # A rate over less than four scrapes has gaps: Grafana knows how much that is.
            assert "rate(" not in target["expr"] or "[$__rate_interval]" in target["expr"]


@pytest.mark.parametrize("name", NAMES)
def test_panels_do_not_lie_on_each_other(name: str) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in _dashboard(name)["panels"]:
        place = panel["gridPos"]
        cells = {
            (place["x"] + across, place["y"] + down)
            for across in range(place["w"])
            for down in range(place["h"])
        }
        assert all(across < 24 for across, _ in cells)
        assert not cells & taken
        taken |= cells


@pytest.mark.parametrize("name", NAMES)
def test_a_dashboard_has_the_variables_the_marks_and_links_to_the_others(name: str) -> None:
    dashboard = _dashboard(name)
    variables = {each["name"]: each for each in dashboard["templating"]["list"]}
    assert list(variables) == ["datasource", "namespace", "agent"]
    for each in ("namespace", "agent"):
        assert variables[each]["multi"]
        assert variables[each]["includeAll"]
    assert [mark["name"] for mark in dashboard["annotations"]["list"]] == ["Deploys", "Drains"]
    (link,) = dashboard["links"]
    assert set(link["tags"]) <= set(dashboard["tags"])


def test_links_to_runbooks_lead_to_one() -> None:
    urls = [
        link["url"]
        for name in NAMES
        for panel in _dashboard(name)["panels"]
        for link in panel.get("links") or ()
    ]
    assert urls
    for url in urls:
        assert (ROOT / "docs" / "runbooks" / url.removeprefix(f"{RUNBOOKS}/")).is_file()


def test_the_chart_makes_a_config_map_of_each_for_grafanas_sidecar() -> None:
    assert render().of("ConfigMap") == []
    made = render({"dashboards": {"enabled": True, "annotations": {"grafana_folder": "Agents"}}}).of(
        "ConfigMap"
    )
    assert sorted(made_of for each in made for made_of in each["data"]) == sorted(
        f"triage-operator-{name}.json" for name in NAMES
    )
    for each in made:
        assert each["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert each["metadata"]["annotations"] == {"grafana_folder": "Agents"}
        ((file, text),) = each["data"].items()
        assert json.loads(text) == _dashboard(file.removeprefix("triage-operator-").removesuffix(".json"))
