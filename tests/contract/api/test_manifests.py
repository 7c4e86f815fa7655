"""Manifests against an API server: the examples are good, and each bad one is refused as it says itself.

The comment at the top of a bad manifest gives the field that must be named and a part of the message, in the
words of a real API server. Where a file holds two objects, the second one replaces the first.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio
import yaml

from support.kube import Rest, rest_client
from support.servers import a_kubeconfig
from triage_contract.api import parse_agent, parse_run
from triage_contract.api.crds import KINDS, Kind, build_crd
from triage_contract.exceptions import ApiError
from triage_contract.names import API_VERSION, GROUP

pytestmark = pytest.mark.asyncio(loop_scope="module")

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.yaml"))
BAD = sorted((Path(__file__).parent / "bad").glob("*.yaml"))
PARSERS: Final = {"TriageRun": parse_run, "TriageAgent": parse_agent}

Manifest = dict[str, Any]


class Cluster:
    """An API server that has our definitions. Fields that a schema does not know are errors, as for
    kubectl."""

    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    async def define(self, kind: Kind) -> None:
        """Let objects of a kind of ours be created."""
        assert (await self.create(build_crd(kind)))["kind"] == "CustomResourceDefinition"
        objects = _collection({"apiVersion": API_VERSION, "kind": kind.model.__name__})
        async with asyncio.timeout(10):
            while (await self._rest.get(objects)).code != 200:
                await asyncio.sleep(0.05)

    async def forget(self, kind: Kind) -> None:
        """Remove a definition with its objects."""
        definition = build_crd(kind)
        await self._rest.delete(f"{_collection(definition)}/{definition['metadata']['name']}")

    async def create(self, manifest: Manifest) -> Manifest:
        """Return the object as stored, or the Status that refuses it."""
        return (await self._rest.post(_collection(manifest), manifest, **_STRICT)).body

    async def replace(self, old: Manifest, new: Manifest) -> Manifest:
        """Return the new object as stored in place of the old one, or the Status that refuses it."""
        metadata = {**new["metadata"], "resourceVersion": old["metadata"]["resourceVersion"]}
        path = f"{_collection(new)}/{metadata['name']}"
        return (await self._rest.put(path, {**new, "metadata": metadata}, **_STRICT)).body

    async def printed(self, manifest: Manifest, status: Manifest) -> dict[str, Any]:
        """Give an object this status, and return the cells that kubectl prints of it, by column."""
        path = f"{_collection(manifest)}/{manifest['metadata']['name']}"
        assert (await self._rest.merge(f"{path}/status", {"status": status})).code == 200
        table = (await self._rest.get(path, accept="application/json;as=Table;v=v1;g=meta.k8s.io")).body
        columns = [column["name"] for column in table["columnDefinitions"]]
        return dict(zip(columns, table["rows"][0]["cells"], strict=True))


_STRICT: Final = {"fieldValidation": "Strict"}


def _collection(manifest: Manifest) -> str:
    place = "" if manifest["kind"] == "CustomResourceDefinition" else "/namespaces/default"
    return f"/apis/{manifest['apiVersion']}{place}/{manifest['kind'].lower()}s"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    async with a_kubeconfig(folder) as kubeconfig, rest_client(kubeconfig) as rest:
        cluster = Cluster(rest)
        for kind in KINDS:
            await cluster.define(kind)
        yield cluster
        for kind in KINDS:
            await cluster.forget(kind)


def read(path: Path) -> list[Manifest]:
    """Return the objects of ours in a file; those of a bad one under the file's own name."""
    ours = [
        manifest for manifest in yaml.safe_load_all(path.read_text()) if manifest["apiVersion"] == API_VERSION
    ]
    return [{**manifest, "metadata": {"name": path.stem}} for manifest in ours] if path in BAD else ours


def read_expected(path: Path) -> tuple[str, str]:
    """Return the field and the part of the message that a refusal must name."""
    comments = dict(re.findall(r"^# (\w+): (.+)$", path.read_text(), re.MULTILINE))
    return comments["field"], comments["message"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
async def test_an_example_is_stored_and_read(cluster: Cluster, path: Path) -> None:
    manifests = read(path)
    for manifest in manifests:
        PARSERS[manifest["kind"]](await cluster.create(manifest))
    agents = {manifest["metadata"]["name"] for manifest in manifests if manifest["kind"] == "TriageAgent"}
    runs = [manifest for manifest in manifests if manifest["kind"] == "TriageRun"]
    assert {run["spec"].get("agentRef", {"name": "default"})["name"] for run in runs} == agents


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
async def test_a_bad_manifest_is_refused(cluster: Cluster, path: Path) -> None:
    first, *second = read(path)
    field, message = read_expected(path)
    answer = await cluster.create(first)
    if second:
        assert answer["kind"] == first["kind"]
        answer = await cluster.replace(answer, second[0])
    assert answer["code"] == 422
    assert f'{first["kind"]}.{GROUP} "{path.stem}" is invalid: ' in answer["message"]
    assert f"{field}: " in answer["message"]
    assert message in answer["message"]


@pytest.mark.parametrize("path", [path for path in BAD if len(read(path)) == 1], ids=lambda path: path.stem)
async def test_a_bad_object_is_refused_by_a_reader_too(path: Path) -> None:
    """As may happen where an older definition let it in."""
    (manifest,) = read(path)
    metadata = {"namespace": "default", "uid": "u", "creationTimestamp": "2026-03-01T12:00:00Z"}
    field, _ = read_expected(path)
    with pytest.raises(ApiError, match=re.escape(f" {field}: ")):
        PARSERS[manifest["kind"]]({**manifest, "metadata": {**manifest["metadata"], **metadata}})


@pytest.mark.parametrize(
    "manifest",
    [
        {"kind": "TriageRun", "spec": {"report": "x"}},
        {
            "kind": "TriageAgent",
            "spec": {"image": "x", "database": {"urlSecretRef": {"name": "a", "key": "b"}}},
        },
    ],
    ids=lambda manifest: str(manifest["kind"]),
)
async def test_defaults_of_schema_and_models_are_the_same(cluster: Cluster, manifest: Manifest) -> None:
    named = {"apiVersion": API_VERSION, "metadata": {"name": "minimal"}, **manifest}
    stored = await cluster.create(named)
    assert stored["spec"] != manifest["spec"]
    parse = PARSERS[manifest["kind"]]
    assert parse(stored) == parse({**stored, "spec": manifest["spec"]})


async def test_a_run_is_printed_by_the_server(cluster: Cluster) -> None:
    spec = {"report": "x", "agentRef": {"name": "other"}}
    run = {"apiVersion": API_VERSION, "kind": "TriageRun", "metadata": {"name": "printed"}, "spec": spec}
    await cluster.create(run)
    status = {"phase": "Succeeded", "attempt": 3, "resumes": 2, "lastCause": "oom", "issue": "41"}
    cells = await cluster.printed(run, status)
    assert cells.pop("Age").endswith("s")
    assert cells == {
        "Name": "printed",
        "Phase": "Succeeded",
        "Attempt": 3,
        "Resumes": 2,
        "Last Cause": "oom",
        "Issue": "41",
        "Agent": "other",
        "Message": None,
    }
