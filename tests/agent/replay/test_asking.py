"""A model is asked each thing once, whatever is lost in between."""

import asyncio
from typing import Any

import pytest
from google.adk.agents.callback_context import CallbackContext
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from support.stage import ScriptedLlm, Stage, an_app, by_turn, call, results, say
from triage_agent.attempt.sessions import AttemptSessionService
from triage_agent.replay.asking import REPLY_METADATA
from triage_agent.replay.replies import is_our_call_id
from triage_contract.names import REPLAYED_METADATA
from triage_contract.states import Outcome


class Page:
    """A tool that can be told to stay in its call for ever."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.is_stuck = True
        self.ids: list[str | None] = []

    async def read_page(self, name: str, tool_context: Any) -> str:
        self.ids.append(tool_context.function_call_id)
        self.reached.set()
        if self.is_stuck:
            await asyncio.Event().wait()
        return f"page {name}"


async def test_the_first_answer_is_given_again(stage: Stage) -> None:
    model, page = ScriptedLlm(script=by_turn(call("read_page", name="a"), say("Done."))), Page()
    app = an_app(model, [page.read_page])
    await stage.lose(app, page.reached)
    page.is_stuck = False

    assert (await stage.attempt(app)).outcome is Outcome.FINISHED
    assert len(model.asked) == 2
    assert len(set(page.ids)) == 1
    assert await stage.last_attempt("replies", "prompt_tokens", "output_tokens") == (1, 100, 15)


@pytest.fixture
def lost(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Set once an answer of an agent is about to be stored, which then never is."""
    lost = asyncio.Event()
    append = AttemptSessionService.append_event

    async def losing(service: Any, session: Any, event: Any) -> Any:
        if event.author != "user" and not lost.is_set():
            lost.set()
            await asyncio.Event().wait()
        return await append(service, session, event)

    monkeypatch.setattr(AttemptSessionService, "append_event", losing)
    return lost


async def test_a_reply_whose_event_was_lost_is_not_asked_for_again(stage: Stage, lost: asyncio.Event) -> None:
    model = ScriptedLlm(script=by_turn(say("Done.")))
    await stage.lose(an_app(model), lost)
    assert (await stage.attempt(an_app(model))).outcome is Outcome.FINISHED
    assert len(model.asked) == 1
    (answer,) = [event for event in stage.events if event.content]
    assert answer.custom_metadata is not None
    assert answer.custom_metadata[REPLAYED_METADATA] is True
    assert await stage.last_attempt("replies", "events") == (0, 1)  # the end marker is new


@pytest.mark.parametrize("brought", [None, "call_0"])
async def test_calls_get_ids_of_ours_that_no_other_call_has(stage: Stage, brought: str | None) -> None:
    page = Page()
    page.is_stuck = False
    turns = [call("read_page", brought, name="a"), call("read_page", brought, name="a"), say("Done.")]
    model = ScriptedLlm(script=by_turn(*turns))
    assert (await stage.attempt(an_app(model, [page.read_page]))).outcome is Outcome.FINISHED
    assert len(set(page.ids)) == 2
    assert all(str(name).startswith("call-" if brought else "adk-") for name in page.ids)
    shown = [
        part.function_call.id
        for content in model.asked[-1].contents
        for part in content.parts or []
        if part.function_call
    ]
    assert shown == ([*page.ids] if brought else [None, None])  # one that gives none gets none


async def test_equal_requests_get_an_answer_each(stage: Stage) -> None:
    """An agent that sees no history asks the same in each round, and must not hear the same for ever."""
    page = Page()
    page.is_stuck = False
    answers = iter([call("read_page", name="a"), call("read_page", name="b"), say("Done.")])
    model = ScriptedLlm(script=lambda _request: [next(answers)])

    def forget(callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        llm_request.contents = [types.Content(role="user", parts=[types.Part(text="Go on.")])]

    app = an_app(model, [page.read_page], include_contents="none", before_model_callback=forget)
    assert (await stage.attempt(app)).outcome is Outcome.FINISHED
    assert len(page.ids) == len(set(page.ids)) == 2
    assert len(model.asked) == 3


async def test_partial_replies_are_not_kept(stage: Stage) -> None:
    def streamed(_request: LlmRequest) -> list[LlmResponse]:
        return [
            LlmResponse(content=types.Content(role="model", parts=[say("Do")]), partial=True),
            LlmResponse(content=types.Content(role="model", parts=[say("Done.")])),
        ]

    model = ScriptedLlm(script=streamed)
    assert (await stage.attempt(an_app(model))).outcome is Outcome.FINISHED
    assert await stage.last_attempt("replies") == (1,)
    texts = [event.content.parts[0].text for event in stage.events if event.content and event.content.parts]
    assert texts == ["Done."]


async def test_a_call_that_comes_in_pieces_is_made_once(stage: Stage) -> None:
    page, piece = Page(), types.Part(function_call=types.FunctionCall(name="read_page", will_continue=True))
    page.is_stuck = False

    def streamed(request: LlmRequest) -> list[LlmResponse]:
        whole = say("Done.") if results(request) else call("read_page", name="a")
        return [
            LlmResponse(content=types.Content(role="model", parts=[piece]), partial=True),
            LlmResponse(content=types.Content(role="model", parts=[whole])),
        ]

    ending = await stage.attempt(an_app(ScriptedLlm(script=streamed), [page.read_page]))
    assert ending.outcome is Outcome.FINISHED
    assert len(page.ids) == 1
    assert is_our_call_id(str(page.ids[0]))
    assert await stage.last_attempt("replies") == (2,)


async def test_a_reply_with_what_cannot_be_stored_is_stored(stage: Stage) -> None:
    page = Page()
    page.is_stuck = False
    model = ScriptedLlm(
        script=by_turn(call("read_page", name="a\0", other=float("nan")), say("Do\udcffne.\0"))
    )
    assert (await stage.attempt(an_app(model, [page.read_page]))).outcome is Outcome.FINISHED
    assert results(model.asked[-1]) == [{"result": "page a\N{REPLACEMENT CHARACTER}"}]


@pytest.mark.parametrize(
    "reply",
    [
        LlmResponse(error_code="SAFETY", error_message="Blocked for\nkey=AIzaSyVerySecret"),
        LlmResponse(content=types.Content(role="model", parts=[]), finish_reason=types.FinishReason.STOP),
    ],
    ids=["blocked", "empty"],
)
async def test_a_reply_without_an_answer_is_not_kept(stage: Stage, reply: LlmResponse) -> None:
    await stage.attempt(an_app(ScriptedLlm(script=by_turn(reply))))
    assert await stage.last_attempt("replies", "prompt_tokens") == (0, 0)


async def test_a_blocked_reply_fails_the_attempt_and_is_asked_for_again(stage: Stage) -> None:
    blocked = LlmResponse(error_code="SAFETY", error_message="Blocked for\nkey=AIzaSyVerySecret")
    ending = await stage.attempt(an_app(ScriptedLlm(script=by_turn(blocked))))
    assert ending.outcome is Outcome.FAILED
    assert ending.message.endswith("SAFETY: Blocked for key=***")
    assert "AIza" not in str(await stage.stored())
    better = ScriptedLlm(script=by_turn(say("Done.")))
    assert (await stage.attempt(an_app(better))).outcome is Outcome.FINISHED


async def test_what_the_agents_callbacks_make_of_a_reply_they_make_of_it_again(
    stage: Stage, lost: asyncio.Event
) -> None:
    model = ScriptedLlm(script=by_turn(say("Done.")))
    seen: list[str] = []

    def shout(callback_context: CallbackContext, llm_response: LlmResponse) -> LlmResponse:
        assert llm_response.content is not None
        assert llm_response.content.parts is not None
        seen.append(str(llm_response.content.parts[0].text))
        return LlmResponse(content=types.Content(role="model", parts=[say(seen[-1].upper())]))

    app = an_app(model, after_model_callback=shout)
    await stage.lose(app, lost)
    assert (await stage.attempt(app)).outcome is Outcome.FINISHED
    assert seen == ["Done.", "Done."]
    assert len(model.asked) == 1
    (answer,) = [event for event in await stage.stored() if "DONE." in str(event)]
    assert {REPLAYED_METADATA, REPLY_METADATA} <= answer["custom_metadata"].keys()


async def test_a_callback_that_answers_in_the_models_place_leaves_no_step_behind(stage: Stage) -> None:
    def answer(callback_context: CallbackContext, llm_request: LlmRequest) -> LlmResponse | None:
        asyncio.get_running_loop().call_soon(stage.gate.shut)
        if len(llm_request.contents) > 1:
            return None
        return LlmResponse(content=types.Content(role="model", parts=[call("read_page", name="a")]))

    page = Page()
    page.is_stuck = False
    model = ScriptedLlm(script=by_turn(say("Done.")))
    stage.grace_seconds = 3600
    ending = await stage.attempt(an_app(model, [page.read_page], before_model_callback=answer))
    assert ending.outcome is Outcome.HANDED_OFF
    assert not model.asked


async def test_a_model_that_fails_is_asked_again_by_the_next_attempt(stage: Stage) -> None:
    failing = ScriptedLlm(script=by_turn(OSError("no route")))
    ending = await stage.attempt(an_app(failing))
    assert ending.outcome is Outcome.MODEL_UNAVAILABLE
    better = ScriptedLlm(script=by_turn(say("Done.")))
    assert (await stage.attempt(an_app(better))).outcome is Outcome.FINISHED


async def test_an_agent_that_copes_without_its_model_is_not_a_failure(stage: Stage) -> None:
    def cope(callback_context: CallbackContext, llm_request: LlmRequest, error: Exception) -> LlmResponse:
        return LlmResponse(content=types.Content(role="model", parts=[say("Sorry.")]))

    app = an_app(ScriptedLlm(script=by_turn(OSError("no route"))), on_model_error_callback=cope)
    assert (await stage.attempt(app)).outcome is Outcome.FINISHED
