"""Other charts than the one of this tree: the release that comes after it, and one with a database that stays."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from support.charts import CHART
from support.kind.cluster import Kind

FIELD: Final = "addedLater"
"""A text in the spec of a TriageRun, which the definitions of the later chart have, and those of this tree do not."""

_LATER_FIELD: Final = f"              {FIELD}:\n                type: string\n"


def later_chart(folder: Path) -> Path:
    """Copy the chart, with definitions that know a field more."""
    chart = Path(shutil.copytree(CHART, folder / "later"))
    _insert(
        chart / "templates" / "crds" / "triageruns.yaml",
        _LATER_FIELD,
        before="              deadlineSeconds:\n",
    )
    return chart


def chart_that_keeps_its_database(folder: Path) -> Path:
    """Copy the chart, with a database that an uninstallation leaves alone, as it does with one that is not its own."""
    chart = Path(shutil.copytree(CHART, folder / "keeping"))
    annotation = "  annotations: {helm.sh/resource-policy: keep}\n"
    _insert(chart / "templates" / "postgres.yaml", annotation, before="  name: {{ $name }}\n  namespace")
    return chart


def _insert(file: Path, text: str, *, before: str) -> None:
    template = file.read_text()
    assert before in template, f"{file.name} has changed"
    file.write_text(template.replace(before, text + before))


@asynccontextmanager
async def tagged_anew(kind: Kind, image: str, tag: str) -> AsyncIterator[str]:
    """Give an image that the nodes have a further tag, as if a new one had been pushed, until the block ends."""
    repository, _, _ = image.partition(":")
    name = f"{repository}:{tag}"
    for node in (kind.steady, kind.victim):
        await _ctr(kind, node, "tag", "--force", *(f"docker.io/library/{each}" for each in (image, name)))
    try:
        yield name
    finally:
        for node in (kind.steady, kind.victim):
            await _ctr(kind, node, "rm", f"docker.io/library/{name}")


async def _ctr(kind: Kind, node: str, *arguments: str) -> None:
    await kind.programs.docker("exec", node, "ctr", "-n", "k8s.io", "images", *arguments)
