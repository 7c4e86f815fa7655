"""Conditions of both kinds.

The operator is the only one that sets them. Reasons are closed sets of the operator's, never renamed;
messages are for people and may change.
"""

from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import AwareDatetime, Field

from triage_contract.api.base import ApiModel, cut_to

_MAX_MESSAGE_LENGTH: Final = 32768
"""Characters to which a condition's message is cut, Kubernetes' own bound."""


class ConditionStatus(StrEnum):
    """Whether a condition holds."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class RunCondition(StrEnum):
    """Condition types of a TriageRun; ``RunStatus.conditions`` says what each means."""

    FINISHED = "Finished"
    PROGRESSING = "Progressing"


class AgentCondition(StrEnum):
    """Condition types of a TriageAgent; ``AgentStatus.conditions`` says what each means."""

    READY = "Ready"
    TOOLS_DECLARED = "ToolsDeclared"


class Condition(ApiModel):
    """One observation about an object, in the shape of Kubernetes' own ``metav1.Condition``."""

    type: Annotated[str, Field(min_length=1, max_length=316)]
    """Type of the condition."""
    status: ConditionStatus
    """Whether the condition holds; Unknown: the operator could not find out."""
    reason: Annotated[
        str, Field(min_length=1, max_length=1024, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")
    ]
    """Why, in one word for programs; never renamed."""
    message: Annotated[str, Field(max_length=_MAX_MESSAGE_LENGTH), cut_to(_MAX_MESSAGE_LENGTH)] = ""
    """Why, in a sentence for people."""
    last_transition_time: AwareDatetime
    """When the status of the condition changed last."""
    observed_generation: Annotated[int, Field(ge=0)] = 0
    """Generation of the object that the condition speaks of."""


CONDITIONS: Final[dict[str, Any]] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
"""Marks a list of conditions: one of each type."""

Conditions = Annotated[tuple[Condition, ...], Field(max_length=16, json_schema_extra=CONDITIONS)]
"""The conditions of an object."""
