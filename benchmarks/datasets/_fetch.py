"""Where a data set is found: a local folder, then the cache, then its public source."""

import http.client
import os
import shutil
import urllib.request
import uuid
import warnings
from pathlib import Path

from benchmarks.datasets._dataset import Dataset
from benchmarks.datasets._errors import DatasetNotFoundError
from benchmarks.datasets._parse import read_local, read_public
from benchmarks.datasets._registry import SPECS, RemoteFile, Spec
from neighboragg._core.checks import check_choice
from neighboragg.exceptions import FileFormatError, TrustWarning

__all__ = ["list_datasets", "load_dataset"]

LOCAL_FOLDER = "NEIGHBORAGG_DATA"
CACHE_FOLDER = "NEIGHBORAGG_HOME"
TIMEOUT_SECONDS = 30.0


def list_datasets() -> tuple[str, ...]:
    """Return the names that :func:`load_dataset` knows, sorted.

    Returns
    -------
    names : tuple of str

    Examples
    --------
    >>> from benchmarks.datasets import list_datasets
    >>> len(list_datasets())
    10
    """
    return tuple(sorted(SPECS))


def load_dataset(
    name: str, *, data_home: str | os.PathLike[str] | None = None, download_if_missing: bool = True
) -> Dataset:
    """Load one of the paper's data sets, or one that stands in for it, with its values as published.

    Parameters
    ----------
    name : str
        One of :func:`list_datasets`: the tables ``adult``, ``bank_marketing``, ``card_default``,
        ``landsat``, ``letter``, ``magic_gamma``, ``sensorless_drive``; the texts ``trec_questions``; the
        images ``fashion_mnist`` and ``mnist``.
    data_home : path or None, default=None
        Cache folder. None means the folder named by the environment variable ``NEIGHBORAGG_HOME``, else
        ``~/.cache/neighboragg``.
    download_if_missing : bool, default=True
        Whether to download files that are in neither folder.

    Returns
    -------
    dataset : Dataset

    Raises
    ------
    InvalidParameterError
        If there is no data set of that name.
    DatasetNotFoundError
        If its files are nowhere, or cannot be downloaded. The message says where to get and to put them.
    FileFormatError
        If a file is damaged.

    Warns
    -----
    TrustWarning
        If a downloaded or cached file has other content than the one this version was tested with.

    Notes
    -----
    Three places are tried in order: the folder named by the environment variable ``NEIGHBORAGG_DATA``
    (``letter.csv.gz``, ``mnist/train-images-idx3-ubyte.gz``, …; a user's own files, taken as they are),
    the cache, the public source (UCI, OpenML, and so on). A download is complete in the cache or
    not there at all. Sources may re-pack their archives, so what is checked is the SHA-256 of the parsed
    values (:meth:`Dataset.checksum`). Of ``sensorless_drive`` only the number of rows of the public file is
    known and checked.

    Examples
    --------
    >>> from benchmarks.datasets import list_datasets, load_dataset
    >>> len([name for name in list_datasets() if name.endswith("mnist")])
    2
    >>> load_dataset("letter")  # doctest: +SKIP
    Dataset('letter', n_samples=20000, n_features=16, n_classes=26)
    """
    spec = SPECS[check_choice(name, "name", "load_dataset", choices=SPECS)]
    local = _local_paths(spec)
    if local is not None:
        return read_local(spec, local)
    folder = _cache_folder(data_home) / spec.name
    missing = [file for file in spec.remote_files if not (folder / file.filename).is_file()]
    if missing and not download_if_missing:
        raise _not_found(spec, folder, missing, "")
    for file in missing:
        _download(spec, file, folder)
    paths = [folder / file.filename for file in spec.remote_files]
    try:
        dataset = read_public(spec, paths)
    except FileFormatError:
        # What a source sent instead of data (an error page, say) must not stay behind as data.
        for file in missing:
            (folder / file.filename).unlink()
        raise
    _check_content(spec, dataset, folder)
    return dataset


def _local_paths(spec: Spec) -> list[Path] | None:
    folder = os.environ.get(LOCAL_FOLDER)
    if not folder:
        return None
    paths = [Path(folder).expanduser() / file for file in spec.local_files]
    return paths if all(path.is_file() for path in paths) else None


def _cache_folder(data_home: str | os.PathLike[str] | None) -> Path:
    chosen = data_home or os.environ.get(CACHE_FOLDER) or Path("~", ".cache", "neighboragg")
    return Path(chosen).expanduser()


def _download(spec: Spec, file: RemoteFile, folder: Path) -> None:
    """Try each address of a file in turn."""
    failures = []
    for url in file.urls:
        try:
            return _download_one(url, folder / file.filename)
        except (OSError, http.client.HTTPException) as error:
            failures.append(f"Downloading {url} failed: {error}\n")
    raise _not_found(spec, folder, [file], "".join(failures))


def _download_one(url: str, target: Path) -> None:
    """Download to a name nobody else uses, then rename: other processes see all of a file or none."""
    target.parent.mkdir(parents=True, exist_ok=True)
    request = urllib.request.Request(url, headers={"User-Agent": "neighboragg"})
    partial = target.with_name(f"{target.name}.{uuid.uuid4().hex}.part")
    try:
        with partial.open("xb") as sink:
            with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:
                shutil.copyfileobj(response, sink)
                announced = response.headers.get("Content-Length")
            # http.client says nothing when a connection breaks between two chunks.
            if announced is not None and sink.tell() != int(announced):
                raise OSError(f"the connection ended after {sink.tell()} of {announced} bytes")
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def _not_found(spec: Spec, folder: Path, missing: list[RemoteFile], failures: str) -> DatasetNotFoundError:
    local = ", ".join(spec.local_files)
    places = "\n".join(f"  {file.urls[0]} to {folder / file.filename}" for file in missing)
    remedy = "check the connection" if failures else "let load_dataset download it (download_if_missing=True)"
    return DatasetNotFoundError(
        f"The data set {spec.name!r} is neither in the folder that {LOCAL_FOLDER} names "
        f"({os.environ.get(LOCAL_FOLDER) or 'not set'}) nor in the cache ({folder}).\n"
        f"{failures}"
        f"Hint: {remedy}, or download by hand\n{places}\n"
        f"or set {LOCAL_FOLDER} to a folder that holds {local}."
    )


def _check_content(spec: Spec, dataset: Dataset, folder: Path) -> None:
    n_rows = len(dataset.y)
    expected = spec.checksums.get(n_rows)
    if expected is None and n_rows != spec.n_rows:
        difference = f"{n_rows} rows instead of {spec.n_rows}"
    elif expected is not None and (found := dataset.checksum()) != expected:
        difference = f"SHA-256 {found[:12]}… instead of {expected[:12]}…"
    else:
        return
    warnings.warn(
        f"The content of the data set {spec.name!r} in {folder} is not the one known to this version "
        f"({difference}): its source may have changed or re-ordered it.\n"
        "Hint: results may differ from published ones; delete that folder to download again.",
        TrustWarning,
        stacklevel=3,
    )
