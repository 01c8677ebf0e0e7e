"""Text files as exact text: compression, byte order marks, encodings, and edits that leave other bytes alone."""

import codecs
import gzip
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from neighboragg.exceptions import InvalidInputError, InvalidParameterError

# UTF-32 comes first: its mark begins with the mark of UTF-16.
MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
UNMARKED = {"utf-8-sig": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}


@dataclass(frozen=True)
class FileText:
    """The text of a file, with the details needed to write it back byte for byte."""

    name: str
    text: str
    mark: bytes
    encoding: str

    def edited(self, edits: Sequence[tuple[int, int, str]]) -> bytes:
        """Bytes with some spans ``(start, end, new text)`` of the text replaced; spans are in order and apart."""
        before, after = [self.mark], [self.mark]
        place = 0
        for start, end, new in edits:
            kept = self._encoded(self.text[place:start])
            before += [kept, self._encoded(self.text[start:end])]
            after += [kept, self._encoded(new, new_text=True)]
            place = end
        rest = self._encoded(self.text[place:])
        if b"".join([*before, rest]) != self.mark + self._encoded(self.text):
            raise InvalidInputError(
                f"Labels cannot be replaced in {self.name} without changing other bytes, as its encoding "
                f"{self.encoding} depends on what comes before.\nHint: save the table as UTF-8 first."
            )
        return b"".join([*after, rest])

    def _encoded(self, text: str, *, new_text: bool = False) -> bytes:
        try:
            return text.encode(self.encoding)
        except UnicodeEncodeError as error:
            if not new_text:
                raise
            raise InvalidInputError(
                f"The new label {text!r} cannot be written in {self.encoding}, the encoding of {self.name}.\n"
                "Hint: save the table as UTF-8 first, or choose another label."
            ) from error


def is_compressed(path: Path) -> bool:
    """Whether the name is the name of a gzip file."""
    return path.suffix.lower() == ".gz"


def read_text(path: Path, encoding: str | None = None) -> FileText:
    """Read a text file, compressed or not."""
    raw = path.read_bytes()
    if is_compressed(path):
        try:
            raw = gzip.decompress(raw)
        except (OSError, EOFError, zlib.error) as error:
            raise InvalidInputError(
                f"{path} is not a complete gzip file: {error}\nHint: fetch or compress it again."
            ) from error
    mark, marked = next(((mark, name) for mark, name in MARKS if raw.startswith(mark)), (b"", None))
    name = _encoding_name(encoding, marked, path)
    if encoding is None and marked is None and b"\0" in raw[:4096]:
        raise InvalidInputError(
            f"{path} contains zero bytes, so it is not text in UTF-8.\n"
            "Hint: if it is text in UTF-16, name the encoding: utf-16-le or utf-16-be (--encoding utf-16-le)."
        )
    try:
        text = raw[len(mark) :].decode(name)
    except UnicodeDecodeError as error:
        start = len(mark) + error.start
        line = raw.count(b"\n", 0, start) + 1
        raise InvalidInputError(
            f"Line {line} of {path} is not text in {name}: it contains the byte 0x{raw[start]:02x}.\n"
            "Hint: name the encoding; files of older Windows programs are often in cp1252 (--encoding cp1252), "
            "others in latin-1."
        ) from error
    if text.encode(name) != raw[len(mark) :]:
        raise InvalidInputError(
            f"{path} does not use the standard form of {name}, so it could not be written back unchanged.\n"
            "Hint: save the table as UTF-8."
        )
    return FileText(str(path), text, mark, name)


def _encoding_name(encoding: str | None, marked: str | None, path: Path) -> str:
    """The codec to use, which a byte order mark may make more precise but not contradict."""
    if encoding is None:
        return marked or "utf-8"
    try:
        name = codecs.lookup(encoding).name
        "".encode(name)
    except LookupError as error:
        raise InvalidParameterError(
            f"Unknown encoding {encoding!r}.\nHint: use, for example, utf-8, utf-16, latin-1 or cp1252."
        ) from error
    if marked is None:
        return UNMARKED.get(name, name)
    if not marked.startswith(name.removesuffix("-sig")):
        raise InvalidParameterError(
            f"{path} begins with the byte order mark of {marked}, which contradicts the encoding {encoding!r}.\n"
            "Hint: leave out the encoding."
        )
    return marked
