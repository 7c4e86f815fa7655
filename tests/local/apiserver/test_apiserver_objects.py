"""What holds for the objects of every resource: names, versions, refusals."""

import pytest

from support.kube import Rest, a_config_map


async def test_a_new_object_gets_uid_version_and_time(rest: Rest, config_maps: str) -> None:
    answer = await rest.post(config_maps, a_config_map("one", {"a": "b"}))
    meta = answer.body["metadata"]
    assert answer.code == 201
    assert answer.body["kind"] == "ConfigMap"
    assert {"uid", "resourceVersion", "creationTimestamp"} <= set(meta)
    assert (await rest.get(f"{config_maps}/one")).body == answer.body


async def test_a_taken_name_is_a_conflict_of_its_own_reason(rest: Rest, config_maps: str) -> None:
    await rest.post(config_maps, a_config_map("one"))
    answer = await rest.post(config_maps, a_config_map("one"))
    assert (answer.code, answer.body["reason"]) == (409, "AlreadyExists")
    assert answer.body["message"] == 'configmaps "one" already exists'
    assert answer.body["details"] == {"name": "one", "kind": "configmaps"}


async def test_a_name_is_generated_from_its_beginning(rest: Rest, config_maps: str) -> None:
    body = {"metadata": {"generateName": "run-"}}
    names = {(await rest.post(config_maps, body)).body["metadata"]["name"] for _ in range(3)}
    assert len(names) == 3
    assert all(name.startswith("run-") and len(name) == 9 for name in names)


async def test_a_long_generated_name_is_cut_to_a_label(rest: Rest, config_maps: str) -> None:
    answer = await rest.post(config_maps, {"metadata": {"generateName": "x" * 80}})
    assert len(answer.body["metadata"]["name"]) == 63


@pytest.mark.parametrize("name", ["Upper", "under_score", "-dash", "dot.", "a..b", "x" * 254])
async def test_a_name_that_is_no_subdomain_is_invalid(rest: Rest, config_maps: str, name: str) -> None:
    answer = await rest.post(config_maps, a_config_map(name))
    assert (answer.code, answer.body["reason"]) == (422, "Invalid")
    assert answer.body["message"].startswith(
        f'ConfigMap "{name}" is invalid: metadata.name: Invalid value: "{name}": '
    )
    assert answer.body["details"]["causes"][0]["field"] == "metadata.name"


async def test_a_name_of_253_characters_is_kept(rest: Rest, config_maps: str) -> None:
    assert (await rest.post(config_maps, a_config_map("x" * 253))).code == 201


async def test_an_object_without_a_name_is_invalid(rest: Rest, config_maps: str) -> None:
    answer = await rest.post(config_maps, {"metadata": {}})
    assert answer.code == 422
    assert answer.body["message"] == (
        'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required'
    )


@pytest.mark.parametrize(
    ("labels", "wrong"),
    [
        ({"a": "x" * 64}, "no more than 63"),
        ({"a": "-"}, "a valid label must"),
        ({"a b": "c"}, "name part must"),
    ],
)
async def test_a_wrong_label_is_invalid(
    rest: Rest, config_maps: str, labels: dict[str, str], wrong: str
) -> None:
    answer = await rest.post(config_maps, a_config_map("one", labels=labels))
    assert answer.code == 422
    assert "metadata.labels: Invalid value: " in answer.body["message"]
    assert wrong in answer.body["message"]


async def test_an_owner_must_be_named_in_full(rest: Rest, config_maps: str) -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "", "uid": ""}
    answer = await rest.post(config_maps, a_config_map("one", ownerReferences=[owner]))
    assert answer.code == 422
    assert [(cause["field"], cause["message"]) for cause in answer.body["details"]["causes"]] == [
        ("metadata.ownerReferences.name", 'Invalid value: "": must not be empty'),
        ("metadata.ownerReferences.uid", 'Invalid value: "": must not be empty'),
    ]


async def test_an_object_has_one_controller(rest: Rest, config_maps: str) -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "controller": True}
    owners = [{**owner, "name": name, "uid": f"0000-{name}"} for name in ("a", "b")]
    answer = await rest.post(config_maps, a_config_map("one", ownerReferences=owners))
    assert answer.code == 422
    assert "Only one reference can have Controller set to true" in answer.body["message"]
    assert "ConfigMap/a and ConfigMap/b" in answer.body["message"]


async def test_an_absent_object_is_not_found(rest: Rest, config_maps: str) -> None:
    answer = await rest.get(f"{config_maps}/none")
    assert answer.code == 404
    assert answer.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'configmaps "none" not found',
        "reason": "NotFound",
        "details": {"name": "none", "kind": "configmaps"},
        "code": 404,
    }


async def test_an_absent_namespace_takes_no_object(rest: Rest) -> None:
    answer = await rest.post("/api/v1/namespaces/nowhere-at-all/configmaps", a_config_map("one"))
    assert (answer.code, answer.body["message"]) == (404, 'namespaces "nowhere-at-all" not found')


@pytest.mark.parametrize("path", ["/api/v1/nothings", "/apis/nothing.dev/v1/things", "/api/v2/pods"])
async def test_an_absent_resource_is_not_found(rest: Rest, path: str) -> None:
    assert (await rest.get(path)).code == 404


async def test_an_update_with_an_old_version_is_a_conflict(rest: Rest, config_maps: str) -> None:
    first = (await rest.post(config_maps, a_config_map("one"))).body
    second = await rest.put(f"{config_maps}/one", {**first, "data": {"a": "1"}})
    assert second.code == 200
    answer = await rest.put(f"{config_maps}/one", {**first, "data": {"a": "2"}})
    assert (answer.code, answer.body["reason"]) == (409, "Conflict")
    assert answer.body["message"] == (
        'Operation cannot be fulfilled on configmaps "one": the object has been modified; please apply your changes to '
        "the latest version and try again"
    )
    assert (await rest.get(f"{config_maps}/one")).body == second.body


async def test_an_update_without_a_version_overwrites(rest: Rest, config_maps: str) -> None:
    await rest.post(config_maps, a_config_map("one", {"a": "1"}))
    answer = await rest.put(f"{config_maps}/one", a_config_map("one", {"b": "2"}))
    assert (answer.code, answer.body["data"]) == (200, {"b": "2"})


async def test_an_update_that_changes_nothing_makes_no_version(rest: Rest, config_maps: str) -> None:
    created = (await rest.post(config_maps, a_config_map("one", {"a": "1"}))).body
    assert (await rest.put(f"{config_maps}/one", created)).body == created
    assert (await rest.merge(f"{config_maps}/one", {"data": {"a": "1"}})).body == created


async def test_an_update_under_another_name_is_a_bad_request(rest: Rest, config_maps: str) -> None:
    await rest.post(config_maps, a_config_map("one"))
    answer = await rest.put(f"{config_maps}/one", a_config_map("two"))
    assert (answer.code, answer.body["reason"]) == (400, "BadRequest")
    assert answer.body["message"] == "the name of the object (two) does not match the name on the URL (one)"


async def test_an_update_of_another_uid_is_a_conflict(rest: Rest, config_maps: str) -> None:
    await rest.post(config_maps, a_config_map("one"))
    answer = await rest.put(
        f"{config_maps}/one", a_config_map("one", uid="00000000-0000-0000-0000-000000000000")
    )
    assert (answer.code, answer.body["reason"]) == (409, "Conflict")
    assert "Precondition failed: UID in precondition: 00000000" in answer.body["message"]


async def test_what_the_server_sets_cannot_be_changed(rest: Rest, config_maps: str) -> None:
    created = (await rest.post(config_maps, a_config_map("one"))).body["metadata"]
    changed = {"creationTimestamp": "2001-01-01T00:00:00Z", "labels": {"a": "b"}}
    answer = await rest.merge(f"{config_maps}/one", {"metadata": changed})
    assert answer.body["metadata"]["creationTimestamp"] == created["creationTimestamp"]
    assert answer.body["metadata"]["labels"] == {"a": "b"}


async def test_a_dry_run_changes_nothing(rest: Rest, config_maps: str) -> None:
    assert (await rest.post(config_maps, a_config_map("one"), dryRun="All")).code == 201
    assert (await rest.get(f"{config_maps}/one")).code == 404
    await rest.post(config_maps, a_config_map("one"))
    assert (await rest.merge(f"{config_maps}/one", {"data": {"a": "1"}}, dryRun="All")).body["data"] == {
        "a": "1"
    }
    assert (await rest.delete(f"{config_maps}/one", dryRun="All")).code == 200
    assert not (await rest.get(f"{config_maps}/one")).body.get("data")


async def test_a_deletion_says_what_was_deleted(rest: Rest, config_maps: str) -> None:
    created = (await rest.post(config_maps, a_config_map("one"))).body
    answer = await rest.delete(f"{config_maps}/one")
    assert (answer.code, answer.body["kind"], answer.body["status"]) == (200, "Status", "Success")
    assert answer.body["details"] == {"name": "one", "kind": "configmaps", "uid": created["metadata"]["uid"]}
    assert (await rest.delete(f"{config_maps}/one")).code == 404


async def test_a_deletion_of_another_uid_is_a_conflict(rest: Rest, config_maps: str) -> None:
    await rest.post(config_maps, a_config_map("one"))
    answer = await rest.delete(f"{config_maps}/one", {"preconditions": {"uid": "other"}})
    assert (answer.code, answer.body["reason"]) == (409, "Conflict")
    assert (await rest.get(f"{config_maps}/one")).code == 200


async def test_a_collection_is_deleted_by_selector(rest: Rest, config_maps: str) -> None:
    for name, label in (("one", "x"), ("two", "y"), ("three", "x")):
        await rest.post(config_maps, a_config_map(name, labels={"l": label}))
    assert (await rest.delete(config_maps, labelSelector="l=x")).code == 200
    left = (await rest.get(config_maps, labelSelector="l")).body["items"]
    assert [item["metadata"]["name"] for item in left] == ["two"]


async def test_finalizers_hold_an_object_back(rest: Rest, config_maps: str) -> None:
    await rest.post(config_maps, a_config_map("one", finalizers=["example.dev/hold"]))
    deleted = await rest.delete(f"{config_maps}/one")
    assert deleted.code == 200
    meta = (await rest.get(f"{config_maps}/one")).body["metadata"]
    assert meta["deletionTimestamp"]
    assert meta["deletionGracePeriodSeconds"] == 0
    refused = await rest.merge(
        f"{config_maps}/one", {"metadata": {"finalizers": ["example.dev/hold", "example.dev/b"]}}
    )
    assert refused.code == 422
    assert "no new finalizers can be added if the object is being deleted" in refused.body["message"]
    assert (await rest.merge(f"{config_maps}/one", {"metadata": {"finalizers": None}})).code == 200
    assert (await rest.get(f"{config_maps}/one")).code == 404


@pytest.mark.parametrize(("method", "name"), [("POST", "/one"), ("PUT", ""), ("PATCH", "")])
async def test_a_verb_in_the_wrong_place_is_not_allowed(
    rest: Rest, config_maps: str, method: str, name: str
) -> None:
    answer = await rest.request(method, f"{config_maps}{name}", {})
    assert (answer.code, answer.body["reason"]) == (405, "MethodNotAllowed")


async def test_an_unknown_patch_type_is_refused(rest: Rest, config_maps: str) -> None:
    await rest.post(config_maps, a_config_map("one"))
    answer = await rest.request("PATCH", f"{config_maps}/one", {}, content_type="application/json")
    assert (answer.code, answer.body["reason"]) == (415, "UnsupportedMediaType")


async def test_text_is_kept_as_it_is(rest: Rest, config_maps: str) -> None:
    text = "Grüße ✓ 日本 🙂 \u0000 \u2028"
    answer = await rest.post(config_maps, a_config_map("one", {"a": text}))
    assert answer.body["data"]["a"] == text


async def test_a_secret_is_kept_as_base64(rest: Rest, namespace: str) -> None:
    secrets = f"/api/v1/namespaces/{namespace}/secrets"
    answer = await rest.post(secrets, {"metadata": {"name": "one"}, "stringData": {"key": "value"}})
    assert answer.body["data"] == {"key": "dmFsdWU="}
    assert answer.body["type"] == "Opaque"
    assert "stringData" not in answer.body


async def test_the_version_is_served(rest: Rest) -> None:
    assert (await rest.get("/version")).body["major"] == "1"


async def test_who_asks_is_told_what_is_allowed(rest: Rest) -> None:
    reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    attributes = {"verb": "create", "resource": "pods", "namespace": "default"}
    answer = await rest.post(reviews, {"spec": {"resourceAttributes": attributes}})
    assert (answer.code, answer.body["status"]["allowed"]) == (201, True)
    assert answer.body["spec"]["resourceAttributes"] == attributes
    assert (await rest.get(reviews)).code == 405
