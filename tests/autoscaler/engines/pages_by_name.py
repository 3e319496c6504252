"""The sample pages, one entry a page: a file may hold several, each behind a `# PAGE` line."""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path(__file__).parent / "pages"


def page(file: str, title_begins: str = "") -> str:
    """The page of a file; of several the one whose `# PAGE` line begins with the words. Raises LookupError."""
    text = (_FOLDER / f"{file}.txt").read_text(encoding="utf-8")
    blocks = text.split("\n# PAGE ")
    if not title_begins:
        return text
    for block in blocks[1:]:
        if block.startswith(title_begins):
            return "# " + block + "\n"
    raise LookupError(f"{file}: no page whose title begins with {title_begins!r}")


def all_pages() -> dict[str, str]:
    """Every page by file and title."""
    pages = {}
    for path in sorted(_FOLDER.glob("*.txt")):
        blocks = path.read_text(encoding="utf-8").split("\n# PAGE ")
        if len(blocks) == 1:
            pages[path.stem] = blocks[0]
        for block in blocks[1:]:
            pages[f"{path.stem}: {block.splitlines()[0][:40]}"] = "# " + block + "\n"
    return pages
