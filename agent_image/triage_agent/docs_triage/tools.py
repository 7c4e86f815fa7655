"""The tools of the docs-triage agent. Docstrings and results are written for the model."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, Literal

from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext

from triage_agent.docs_triage.folder import PageFolder
from triage_agent.exceptions import PageError
from triage_agent.kinds import KIND_ATTRIBUTE, RECONCILE_ATTRIBUTE, effect_key, read_only
from triage_agent.trackers import ReconcilingTracker, Tracker

TITLE_CHARACTERS: Final = 256
BODY_CHARACTERS: Final = 65_000
"""GitHub takes 256 and 65,536; some of the body is the tracker's."""

Result = dict[str, Any]


class DocsTools:
    """Reads pages and files issues for one agent."""

    def __init__(
        self,
        *,
        folder: PageFolder,
        tracker: Tracker,
        keyed: bool = True,
        after_write: Callable[[], None] = lambda: None,
    ) -> None:
        """Take where to read and to file.

        ``keyed`` False files without a key, so that every repeat makes an issue. ``after_write`` is called
        right after the tracker has the issue, before anything else knows of it.
        """
        self._folder = folder
        self._tracker = tracker
        self._keyed = keyed
        self._after_write = after_write

    def tools(self) -> list[BaseTool]:
        """Return the tools; what repeating ``file_issue`` does is up to the tracker."""
        filing = FunctionTool(self.file_issue)
        setattr(filing, KIND_ATTRIBUTE, self._tracker.kind)
        if isinstance(self._tracker, ReconcilingTracker):
            setattr(filing, RECONCILE_ATTRIBUTE, _reconciling(self._tracker))
        return [FunctionTool(self.list_pages), FunctionTool(self.read_page), filing]

    @read_only
    def list_pages(self) -> Result:
        """List the pages of the documentation, each with its name and title."""
        return {"pages": [{"name": page.name, "title": page.title} for page in self._folder.pages()]}

    @read_only
    def read_page(self, name: str) -> Result:
        """Read a page of the documentation.

        Args:
            name: the page's name as list_pages gives it.
        """
        try:
            # ADK passes on whatever type the model has chosen.
            return {"text": self._folder.read(str(name))}
        except PageError as error:
            return {"error": f"{error}; list_pages names the pages"}

    async def file_issue(self, title: str, body: str, tool_context: ToolContext) -> Result:
        """File an issue about the documentation, and return its number.

        Args:
            title: one line that says what is wrong, and on which page.
            body: what the page says, what is true or missing, and what to change.
        """
        if not tool_context.function_call_id:
            return {"error": "file_issue needs a function call id, and has none: nothing was filed"}
        problem = _problem("title", title, TITLE_CHARACTERS) or _problem("body", body, BODY_CHARACTERS)
        if problem:
            return {"error": f"{problem}: nothing was filed"}
        key = effect_key(tool_context) if self._keyed else None
        filed = await self._tracker.file(
            key, " ".join(title.split()), body.strip(), asked_at=_asked_at(tool_context)
        )
        self._after_write()
        return {"number": filed.number, **({"duplicate_request": True} if filed.duplicate else {})}


def _reconciling(tracker: ReconcilingTracker) -> Callable[..., Any]:
    async def reconcile(_args: Mapping[str, Any], key: str, begun_at: datetime) -> Result | Literal[False]:
        number = await tracker.seek(key, begun_at=begun_at)
        return False if number is None else {"number": number}

    return reconcile


def _asked_at(context: ToolContext) -> datetime | None:
    """Say when the model first made this call; None: no event of the session holds it."""
    times = (
        event.timestamp
        for event in context.session.events
        if any(call.id == context.function_call_id for call in event.get_function_calls())
    )
    first = min(times, default=None)
    return None if first is None else datetime.fromtimestamp(first, UTC)


def _problem(field: str, value: object, limit: int) -> str | None:
    """Say why a tracker could not keep a text; None: it can."""
    if not isinstance(value, str) or not value.strip():
        return f"the {field} is empty"
    if len(value) > limit:
        return f"the {field} has {len(value)} characters, more than {limit}"
    if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
        return f"the {field} holds a NUL or half a surrogate pair"
    return None
