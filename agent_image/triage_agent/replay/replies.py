"""Which journaled model reply answers a request, if any does.

An agent asks the model the same thing again after a loss in two ways. An LlmAgent that goes on from stored events asks
only what it has no event for: it may be given a reply whose event was never stored, and no other, or a loop with equal
requests would see its first answer for ever. A node of a Workflow and an agent that runs as a tool start over: their
replies are given again in the order in which they got them. The node path tells a node: it has a parent in it.
"""

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from google.genai import types

from triage_agent.replay.journal import StoredReply

_CALLS: Final = frozenset({"function_call", "function_response"})
_FLOAT_DIGITS: Final = 53
_FLOAT_RANGE: Final = 1024
_OUR_CALL_ID: Final = re.compile(r"(adk|call)-[0-9a-f]{24}-\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What makes two model requests of an invocation the same one, where they come at the same place in their order.

    ``within`` is the key of the tool call that the asking agent runs in; empty: it is no tool.
    """

    agent: str
    branch: str
    node_path: str
    within: str
    contents_digest: str

    @property
    def starts_over(self) -> bool:
        """Whether the asker begins its run again at a resume."""
        return bool(self.within) or "/" in self.node_path

    def digest(self, invocation_id: str) -> str:
        """Give the first half of a reply's key."""
        # An agent that goes on may do so under another path; what it asks is the same.
        place = self.node_path if self.starts_over else ""
        return _digest([invocation_id, self.agent, self.branch, place, self.within, self.contents_digest])


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """The place of one answer. ``reply`` None: the model has to be asked, and its reply journaled under ``key``."""

    key: str
    reply: Mapping[str, Any] | None


class ReplyBook:
    """The replies of one invocation, and which of them were given in this process.

    ``stored_event_keys`` are the keys of replies whose event the session holds.
    """

    def __init__(
        self, invocation_id: str, replies: Iterable[StoredReply], stored_event_keys: Iterable[str]
    ) -> None:
        self._invocation_id = invocation_id
        self._replies: dict[str, dict[int, Mapping[str, Any]]] = defaultdict(dict)
        for reply in replies:
            digest, ordinal = _parts_of(reply.key)
            self._replies[digest][ordinal] = reply.reply
        self._told: dict[str, set[int]] = defaultdict(set)
        for digest, ordinal in map(_parts_of, stored_event_keys):
            self._told[digest].add(ordinal)
        self._given: dict[str, set[int]] = defaultdict(set)

    def ask(self, question: Question) -> Slot:
        """Give the slot of a question that is asked now; the same question asked again gets the next one."""
        digest = question.digest(self._invocation_id)
        replies, given = self._replies[digest], self._given[digest]
        gone = given if question.starts_over else given | self._told[digest]
        left = sorted(replies.keys() - gone)
        ordinal = left[0] if left else next(number for number in count() if number not in gone)
        given.add(ordinal)
        return Slot(key=f"{digest}-{ordinal}", reply=replies.get(ordinal))


class Digester:
    """Digests the requests of a run. What the last one said as well is not taken apart again: most of a request is."""

    def __init__(self) -> None:
        self._last: dict[str, str] = {}

    def digest(self, contents: Iterable[types.Content]) -> str:
        """Digest what a request says to the model, call ids left out: they differ from one asking to the next."""
        said = [_whole_json(content) for content in contents]
        last = self._last = {each: self._last.get(each) or _essential_json(each) for each in said}
        return _digest_json(f"[{', '.join(last[each] for each in said)}]")


def call_id(key: str, place: int, *, brought: bool) -> str:
    """Give the id of a function call: derived from its reply's key, so that it is the same whenever it is given.

    ``brought``: the model gave an id of its own, so its protocol wants one back; ADK strips ids that begin with
    ``adk-`` from what it sends to a model that gives none.
    """
    name = f"{_digest([key])[:24]}-{place}"
    return f"call-{name}" if brought else f"adk-{name}"


def is_our_call_id(name: str) -> bool:
    """Whether ``call_id`` made it: then no other call of the session has it."""
    return _OUR_CALL_ID.fullmatch(name) is not None


def _parts_of(key: str) -> tuple[str, int]:
    digest, _, ordinal = key.rpartition("-")
    return digest, int(ordinal)


def _digest(values: list[Any]) -> str:
    return _digest_json(json.dumps(values, sort_keys=True))


def _digest_json(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _whole_json(content: types.Content) -> str:
    try:
        return content.model_dump_json(exclude_none=True)
    except ValueError:  # half a character, for which UTF-8 has no bytes
        return json.dumps(content.model_dump(mode="json", exclude_none=True))


def _essential_json(text: str) -> str:
    return json.dumps(_essence(json.loads(text)), sort_keys=True)


def _essence(value: Any) -> Any:
    match value:
        case Mapping():
            return {
                key: _essence(
                    {name: it for name, it in item.items() if name != "id"} if key in _CALLS else item
                )
                for key, item in value.items()
            }
        case list():
            return [_essence(item) for item in value]
        # Postgres keeps no exponent and no negative zero: what was 1e16 or -0.0 comes back as another number.
        case float():
            return value + 0.0
        case int() if _FLOAT_DIGITS < value.bit_length() < _FLOAT_RANGE:
            return float(value)
        case _:
            return value
