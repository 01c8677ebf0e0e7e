"""The labels of files that do not fit in memory: judged part by part, the flagged rows listed."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from neighboragg._core.files import check_outputs
from neighboragg._core.packages import import_extra
from neighboragg._core.progress import Listener, announce, telling
from neighboragg._data.parquet import list_files
from neighboragg._run.gather import take_rows
from neighboragg._run.work import Written
from neighboragg.exceptions import InvalidInputError, InvalidParameterError
from neighboragg.features import ColumnRole, check_usable, column_roles, describe_roles
from neighboragg.labels._files import find_mislabeled
from neighboragg.labels._outputs import write_csv
from neighboragg.labels._rules import FlagRule

PURPOSE = "An audit of Parquet files"
N_SHOWN = 5
# Rows that columns are looked at in, to see what each is good for.
LOOKED_AT = 20_000
# Flagged rows that are listed with their columns, the most suspicious; a person reads no more.
MOST_LISTED = 100_000


@dataclass(frozen=True, eq=False)
class LargeAudit:
    """What an audit of files found; made by :func:`audit_files`."""

    flagged: Path
    judged: Written
    n_flagged: int
    roles: tuple[ColumnRole, ...] = field(repr=False)
    exchanges: dict[tuple[str, str], int] = field(repr=False)

    def summary(self) -> str:
        """What was judged by what, and what was found, as text."""
        n = self.judged.n_rows
        parts = [
            f"{n:,} labels, judged by:\n{describe_roles(self.roles)}",
            f"{self.n_flagged:,} labels flagged ({self.n_flagged / n:.1%}).",
        ]
        if self.exchanges:
            ranked = sorted(self.exchanges.items(), key=lambda item: (-item[1], item[0]))[:N_SHOWN]
            lines = (f"  {count:,} × {given!r} → {suggested!r}" for (given, suggested), count in ranked)
            parts.append("Most frequent exchanges:\n" + "\n".join(lines))
        if self.n_flagged > MOST_LISTED:
            parts.append(
                f"Note: the {MOST_LISTED:,} most suspicious rows are listed; all are in {self.judged.path}."
            )
        return "\n\n".join(parts)


def audit_files(
    source: Any,
    output: str | PathLike[str],
    *,
    label: str,
    flag: FlagRule | str | float = "estimated",
    columns: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    keep: Sequence[str] = (),
    sample_rows: int = 50_000,
    client: Any = None,
    part_rows: int = 65_536,
    batch_rows: int = 4096,
    n_jobs: int | None = None,
    random_state: int = 0,
    overwrite: bool = False,
    progress: Listener | None = None,
) -> LargeAudit:
    """Find suspicious labels in Parquet files of any size.

    Parameters
    ----------
    source : path-like, str or list of these
        Parquet files, as in :func:`neighboragg.score`.
    output : path-like
        CSV file for the flagged rows. The judgment of all rows goes beside it, to a folder with ``.judged`` for its
        suffix; the same call again goes on where it was stopped. That folder must not lie in the source.
    label : str
        Column of labels.
    flag : FlagRule, "estimated" or float, default="estimated"
        What to flag, as in :func:`neighboragg.labels._files.find_mislabeled`.
    columns, exclude, keep : sequence of str
        As in :func:`audit`. What columns are good for is seen from 20,000 rows drawn at random.
    sample_rows : int, default=50000
        Rows that the detector is fitted on; all rows are judged against them.
    client, part_rows, batch_rows, n_jobs, progress
        As in :func:`neighboragg.score`.
    random_state : int, default=0
    overwrite : bool, default=False
        Whether the CSV file may be replaced.

    Returns
    -------
    audit : LargeAudit

    Notes
    -----
    Labels are those of `find_mislabeled` for files, which says what a sample means for them. Copies
    of rows and rows unlike all others, which :func:`audit` finds as well, are not looked for.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pandas as pd
    >>> from sklearn.datasets import load_iris
    >>> from neighboragg.labels import audit_files
    >>> frame = load_iris(as_frame=True).frame
    >>> frame["target"] = frame["target"].map({0: "setosa", 1: "versicolor", 2: "virginica"})
    >>> frame.loc[7, "target"] = "virginica"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     folder = pathlib.Path(folder)
    ...     frame.to_parquet(folder / "iris.parquet")
    ...     found = audit_files(folder / "iris.parquet", folder / "suspicious.csv", label="target")
    ...     worst = pd.read_csv(found.flagged).iloc[0]
    >>> int(worst["row"]), worst["given"], worst["suggested"]
    (7, 'virginica', 'setosa')
    """
    path = Path(output)
    if path.suffix.lower() != ".csv":
        raise InvalidParameterError(
            f"The output {path} must end in .csv; the judgment of all rows goes beside it."
        )
    check_outputs(path, overwrite=overwrite)
    folder = path.with_suffix(".judged")
    # Once for all: rows are known by their number, which another list of files would give to other rows.
    files = list_files(source, output=folder)
    with telling(progress):
        announce("Looking at columns")
        frame = take_rows(files, LOOKED_AT, client=client, part_rows=part_rows, random_state=random_state)
        if label not in frame.columns:
            raise InvalidInputError(
                f"There is no column {label!r} in {source}.\n"
                f"Hint: the columns are {', '.join(map(repr, frame.columns))}."
            )
        if (missing := frame[label].isna()).any():
            raise InvalidInputError(
                f"There is no label in row {missing.idxmax()}, counted from 0 in all files together.\n"
                "Hint: drop the rows without a label."
            )
        roles = _roles(frame, label, columns=columns, exclude=exclude, keep=keep)
        judged = find_mislabeled(
            files,
            folder,
            label=label,
            columns=[role.name for role in roles if role.used],
            flag=flag,
            sample_rows=sample_rows,
            client=client,
            part_rows=part_rows,
            batch_rows=batch_rows,
            n_jobs=n_jobs,
            random_state=random_state,
        )
        announce("Listing flagged rows")
        listed = _flagged(judged)
        exchanges = Counter(zip(listed["given"].map(str), listed["suggested"].map(str), strict=True))
        shown = listed.nsmallest(MOST_LISTED, "score", keep="first")
        own = take_rows(files, shown["row"].to_numpy(), client=client, part_rows=part_rows).loc[shown["row"]]
        own = own.drop(columns=label).reset_index(drop=True)
        own.columns = [name if name not in shown.columns else f"{name} (data)" for name in own.columns]
        pandas = import_extra("pandas", extra="dask", purpose=PURPOSE)
        write_csv(pandas.concat([shown.reset_index(drop=True), own], axis=1), path)
    return LargeAudit(path, judged, len(listed), roles, dict(exchanges))


def _roles(frame: Any, label: str, **choices: Any) -> tuple[ColumnRole, ...]:
    """What each column is used for, seen from some of the rows."""
    labels = frame[label].astype(str).to_numpy(dtype=object)
    roles = column_roles(frame.drop(columns=label), labels, **choices)
    check_usable(roles)
    return roles


def _flagged(judged: Written) -> Any:
    """The flagged rows of all parts: number, given and suggested label, trust in it, score."""
    pandas = import_extra("pandas", extra="dask", purpose=PURPOSE)
    found, first = [], 0
    for file in judged.files:
        part = pandas.read_parquet(file)
        part.insert(0, "row", np.arange(first, first + len(part)))
        found.append(part[part["flagged"]].drop(columns="flagged"))
        first += len(part)
    return pandas.concat(found, ignore_index=True)
