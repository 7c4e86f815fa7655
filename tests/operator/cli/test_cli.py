"""The command line: every flag has a variable, bad input gets one line, and nothing shows a secret."""

import json
import logging
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from support.databases import Database
from support.operated import Cluster
from triage_local.postgres import PostgresServer
from triage_operator.checking import check_cluster, check_database
from triage_operator.cli import main
from triage_operator.logs import LogFormat, set_up_logging
from triage_operator.options import GROUPS, build_all, options_of
from triage_operator.settings import DatabaseSettings, LeaseSettings


def _url(host: str, scheme: str = "postgresql") -> str:
    return "".join((scheme, "://", "user", ":", "secret", "@", host, "/database"))


REQUIRED = {"namespace": (), "cluster_id": None, "database_url": _url("host")}


@pytest.fixture
def runner() -> CliRunner:
    return CliRunner()


def _defaults() -> dict[str, object]:
    return {option.parameter: option.default for option in options_of(*GROUPS)}


def test_every_field_of_every_group_is_a_flag_with_a_variable_and_help(runner: CliRunner) -> None:
    shown = " ".join(runner.invoke(main, ["run", "--help"], terminal_width=400).output.split())
    for option in options_of(*GROUPS):
        assert option.flag in shown
        assert option.variable in shown
        assert option.help in shown


def test_no_two_flags_have_the_same_name() -> None:
    flags = [option.flag for option in options_of(*GROUPS)]
    assert len(flags) == len(set(flags))


def test_settings_without_anything_given_are_the_defaults() -> None:
    settings = build_all({**_defaults(), **REQUIRED})
    assert settings.database == DatabaseSettings(url=_url("host"))
    assert settings.lease.namespace == "default"
    assert settings.lease.identity
    assert settings.deciding.heartbeat_seconds == 2.0
    assert "secret" not in repr(settings)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["run"], "--database-url"),
        (["run", "--database-url", "x", "--workers", "many"], "--workers"),
        (["run", "--database-url", "x", "--sweep-seconds", "-1"], "--sweep-seconds"),
        (["run", "--database-url", "x", "--database-pooler", "session"], "--database-pooler"),
        (["migrate", "--database-url", _url("host", "mysql")], "mysql"),
        (["migrate", "--database-url", _url("127.0.0.1:1")], "127.0.0.1:1/database"),
        (["run", "--database-url", "nonsense"], "database URL"),
        (
            ["run", "--database-url", _url("host"), "--kube-config", "/nowhere"],
            "no kubeconfig at /nowhere",
        ),
    ],
)
def test_bad_input_gets_a_line_that_names_it(arguments: list[str], named: str, runner: CliRunner) -> None:
    result = runner.invoke(main, arguments)
    assert result.exit_code != 0
    assert named in result.output
    assert "secret" not in result.output
    assert "Traceback" not in result.output


def test_resource_definitions_are_printed_as_they_are_applied(runner: CliRunner) -> None:
    printed = list(yaml.safe_load_all(runner.invoke(main, ["crds"]).output))
    folder = Path(__file__).parents[3] / "crds"
    applied = [
        yaml.safe_load((folder / f"{plural}.yaml").read_text()) for plural in ("triageruns", "triageagents")
    ]
    assert printed == applied


def test_migrating_says_where_it_came_to_and_can_be_repeated(
    runner: CliRunner, postgres: PostgresServer
) -> None:
    url = postgres.create_database()
    for _ in range(2):
        result = runner.invoke(main, ["migrate"], env={"TRIAGE_OPERATOR_DATABASE_URL": url})
        assert result.exit_code == 0
        assert "is at revision" in result.output
        assert url not in result.output


async def test_checking_finds_what_is_missing(cluster: Cluster, database: Database) -> None:
    finding = await check_database(DatabaseSettings(url=database.url.dsn))
    assert (finding.what, finding.fault) == ("database and schema", None)
    finding = await check_database(DatabaseSettings(url=_url("127.0.0.1:1")))
    assert finding.fault is not None
    assert "secret" not in finding.fault
    lease = LeaseSettings(namespace="default", identity="x")
    findings = {one.what: one.fault async for one in check_cluster(cluster.settings, lease, ("default",))}
    assert findings["API server"] is None
    assert findings["custom resource definitions"] is None


def test_records_are_written_as_json_with_their_facts(capsys: pytest.CaptureFixture[str]) -> None:
    before = logging.getLogger().handlers[:], logging.getLogger().level
    try:
        set_up_logging(LogFormat.JSON, "info")
        logging.getLogger("triage_operator.x").info("decided", extra={"run": "tokens", "epoch": 2})
        set_up_logging(LogFormat.TEXT, "info")
        logging.getLogger("triage_operator.x").info(
            "decided", extra={"run": "tokens", "epoch": 2, "cause": None}
        )
        logging.getLogger("kopf.objects").info("Handler succeeded.")
    finally:
        logging.getLogger().handlers[:], _ = before
        logging.getLogger().setLevel(before[1])
    as_json, as_text = capsys.readouterr().err.splitlines()
    record = json.loads(as_json)
    assert (record["message"], record["run"], record["epoch"], record["level"]) == (
        "decided",
        "tokens",
        2,
        "INFO",
    )
    assert as_text.endswith("INFO triage_operator.x decided run=tokens epoch=2")
