"""Manifests: the examples are good, and each bad one is refused for the field and reason that it names."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.admission import RULES, faults, with_defaults
from triage_contract.api import parse_agent, parse_run
from triage_contract.api.crds import KINDS, build_schema
from triage_contract.exceptions import ApiError
from triage_contract.names import API_VERSION

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.yaml"))
BAD = sorted((Path(__file__).parent / "bad").glob("*.yaml"))
SCHEMAS = {kind.name: build_schema(kind) for kind in KINDS}
PARSERS = {"TriageRun": parse_run, "TriageAgent": parse_agent}
STORED = {"namespace": "docs", "uid": "u", "creationTimestamp": "2026-03-01T12:00:00Z"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The comment at the top of a bad manifest: what an API server must name.

    ``message`` is part of what a real API server says; the schema's own keywords have other words here.
    """

    field: str
    keyword: str
    message: str


def read(path: Path) -> list[dict[str, Any]]:
    """Return the objects of ours in a manifest, with defaults."""
    documents = [document for document in yaml.safe_load_all(path.read_text()) if document["kind"] in SCHEMAS]
    return [with_defaults(SCHEMAS[document["kind"]], document) for document in documents]


def read_expected(path: Path) -> Expected:
    return Expected(**dict(re.findall(r"^# (\w+): (.+)$", path.read_text(), re.MULTILINE)))


def parse(manifest: dict[str, Any]) -> object:
    stored = {**manifest, "metadata": {**STORED, **manifest["metadata"]}}
    return PARSERS[manifest["kind"]](stored)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_good(path: Path) -> None:
    manifests = read(path)
    assert {manifest["kind"] for manifest in manifests} == {"TriageRun", "TriageAgent"}
    for manifest in manifests:
        assert manifest["apiVersion"] == API_VERSION
        assert faults(SCHEMAS[manifest["kind"]], manifest) == []
        assert list(unknown_fields(SCHEMAS[manifest["kind"]], manifest)) == []
        parse(manifest)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_s_run_has_its_agent(path: Path) -> None:
    manifests = read(path)
    agents = {manifest["metadata"]["name"] for manifest in manifests if manifest["kind"] == "TriageAgent"}
    runs = [manifest for manifest in manifests if manifest["kind"] == "TriageRun"]
    assert {run["spec"]["agentRef"]["name"] for run in runs} <= agents


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_a_bad_manifest_is_refused_by_the_schema(path: Path) -> None:
    *before, last = read(path)
    old = before[0] if before else None
    if old is not None:
        assert faults(SCHEMAS[old["kind"]], old) == []
    expected = read_expected(path)
    found = faults(SCHEMAS[last["kind"]], last, old)
    assert {(fault.field, fault.keyword) for fault in found} == {(expected.field, expected.keyword)}
    if expected.keyword == RULES:
        assert expected.message in found[0].message


@pytest.mark.parametrize("path", [path for path in BAD if len(read(path)) == 1], ids=lambda path: path.stem)
def test_a_bad_object_is_refused_when_it_is_read(path: Path) -> None:
    (manifest,) = read(path)
    with pytest.raises(ApiError) as caught:
        parse(manifest)
    expected = read_expected(path)
    assert f" {expected.field}: " in str(caught.value)
    if expected.keyword == RULES:
        assert expected.message in str(caught.value)


def unknown_fields(schema: dict[str, Any], value: Any, path: str = "") -> Iterator[str]:
    """Yield the fields that an API server would drop."""
    if not isinstance(value, dict) or "properties" not in schema:
        return
    for name, inner in value.items():
        if name in schema["properties"]:
            yield from unknown_fields(schema["properties"][name], inner, f"{path}.{name}")
        else:
            yield f"{path}.{name}"
