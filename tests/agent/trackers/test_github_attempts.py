"""Whole attempts that file on GitHub: whatever is lost, there is one issue, or a call that is in doubt."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator

import pytest
from google.adk.apps.app import App

from support.databases import Database, a_run
from support.github import REPOSITORY, TOKEN, Fault, GitHub, github
from support.killing import Agent, ended
from support.stage import ScriptedLlm, Stage, by_turn, call, results, say, stage
from triage_agent.docs_triage import samples
from triage_agent.docs_triage.agent import compose_app
from triage_agent.docs_triage.folder import PageFolder
from triage_agent.docs_triage.tools import DocsTools
from triage_agent.trackers.github import GitHubTracker
from triage_agent.trackers.github_api import GitHubSettings
from triage_contract.names import DocsEnv
from triage_contract.states import ExitCode, Outcome
from triage_local.model.server import ScriptedModel

__all__ = ["stage"]

TITLES = ["Tokens expire"]


@pytest.fixture
async def there() -> AsyncIterator[GitHub]:
    async with github() as there:
        yield there


class Docs:
    """The agent, built anew for each attempt as each process does it."""

    def __init__(self, there: GitHub) -> None:
        self._settings = GitHubSettings(
            repository=REPOSITORY,
            token=TOKEN,
            url=there.url,
            request_seconds=0.5,
            patience_seconds=10.0,
            retry_seconds=0.01,
        )
        self.model = ScriptedLlm(
            script=by_turn(call("file_issue", title=TITLES[0], body="The page says never."), say("Filed."))
        )

    def app(self) -> App:
        tracker = GitHubTracker(self._settings)
        return compose_app(self.model, DocsTools(folder=PageFolder(samples.PAGES), tracker=tracker))


@pytest.fixture
def docs(there: GitHub) -> Docs:
    return Docs(there)


async def confirm(stage: Stage) -> None:
    """Note as the operator does that the processes of the attempts so far are dead."""
    await stage.database.values("UPDATE triage.attempts SET confirmed_at = clock_timestamp()")


def titles(there: GitHub) -> list[str]:
    return [issue["title"] for issue in there.issues]


async def test_an_undisturbed_run_files_one_issue(stage: Stage, there: GitHub, docs: Docs) -> None:
    assert (await stage.attempt(docs.app())).outcome is Outcome.FINISHED
    assert titles(there) == TITLES
    assert results(docs.model.asked[-1]) == [{"number": 1}]


async def test_killed_after_the_write_the_result_is_found_on_github(
    stage: Stage, there: GitHub, docs: Docs
) -> None:
    there.faults.append(Fault(method="POST", writes=True, after=asyncio.Event()))
    await stage.lose(docs.app(), there.came)

    assert (await stage.attempt(docs.app())).outcome is Outcome.FINISHED
    assert titles(there) == TITLES
    assert results(docs.model.asked[-1]) == [{"number": 1}]
    assert [row[1] for row in await stage.calls()] == ["settled"]


async def test_killed_before_the_write_it_files_once_its_death_is_confirmed(
    stage: Stage, there: GitHub, docs: Docs
) -> None:
    there.faults.append(Fault(method="POST", before=asyncio.Event()))
    await stage.lose(docs.app(), there.came)

    assert (await stage.attempt(docs.app())).outcome is Outcome.IN_DOUBT
    assert titles(there) == []
    await confirm(stage)

    assert (await stage.attempt(docs.app())).outcome is Outcome.FINISHED
    assert titles(there) == TITLES


async def test_a_write_that_comes_after_its_process_was_given_up_is_found(
    stage: Stage, there: GitHub, docs: Docs
) -> None:
    late = asyncio.Event()
    there.faults.append(Fault(method="POST", writes=True, before=late))
    await stage.lose(docs.app(), there.came)
    assert (await stage.attempt(docs.app())).outcome is Outcome.IN_DOUBT
    late.set()
    await there.quiet()
    await confirm(stage)

    assert (await stage.attempt(docs.app())).outcome is Outcome.FINISHED
    assert titles(there) == TITLES


@pytest.mark.parametrize("writes", [False, True])
async def test_an_attempt_that_got_no_answer_leaves_it_to_the_next_to_find_out(
    stage: Stage, there: GitHub, docs: Docs, writes: bool
) -> None:
    there.faults.append(Fault(method="POST", status=502, writes=writes))
    assert (await stage.attempt(docs.app())).outcome is not Outcome.FINISHED
    assert len(there.issues) == int(writes)

    assert (await stage.attempt(docs.app())).outcome is Outcome.FINISHED
    assert titles(there) == TITLES


async def test_a_refusal_is_told_to_the_model(stage: Stage, there: GitHub, docs: Docs) -> None:
    there.faults.append(Fault(method="POST", status=410, content={"message": "Issues are disabled"}))

    assert (await stage.attempt(docs.app())).outcome is Outcome.FINISHED
    assert titles(there) == []
    (told,) = results(docs.model.asked[-1])
    assert "refused with 410: Issues are disabled; nothing was filed" in told["error"]


async def test_a_github_that_does_not_tell_leaves_the_call_in_doubt(
    stage: Stage, there: GitHub, docs: Docs
) -> None:
    there.faults.append(Fault(method="POST", writes=True, after=asyncio.Event()))
    await stage.lose(docs.app(), there.came)
    there.faults.append(Fault(method="GET", status=401, content={"message": "Bad credentials"}))
    await confirm(stage)

    ending = await stage.attempt(docs.app())

    assert ending.outcome is Outcome.IN_DOUBT
    assert "Bad credentials" in ending.message
    assert titles(there) == TITLES


async def test_a_process_of_its_own_is_killed_after_the_write(database: Database, there: GitHub) -> None:
    """All of it as in a pod: settings from the environment, a model behind HTTP, a real signal."""
    there.faults.append(Fault(method="POST", writes=True, after=asyncio.Event()))
    environment: dict[str, str] = {
        DocsEnv.TRACKER: f"github:{REPOSITORY}",
        DocsEnv.GITHUB_TOKEN: TOKEN,
        DocsEnv.GITHUB_URL: there.url,
    }
    run = a_run(samples.report("tokens"))
    async with ScriptedModel() as model:
        agent = Agent(database=database, model_url=model.url, environment=environment)
        lost = await database.open(run)
        process = agent.start(run, lost)
        await there.came.wait()
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        await ended(process)
        await database.close(run, lost.epoch)
        code = await agent.work(run, await database.open(run, observed_epoch=lost.epoch))

    assert code == ExitCode.FINISHED
    assert len(there.issues) == 1
