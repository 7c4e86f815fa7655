"""The chart's values: each described, each in the schema, and what is none of them refused."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

import helm_python
import pytest
import yaml

from support.charts import CHART, render

DESCRIBED = set(re.findall(r"^\| `([\w.]+)` \|", (CHART / "README.md").read_text(), re.MULTILINE))
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())


def _leaves(values: Mapping[str, Any], *above: str) -> Iterator[tuple[str, ...]]:
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, *above, key)
        else:
            yield (*above, key)


@pytest.mark.parametrize("path", list(_leaves(VALUES)), ids=".".join)
def test_each_value_or_what_holds_it_is_described(path: tuple[str, ...]) -> None:
    assert DESCRIBED & {".".join(path[:length]) for length in range(1, len(path) + 1)}


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"replicas": 2}, "replicas"),
        ({"replicaCount": 3}, "/replicaCount"),
        ({"image": {"name": "x"}}, "name"),
        ({"image": {"digest": "latest"}}, "/image/digest"),
        ({"watchNamespaces": "docs"}, "/watchNamespaces"),
        ({"settings": {"heartbeat": 1}}, "heartbeat"),
        ({"settings": {"workers": "many"}}, "/settings/workers"),
        ({"log": {"level": "loud"}}, "/log/level"),
        ({"database": {"url": "postgresql://x"}}, "url"),
        ({"crds": {"keep": "yes"}}, "/crds/keep"),
        ({"networkPolicy": {"databasePorts": [0]}}, "/networkPolicy/databasePorts"),
        ({"postgres": {"runAsUser": 0}}, "/postgres/runAsUser"),
    ],
)
def test_what_is_no_value_is_refused_by_its_name(values: dict[str, Any], named: str) -> None:
    with pytest.raises(helm_python.HelmError, match=named):
        render(values)


def test_chart_and_package_have_one_version() -> None:
    project = tomllib.loads((CHART.parents[1] / "pyproject.toml").read_text())["project"]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == project["version"]
