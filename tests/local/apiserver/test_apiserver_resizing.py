"""The subresource ``resize`` of pods."""

from typing import Any

import pytest

from support.kube import Rest, a_pod
from support.kubectl import Kubectl


def _sized(name: str, limits: dict[str, str], requests: dict[str, str] | None = None) -> dict[str, Any]:
    body = a_pod(name)
    resources = {"limits": limits, **({} if requests is None else {"requests": requests})}
    body["spec"]["containers"][0]["resources"] = resources
    return body


def _resources(**amounts: dict[str, str | None]) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "agent", "resources": amounts}]}}


async def test_resources_change_and_nothing_else(rest: Rest, pods: str) -> None:
    created = (await rest.post(pods, _sized("one", {"memory": "64Mi"}, {"memory": "32Mi"}))).body
    patch = _resources(limits={"memory": "128Mi"}, requests={"memory": "64Mi"})
    patch["spec"] |= {"activeDeadlineSeconds": 5}
    patch |= {"metadata": {"labels": {"a": "b"}}, "status": {"phase": "Running"}}
    answer = await rest.strategic(f"{pods}/one/resize", patch)
    assert (answer.code, answer.body["kind"]) == (200, "Pod")
    pod = (await rest.get(f"{pods}/one")).body
    assert pod == (await rest.get(f"{pods}/one/resize")).body == answer.body
    assert pod["spec"]["containers"][0]["resources"] == {
        "limits": {"memory": "128Mi"},
        "requests": {"memory": "64Mi"},
    }
    assert "activeDeadlineSeconds" not in pod["spec"]
    assert "labels" not in pod["metadata"]
    assert pod["status"] == created["status"]
    assert pod["metadata"]["generation"] == created["metadata"]["generation"] + 1


async def test_the_pod_itself_keeps_its_resources(rest: Rest, pods: str) -> None:
    await rest.post(pods, _sized("one", {"memory": "64Mi"}))
    answer = await rest.strategic(f"{pods}/one", _resources(limits={"memory": "128Mi"}))
    assert (answer.code, answer.body["reason"]) == (422, "Invalid")


async def test_a_size_that_it_has_already_changes_nothing(rest: Rest, pods: str) -> None:
    before = (await rest.post(pods, _sized("one", {"memory": "64Mi"}))).body
    await rest.strategic(f"{pods}/one/resize", _resources(limits={"memory": "64Mi"}))
    assert await rest.version(f"{pods}/one") == before["metadata"]["resourceVersion"]


@pytest.mark.parametrize(
    ("amounts", "field", "message"),
    [
        pytest.param(
            {"limits": {"memory": "128Mi"}},
            "spec",
            "Pod QOS Class may not change as a result of resizing",
            id="another quality of service",
        ),
        pytest.param(
            {"limits": {"memory": "32Mi"}},
            "spec.containers[0].resources.requests",
            "must be less than or equal to memory limit of 32Mi",
            id="less than is requested",
        ),
        pytest.param(
            {"limits": {"memory": None}},
            "spec.containers[0].resources.limits",
            "resource limits cannot be removed",
            id="no limit any more",
        ),
        pytest.param(
            {"limits": {"ephemeral-storage": "1Gi"}},
            "spec",
            "only cpu and memory resources are mutable",
            id="another resource",
        ),
    ],
)
async def test_what_a_resize_may_not_do(
    rest: Rest, pods: str, amounts: dict[str, Any], field: str, message: str
) -> None:
    await rest.post(pods, _sized("one", {"memory": "64Mi", "cpu": "1"}))
    answer = await rest.strategic(f"{pods}/one/resize", _resources(**amounts))
    assert answer.code == 422
    causes = {
        (cause["field"], cause["message"].rpartition(": ")[2]) for cause in answer.body["details"]["causes"]
    }
    assert (field, message) in causes


async def test_containers_stay_the_same(rest: Rest, pods: str) -> None:
    await rest.post(pods, _sized("one", {"memory": "64Mi"}))
    patch = {"spec": {"containers": [{"name": "another", "image": "i"}]}}
    answer = await rest.strategic(f"{pods}/one/resize", patch)
    assert answer.code == 422
    assert "containers may not be added or removed on resize" in answer.body["message"]


async def test_a_kubelet_that_does_not_tell_sizes_cannot_change_them(rest: Rest, pods: str) -> None:
    await rest.post(pods, _sized("one", {"memory": "64Mi"}))
    status = {"name": "agent", "state": {"running": {}}, "ready": True, "restartCount": 0}
    status |= {"image": "agent:1", "imageID": ""}
    told = {"status": {"phase": "Running", "containerStatuses": [status]}}
    assert (await rest.merge(f"{pods}/one/status", told)).code == 200
    patch = _resources(limits={"memory": "128Mi"})
    answer = await rest.strategic(f"{pods}/one/resize", patch)
    assert answer.code == 422
    assert "Pod running on node without support for resize" in answer.body["message"]
    status["resources"] = {"limits": {"memory": "64Mi"}}
    await rest.merge(f"{pods}/one/status", told)
    assert (await rest.strategic(f"{pods}/one/resize", patch)).code == 200


async def test_another_pod_of_the_name_is_not_resized(rest: Rest, pods: str) -> None:
    await rest.post(pods, _sized("one", {"memory": "64Mi"}))
    patch = {"metadata": {"uid": "another"}, **_resources(limits={"memory": "128Mi"})}
    answer = await rest.strategic(f"{pods}/one/resize", patch)
    assert answer.code == 422
    assert "metadata.uid: Invalid value" in answer.body["message"]
    assert (await rest.strategic(f"{pods}/none/resize", patch)).code == 404


async def test_kubectl_resizes_a_pod(rest: Rest, pods: str, kubectl: Kubectl) -> None:
    await rest.post(pods, _sized("one", {"memory": "64Mi"}))
    patch = '{"spec": {"containers": [{"name": "agent", "resources": {"limits": {"memory": "128Mi"}}}]}}'
    done = await kubectl("patch", "pod", "one", "--subresource=resize", "--patch", patch)
    assert (done.code, done.out) == (0, "pod/one patched\n")
    pod = (await rest.get(f"{pods}/one")).body
    assert pod["spec"]["containers"][0]["resources"]["limits"] == {"memory": "128Mi"}
