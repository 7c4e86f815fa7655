"""How containers start, and what keeps them from starting."""

import base64
import sys
from pathlib import Path
from typing import Any

import pytest

from support.nodes import PYTHON, Json, Nodes, build_pod, python
from triage_local.kubelet import Image, python_image

SLEEP = python("print('ready'); import time; time.sleep(60)")


def _waiting(pod: Json, reason: str) -> str | None:
    """Message of the container's waiting state, or None where it does not wait for this reason."""
    for status in pod["status"].get("containerStatuses", []):
        waiting = status["state"].get("waiting", {})
        if waiting.get("reason") == reason:
            message: str = waiting.get("message", "")
            return message
    return None


async def _make(nodes: Nodes, kind: str, name: str, **fields: Any) -> None:
    body = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, **fields}
    await nodes.cluster.request("POST", f"/api/v1/namespaces/default/{kind.lower()}s", body)


def _secret(**values: str) -> Json:
    return {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}


async def _say(nodes: Nodes, names: str, container: Json, **spec: Any) -> list[str]:
    """What a container finds in variables of its environment."""
    source = f"import os\nfor name in '{names}'.split(): print(os.environ.get(name))\nprint('end')"
    await nodes.create(build_pod("run", *python(source), container=container, **spec))
    said = await nodes.until_said("run", "end")
    return said.splitlines()[:-1]


async def test_env_takes_values_from_everywhere(nodes: Nodes) -> None:
    await _make(nodes, "Secret", "keys", data=_secret(url="postgresql://user:password@h/d"))
    await _make(nodes, "ConfigMap", "settings", data={"colour": "red", "shape": "round"})
    env = [
        {"name": "PLAIN", "value": "one"},
        {"name": "COMPOSED", "value": "$(PLAIN)-$(MISSING)-$$(PLAIN)"},
        {"name": "URL", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "url"}}},
        {"name": "COLOUR", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "colour"}}},
        {"name": "NONE", "valueFrom": {"secretKeyRef": {"name": "gone", "key": "k", "optional": True}}},
        {
            "name": "NONE_EITHER",
            "valueFrom": {"secretKeyRef": {"name": "keys", "key": "k", "optional": True}},
        },
        {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "MEMORY", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory"}}},
        {"name": "MIB", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}},
    ]
    container = {
        "env": env,
        "envFrom": [{"configMapRef": {"name": "settings"}, "prefix": "S_"}, {"secretRef": {"name": "keys"}}],
        "resources": {"limits": {"memory": "512Mi"}},
    }
    names = "PLAIN COMPOSED URL COLOUR NONE NONE_EITHER POD MEMORY MIB S_shape url NODE IP"
    *fixed, node, address = await _say(nodes, names, container)
    assert fixed == [
        "one",
        "one-$(MISSING)-$(PLAIN)",
        "postgresql://user:password@h/d",
        "red",
        "None",
        "None",
        "run",
        "536870912",
        "512",
        "round",
        "postgresql://user:password@h/d",
    ]
    pod = await nodes.read("run")
    assert node == pod["spec"]["nodeName"]
    assert address.startswith("127.")


async def test_nothing_of_the_owner_s_environment_is_seen(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OWNERS_SECRET", "hidden")
    assert await _say(nodes, "OWNERS_SECRET HOSTNAME", {}) == ["None", "run"]


async def test_a_label_can_be_read(nodes: Nodes) -> None:
    reference = {"fieldRef": {"fieldPath": "metadata.labels['triage-operator.dev/epoch']"}}
    source = "import os; print(os.environ['EPOCH'], 'end')"
    container = {"env": [{"name": "EPOCH", "valueFrom": reference}]}
    pod = build_pod("run", *python(source), container=container)
    pod["metadata"]["labels"] = {"triage-operator.dev/epoch": "3"}
    await nodes.create(pod)
    assert await nodes.until_said("run", "end") == "3 end\n"


async def test_a_container_waits_for_its_secret_then_for_the_key(nodes: Nodes) -> None:
    reference = {"secretKeyRef": {"name": "keys", "key": "url"}}
    container = {"env": [{"name": "URL", "valueFrom": reference}]}
    await nodes.create(build_pod("run", *SLEEP, container=container))
    pod = await nodes.until("run", lambda pod: _waiting(pod, "CreateContainerConfigError"))
    assert _waiting(pod, "CreateContainerConfigError") == 'secret "keys" not found'
    assert pod["status"]["phase"] == "Pending"
    await _make(nodes, "Secret", "keys", data=_secret(other="x"))
    missing = "couldn't find key url in Secret default/keys"
    await nodes.until("run", lambda pod: _waiting(pod, "CreateContainerConfigError") == missing)
    await nodes.cluster.request(
        "PATCH",
        "/api/v1/namespaces/default/secrets/keys",
        {"stringData": {"url": "postgresql://"}, "data": _secret(url="postgresql://")},
        content_type="application/merge-patch+json",
    )
    await nodes.until_phase("run", "Running")


async def test_an_unknown_image_backs_off_until_it_is_there(nodes: Nodes) -> None:
    await nodes.create(build_pod("run", *SLEEP, container={"image": "example/later:2"}))
    pod = await nodes.until("run", lambda pod: _waiting(pod, "ErrImagePull"))
    assert "example/later:2" in (_waiting(pod, "ErrImagePull") or "")
    pod = await nodes.until("run", lambda pod: _waiting(pod, "ImagePullBackOff"))
    assert _waiting(pod, "ImagePullBackOff") == 'Back-off pulling image "example/later:2"'
    nodes.kubelet.images["example/later:2"] = python_image()
    await nodes.until_phase("run", "Running")


@pytest.mark.parametrize("image", ["Example/Upper", "a b", "example/:1", "-x"])
async def test_an_image_name_that_cannot_be_one(nodes: Nodes, image: str) -> None:
    await nodes.create(build_pod("run", *SLEEP, container={"image": image}))
    pod = await nodes.until("run", lambda pod: _waiting(pod, "InvalidImageName"))
    assert f'"{image}": invalid reference format' in (_waiting(pod, "InvalidImageName") or "")


async def test_a_pod_that_cannot_start_can_be_deleted(nodes: Nodes) -> None:
    await nodes.create(build_pod("run", *SLEEP, container={"image": "example/never:1"}))
    await nodes.until("run", lambda pod: _waiting(pod, "ErrImagePull"))
    await nodes.delete("run")
    await nodes.until_gone("run")


async def test_a_program_that_is_not_there(nodes: Nodes) -> None:
    await nodes.create(build_pod("run", "no-such-program"))
    pod = await nodes.until_phase("run", "Failed")
    ended = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (128, "StartError")
    assert "no-such-program" in ended["message"]


async def test_entrypoint_and_arguments_of_an_image(nodes: Nodes) -> None:
    source = "import sys; print(sys.argv[1:], 'end')"
    entrypoint = (sys.executable, "-c", source)
    nodes.kubelet.images["example/args"] = Image(entrypoint=entrypoint, arguments=("of", "image"))
    for name, fields, said in (
        ("alone", {}, ["of", "image"]),
        ("args", {"args": ["$(WHO)"], "env": [{"name": "WHO", "value": "pod"}]}, ["pod"]),
    ):
        pod = build_pod(name, container={"image": "example/args", **fields})
        del pod["spec"]["containers"][0]["command"]
        await nodes.create(pod)
        await nodes.until_phase(name, "Running", "Succeeded")
        assert await nodes.until_said(name, "end") == f"{said} end\n"


async def test_volumes_are_folders_behind_their_mount_paths(nodes: Nodes, tmp_path: Path) -> None:
    await _make(nodes, "ConfigMap", "pages", data={"tokens.md": "# Tokens"}, binaryData=_secret(b="bytes"))
    await _make(nodes, "Secret", "keys", data=_secret(key="s3cret", other="x"))
    (tmp_path / "shared").mkdir()
    source = """
import os, pathlib, sys
docs = pathlib.Path(sys.argv[1])
print(sorted(each.name for each in docs.iterdir()), (docs / "tokens.md").read_text())
print(pathlib.Path(os.environ["KEY"]).read_text(), os.listdir(pathlib.Path(os.environ["KEY"]).parent))
pathlib.Path(os.environ["TRACKER"].removeprefix("file:")).write_text("issues")
print(os.getcwd() == os.environ["WORK"], os.environ["ELSEWHERE"], os.environ["KEPT"], "end")
"""
    volumes = [
        {"name": "docs", "configMap": {"name": "pages"}},
        {"name": "keys", "secret": {"secretName": "keys", "items": [{"key": "key", "path": "api/key"}]}},
        {"name": "shared", "hostPath": {"path": str(tmp_path / "shared")}},
        {"name": "work", "emptyDir": {}},
    ]
    container = {
        "command": python(source, "/docs"),
        "workingDir": "/scratch",
        "env": [
            {"name": "KEY", "value": "/keys/api/key"},
            {"name": "TRACKER", "value": "file:/data/issues.json"},
            {"name": "WORK", "value": "/scratch"},
            {"name": "ELSEWHERE", "value": "/docs-old http://host/docs"},
            {"name": "KEPT", "value": "/tmp/kept"},
        ],
        "volumeMounts": [
            {"name": "docs", "mountPath": "/docs"},
            {"name": "keys", "mountPath": "/keys"},
            {"name": "shared", "mountPath": "/data/"},
            {"name": "work", "mountPath": "/scratch"},
            {"name": "work", "mountPath": "/tmp"},
        ],
    }
    await nodes.create(build_pod("run", container=container, volumes=volumes))
    said = (await nodes.until_said("run", "end")).splitlines()
    assert said == [
        "['b', 'tokens.md'] # Tokens",
        "s3cret ['key']",
        "True /docs-old http://host/docs /tmp/kept end",
    ]
    assert (tmp_path / "shared" / "issues.json").read_text() == "issues"


async def test_a_missing_config_map_keeps_the_container_creating(nodes: Nodes) -> None:
    volumes = [{"name": "docs", "configMap": {"name": "pages"}}]
    mounts = [{"name": "docs", "mountPath": "/docs"}]
    await nodes.create(build_pod("run", *SLEEP, container={"volumeMounts": mounts}, volumes=volumes))
    expected = 'MountVolume.SetUp failed for volume "docs" : configmap "pages" not found'
    await nodes.until("run", lambda pod: _waiting(pod, "ContainerCreating") == expected)
    await _make(nodes, "ConfigMap", "pages", data={})
    await nodes.until_phase("run", "Running")


async def test_init_containers_run_one_by_one_before_the_rest(nodes: Nodes) -> None:
    steps = [
        {"name": name, "image": PYTHON, "command": python(f"open('/steps/{name}', 'x').close()")}
        for name in ("first", "second")
    ]
    check = "import os, sys; print(sorted(os.listdir(sys.argv[1])), 'end')"
    volumes = [{"name": "steps", "emptyDir": {}}]
    mounts = {"volumeMounts": [{"name": "steps", "mountPath": "/steps"}]}
    pod = build_pod(
        "run",
        *python(check, "/steps"),
        container=mounts,
        initContainers=[{**step, **mounts} for step in steps],
        volumes=volumes,
    )
    await nodes.create(pod)
    blocked = await nodes.until("run", lambda pod: pod["status"].get("initContainerStatuses"))
    assert blocked["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == "PodInitializing"
    initialized = {each["type"]: each for each in blocked["status"]["conditions"]}["Initialized"]
    assert initialized["message"] == "containers with incomplete status: [first second]"
    pod = await nodes.until_phase("run", "Succeeded")
    assert (await nodes.until_said("run", "end")) == "['first', 'second'] end\n"
    assert all(each["ready"] for each in pod["status"]["initContainerStatuses"])


async def test_a_failed_init_container_fails_the_pod(nodes: Nodes) -> None:
    broken = {"name": "broken", "image": PYTHON, "command": python("raise SystemExit(3)")}
    await nodes.create(build_pod("run", *SLEEP, initContainers=[broken]))
    pod = await nodes.until_phase("run", "Failed")
    assert pod["status"]["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 3
    assert "waiting" in pod["status"]["containerStatuses"][0]["state"]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"restartPolicy": "Always"}, "restartPolicy Always is not supported"),
        ({"volumes": [{"name": "disk", "persistentVolumeClaim": {"claimName": "c"}}]}, '"disk" of kind pers'),
    ],
)
async def test_what_is_not_supported_is_refused_by_name(nodes: Nodes, spec: Json, words: str) -> None:
    await nodes.create(build_pod("run", *SLEEP, **spec))
    pod = await nodes.until_phase("run", "Failed")
    assert pod["status"]["reason"] == "NotSupported"
    assert words in pod["status"]["message"]


async def test_two_containers_have_an_end_each(nodes: Nodes) -> None:
    pod = build_pod("run", *python("raise SystemExit(5)"))
    pod["spec"]["containers"].append({"name": "sidecar", "image": PYTHON, "command": SLEEP})
    await nodes.create(pod)
    pod = await nodes.until(
        "run", lambda pod: "terminated" in str(pod["status"].get("containerStatuses", [{}])[0].get("state"))
    )
    assert pod["status"]["phase"] == "Running"
    assert "running" in pod["status"]["containerStatuses"][1]["state"]
    await nodes.delete("run", grace_seconds=5)
    pod = await nodes.until_phase("run", "Failed")
    codes = [each["state"]["terminated"]["exitCode"] for each in pod["status"]["containerStatuses"]]
    assert codes == [5, 143]


@pytest.mark.parametrize(
    ("policy", "source", "message"),
    [
        ("File", "print('last words'); raise SystemExit(1)", None),
        ("FallbackToLogsOnError", "print('last words'); raise SystemExit(1)", "last words\n"),
        ("FallbackToLogsOnError", "print('last words')", None),
        ("FallbackToLogsOnError", "open('/dev/termination-log', 'w').write('x' * 5000); exit(1)", "x" * 4096),
    ],
)
async def test_the_termination_message(nodes: Nodes, policy: str, source: str, message: str | None) -> None:
    container = {"terminationMessagePolicy": policy}
    await nodes.create(build_pod("run", *python(source), container=container))
    pod = await nodes.until_phase("run", "Succeeded", "Failed")
    assert pod["status"]["containerStatuses"][0]["state"]["terminated"].get("message") == message
