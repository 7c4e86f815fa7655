"""What the scripts of ``hack/cluster`` say and keep, as far as it needs neither Docker nor an hour."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

CLUSTER = Path(__file__).parents[2] / "hack" / "cluster"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A machine with an empty cache and a Docker daemon that never answers."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "DOCKER_HOST": f"unix://{tmp_path}/docker.sock",
    }


def without(program: str, environment: dict[str, str], folder: Path) -> dict[str, str]:
    """The same machine, on which a program was never installed."""
    folder.mkdir()
    for place in reversed(os.get_exec_path(environment)):
        for file in Path(place).glob("*"):
            link = folder / file.name
            link.unlink(missing_ok=True)
            if file.name != program:
                link.symlink_to(file)
    return {**environment, "PATH": str(folder)}


def run(*command: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(CLUSTER / command[0]), *command[1:]],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def with_settings(script: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", f"source '{CLUSTER}/settings'; {script}"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("script", ["create", "delete"])
def test_a_machine_without_docker_is_told_who_installs_it(
    script: str, environment: dict[str, str], tmp_path: Path
) -> None:
    told = run(script, environment=without("docker", environment, tmp_path / "bin"))
    assert (told.returncode, told.stdout) == (1, "")
    assert "missing: Docker" in told.stderr
    assert str(CLUSTER / "start-docker") in told.stderr


@pytest.mark.skipif(shutil.which("docker") is None, reason="Docker's client is not installed")
def test_a_daemon_that_does_not_answer_is_told_apart_from_one_that_refuses(
    environment: dict[str, str], tmp_path: Path
) -> None:
    silent = run("create", environment=environment)
    assert silent.returncode == 1
    assert silent.stderr.startswith("no Docker daemon answers")
    assert str(tmp_path / "docker.sock") in silent.stderr


def test_what_is_not_built_needs_go(environment: dict[str, str], tmp_path: Path) -> None:
    told = run("binaries", "kind", environment=without("go", environment, tmp_path / "bin"))
    assert told.returncode == 1
    assert told.stderr.startswith("missing: Go")


def test_what_is_built_needs_nothing(environment: dict[str, str], tmp_path: Path) -> None:
    folder = Path(with_settings('echo "$BIN"', environment).stdout.strip())
    for program in ("kind", "kubelet"):
        (folder / program).touch(mode=0o755)
    done = run("binaries", "kind", "kubelet", environment=without("go", environment, tmp_path / "bin"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_an_unknown_program_is_named(environment: dict[str, str]) -> None:
    told = run("binaries", "kindly", environment=environment)
    assert (told.returncode, told.stderr) == (1, "no such program: kindly\n")


def test_a_step_that_succeeds_says_how_long_it_took_and_nothing_else(environment: dict[str, str]) -> None:
    done = with_settings("quiet() { echo noise; }; step 'making it' quiet; echo after", environment)
    assert done.stdout.split() == ["making", "it", "0", "s", "after"]
    assert done.stderr == ""


def test_an_error_inside_of_a_step_ends_it_and_the_script_and_is_shown(environment: dict[str, str]) -> None:
    done = with_settings(
        "broken() { echo why; false; echo further; }; step 'making it' broken; echo reached", environment
    )
    assert done.returncode == 1
    assert "FAILED" in done.stdout
    assert "reached" not in done.stdout
    assert done.stderr == "why\n"


def test_an_image_has_another_name_when_it_is_made_from_something_else(environment: dict[str, str]) -> None:
    names = with_settings("for text in one one two; do echo $text | image_name base; done", environment)
    first, same, other = names.stdout.split()
    assert first == same != other
    assert first.startswith("triage-base:")


def test_an_image_that_was_kept_is_there_before_docker_has_loaded_it(environment: dict[str, str]) -> None:
    script = (
        'touch "$(image_file triage-base:kept)"; has_image triage-base:kept && ! has_image triage-base:new'
    )
    assert with_settings(script, environment).returncode == 0


def test_a_second_cluster_leaves_the_kubeconfig_of_the_first_alone(environment: dict[str, str]) -> None:
    assert with_settings('echo "$KUBECONFIG"', environment).stdout.endswith("/build/cluster/kubeconfig\n")
    other = with_settings('echo "$KUBECONFIG"', {**environment, "CLUSTER": "other"})
    assert other.stdout.endswith("/build/cluster/kubeconfig-other\n")
