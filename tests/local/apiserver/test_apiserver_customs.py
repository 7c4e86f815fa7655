"""Custom resources: their definitions, schemas, rules, defaults and status."""

import asyncio
from typing import Any

import pytest

from support.gadgets import Gadgets, gadget_definition
from support.kube import Json, Rest

NOT_CHECKED = (
    "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)


async def test_a_definition_is_established_and_discovered(rest: Rest, gadgets: Gadgets) -> None:
    definition = (await rest.get(f"{gadgets.definitions}/gadgets.{gadgets.group}")).body
    conditions = {c["type"]: c["status"] for c in definition["status"]["conditions"]}
    assert conditions["Established"] == "True"
    assert conditions["NamesAccepted"] == "True"
    assert definition["status"]["acceptedNames"]["listKind"] == "GadgetList"
    resources = (await rest.get(f"/apis/{gadgets.group}/v1")).body["resources"]
    entry = next(resource for resource in resources if resource["name"] == "gadgets")
    assert (entry["kind"], entry["namespaced"], entry["singularName"]) == ("Gadget", True, "gadget")
    assert (entry["shortNames"], entry["categories"]) == (["gd"], ["toys"])
    assert "gadgets/status" in [resource["name"] for resource in resources]


async def test_defaults_are_filled_in_and_unknown_fields_are_left_out(rest: Rest, gadgets: Gadgets) -> None:
    spec = {"report": "r", "unknown": 1, "free": {"any": {"thing": 1}}, "note": None, "name": None}
    answer = await rest.post(gadgets.path, gadgets.one("one", spec))
    assert answer.body["spec"] == {"report": "r", "size": 3, "free": {"any": {"thing": 1}}, "note": None}
    assert answer.headers["Warning"] == '299 - "unknown field \\"spec.unknown\\""'


async def test_unknown_fields_are_refused_where_the_client_is_strict(rest: Rest, gadgets: Gadgets) -> None:
    gadget = gadgets.one("one", {"report": "r", "unknown": 1, "parts": [{"id": "a", "x": 1}]})
    answer = await rest.post(gadgets.path, gadget, fieldValidation="Strict")
    assert (answer.code, answer.body["reason"]) == (400, "BadRequest")
    assert answer.body["message"] == (
        'Gadget in version "v1" cannot be handled as a Gadget: strict decoding error: '
        'unknown field "spec.parts[0].x", unknown field "spec.unknown"'
    )


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ({}, "spec.report: Required value"),
        (
            {"report": ""},
            'spec.report: Invalid value: "": spec.report in body should be at least 1 chars long',
        ),
        ({"report": "x" * 21}, "spec.report: Too long: may not be more than 20 bytes"),
        (
            {"report": 1},
            'spec.report: Invalid value: "integer": spec.report in body must be of type string: "integer"',
        ),
        (
            {"report": "r", "size": "1"},
            'spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"',
        ),
        (
            {"report": "r", "size": 0},
            "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1",
        ),
        (
            {"report": "r", "ratio": 0},
            "spec.ratio: Invalid value: 0: spec.ratio in body should be greater than 0",
        ),
        ({"report": "r", "mode": "C"}, 'spec.mode: Unsupported value: "C": supported values: "A", "B"'),
        (
            {"report": "r", "name": "N"},
            "spec.name: Invalid value: \"N\": spec.name in body should match '^[a-z]*$'",
        ),
        (
            {"report": "r", "due": "soon"},
            'spec.due: Invalid value: "soon": spec.due in body must be of type date-time: "soon"',
        ),
        (
            {"report": "r", "labels": {"a": "1", "b": "2", "c": "3"}},
            "spec.labels: Too many: 3: must have at most 2 items",
        ),
        (
            {"report": "r", "labels": {"a": 1}},
            'spec.labels.a: Invalid value: "integer": spec.labels.a in body must be of type string: "integer"',
        ),
        (
            {"report": "r", "parts": [{"id": str(n)} for n in range(4)]},
            "spec.parts: Too many: 4: must have at most 3 items",
        ),
        ({"report": "r", "parts": [{"text": "t"}]}, "spec.parts[0].id: Required value"),
        (
            {"report": "r", "parts": [{"id": "a"}, {"id": "a"}]},
            'spec.parts[1]: Duplicate value: {"id":"a"}',
        ),
        (
            {"report": "r", "mode": "A", "port": 1},
            'spec: Invalid value: "object": mode and port exclude each other',
        ),
        ({"report": "r", "size": 100}, "spec.size: Forbidden: too big"),
    ],
)
async def test_a_wrong_field_is_named(rest: Rest, gadgets: Gadgets, spec: Json, error: str) -> None:
    answer = await rest.post(gadgets.path, gadgets.one("one", spec))
    assert (answer.code, answer.body["reason"]) == (422, "Invalid")
    prefix = f'Gadget.{gadgets.group} "one" is invalid: '
    assert answer.body["message"] in (f"{prefix}{error}", f"{prefix}[{error}, {NOT_CHECKED}]")
    cause = answer.body["details"]["causes"][0]
    assert f"{cause['field']}: {cause['message']}" == error


@pytest.mark.parametrize("port", [80, "http"])
async def test_an_int_or_string_is_either(rest: Rest, gadgets: Gadgets, port: Any) -> None:
    answer = await rest.post(gadgets.path, gadgets.one("one", {"report": "r", "port": port}))
    assert answer.body["spec"]["port"] == port


async def test_all_wrong_fields_are_causes(rest: Rest, gadgets: Gadgets) -> None:
    answer = await rest.post(gadgets.path, gadgets.one("one", {"size": 0, "mode": "C"}))
    details = answer.body["details"]
    assert (details["name"], details["group"], details["kind"]) == ("one", gadgets.group, "Gadget")
    causes = {(cause["reason"], cause["field"]) for cause in details["causes"]}
    assert {
        ("FieldValueRequired", "spec.report"),
        ("FieldValueInvalid", "spec.size"),
        ("FieldValueNotSupported", "spec.mode"),
    } <= causes


async def test_a_transition_rule_compares_with_the_old_object(rest: Rest, gadgets: Gadgets) -> None:
    await rest.post(gadgets.path, gadgets.one("one", {"report": "r"}))
    answer = await rest.merge(f"{gadgets.path}/one", {"spec": {"report": "other"}})
    assert answer.code == 422
    assert answer.body["message"] == (
        f'Gadget.{gadgets.group} "one" is invalid: spec.report: Invalid value: "object": report is immutable'
    )
    assert (await rest.merge(f"{gadgets.path}/one", {"spec": {"size": 4}})).code == 200


async def test_a_transition_rule_in_a_list_compares_entries_by_their_key(
    rest: Rest, gadgets: Gadgets
) -> None:
    parts = [{"id": "a", "text": "1"}, {"id": "b", "text": "2"}]
    await rest.post(gadgets.path, gadgets.one("one", {"report": "r", "parts": parts}))
    moved = [{"id": "c", "text": "3"}, parts[1], parts[0]]
    assert (await rest.merge(f"{gadgets.path}/one", {"spec": {"parts": moved}})).code == 200
    changed = [{"id": "b", "text": "changed"}]
    answer = await rest.merge(f"{gadgets.path}/one", {"spec": {"parts": changed}})
    assert answer.code == 422
    assert 'spec.parts[0]: Invalid value: "object": text is immutable' in answer.body["message"]


async def test_the_status_is_written_through_its_subresource_only(rest: Rest, gadgets: Gadgets) -> None:
    gadget = {**gadgets.one("one", {"report": "r"}), "status": {"phase": "New"}}
    created = await rest.post(gadgets.path, gadget)
    assert "status" not in created.body
    patch = {"status": {"phase": "Done"}, "spec": {"size": 5}}
    main = await rest.merge(f"{gadgets.path}/one", patch)
    assert "status" not in main.body
    assert main.body["spec"]["size"] == 5
    patch = {"status": {"phase": "Done"}, "spec": {"size": 6}, "metadata": {"labels": {"a": "b"}}}
    status = await rest.merge(f"{gadgets.path}/one/status", patch)
    assert status.body["status"] == {"phase": "Done"}
    assert status.body["spec"]["size"] == 5
    assert "labels" not in status.body["metadata"]
    wrong = await rest.merge(f"{gadgets.path}/one/status", {"status": {"count": "many"}})
    assert wrong.code == 422
    assert 'status.count: Invalid value: "string"' in wrong.body["message"]


async def test_the_generation_counts_changes_of_the_spec(rest: Rest, gadgets: Gadgets) -> None:
    await rest.post(gadgets.path, gadgets.one("one", {"report": "r"}))
    await rest.merge(f"{gadgets.path}/one", {"metadata": {"labels": {"a": "b"}}})
    await rest.merge(f"{gadgets.path}/one/status", {"status": {"phase": "Done"}})
    assert (await rest.get(f"{gadgets.path}/one")).body["metadata"]["generation"] == 1
    changed = await rest.merge(f"{gadgets.path}/one", {"spec": {"size": 5}})
    assert changed.body["metadata"]["generation"] == 2


async def test_an_update_needs_a_version(rest: Rest, gadgets: Gadgets) -> None:
    created = (await rest.post(gadgets.path, gadgets.one("one", {"report": "r"}))).body
    answer = await rest.put(f"{gadgets.path}/one", gadgets.one("one", {"report": "r", "size": 4}))
    assert answer.code == 422
    assert "metadata.resourceVersion: Invalid value: " in answer.body["message"]
    assert "must be specified for an update" in answer.body["message"]
    created["spec"]["size"] = 4
    assert (await rest.put(f"{gadgets.path}/one", created)).code == 200
    assert (await rest.put(f"{gadgets.path}/one", created)).code == 409


async def test_an_object_of_another_kind_or_version_is_refused(rest: Rest, gadgets: Gadgets) -> None:
    gadget = gadgets.one("one", {"report": "r", "size": 1})
    wrong_kind = await rest.post(gadgets.path, {**gadget, "kind": "Widget"})
    assert wrong_kind.code == 422
    assert 'kind: Invalid value: "Widget": must be Gadget' in wrong_kind.body["message"]
    wrong_version = await rest.post(gadgets.path, {**gadget, "apiVersion": "other.dev/v1"})
    assert (wrong_version.code, wrong_version.body["message"]) == (
        400,
        "the API version in the data (other.dev/v1) does not match the expected API version "
        f"({gadgets.group}/v1)",
    )
    no_kind = await rest.post(gadgets.path, {"metadata": {"name": "one"}})
    assert no_kind.code == 400
    assert "Object 'Kind' is missing" in no_kind.body["message"]


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (lambda d: d["metadata"].update(name="other.dev"), "metadata.name"),
        (lambda d: d["spec"].update(scope="Galaxy"), "spec.scope"),
        (lambda d: d["spec"]["names"].pop("kind"), "spec.names.kind"),
        (lambda d: d["spec"]["versions"][0].update(storage=False), "spec.versions"),
        (lambda d: d["spec"]["versions"][0].pop("schema"), "spec.versions[0].schema.openAPIV3Schema"),
        (
            lambda d: spec_schema(d)["properties"]["mode"].pop("type"),
            "spec.validation.openAPIV3Schema.properties[spec].properties[mode].type",
        ),
        (
            lambda d: spec_schema(d)["x-kubernetes-validations"][0].update(rule="self. =="),
            "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule",
        ),
    ],
)
async def test_a_wrong_definition_is_refused(rest: Rest, wrong: Any, field: str) -> None:
    definition = gadget_definition("refused.example.dev")
    wrong(definition)
    answer = await rest.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    assert answer.code == 422, answer.body
    assert field in [cause["field"] for cause in answer.body["details"]["causes"]]


def spec_schema(definition: Json) -> Json:
    schema: Json = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return schema


async def test_a_changed_definition_is_obeyed(rest: Rest, gadgets: Gadgets) -> None:
    path = f"{gadgets.definitions}/gadgets.{gadgets.group}"
    definition = (await rest.get(path)).body
    spec_schema(definition)["properties"]["report"]["maxLength"] = 2
    assert (await rest.put(path, definition)).code == 200
    async with asyncio.timeout(10):
        while (
            await rest.post(gadgets.path, gadgets.one("one", {"report": "long"}), dryRun="All")
        ).code != 422:
            await asyncio.sleep(0.05)


async def test_two_versions_show_the_same_objects(rest: Rest, namespace: str) -> None:
    group = f"two-{namespace}.example.dev"
    definition = gadget_definition(group)
    first = definition["spec"]["versions"][0]
    definition["spec"]["versions"].append({**first, "name": "v2", "storage": False})
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert (await rest.post(definitions, definition)).code == 201
    gadgets = Gadgets(group=group, namespace=namespace)
    newer = gadgets.path.replace("/v1/", "/v2/")
    async with asyncio.timeout(10):
        while (await rest.get(newer)).code != 200:
            await asyncio.sleep(0.05)
    created = (await rest.post(gadgets.path, gadgets.one("one", {"report": "r"}))).body
    seen = (await rest.get(f"{newer}/one")).body
    assert seen["apiVersion"] == f"{group}/v2"
    assert seen["metadata"]["uid"] == created["metadata"]["uid"]
    assert (await rest.put(f"{newer}/one", seen)).body["metadata"]["generation"] == 1
    await rest.delete(f"{definitions}/gadgets.{group}")
