"""What is known of each data set: its files, public sources, columns, size and content."""

from dataclasses import dataclass, field
from typing import Literal

__all__ = ["SPECS", "RemoteFile", "Spec", "TableFormat"]


@dataclass(frozen=True)
class RemoteFile:
    """A public file: its name in the cache and the addresses that offer it, best first."""

    filename: str
    urls: tuple[str, ...]


@dataclass(frozen=True)
class TableFormat:
    """How the public file of a table is laid out."""

    features: tuple[str, ...]
    # Names of the columns in file order; empty when the first line of the file names them.
    columns: tuple[str, ...] = ()
    # Files inside a zip, "a.zip/b.csv" being a zip inside the zip; empty for a file that is no archive.
    members: tuple[str, ...] = ()
    # None: any white space.
    delimiter: str | None = ","
    categorical: tuple[str, ...] = ()
    label: str = "label"
    label_suffix: str = ""
    integer_labels: bool = False
    comments: tuple[str, ...] = ()


@dataclass(frozen=True)
class Spec:
    """A data set; a table, and only a table, has a `table` format."""

    name: str
    kind: Literal["table", "text", "images"]
    local_files: tuple[str, ...]
    remote_files: tuple[RemoteFile, ...]
    n_rows: int
    # Number of rows to the checksum of the content with that many rows, where it is known.
    checksums: dict[int, str] = field(default_factory=dict)
    table: TableFormat | None = None


UCI = "https://archive.ics.uci.edu/static/public"


def _table(
    name: str, url: str, n_rows: int, checksums: dict[int, str], table: TableFormat, local: str | None = None
) -> Spec:
    filename = f"{name}.{url.rpartition('.')[2]}"
    remote = (RemoteFile(filename, (url,)),)
    return Spec(name, "table", (local or f"{name}.csv.gz",), remote, n_rows, checksums, table)


def _images(name: str, bases: tuple[str, ...], checksum: str) -> Spec:
    parts = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
    files = [f"{part}-ubyte.gz" for part in parts]
    remote = tuple(RemoteFile(file, tuple(f"{base}/{file}" for base in bases)) for file in files)
    return Spec(name, "images", tuple(f"{name}/{f}" for f in files), remote, 70_000, {70_000: checksum})


def _names(words: str) -> tuple[str, ...]:
    return tuple(words.split())


LETTER = _names(
    "x-box y-box width high onpix x-bar y-bar x2bar y2bar xybar x2ybr xy2br x-ege xegvy y-ege yegvx"
)
LANDSAT = tuple(f"band_{i}" for i in range(36))
MAGIC = tuple(f"x{i}" for i in range(1, 11))
SENSORLESS = tuple(f"f{i}" for i in range(48))
CARD = (
    *_names("LIMIT_BAL SEX EDUCATION MARRIAGE AGE PAY_0 PAY_2 PAY_3 PAY_4 PAY_5 PAY_6"),
    *(f"BILL_AMT{i}" for i in range(1, 7)),
    *(f"PAY_AMT{i}" for i in range(1, 7)),
)
ADULT = _names(
    "age workclass fnlwgt education education-num marital-status occupation relationship race sex "
    "capital-gain capital-loss hours-per-week native-country"
)
BANK = _names(
    "poutcome job marital education default housing loan contact day month campaign duration pdays previous "
    "age balance"
)

_ALL = (
    _table(
        "letter",
        f"{UCI}/59/letter+recognition.zip",
        20_000,
        {20_000: "1547a12fbf1687fba539df6dba69cb3b80e5202131b3703c8883a2b7896e47c0"},
        TableFormat(LETTER, ("label", *LETTER), ("letter-recognition.data",)),
    ),
    _table(
        "landsat",
        f"{UCI}/146/statlog+landsat+satellite.zip",
        6_435,
        {6_435: "8d7d57950c191827791d6270c60ca7cac2e5019b349e652f823747e16c3eaf8a"},
        TableFormat(
            LANDSAT, (*LANDSAT, "label"), ("sat.trn", "sat.tst"), delimiter=None, integer_labels=True
        ),
    ),
    # UCI has this one only as an old Excel workbook, which numpy cannot read; OpenML (42477) as text.
    _table(
        "card_default",
        "https://openml.org/data/v1/download/21854402/default-of-credit-card-clients.arff",
        30_000,
        {30_000: "9b290d3c3670697a78a9aaeb4e55d7752d48398eb728b9287bc603d8d0b303a1"},
        TableFormat(CARD, ("id", *CARD, "label"), integer_labels=True, comments=("@", "%")),
    ),
    _table(
        "adult",
        f"{UCI}/2/adult.zip",
        48_842,
        {48_842: "a4b89cd29e58d669223149959b6c7d2101e420bf8922179123a5d1dc5db0dd87"},
        TableFormat(
            ADULT,
            (*ADULT, "label"),
            ("adult.data", "adult.test"),
            categorical=_names(
                "workclass education marital-status occupation relationship race sex native-country"
            ),
            # Labels of the test part end in a full stop, and its first line is a remark.
            label_suffix=".",
            comments=("|",),
        ),
    ),
    _table(
        "bank_marketing",
        f"{UCI}/222/bank+marketing.zip",
        45_211,
        {45_211: "07b5414369a2f7fada9ac9670fef457cbad434359835546fad7ca749892ae7f8"},
        TableFormat(
            BANK,
            members=("bank.zip/bank-full.csv",),
            delimiter=";",
            categorical=_names("poutcome job marital education default housing loan contact month"),
            label="y",
        ),
    ),
    _table(
        "magic_gamma",
        f"{UCI}/159/magic+gamma+telescope.zip",
        19_020,
        {19_020: "b3ebd38094f722e610a6c379b46a94aa50118ef0d82aa9bf19c6897399ddacef"},
        TableFormat(MAGIC, (*MAGIC, "label"), ("magic04.data",)),
    ),
    # The content is known of the local subset, not of the whole public set.
    _table(
        "sensorless_drive",
        f"{UCI}/325/dataset+for+sensorless+drive+diagnosis.zip",
        58_509,
        {2_200: "c690d88b23a539af7e3f11273463ea9da4ff5b8840669de2e945317c497443ed"},
        TableFormat(
            SENSORLESS,
            (*SENSORLESS, "label"),
            ("Sensorless_drive_diagnosis.txt",),
            delimiter=None,
            integer_labels=True,
        ),
        local="sensorless_drive_2200.csv.gz",
    ),
    Spec(
        "trec_questions",
        "text",
        ("trec_questions.csv.gz",),
        (
            RemoteFile(
                "train_5500.label",
                (
                    "https://cogcomp.seas.upenn.edu/Data/QA/QC/train_5500.label",
                    "https://cogcomp.org/Data/QA/QC/train_5500.label",
                ),
            ),
        ),
        5_452,
        {5_452: "23a9b7d869c17fa5cf8af4d1788f2df6706f893be418903df873a47dfbf71057"},
    ),
    _images(
        "mnist",
        (
            "https://ossci-datasets.s3.amazonaws.com/mnist",
            "https://storage.googleapis.com/cvdf-datasets/mnist",
        ),
        "679a541cc25b00823f784d6cafc353d0d73fccb969534d59a61c40b3d75245ca",
    ),
    _images(
        "fashion_mnist",
        (
            "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion",
            "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion",
        ),
        "66f7c8f00d96cda6657f34932e64bfcf447442da17cd64772ae9537c01660cb0",
    ),
)

SPECS: dict[str, Spec] = {spec.name: spec for spec in _ALL}
