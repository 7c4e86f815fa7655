"""What comes with the agent: the pages of a made-up command line tool, and a report about each."""

from pathlib import Path
from typing import Final

from triage_agent.exceptions import ConfigurationError

PAGES: Final = Path(__file__).parent / "pages"
_REPORTS: Final = Path(__file__).parent / "reports"


def report_names() -> tuple[str, ...]:
    """Return the names of the reports, each that of the page which it is about."""
    return tuple(sorted(path.stem for path in _REPORTS.glob("*.txt")))


def report(name: str) -> str:
    """Return the text of a report.

    Raises:
        ConfigurationError: there is none of this name.
    """
    if name not in report_names():
        raise ConfigurationError(f"there is no sample report {name!r}, only {', '.join(report_names())}")
    return (_REPORTS / f"{name}.txt").read_text(encoding="utf-8").strip()
