"""What the pages show: everything a template needs, from the review set and the store."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jinja2

from neighboragg.encoders import PICTURE_TYPES
from neighboragg.review._contrast import ColumnContrast, column_scales, contrast
from neighboragg.review._decision import Decision, DecisionConflictError
from neighboragg.review._guard import RefusedError, csrf_token
from neighboragg.review._items import ReviewItem, ReviewSet
from neighboragg.review._queue import QUEUE_NAMES, SHOW_NAMES, Queue, Queues, ReviewFilter
from neighboragg.review._statistics import statistics_of_counts
from neighboragg.review._store import DecisionStore
from neighboragg.review._texts import PAST, environment, link

__all__ = ["Site"]

_MOST_COLUMNS = 12
_MOST_BARS = 6
_MOST_NUMBERED = 9


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
    flagged: frozenset[int]
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
            flagged=frozenset(int(item.row) for item in review_set.flagged),
            queues=Queues(review_set, store),
            images=frozenset(str(content["image"]) for content in contents if tuple(content) == ("image",)),
            scales=column_scales(review_set),
            templates=environment(),
        )

    def page(self, template: str, session: str, chosen: ReviewFilter, **context: Any) -> str:
        """Render a page with its header: queues, filter, progress, statistics."""
        queues, part = self.queues.whole(), self.queues.filtered(chosen)
        reviewer = self.store.sessions.reviewer(session)
        return self.templates.get_template(template).render(
            review_set=self.review_set,
            csrf=csrf_token(self.token, session),
            chosen=chosen,
            filter_fields=chosen.query(),
            reviewer=reviewer,
            tabs=_tabs(chosen, queues),
            progress={"done": len(part) - part.count("todo"), "total": len(part)},
            statistics=statistics_of_counts(
                self.review_set,
                *(queue.counts for queue in queues.values()),
                confidence_level=self.confidence_level,
            ),
            show_names=SHOW_NAMES,
            undoable=self.store.last_of(reviewer),
            title_of=lambda row: self.items[row].title,
            past=PAST,
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
        queue = self.queues.filtered(chosen)
        # While rows are being decided one walks through all, decided or not, to be able to go back to the last.
        walked = "all" if chosen.show == "todo" else chosen.show
        before, after = queue.around(row, walked)
        columns = contrast(item, self.review_set.columns, self.scales) if item.kind == "table" else []
        main, rest = _most_different(columns)
        return self.page(
            "item.html",
            session,
            chosen,
            item=item,
            version=history[-1].id if history else 0,
            history=history,
            decision=self.store.in_force(row),
            did=did,
            other=self.store.sessions.look_at(row, session=session, seconds=self.lease_seconds),
            before=before,
            after=after,
            place=queue.number(row, walked),
            length=queue.count(walked),
            main_columns=main,
            rest_columns=rest,
            bars=_bars(item, self.review_set.classes),
            groups=self._groups(item),
            numbered=len(self.review_set.classes) <= _MOST_NUMBERED,
            classes=[*self.review_set.classes, *self.queues.new_classes],
            flagged=self.flagged,
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
        later = replace(chosen, show="later").query()
        n_later = self.queues.filtered(chosen).count("later")
        return self.page("done.html", session, chosen, did=did, later=later, n_later=n_later)

    def image(self, path: str) -> tuple[Path, str]:
        """Return the file and the type of a picture of the review set."""
        if self.image_root is None or path not in self.images:
            raise RefusedError(404, "No such picture", "The review set has no such picture.")
        file = (self.image_root / path).resolve()
        # A link in the folder could still lead out of it.
        if not file.is_relative_to(self.image_root) or not file.is_file():
            raise RefusedError(404, "No such picture", "The picture is missing from the folder of images.")
        return file, PICTURE_TYPES[Path(path).suffix.lower()]

    def _groups(self, item: ReviewItem) -> list[dict[str, Any]]:
        """Neighbors of the given and of the suggested class; one group if they are the same class."""
        groups = [{"role": "given", "label": item.given, "neighbors": item.given_neighbors}]
        if item.suggested != item.given:
            groups.append(
                {"role": "suggested", "label": item.suggested, "neighbors": item.suggested_neighbors}
            )
        return groups


def _tabs(chosen: ReviewFilter, queues: dict[str, Queue]) -> list[dict[str, Any]]:
    return [
        {
            "title": QUEUE_NAMES[name],
            "done": len(queue) - queue.count("todo"),
            "total": len(queue),
            "current": name == chosen.queue,
            "query": {} if name == "flagged" else {"queue": name},
        }
        for name, queue in queues.items()
        if len(queue)
    ]


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
