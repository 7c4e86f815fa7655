"""The examples of ``docs/writing-tools.md``, in processes that die right after the effect."""

import json
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from google.adk.apps.app import App
from google.adk.tools.function_tool import FunctionTool
from google.genai.types import Part

from support.dying import Mortal, mortal
from support.stage import ScriptedLlm, an_app, by_turn, call, results, say, stage
from triage_agent.kinds import kind_of
from triage_contract.api.agent import AgentSpec
from triage_contract.states import InDoubt, Outcome, ToolKind

__all__ = ["mortal", "stage"]

PAGE = Path(__file__).parents[2] / "docs" / "writing-tools.md"
BLOCKS = re.findall(r"^## (.+?)$.*?^```(\w+)\n(.+?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)


def example(title: str) -> SimpleNamespace:
    """What the code under a title defines."""
    ((code,),) = [[code] for heading, language, code in BLOCKS if (heading, language) == (title, "python")]
    names: dict[str, Any] = {"__name__": title}
    exec(compile(code, f"{PAGE.name}: {title}", "exec"), names)
    return SimpleNamespace(**names)


@pytest.fixture
def lost(mortal: Mortal) -> Mortal:
    """A run whose attempts die after each effect."""
    mortal.stage.in_doubt = InDoubt.PARK
    mortal.deadly = lambda deed: deed[0] == "effect"
    return mortal


def app_of(tool: Callable[..., Any], *calls: Part) -> tuple[ScriptedLlm, Callable[[], App]]:
    model = ScriptedLlm(script=by_turn(*calls, say("Done.")))
    return model, lambda: an_app(model, [tool])


async def test_read_only(lost: Mortal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGES", str(tmp_path))
    (tmp_path / "tokens").write_text("They expire.")
    model, build = app_of(example("ReadOnly").read_page, call("read_page", name="tokens"))
    assert (await lost.live(build)).outcome is Outcome.FINISHED
    assert (results(model.asked[-1]), lost.deaths) == ([{"text": "They expire."}], 1)


async def test_idempotent(lost: Mortal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INVOICES", str(tmp_path / "invoices"))
    asked = call("send_invoice", customer="ACME")
    _, build = app_of(example("Idempotent").send_invoice, asked, asked)
    assert (await lost.live(build)).outcome is Outcome.FINISHED
    assert sorted(lost.effects.values()) == [2, 2]
    with sqlite3.connect(tmp_path / "invoices") as service:
        assert service.execute("SELECT count(*) FROM invoices").fetchall() == [(2,)]
    service.close()


async def test_reconcile(lost: Mortal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BOARD", str(tmp_path))
    model, build = app_of(example("Reconcile").post_notice, call("post_notice", text="Closed."))
    assert (await lost.live(build)).outcome is Outcome.FINISHED
    assert (results(model.asked[-1]), lost.deaths) == ([{"notice": "1.txt"}], 1)
    assert list(lost.effects.values()) == [1]


async def test_none(lost: Mortal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = tmp_path / "line"
    monkeypatch.setenv("LINE", str(line))
    line.write_text("busy")
    lost.deadly = lambda deed: deed[0] == "effect" and line.read_text() == "told 12"
    script = by_turn(call("call_customer", number="11"), call("call_customer", number="12"))
    model = ScriptedLlm(script=script)
    tool = example("None").call_customer

    def free(**_: object) -> None:
        line.write_text("free" if len(model.asked) > 1 else "busy")

    ending = await lost.live(lambda: an_app(model, [tool], before_tool_callback=free))
    assert ending.outcome is Outcome.IN_DOUBT
    assert results(model.asked[-1]) == [{"error": "LineBusy: 11"}]
    assert [row[1] for row in await lost.stage.calls()] == ["raised", "begun"]


async def test_one_effect_in_a_session(
    mortal: Mortal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LETTERS", str(tmp_path / "letters"))
    mortal.deadly = lambda _: False
    calls = [call("welcome", customer=customer) for customer in ("ACME", "acme ", "Other")]
    _, build = app_of(example("One effect in a session").welcome, *calls)
    assert (await mortal.live(build)).outcome is Outcome.FINISHED
    assert (tmp_path / "letters").read_text().splitlines() == ["Welcome, ACME", "Welcome, Other"]


def test_the_triage_agent_has_the_last_word() -> None:
    ((manifest,),) = [[code] for _, language, code in BLOCKS if language == "yaml"]
    spec = AgentSpec.model_validate_json(json.dumps(yaml.safe_load(manifest)["spec"]))
    assert spec.resume.in_doubt is InDoubt.PARK
    tools = [example("ReadOnly").read_page, example("None").call_customer, example("Idempotent").send_invoice]
    kinds = [kind_of(FunctionTool(tool), spec.tools) for tool in tools]
    assert kinds == [ToolKind.READ_ONLY, ToolKind.IDEMPOTENT, ToolKind.UNDECLARED]
