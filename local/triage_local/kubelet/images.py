"""Images: names that stand for programs of this machine."""

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from triage_local.kubelet.exceptions import NotYetError

# Of https://github.com/distribution/reference: path components in lower case, then a tag, a digest, or both.
_COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_NAME = re.compile(
    rf"(?:[A-Za-z0-9.-]+(?::[0-9]+)?/)?{_COMPONENT}(?:/{_COMPONENT})*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@[a-z0-9]+:[0-9a-f]{32,})?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """What would be in an image's configuration."""

    entrypoint: tuple[str, ...] = ()
    """Replaced by a container's ``command``."""
    arguments: tuple[str, ...] = ()
    """Replaced by a container's ``args``, and left out where it has a ``command``."""
    environment: Mapping[str, str] = field(default_factory=dict)
    working_folder: Path | None = None


def python_image(*entrypoint: str) -> Image:
    """An image with the programs of this Python environment and of this machine on its path."""
    bin_folder = str(Path(sys.executable).parent)
    return Image(
        entrypoint=entrypoint,
        environment={"PATH": f"{bin_folder}:{os.environ.get('PATH', os.defpath)}", "LANG": "C.UTF-8"},
    )


def pull(images: Mapping[str, Image], name: str, attempt: int) -> Image:
    """Find an image.

    Args:
        images: The ones that there are.
        name: As the pod has it.
        attempt: How often this was tried before; from the second time on the failure is a back-off.

    Raises:
        NotYetError: There is none, or the name cannot be one.
    """
    if not _NAME.fullmatch(name):
        message = f'Failed to apply default image tag "{name}": couldn\'t parse image name "{name}": '
        raise NotYetError("InvalidImageName", f"{message}invalid reference format")
    if name in images:
        return images[name]
    if attempt:
        raise NotYetError("ImagePullBackOff", f'Back-off pulling image "{name}"')
    raise NotYetError("ErrImagePull", f'failed to pull and unpack image "{name}": {name}: not found')
