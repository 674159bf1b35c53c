"""The files of key filters: what is missing, damaged or cannot be written is as if it were not there."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from lakelite.model import Fragment
from lakelite.storage import files, fingerprints
from lakelite.storage.files import LakePaths
from lakelite.storage.key_filters import KeyFilters

FILE = "abcdefghijklmnop-1-1.parquet"
HASHES = np.arange(0, 2**64, 2**54, dtype=np.uint64)


@pytest.fixture
def paths(tmp_path: Path) -> LakePaths:
    paths = LakePaths(tmp_path)
    files.ensure_directories(paths)
    files.make_table_folder(paths, 3)
    paths.data_file(3, FILE).write_bytes(b"data")
    return paths


def opened(paths: LakePaths, bytes_kept: int = 1_000_000) -> KeyFilters:
    return KeyFilters(paths, str(paths.tmp / "session"), bytes_kept)


def fragment(name: str = FILE) -> Fragment:
    return Fragment(1, 3, "parquet", name, 1_024, 4, "0" * 64, 1, False)


def kept(paths: LakePaths) -> Path:
    return paths.table_folder(3) / "abcdefghijklmnop-1-1.keys"


def test_filters_outlive_the_session_that_made_them(paths: LakePaths) -> None:
    one = opened(paths)
    assert one.find(fragment(), "k") is None
    one.add(fragment(), "k", fingerprints.of(HASHES))
    one.add(fragment(), "ü", fingerprints.of(HASHES[:9]))
    for filters in (one, opened(paths)):
        found = filters.find(fragment(), "k")
        assert found is not None
        assert found.may_hold(HASHES).all()
        other = filters.find(fragment(), "ü")
        assert other is not None
        assert other.may_hold(HASHES).sum() < 20
        assert filters.find(fragment(), "another") is None
    assert [entry.name for entry in os.scandir(paths.tmp / "session")] == []


def test_the_latest_used_are_held(paths: LakePaths) -> None:
    filters = opened(paths, fingerprints.of(HASHES).size_bytes * 2)
    for tag in ("a", "b", "b"):
        filters.add(fragment(), tag, fingerprints.of(HASHES))
    assert filters.find(fragment(), "a") is not None
    filters.add(fragment(), "c", fingerprints.of(HASHES))
    assert filters.find(fragment(), "b") is not None  # from its file
    kept(paths).unlink()
    assert [filters.find(fragment(), tag) is not None for tag in ("a", "b", "c")] == [False, True, True]


@settings(max_examples=60)
@given(data=some.data())
def test_damage_is_as_if_it_were_not_there(data: some.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    paths = LakePaths(tmp_path_factory.mktemp("lake"))
    files.ensure_directories(paths)
    files.make_table_folder(paths, 3)
    for tag in ("a", "b"):
        opened(paths).add(fragment(), tag, fingerprints.of(HASHES))
    content = bytearray(kept(paths).read_bytes())
    if data.draw(some.booleans()):
        place = data.draw(some.integers(0, len(content) - 1))
        content[place] ^= data.draw(some.integers(1, 255))
    else:
        del content[data.draw(some.integers(0, len(content) - 1)) :]
    kept(paths).write_bytes(content)
    found = [opened(paths).find(fragment(), tag) for tag in ("a", "b")]
    assert None in found
    assert all(filter_.may_hold(HASHES).all() for filter_ in found if filter_ is not None)
    opened(paths).add(fragment(), "a", fingerprints.of(HASHES))
    assert opened(paths).find(fragment(), "a") is not None


@pytest.mark.parametrize("content", [b"", b"\0" * 5_000, b"SQLite format 3\0" * 10])
def test_a_file_that_is_none(paths: LakePaths, content: bytes) -> None:
    kept(paths).write_bytes(content)
    assert opened(paths).find(fragment(), "k") is None


def test_one_that_cannot_be_read_or_written(paths: LakePaths, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"mine")
    kept(paths).symlink_to(elsewhere)
    assert opened(paths).find(fragment(), "k") is None
    (paths.tmp / "session").write_bytes(b"no folder")
    filters = opened(paths)
    filters.add(fragment(), "k", fingerprints.of(HASHES))
    assert filters.find(fragment(), "k") is not None  # in memory
    assert opened(paths).find(fragment(), "k") is None
    assert elsewhere.read_bytes() == b"mine"


def test_they_go_with_their_data_file(paths: LakePaths) -> None:
    opened(paths).add(fragment(), "k", fingerprints.of(HASHES))
    assert [found.file_name for found in files.list_data_files(paths)] == [FILE]
    assert files.remove_data_file(paths, 3, FILE)
    assert list(os.scandir(paths.table_folder(3))) == []
    opened(paths).add(fragment(), "k", fingerprints.of(HASHES))  # the data file is gone: VACUUM finds it
    assert [found.file_name for found in files.list_data_files(paths)] == [kept(paths).name]
    assert files.remove_data_file(paths, 3, kept(paths).name)
