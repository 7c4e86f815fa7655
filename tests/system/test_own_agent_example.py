"""The agent of a user's own in examples/own-agent: lost right after its effect, it goes on, and the effect is one."""

import asyncio
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio
import yaml
from parcels.depot import Depot

from support.site import Site
from triage_contract.names import API_VERSION
from triage_contract.states import Phase
from triage_local.model import DictatedScript, ScriptedModel
from triage_local.objects import IMAGE

pytestmark = pytest.mark.asyncio(loop_scope="session")

EXAMPLE: Final = Path(__file__).parents[2] / "examples" / "own-agent"
PATIENCE_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowDepot:
    """A depot that books a return and then waits to be allowed to say so."""

    has_booked: threading.Event = field(default_factory=threading.Event)
    may_answer: threading.Event = field(default_factory=threading.Event)

    def dawdle(self) -> None:
        self.has_booked.set()
        self.may_answer.wait(PATIENCE_SECONDS)


@pytest_asyncio.fixture(loop_scope="session")
async def model() -> AsyncIterator[ScriptedModel]:
    async with ScriptedModel(DictatedScript()) as served:
        yield served


async def test_an_agent_that_knows_nothing_of_us_books_one_return(site: Site, model: ScriptedModel) -> None:
    slow = SlowDepot()
    agent, run = _manifests()
    with Depot(("127.0.0.1", 0), dawdle=slow.dawdle) as depot:
        serving = asyncio.create_task(asyncio.to_thread(depot.serve_forever))
        spec = agent["spec"]
        spec["model"]["baseUrl"] = model.url
        (container,) = spec["podTemplate"]["spec"]["containers"]
        container["env"] = [{"name": "DEPOT_URL", "value": f"http://127.0.0.1:{depot.server_port}"}]
        images = site.cluster.kubelet.images
        environment = {**images[IMAGE].environment, "PYTHONPATH": str(EXAMPLE)}
        images[spec["image"]] = replace(images[IMAGE], environment=environment)
        run["spec"]["report"] += (
            '\ncall find_parcel {"number": "AB12"}'
            '\ncall book_return {"number": "AB12", "reason": "broken"}'
            "\nThe return is booked."
        )
        await site.create(agent)
        await site.create(run)
        assert await asyncio.to_thread(slow.has_booked.wait, PATIENCE_SECONDS)
        await site.kill("broken-cup")
        slow.may_answer.set()
        status = await site.ended("broken-cup")
        depot.shutdown()
        await serving
    assert status["phase"] == Phase.SUCCEEDED
    assert [one.get("cause") for one in status["attempts"]] == ["sigkill", None]
    assert depot.returns == {"AB12": "broken"}
    # Asked for again, as the declaration allows: the depot knows the parcel.
    assert depot.asked == {"AB12": 2}
    assert (await site.agent_condition("parcels", "ToolsDeclared"))["status"] == "True"


def _manifests() -> list[dict[str, Any]]:
    agent, run = yaml.safe_load_all((EXAMPLE / "agent.yaml").read_text())
    assert agent["apiVersion"] == run["apiVersion"] == API_VERSION
    return [agent, run]
