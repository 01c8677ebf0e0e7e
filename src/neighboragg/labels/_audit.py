"""audit: find suspicious labels, with reasons, in labeled rows."""

import warnings
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

from neighboragg._core.checks import check_integer
from neighboragg._core.inputs import draw_sample, take_rows
from neighboragg._core.progress import Listener, begin_stage, report_to
from neighboragg._core.types import Array, ArrayLike, BoolArray, FloatArray, IntArray
from neighboragg._data.folder import FolderSource
from neighboragg._data.labels import check_class_labels, label_notes
from neighboragg._data.matrix import read_proba
from neighboragg._data.open import open_source
from neighboragg._data.source import HeldSource, Source
from neighboragg._run.executor import executor_for
from neighboragg._run.gather import gather
from neighboragg.exceptions import InvalidInputError, InvalidParameterError, TrustWarning
from neighboragg.labels._by import Basis, By, Columns, Images, Labeled, UsableRows
from neighboragg.labels._detector import MislabelDetector, find_mislabeled
from neighboragg.labels._findings import KINDS, ConflictingCopies, Finding, Look
from neighboragg.labels._outputs import Audit, Origin
from neighboragg.labels._result import MislabelResult, label_p_values
from neighboragg.labels._review_set import build_review_set, rows_to_review
from neighboragg.labels._rules import FlagRule, Flags, Sampled, as_rule

# Rows to fit the detector on, unless `sample` is given.
MAX_FITTED = 50_000
# Rows per call of a model, and per part of a source.
BATCH_ROWS, PART_ROWS = 4096, 65_536
# Flagged rows to list and review, the most suspicious first; nobody reads more.
MAX_LISTED = 100_000
YES, NO = {"1", "1.0", "true", "yes", "x"}, {"", "0", "0.0", "false", "no"}


def audit(
    source: Any,
    label: str | None = None,
    *,
    by: By | None = None,
    proba: Any = None,
    flag: FlagRule | str | float = "estimated",
    verified: str | ArrayLike | None = None,
    split: str | None = None,
    sample: int | None = None,
    client: Any = None,
    n_random: int = 50,
    n_jobs: int | None = None,
    random_state: int = 0,
    progress: Listener | None = None,
) -> Audit:
    """Find suspicious labels: ranked, with the suggested label and the reasons.

    Also finds copies of a row with different labels, copies across a split, rows unlike all others and unreadable
    images.

    Parameters
    ----------
    source : path-like, str, list of these, Table, data frame or data set
        A CSV, JSON lines, Excel, Feather or Parquet file; Parquet files of any size as a folder, a pattern such as
        ``"labeled/*.parquet"``, a list or an address such as ``s3://…``; a folder with one subfolder of images
        per class; a :class:`Table` for a file with reading options; a pandas or polars data frame, an Arrow table or
        a Hugging Face data set.
    label : str, default=None
        Name of the label column. Must be None for a folder of images. Labels are compared as text. Rows with a missing
        or blank label are not scored.
    by : Columns, Text, Images or Embeddings, default=None
        The evidence to score labels by, from :mod:`neighboragg.labels`. None means ``Columns()``, or ``Images()``
        for a folder of images.
    proba : path-like, array-like or DataFrame of shape (n_rows, n_classes), default=None
        *Out-of-fold* probabilities of a classifier. Columns are in the order of the sorted labels, by value if all
        labels are numbers (2 before 10), else as text; or named by a data frame, a table file with a header, or an .npz
        file with the arrays ``proba`` and ``classes``. Named classes may be absent from the table.
    flag : FlagRule, "estimated", int or float, default="estimated"
        What to flag, as in :func:`find_mislabeled`.
    verified : str or array-like, default=None
        Rows whose labels were verified to be right: a column that marks them with 1, true, yes or x; a mask; or row
        numbers. They are never flagged. Required by :class:`~neighboragg.labels.FDR`.
    split : str, default=None
        Column with the part (train, test) of each row. Copies in different parts are findings. The column is not
        evidence about labels.
    sample : int, default=None
        Number of rows to fit the detector on, drawn at random; None means 50,000. The detector then scores all other
        rows, part by part.
    client : dask.distributed.Client, default=None
        Cluster to score the rows outside the sample on. None scores them in this process.
    n_random : int, default=50
        Unflagged rows to add to the review; the estimate of the errors left is based on them.
    n_jobs : int, default=None
        Threads.
    random_state : int, default=0
    progress : callable, default=None
        Called as ``progress(stage, done, total)`` with a text and two numbers; `total` is 0 until it is known.

    Returns
    -------
    audit : Audit

    Notes
    -----
    Rows of the sample are scored out of sample: by models of other folds and by their neighbors. All other rows are
    scored by the models fitted on the sample. Rules flag by the scores of all rows together, except that "estimated"
    uses the threshold of the sample. Copies and rows unlike all others are searched only in the sample.

    The labels, scores and trust of all rows stay in memory, as do the columns of the sample. Everything else is read
    part by part. Repeat the call to resume an interrupted audit of files: finished parts stay in the folder
    ``~/.cache/neighboragg`` (or ``NEIGHBORAGG_HOME``) until the audit ends.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from neighboragg import audit
    >>> frame = load_iris(as_frame=True).frame
    >>> frame["target"] = frame["target"].map({0: "setosa", 1: "versicolor", 2: "virginica"})
    >>> frame.loc[7, "target"] = "virginica"
    >>> found = audit(frame, "target", flag=1)
    >>> found.to_frame()[["row", "given", "suggested"]].values.tolist()
    [[7, 'virginica', 'setosa']]
    """
    rule = as_rule(flag, "audit")
    most = MAX_FITTED if sample is None else check_integer(sample, "sample", "audit", minimum=2)
    with report_to(progress):
        begin_stage("Reading the table")
        data = open_source(source)
        column = _label_column(data, label)
        labels = data.texts(column)
        check_class_labels(labels, column)
        labeled = np.flatnonzero(labels != "")
        codes = np.unique(labels[labeled], return_inverse=True)[1]
        fitted_rows = labeled[draw_sample(codes, most, random_state)]
        looked_at = labeled if isinstance(data, HeldSource) else fitted_rows
        marks = tuple(name for name in (split, verified) if isinstance(name, str))
        table = Labeled(data, data.named(column), labels, looked_at, marks, random_state)
        parts = None if split is None else data.texts(table.column(split, "the split"))
        is_verified = _verified_rows(verified, table)
        all_proba = None if proba is None else read_proba(proba, labels)
        begin_stage("Looking at the columns")
        basis = (by or (Images() if isinstance(data, FolderSource) else Columns())).bind(table)
        usable = basis.read(fitted_rows)
        if len(usable.rows) < 2 or len(np.unique(labels[usable.rows])) < 2:
            raise _nothing_left(usable, data)
        is_whole = len(fitted_rows) == len(labeled)
        settings: dict[str, Any] = {
            "features": basis.features,
            "random_state": random_state,
            "n_jobs": n_jobs,
        }
        given: dict[str, Any] = {"proba": _proba_of(all_proba, labels, usable.rows)}
        if is_verified is not None:
            given["verified"] = is_verified[usable.rows]
        detector = None
        if is_whole:
            result = find_mislabeled(usable.X, labels[usable.rows], flag=rule, **settings, **given)
            rows, problems, fitted = usable.rows, dict(usable.problems), result
        else:
            unverified = np.zeros(len(labels), dtype=bool) if is_verified is None else is_verified
            rule.check(unverified[labeled])
            detector = MislabelDetector(flag=Sampled(rule), **settings)
            if not given.get("verified", np.zeros(1)).any():
                given.pop("verified", None)
            fitted = detector.fit(usable.X, labels[usable.rows], **given).result_
            others = np.setdiff1d(labeled, fitted_rows)
            work = ScoreRows(detector, basis, labels, others, all_proba)
            spans = [span for span in data.parts(PART_ROWS) if len(work.within(span))]
            # The name of an encoder does not identify its output; its vectors are cached elsewhere.
            named = data.files and getattr(by, "encoder", None) is None
            matrix = getattr(basis, "matrix", None)
            identity = (
                (data.digest, column, by, matrix, most, random_state, all_proba, unverified, basis.roles)
                if named
                else ()
            )
            begin_stage("Scoring the rows outside the sample")
            scored = gather(work, spans, executor_for(client, None), identity)
            result, rows = _whole_result(rule, fitted, usable.rows, scored, labels, unverified)
            problems = dict(usable.problems) | {
                int(row): str(why)
                for one in scored
                for row, why in zip(one["unfit"], one["why"], strict=True)
            }
        begin_stage("Searching for copies")
        frame = data.take(usable.rows, [name for name in table.columns if name != basis.hidden])
        matrix = usable.X if basis.features == "passthrough" else None
        place = np.searchsorted(rows, usable.rows)
        look = Look(
            fitted,
            usable.rows,
            basis.roles,
            frame,
            matrix,
            None if parts is None else parts[usable.rows],
            problems,
        )
        findings = [found for kind in KINDS for found in kind.find(look)]
        begin_stage("Preparing the review")
        listed = rows_to_review(result, n_random, random_state, MAX_LISTED)
        if detector is not None:
            result = _with_evidence(result, rows, listed, place, fitted, detector, basis, labels, all_proba)
        result = _with_copies(result, findings, data, labels, rows)
        shown = _shown_rows(result, rows, listed)
        frame = data.take(shown, [name for name in table.columns if name != basis.hidden]).set_axis(shown)
        origin = Origin.of(source, data, column)
        review_set = build_review_set(
            frame,
            result,
            listed,
            rows,
            title=f"Labels of {Path(data.name).name}",
            n_rows=len(data),
            shown=basis.shown,
            name_of=data.place_of,
            digests_of=data.digests_of,
            source={} if origin is None else asdict(origin),
        )
        notes = [*data.notes, *_notes(data, labels, labeled, result, look)]
        if not is_whole:
            notes.append(
                f"{len(usable.rows):,} rows drawn at random were scored out of sample, and the other "
                f"{len(rows) - len(usable.rows):,} by the detector fitted on these. Copies and odd rows were searched "
                "only among the former."
            )
        kinds = tuple(kind for kind in KINDS if kind.applies(look))
        return Audit(
            data,
            labels,
            result,
            rows,
            basis.roles,
            tuple(findings),
            kinds,
            review_set,
            frame,
            tuple(notes),
            basis.summary,
        )


def _label_column(data: Source, label: str | None) -> str:
    """The label column, named by the user unless the source has its own."""
    if data.own_label is not None:
        if label is not None:
            raise InvalidInputError(
                f"{data.name} is a folder of images, labeled by its subfolders. It does not have a column {label!r}.\n"
                "Hint: leave out the label column, or name a file."
            )
        return data.own_label
    if label is None:
        raise InvalidParameterError(
            "A table needs the name of its label column.\nHint: --label name, or label= in Python."
        )
    return label


def _verified_rows(verified: Any, table: Labeled) -> BoolArray | None:
    """A mask of the rows whose labels are verified."""
    if verified is None:
        return None
    n = len(table.source)
    if isinstance(verified, str):
        marks = np.char.lower(table.source.texts(table.column(verified, "verified rows")))
        if unclear := sorted(set(marks.tolist()) - YES - NO):
            raise InvalidInputError(
                f"The column {verified!r} of {table.source.name} contains {unclear[0]!r}, which is neither yes "
                "nor no.\nHint: mark verified rows with 1, true, yes or x, and leave the others empty."
            )
        return np.isin(marks, sorted(YES))
    given = np.asarray(verified)
    if given.dtype == bool and given.shape == (n,):
        return given
    if (
        given.ndim != 1
        or given.dtype.kind not in "iu"
        or (given.size and not 0 <= given.min() <= given.max() < n)
    ):
        raise InvalidInputError(
            f"verified must be the name of a column, a mask of {n} rows, or row numbers. "
            f"Got an array of {given.dtype} of shape {given.shape}."
        )
    mask = np.zeros(n, dtype=bool)
    mask[given] = True
    return mask


def _nothing_left(usable: UsableRows, data: Source) -> InvalidInputError:
    lines = [f"  {data.place_of(row)}: {why}" for row, why in list(usable.problems.items())[:10]]
    rest = len(usable.problems) - len(lines)
    return InvalidInputError(
        f"{len(usable.problems):,} images of {data.name} cannot be read or shown, so too few labels are "
        "left to compare:\n" + "\n".join([*lines, *([f"  and {rest:,} more"] if rest else [])])
    )


def _proba_of(proba: FloatArray | None, labels: Array, rows: IntArray, classes: Array | None = None) -> Any:
    """Probabilities of some rows, for the classes of the fitted rows only."""
    if proba is None:
        return None
    present = np.unique(labels[labels != ""])
    kept = proba[np.ix_(rows, np.isin(present, np.unique(labels[rows]) if classes is None else classes))]
    totals = kept.sum(axis=1, keepdims=True)
    return np.where(totals > 0, kept / np.where(totals > 0, totals, 1.0), 1.0 / kept.shape[1])


@dataclass(frozen=True, eq=False)
class ScoreRows:
    """Score the labels of a range of rows."""

    detector: MislabelDetector
    basis: Basis
    labels: Array
    rows: IntArray
    proba: FloatArray | None

    def within(self, span: tuple[int, int]) -> IntArray:
        """The rows to score in a range."""
        first, last = np.searchsorted(self.rows, span)
        return self.rows[first:last]

    def __call__(self, span: tuple[int, int]) -> dict[str, Array]:
        """Numbers, scores and trust of the rows in a range, and the reasons why others cannot be scored."""
        usable = self.basis.read(self.within(span))
        scores, trust = np.empty(len(usable.rows)), np.empty((len(usable.rows), len(self.detector.classes_)))
        for start in range(0, len(usable.rows), BATCH_ROWS):
            chosen = np.arange(start, min(start + BATCH_ROWS, len(usable.rows)))
            rows = usable.rows[chosen]
            proba = _proba_of(self.proba, self.labels, rows, self.detector.classes_)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", TrustWarning)  # many rows may be copies of fitted ones
                found = self.detector.judge(take_rows(usable.X, chosen), self.labels[rows], proba=proba)
            scores[chosen], trust[chosen] = found.scores, found.trust
        return {
            "rows": usable.rows,
            "scores": scores,
            "trust": trust,
            "unfit": np.array(list(usable.problems), dtype=np.intp),
            "why": np.array(list(usable.problems.values()), dtype=str),
        }


def _whole_result(
    rule: FlagRule,
    fitted: MislabelResult,
    fitted_rows: IntArray,
    scored: list[dict[str, Array]],
    labels: Array,
    verified: BoolArray,
) -> tuple[MislabelResult, IntArray]:
    """The result for the sample and all other rows together, and their row numbers."""
    rows = np.concatenate([fitted_rows, *(one["rows"] for one in scored)])
    order = np.argsort(rows, kind="stable")
    rows = rows[order]
    scores = np.concatenate([fitted.scores, *(one["scores"] for one in scored)])[order]
    trust = np.concatenate([fitted.trust, *(one["trust"] for one in scored)])[order]
    codes, row = np.searchsorted(fitted.classes, labels[rows]), np.arange(len(rows))
    without = trust.copy()
    without[row, codes] = -np.inf
    other = without.argmax(axis=1)
    p_wrong = expit(-scores)
    if rule.needs_evidence and fitted.threshold == -np.inf:  # the rows do not predict the labels
        flags = Flags(np.zeros(len(rows), dtype=bool), -np.inf, fitted.promise)
    else:
        flags = rule.flag_all(
            scores,
            verified[rows],
            Flags(fitted.mask, fitted.threshold, fitted.promise),
            float(p_wrong.mean()),
        )
    k = fitted.given_neighbors.shape[1]
    return replace(
        fitted,
        mask=flags.mask,
        scores=scores,
        p_wrong=p_wrong,
        p_values=label_p_values(scores, verified[rows]),
        given=labels[rows],
        suggested=fitted.classes[other],
        label_trust=trust[row, codes],
        suggested_trust=trust[row, other],
        trust=trust,
        reasons=((),) * len(rows),
        threshold=flags.threshold,
        promise=flags.promise,
        noise_rate=float(p_wrong.mean()),
        given_neighbors=np.full((len(rows), k), -1),
        suggested_neighbors=np.full((len(rows), k), -1),
        given_distances=np.full((len(rows), k), np.inf, dtype=np.float32),
        suggested_distances=np.full((len(rows), k), np.inf, dtype=np.float32),
        index=None,
    ), rows


def _with_evidence(
    result: MislabelResult,
    rows: IntArray,
    listed: IntArray,
    place: IntArray,
    fitted: MislabelResult,
    detector: MislabelDetector,
    basis: Basis,
    labels: Array,
    proba: FloatArray | None,
) -> MislabelResult:
    """Add reasons and neighbors (from the sample) of the listed rows to the result."""
    reasons = list(result.reasons)
    names = ("given_neighbors", "suggested_neighbors", "given_distances", "suggested_distances")
    arrays = {name: getattr(result, name).copy() for name in names}

    def put(positions: IntArray, found: Any, taken: Any) -> None:
        for name, array in arrays.items():
            values = getattr(found, name)[taken]
            array[positions] = np.where(values >= 0, place[values], -1) if "neighbors" in name else values

    position = np.full(len(rows), -1)
    position[place] = np.arange(len(place))
    inside, outside = listed[position[listed] >= 0], np.sort(listed[position[listed] < 0])
    put(inside, fitted, position[inside])
    for i in inside.tolist():
        reasons[i] = fitted.reasons[int(position[i])] if result.mask[i] else ()
    for start in range(0, len(outside), BATCH_ROWS):
        chosen = outside[start : start + BATCH_ROWS]
        usable = basis.read(rows[chosen])
        found = detector.evidence(
            usable.X, labels[usable.rows], proba=_proba_of(proba, labels, usable.rows, detector.classes_)
        )
        put(chosen, found, slice(None))
        for i, why in zip(chosen.tolist(), found.reasons, strict=True):
            reasons[i] = why if result.mask[i] else ()
    return replace(result, reasons=tuple(reasons), **arrays)


def _with_copies(
    result: MislabelResult, findings: list[Finding], data: Source, labels: Array, rows: IntArray
) -> MislabelResult:
    """Add the copies that contradict flagged rows to their reasons."""
    reasons = list(result.reasons)
    for found in findings:
        if found.kind == ConflictingCopies.name:
            for row in found.rows:
                i = int(np.searchsorted(rows, row))
                others = [other for other in found.rows if labels[other] != labels[row]]
                if result.mask[i] and others:
                    copy = f"copy in {data.place_of(others[0])} is {str(labels[others[0]])!r}"
                    reasons[i] = (*reasons[i], copy)
    return replace(result, reasons=tuple(reasons))


def _shown_rows(result: MislabelResult, rows: IntArray, listed: IntArray) -> IntArray:
    """Row numbers of the listed rows and their neighbors."""
    near = np.concatenate(
        [result.given_neighbors[listed].ravel(), result.suggested_neighbors[listed].ravel()]
    )
    return rows[np.unique(np.concatenate([listed, near[near >= 0]]))]


def _notes(data: Source, labels: Array, labeled: IntArray, result: MislabelResult, look: Look) -> list[str]:
    """Notes about the table and the scores."""
    notes = [*label_notes(labels), *(role.doubt for role in look.roles if role.doubt)]
    if len(labeled) < len(data):
        notes.append(
            f"{len(data) - len(labeled):,} of {len(data):,} rows are left out because their label is missing."
        )
    if result.threshold == -np.inf:
        notes.append(result.promise)  # why nothing could be flagged
    if look.groups is None:
        notes.append("Most rows are duplicates, so duplicates are not reported.")
    return notes
