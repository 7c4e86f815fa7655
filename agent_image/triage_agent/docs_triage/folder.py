"""A folder of Markdown pages, read by name and never left."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from triage_agent.exceptions import ConfigurationError, PageError
from triage_contract.names import DocsEnv

PAGE_BYTES: Final = 200_000
"""A page is sent to the model as a whole, and stored in the session."""

LISTED_PAGES: Final = 500
"""As many are listed; the rest can be read, if somebody knows a name."""

_SUFFIX: Final = ".md"
_TITLE_BYTES: Final = 4096
_SHOWN_CHARACTERS: Final = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page as it is listed."""

    name: str
    """Its path below the folder, with ``/`` between parts and without ``.md``."""
    title: str
    """Its first heading; empty: it has none at its beginning."""


class PageFolder:
    """The pages in a folder and the folders below it. Hidden ones are left out, and links to folders.

    A name is never made into a path: it is looked up among the files that are there, so no spelling of a name
    leads anywhere else. A link counts if it ends inside the folder, as those of a mounted ConfigMap do.
    """

    def __init__(self, root: Path) -> None:
        """Take a folder.

        Raises:
            ConfigurationError: it is not there.
        """
        if not root.is_dir():
            raise ConfigurationError(f"{DocsEnv.PATH}: there is no folder {root}")
        self._root = Path(os.path.realpath(root))

    def pages(self) -> list[Page]:
        """List the pages that can be read, by name."""
        listed: list[Page] = []
        for name, path in sorted(self._files().items()):
            try:
                content = self._content(path, _TITLE_BYTES)
            except PageError:
                continue
            listed.append(Page(name=name, title=_title(content.decode(errors="replace"))))
            if len(listed) == LISTED_PAGES:
                break
        return listed

    def read(self, name: str) -> str:
        """Return the text of a page, named as it is listed or with ``.md``.

        Raises:
            PageError: there is no such page, or it cannot be read as one.
        """
        shown = repr(name[:_SHOWN_CHARACTERS])
        files = self._files()
        path = files.get(name) or files.get(name.removesuffix(_SUFFIX))
        if path is None:
            raise PageError(f"there is no page {shown}")
        content = self._content(path, PAGE_BYTES + 1)
        if len(content) > PAGE_BYTES:
            raise PageError(f"page {shown} is longer than {PAGE_BYTES} bytes")
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise PageError(f"page {shown} is not UTF-8 text") from error

    def _files(self) -> dict[str, Path]:
        """Find what is named like a page, whether it can be read or not."""
        found: dict[str, Path] = {}
        for folder, subfolders, files in os.walk(self._root):
            subfolders[:] = [name for name in subfolders if not name.startswith(".")]
            for file in files:
                path = Path(folder, file)
                name = path.relative_to(self._root).as_posix().removesuffix(_SUFFIX)
                # A name that is no text could neither be sent nor stored.
                if file.endswith(_SUFFIX) and not file.startswith(".") and name.isprintable():
                    found[name] = path
        return found

    def _content(self, path: Path, limit: int) -> bytes:
        """Return the first bytes of a regular file inside the folder; PageError for anything else."""
        name = path.relative_to(self._root)
        real = Path(os.path.realpath(path))
        if not real.is_relative_to(self._root):
            raise PageError(f"page '{name}' leads out of the folder")
        try:
            # A pipe would be waited for, and a link that was put there since would be followed.
            descriptor = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
            with os.fdopen(descriptor, "rb") as stream:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    raise PageError(f"page '{name}' is not a regular file")
                return stream.read(limit)
        except OSError as error:
            raise PageError(f"page '{name}' cannot be read: {error.strerror}") from error


def _title(text: str) -> str:
    headings = (line for line in text.splitlines() if line.startswith("# "))
    return next(headings, "").removeprefix("# ").strip()
