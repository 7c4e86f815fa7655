"""The script of the docs-triage agent: look at the list, read what fits, file an issue, say its number."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from triage_local.model.script import Call, Reply, Turn

_TOOLS = {"list_pages", "read_page", "file_issue"}
_TITLE_CHARACTERS = 80
_AT_ONCE = "calls at once"
"""What a report says that wants its page read and its issue filed by one reply."""
_SHORTEST_WORD = 4
"""Shorter words say nothing of what a page is about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocsTriageScript:
    """One step of the triage for each request, chosen by the tools that have answered."""

    parallel_reads: int = 1
    """How many pages are read by one reply."""
    repeated_ids: bool = False
    """Number the calls of each reply from ``call_0``, as some models do, instead of giving no ids."""

    def __call__(self, turn: Turn) -> Reply:
        """Answer a request."""
        if not turn.tools.keys() >= _TOOLS:
            return Reply(text=f"The tools {', '.join(sorted(_TOOLS))} are needed.")
        if not (listed := turn.answers_of("list_pages")):
            return self._calling(Call(name="list_pages"))
        if not (pages := turn.answers_of("read_page")):
            names = _by_fit(turn.report, listed[-1])[: self.parallel_reads]
            if not names:
                return Reply(text="There are no pages to read.")
            parameter = turn.tools["read_page"][0]
            reads = [Call(name="read_page", arguments={parameter: name}) for name in names]
            if _AT_ONCE in turn.report:
                reads.append(Call(name="file_issue", arguments=_issue(turn.report, ())))
            return self._calling(*reads)
        if not (filed := turn.answers_of("file_issue")):
            return self._calling(Call(name="file_issue", arguments=_issue(turn.report, pages)))
        return Reply(text=_farewell(filed[-1]))

    def _calling(self, *calls: Call) -> Reply:
        if not self.repeated_ids:
            return Reply(calls=calls)
        return Reply(
            calls=tuple(
                Call(name=call.name, arguments=call.arguments, id=f"call_{place}")
                for place, call in enumerate(calls)
            )
        )


def _by_fit(report: str, listed: Mapping[str, Any]) -> list[str]:
    """Page names, best first: by how often the report says the words of name and title, then as listed."""
    said = Counter(_words(report))
    pages = list(_pages(listed))
    return [
        name
        for name, text in sorted(pages, key=lambda page: -sum(said[word] for word in set(_words(page[1]))))
    ]


def _pages(value: object) -> Iterator[tuple[str, str]]:
    """Name and descriptive text of each page, whether the tool lists names or objects with a name."""
    match value:
        case str():
            yield value, value
        case {"name": str(name)}:
            yield name, " ".join(_strings(value))
        case Mapping():
            for inner in value.values():
                yield from _pages(inner)
        case list():
            for inner in value:
                yield from _pages(inner)


def _issue(report: str, pages: tuple[Mapping[str, Any], ...]) -> dict[str, str]:
    words = set(_words(report))
    passages = [line.strip() for page in pages for text in _strings(page) for line in text.splitlines()]
    quoted = max(passages, key=lambda line: len(words.intersection(_words(line))), default="")
    title = report.strip().splitlines()[0].split(". ")[0].rstrip(".")
    if len(title) > _TITLE_CHARACTERS:
        title = title[: _TITLE_CHARACTERS - 1] + "…"
    return {"title": f"Docs: {title}", "body": f"{report.strip()}\n\nThe page says:\n\n> {quoted}\n"}


def _farewell(filed: Mapping[str, Any]) -> str:
    number = next(_numbers(filed), None)
    if number is None:
        return f"The issue could not be filed: {' '.join(_strings(filed))}"
    return f"Filed as issue {number}."


def _words(text: str) -> list[str]:
    """Words in lower case without a plural's s."""
    found = re.findall(r"[^\W_]+", text.lower())
    return [word.removesuffix("s") for word in found if len(word) >= _SHORTEST_WORD]


def _strings(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case Mapping():
            for inner in value.values():
                yield from _strings(inner)
        case list():
            for inner in value:
                yield from _strings(inner)


def _numbers(value: object) -> Iterator[int]:
    match value:
        case bool():
            return
        case int():
            yield value
        case float() if value.is_integer():  # what JSON numbers become on their way through protocol buffers
            yield int(value)
        case Mapping():
            for inner in value.values():
                yield from _numbers(inner)
