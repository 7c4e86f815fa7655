"""What `triage` says of itself, and of arguments that it cannot use."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from support.command import triage
from triage_agent.cli import main
from triage_contract.names import DocsEnv


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--help"], ["attempt", "start", "resume"]),
        (["-h"], ["attempt", "start", "resume"]),
        (["attempt", "--help"], ["environment"]),
        (
            ["start", "--help"],
            ["--crash-after-write", "--no-idempotency-key", "--database", "DOCS_DB", "DOCS_MODEL"],
        ),
        (["resume", "--help"], ["SESSION INVOCATION", "--no-idempotency-key", "DOCS_TRACKER", "DOCS_PATH"]),
        (["--version"], ["triage"]),
    ],
)
def test_help(arguments: list[str], says: list[str]) -> None:
    shown = CliRunner().invoke(main, arguments)
    assert shown.exit_code == 0
    assert all(word in shown.output for word in says)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (b" \n", "the report is empty"),
        (b"a\0b", "the report holds a NUL character"),
        (b"\xff", "the report is not UTF-8 text"),
        (b"a" * 65_537, "the report has 65537 characters, more than 65536"),
    ],
    ids=["empty", "nul", "bytes", "huge"],
)
def test_a_report_that_no_run_may_have_is_refused(given: bytes, says: str) -> None:
    refused = CliRunner().invoke(main, ["start", "-"], input=given)
    assert (refused.exit_code, refused.stderr, refused.stdout) == (1, f"triage: {says}\n", "")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--database", "mysql://user:hidden@host/db"], "DOCS_DB: the database URL begins with 'mysql'"),
        (["--database", "postgresql://user:hidden@127.0.0.1:1/none"], "127.0.0.1:1/none: "),
        (["--database", "sqlite:file.db"], "DOCS_DB is 'sqlite:file.db': expected sqlite:///FILE"),
        (["--database", "sqlite3:///file.db"], "DOCS_DB is 'sqlite3:///file.db': expected sqlite:///FILE"),
        (["--model", "gpt-2000"], "DOCS_MODEL is 'gpt-2000'"),
        (["--model", "replay:/nowhere"], "DOCS_MODEL replays /nowhere"),
        (["--tracker", "postgres"], "DOCS_TRACKER is 'postgres', which needs"),
        (["--docs", "/nowhere"], "/nowhere"),
    ],
    ids=lambda value: value[1] if isinstance(value, list) else "",
)
def test_a_setting_that_cannot_work_is_one_line(options: list[str], says: str, tmp_path: Path) -> None:
    environment: dict[str, str] = {
        DocsEnv.DB: f"sqlite:///{tmp_path}/triage.db",
        DocsEnv.MODEL_API_KEY: "no-key",
    }
    refused = CliRunner().invoke(main, ["start", "A report.", *options], env=environment)
    assert refused.exit_code == 1
    assert refused.stderr.startswith("triage: ")
    assert says in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    assert "hidden" not in refused.output


def test_the_installed_command_is_quiet_about_anything_but_the_run(tmp_path: Path) -> None:
    environment: dict[str, str] = {
        DocsEnv.DB: f"sqlite:///{tmp_path}/triage.db",
        DocsEnv.MODEL_API_KEY: "no-key",
    }
    refused = triage("resume", "run-1", "inv-1", environment=environment)
    assert (refused.code, refused.out) == (1, "")
    assert refused.err == "triage: there is no session 'run-1'\n"
