"""What the pages show: everything a template needs, from the review set and the store."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import jinja2

from neighboragg.exceptions import InvalidInputError
from neighboragg.review._checks import IMAGE_TYPES
from neighboragg.review._contrast import ColumnContrast, column_scales, contrast, show_value
from neighboragg.review._decision import Decision, DecisionConflictError
from neighboragg.review._guard import RefusedError, csrf_token
from neighboragg.review._items import Neighbor, ReviewItem, ReviewSet
from neighboragg.review._queue import QUEUE_NAMES, SHOW_NAMES, Queues, ReviewFilter
from neighboragg.review._statistics import review_statistics
from neighboragg.review._store import DecisionStore

__all__ = ["Site", "check_name", "link"]

_MOST_COLUMNS = 12
_MOST_BARS = 6
_MOST_NUMBERED = 9
_PAST = {
    "keep": "kept",
    "relabel": "relabeled",
    "skip": "skipped",
    "unsure": "marked unsure",
    "undo": "undone",
}


@dataclass(frozen=True, slots=True)
class Site:
    """The review set with its store and its templates."""

    review_set: ReviewSet
    store: DecisionStore
    token: str
    image_root: Path | None
    lease_seconds: float
    confidence_level: float
    items: dict[int, ReviewItem]
    queues: Queues
    images: frozenset[str]
    scales: dict[str, float]
    templates: jinja2.Environment

    @classmethod
    def build(
        cls,
        review_set: ReviewSet,
        store: DecisionStore,
        *,
        token: str,
        image_root: Path | None,
        lease_seconds: float,
        confidence_level: float,
    ) -> "Site":
        """Prepare what does not change between requests."""
        contents = [item.content for item in review_set.items]
        contents += [near.content for item in review_set.items for near in item.neighbors]
        return cls(
            review_set=review_set,
            store=store,
            token=token,
            image_root=None if image_root is None else image_root.resolve(),
            lease_seconds=lease_seconds,
            confidence_level=confidence_level,
            items={int(item.row): item for item in review_set.items},
            queues=Queues(review_set),
            images=frozenset(str(content["image"]) for content in contents if tuple(content) == ("image",)),
            scales=column_scales(review_set),
            templates=_environment(),
        )

    def page(self, template: str, session: str, chosen: ReviewFilter, **context: Any) -> str:
        """Render a page with its header: queues, filter, progress, statistics."""
        decisions = self.store.current()
        reviewer = self.store.reviewer(session)
        return self.templates.get_template(template).render(
            review_set=self.review_set,
            csrf=csrf_token(self.token, session),
            chosen=chosen,
            filter_fields=chosen.query(),
            reviewer=reviewer,
            tabs=self._tabs(chosen, decisions),
            progress=self._progress(chosen, decisions),
            statistics=review_statistics(self.review_set, decisions, confidence_level=self.confidence_level),
            show_names=SHOW_NAMES,
            undoable=self.store.last_of(reviewer),
            past=_PAST,
            link=link,
            **context,
        )

    def refusal(self, error: RefusedError) -> str:
        """Render the page of a refused request."""
        return self.templates.get_template("refused.html").render(error=error)

    def item_page(self, row: int, session: str, chosen: ReviewFilter, did: Decision | None) -> str:
        """Render one row with its evidence."""
        item = self.items[row]
        # The log is read before the rest: a decision that comes in between makes the version stale, not wrong.
        history = self.store.log(row)
        decisions = self.store.current()
        walk = self.queues.walk(chosen, decisions)
        before, after = self.queues.around(row, walk, chosen.queue)
        columns = contrast(item, self.review_set.columns, self.scales) if item.kind == "table" else []
        main, rest = _most_different(columns)
        return self.page(
            "item.html",
            session,
            chosen,
            item=item,
            version=history[-1].id if history else 0,
            history=history,
            decision=decisions.get(row),
            did=did,
            other=self.store.look_at(row, session=session, seconds=self.lease_seconds),
            before=before,
            after=after,
            place=walk.index(row) + 1 if row in walk else None,
            length=len(walk),
            main_columns=main,
            rest_columns=rest,
            bars=_bars(item, self.review_set.classes),
            groups=self._groups(item),
            numbered=len(self.review_set.classes) <= _MOST_NUMBERED,
        )

    def conflict_page(
        self, error: DecisionConflictError, attempt: dict[str, Any], session: str, chosen: ReviewFilter
    ) -> str:
        """Render both decisions, and the choice between them."""
        return self.page(
            "conflict.html", session, chosen, error=error, attempt=attempt, item=self.items[error.row]
        )

    def done_page(self, session: str, chosen: ReviewFilter, did: Decision | None) -> str:
        """Render the page at the end of a queue."""
        later = ReviewFilter(chosen.queue, chosen.label, chosen.low, chosen.high, "later")
        n_later = len(self.queues.rows(later, self.store.current()))
        return self.page("done.html", session, chosen, did=did, later=later.query(), n_later=n_later)

    def image(self, path: str) -> tuple[Path, str]:
        """Return the file and the type of a picture of the review set."""
        if self.image_root is None or path not in self.images:
            raise RefusedError(404, "No such picture", "The review set has no such picture.")
        file = (self.image_root / path).resolve()
        # A link in the folder could still lead out of it.
        if not file.is_relative_to(self.image_root) or not file.is_file():
            raise RefusedError(404, "No such picture", "The picture is missing from the folder of images.")
        return file, IMAGE_TYPES[Path(path).suffix.lower()]

    def _groups(self, item: ReviewItem) -> list[dict[str, Any]]:
        """Neighbors of the given and of the suggested class; one group if they are the same class."""
        groups = [{"role": "given", "label": item.given, "neighbors": item.given_neighbors}]
        if item.suggested != item.given:
            groups.append(
                {"role": "suggested", "label": item.suggested, "neighbors": item.suggested_neighbors}
            )
        return groups

    def _tabs(self, chosen: ReviewFilter, decisions: dict[int, Decision]) -> list[dict[str, Any]]:
        return [
            {
                "name": name,
                "title": title,
                "done": sum(int(item.row) in decisions for item in self.queues.orders[name]),
                "total": len(self.queues.orders[name]),
                "current": name == chosen.queue,
                "query": {} if name == "flagged" else {"queue": name},
            }
            for name, title in QUEUE_NAMES.items()
            if self.queues.orders[name]
        ]

    def _progress(self, chosen: ReviewFilter, decisions: dict[int, Decision]) -> dict[str, int]:
        """How many rows of the filter, whatever is decided about them, have been looked at."""
        rows = self.queues.rows(
            ReviewFilter(chosen.queue, chosen.label, chosen.low, chosen.high, "all"), decisions
        )
        return {"done": sum(row in decisions for row in rows), "total": len(rows)}


def check_name(name: str) -> str:
    """Return a reviewer's name, trimmed; it must not look like a formula in a spreadsheet."""
    name = " ".join(name.split())
    if not re.fullmatch(r"\w[\w .'-]{0,39}", name):
        raise InvalidInputError("A name has up to 40 letters, digits, spaces, points or hyphens.")
    return name


def _most_different(columns: list[ColumnContrast]) -> tuple[list[ColumnContrast], list[ColumnContrast]]:
    """Split a wide table: the columns that differ most, and the rest, both in the order of the data."""
    ranked = sorted(range(len(columns)), key=lambda place: (-max(columns[place].gaps), place))
    main = set(ranked[:_MOST_COLUMNS])
    return (
        [column for place, column in enumerate(columns) if place in main],
        [column for place, column in enumerate(columns) if place not in main],
    )


def _bars(item: ReviewItem, classes: tuple[str, ...]) -> list[dict[str, Any]]:
    """Trust of the most trusted classes, and of the given and suggested ones in any case."""
    trust = dict(zip(classes, item.trust, strict=True))
    ranked = sorted(classes, key=lambda label: -trust[label])
    chosen = set(ranked[:_MOST_BARS]) | {item.given, item.suggested}
    roles = {item.suggested: "suggested", item.given: "given"}
    return [
        {"label": label, "trust": trust[label], "role": roles.get(label, "other")}
        for label in ranked
        if label in chosen
    ]


def link(path: str, *queries: dict[str, str], **fields: Any) -> str:
    """Return an address with the fields that have a value."""
    merged = {name: value for query in queries for name, value in query.items()} | fields
    text = urlencode({name: value for name, value in merged.items() if value not in (None, "")})
    return f"{path}?{text}" if text else path


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "show": show_value,
        "count": lambda number: f"{number:,}",
        "percent": _percent,
        "image_url": lambda path: "/images/" + quote(str(path)),
        "signed": lambda number: f"{number:.2f}".replace("-", "−"),
        "moment": lambda time: f"{time[:10]} {time[11:16]} UTC",
        "values": _neighbor_values,
    }
    return environment


def _percent(share: float) -> str:
    """Whole per cents, but never a rounded 0 or 100."""
    value = 100 * share
    return f"{value:.0f} %" if value in (0, 100) or 0.5 <= value <= 99.5 else f"{value:.1f} %"


def _neighbor_values(neighbors: tuple[Neighbor, ...], name: str) -> list[str | None]:
    return [show_value(neighbor.content.get(name)) for neighbor in neighbors]
