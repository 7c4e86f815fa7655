"""The chart's monitoring on a real cluster: its objects, and a Prometheus that scrapes the operators as they say."""

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import quote

import pytest
import pytest_asyncio

from support.charts import ROOT
from support.docker import base_image, build, build_command, obstacle
from support.kind import operators
from support.kind.cluster import Kind
from support.kind.programs import SYSTEM
from support.kind.site import KindSite
from triage_local.demo.holds import Place, holding

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(420)]

Json = dict[str, Any]

_GROUP: Final = "monitoring.coreos.com"
_KINDS: Final = {"servicemonitors": "ServiceMonitor", "prometheusrules": "PrometheusRule"}
_IMAGE: Final = "triage-prometheus:test"
_NAMESPACE: Final = "monitoring"
_HEADLESS: Final = "operators"
_VALUES: Final[Json] = {
    "metrics": {"serviceMonitor": {"enabled": True, "interval": "1s"}},
    "dashboards": {"enabled": True},
    "alerts": {"enabled": True},
}
_PATIENCE_SECONDS: Final = 90
_LOOK_SECONDS: Final = 0.5

Found = TypeVar("Found")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def monitored(kind: Kind, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[None]:
    if reason := obstacle():
        pytest.skip(reason)
    await _bring_image(tmp_path_factory.mktemp("prometheus"))
    made = [plural for plural in _KINDS if not await _is_defined(kind, plural)]
    definitions = [_definition(plural) for plural in made]
    if definitions:
        await kind.programs.apply(*definitions, namespace=SYSTEM)
        names = [f"crd/{plural}.{_GROUP}" for plural in made]
        await kind.programs.kubectl("wait", "--for=condition=Established", *names, "--timeout=60s")
    await kind.configure(**_VALUES)
    try:
        await kind.programs.kubectl("create", "namespace", _NAMESPACE)
        monitor = await _get(kind, "servicemonitor", "triage-operator")
        rule = await _get(kind, "prometheusrule", "triage-operator")
        scrape = await _scrape(kind, monitor)
        await kind.programs.apply(*_prometheus(scrape, rule), namespace=_NAMESPACE)
        await kind.programs.rolled_out("deployment/prometheus", namespace=_NAMESPACE)
        yield
    finally:
        await kind.programs.kubectl("delete", "namespace", _NAMESPACE, "--ignore-not-found")
        headless = ("service", _HEADLESS, "--namespace", SYSTEM)
        await kind.programs.kubectl("delete", *headless, "--ignore-not-found")
        await kind.configure()
        for plural in made:
            await kind.programs.kubectl("delete", "crd", f"{plural}.{_GROUP}")


@pytest.mark.usefixtures("monitored")
async def test_dashboards_are_where_a_sidecar_finds_them(kind: Kind) -> None:
    selected = ("--namespace", SYSTEM, "--selector", "grafana_dashboard=1", "--output=json")
    found = json.loads(await kind.programs.kubectl("get", "configmaps", *selected))["items"]
    dashboards = [json.loads(text) for each in found for text in each["data"].values()]
    assert len(dashboards) == 4
    assert all(dashboard["panels"] for dashboard in dashboards)


@pytest.mark.usefixtures("monitored")
async def test_every_alert_can_be_evaluated(kind: Kind) -> None:
    async def rules() -> list[Json]:
        groups = (await _ask(kind, "rules"))["groups"]
        found = [rule for group in groups for rule in group["rules"]]
        return found if all(rule["health"] == "ok" for rule in found) else []

    assert {rule["type"] for rule in await _until(rules, "all rules are evaluated")} == {"alerting"}


@pytest.mark.usefixtures("monitored")
async def test_a_loss_is_counted_once_whoever_leads(kind: Kind, site: KindSite) -> None:
    losses = f'sum(max by (agent, cause) (triage_losses_total{{namespace="{site.namespace}"}}))'

    async def counted() -> bool:
        return await _number(kind, losses) == 1

    async def leads() -> bool:
        return await _number(kind, f'triage_leader{{instance=~"{address}:.+"}}') == 1

    async def another_leads() -> str:
        name = await operators.leader(kind)
        return "" if name == old else name

    async def stands_still() -> bool:
        told = f'triage_losses_total{{namespace="{site.namespace}",instance=~"{address}:.+"}}'
        return await _number(kind, f"sum(increase({told}[5m]))") == 0

    async with holding(site.engine, "lost", Place.AFTER_WRITE) as hold:
        await site.create_run("lost")
        await hold.reached()
        await site.kill("lost")
        await hold.cut_off()
        await site.succeeded("lost", ["sigkill"])
    await _until(counted, "the loss is scraped")
    old = await operators.leader(kind)
    await operators.restart(kind)
    await kind.programs.rolled_out(operators.OPERATOR)
    new = await _until(another_leads, "another operator leads")
    address = (await _get(kind, "pod", new))["status"]["podIP"]
    await _until(leads, "the new operator is scraped")
    assert await _number(kind, f"max_over_time({losses}[5m:1s])") == 1
    await _until(stands_still, "the new one's counter begins where the old one's ended")


async def _bring_image(folder: Path) -> None:
    """Build an image of this machine's Prometheus, and bring it to the nodes."""
    finding = await asyncio.create_subprocess_exec(
        str(ROOT / "hack" / "prometheus-programs"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await finding.communicate()
    if finding.returncode != 0:
        pytest.skip(errors.decode().strip())
    await asyncio.to_thread(shutil.copy, Path(output.decode().strip(), "prometheus"), folder)
    (folder / "Dockerfile").write_text(f"FROM {base_image()}\nCOPY prometheus /usr/local/bin/prometheus\n")
    await asyncio.to_thread(build, *build_command(), "--tag", _IMAGE, ".", folder=folder)
    cluster = os.environ.get("CLUSTER", "triage")
    await asyncio.to_thread(build, "kind", "load", "docker-image", "--name", cluster, _IMAGE)


async def _is_defined(kind: Kind, plural: str) -> bool:
    return bool(await kind.programs.kubectl("get", "crd", f"{plural}.{_GROUP}", "--ignore-not-found"))


def _definition(plural: str) -> Json:
    """Build a definition that takes anything, where the Prometheus operator's own is not there."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}
    names = {"plural": plural, "singular": plural.removesuffix("s"), "kind": _KINDS[plural]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{_GROUP}"},
        "spec": {"group": _GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }


async def _get(kind: Kind, resource: str, name: str) -> Json:
    found = await kind.programs.kubectl("get", resource, name, "--namespace", SYSTEM, "--output=json")
    return dict(json.loads(found))


async def _scrape(kind: Kind, monitor: Json) -> Json:
    """Say what a ServiceMonitor says to a Prometheus that finds its targets by DNS, as Debian's can.

    For that the Service it selects gets a headless one beside it.
    """
    (endpoint,) = monitor["spec"]["endpoints"]
    labels = ",".join(f"{name}={value}" for name, value in monitor["spec"]["selector"]["matchLabels"].items())
    selected = ("get", "services", "--namespace", SYSTEM, "--selector", labels, "--output=json")
    (service,) = json.loads(await kind.programs.kubectl(*selected))["items"]
    (subset,) = (await _get(kind, "endpoints", service["metadata"]["name"]))["subsets"]
    (port,) = (one["port"] for one in subset["ports"] if one["name"] == endpoint["port"])
    headless = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": _HEADLESS},
        "spec": {"clusterIP": "None", "selector": service["spec"]["selector"], "ports": [{"port": port}]},
    }
    await kind.programs.apply(headless, namespace=SYSTEM)
    return {
        "job_name": monitor["metadata"]["name"],
        "honor_labels": endpoint["honorLabels"],
        "scrape_interval": endpoint["interval"],
        "scrape_timeout": endpoint["interval"],
        "dns_sd_configs": [
            {"names": [f"{_HEADLESS}.{SYSTEM}"], "type": "A", "port": port, "refresh_interval": "1s"}
        ],
        "relabel_configs": [{"target_label": "namespace", "replacement": SYSTEM}],
    }


def _prometheus(scrape: Json, rule: Json) -> tuple[Json, Json, Json]:
    labels = {"app": "prometheus"}
    files = {
        "prometheus.yml": json.dumps(
            {
                "global": {"evaluation_interval": "1s"},
                "rule_files": ["rules.yml"],
                "scrape_configs": [scrape],
            }
        ),
        "rules.yml": json.dumps(rule["spec"]),
    }
    container = {
        "name": "prometheus",
        "image": _IMAGE,
        "command": ["prometheus", "--config.file=/config/prometheus.yml", "--storage.tsdb.path=/data"],
        "readinessProbe": {"httpGet": {"path": "/-/ready", "port": 9090}, "periodSeconds": 1},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [
            {"name": "config", "mountPath": "/config"},
            {"name": "data", "mountPath": "/data"},
        ],
    }
    spec = {
        "terminationGracePeriodSeconds": 5,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65534,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": [
            {"name": "config", "configMap": {"name": "prometheus"}},
            {"name": "data", "emptyDir": {}},
        ],
    }
    metadata = {"name": "prometheus"}
    return (
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": files},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata,
            "spec": {"selector": labels, "ports": [{"port": 9090}]},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata,
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": spec},
            },
        },
    )


async def _ask(kind: Kind, path: str) -> Json:
    service = f"/api/v1/namespaces/{_NAMESPACE}/services/prometheus:9090/proxy/api/v1"
    answer = json.loads(await kind.programs.kubectl("get", "--raw", f"{service}/{path}"))
    assert answer["status"] == "success", answer
    return dict(answer["data"])


async def _number(kind: Kind, query: str) -> float | None:
    """Give the one value of a query; None: it has no answer."""
    found = (await _ask(kind, f"query?query={quote(query)}"))["result"]
    return float(found[0]["value"][1]) if found else None


async def _until(find: Callable[[], Awaitable[Found]], what: str) -> Found:
    """Ask until there is something, since Prometheus tells nobody by itself."""
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            while not (found := await find()):
                await asyncio.sleep(_LOOK_SECONDS)
            return found
    except TimeoutError:
        raise AssertionError(f"waited {_PATIENCE_SECONDS} s in vain: {what}") from None
