"""A script that the report itself dictates, for agents whose tools nobody here knows."""

import json
from dataclasses import dataclass, field

from triage_local.model.docs_triage import DocsTriageScript
from triage_local.model.script import Call, Reply, Script, Turn

_CALL = "call "


@dataclass(frozen=True, slots=True, kw_only=True)
class DictatedScript:
    """Make the calls that the report says, one a reply, and then say the report's last line.

    A call is a line such as ``call book_return {"parcel": "AB12", "reason": "broken"}``.
    """

    otherwise: Script = field(default_factory=DocsTriageScript)
    """Answers where the report dictates nothing."""

    def __call__(self, turn: Turn) -> Reply:
        """Answer a request.

        Raises:
            ValueError: the arguments of a call are no JSON; the endpoint refuses the request.
        """
        lines = [line.strip() for line in turn.report.splitlines() if line.strip()]
        calls = [line.removeprefix(_CALL) for line in lines if line.startswith(_CALL)]
        if not calls:
            return self.otherwise(turn)
        if len(turn.answers) == len(calls):
            return Reply(text=lines[-1])
        name, _, arguments = calls[len(turn.answers)].partition(" ")
        return Reply(calls=(Call(name=name, arguments=json.loads(arguments or "{}")),))
