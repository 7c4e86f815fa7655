"""The generator of files that are made from code."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def generate(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, root / "hack" / "generate.py", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A tree with nothing in it but the generator, the dashboards, and the chart, whose values it reads."""
    for folder in ("hack", "dashboards", "charts"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def test_all_files_of_this_tree_are_current() -> None:
    done = generate(ROOT, "--check")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_check_shows_what_would_change_and_changes_nothing(copy: Path) -> None:
    generate(copy)
    crd = copy / "crds" / "triageruns.yaml"
    edited = crd.read_text().replace("maxLength: 65536", "maxLength: 65537")
    crd.write_text(edited)

    done = generate(copy, "--check")

    assert done.returncode == 1
    assert "-                maxLength: 65537\n+                maxLength: 65536\n" in done.stdout
    assert crd.read_text() == edited


def test_what_is_missing_is_written(copy: Path) -> None:
    assert generate(copy, "--check").returncode == 1
    assert not (copy / "crds").exists()
    assert "wrote crds/triageruns.yaml" in generate(copy).stdout
    assert generate(copy, "--check").returncode == 0
