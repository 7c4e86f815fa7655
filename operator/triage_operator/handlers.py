"""Handlers: what a watch tells wakes runs, and nothing more. No event is needed for anything to be right."""

from collections.abc import Callable

from triage_operator.kube import Object
from triage_operator.places import AgentKey, Places
from triage_operator.resources import AGENTS, NODES, PODS, RUNS
from triage_operator.sightings import Sightings, run_of
from triage_operator.stored import RunKey

DELETED = "DELETED"


class Handlers:
    """Wakes the runs that an event is about, if it is news."""

    def __init__(
        self,
        *,
        wake: Callable[[RunKey], None],
        note_agent: Callable[[AgentKey], None],
        sightings: Sightings,
        places: Places,
    ) -> None:
        self._wake = wake
        self._note_agent = note_agent
        self._sightings = sightings
        self._places = places
        self._generations: dict[AgentKey, object] = {}

    def see(self, resource: str, event: str | None, thing: Object) -> None:
        """Take an event in."""
        handlers = {RUNS: self._see_run, PODS: self._see_pod, AGENTS: self._see_agent, NODES: self._see_node}
        handlers[resource](thing, event)

    def _see_run(self, run: Object, event: str | None) -> None:
        deleted = event == DELETED
        # A deletion is news whatever was seen last: the pass reads whether the name is free.
        news = deleted or self._sightings.run(run)
        # At the start there may be thousands that are over. A status that was edited by hand is no proof of that,
        # but then the row is active, and the sweep finds it.
        if news and not (event is None and self._sightings.rests(run)):
            key = (run["metadata"]["namespace"], run["metadata"]["name"])
            if not deleted and not self._sightings.is_over(key):
                self._places.expect(run)
            self._wake(key)

    def _see_pod(self, pod: Object, event: str | None) -> None:
        owner = run_of(pod)
        news = owner is not None and self._sightings.pod(pod, deleted=event == DELETED)
        if news and owner is not None and not (event is None and self._sightings.is_over(owner)):
            self._wake(owner)

    def _see_node(self, node: Object, event: str | None) -> None:
        for run in self._sightings.node(node, deleted=event == DELETED):
            self._wake(run)

    def _see_agent(self, agent: Object, event: str | None) -> None:
        metadata = agent["metadata"]
        key = AgentKey(metadata["namespace"], metadata["name"])
        # Only a change of the spec is for its runs: the status is the operator's own.
        deleted = event == DELETED
        generation = None if deleted else metadata.get("generation", 0)
        if deleted or self._generations.get(key) != generation:
            self._generations[key] = generation
            self._note_agent(key)
            for run in self._places.unfinished(key):
                self._wake(run)
