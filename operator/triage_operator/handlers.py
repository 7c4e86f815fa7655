"""kopf: it watches, and its handlers wake runs. They do nothing else, and nothing of the operator hangs on them.

How it is set up follows from how it fails: it ends the process on some errors, which is then started again; it retries
others only as often as it is told to; and everything that makes it write to objects is left alone.
"""

import itertools
from collections.abc import Callable, Iterator
from typing import Any, Final

import kopf

from triage_contract.names import GROUP, VERSION
from triage_operator.kube import Kube
from triage_operator.places import AgentKey, Places
from triage_operator.sightings import Sightings, run_of
from triage_operator.store import RunKey
from triage_operator.sweeping import OUR_PODS
from triage_operator.watching import INACTIVITY_SECONDS, WATCH_SECONDS, WatchClock

RUNS: Final = "triageruns"
AGENTS: Final = "triageagents"
PODS: Final = "pods"
WATCHED: Final = (RUNS, AGENTS, PODS)

_REQUEST_SECONDS: Final = 30.0


class _Forever:
    """Waits between tries that never end: an API server that is away for an hour comes back."""

    def __iter__(self) -> Iterator[float]:
        return itertools.chain((0.5, 1, 2, 4), itertools.repeat(8))


def registry_of_handlers(
    kube: Kube,
    *,
    wake: Callable[[RunKey], None],
    sightings: Sightings,
    places: Places,
    clock: WatchClock,
) -> kopf.OperatorRegistry:
    """Give kopf's registry: how to log in, and a handler for each watched resource."""
    registry = kopf.OperatorRegistry()
    generations: dict[AgentKey, object] = {}

    @kopf.on.login(registry=registry)
    async def log_in(**_: Any) -> kopf.AiohttpSession:
        return kopf.AiohttpSession(server=kube.server, aiohttp_session=kube.session(clock.notice))

    @kopf.on.event(GROUP, VERSION, RUNS, registry=registry)
    async def see_run(event: kopf.RawEvent, **_: Any) -> None:
        clock.hear(RUNS)
        run = event["object"]
        key = (run["metadata"]["namespace"], run["metadata"]["name"])
        # A deletion is news whatever was seen last: the pass reads whether the name is free.
        if event["type"] == "DELETED" or sightings.run(run):
            wake(key)

    @kopf.on.event("v1", PODS, registry=registry)
    async def see_pod(event: kopf.RawEvent, **_: Any) -> None:
        clock.hear(PODS)
        pod = event["object"]
        owner = run_of(pod)
        if owner is not None and sightings.pod(pod, deleted=event["type"] == "DELETED"):
            wake(owner)

    @kopf.on.event(GROUP, VERSION, AGENTS, registry=registry)
    async def see_agent(event: kopf.RawEvent, **_: Any) -> None:
        clock.hear(AGENTS)
        metadata = event["object"]["metadata"]
        agent = AgentKey(metadata["namespace"], metadata["name"])
        generation = -1 if event["type"] == "DELETED" else metadata.get("generation", 0)
        if generations.get(agent) != generation:
            generations[agent] = generation
            for run in places.unfinished(agent):
                wake(run)

    return registry


def kopf_settings() -> kopf.OperatorSettings:
    """Give kopf's settings; see the head of this module."""
    settings = kopf.OperatorSettings()
    settings.process.ultimate_exiting_timeout = None
    settings.scanning.disabled = True
    settings.peering.standalone = True
    settings.posting.enabled = False
    settings.posting.loggers = False
    settings.watching.label_selectors["v1", PODS] = OUR_PODS
    settings.watching.server_timeout = WATCH_SECONDS
    settings.watching.inactivity_timeout = INACTIVITY_SECONDS
    settings.networking.request_timeout = _REQUEST_SECONDS
    settings.networking.error_backoffs = _Forever()
    return settings
