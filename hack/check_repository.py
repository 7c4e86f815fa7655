"""Rules of the repository that no linter knows. Prints each breach on a line, and exits with 1 if there is one."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from detect_secrets.core.secrets_collection import SecretsCollection
from detect_secrets.settings import transient_settings

ROOT = Path(__file__).parents[1]
MAX_LINES = 400
# Folders with a package inside that must not be packages: `operator` would shadow the standard library's.
PLAIN_FOLDERS = ("operator", "agent_image", "contract", "local")
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|root|home/\w+|Users/\w+)/")
# Passwords that examples and tests make up.
MADE_UP = r"^(password|secret|wrong|hunter2|hidden(-word)?|sesame|\{.*\})$"
# Hashes and generated data look like secrets to an entropy check, so only known forms of secrets are looked for.
SECRET_PLUGINS = (
    "AWSKeyDetector",
    "BasicAuthDetector",
    "GitHubTokenDetector",
    "GitLabTokenDetector",
    "JwtTokenDetector",
    "OpenAIDetector",
    "PrivateKeyDetector",
    "SlackDetector",
)


def main() -> int:
    """Check every file that git tracks or would track."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    files = [Path(line) for line in listed.splitlines() if (ROOT / line).is_file()]
    breaches = [*plain_folders(), *long_modules(files), *machine_paths(files), *secrets(files)]
    for breach in breaches:
        print(breach)
    return 1 if breaches else 0


def plain_folders() -> Iterator[str]:
    """Find an ``__init__.py`` where there must be none."""
    for folder in PLAIN_FOLDERS:
        if (ROOT / folder / "__init__.py").exists():
            yield f"{folder}/__init__.py: this folder holds a package and must not be one"


def long_modules(files: list[Path]) -> Iterator[str]:
    """Find modules that ought to be several."""
    for file in files:
        if file.suffix == ".py":
            lines = len((ROOT / file).read_text(encoding="utf-8").splitlines())
            if lines > MAX_LINES:
                yield f"{file}: {lines} lines, more than {MAX_LINES}"


def machine_paths(files: list[Path]) -> Iterator[str]:
    """Find paths that exist on one machine only."""
    for file in files:
        try:
            lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(lines, start=1):
            if file != Path(__file__).relative_to(ROOT) and MACHINE_PATH.search(line):
                yield f"{file}:{number}: a path of one machine"


def secrets(files: list[Path]) -> Iterator[str]:
    """Find what looks like a credential; a line that holds a made-up one says ``pragma: allowlist secret``."""
    found = SecretsCollection(root=str(ROOT))
    settings = {
        "plugins_used": [{"name": name} for name in SECRET_PLUGINS],
        "filters_used": [
            {"path": "detect_secrets.filters.allowlist.is_line_allowlisted"},
            {"path": "detect_secrets.filters.regex.should_exclude_secret", "pattern": [MADE_UP]},
        ],
    }
    with transient_settings(settings):
        for file in files:
            if file.name != "uv.lock":
                found.scan_file(str(file))
    for file_name, secret in found:
        yield f"{file_name}:{secret.line_number}: looks like a secret ({secret.type})"


if __name__ == "__main__":
    sys.exit(main())
