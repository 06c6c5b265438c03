"""The pages of docs/: each says for whom it is, README lists it, and links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").glob("*.md"))
LINKED = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "rules/README.md",
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_says_for_whom_it_is_and_is_in_the_index(page: Path) -> None:
    title, first = page.read_text().split("\n\n")[:2]
    assert title.startswith("# ")
    assert first.startswith("For anyone ")
    assert f"](docs/{page.name})" in (ROOT / "README.md").read_text()


def test_every_runbook_is_listed() -> None:
    listed = re.findall(r"\]\(runbooks/(\w+)\.md\)", (ROOT / "docs" / "runbooks.md").read_text())
    assert listed == sorted(path.stem for path in (ROOT / "docs" / "runbooks").glob("*.md"))


@pytest.mark.parametrize("page", LINKED, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([^)]*))?\)", page.read_text()):
        found = page.parent / target if target else page
        assert found.exists(), target
        if anchor:
            assert anchor in anchors(found.read_text()), f"{target}#{anchor}"


def anchors(text: str) -> set[str]:
    """Of headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
