"""What a script sees of a request, and what it answers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAnswer:
    """What a tool answered, as the agent told the model."""

    name: str
    response: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A request: the last words of the user, and what tools have answered since."""

    model: str
    report: str
    answers: tuple[ToolAnswer, ...] = ()
    tools: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Declared tools with the names of their parameters, in their order."""
    contents: Sequence[Mapping[str, Any]] = ()
    """The whole conversation as it came, for a script that needs more than the above."""

    def answers_of(self, tool: str) -> tuple[Mapping[str, Any], ...]:
        """What one tool has answered so far, in order."""
        return tuple(answer.response for answer in self.answers if answer.name == tool)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of a tool that the model wants."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    id: str | None = None
    """None: the reply has no id, as Gemini's own have none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the model says: tools to call, or a text that ends the turn."""

    calls: tuple[Call, ...] = ()
    text: str = ""

    @property
    def step(self) -> str:
        """Name of the first tool called, or ``text``."""
        return self.calls[0].name if self.calls else "text"


Script = Callable[[Turn], Reply]
"""A pure function, so that the same request gets the same reply whoever asks, and however often."""
