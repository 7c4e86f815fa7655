"""Which journaled model reply answers a request, if any does.

An agent asks the model the same thing again after a loss in two ways. An LlmAgent that goes on from stored events asks
only what it has no event for: it may be given a reply whose event was never stored, and no other, or a loop with equal
requests would see its first answer for ever. A node of a Workflow starts its run over: its replies are given again in
the order in which it got them. The node path tells the two apart: a node of a Workflow has a parent in it.
"""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from google.genai import types

from triage_agent.replay.journal import StoredReply


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What makes two model requests of an invocation the same one, where they come at the same place in their order."""

    agent: str
    branch: str
    node_path: str
    contents_digest: str

    @property
    def starts_over(self) -> bool:
        """Whether the asker begins its run again at a resume."""
        return "/" in self.node_path

    def digest(self, invocation_id: str) -> str:
        """Give the first half of a reply's key."""
        # An agent that goes on may do so under another path; what it asks is the same.
        place = self.node_path if self.starts_over else ""
        return _digest([invocation_id, self.agent, self.branch, place, self.contents_digest])


class ReplyBook:
    """The replies of one invocation, and which of them were given in this process.

    ``stored_event_keys`` are the keys of replies whose event the session holds.
    """

    def __init__(
        self, invocation_id: str, replies: Iterable[StoredReply], stored_event_keys: Iterable[str]
    ) -> None:
        self._invocation_id = invocation_id
        self._replies: dict[str, list[StoredReply]] = defaultdict(list)
        for reply in replies:
            self._replies[_question_of(reply.key)].append(reply)
        self._used = set(stored_event_keys)
        self._asked: Counter[str] = Counter()

    def answer(self, question: Question) -> StoredReply | None:
        """Give the reply that answers a question now, and count it as given; None: the model has to be asked."""
        digest = question.digest(self._invocation_id)
        replies = self._replies[digest]
        if question.starts_over:
            position = self._asked[digest]
            self._asked[digest] += 1
            return replies[position] if position < len(replies) else None
        for reply in replies:
            if reply.key not in self._used:
                self._used.add(reply.key)
                return reply
        return None

    def next_key(self, question: Question) -> str:
        """Give the key under which the model's own answer to a question is journaled."""
        digest = question.digest(self._invocation_id)
        return f"{digest}-{len(self._replies[digest])}"

    def add(self, reply: StoredReply) -> None:
        """Note an answer that the model gave and that is journaled."""
        self._replies[_question_of(reply.key)].append(reply)
        self._used.add(reply.key)


def contents_digest(contents: Iterable[types.Content]) -> str:
    """Digest what a request says to the model, call ids left out: they differ from one asking to the next."""
    return _digest([_without_ids(content.model_dump(mode="json", exclude_none=True)) for content in contents])


def call_id(key: str, place: int, *, brought: bool) -> str:
    """Give the id of a function call: derived from its reply's key, so that it is the same whenever it is given.

    ``brought``: the model gave an id of its own, so its protocol wants one back; ADK strips ids that begin with
    ``adk-`` from what it sends to a model.
    """
    name = f"{_digest([key])[:24]}-{place}"
    return f"call-{name}" if brought else f"adk-{name}"


def _question_of(key: str) -> str:
    return key.rpartition("-")[0]


def _digest(values: list[Any]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:32]


def _without_ids(value: Any) -> Any:
    match value:
        case Mapping():
            return {
                key: {name: item for name, item in inner.items() if name != "id"}
                if key in ("function_call", "function_response")
                else _without_ids(inner)
                for key, inner in value.items()
            }
        case list():
            return [_without_ids(item) for item in value]
        case _:
            return value
