"""Pods: defaults, status, deletion in grace, eviction."""

from typing import Any

import pytest

from support.kube import Rest, a_pod


async def test_a_new_pod_is_pending_with_defaults(rest: Rest, pods: str) -> None:
    pod = (await rest.post(pods, {**a_pod("one"), "status": {"phase": "Running"}})).body
    assert pod["status"]["phase"] == "Pending"
    assert pod["status"]["qosClass"] == "BestEffort"
    assert pod["spec"]["terminationGracePeriodSeconds"] == 30
    container = pod["spec"]["containers"][0]
    assert container["terminationMessagePath"] == "/dev/termination-log"
    assert container["terminationMessagePolicy"] == "File"
    assert container["imagePullPolicy"] == "IfNotPresent"
    tolerated = {t["key"]: t["tolerationSeconds"] for t in pod["spec"]["tolerations"]}
    assert tolerated == {"node.kubernetes.io/not-ready": 300, "node.kubernetes.io/unreachable": 300}


async def test_a_limit_is_also_the_request(rest: Rest, pods: str) -> None:
    body = a_pod("one")
    body["spec"]["containers"][0]["resources"] = {"limits": {"memory": "64Mi", "cpu": "1"}}
    pod = (await rest.post(pods, body)).body
    assert pod["spec"]["containers"][0]["resources"]["requests"] == {"memory": "64Mi", "cpu": "1"}
    assert pod["status"]["qosClass"] == "Guaranteed"


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"containers": []}, ("FieldValueRequired", "spec.containers")),
        ({"containers": [{"image": "i"}]}, ("FieldValueRequired", "spec.containers[0].name")),
        ({"containers": [{"name": "a"}]}, ("FieldValueRequired", "spec.containers[0].image")),
        (
            {"containers": [{"name": "a", "image": "i"}, {"name": "a", "image": "i"}]},
            ("FieldValueDuplicate", "spec.containers[1].name"),
        ),
        ({"containers": [{"name": "A_b", "image": "i"}]}, ("FieldValueInvalid", "spec.containers[0].name")),
        (
            {"containers": [{"name": "a", "image": "i", "env": [{"name": "A=B"}]}]},
            ("FieldValueInvalid", "spec.containers[0].env[0].name"),
        ),
        ({"restartPolicy": "Sometimes"}, ("FieldValueNotSupported", "spec.restartPolicy")),
    ],
)
async def test_a_wrong_pod_is_invalid(
    rest: Rest, pods: str, change: dict[str, Any], cause: tuple[str, str]
) -> None:
    body = a_pod("one")
    body["spec"] |= change
    answer = await rest.post(pods, body)
    assert answer.code == 422
    assert answer.body["message"].startswith('Pod "one" is invalid: ')
    assert cause in {(entry["reason"], entry["field"]) for entry in answer.body["details"]["causes"]}


async def test_a_pod_s_spec_is_immutable_but_for_its_images(rest: Rest, pods: str) -> None:
    await rest.post(pods, a_pod("one"))
    answer = await rest.merge(f"{pods}/one", {"spec": {"restartPolicy": "Always"}})
    assert (answer.code, answer.body["reason"]) == (422, "Invalid")
    assert "spec: Forbidden: pod updates may not change fields other than" in answer.body["message"]
    assert (await rest.merge(f"{pods}/one", {"spec": {"activeDeadlineSeconds": 5}})).code == 200


async def test_status_and_the_rest_are_written_apart(rest: Rest, pods: str) -> None:
    await rest.post(pods, a_pod("one"))
    patch = {"status": {"phase": "Running"}, "metadata": {"labels": {"a": "b"}}}
    through_main = (await rest.merge(f"{pods}/one", patch)).body
    assert (through_main["status"]["phase"], through_main["metadata"]["labels"]) == ("Pending", {"a": "b"})
    patch = {"status": {"phase": "Running"}, "spec": {"activeDeadlineSeconds": 5}}
    through_status = (await rest.merge(f"{pods}/one/status", patch)).body
    assert through_status["status"]["phase"] == "Running"
    assert "activeDeadlineSeconds" not in through_status["spec"]


async def test_an_unbound_pod_is_deleted_at_once(rest: Rest, pods: str) -> None:
    await rest.post(pods, a_pod("one"))
    answer = await rest.delete(f"{pods}/one")
    assert (answer.code, answer.body["kind"]) == (200, "Pod")
    assert (await rest.get(f"{pods}/one")).code == 404


async def test_a_bound_pod_stays_until_its_kubelet_removes_it(rest: Rest, pods: str) -> None:
    created = (await rest.post(pods, a_pod("one", node="n1"))).body
    deleted = (await rest.delete(f"{pods}/one", gracePeriodSeconds=20)).body
    assert deleted["metadata"]["deletionGracePeriodSeconds"] == 20
    assert deleted["metadata"]["deletionTimestamp"] > created["metadata"]["creationTimestamp"]
    again = (await rest.delete(f"{pods}/one", gracePeriodSeconds=60)).body
    assert again["metadata"]["deletionGracePeriodSeconds"] == 20
    shorter = (await rest.delete(f"{pods}/one", gracePeriodSeconds=5)).body
    assert shorter["metadata"]["deletionGracePeriodSeconds"] == 5
    assert (await rest.merge(f"{pods}/one/status", {"status": {"phase": "Failed"}})).code == 200
    uid = created["metadata"]["uid"]
    removal = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
    assert (await rest.delete(f"{pods}/one", removal)).code == 200
    assert (await rest.get(f"{pods}/one")).code == 404


async def test_the_pod_s_own_grace_period_counts_where_none_is_asked_for(rest: Rest, pods: str) -> None:
    body = a_pod("one", node="n1")
    body["spec"]["terminationGracePeriodSeconds"] = 7
    await rest.post(pods, body)
    assert (await rest.delete(f"{pods}/one")).body["metadata"]["deletionGracePeriodSeconds"] == 7


async def test_a_pod_that_has_ended_is_deleted_at_once(rest: Rest, pods: str) -> None:
    await rest.post(pods, a_pod("one", node="n1"))
    await rest.merge(f"{pods}/one/status", {"status": {"phase": "Failed"}})
    await rest.delete(f"{pods}/one")
    assert (await rest.get(f"{pods}/one")).code == 404


async def test_a_finalizer_keeps_a_pod_after_its_grace(rest: Rest, pods: str) -> None:
    await rest.post(pods, a_pod("one", node="n1", finalizers=["example.dev/hold"]))
    await rest.delete(f"{pods}/one", gracePeriodSeconds=0)
    assert (await rest.get(f"{pods}/one")).code == 200
    await rest.merge(f"{pods}/one", {"metadata": {"finalizers": None}})
    assert (await rest.get(f"{pods}/one")).code == 404


async def test_an_eviction_says_so_before_it_deletes(rest: Rest, pods: str) -> None:
    created = (await rest.post(pods, a_pod("one", node="n1"))).body
    await rest.merge(f"{pods}/one/status", {"status": {"phase": "Running"}})
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "one"}}
    answer = await rest.post(f"{pods}/one/eviction", body)
    assert (answer.code, answer.body["status"]) == (201, "Success")
    seen = []
    version = created["metadata"]["resourceVersion"]
    async with rest.watch(pods, resourceVersion=version, timeoutSeconds=1) as events:
        async for event in events:
            pod = event["object"]
            reasons = [
                c["reason"] for c in pod["status"].get("conditions", []) if c["type"] == "DisruptionTarget"
            ]
            seen.append((reasons, "deletionTimestamp" in pod["metadata"]))
    assert seen[-2:] == [(["EvictionByEvictionAPI"], False), (["EvictionByEvictionAPI"], True)]


async def test_an_eviction_of_another_uid_is_a_conflict(rest: Rest, pods: str) -> None:
    await rest.post(pods, a_pod("one", node="n1"))
    body = {"metadata": {"name": "one"}, "deleteOptions": {"preconditions": {"uid": "other"}}}
    answer = await rest.post(f"{pods}/one/eviction", body)
    assert (answer.code, answer.body["reason"]) == (409, "Conflict")
    assert "deletionTimestamp" not in (await rest.get(f"{pods}/one")).body["metadata"]


async def test_an_absent_pod_cannot_be_evicted(rest: Rest, pods: str) -> None:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "none"}}
    assert (await rest.post(f"{pods}/none/eviction", body)).code == 404


async def test_a_pod_is_bound_once(rest: Rest, pods: str) -> None:
    await rest.post(pods, a_pod("one"))

    def binding(node: str) -> dict[str, Any]:
        return {"metadata": {"name": "one"}, "target": {"kind": "Node", "name": node}}

    assert (await rest.post(f"{pods}/one/binding", binding("n1"))).code == 201
    pod = (await rest.get(f"{pods}/one")).body
    assert pod["spec"]["nodeName"] == "n1"
    assert [(c["type"], c["status"]) for c in pod["status"]["conditions"]] == [("PodScheduled", "True")]
    assert (await rest.post(f"{pods}/one/binding", {"target": "n2"})).code == 400
    answer = await rest.post(f"{pods}/one/binding", binding("n2"))
    assert (answer.code, answer.body["reason"]) == (409, "Conflict")


async def test_a_pod_s_generation_counts_changes_of_its_spec(rest: Rest, pods: str) -> None:
    await rest.post(pods, a_pod("one"))
    await rest.merge(f"{pods}/one", {"metadata": {"labels": {"a": "b"}}})
    await rest.merge(f"{pods}/one/status", {"status": {"phase": "Running"}})
    assert (await rest.get(f"{pods}/one")).body["metadata"]["generation"] == 1
    changed = await rest.merge(f"{pods}/one", {"spec": {"activeDeadlineSeconds": 5}})
    assert changed.body["metadata"]["generation"] == 2


async def test_a_field_that_a_pod_has_not_is_left_out_or_refused(rest: Rest, pods: str) -> None:
    body = a_pod("one")
    body["spec"]["containers"][0]["imagee"] = "i"
    lenient = await rest.post(pods, body, fieldValidation="Warn", dryRun="All")
    assert "imagee" not in lenient.body["spec"]["containers"][0]
    assert lenient.headers["Warning"] == '299 - "unknown field \\"spec.containers[0].imagee\\""'
    strict = await rest.post(pods, body, fieldValidation="Strict")
    assert (strict.code, strict.body["message"]) == (
        400,
        'Pod in version "v1" cannot be handled as a Pod: strict decoding error: '
        'unknown field "spec.containers[0].imagee"',
    )


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"containers": "x"}, "string"),
        ({"terminationGracePeriodSeconds": "30"}, "string"),
        ({"containers": [{"name": "a", "image": "i", "env": [{"name": "N", "value": 1}]}]}, "number"),
    ],
)
async def test_a_field_of_another_type_is_refused(
    rest: Rest, pods: str, change: dict[str, Any], found: str
) -> None:
    body = a_pod("one")
    body["spec"] |= change
    answer = await rest.post(pods, body)
    assert (answer.code, answer.body["reason"]) == (400, "BadRequest")
    assert answer.body["message"].startswith(
        f'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal {found} into Go struct field'
    )


async def test_a_quantity_may_be_a_number(rest: Rest, pods: str) -> None:
    body = a_pod("one")
    body["spec"]["containers"][0]["resources"] = {"limits": {"cpu": 1}}
    pod = (await rest.post(pods, body)).body
    assert pod["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "1"}


async def test_a_pod_that_runs_nowhere_has_no_log(rest: Rest, pods: str) -> None:
    await rest.post(pods, a_pod("one"))
    answer = await rest.get(f"{pods}/one/log")
    assert (answer.code, answer.body) == (204, {"text": ""})
