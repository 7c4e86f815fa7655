"""The chart installed, upgraded, rolled back and taken away by Helm's own library on a real API server.

``TRIAGE_TEST_KUBECONFIG`` names one, as ``hack/cluster/lone-apiserver`` does for its command; our definitions are taken
from it before and after. It needs no nodes: what is shown is what the API server makes of the chart.
"""

import asyncio
import os
import shutil
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from helm_python import Config

from support.charts import CHART, RELEASE, Json, render
from support.kubectl import Kubectl
from triage_contract.names import GROUP
from triage_operator.checking import check_cluster
from triage_operator.settings import KubeSettings, LeaseSettings

_GIVEN = os.environ.get("TRIAGE_TEST_KUBECONFIG")

pytestmark = pytest.mark.skipif(not _GIVEN, reason="TRIAGE_TEST_KUBECONFIG names no real API server")

VALUES: Final[Json] = {
    "postgres": {"enabled": True},
    "agent": {"enabled": True},
    "exampleRun": {"enabled": True},
}
_DEFINITIONS: Final = ("crd", f"triageruns.{GROUP}", f"triageagents.{GROUP}", "--ignore-not-found")


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A namespace of the test's own, in which pods must be restricted."""

    kubeconfig: Path
    kubectl: Kubectl

    async def helm(self, action: str, *arguments: Any, **options: Any) -> None:
        """Do something with the release."""

        def work() -> None:
            with Config(kubeconfig_path=self.kubeconfig, namespace=self.kubectl.namespace) as helm:
                getattr(helm, action)(*arguments, **options)

        await asyncio.to_thread(work)

    async def install(self, values: Json) -> None:
        await self.helm("install", CHART, RELEASE, values, namespace=self.kubectl.namespace, timeout=60)

    async def upgrade(self, values: Json) -> None:
        await self.helm("upgrade", CHART, RELEASE, values, namespace=self.kubectl.namespace, timeout=60)

    async def found(self, kinds: str, *options: str) -> dict[str, Json]:
        """Give the objects of some kinds by kind and name."""
        listed = yaml.safe_load((await self.kubectl("get", kinds, *options, "--output=yaml")).out)
        return {f"{each['kind']}/{each['metadata']['name']}": each for each in listed["items"]}

    async def uids(self) -> dict[str, str]:
        """Give the UIDs of agents and runs."""
        found = await self.found("triageagents,triageruns")
        return {name: each["metadata"]["uid"] for name, each in found.items()}


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    program = shutil.which("kubectl")
    if program is None:
        pytest.skip("kubectl is not installed")
    kubeconfig = Path(_GIVEN or "")
    namespace = f"chart-{uuid.uuid4().hex[:8]}"
    kubectl = Kubectl(
        program=program, namespace=namespace, environment={**os.environ, "KUBECONFIG": str(kubeconfig)}
    )
    await kubectl("delete", *_DEFINITIONS)
    await kubectl("create", "namespace", namespace)
    await kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    site = Site(kubeconfig=kubeconfig, kubectl=kubectl)
    yield site
    await site.helm("uninstall", RELEASE, ignore_not_found=True)
    await kubectl("delete", *_DEFINITIONS)
    await kubectl("delete", "namespace", namespace, "--wait=false")


async def test_agent_and_run_come_with_the_first_installation_and_stay_the_same_ones(site: Site) -> None:
    await site.install(VALUES)
    first = await site.uids()
    assert [name.partition("/")[0] for name in first] == ["TriageAgent", "TriageRun"]
    password = (await site.found("secret"))["Secret/triage-operator-postgres"]["data"]["password"]

    await site.upgrade({**VALUES, "agent": {"enabled": True, "spec": {"model": {"name": "another"}}}})
    assert await site.uids() == first
    assert (await site.found("ta"))["TriageAgent/default"]["spec"]["model"] == {"name": "another"}
    # A password that changed would shut out everybody.
    assert (await site.found("secret"))["Secret/triage-operator-postgres"]["data"]["password"] == password

    await site.upgrade({**VALUES, "exampleRun": {"enabled": False}})
    assert list(await site.uids()) == ["TriageAgent/default"]


async def test_a_release_that_goes_leaves_definitions_and_runs_for_the_next_one(site: Site) -> None:
    await site.install(VALUES)
    first = await site.uids()
    await site.helm("uninstall", RELEASE)
    kinds = "deployment,statefulset,serviceaccount,secret,role,rolebinding,poddisruptionbudget"
    assert await site.found(kinds, "--selector=app.kubernetes.io/managed-by=Helm") == {}
    assert await site.uids() == first
    await site.install(VALUES)
    assert await site.uids() == first


@pytest.mark.skipif(
    not os.environ.get("TRIAGE_TEST_CONTROLLERS"), reason="no controllers beside the API server"
)
async def test_nothing_that_goes_waits_for_an_operator(site: Site) -> None:
    await site.install({**VALUES, "crds": {"keep": False}})
    assert len(await site.uids()) == 2
    await site.helm("uninstall", RELEASE)
    gone = await site.kubectl("wait", "--for=delete", *_DEFINITIONS[:3], "--timeout=20s")
    assert gone.code == 0, gone.err

    await site.install(VALUES)
    gone = await site.kubectl("delete", "namespace", site.kubectl.namespace, "--timeout=20s")
    assert gone.code == 0, gone.err


async def test_a_rollback_to_the_first_revision_has_an_agent_too(site: Site) -> None:
    await site.install(VALUES)
    await site.upgrade(VALUES)
    await site.helm("rollback", RELEASE, version=1)
    assert [name.partition("/")[0] for name in await site.uids()] == ["TriageAgent", "TriageRun"]


@pytest.mark.parametrize("scope", [(), ("NAMESPACE", "default")], ids=["everywhere", "some namespaces"])
async def test_the_operators_account_has_each_right_that_the_operator_asks_for(
    site: Site, scope: tuple[str, ...], tmp_path: Path
) -> None:
    own = site.kubectl.namespace
    namespaces = tuple(own if name == "NAMESPACE" else name for name in scope)
    await site.install({"postgres": {"enabled": True}, "watchNamespaces": list(namespaces)})
    kubeconfig = yaml.safe_load(site.kubeconfig.read_text())
    token = (await site.kubectl("create", "token", "triage-operator")).out.strip()
    kubeconfig["users"] = [{"name": user["name"], "user": {"token": token}} for user in kubeconfig["users"]]
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(kubeconfig))
    lease = LeaseSettings(namespace=own, name="triage-operator", identity="test")
    findings = [each async for each in check_cluster(KubeSettings(config=str(path)), lease, namespaces)]
    assert [each for each in findings if each.fault is not None] == []
    assert len(findings) == 4 + max(1, len(namespaces))


async def test_every_pod_of_the_chart_is_let_into_a_restricted_namespace(site: Site) -> None:
    for name, spec in render({"postgres": {"enabled": True, "storage": ""}}).pods().items():
        # The account would come with the release.
        spec = {key: value for key, value in spec.items() if key != "serviceAccountName"}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "any"}, "spec": spec}
        completed = await site.kubectl(
            "create", "--dry-run=server", "--filename=-", stdin=yaml.safe_dump(pod)
        )
        assert completed.code == 0, f"{name}: {completed.err}"
