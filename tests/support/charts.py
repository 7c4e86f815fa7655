"""The chart as it is rendered, without a cluster and without a helm binary."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml
from helm_python import Chart

ROOT: Final = Path(__file__).parents[2]
CHART: Final = ROOT / "charts" / "triage-operator"
RELEASE: Final = "triage-operator"
NAMESPACE: Final = "triage"

DATABASE: Final = {"database": {"urlSecret": {"name": "database"}}}
"""The one thing that has to be given."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """What a chart comes to."""

    objects: tuple[Json, ...]
    notes: str

    def one(self, kind: str, name: str) -> Json:
        """Give the object of that kind and name."""
        (found,) = (each for each in self.of(kind) if each["metadata"]["name"] == name)
        return found

    def of(self, kind: str) -> list[Json]:
        """Give the objects of a kind."""
        return [each for each in self.objects if each["kind"] == kind]

    def pods(self) -> dict[str, Json]:
        """Give the spec of each pod that the chart makes, by kind and name of what makes it."""
        found = {}
        for each in self.objects:
            if each["kind"] == "Pod":
                found[f"Pod/{each['metadata']['name']}"] = each["spec"]
            elif "template" in each.get("spec", {}):
                found[f"{each['kind']}/{each['metadata']['name']}"] = each["spec"]["template"]["spec"]
        return found


def render(*layers: Mapping[str, Any], release: str = RELEASE) -> Rendered:
    """Render the chart with the database given, and further values that go over each other.

    Raises:
        HelmError: the values do not fit the schema, or a template refuses them.
    """
    with Chart.load(CHART) as chart:
        texts = chart.render(merged(DATABASE, *layers), name=release, namespace=NAMESPACE)
    notes = texts.pop("triage-operator/templates/NOTES.txt")
    objects = [each for text in texts.values() for each in yaml.safe_load_all(text) if each is not None]
    return Rendered(objects=tuple(objects), notes=notes)


def stored(manifest: Json) -> Json:
    """Give an object with what an API server adds to its metadata."""
    added = {"uid": "4f1a2b3c-0000-4000-8000-000000000002", "creationTimestamp": "2026-03-01T10:00:00Z"}
    return {**manifest, "metadata": {**manifest["metadata"], **added}}


def merged(*layers: Mapping[str, Any]) -> Json:
    """Lay values over each other as Helm does: objects field by field, everything else whole."""
    whole: Json = {}
    for layer in layers:
        for key, value in layer.items():
            below = whole.get(key)
            whole[key] = (
                merged(below, value) if isinstance(value, Mapping) and isinstance(below, dict) else value
            )
    return whole
