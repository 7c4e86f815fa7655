"""Keys and certificates for servers on loopback, made by OpenSSL; they live as long as what they are for."""

from pathlib import Path

from triage_local.exceptions import ProgramError
from triage_local.guard import Guard
from triage_local.processes import run


async def make_key(path: Path, guard: Guard) -> None:
    """Make a private key as a file that nobody else may read.

    Raises:
        ProgramError: OpenSSL is not installed, or refuses.
    """
    await _openssl(
        path.parent, guard, "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", str(path)
    )


async def make_certificate(path: Path, key: Path, guard: Guard) -> None:
    """Make a certificate that a key signs for itself. ProgramError: as above."""
    subject = ("-subj", "/CN=localhost", "-days", "1")
    await _openssl(path.parent, guard, "req", "-x509", "-new", "-key", str(key), "-out", str(path), *subject)


async def _openssl(folder: Path, guard: Guard, *arguments: str) -> None:
    finished = await run("openssl", *arguments, environment={}, folder=folder, guard=guard)
    if finished.exit_code != 0:
        raise ProgramError(f"openssl {arguments[0]} ended with {finished.exit_code}: {finished.output}")
