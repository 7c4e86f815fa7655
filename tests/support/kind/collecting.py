"""What is kept of a case that failed: objects, events, descriptions, and logs."""

from pathlib import Path
from typing import Final

from support.charts import ROOT
from support.kind.programs import SYSTEM, Programs

FOLDER: Final = ROOT / "build" / "e2e"

_KINDS: Final = "triageruns,triageagents,pods,events,configmaps"


async def collect(programs: Programs, namespace: str, case: str) -> Path:
    """Write what kubectl tells of a namespace and of the operator into a folder of the case, and give it."""
    folder = FOLDER / case.replace("/", "-")
    folder.mkdir(parents=True, exist_ok=True)
    asked = {
        "objects.yaml": ("get", _KINDS, "--namespace", namespace, "--output=yaml"),
        "descriptions.txt": ("describe", "triageruns,pods", "--namespace", namespace),
        "nodes.txt": ("describe", "nodes"),
        "system.txt": ("describe", "pods", "--namespace", SYSTEM),
        "operator.log": (
            "logs",
            "deployment/triage-operator",
            "--namespace",
            SYSTEM,
            "--all-pods",
            "--prefix",
        ),
    }
    for name in (await programs.kubectl("get", "pods", "--namespace", namespace, "--output=name")).split():
        asked[f"{name.removeprefix('pod/')}.log"] = ("logs", name, "--namespace", namespace)
    for file, command in asked.items():
        try:
            text = await programs.kubectl(*command)
        except (
            AssertionError
        ) as error:  # a pod without a log, a node that does not answer: the rest is worth having
            text = str(error)
        (folder / file).write_text(text)
    return folder
