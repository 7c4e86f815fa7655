"""Tools of an MCP server: their calls are journaled, and their kinds are what the server says of them."""

import sys
from pathlib import Path

import pytest
from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App
from google.adk.tools.mcp_tool.mcp_tool import McpTool
from google.adk.tools.mcp_tool.mcp_toolset import McpToolset
from mcp import StdioServerParameters

from support.dying import Mortal, mortal
from support.stage import ScriptedLlm, by_turn, call, results, say
from triage_contract.states import InDoubt, Outcome

__all__ = ["mortal"]

SERVER = Path(__file__).parents[2] / "support" / "page_server.py"


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


def app_of(model: ScriptedLlm, ledger: Path) -> App:
    """A process's own app: its server is a process of its own, too."""
    pages = McpToolset(
        connection_params=StdioServerParameters(command=sys.executable, args=[str(SERVER), str(ledger)])
    )
    return App(name="app", root_agent=LlmAgent(name="docs", model=model, tools=[pages]))


async def test_each_tool_of_a_server_is_of_the_kind_that_it_says(
    mortal: Mortal, ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(McpTool, "run_async", mortal.around(McpTool.run_async, mortal.effect))
    mortal.stage.in_doubt = InDoubt.PARK
    mortal.deadly = lambda deed: deed[0] == "effect"
    model = ScriptedLlm(
        script=by_turn(
            call("read_page", name="a"),
            call("put_page", name="a"),
            call("file_issue", title="a"),
            say("Done."),
        )
    )
    ending = await mortal.live(lambda: app_of(model, ledger))
    assert ending.outcome is Outcome.IN_DOUBT
    assert ending.message == "Begun, and not known to have happened: file_issue."
    assert ledger.read_text().splitlines() == ["read a", "read a", "put a", "put a", "file a"]
    assert [row[:2] for row in await mortal.stage.calls()] == [
        ("file_issue", "begun"),
        ("put_page", "done"),
        ("read_page", "done"),
    ]


async def test_a_result_of_a_server_is_given_again(mortal: Mortal, ledger: Path) -> None:
    mortal.deadly = lambda deed: deed[0] == "end"
    model = ScriptedLlm(script=by_turn(call("file_issue", title="a"), say("Done.")))
    assert (await mortal.live(lambda: app_of(model, ledger))).outcome is Outcome.FINISHED
    assert ledger.read_text().splitlines() == ["file a"]
    ((_, _, stored, begun_times),) = await mortal.stage.calls()
    assert (results(model.asked[-1]), begun_times) == ([stored], 1)
