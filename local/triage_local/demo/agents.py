"""The agents of the demo: variants of the cluster's default agent."""

import json
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

from triage_contract.states import ToolKind

Json = dict[str, Any]

FIRST_MEMORY: Final = "256Mi"
"""Enough for the agent, which takes about 160, but not for the archive as well, which takes twice its size."""

_MOUNT: Final = "/var/lib/issues"
_FILE: Final = "issues.json"
_ARCHIVED_ISSUES: Final = 1600
_ARCHIVED_BODY: Final = "It was like this, and then like that, and in the end it worked again. " * 900
"""63 kB, so that the archive has 100 MB."""


def build_pinned(default: Json, node: str) -> Json:
    """Build the agent ``pinned``, whose pods stay on a node that nobody drains."""
    return _variant(default, "pinned", {"podTemplate": {"spec": {"nodeSelector": _hostname(node)}}})


def build_undeclared(default: Json, node: str) -> Json:
    """Build the agent ``undeclared``: pinned, and nobody says what repeating ``file_issue`` does."""
    return _variant(
        default,
        "undeclared",
        {
            "tools": {"file_issue": ToolKind.UNDECLARED.value},
            "podTemplate": {"spec": {"nodeSelector": _hostname(node)}},
        },
    )


def build_archived(default: Json, node: str, folder: Path) -> Json:
    """Build the agent ``archived``: pinned, and with a tracker whose one file holds years of issues.

    To file one more issue takes more memory than its first limit. The next attempt has twice of that.
    """
    return _variant(
        default,
        "archived",
        {
            "tracker": {"file": {"path": f"{_MOUNT}/{_FILE}"}},
            "resources": {"requests": {"memory": FIRST_MEMORY}, "limits": {"memory": FIRST_MEMORY}},
            "resume": {"memory": {"factor": 2, "limit": "1Gi"}},
            "podTemplate": {
                "spec": {
                    "nodeSelector": _hostname(node),
                    "containers": [
                        {"name": "agent", "volumeMounts": [{"name": "issues", "mountPath": _MOUNT}]}
                    ],
                    "volumes": [{"name": "issues", "hostPath": {"path": str(folder)}}],
                }
            },
        },
    )


def write_archive(folder: Path) -> int:
    """Write the file of old issues into a folder, and give their number."""
    folder.mkdir()
    with (folder / _FILE).open("w", encoding="utf-8") as file:
        file.write('{"issues": [')
        for number in range(1, _ARCHIVED_ISSUES + 1):
            issue = {
                "number": number,
                "key": None,
                "title": f"Something about the documentation, case {number}",
                "body": _ARCHIVED_BODY,
                "created_at": "2020-01-01T00:00:00+00:00",
                "duplicates": 0,
            }
            file.write(json.dumps(issue) + ("," if number < _ARCHIVED_ISSUES else "]}"))
    return _ARCHIVED_ISSUES


def read_archive(folder: Path) -> list[Json]:
    """Read the issues in the file, the old ones and the new ones."""
    issues: list[Json] = json.loads((folder / _FILE).read_text(encoding="utf-8"))["issues"]
    return issues


def _variant(default: Json, name: str, changes: Mapping[str, Any]) -> Json:
    spec = {**deepcopy(default["spec"]), **changes}
    metadata = {"name": name, "namespace": default["metadata"]["namespace"]}
    return {**default, "metadata": metadata, "spec": spec}


def _hostname(node: str) -> Json:
    return {"kubernetes.io/hostname": node}
