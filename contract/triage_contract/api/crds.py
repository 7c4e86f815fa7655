"""The two custom resource definitions."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from triage_contract.api.agent import TriageAgent
from triage_contract.api.conditions import AgentCondition, RunCondition
from triage_contract.api.run import TriageRun
from triage_contract.api.schema import Schema, structural_schema, without_defaults
from triage_contract.names import GROUP, VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of ``kubectl get``; a wide one is shown with ``-o wide`` only."""

    name: str
    type: str
    path: str
    wide: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of ours and how it is called."""

    model: type[TriageRun] | type[TriageAgent]
    plural: str
    short: str
    columns: tuple[Column, ...]

    @property
    def name(self) -> str:
        """``TriageRun`` or ``TriageAgent``."""
        return self.model.__name__


def _condition(kind: StrEnum, field: str) -> str:
    return f'.status.conditions[?(@.type=="{kind}")].{field}'


_AGE: Final = Column(name="Age", type="date", path=".metadata.creationTimestamp")

RUN: Final = Kind(
    model=TriageRun,
    plural="triageruns",
    short="tr",
    columns=(
        Column(name="Phase", type="string", path=".status.phase"),
        Column(name="Attempt", type="integer", path=".status.attempt"),
        Column(name="Resumes", type="integer", path=".status.resumes"),
        Column(name="Last Cause", type="string", path=".status.lastCause"),
        Column(name="Issue", type="string", path=".status.issue"),
        Column(name="Agent", type="string", path=".spec.agentRef.name", wide=True),
        Column(
            name="Message", type="string", path=_condition(RunCondition.PROGRESSING, "message"), wide=True
        ),
        _AGE,
    ),
)

AGENT: Final = Kind(
    model=TriageAgent,
    plural="triageagents",
    short="ta",
    columns=(
        Column(name="Image", type="string", path=".spec.image"),
        Column(name="Model", type="string", path=".spec.model.name"),
        Column(name="Ready", type="string", path=_condition(AgentCondition.READY, "status")),
        Column(name="Running", type="integer", path=".status.running", wide=True),
        Column(name="Message", type="string", path=_condition(AgentCondition.READY, "message"), wide=True),
        _AGE,
    ),
)

KINDS: Final = (RUN, AGENT)


def build_crd(kind: Kind) -> dict[str, Any]:
    """Return the CustomResourceDefinition of a kind."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": kind.name,
                "listKind": f"{kind.name}List",
                "plural": kind.plural,
                "singular": kind.name.lower(),
                "shortNames": [kind.short],
                "categories": ["triage"],
            },
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [_printer_column(column) for column in kind.columns],
                    "schema": {"openAPIV3Schema": build_schema(kind)},
                }
            ],
        },
    }


def build_schema(kind: Kind) -> Schema:
    """Return the schema of a kind's objects."""
    schema = structural_schema(kind.model)
    return {
        "description": schema["description"],
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"description": f"`{GROUP}/{VERSION}`.", "type": "string"},
            "kind": {"description": f"`{kind.name}`.", "type": "string"},
            # The API server has its own schema for it and allows no other word, not even a description.
            "metadata": {"type": "object"},
            "spec": schema["properties"]["spec"],
            # A status holds what was observed; an API server must not fill it in.
            "status": without_defaults(schema["properties"]["status"]),
        },
    }


def _printer_column(column: Column) -> dict[str, Any]:
    shown = {"name": column.name, "type": column.type, "jsonPath": column.path}
    return {**shown, "priority": 1} if column.wide else shown
