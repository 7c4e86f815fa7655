"""What this process has seen of runs, pods and nodes: for the sweep to compare with, and for what is gone or going.

Nothing here is needed for a run to end well: after a restart it is empty, and a pod that vanished unseen is just that.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from triage_contract.names import GROUP, Label
from triage_contract.states import Phase
from triage_operator.kube import Object
from triage_operator.node_taints import Taint, parting_taints
from triage_operator.standing import OVER, Standing
from triage_operator.stored import RunKey

_ENDED: Final = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """Which object, and which state of it, was seen."""

    uid: str
    resource_version: str

    @classmethod
    def of(cls, thing: Object) -> "Version":
        """Read an object's metadata."""
        metadata = thing["metadata"]
        return cls(uid=metadata["uid"], resource_version=metadata["resourceVersion"])


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSighting:
    """A pod that was seen. ``node`` None: it had none yet."""

    version: Version
    node: str | None


class Sightings:
    """The newest version seen of each run and pod, the last words of pods, and the nodes that are about to go."""

    def __init__(self) -> None:
        self.runs: dict[RunKey, Version] = {}
        """Runs by namespace and name."""
        self.standings: dict[RunKey, Standing] = {}
        """How they stand, for the metrics."""
        self.parting: dict[str, tuple[Taint, ...]] = {}
        """Nodes that are about to go, and by which of their taints."""
        self._pods: dict[RunKey, dict[str, PodSighting]] = {}
        self._last_words: dict[RunKey, dict[str, Object]] = {}

    def run(self, run: Object) -> bool:
        """Take note of a run; say whether this is news."""
        metadata = run["metadata"]
        key = (metadata["namespace"], metadata["name"])
        self.standings[key] = Standing.of(run)
        version = Version.of(run)
        news = self.runs.get(key) != version
        self.runs[key] = version
        return news

    @staticmethod
    def rests(run: Object) -> bool:
        """Say whether the run's status says that it is over, and nothing is left to do about it."""
        status, spec = run.get("status") or {}, run["spec"]
        return (
            status.get("phase") in OVER
            and status.get("observedGeneration") == run["metadata"].get("generation")
            and spec.get("ttlSecondsAfterFinished") is None
        )

    def is_over(self, key: RunKey) -> bool:
        """Say whether the run's status says that it has ended."""
        return key in self.standings and self.standings[key].is_over

    def waits_for_person(self, key: RunKey) -> bool:
        """Say whether the run's status says that it goes on only when somebody wants it to."""
        return key in self.standings and self.standings[key].phase in (Phase.WAITING, Phase.SUSPENDED)

    def pod(self, pod: Object, *, deleted: bool = False) -> bool:
        """Take note of a pod of ours; say whether this is news."""
        key = run_of(pod)
        if key is None:
            return False
        name = pod["metadata"]["name"]
        if (deleted or _tells(pod)) and not self.is_over(key):
            words = self._last_words.setdefault(key, {})
            # The first terminal status counts: a kubelet that restarts may turn it into another one later.
            if not _is_ended(words.get(pod["metadata"]["uid"])):
                words[pod["metadata"]["uid"]] = pod
        seen = self._pods.setdefault(key, {})
        sighting = PodSighting(version=Version.of(pod), node=(pod.get("spec") or {}).get("nodeName"))
        news = deleted or seen.get(name) != sighting
        if deleted:
            seen.pop(name, None)
        else:
            seen[name] = sighting
        return news

    def node(self, node: Object, *, deleted: bool = False) -> Iterable[RunKey]:
        """Take note of a node; where it is news that it is about to go, give the runs with a pod on it."""
        name = node["metadata"]["name"]
        before = self.parting.pop(name, ())
        taints = () if deleted else parting_taints(node)
        if not taints:
            return ()
        self.parting[name] = taints
        if taints == before:
            return ()
        return [key for key, seen in self._pods.items() if any(pod.node == name for pod in seen.values())]

    def last_words(self, key: RunKey, run_uid: str) -> Mapping[int, Object]:
        """Give what was seen last of a run's pods, by epoch, as far as it tells anything of their end."""
        ours = (pod for pod in self._last_words.get(key, {}).values() if belongs(pod, run_uid))
        return {epoch_of(pod): pod for pod in ours}

    def forget_words(self, key: RunKey) -> None:
        """Forget what pods said, of a run that is over."""
        self._last_words.pop(key, None)

    def missing(self, pods: Mapping[RunKey, set[str]]) -> Iterator[RunKey]:
        """Give the runs of pods that were seen before and are not among ``pods``, and forget those."""
        for key, seen in self._pods.items():
            for name in set(seen) - pods.get(key, set()):
                del seen[name]
                yield key

    def forget(self, key: RunKey) -> None:
        """Forget a run that is gone, and its pods."""
        self.runs.pop(key, None)
        self.standings.pop(key, None)
        self._pods.pop(key, None)
        self._last_words.pop(key, None)


def run_of(pod: Object) -> RunKey | None:
    """Say which run a pod belongs to, by its owner; None: none of ours."""
    metadata = pod["metadata"]
    for owner in metadata.get("ownerReferences", ()):
        if owner["kind"] == "TriageRun" and owner["apiVersion"].startswith(f"{GROUP}/"):
            return (metadata["namespace"], owner["name"])
    return None


def belongs(pod: Object, run_uid: str) -> bool:
    """Say whether a pod's labels name this run, and an epoch."""
    labels: Mapping[str, Any] = pod["metadata"].get("labels") or {}
    return labels.get(Label.RUN_UID) == run_uid and str(labels.get(Label.EPOCH, "")).isdecimal()


def epoch_of(pod: Object) -> int:
    """Give the epoch of a pod that ``belongs``."""
    return int(pod["metadata"]["labels"][Label.EPOCH])


def _tells(pod: Object) -> bool:
    status: Mapping[str, Any] = pod.get("status") or {}
    return (
        "deletionTimestamp" in pod["metadata"]
        or _is_ended(pod)
        or any(condition["type"] == "DisruptionTarget" for condition in status.get("conditions", ()))
        or any("terminated" in (one.get("state") or {}) for one in status.get("containerStatuses", ()))
    )


def _is_ended(pod: Object | None) -> bool:
    return pod is not None and (pod.get("status") or {}).get("phase") in _ENDED
