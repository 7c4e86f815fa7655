"""What the status shows of the calls that a run waits for."""

import pytest

from support.builders import Scenario, a_call, a_run, lost
from support.clock import ago
from triage_contract.api.run import MAX_MESSAGE_LENGTH, WaitingCall
from triage_contract.states import Cause, Verdict
from triage_contract.verdict import Remedy
from triage_operator.status import build_status

_LOST = a_run().attempted(lost(Cause.SIGKILL))


def _waiting(scenario: Scenario) -> tuple[WaitingCall, ...]:
    status = build_status(scenario.snapshot(), scenario.action())
    assert status is not None
    return status.waiting_for


def test_parked_call_shows_all_that_a_decision_needs() -> None:
    (call,) = _waiting(_LOST.doubting(a_call()))

    assert call == WaitingCall(
        call="call-1",
        tool="send_mail",
        attempt=1,
        arguments='{"to": "ops"}',
        since=ago(30),
        why="It began, its end is not known, and nobody declared what repeating it does.",
    )


@pytest.mark.parametrize(
    ("doubt", "message", "why"),
    [
        (
            "raised",
            "TimeoutError: no answer",
            "It ended in an error, and may have had its effect before: TimeoutError: no answer",
        ),
        ("unknown", None, "Its outside world was asked, and could not tell."),
        (
            "not_happened",
            None,
            "Its outside world has not seen it, but the process that began it may still be alive.",
        ),
        (None, None, "It began, and its end is not known."),
    ],
)
def test_reason_says_what_is_known(doubt: str | None, message: str | None, why: str) -> None:
    (call,) = _waiting(_LOST.doubting(a_call(kind="Reconcile", doubt=doubt, doubt_message=message)))

    assert call.why == why


def test_arguments_are_cut_and_their_credentials_masked() -> None:
    arguments = (
        '{"url": "https://me:hidden@host/a", "api_key": "ab\\"cd", "header": "Bearer abc.def", "password": "x'
    )

    (secret,) = _waiting(_LOST.doubting(a_call(arguments=arguments)))
    (long,) = _waiting(_LOST.doubting(a_call(arguments="x" * 3000)))

    assert secret.arguments == (
        '{"url": "https://***@host/a", "api_key": "***", "header": "Bearer ***", "password": "***"'
    )
    assert long.arguments is not None
    assert len(long.arguments) == MAX_MESSAGE_LENGTH


def test_call_that_waits_for_an_answer_belongs_to_no_decision() -> None:
    (call,) = _waiting(_LOST.judged(Verdict.WAITING, calls=("adk_request_confirmation",)))

    assert call == WaitingCall(
        call="id-adk_request_confirmation",
        tool="adk_request_confirmation",
        why="It waits for an answer from outside.",
    )


def test_run_at_work_waits_for_no_call() -> None:
    assert _waiting(_LOST.doubting(a_call(), remedy=Remedy.FAIL)) == ()
