"""What of the chart is made from elsewhere: definitions, rules, the page about its values, the schema of settings."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from triage_contract.api.crds import Kind, build_crd
from triage_operator.options import Option, options_of
from triage_operator.permissions import NODE_PERMISSIONS, PERMISSIONS, Permission

CHART: Final = Path(__file__).resolve().parent.parent / "charts" / "triage-operator"

_SET_BY_CHART: Final = frozenset(
    f"--{name}"
    for name in (
        "database-url",
        "database-direct-url",
        "database-pooler",
        "kube-config",
        "kube-context",
        "lease-namespace",
        "lease-name",
        "lease-identity",
        "serve-host",
        "serve-port",
    )
)
"""Flags that follow from other values, or from where a pod runs."""

_README: Final = """<!-- Made by hack/generate.py from values.yaml; edit that. -->
# The chart of triage-operator

Installs the operator, its rights, the definitions of `TriageRun` and `TriageAgent`, and, if wanted, an agent, a first
run, and a Postgres for trials. Kubernetes 1.29 or later is needed; how to install it, upgrade it and take it away is in
[docs/install.md](../../docs/install.md).

```
kubectl create namespace triage
kubectl create secret generic triage-operator-database --namespace triage --from-literal=url="$DATABASE_URL"
helm install triage-operator charts/triage-operator --namespace triage \\
  --set database.urlSecret.name=triage-operator-database
helm test triage-operator --namespace triage
```

## Values

| Value | Default | Meaning |
|---|---|---|
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A described value: its path, such as ``image.tag``, its default, and what it means."""

    path: str
    default: Any
    meaning: str


def described_values() -> Iterator[Value]:
    """Give the values that have a description, in the order of the file."""
    text = (CHART / "values.yaml").read_text("utf-8")
    defaults = yaml.safe_load(text)
    above: list[tuple[int, str]] = []
    words: list[str] = []
    for line in text.splitlines():
        content = line.strip()
        if content.startswith("# -- "):
            words = [content.removeprefix("# -- ")]
        elif content.startswith("# ") and words:
            words.append(content.removeprefix("# "))
        elif match := re.match(r"( *)([A-Za-z]\w*):", line):
            indent, key = len(match[1]), match[2]
            above = [*(parent for parent in above if parent[0] < indent), (indent, key)]
            if words:
                keys = [name for _, name in above]
                yield Value(path=".".join(keys), default=_at(defaults, keys), meaning=" ".join(words))
            words = []


def render_chart_readme() -> str:
    """Return the page about the chart, in Markdown."""
    rows = (
        f"| `{value.path}` | `{json.dumps(value.default, ensure_ascii=False)}` | {value.meaning} |"
        for value in described_values()
    )
    return _README + "\n".join(rows) + "\n"


def render_values_schema() -> str:
    """Return the schema of the chart's values: as it is, with the operator's settings as they are now."""
    schema = json.loads((CHART / "values.schema.json").read_text("utf-8"))
    schema["properties"]["settings"] = {
        "description": "Made by hack/generate.py.",
        "type": "object",
        "additionalProperties": False,
        "properties": {_camel_case(option): _type(option) for option in settable()},
    }
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def settable() -> list[Option]:
    """Give the operator's settings that the chart leaves to its user."""
    options = options_of("database", "kube", "lease", "serving", "reconciling", "deciding")
    return [option for option in options if option.flag not in _SET_BY_CHART]


def render_chart_crd(kind: Kind) -> str:
    """Return the template of a kind's definition."""
    crd = build_crd(kind)
    name = crd.pop("metadata")["name"]
    text = yaml.safe_dump(crd, sort_keys=False, width=110, allow_unicode=True)
    if "{{" in text:
        raise ValueError(f"a description of {kind.name} looks like an action of a template")
    head, spec = text.split("spec:\n", 1)
    return f"""{{{{- /* Made by hack/generate.py; edit what it is made from. */}}}}
{{{{- if .Values.crds.enabled }}}}
{head}metadata:
  name: {name}
  labels:
    {{{{- include "triage-operator.labels" . | nindent 4 }}}}
  {{{{- if .Values.crds.keep }}}}
  annotations:
    helm.sh/resource-policy: keep
  {{{{- end }}}}
spec:
{spec}{{{{- end }}}}
"""


def render_chart_rules() -> str:
    """Return the template of the rules that the operator's roles consist of."""
    return f"""{{{{- /* Made by hack/generate.py from operator/triage_operator/permissions.py; edit that. */}}}}
{{{{- define "triage-operator.workRules" }}}}
{_rules(PERMISSIONS)}{{{{- end }}}}
{{{{- define "triage-operator.nodeRules" }}}}
{_rules(NODE_PERMISSIONS)}{{{{- end }}}}
"""


def _rules(permissions: Iterable[Permission]) -> str:
    verbs: dict[tuple[str, str], list[str]] = {}
    for verb, group, resource in permissions:
        verbs.setdefault((group, resource), []).append(verb)
    return "".join(
        f"- apiGroups: [{json.dumps(group)}]\n  resources: [{resource}]\n  verbs: [{', '.join(allowed)}]\n"
        for (group, resource), allowed in verbs.items()
    )


def _at(values: Any, keys: list[str]) -> Any:
    for key in keys:
        values = values[key]
    return values


def _camel_case(option: Option) -> str:
    first, *others = option.flag.removeprefix("--").split("-")
    return first + "".join(word.capitalize() for word in others)


def _type(option: Option) -> dict[str, str]:
    kinds = {int: "integer", float: "number", str: "string"}
    return {"type": kinds[type(option.default)] if option.default is not None else "string"}
