"""Sightings: what is news, and what a pod said last."""

from typing import Any

from triage_contract.names import API_VERSION, Label
from triage_operator.sightings import Sightings, run_of

KEY = ("docs", "tokens")


def _run(version: int = 1, phase: str | None = None, uid: str = "run-uid") -> dict[str, Any]:
    metadata = {"namespace": "docs", "name": "tokens", "uid": uid, "resourceVersion": str(version)}
    return {"metadata": metadata, "status": {} if phase is None else {"phase": phase}}


def _pod(version: int = 1, epoch: int = 1, uid: str = "pod-uid", **changes: Any) -> dict[str, Any]:
    metadata = {
        "namespace": "docs",
        "name": f"tokens-a{epoch}",
        "uid": uid,
        "resourceVersion": str(version),
        "labels": {Label.RUN_UID: "run-uid", Label.EPOCH: str(epoch)},
        "ownerReferences": [{"apiVersion": API_VERSION, "kind": "TriageRun", "name": "tokens"}],
        **changes.pop("metadata", {}),
    }
    return {"metadata": metadata, "status": {"phase": "Running", **changes}}


def test_only_another_version_of_a_run_is_news() -> None:
    sightings = Sightings()
    assert sightings.run(_run(1))
    assert not sightings.run(_run(1))
    assert sightings.run(_run(2))
    assert sightings.run(_run(2, uid="again"))


def test_only_another_version_of_a_pod_and_its_deletion_are_news() -> None:
    sightings = Sightings()
    assert sightings.pod(_pod(1))
    assert not sightings.pod(_pod(1))
    assert sightings.pod(_pod(1), deleted=True)
    assert sightings.pod(_pod(1))


def test_a_pod_of_somebody_else_is_no_news() -> None:
    foreign = _pod(metadata={"ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "x"}]})
    assert run_of(foreign) is None
    assert not Sightings().pod(foreign)


def test_the_last_words_of_a_pod_are_what_tells_of_its_end() -> None:
    sightings = Sightings()
    sightings.pod(_pod(1))
    assert sightings.last_words(KEY, "run-uid") == {}
    evicted = _pod(2, conditions=[{"type": "DisruptionTarget"}])
    sightings.pod(evicted)
    assert sightings.last_words(KEY, "run-uid") == {1: evicted}
    assert sightings.last_words(KEY, "another-uid") == {}


def test_the_first_terminal_status_of_a_pod_is_the_one_that_counts() -> None:
    sightings = Sightings()
    succeeded = _pod(2, phase="Succeeded")
    sightings.pod(succeeded)
    sightings.pod(_pod(3, phase="Failed", reason="OutOfcpu"))
    sightings.pod(_pod(4, phase="Failed", reason="OutOfcpu"), deleted=True)
    assert sightings.last_words(KEY, "run-uid") == {1: succeeded}


def test_a_pod_that_was_deleted_while_it_ran_is_remembered_as_it_was() -> None:
    sightings = Sightings()
    pod = _pod(1)
    sightings.pod(pod, deleted=True)
    assert sightings.last_words(KEY, "run-uid") == {1: pod}


def test_the_pods_of_a_run_that_is_over_are_not_remembered() -> None:
    sightings = Sightings()
    sightings.pod(_pod(1, phase="Failed"))
    sightings.forget_words(KEY)
    sightings.run(_run(5, phase="Succeeded"))
    assert sightings.is_over(KEY)
    sightings.pod(_pod(2, phase="Failed"))
    assert sightings.last_words(KEY, "run-uid") == {}


def test_a_pod_that_is_no_longer_listed_is_missed_once() -> None:
    sightings = Sightings()
    for epoch in (1, 2):
        sightings.pod(_pod(epoch=epoch, uid=f"pod-{epoch}"))
    assert list(sightings.missing({KEY: {"tokens-a2"}})) == [KEY]
    assert list(sightings.missing({KEY: {"tokens-a2"}})) == []
    sightings.forget(KEY)
    assert list(sightings.missing({})) == []


def _node(*taints: str) -> dict[str, Any]:
    spec = {"taints": [{"key": key, "effect": "NoSchedule"} for key in taints]}
    return {"metadata": {"name": "node-1"}, "spec": spec}


def test_a_node_that_is_about_to_go_concerns_the_runs_that_have_a_pod_on_it() -> None:
    sightings = Sightings()
    sightings.pod(_pod() | {"spec": {"nodeName": "node-1"}})
    sightings.pod(_pod(metadata={"namespace": "elsewhere"}) | {"spec": {"nodeName": "node-2"}})
    assert not sightings.node(_node())
    assert list(sightings.node(_node("karpenter.sh/disrupted"))) == [KEY]
    assert list(sightings.parting) == ["node-1"]


def test_a_node_that_is_about_to_go_is_news_once() -> None:
    sightings = Sightings()
    sightings.pod(_pod() | {"spec": {"nodeName": "node-1"}})
    sightings.node(_node("karpenter.sh/disrupted"))
    assert not sightings.node(_node("karpenter.sh/disrupted"))
    assert list(sightings.node(_node("karpenter.sh/disrupted", "ToBeDeletedByClusterAutoscaler"))) == [KEY]


def test_a_node_that_stays_after_all_or_is_gone_is_not_about_to_go() -> None:
    sightings = Sightings()
    for gone in (False, True):
        sightings.node(_node("karpenter.sh/disrupted"))
        sightings.node(_node("karpenter.sh/disrupted") if gone else _node(), deleted=gone)
        assert not sightings.parting
