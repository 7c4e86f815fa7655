"""The verdict on every prefix of every recorded run."""

import pytest

from support.golden import Golden, expectations, load, names, shown
from triage_contract.verdict import RunFacts, verdict


@pytest.mark.parametrize("name", names())
def test_verdict_after_each_commit(name: str) -> None:
    golden = load(name)

    judged = [
        f"{shown(verdict(golden.prefix(count), RunFacts(root=golden.root), None))} | {golden.gist(count)}"
        for count in range(len(golden.stored) + 1)
    ]

    assert judged == expectations(name)


@pytest.mark.parametrize("name", names())
def test_verdict_does_not_hang_on_the_journal_where_every_call_stored_its_result(name: str) -> None:
    golden = load(name)
    events = golden.prefix(len(golden.stored))

    assert verdict(events, RunFacts(root=golden.root), []) == verdict(
        events, RunFacts(root=golden.root), None
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("single", "Filed issue 41."),
        ("single_with_schema", '{"number": 41}'),
        ("sequential", "Filed issue 41."),
        ("transfer_and_back", "All done."),
        ("workflow_functions", None),
        ("workflow_llm_node", "Filed issue 41."),
        ("before_agent_content", "The tracker is closed today."),
    ],
)
def test_finished_run_gives_the_last_words(name: str, text: str | None) -> None:
    golden = load(name)
    judgement = verdict(golden.prefix(len(golden.stored)), RunFacts(root=golden.root), None)
    assert judgement.text == text


def test_error_comes_with_its_code_and_message() -> None:
    golden: Golden = load("model_raises")
    judgement = verdict(golden.prefix(4), RunFacts(root=golden.root), None)
    assert (judgement.error_code, judgement.error_message) == ("RuntimeError", "the model broke")
