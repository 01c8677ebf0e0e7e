"""The data that the templates of the review page show."""

import io
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from numbers import Real
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import jinja2
import numpy as np

from neighboragg._core.display import _is_missing, show_value
from neighboragg._data.folder import IMAGE_TYPES
from neighboragg._review.queue import QUEUE_NAMES, SHOW_NAMES, Queue, Queues, ReviewFilter, review_statistics
from neighboragg._review.store import Decision, DecisionConflictError, DecisionStore
from neighboragg._web import RefusedError, csrf_token
from neighboragg.exceptions import InvalidInputError
from neighboragg.features import open_image
from neighboragg.labels import Neighbor, ReviewItem, ReviewSet

# A column is marked if its distance from the neighbors is at least this many standard deviations of the column
# (a category that no neighbor shares counts as one), and if it is among the few largest.
_SMALLEST_GAP = 0.75
_MAX_MARKS = 3
_MAX_SCALED = 5_000


@dataclass(frozen=True, slots=True)
class ColumnContrast:
    """One column of a row, with the usual value among the neighbors of the given and of the suggested class."""

    name: str
    value: str | None
    usual: tuple[str | None, str | None]
    gaps: tuple[float, float]
    unlike: tuple[bool, bool]


def column_scales(review_set: ReviewSet) -> dict[str, float]:
    """Standard deviation of each numeric column over a sample of the rows and neighbors of the review set."""
    items = review_set.items[:: 1 + len(review_set.items) // _MAX_SCALED]
    contents = [item.content for item in items]
    contents += [neighbor.content for item in items for neighbor in item.neighbors]
    scales = {}
    for name in review_set.columns:
        numbers = [float(content[name]) for content in contents if _is_number(content.get(name))]  # type: ignore[arg-type]
        spread = float(np.std(numbers)) if numbers else 0.0
        scales[name] = spread if spread > 0.0 else 1.0
    return scales


def contrast(item: ReviewItem, columns: Sequence[str], scales: Mapping[str, float]) -> list[ColumnContrast]:
    """Compare each column of a table row with the neighbors of both classes."""
    names = [name for name in columns if name in item.content]
    groups = (item.given_neighbors, item.suggested_neighbors)
    gaps = [
        [_gap(item.content[name], _values(group, name), scales[name]) for name in names] for group in groups
    ]
    marks = [_marks(group) for group in gaps]
    return [
        ColumnContrast(
            name=name,
            value=show_value(item.content[name]),
            usual=(_usual(_values(groups[0], name)), _usual(_values(groups[1], name))),
            gaps=(gaps[0][place], gaps[1][place]),
            unlike=(place in marks[0], place in marks[1]),
        )
        for place, name in enumerate(names)
    ]


def _values(neighbors: Sequence[Neighbor], name: str) -> list[Any]:
    return [neighbor.content.get(name) for neighbor in neighbors]


def _gap(value: Any, others: list[Any], scale: float) -> float:
    """Distance to the median in standard deviations, or the share of neighbors with another category."""
    if not others:
        return 0.0
    if _is_number(value) and (numbers := [float(other) for other in others if _is_number(other)]):
        return abs(float(value) - float(np.median(numbers))) / scale
    return sum(show_value(other) != show_value(value) for other in others) / len(others)


def _usual(others: list[Any]) -> str | None:
    """Median of numbers, otherwise the most frequent value."""
    if not others:
        return ""
    if numbers := [float(other) for other in others if _is_number(other)]:
        return show_value(float(np.median(numbers)))
    return Counter(show_value(other) for other in others).most_common(1)[0][0]


def _marks(gaps: list[float]) -> set[int]:
    farthest = sorted(range(len(gaps)), key=lambda place: (-gaps[place], place))[:_MAX_MARKS]
    return {place for place in farthest if gaps[place] >= _SMALLEST_GAP}


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and not _is_missing(value)


PAST = {
    "keep": "kept",
    "relabel": "relabeled",
    "exclude": "excluded",
    "skip": "skipped",
    "unsure": "marked unsure",
    "undo": "undone",
}


def check_name(name: str) -> str:
    """Return a reviewer's name, trimmed; a spreadsheet must not read it as a formula."""
    name = " ".join(name.split())
    if not re.fullmatch(r"\w[\w .'-]{0,39}", name):
        raise InvalidInputError(
            "A name must start with a letter or digit and have up to 40 letters, digits, spaces, periods or hyphens."
        )
    return name


def link(path: str, *queries: dict[str, str], **fields: Any) -> str:
    """Return an address with all fields that have a value."""
    merged = {name: value for query in queries for name, value in query.items()} | fields
    text = urlencode({name: value for name, value in merged.items() if value not in (None, "")})
    return f"{path}?{text}" if text else path


@cache
def environment() -> jinja2.Environment:
    """The templates with their filters."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "show": show_value,
        # The path of an image is not capitalized.
        "sentence": lambda text: text if "/" in text else text[:1].upper() + text[1:],
        "count": lambda number: f"{number:,}",
        "percent": _percent,
        "image_url": lambda path: "/images/" + quote(str(path)),
        "signed": lambda number: f"{number:.2f}".replace("-", "−"),
        "moment": lambda time: f"{time[:10]} {time[11:16]} UTC",
        "values": _neighbor_values,
    }
    return environment


def _percent(share: float) -> str:
    """Format a share in whole percent, but never round to 0 or 100."""
    value = 100 * share
    return f"{value:.0f} %" if value in (0, 100) or 0.5 <= value <= 99.5 else f"{value:.1f} %"


def _neighbor_values(neighbors: tuple[Neighbor, ...], name: str) -> list[str | None]:
    return [show_value(neighbor.content.get(name)) for neighbor in neighbors]


SIDE = 320
# Smaller files are sent unchanged.
LARGE_BYTES = 100_000
N_KEPT = 500


def thumbnail(file: Path) -> bytes | None:
    """A small JPEG copy of a large image; None for small or unreadable files."""
    facts = file.stat()
    if facts.st_size < LARGE_BYTES:
        return None
    return _small_copy(file, facts.st_mtime_ns, facts.st_size)


@lru_cache(maxsize=N_KEPT)
def _small_copy(file: Path, changed: int, size: int) -> bytes | None:
    try:
        image = open_image(file)
        image.thumbnail((SIDE, SIDE))
        buffer = io.BytesIO()
        image.save(buffer, "JPEG", quality=85)
    except Exception:  # the browser may be able to show a file that Pillow cannot read
        return None
    return buffer.getvalue()


_MAX_COLUMNS = 12
_MAX_BARS = 6
_MAX_NUMBERED = 9


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
        """Prepare everything that does not change between requests."""
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
            statistics=review_statistics(
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
        # Read the log first: a decision made in the meantime makes the version stale, but never wrong.
        history = self.store.log(row)
        queue = self.queues.filtered(chosen)
        # While deciding, "back" and "next" also visit decided rows, so that one can return to the last decision.
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
            numbered=len(self.review_set.classes) <= _MAX_NUMBERED,
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
        """Render the last page of a queue."""
        later = replace(chosen, show="later").query()
        n_later = self.queues.filtered(chosen).count("later")
        return self.page("done.html", session, chosen, did=did, later=later, n_later=n_later)

    def image(self, path: str) -> tuple[Path, str]:
        """Return the file and the media type of an image of the review set."""
        if self.image_root is None or path not in self.images:
            raise RefusedError(404, "Image not found", "The review set does not contain this image.")
        file = (self.image_root / path).resolve()
        # A symbolic link could still point outside the folder.
        if not file.is_relative_to(self.image_root) or not file.is_file():
            raise RefusedError(404, "Image not found", "The image is missing from the image folder.")
        return file, IMAGE_TYPES[Path(path).suffix.lower()]

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
    """Split the columns of a wide table into those that differ most and the rest, each in the original order."""
    ranked = sorted(range(len(columns)), key=lambda place: (-max(columns[place].gaps), place))
    main = set(ranked[:_MAX_COLUMNS])
    return (
        [column for place, column in enumerate(columns) if place in main],
        [column for place, column in enumerate(columns) if place not in main],
    )


def _bars(item: ReviewItem, classes: tuple[str, ...]) -> list[dict[str, Any]]:
    """Trust of the most trusted classes, always including the given and the suggested class."""
    trust = dict(zip(classes, item.trust, strict=True))
    ranked = sorted(classes, key=lambda label: -trust[label])
    chosen = set(ranked[:_MAX_BARS]) | {item.given, item.suggested}
    roles = {item.suggested: "suggested", item.given: "given"}
    return [
        {"label": label, "trust": trust[label], "role": roles.get(label, "other")}
        for label in ranked
        if label in chosen
    ]
