"""Docker, where a daemon answers: building images, and running containers the way pods are run."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
TAG: Final = "test"

RESTRICTED: Final = (
    "--network=none",
    "--read-only",
    "--tmpfs=/tmp",
    "--cap-drop=ALL",
    "--security-opt=no-new-privileges",
)
"""What the restricted Pod Security Standard and a read-only root file system leave to a container."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A command that ran to its end. ``said``: on both streams."""

    code: int
    said: str


def docker(*arguments: str) -> Ended:
    """Run Docker's client."""
    done = subprocess.run(
        [_client(), *arguments], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    return Ended(code=done.returncode, said=done.stdout)


def build(*command: str, folder: Path = ROOT, **environment: str) -> None:
    """Run a command that builds an image; what it said is in the failure."""
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "DOCKER": _client(), "DOCKER_BUILDKIT": "1", **environment},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def build_command() -> tuple[str, ...]:
    """Give the beginning of a command that builds by BuildKit."""
    return (_client(), "build", *os.environ.get("FLAGS", "").split())


@cache
def base_image() -> str:
    """Give the image that others are built on, as ``hack/images/build`` chooses it."""
    chosen = ROOT / "build" / "cluster" / "base-image"
    if given := os.environ.get("BASE_IMAGE"):
        return given
    return chosen.read_text().strip() if chosen.exists() else "python:3.13-slim"


def certificates() -> str:
    """Give the file with the certificates that this machine trusts when it downloads; empty: none was chosen."""
    return os.environ.get("PIP_CERT", "")


@cache
def obstacle() -> str | None:
    """Say why no image can be built here; None: one can."""
    if shutil.which("docker") is None:
        return "docker is not installed"
    if docker("version").code != 0:
        return "no Docker daemon answers"
    if docker("image", "inspect", base_image()).code != 0 and docker("pull", base_image()).code != 0:
        return f"the base image {base_image()} is neither here nor in reach"
    return None


def _client() -> str:
    # As in hack/images/build: a new client without its plugin cannot use BuildKit.
    plugin = subprocess.run(["docker", "buildx", "version"], capture_output=True, check=False).returncode == 0
    return "docker" if plugin or not Path("/usr/bin/docker").exists() else "/usr/bin/docker"
