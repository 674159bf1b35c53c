"""README.md and the guide: every block of code runs as it stands there and gives what stands there, and every link leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import documents
import pytest

ROOT = documents.ROOT
COMMANDS = ["pip install . && lakelite demo", "pip install '.[test]' && pytest"]
RENDER = "sphinx-build -C -D extensions=myst_parser -D root_doc=index -D myst_heading_anchors=3 -D suppress_warnings=toc,misc lakelite/docs html"
SESSIONS = [(f"{path.stem}:{block.line}", block) for path in documents.DOCUMENTS for block in documents.blocks(path)]


def of(language: str) -> list[object]:
    return [pytest.param(block, id=name) for name, block in SESSIONS if block.language == language]


def test_two_commands_set_up_and_run() -> None:
    shown = [block.parts[0].strip() for _, block in SESSIONS if block.language == "sh"]
    assert shown == [*COMMANDS, RENDER]


def test_ci_runs_the_commands_of_the_readme() -> None:
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert [line.strip() for line in lines if line.strip() in COMMANDS] == COMMANDS


@pytest.mark.parametrize("block", of("python"))
def test_python_session(block: documents.Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    documents.run_python(block.parts[0])


@pytest.mark.parametrize("block", of("sql"))
def test_sql_session(block: documents.Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert documents.run_sql(block.parts, tmp_path), "the session shows results"


@pytest.mark.parametrize("block", of("console"))
def test_console_session(block: documents.Block, tmp_path: Path) -> None:
    documents.run_console(block.parts[0], tmp_path)


def anchors(path: Path) -> set[str]:
    """What a link can lead to in a page, as code hosts and the renderer name headings."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", documents.DOCUMENTS, ids=lambda path: path.stem)
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8")):
        if target.startswith("https://"):
            continue
        name, _, anchor = target.partition("#")
        page = path.parent / name if name else path
        assert page.is_file(), target
        assert not anchor or anchor in anchors(page), target


def test_every_page_is_in_the_index() -> None:
    linked = set(re.findall(r"\((\w+\.md)\)", (documents.GUIDE / "index.md").read_text(encoding="utf-8")))
    assert linked == {page.name for page in documents.PAGES} - {"index.md"}


def test_the_readme_compares_as_the_guide_does() -> None:
    """Its tables of others are rows of the guide's. (That of its promises is its own.)"""
    readme, guide = ((path.read_text(encoding="utf-8")) for path in (ROOT / "README.md", documents.GUIDE / "compared.md"))
    others, _, _ = readme.partition("## What it promises")
    compared = [line.replace("](lakelite/docs/", "](") for line in others.splitlines() if line.startswith("| ")]
    assert len(compared) > 8
    assert [line for line in compared if line not in guide.splitlines()] == []
