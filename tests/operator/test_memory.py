"""Memory that attempts get, and get more of."""

from typing import Any

import pytest

from support.builders import MEBIBYTE, a_run, a_triage_agent, an_attempt, ended, lost
from triage_contract.states import Cause, Outcome
from triage_operator.memory import is_at_cap, next_limit, raised_limit


def _agent(own: str | None, **memory: Any) -> Any:
    limits = {} if own is None else {"memory": own}
    return a_triage_agent(resources={"limits": limits}, resume={"memory": memory})


def _short_at(mebibytes: int) -> Any:
    limit = mebibytes * MEBIBYTE
    return ended(Outcome.HANDED_OFF, Cause.SHORT_OF_MEMORY, memory_limit_bytes=limit)


def _used(mebibytes: int | None, limit_mebibytes: int) -> Any:
    used = None if mebibytes is None else mebibytes * MEBIBYTE
    return lost(Cause.DRAIN, memory_used_bytes=used, memory_limit_bytes=limit_mebibytes * MEBIBYTE)


def _oom_at(mebibytes: int | None) -> Any:
    return lost(Cause.OOM, memory_limit_bytes=None if mebibytes is None else mebibytes * MEBIBYTE)


@pytest.mark.parametrize(
    ("agent", "attempts", "mebibytes"),
    [
        pytest.param(_agent("256Mi"), [], 256, id="the first attempt has the agent's limit"),
        pytest.param(_agent("256Mi"), [lost(Cause.SIGKILL)], 256, id="another loss raises nothing"),
        pytest.param(_agent("256Mi"), [_oom_at(256)], 384, id="an OOM kill raises by the factor"),
        pytest.param(_agent("256Mi"), [_oom_at(256), _oom_at(384)], 576, id="each further one raises again"),
        pytest.param(_agent("256Mi"), [_oom_at(256), lost(Cause.DRAIN)], 384, id="what was raised stays so"),
        pytest.param(_agent("256Mi", limit="300Mi"), [_oom_at(256)], 300, id="up to the cap"),
        pytest.param(_agent("256Mi"), [_oom_at(1000)], 1024, id="up to four times without a cap"),
        pytest.param(_agent("2Gi"), [_oom_at(256)], 2048, id="an agent that was given more since"),
        pytest.param(
            _agent("256Mi", limit="128Mi"), [_oom_at(256)], 256, id="a cap below the limit raises nothing"
        ),
        pytest.param(_agent("256Mi", factor=1), [_oom_at(256)], 256, id="factor 1 raises nothing"),
        pytest.param(_agent("100Mi", factor=1.001), [_oom_at(100)], None, id="whole bytes, rounded up"),
        pytest.param(_agent("256Mi"), [_oom_at(None)], 256, id="an attempt without a limit tells nothing"),
        pytest.param(
            _agent("256Mi"), [_short_at(256)], 384, id="a hand-off for want of memory raises as well"
        ),
        pytest.param(
            _agent("256Mi"), [_used(250, 384)], 384, id="what was raised in place and used stays so"
        ),
        pytest.param(
            _agent("256Mi"), [_used(100, 384)], 256, id="what was raised and is not needed is given back"
        ),
        pytest.param(_agent("256Mi", limit="300Mi"), [_used(250, 384)], 300, id="but never beyond the cap"),
        pytest.param(
            _agent("256Mi"), [_used(None, 384)], 256, id="an attempt that told no use tells nothing"
        ),
    ],
)
def test_limit_of_the_next_attempt(agent: Any, attempts: list[Any], mebibytes: int | None) -> None:
    limit = next_limit(agent, a_run().attempted(*attempts).rows)

    assert limit == (104962458 if mebibytes is None else mebibytes * MEBIBYTE)


def test_agent_without_a_limit_gets_none() -> None:
    assert next_limit(_agent(None), a_run().attempted(_oom_at(256)).rows) is None


@pytest.mark.parametrize(
    ("agent", "had_mebibytes", "expected"),
    [
        (_agent("256Mi"), 256, False),
        (_agent("256Mi"), 1023, False),
        (_agent("256Mi"), 1024, True),
        (_agent("256Mi", limit="300Mi"), 300, True),
        (_agent("256Mi", limit="200Mi"), 256, True),
        (_agent("256Mi", factor=1), 256, True),
        (_agent("2Gi"), 256, False),
        (_agent(None), 256, True),
        (_agent("256Mi"), None, True),
    ],
)
def test_cap_is_where_nothing_can_be_raised(agent: Any, had_mebibytes: int | None, expected: bool) -> None:
    had = None if had_mebibytes is None else had_mebibytes * MEBIBYTE

    assert is_at_cap(an_attempt(memory_limit_bytes=had), agent) is expected


@pytest.mark.parametrize(
    ("agent", "mebibytes", "expected"),
    [
        (_agent("256Mi"), 256, 384),
        (_agent("256Mi"), 900, 1024),
        (_agent("256Mi"), 1024, None),
        (_agent("256Mi", limit="300Mi"), 256, 300),
        (_agent("2Gi"), 256, 2048),
        (_agent("256Mi", factor=1), 256, None),
        (_agent(None), 256, None),
    ],
)
def test_limit_that_follows_a_limit(agent: Any, mebibytes: int, expected: int | None) -> None:
    raised = raised_limit(agent, mebibytes * MEBIBYTE)

    assert raised == (None if expected is None else expected * MEBIBYTE)
