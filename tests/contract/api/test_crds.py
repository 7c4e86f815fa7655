"""The custom resource definitions: what an API server demands of them, and what we promise."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import celpy
import pytest
import yaml
from celpy.adapter import json_to_cel
from jsonschema import Draft4Validator

from triage_contract.states import Cause, Outcome, Phase

ROOT = Path(__file__).parents[3]
CRDS = {path.stem: yaml.safe_load(path.read_text()) for path in sorted((ROOT / "crds").glob("*.yaml"))}
SCHEMAS = {
    crd["spec"]["names"]["kind"]: crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for crd in CRDS.values()
}

Node = dict[str, Any]

RULES = "x-kubernetes-validations"

# Of the fields of apiextensions/v1 JSONSchemaProps, those that a structural schema may have and that we use.
KEYWORDS = {
    *("description", "type", "format", "default", "enum", "required", "properties", "items"),
    *("additionalProperties", "minimum", "maximum", "minLength", "maxLength", "pattern", "maxItems"),
    *("maxProperties", "anyOf", "x-kubernetes-int-or-string", "x-kubernetes-list-type"),
    *("x-kubernetes-list-map-keys", "x-kubernetes-map-type", "x-kubernetes-preserve-unknown-fields", RULES),
}


def nodes(node: Node, path: str) -> Iterator[tuple[str, Node]]:
    yield path, node
    for name, field in node.get("properties", {}).items():
        yield from nodes(field, f"{path}.{name}")
    for key, suffix in (("items", "[]"), ("additionalProperties", "{}")):
        if key in node:
            yield from nodes(node[key], path + suffix)


NODES = dict(item for kind, schema in SCHEMAS.items() for item in nodes(schema, kind))
OURS = {path: node for path, node in NODES.items() if path.count(".") > 1}


def test_both_kinds_are_there_under_all_their_names() -> None:
    names = {crd["metadata"]["name"]: crd["spec"]["names"] for crd in CRDS.values()}
    assert {name: (n["kind"], n["shortNames"], n["categories"]) for name, n in names.items()} == {
        "triageruns.triage-operator.dev": ("TriageRun", ["tr"], ["triage"]),
        "triageagents.triage-operator.dev": ("TriageAgent", ["ta"], ["triage"]),
    }


@pytest.mark.parametrize("kind", SCHEMAS)
def test_a_schema_is_a_schema(kind: str) -> None:
    Draft4Validator.check_schema(SCHEMAS[kind])


def is_structural(node: Node) -> bool:
    if node.get("x-kubernetes-int-or-string"):
        typed = "type" not in node and node["anyOf"] == [{"type": "integer"}, {"type": "string"}]
    else:
        types = {"object", "array", "string", "integer", "number", "boolean"}
        typed = node.get("type") in types and "anyOf" not in node
    return typed and set(node) <= KEYWORDS and not {"properties", "additionalProperties"} <= set(node)


def test_each_node_is_structural() -> None:
    assert [path for path, node in NODES.items() if not is_structural(node)] == []


def test_the_api_server_alone_says_what_metadata_is() -> None:
    for schema in SCHEMAS.values():
        assert schema["properties"]["metadata"] == {"type": "object"}


def test_each_field_is_described_in_sentences() -> None:
    fields = {path: node for path, node in NODES.items() if not path.endswith(("metadata", "[]", "{}"))}
    assert [path for path, node in fields.items() if not node.get("description", "").endswith(".")] == []


def is_bounded(path: str, node: Node) -> bool:
    if node.get("type") == "array":
        return "maxItems" in node
    if "additionalProperties" in node:
        return "maxProperties" in node
    # What a map may hold is bounded in entries; an enum or a time is short by itself.
    free = node.get("type") == "string" and not {"enum", "format"} & set(node) and not path.endswith("{}")
    return not free or "maxLength" in node


def test_each_size_is_bounded() -> None:
    """The cost of a CEL rule is estimated from bounds, and etcd stores no object of more than 1.5 MiB."""
    assert [path for path, node in OURS.items() if not is_bounded(path, node)] == []


def test_rules_hold_for_the_defaults_as_they_are_written() -> None:
    """An API server refuses a definition whose default breaks a rule, and checks it before it is filled."""
    environment = celpy.Environment()
    ruled = [node for node in NODES.values() if RULES in node and "default" in node]
    for node in ruled:
        default = json_to_cel(node["default"])
        for rule in node[RULES]:
            program = environment.program(environment.compile(rule["rule"]))
            assert program.evaluate({"self": default, "oldSelf": default})
    assert len(ruled) == 4


def test_what_was_asked_is_never_absent_so_that_its_rule_is_always_asked() -> None:
    spec = SCHEMAS["TriageRun"]["properties"]["spec"]
    for name, field in spec["properties"].items():
        if any("oldSelf" in rule["rule"] for rule in field.get(RULES, ())):
            assert name in spec["required"] or "default" in field


def test_a_union_has_no_default() -> None:
    unions = [
        node for node in NODES.values() if any("exists_one" in rule["rule"] for rule in node.get(RULES, ()))
    ]
    assert len(unions) == 2
    assert not any("default" in node for node in unions)


def test_no_status_is_made_up() -> None:
    assert not [path for path, node in NODES.items() if ".status" in path and "default" in node]


def test_closed_sets_are_enums() -> None:
    status = SCHEMAS["TriageRun"]["properties"]["status"]["properties"]
    attempt = status["attempts"]["items"]["properties"]
    assert status["phase"]["enum"] == list(Phase)
    assert status["lastCause"]["enum"] == attempt["cause"]["enum"] == list(Cause)
    assert attempt["outcome"]["enum"] == list(Outcome)


@pytest.mark.parametrize(
    ("name", "columns", "wide"),
    [
        ("triageruns", ["Phase", "Attempt", "Resumes", "Last Cause", "Issue", "Age"], ["Agent", "Message"]),
        ("triageagents", ["Image", "Model", "Ready", "Age"], ["Running", "Message"]),
    ],
)
def test_columns_show_fields_that_exist(name: str, columns: list[str], wide: list[str]) -> None:
    version = CRDS[name]["spec"]["versions"][0]
    shown = version["additionalPrinterColumns"]
    assert [column["name"] for column in shown if not column.get("priority")] == columns
    assert [column["name"] for column in shown if column.get("priority")] == wide
    kind = CRDS[name]["spec"]["names"]["kind"]
    for column in shown:
        path = (
            column["jsonPath"]
            .replace('[?(@.type=="Progressing")]', "[]")
            .replace('[?(@.type=="Ready")]', "[]")
        )
        assert path == ".metadata.creationTimestamp" or f"{kind}{path}" in NODES
    assert version["subresources"] == {"status": {}}
