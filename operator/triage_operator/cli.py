"""``triage-operator``: run the operator, prepare what it needs, and check that it is there."""

import asyncio
import signal
import sys
from collections.abc import Mapping
from typing import Any

import click
import yaml
from tenacity import AsyncRetrying, retry_if_exception_type, stop_before_delay, wait_fixed

from triage_contract.api.crds import AGENT, RUN, build_crd
from triage_contract.database.migrating import migrate as migrate_database
from triage_contract.database.url import DatabaseUrl
from triage_contract.exceptions import DatabaseUnreachableError, TriageError
from triage_operator import tenants
from triage_operator.checking import Finding, check_cluster, check_database
from triage_operator.logs import LogFormat, set_up_logging
from triage_operator.options import PREFIX, build, build_all, taking
from triage_operator.running import run as run_operator
from triage_operator.settings import DatabaseSettings, KubeSettings, LeaseSettings, Settings

_namespace = click.option(
    "--namespace",
    multiple=True,
    envvar=f"{PREFIX}NAMESPACE",
    show_envvar=True,
    help="Namespace to watch; may be repeated, in the variable separated by blanks. Default: all.",
)
_log_format = click.option(
    "--log-format",
    type=click.Choice([each.value for each in LogFormat], case_sensitive=False),
    default=LogFormat.JSON.value,
    envvar=f"{PREFIX}LOG_FORMAT",
    show_envvar=True,
    show_default=True,
    help="How logs are written, to standard error.",
)
_log_level = click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"], case_sensitive=False),
    default="info",
    envvar=f"{PREFIX}LOG_LEVEL",
    show_envvar=True,
    show_default=True,
    help="Least severe level that is logged.",
)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="triage-operator")
def main() -> None:
    """Finish AI agent runs that lost their pod."""


@main.command()
@_namespace
@click.option(
    "--cluster-id",
    envvar=f"{PREFIX}CLUSTER_ID",
    show_envvar=True,
    help="Tells this cluster's runs in the database from others'. Default: the UID of namespace kube-system.",
)
@_log_format
@_log_level
@taking("database", "kube", "lease", "serving", "reconciling", "deciding")
def run(**values: Any) -> None:
    """Run the operator until SIGTERM."""
    set_up_logging(LogFormat(values["log_format"]), values["log_level"])
    try:
        asyncio.run(_run(build_all(values)))
    except TriageError as error:
        raise click.ClickException(str(error)) from error


async def _run(settings: Settings) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await run_operator(settings, stop)


@main.command()
def crds() -> None:
    """Print the custom resource definitions, for kubectl apply -f -."""
    click.echo(
        yaml.safe_dump_all(map(build_crd, (RUN, AGENT)), sort_keys=False, allow_unicode=True), nl=False
    )


@main.command()
@taking("database")
@click.option(
    "--wait-seconds",
    type=click.FloatRange(min=0),
    default=0.0,
    show_default=True,
    help="How long to wait for a database that does not answer yet.",
)
def migrate(wait_seconds: float, **values: Any) -> None:
    """Create or upgrade the database's schema. Safe to repeat, and to run twice at once."""
    settings: DatabaseSettings = build("database", values)
    try:
        url = settings.locate()
        revision = asyncio.run(_migrate(url, wait_seconds))
    except TriageError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"{url} is at revision {revision}")


async def _migrate(url: DatabaseUrl, wait_seconds: float) -> str:
    async for attempt in AsyncRetrying(
        retry=retry_if_exception_type(DatabaseUnreachableError),
        wait=wait_fixed(0.5),
        stop=stop_before_delay(wait_seconds),
        reraise=True,
    ):
        with attempt:
            return await migrate_database(url)
    raise AssertionError  # the loop above returns or raises


@main.command(short_help="Check that everything the operator needs is there.")
@_namespace
@taking("database", "kube", "lease")
def check(**values: Any) -> None:
    """Check database, schema, API server, resource definitions and permissions; exit 1 if anything is amiss."""
    findings = asyncio.run(_check(values))
    for finding in findings:
        click.echo(f"{'ok' if finding.fault is None else 'FAULT'}  {finding.what}{_because(finding)}")
    sys.exit(any(finding.fault is not None for finding in findings))


async def _check(values: Mapping[str, Any]) -> list[Finding]:
    kube: KubeSettings = build("kube", values)
    lease: LeaseSettings = build("lease", values)
    findings = [await check_database(build("database", values))]
    async for finding in check_cluster(kube, lease, tuple(values["namespace"])):
        findings.append(finding)
    return findings


@main.group()
def tenant() -> None:
    """Give each namespace a database role of its own; for an administrator of the database."""


@tenant.command(name="add", short_help="Make the role of a namespace, and print its URL.")
@click.argument("namespace")
@click.option("--role", help="Name of the role.  [default: triage_NAMESPACE]")
@click.option(
    "--connection-limit",
    type=click.IntRange(min=1),
    help="Most connections of the role at once. Default: as it was, none for a new role.",
)
@click.option("--rotate", is_flag=True, help="Give a role that exists another password.")
@click.option("--print-secret", metavar="NAME", help="Print a Secret of this name, for kubectl apply -f -.")
@taking("database")
def add_tenant(
    namespace: str,
    role: str | None,
    connection_limit: int | None,
    rotate: bool,
    print_secret: str | None,
    **values: Any,
) -> None:
    """Make the role of a namespace, with a password that is printed once and kept nowhere.

    A role that exists gets the rights that tenants have by now, and keeps its password unless it is to be rotated. The
    database URL is that of a role that may create roles and owns the schema, or of a superuser.
    """
    try:
        admission = asyncio.run(
            tenants.add(
                build("database", values).locate(),
                namespace,
                role=role,
                connection_limit=connection_limit,
                rotate=rotate,
            )
        )
    except TriageError as error:
        raise click.ClickException(str(error)) from error
    if admission.url is None:
        click.echo(f"{admission.role} keeps its password; --rotate gives it another", err=True)
    elif print_secret is None:
        click.echo(admission.url)
    else:
        click.echo(yaml.safe_dump(tenants.build_secret(print_secret, namespace, admission)), nl=False)


@tenant.command(name="remove")
@click.argument("namespace")
@taking("database")
def remove_tenant(namespace: str, **values: Any) -> None:
    """Drop the roles of a namespace and end their connections; what is stored stays."""
    try:
        roles = asyncio.run(tenants.remove(build("database", values).locate(), namespace))
    except TriageError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"removed {', '.join(roles)}")


@tenant.command(name="list")
@taking("database")
def list_tenants(**values: Any) -> None:
    """Print namespace, role, connections and their limit of each tenant."""
    try:
        found = asyncio.run(tenants.tenants(build("database", values).locate()))
    except TriageError as error:
        raise click.ClickException(str(error)) from error
    for each in found:
        limit = "no limit" if each.connection_limit is None else f"at most {each.connection_limit}"
        click.echo(f"{each.namespace}  {each.role}  {each.connections} connections, {limit}")


def _because(finding: Finding) -> str:
    return "" if finding.fault is None else f": {finding.fault}"
