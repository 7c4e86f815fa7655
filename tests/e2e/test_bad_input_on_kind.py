"""Bad input on a cluster: refused at the door, or named in a condition; and on with the run once it is mended."""

from pathlib import Path
from typing import Any, Final

import pytest

from support.kind.injecting import SIDECAR, injecting
from support.kind.site import KindSite
from support.sight import Json
from triage_contract.api.run import MAX_REPORT_LENGTH
from triage_contract.names import Label
from triage_local.demo.holds import Place, holding
from triage_local.kubelet.exceptions import ClusterError

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]

_TEMPLATE: Final = "spec.podTemplate.spec"


async def test_what_a_schema_can_say_is_refused_at_admission(site: KindSite) -> None:
    runs: tuple[tuple[Json, str], ...] = (
        ({"report": ""}, "spec.report"),
        ({"report": " \n"}, "report must not be blank"),
        ({"report": "x" * (MAX_REPORT_LENGTH + 1)}, "spec.report: Too long"),
        ({"report": "a\0b"}, "report must hold no NUL"),
        ({"agentRef": {"name": "No Name"}}, "spec.agentRef.name"),
    )
    for spec, said in runs:
        with pytest.raises(ClusterError, match=said):
            await site.create_run("refused", **spec)
    for field, value in (("app", "no app"), ("image", ""), ("database", None)):
        with pytest.raises(ClusterError, match=f"spec.{field}"):
            await site.create_agent("refused", **{field: value})


async def test_a_secret_that_comes_later_starts_the_run(site: KindSite) -> None:
    model = {**site.agent_spec["model"], "apiKeySecretRef": {"name": "later", "key": "the-key"}}
    await site.create_agent("early", model=model)
    await site.create_run("early", agentRef={"name": "early"})
    assert '"later"' in await site.held_up("early", "StartBlocked")
    await site.create_secret("later", {"the-key": "none-needed"})
    await site.succeeded("early")


@pytest.mark.parametrize(
    ("template", "named"),
    [
        ({"restartPolicy": "Always"}, f"{_TEMPLATE}.restartPolicy: "),
        ({"containers": [{"name": "agent", "image": "theirs:1"}]}, f"{_TEMPLATE}.containers[agent].image: "),
        (
            {"containers": [{"name": "agent", "env": [{"name": "TRIAGE_EPOCH", "value": "7"}]}]},
            f"{_TEMPLATE}.containers[agent].env[TRIAGE_EPOCH]: ",
        ),
    ],
    ids=["restart policy", "container's name", "variable"],
)
async def test_a_pod_template_that_fights_the_operators_is_refused_by_field(
    site: KindSite, template: Json, named: str
) -> None:
    await site.create_agent("fighting", podTemplate={"spec": template})
    await site.create_run("patient", agentRef={"name": "fighting"})
    assert named in await site.held_up("patient", "BadAgent")
    ready = await site.agent_condition("fighting", "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "BadAgent")
    assert site.pods.objects == {}
    await site.change("TriageAgent", "fighting", podTemplate=None)
    await site.succeeded("patient")


async def test_labels_that_are_the_operators_are_refused_at_admission(site: KindSite) -> None:
    with pytest.raises(ClusterError, match=r"spec\.podTemplate\.metadata\.labels"):
        await site.create_agent("labelled", podTemplate={"metadata": {"labels": {Label.EPOCH.value: "7"}}})


@pytest.mark.parametrize(
    ("obstacle", "said"),
    [
        ({"kind": "ResourceQuota", "spec": {"hard": {"pods": "0"}}}, "exceeded quota"),
        (
            {"kind": "LimitRange", "spec": {"limits": [{"type": "Container", "max": {"memory": "256Mi"}}]}},
            "maximum memory usage per Container is 256Mi",
        ),
    ],
    ids=["ResourceQuota", "LimitRange"],
)
async def test_a_pod_that_is_refused_is_made_when_there_is_room(
    site: KindSite, obstacle: dict[str, Any], said: str
) -> None:
    programs = site.kind.programs
    manifest = {"apiVersion": "v1", "metadata": {"name": "tight"}, **obstacle}
    await programs.apply(manifest, namespace=site.namespace)
    await site.create_run("waiting")
    assert said in await site.held_up("waiting", "PodRefused")
    await programs.kubectl("delete", obstacle["kind"], "tight", "--namespace", site.namespace)
    await site.succeeded("waiting")


async def test_an_injected_sidecar_changes_nothing(site: KindSite, tmp_path: Path) -> None:
    async with injecting(site, tmp_path), holding(site.engine, "accompanied", Place.AFTER_WRITE) as hold:
        await site.create_run("accompanied")
        await hold.reached()
        names = [one["name"] for one in (await site.pod("accompanied"))["spec"]["containers"]]
        assert names == ["agent", SIDECAR]
        lost_at = await site.kill("accompanied")
        await hold.cut_off()
        await site.went_on("SIGKILL beside an injected sidecar", "accompanied", lost_at)
        await site.succeeded("accompanied", ["sigkill"])
        assert await site.suppressed("accompanied") == (1, 0)
        pods = {(await site.attempts("accompanied"))[number].pod for number in (0, 1)}
        await site.pods.until(
            lambda seen: pods.isdisjoint(seen) or None, "the pods with a sidecar alone are gone"
        )
