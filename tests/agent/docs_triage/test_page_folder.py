"""Names of pages, and what they must not reach."""

import os
import socket
from pathlib import Path

import pytest

from triage_agent.docs_triage import samples
from triage_agent.docs_triage.folder import LISTED_PAGES, PAGE_BYTES, Page, PageFolder
from triage_agent.exceptions import ConfigurationError, PageError

SECRET = "only outside"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with pages, beside a file that is none of them."""
    (tmp_path / "secret.md").write_text(SECRET)
    folder = tmp_path / "docs"
    (folder / "guide").mkdir(parents=True)
    (folder / "tokens.md").write_text("# Tokens\n\nThey expire.\n")
    (folder / "guide" / "große-seite.md").write_text("No heading.\n")
    (folder / "notes.txt").write_text("no page")
    (folder / ".hidden.md").write_text("no page")
    return folder


def test_pages_are_listed_by_name_with_their_titles(root: Path) -> None:
    assert PageFolder(root).pages() == [
        Page(name="guide/große-seite", title=""),
        Page(name="tokens", title="Tokens"),
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tokens", "# Tokens\n\nThey expire.\n"),
        ("tokens.md", "# Tokens\n\nThey expire.\n"),
        ("guide/große-seite", "No heading.\n"),
    ],
)
def test_a_page_is_read_by_its_name(root: Path, name: str, text: str) -> None:
    assert PageFolder(root).read(name) == text


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "/",
        "../secret",
        "../secret.md",
        "guide/../../secret",
        "guide/../tokens",
        "./tokens",
        "guide//große-seite",
        "/etc/passwd",
        "{root}/tokens",
        "{root}/../secret.md",
        "file://{root}/tokens.md",
        "~/tokens",
        "..\\secret",
        "guide\\große-seite",
        "C:\\secret.md",
        "%2e%2e/secret",
        "%2e%2e%2fsecret.md",
        "..%c0%afsecret",
        "..%252fsecret",
        "\uff0e\uff0e/secret",
        "..\u2215secret",
        "tokens\0",
        "tokens\0.md",
        "../secret.md\0.md",
        "tokens\n",
        " tokens",
        "tokens/",
        "TOKENS",
        "Tokens.MD",
        "guide/grosse-seite",
        "\ud800",
        "tokens\udcff",
        "notes",
        "notes.txt",
        ".hidden",
        "guide",
        "x" * 100_000,
    ],
    ids=lambda name: ascii(name[:30]),
)
def test_no_other_spelling_leads_anywhere(root: Path, name: str) -> None:
    with pytest.raises(PageError, match=r"^there is no page '.*'$") as raised:
        PageFolder(root).read(name.replace("{root}", str(root)))
    assert len(str(raised.value)) < 300
    str(raised.value).encode()


def test_a_link_that_leaves_the_folder_is_refused(root: Path) -> None:
    (root / "link.md").symlink_to("../secret.md")
    (root / "absolute.md").symlink_to("/etc/passwd")
    (root / "away").symlink_to("..", target_is_directory=True)
    folder = PageFolder(root)

    for name in ("link", "absolute"):
        with pytest.raises(PageError, match=f"page '{name}.md' leads out of the folder"):
            folder.read(name)
    with pytest.raises(PageError, match="there is no page 'away/secret'"):
        folder.read("away/secret")
    assert [page.name for page in folder.pages()] == ["guide/große-seite", "tokens"]


def test_a_folder_beside_with_the_same_beginning_is_outside(root: Path) -> None:
    sibling = root.with_name("docs-private")
    sibling.mkdir()
    (sibling / "secret.md").write_text(SECRET)
    (root / "link.md").symlink_to(sibling / "secret.md")

    with pytest.raises(PageError, match="leads out of the folder"):
        PageFolder(root).read("link")


def test_a_mounted_config_map_is_readable(tmp_path: Path) -> None:
    """The kubelet puts the files into a dated folder, and links to it by a hidden one."""
    dated = tmp_path / "..2026_10_21_07_28_00.123"
    dated.mkdir()
    (dated / "tokens.md").write_text("# Tokens\n")
    (tmp_path / "..data").symlink_to(dated.name)
    (tmp_path / "tokens.md").symlink_to("..data/tokens.md")
    folder = PageFolder(tmp_path)

    assert folder.pages() == [Page(name="tokens", title="Tokens")]
    assert folder.read("tokens") == "# Tokens\n"


def test_the_folder_itself_may_be_a_link(root: Path) -> None:
    link = root.with_name("current")
    link.symlink_to(root)
    assert PageFolder(link).read("tokens").startswith("# Tokens")


def test_what_is_no_file_is_refused_at_once(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(root / "pipe.md")
    (root / "loop.md").symlink_to("loop.md")
    (root / "broken.md").symlink_to("nothing.md")
    (root / "page.md").mkdir()
    monkeypatch.chdir(root)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket.md")
        folder = PageFolder(root)
        for name, reason in {
            "pipe": "page 'pipe.md' is not a regular file",
            "loop": "page 'loop.md' cannot be read: Too many levels of symbolic links",
            "broken": "page 'broken.md' cannot be read: No such file or directory",
            "socket": "page 'socket.md' cannot be read: No such device or address",
            "page": "there is no page 'page'",
        }.items():
            with pytest.raises(PageError, match=f"^{reason}$"):
                folder.read(name)
        assert [page.name for page in folder.pages()] == ["guide/große-seite", "tokens"]


def test_a_page_that_is_too_long_is_refused(root: Path) -> None:
    (root / "longest.md").write_bytes(b"x" * PAGE_BYTES)
    (root / "longer.md").write_bytes(b"x" * (PAGE_BYTES + 1))
    folder = PageFolder(root)

    assert len(folder.read("longest")) == PAGE_BYTES
    with pytest.raises(PageError, match=f"page 'longer' is longer than {PAGE_BYTES} bytes"):
        folder.read("longer")


def test_a_page_that_is_no_text_is_refused(root: Path) -> None:
    (root / "latin.md").write_bytes("# Größe".encode("latin-1"))
    with pytest.raises(PageError, match="page 'latin' is not UTF-8 text"):
        PageFolder(root).read("latin")


def test_a_file_name_that_is_no_text_is_left_out(root: Path) -> None:
    (root / os.fsdecode(b"gr\xf6\xdfe.md")).write_text("# Size")
    (root / "two\nlines.md").write_text("# Lines")
    assert [page.name for page in PageFolder(root).pages()] == ["guide/große-seite", "tokens"]


def test_a_page_that_appears_is_seen_and_one_that_goes_is_missed(root: Path) -> None:
    folder = PageFolder(root)
    (root / "deploy.md").write_text("# Deploying")
    (root / "tokens.md").unlink()

    assert folder.read("deploy") == "# Deploying"
    with pytest.raises(PageError, match="there is no page 'tokens'"):
        folder.read("tokens")


def test_a_huge_folder_is_listed_in_part(tmp_path: Path) -> None:
    for number in range(LISTED_PAGES + 1):
        (tmp_path / f"page-{number:04}.md").touch()
    folder = PageFolder(tmp_path)

    assert len(folder.pages()) == LISTED_PAGES
    assert folder.read(f"page-{LISTED_PAGES:04}") == ""


@pytest.mark.parametrize("missing", ["nowhere", "tokens.md"])
def test_a_folder_that_is_not_there_is_named(root: Path, missing: str) -> None:
    with pytest.raises(ConfigurationError, match=f"DOCS_PATH: there is no folder {root / missing}"):
        PageFolder(root / missing)


def test_the_package_has_four_pages_with_a_report_each() -> None:
    names = [page.name for page in PageFolder(samples.PAGES).pages()]
    assert names == ["config", "deploy", "install", "tokens"] == list(samples.report_names())


@pytest.mark.parametrize(
    ("name", "on_the_page", "in_the_report"),
    [
        ("config", "minutes to wait", "counts minutes"),
        ("deploy", "a release by number", "roll back to a release by number"),
        ("install", "sha1sum --check", "sha1sum"),
        ("tokens", "Deploy tokens are meant for CI and never expire.", "deploy tokens never expire"),
    ],
)
def test_a_report_is_about_what_its_page_says(name: str, on_the_page: str, in_the_report: str) -> None:
    assert on_the_page in PageFolder(samples.PAGES).read(name)
    assert in_the_report in samples.report(name)


def test_a_report_that_is_not_there_names_those_that_are() -> None:
    with pytest.raises(
        ConfigurationError, match="no sample report 'x', only config, deploy, install, tokens"
    ):
        samples.report("x")
