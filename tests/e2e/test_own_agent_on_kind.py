"""examples/own-agent on its own image, which knows nothing of us: killed right after its effect, the effect is one."""

import asyncio
import json
from pathlib import Path
from typing import Final

import pytest
import yaml

from support.docker import build
from support.kind.cluster import Kind
from support.kind.programs import SYSTEM
from support.kind.site import KindSite
from support.own_agent_image import EXAMPLE, build_own_agent
from support.sight import Json
from triage_contract.states import Phase

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(900)]

_RETURNS: Final = "http://localhost:8080/returns"
_UNTIL_BOOKED: Final = (
    f"import httpx, time\nwhile not httpx.get({_RETURNS!r}).json()['returns']: time.sleep(0.05)"
)
_SHOW: Final = f"import httpx; print(httpx.get({_RETURNS!r}).text)"
# Looking into the depot from outside takes a while on a busy machine.
_DEPOT_SECONDS: Final = "15"
_DICTATED: Final = (
    '\ncall find_parcel {"number": "AB12"}'
    '\ncall book_return {"number": "AB12", "reason": "broken"}'
    "\nThe return is booked."
)


async def test_an_agent_that_knows_nothing_of_us_books_one_return(
    kind: Kind, site: KindSite, tmp_path: Path
) -> None:
    depot, service, agent, run = _manifests()
    built = await asyncio.to_thread(build_own_agent, tmp_path)
    await _bring(kind, built, agent["spec"]["image"])
    await kind.programs.apply(depot, service, namespace=site.namespace)
    await kind.programs.rolled_out("deployment/depot", namespace=site.namespace)
    await site.create(agent)
    await site.create(run)
    await _in_depot(site, _UNTIL_BOOKED)
    lost_at = await site.kill("broken-cup")
    await site.went_on("SIGKILL of the own-agent example", "broken-cup", lost_at)
    status = await site.ended("broken-cup")
    assert status["phase"] == Phase.SUCCEEDED, status
    assert [one.get("cause") for one in status["attempts"]] == ["sigkill", None]
    # Asked for again, as the declaration allows: the depot knows the parcel.
    assert json.loads(await _in_depot(site, _SHOW)) == {"returns": {"AB12": "broken"}, "asked": {"AB12": 2}}
    assert (await site.answers("broken-cup"), await site.issues("broken-cup")) == (1, [])
    assert (await site.agent_condition("parcels", "ToolsDeclared"))["status"] == "True"


def _manifests() -> tuple[Json, Json, Json, Json]:
    """Read the example: depot, its Service, agent and run, with the scripted model and the Secrets of the site."""
    depot, service = yaml.safe_load_all((EXAMPLE / "depot.yaml").read_text())
    agent, run = yaml.safe_load_all((EXAMPLE / "agent.yaml").read_text())
    (container,) = depot["spec"]["template"]["spec"]["containers"]
    container["env"] = [{"name": "DEPOT_SECONDS", "value": _DEPOT_SECONDS}]
    agent["spec"]["model"]["baseUrl"] = f"http://scripted-model.{SYSTEM}:8080"
    run["spec"]["report"] += _DICTATED
    return depot, service, agent, run


async def _bring(kind: Kind, image: str, name: str) -> None:
    """Bring an image to the nodes under the name that the example gives it."""
    await kind.programs.docker("tag", image, name)
    label = '{{index .Config.Labels "io.x-k8s.kind.cluster"}}'
    cluster = (await kind.programs.docker("inspect", f"--format={label}", kind.steady)).strip()
    await asyncio.to_thread(build, "kind", "load", "docker-image", "--name", cluster, name)


async def _in_depot(site: KindSite, code: str) -> str:
    where = ("exec", "--namespace", site.namespace, "deployment/depot", "--")
    return await site.kind.programs.kubectl(*where, "python", "-c", code)
