"""An attempt's own word on its end."""

from support.builders import Scenario, a_run, released, table
from support.clock import NOW
from support.pods import a_pod
from triage_contract.states import Outcome


def _released(outcome: Outcome, **fields: object) -> Scenario:
    return a_run().attempted(released(outcome, **fields)).with_pod(a_pod().running())


_HANDED_OFF = _released(Outcome.HANDED_OFF, sigterm_at=NOW)


@table(
    ("finished while its pod still runs", _released(Outcome.FINISHED), "EndAttempt 101 finished - Completed"),
    ("waiting for a person", _released(Outcome.WAITING), "EndAttempt 101 waiting - InputRequired"),
    ("in doubt", _released(Outcome.IN_DOUBT), "EndAttempt 101 in_doubt - InDoubt"),
    (
        "an error of the agent counts",
        _released(Outcome.FAILED),
        "EndAttempt 101 failed app_error Failed counted",
    ),
    (
        "a model that is not to be had does not count",
        _released(Outcome.MODEL_UNAVAILABLE),
        "EndAttempt 101 model_unavailable model_error ModelUnavailable",
    ),
    (
        "a bad configuration does not count",
        _released(Outcome.BAD_CONFIGURATION),
        "EndAttempt 101 bad_configuration bad_config BadConfiguration",
    ),
    (
        "an invocation that it does not know",
        _released(Outcome.UNKNOWN_INVOCATION),
        "EndAttempt 101 unknown_invocation - UnknownInvocation",
    ),
    (
        "a hand-off at SIGTERM of a pod without a mark",
        _HANDED_OFF,
        "EndAttempt 101 handed_off sigterm HandedOff",
    ),
    (
        "a hand-off at the drain of its node, while the pod still runs",
        _HANDED_OFF.with_pod(a_pod().running().evicted()),
        "EndAttempt 101 handed_off drain HandedOff",
    ),
    (
        "a hand-off at a plain deletion",
        _HANDED_OFF.with_pod(a_pod().running().deleted()),
        "EndAttempt 101 handed_off deleted HandedOff",
    ),
    (
        "a hand-off whose pod has left already",
        _HANDED_OFF.with_pod(a_pod().exited(81).evicted()),
        "EndAttempt 101 handed_off drain HandedOff",
    ),
    (
        "a hand-off whose pod is gone, its last status seen",
        a_run().attempted(released(Outcome.HANDED_OFF)).with_last_pod(a_pod().running().evicted()),
        "EndAttempt 101 handed_off drain HandedOff",
    ),
    (
        "a hand-off whose pod is gone unseen",
        a_run().attempted(released(Outcome.HANDED_OFF)),
        "EndAttempt 101 handed_off sigterm HandedOff",
    ),
    (
        "a hand-off that a suspension asked for",
        _released(Outcome.HANDED_OFF, handoff_reason="suspended"),
        "EndAttempt 101 handed_off suspended HandedOff",
    ),
    (
        "killed after it had handed off",
        _HANDED_OFF.with_pod(a_pod().exited(137)),
        "EndAttempt 101 handed_off sigterm HandedOff",
    ),
    (
        "what it says goes before a cancellation",
        _released(Outcome.FINISHED).asking(cancel=True),
        "EndAttempt 101 finished - Completed",
    ),
)
def test_released_attempt_ends_by_its_own_word(scenario: Scenario, expected: str) -> None:
    assert scenario.decides() == expected


def test_error_of_the_attempt_is_the_message() -> None:
    action = _released(Outcome.FAILED, error="the agent raised KeyError: 'page'").action()

    assert action.message == "the agent raised KeyError: 'page'"
