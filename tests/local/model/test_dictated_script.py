"""Reports that dictate what the scripted model does, and the model as a server of its own."""

import asyncio
import signal
import sys
from pathlib import Path

import aiohttp
import pytest

from triage_local.model import Call, DictatedScript, Reply, ToolAnswer, Turn

_REPORT = """
Parcel AB12 came broken.
call find_parcel {"number": "AB12"}
call book_return
It is booked.
"""
_ANSWER = ToolAnswer(name="any", response={})


@pytest.mark.parametrize(
    ("answered", "reply"),
    [
        (0, Reply(calls=(Call(name="find_parcel", arguments={"number": "AB12"}),))),
        (1, Reply(calls=(Call(name="book_return", arguments={}),))),
        (2, Reply(text="It is booked.")),
    ],
)
def test_calls_are_made_one_after_the_other_and_then_the_last_line_is_said(
    answered: int, reply: Reply
) -> None:
    assert DictatedScript()(Turn(model="m", report=_REPORT, answers=(_ANSWER,) * answered)) == reply


def test_a_report_that_dictates_nothing_is_answered_as_the_docs_triage_agents() -> None:
    tools = {"list_pages": (), "read_page": ("name",), "file_issue": ("title", "body")}
    reply = DictatedScript()(Turn(model="m", report="Call me.", tools=tools))
    assert reply.step == "list_pages"


async def test_the_command_serves_until_it_is_told_to_end_and_refuses_a_bad_dictation() -> None:
    program = str(Path(sys.executable).with_name("triage-local"))
    process = await asyncio.create_subprocess_exec(
        program, "model", "--port", "0", stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    said = (await process.stdout.readline()).decode()
    url = f"{said.split()[-1]}/v1beta/models/any:generateContent"
    contents = [{"role": "user", "parts": [{"text": "call find_parcel {"}]}]
    async with aiohttp.ClientSession() as session, session.post(url, json={"contents": contents}) as answer:
        assert answer.status == 400
    process.send_signal(signal.SIGTERM)
    assert await process.wait() == 130
