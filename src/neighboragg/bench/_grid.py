"""Tables of text, and what is made of several: one Markdown or HTML page."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

__all__ = ["Grid", "Results"]


@dataclass(frozen=True)
class Grid:
    """A table: a title, a header and rows of text; bold cells are marked as in Markdown."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    def to_markdown(self) -> str:
        """The table under its title."""
        lines = [f"**{self.title}**", "", _line(self.header), "| --- " * len(self.header) + "|"]
        return "\n".join([*lines, *(_line(row) for row in self.rows)]) + "\n"

    def to_html(self) -> str:
        """The table under its title, with everything that is not ours escaped."""
        head = "".join(f"<th scope='col'>{escape(name)}</th>" for name in self.header)
        body = "".join(
            "<tr>" + "".join(f"<td>{_cell(cell)}</td>" for cell in row) + "</tr>" for row in self.rows
        )
        return (
            f"<h2>{escape(self.title)}</h2><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        )


class Results(ABC):
    """What a comparison found, as tables under one title."""

    title: str

    @abstractmethod
    def tables(self) -> list[Grid]:
        """Every table, the details first."""

    @abstractmethod
    def summaries(self) -> list[Grid]:
        """The tables that tell most in short."""

    def to_markdown(self) -> str:
        """All tables as Markdown."""
        return f"# {self.title}\n\n" + "\n".join(grid.to_markdown() for grid in self.tables())

    def to_html(self) -> str:
        """All tables as one self-contained page."""
        parts = [
            f"<!doctype html><html lang='en'><head><meta charset='utf-8'><title>{escape(self.title)}</title>",
            "<style>body{font:15px system-ui,sans-serif;margin:2rem;color-scheme:light dark}"
            "table{border-collapse:collapse;margin:.5rem 0 2rem}th,td{padding:.3rem .7rem;text-align:right;"
            "border-bottom:1px solid color-mix(in srgb,currentColor 20%,transparent)}"
            "th:first-child,td:first-child{text-align:left}</style></head><body>",
            f"<h1>{escape(self.title)}</h1>",
            *(grid.to_html() for grid in self.tables()),
        ]
        return "\n".join([*parts, "</body></html>\n"])

    def __str__(self) -> str:
        return f"{self.title}\n\n" + "\n".join(grid.to_markdown() for grid in self.summaries())

    def write(self, stem: Path) -> list[Path]:
        """Write `stem`.md and `stem`.html, and return where."""
        written = []
        for suffix, text in ((".md", self.to_markdown()), (".html", self.to_html())):
            path = stem.with_name(stem.name + suffix)
            path.write_text(text, encoding="utf-8")
            written.append(path)
        return written


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cell(cell: str) -> str:
    text = escape(cell)
    return f"<strong>{text.replace('**', '')}</strong>" if "**" in text else text
