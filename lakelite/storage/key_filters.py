"""Key filters: for a file of a table with keys, a set of the hashes of its keys, which says which keys are surely not in it.

They are kept in a file beside the data file, one after the other:

    lengths of tag and filter (32 and 64 bits), CRC-32 of both (all little-endian), tag (UTF-8), filter (see fingerprints.py)

A tag says of which columns of which content, and by which version of which hash function: a filter that was made otherwise is
another one. A filter is derived from its data file and never has to be there: one that is missing, damaged or cannot be read means
"maybe", one that cannot be written is made again when it is needed, and none is synced. Files are replaced as a whole.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from lakelite.model import Fragment
from lakelite.records import dataclass
from lakelite.storage import fingerprints
from lakelite.storage.files import LakePaths, filters_file_name
from lakelite.storage.fingerprints import Fingerprints
from lakelite.storage.regular import open_regular

FILTERED_ROWS = 10_000
"""Files of fewer rows have no filter: to read their keys takes about as long as to ask one."""
_MOST_BYTES_OF_A_KEY = 256  # more than all filters of a file need for each of its rows: what is larger is none of ours, and not read
_BYTES_FOR_TAGS = 1 << 20
_HEAD = struct.Struct("<IQI")


@dataclass(frozen=True, slots=True)
class StoredFilters:
    """What the file of a data file's filters holds: each by its tag, and whether nothing else is in it (it is damaged)."""

    filters: Mapping[str, bytes | memoryview]
    is_whole: bool


class KeyFilters:
    """The filters that one session has read or made; those that were used last are in memory. Used by one thread at a time."""

    def __init__(self, paths: LakePaths, scratch: str, bytes_kept: int) -> None:
        """`scratch`: a folder on the lake's file system, in which files are written first."""
        self._paths = paths
        self._scratch = scratch
        self._bytes_kept = bytes_kept
        self._held: dict[tuple[str, str], Fingerprints] = {}  # by file name and tag, the latest used last
        self._bytes = 0

    def find(self, fragment: Fragment, tag: str) -> Fingerprints | None:
        """The filter of a file; None: there is none."""
        assert fragment.path is not None
        found = self._held.pop((fragment.path, tag), None)
        if found is not None:
            self._held[(fragment.path, tag)] = found
            return found
        content = self._read(fragment).get(tag)
        read = None if content is None else fingerprints.decode(content)
        return None if read is None else self._keep(fragment.path, tag, read)

    def stored(self, fragment: Fragment) -> StoredFilters | None:
        """What there is on the disk, whatever is in memory; None: nothing that can be read."""
        try:
            with open_regular(self._file(fragment)) as file:
                content = memoryview(file.read(_BYTES_FOR_TAGS + _MOST_BYTES_OF_A_KEY * fragment.row_count))
        except OSError:
            return None
        found = list(_sound_ones(content))
        length = sum(_HEAD.size + len(tag.encode()) + len(one) for tag, one in found)
        return StoredFilters(dict(found), length == len(content) and bool(found))

    def add(self, fragment: Fragment, tag: str, filter_: Fingerprints) -> None:
        """Keeps a filter in memory and beside its data file."""
        assert fragment.path is not None
        self._keep(fragment.path, tag, filter_)
        self._write(fragment, {**self._read(fragment), tag: fingerprints.encode(filter_)})

    def _keep(self, name: str, tag: str, filter_: Fingerprints) -> Fingerprints:
        before = self._held.pop((name, tag), None)
        self._held[(name, tag)] = filter_
        self._bytes += filter_.size_bytes - (before.size_bytes if before is not None else 0)
        while self._bytes > self._bytes_kept:
            self._bytes -= self._held.pop(next(iter(self._held))).size_bytes
        return filter_

    def _file(self, fragment: Fragment) -> Path:
        assert fragment.path is not None
        return self._paths.table_folder(fragment.table_id) / filters_file_name(fragment.path)

    def _read(self, fragment: Fragment) -> Mapping[str, bytes | memoryview]:
        """The filters of a data file by their tags; none where the file cannot be read."""
        found = self.stored(fragment)
        return {} if found is None else found.filters

    def _write(self, fragment: Fragment, filters: Mapping[str, bytes | memoryview]) -> None:
        new = Path(self._scratch) / self._file(fragment).name
        try:
            os.makedirs(self._scratch, exist_ok=True)
            new.write_bytes(b"".join(_packed(tag.encode(), bytes(content)) for tag, content in filters.items()))
            os.replace(new, self._file(fragment))
        except OSError:
            with suppress(OSError):
                new.unlink(missing_ok=True)


def _packed(tag: bytes, content: bytes) -> bytes:
    return _HEAD.pack(len(tag), len(content), zlib.crc32(tag + content)) + tag + content


def _sound_ones(content: memoryview) -> Iterator[tuple[str, memoryview]]:
    """The filters up to where the file is damaged."""
    while len(content) >= _HEAD.size:
        tag_bytes, filter_bytes, crc32 = _HEAD.unpack_from(content)
        found = content[_HEAD.size : _HEAD.size + tag_bytes + filter_bytes]
        if not tag_bytes or len(found) < tag_bytes + filter_bytes or zlib.crc32(found) != crc32:
            return
        yield str(found[:tag_bytes], "utf-8", "replace"), found[tag_bytes:]
        content = content[_HEAD.size + len(found) :]
