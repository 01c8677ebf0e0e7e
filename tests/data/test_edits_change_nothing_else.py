"""Decided labels are replaced in the file, and no other byte changes: 500 generated CSV files and some by hand."""

import codecs
import random
from dataclasses import dataclass

import pytest

from neighboragg.exceptions import InvalidInputError
from sizes import draws
from tables import Read

NAMES = ["a", "b", "a", "", " c ", "größe", "x y", 'say "hi"', "1"]
LABELS = ["cat", "dog", "01", "1.0", "None", "a;b", "x,y", 'qu"ote', "two words", " lead"]
VALUES = [
    "",
    "1",
    "2.5",
    "NA",
    "x",
    " spaced ",
    'in "quotes"',
    "a,b",
    "c;d",
    "e|f",
    "g\th",
    "two\nlines",
    "cr\rlf\r\n",
    "é",
]
ENCODINGS = [
    ("utf-8", b"", None), ("utf-8", codecs.BOM_UTF8, None), ("utf-16-le", codecs.BOM_UTF16_LE, None),
    ("utf-16-be", codecs.BOM_UTF16_BE, None), ("cp1252", b"", "cp1252"), ("latin-1", b"", "latin-1"),
    ("utf-16-le", b"", "utf-16"),
]  # fmt: skip


@dataclass
class Generated:
    """A file in pieces: the header, and for each record what is before the label, the label cell, and the rest."""

    head: str
    records: list
    labels: list
    sep: str
    encoding: str
    mark: bytes
    named_encoding: str | None
    ragged: bool

    def contents(self, new=(), dropped=()):
        text = self.head
        for i, (before, cell, after) in enumerate(self.records):
            if i not in dropped:
                text += before + dict(new).get(i, cell) + after
        return self.mark + text.encode(self.encoding)


def quoted(text, sep, always):
    if always or any(mark in text for mark in (sep, '"', "\r", "\n")):
        return '"' + text.replace('"', '""') + '"'
    return text


def generate(seed):
    rng = random.Random(seed)
    sep = rng.choice([",", ";", "\t", "|"])
    encoding, mark, named = rng.choice(ENCODINGS)
    n_columns, n_rows = rng.randint(2, 7), rng.randint(1, 25)
    names = [rng.choice(NAMES) for _ in range(n_columns)]
    place = rng.randrange(n_columns)
    names[place] = "label"
    ends = rng.choice([["\n"], ["\r\n"], ["\n", "\r\n"], ["\r"]])
    always = rng.random() < 0.3
    ragged = rng.random() < 0.15
    trailing = rng.random() < 0.1
    empty = rng.randrange(n_columns) if rng.random() < 0.3 else -1
    head = sep.join(quoted(name, sep, always) for name in names) + rng.choice(ends)
    records, labels = [], []
    for _ in range(n_rows):
        cells = ["" if j == empty else rng.choice(VALUES) for j in range(n_columns)]
        label = rng.choice([*LABELS, ""])
        cells[place] = label
        written = [quoted(cell, sep, always or rng.random() < 0.2) for cell in cells]
        if n_columns == 2 and not any(written):
            written[0] = '""'
        end = sep * trailing + rng.choice(ends) + rng.choice(["", "", "", rng.choice(ends)])
        records.append(
            [
                sep.join(written[:place]) + sep * (place > 0),
                written[place],
                sep * (place < n_columns - 1) + sep.join(written[place + 1 :]) + end,
            ]
        )
        labels.append(label)
    if rng.random() < 0.3:
        records[-1][2] = records[-1][2].rstrip("\r\n")
    if ragged and n_rows > 1:
        i = rng.randrange(n_rows)
        extra = sep + "extra"
        records[i][2] = (extra + records[i][2]) if rng.random() < 0.5 else records[i][2]
        records[i][0] = records[i][0] if extra in records[i][2] else extra[1:] + sep + records[i][0]
    return Generated(head, records, labels, sep, encoding, mark, named, ragged and n_rows > 1)


def test_generated_files(tmp_path):
    path = tmp_path / "t.csv"
    read, sniffed = 0, 0
    n_files = draws(150, 500)
    for seed in range(n_files):
        file, rng = generate(seed), random.Random(-seed - 1)
        try:
            raw = file.contents()
        except UnicodeEncodeError:
            continue
        path.write_bytes(raw)
        named_sep = file.sep if rng.random() < 0.5 else None
        try:
            table = Read(path, "label", sep=named_sep, encoding=file.named_encoding)
        except InvalidInputError as error:
            assert file.ragged or named_sep is None, (seed, str(error))
            assert path.read_bytes() == raw
            continue
        assert not file.ragged, seed
        read, sniffed = read + 1, sniffed + (named_sep is None)
        assert table.labels.tolist() == [label if label.strip() else "" for label in file.labels], seed
        if seed % 5 == 0:
            assert len(table.frame) == len(file.labels), seed
        rows = [i for i, label in enumerate(file.labels) if label]
        decided = {i: rng.choice(LABELS) for i in rng.sample(rows, rng.randint(0, len(rows)))}
        dropped = (
            set(rng.sample(range(len(file.labels)), min(2, len(file.labels))))
            if rng.random() < 0.3
            else set()
        )
        new = {i: quoted(label, file.sep, file.records[i][1].startswith('"')) for i, label in decided.items()}
        gaps = {i: blank_lines(file.records[i][2]) for i in dropped}
        assert table.relabeled(decided, dropped) == without(file, new, gaps), seed
        assert table.relabeled({}) == raw
    assert read > 0.76 * n_files
    assert sniffed > 0.34 * n_files


def blank_lines(rest):
    """Line ends that follow the one of the record: they belong to no record, and stay when it is dropped."""
    tail = rest[len(rest.rstrip("\r\n")) :]
    first = 2 if tail.startswith("\r\n") else 1
    return tail[first:]


def without(file, new, gaps):
    """Contents with new cells, and without some records."""
    pieces = [file.head]
    for i, (before, cell, after) in enumerate(file.records):
        pieces.append(gaps[i] if i in gaps else before + new.get(i, cell) + after)
    return file.mark + "".join(pieces).encode(file.encoding)


AWKWARD = {
    "bom, crlf and quotes": (
        b'\xef\xbb\xbf"id","a","a","","label "\r\n"1","x","y","","cat"\r\n"2","x ","y","",cat\n"3","","","","dog"',
        "label ", {0: "dog", 1: "do,g"},
        b'\xef\xbb\xbf"id","a","a","","label "\r\n"1","x","y","","dog"\r\n"2","x ","y","","do,g"\n"3","","","","dog"',
    ),
    "text after a closing quote": (b'a,y\n"1" ,"u" x\n2,v\n', "y", {0: "v"}, b'a,y\n"1" ,"v"\n2,v\n'),
    "quotes inside": (b'a,y\nsay "hi",u\n2,5" pipe\n', "y", {0: "v", 1: "u"}, b'a,y\nsay "hi",v\n2,u\n'),
    "blank lines": (b"\n\na,y\n\n1,u\n  \n2,v\n\n\n", "y", {1: "u"}, b"\n\na,y\n\n1,u\n  \n2,u\n\n\n"),
    "numbers as written": (b"a,y\n1.50,01\n1e3,1\n-0,01\n", "y", {1: "01"}, b"a,y\n1.50,01\n1e3,01\n-0,01\n"),
}  # fmt: skip


@pytest.mark.parametrize(("before", "label", "decided", "after"), AWKWARD.values(), ids=AWKWARD.keys())
def test_awkward_files(tmp_path, before, label, decided, after):
    path = tmp_path / "t.csv"
    path.write_bytes(before)
    assert Read(path, label).relabeled(decided) == after
