"""From what the API server sends to models."""

import json
import re
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from triage_contract.api.agent import TriageAgent
from triage_contract.api.run import TriageRun
from triage_contract.exceptions import ApiError

Resource = TypeVar("Resource", TriageRun, TriageAgent)


def parse_run(raw: Mapping[str, Any]) -> TriageRun:
    """Return a TriageRun from a stored object; see ``_parse``."""
    return _parse(TriageRun, raw)


def parse_agent(raw: Mapping[str, Any]) -> TriageAgent:
    """Return a TriageAgent from a stored object; see ``_parse``."""
    return _parse(TriageAgent, raw)


def _parse(model: type[Resource], raw: Mapping[str, Any]) -> Resource:
    """Return the model of an object as JSON gave it, fields that it does not know left out.

    A status that does not fit counts as lost: an edit by hand, or a newer operator's, must not stop a run
    whose spec is good, and all of a status is derived again.

    Raises:
        ApiError: metadata or spec cannot be used; one line that names the object and each field.
    """
    try:
        return model.model_validate_json(json.dumps(dict(raw)))
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False, include_input=False)
        if all(fault["loc"][:1] == ("status",) for fault in faults):
            return _parse(model, {**raw, "status": {}})
        reasons = "; ".join(_describe(fault) for fault in faults)
        raise ApiError(f"{model.__name__} {_name(raw)}: {reasons}") from error


def _describe(fault: ErrorDetails) -> str:
    path = ".".join(str(step) for step in fault["loc"])
    # Pydantic shows an enum's member as Python does, <Kind.A: 'a'>; people know its value only.
    message = re.sub(r"<[\w.]+: ('[^']*')>", r"\1", fault["msg"].removeprefix("Value error, "))
    return f"{path}: {message}" if path else message


def _name(raw: Mapping[str, Any]) -> str:
    metadata = raw.get("metadata")
    named = metadata if isinstance(metadata, Mapping) else {}
    return f"{named.get('namespace', '?')}/{named.get('name', '?')}"
