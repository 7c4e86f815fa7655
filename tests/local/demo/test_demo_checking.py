"""What the demo finds to be off, in a table of one deviation each."""

from dataclasses import replace

import pytest

from triage_contract.states import Suppressor
from triage_local.demo.checking import counted_losses, problems
from triage_local.demo.evidence import AttemptSeen, ByHand, Evidence, RunSeen
from triage_local.demo.names import RunName

MEBIBYTE = 1024**2
METRICS = """\
# HELP triage_losses_total Attempts that were lost, by cause.
# TYPE triage_losses_total counter
triage_losses_total{cause="drain",namespace="docs"} 1.0
triage_losses_total{cause="oom",namespace="docs"} 1.0
triage_losses_total{cause="sigkill",namespace="docs"} 3.0
triage_losses_total{cause="vanished",namespace="docs"} 1.0
triage_losses_total{cause="app_error",namespace="docs"} 0.0
"""


def an_attempt(cause: str | None = None, *, node: str = "node-1", memory: int = 512) -> AttemptSeen:
    return AttemptSeen(cause=cause, node=node, memory_limit_bytes=memory * MEBIBYTE)


def a_run(name: RunName, *attempts: AttemptSeen, issue: str, suppressed: int = 0) -> RunSeen:
    return RunSeen(
        name=name,
        phase="Succeeded",
        attempts=attempts,
        issue=issue,
        issues=(issue,),
        suppressed={Suppressor.JOURNAL: suppressed} if suppressed else {},
        recovery_seconds=(2.5,) * (len(attempts) - 1),
    )


KILLED = a_run(RunName.KILLED, an_attempt("sigkill"), an_attempt(), issue="1", suppressed=1)
OUT_OF_MEMORY = a_run(RunName.OUT_OF_MEMORY, an_attempt("oom", memory=256), an_attempt(), issue="7")
DRAINED = a_run(RunName.DRAINED, an_attempt("drain", node="node-2"), an_attempt(), issue="2")
OPERATOR_AWAY = a_run(RunName.OPERATOR_AWAY, an_attempt("vanished"), an_attempt(), issue="3")
HALF_DONE = a_run(RunName.HALF_DONE, an_attempt("sigkill"), an_attempt(), issue="5", suppressed=1)
IN_DOUBT = replace(
    a_run(RunName.IN_DOUBT, an_attempt("sigkill"), an_attempt(), issue="6"), decisions=("RunAgain",)
)
UNDISTURBED = a_run(RunName.UNDISTURBED, an_attempt(), issue="4")
BY_HAND = ByHand(refusal="invocation inv-1 is already finished", issues_without_key=2)
ALL_WELL = Evidence(
    runs=(KILLED, OUT_OF_MEMORY, DRAINED, OPERATOR_AWAY, HALF_DONE, IN_DOUBT, UNDISTURBED),
    stray_issues=0,
    by_hand=BY_HAND,
    metrics=METRICS,
)


def but(run: RunSeen) -> Evidence:
    """All is well, but for one run."""
    runs = tuple(run if each.name == run.name else each for each in ALL_WELL.runs)
    return replace(ALL_WELL, runs=runs)


def test_nothing_is_off_when_all_is_well() -> None:
    assert problems(ALL_WELL) == ()


@pytest.mark.parametrize(
    ("evidence", "problem"),
    [
        pytest.param(
            replace(ALL_WELL, failures=("the operator ended with 1",)),
            "the operator ended with 1",
            id="what failed is named",
        ),
        pytest.param(
            replace(ALL_WELL, runs=ALL_WELL.runs[:-1]),
            "undisturbed: there is no such run",
            id="a run that was never made",
        ),
        pytest.param(
            but(replace(UNDISTURBED, phase="Failed")),
            "undisturbed: is Failed, not Succeeded",
            id="a run that failed",
        ),
        pytest.param(
            but(replace(UNDISTURBED, phase=None)),
            "undisturbed: is without a status, not Succeeded",
            id="a run that no operator saw",
        ),
        pytest.param(
            but(replace(KILLED, issues=("1", "5"))),
            "killed-after-write: has 2 issues in the tracker, not one",
            id="a duplicate",
        ),
        pytest.param(
            but(replace(KILLED, issues=(), issue=None)),
            "killed-after-write: has 0 issues in the tracker, not one",
            id="no issue",
        ),
        pytest.param(
            but(replace(KILLED, issue="9")),
            "killed-after-write: its status names issue 9, the tracker has 1",
            id="a status that names another issue",
        ),
        pytest.param(
            but(replace(KILLED, suppressed={Suppressor.TRACKER: 1})),
            "killed-after-write: no call was answered from the journal: it was not killed where it should",
            id="a kill that came too late",
        ),
        pytest.param(
            but(replace(HALF_DONE, suppressed={})),
            "half-done: no call was answered from the journal: it was not killed where it should",
            id="a batch of which nothing was done",
        ),
        pytest.param(
            but(replace(IN_DOUBT, decisions=())),
            "in-doubt: nobody was asked about its call in doubt",
            id="a call in doubt that nobody decided",
        ),
        pytest.param(
            but(replace(KILLED, recovery_seconds=())),
            "killed-after-write: the attempt after the loss stored nothing",
            id="a recovery that nobody can measure",
        ),
        pytest.param(
            but(replace(KILLED, attempts=(*KILLED.attempts, an_attempt()), recovery_seconds=(1.0, 2.0))),
            "killed-after-write: took 3 attempts for 1 losses",
            id="an attempt that nothing explains",
        ),
        pytest.param(
            but(replace(OUT_OF_MEMORY, attempts=(an_attempt("oom", memory=256), an_attempt(memory=256)))),
            "out-of-memory: was resumed without more memory",
            id="the same memory again",
        ),
        pytest.param(
            but(replace(DRAINED, attempts=(an_attempt("drain"), an_attempt()))),
            "drained: went on on node-1, which was drained",
            id="a drained node that is used again",
        ),
        pytest.param(
            replace(ALL_WELL, stray_issues=1),
            "the tracker has 1 issues that belong to no run",
            id="an issue of nobody",
        ),
        pytest.param(
            replace(ALL_WELL, by_hand=replace(BY_HAND, refusal="")),
            "a resume of a finished run was not refused",
            id="a finished run that goes on",
        ),
        pytest.param(
            replace(ALL_WELL, by_hand=replace(BY_HAND, issues_without_key=1)),
            "without the key the report has 1 issues, not the two that show its worth",
            id="a control that shows nothing",
        ),
        pytest.param(
            replace(ALL_WELL, metrics=METRICS.replace("oom", "sigkill", 1)),
            "the metrics count 1 drain, 4 sigkill, 1 vanished, the runs have 1 drain, 1 oom, 3 sigkill, 1 vanished",
            id="metrics that tell something else",
        ),
    ],
)
def test_one_deviation_is_one_problem(evidence: Evidence, problem: str) -> None:
    assert problems(evidence) == (problem,)


def test_another_cause_than_the_one_that_was_brought_about_is_off() -> None:
    swapped = replace(KILLED, attempts=(an_attempt("app_error"), an_attempt()))
    metrics = METRICS.replace('sigkill",namespace="docs"} 3.0', 'sigkill",namespace="docs"} 2.0')
    metrics = metrics.replace('app_error",namespace="docs"} 0.0', 'app_error",namespace="docs"} 1.0')
    assert problems(replace(but(swapped), metrics=metrics)) == (
        "killed-after-write: was lost to app_error, not to sigkill",
    )


def test_a_loss_of_the_undisturbed_run_is_off() -> None:
    lost = replace(UNDISTURBED, attempts=(an_attempt("sigterm"), an_attempt()), recovery_seconds=(1.0,))
    metrics = METRICS + 'triage_losses_total{cause="sigterm",namespace="docs"} 1.0\n'
    assert problems(replace(but(lost), metrics=metrics)) == (
        "undisturbed: was lost to sigterm, not to nothing",
    )


def test_a_demo_that_broke_off_says_only_why_and_what_its_runs_lack() -> None:
    broken = replace(ALL_WELL, failures=("the operator ended with 1",), by_hand=None, metrics="")
    assert problems(broken) == ("the operator ended with 1",)


def test_losses_are_counted_from_the_lines_of_their_counter_alone() -> None:
    metrics = METRICS + 'triage_resumes_total{cause="oom",namespace="docs"} 5.0\n'
    assert counted_losses(metrics) == {"drain": 1, "oom": 1, "sigkill": 3, "vanished": 1}
