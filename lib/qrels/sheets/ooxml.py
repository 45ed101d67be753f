"""What an Office Open XML workbook is as a container: which file is one, its sheets, and what its parts may not hold."""

import hashlib
import posixpath
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import NamedTuple
from xml.parsers import expat

from lib import files, paths
from lib.qrels.refusals import Refused

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
STRICT = "http://purl.oclc.org/ooxml/"
LARGEST = 512 << 20  # bytes of the file, and of its parts unpacked: a million rows of ten styled cells have 300 MB
LARGEST_HELD = 128 << 20  # bytes unpacked of a part that is no sheet: openpyxl holds strings and styles in memory
SHOWN = 20
DAMAGE = (zipfile.BadZipFile, zlib.error, struct.error, ValueError, KeyError, RuntimeError, NotImplementedError, EOFError, OSError)
SAVE = "open it in Excel or LibreOffice and save it as Excel Workbook (.xlsx)"


class WorkbookError(Refused):
    """A workbook was not read: `faults` holds one sentence each, with the sheet and cell where there is one."""

    def __init__(self, name: str, faults: list[str]):
        self.faults = list(faults)
        if len(faults) == 1:
            super().__init__(f"{name}: {faults[0]}")
            return
        rest = [f"... and {len(faults) - SHOWN} more"] if len(faults) > SHOWN else []
        super().__init__("\n".join([f"{name} has {len(faults)} faults; mend them in the workbook and run again:", *faults[:SHOWN], *rest]))


class Sheet(NamedTuple):
    """A sheet of the workbook: its name, its part (None for a chart or a dialog) and its state: visible, hidden or veryHidden."""

    name: str
    part: str | None
    state: str


class Container(NamedTuple):
    """An open workbook: the bytes were read once, so nothing that happens to the file afterwards is seen."""

    name: str
    sha256: str
    archive: zipfile.ZipFile
    sheets: list[Sheet]
    shared: dict[str, str]  # the parts styles and sharedStrings, where there are such


class _Seen(Exception):
    """Enough of a part was parsed."""


def chunks(archive: zipfile.ZipFile, part: str, size: int = 1 << 20) -> Iterator[bytes]:
    """The bytes of a part, `size` at a time."""
    with archive.open(part) as stream:
        while data := stream.read(size):
            yield data


def elements(data: Iterable[bytes], start, text=None) -> None:
    """Parse XML as a stream: `start(name, attributes)` at each element and `text(data)`; names are `namespace name`.

    A document type declaration raises ValueError: no part of a workbook has one, and entities are declared there.
    """
    def refuse(*_):
        raise ValueError("it declares a document type, which no part of a workbook does")

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartDoctypeDeclHandler, parser.StartElementHandler = refuse, start
    parser.CharacterDataHandler = text
    try:
        for chunk in data:
            parser.Parse(chunk, False)
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise ValueError(f"it is no well-formed XML ({error})") from error


def _root(archive: zipfile.ZipFile, part: str) -> str:
    """The name of the root element; ValueError for a document type declaration before it."""
    root = []

    def start(name, _):
        root.append(name)
        raise _Seen

    try:
        elements(chunks(archive, part, 4096), start)
    except _Seen:
        pass
    return root[0]


def relations(archive: zipfile.ZipFile, part: str) -> dict[str, tuple[str, str]]:
    """The parts that a part points to: id -> (type, part); links out of the file are left out. The root is the part ''."""
    folder, name = posixpath.split(part)
    path, found = posixpath.join(folder, "_rels", f"{name}.rels"), {}

    def start(tag, given):
        if tag.endswith(" Relationship") and given.get("TargetMode") != "External":
            found[given["Id"]] = (given["Type"], posixpath.normpath(posixpath.join("/", folder, given["Target"])).lstrip("/"))

    if path in archive.namelist():
        elements(chunks(archive, path), start)
    return found


def _contents(archive: zipfile.ZipFile) -> tuple[list[Sheet], dict[str, str]]:
    """The sheets in order, and the parts that they share by kind: styles, sharedStrings."""
    workbook = next((part for kind, part in relations(archive, "").values() if kind == f"{RELATION}/officeDocument"), None)
    if workbook is None or workbook not in archive.namelist():
        raise ValueError("it has no workbook part")
    targets, sheets = relations(archive, workbook), []

    def start(tag, given):
        if tag == f"{MAIN} sheet":
            kind, part = targets.get(given.get(f"{RELATION} id"), ("", ""))
            sheets.append(Sheet(given["name"], part if kind == f"{RELATION}/worksheet" else None, given.get("state", "visible")))

    elements(chunks(archive, workbook), start)
    kinds = {f"{RELATION}/{kind}": kind for kind in ("styles", "sharedStrings")}
    return sheets, {kinds[kind]: part for kind, part in targets.values() if kind in kinds}


def _not_ooxml(data: bytes) -> str | None:
    """Why these bytes are no workbook of our kind, as a sentence's end, or None where they begin as one does."""
    if not data:
        return f"is empty (0 bytes); copy the workbook again, or {SAVE}"
    if data.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):  # a compound file: the names of its streams are UTF-16
        if "EncryptedPackage".encode("utf-16-le") in data:
            return "is encrypted; open it with its password, remove the password (File, Info, Protect Workbook) and save it again"
        return f"is a legacy file of the time before .xlsx (.xls or the like); {SAVE}"
    if not data.startswith(b"PK"):
        return f"is no Excel workbook (it is no zip file); {SAVE}"
    return None


@contextmanager
def opened(path: str | Path) -> Iterator[Container]:
    """Open a workbook (.xlsx, .xlsm) for reading; WorkbookError with one sentence for anything else.

    Nothing is run, fetched or written: macros and links to other files are left alone.
    """
    name = paths.shown(path)
    try:
        if Path(path).is_file() and Path(path).stat().st_size > LARGEST:
            raise WorkbookError(name, [f"has more than {LARGEST >> 20} MiB; remove pictures and sheets that are no part of the review"])
        data = files.read_bytes(path)
    except FileNotFoundError:
        raise WorkbookError(name, ["is not there; name the reviewer's workbook (--workbook or QRELS_WORKBOOK)"]) from None
    except IsADirectoryError:
        raise WorkbookError(name, ["is a folder; name the reviewer's workbook in it"]) from None
    except OSError as error:
        raise WorkbookError(name, [f"cannot be read ({error.strerror}); allow it to be read, or copy it elsewhere"]) from error
    if why := _not_ooxml(data):
        raise WorkbookError(name, [why])
    try:
        archive = zipfile.ZipFile(BytesIO(data))
    except DAMAGE as error:
        raise WorkbookError(name, [f"is a damaged or truncated zip file ({error}); copy it again from where it is whole"]) from error
    with archive:
        try:
            sheets, shared = _checked(archive)
        except WorkbookError as error:
            raise WorkbookError(name, error.faults) from None
        yield Container(Path(path).name, hashlib.sha256(data).hexdigest(), archive, sheets, shared)


def _checked(archive: zipfile.ZipFile) -> tuple[list[Sheet], dict[str, str]]:
    parts, names = archive.infolist(), archive.namelist()
    if "mimetype" in names and b"opendocument" in archive.read("mimetype")[:200]:
        raise WorkbookError("", [f"is an OpenDocument file (.ods or the like); {SAVE}"])
    if any(part.endswith("workbook.bin") for part in names):
        raise WorkbookError("", [f"is a binary workbook (.xlsb); {SAVE}"])
    if "[Content_Types].xml" not in names:
        raise WorkbookError("", [f"is a zip file but no Excel workbook (it has no [Content_Types].xml); {SAVE}"])
    size, held = sum(info.file_size for info in parts), max(info.file_size for info in parts if "worksheets/" not in info.filename)
    if size > LARGEST or held > LARGEST_HELD:
        raise WorkbookError("", [f"would unpack to {size >> 20} MiB, more than is read ({LARGEST >> 20} MiB in all, {LARGEST_HELD >> 20} MiB "
                                 "in one part that is no sheet); delete pictures, empty formatted rows and what is no part of the review"])
    part = "[Content_Types].xml"
    try:
        for part in (name for name in names if name.endswith((".xml", ".rels")) and not name.startswith("customXml/")):
            if _root(archive, part).startswith(STRICT):
                raise WorkbookError("", [f"is a Strict Open XML workbook, which is not read; {SAVE}, not as Strict Open XML Spreadsheet"])
        return _contents(archive)
    except WorkbookError:
        raise
    except DAMAGE as error:
        raise WorkbookError("", [f"has a damaged part {part} ({error}); copy it again from where it is whole, or {SAVE}"]) from error
