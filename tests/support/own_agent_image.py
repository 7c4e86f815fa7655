"""Building the image of examples/own-agent as its README says, on the package of this very tree."""

import shutil
from pathlib import Path
from typing import Final

from support.docker import ROOT, TAG, base_image, build, build_command, certificates

EXAMPLE: Final = ROOT / "examples" / "own-agent"
IMAGE: Final = f"own-agent:{TAG}"


def build_own_agent(folder: Path) -> str:
    """Build the image and give its name. ``folder`` is an empty one, for what it is built of."""
    context = folder / "context"
    shutil.copytree(EXAMPLE, context)
    build(str(ROOT / ".tools/bin/uv"), "build", "--quiet", "--wheel", f"--out-dir={context}")
    (wheel,) = context.glob("*.whl")
    base = _trusting_base(folder / "base") if certificates() else base_image()
    arguments = (f"--build-arg=BASE_IMAGE={base}", f"--build-arg=AGENT=/wheels/{wheel.name}[agent]")
    build(*build_command(), *arguments, f"--tag={IMAGE}", ".", folder=context)
    return IMAGE


def _trusting_base(folder: Path) -> str:
    """Give a base image that trusts this machine's certificates, as a company's would its own."""
    folder.mkdir()
    shutil.copy(certificates(), folder / "ca.crt")
    (folder / "Dockerfile").write_text(
        f"FROM {base_image()}\nCOPY ca.crt /etc/ssl/ca.crt\nENV PIP_CERT=/etc/ssl/ca.crt\n"
    )
    build(*build_command(), "--tag=own-agent-base:test", ".", folder=folder)
    return "own-agent-base:test"
