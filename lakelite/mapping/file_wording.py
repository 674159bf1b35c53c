"""Files that cannot be read or written, and what is wrong inside of them: file, line, column, value, and what to do.

DuckDB's report of a bad CSV file is a page long. Here it is a sentence; the page stays in the cause.
"""

from __future__ import annotations

import re

from lakelite.cells import fitted
from lakelite.errors import OperationalError
from lakelite.mapping.system_errors import file_error, is_of_the_disk
from lakelite.mapping.words import Rule, Said, Words, rule, sql_types

SHOWN_LINE = 100
_LAKE_FILE = re.compile(r"/data/\d+/[a-z0-9]{16}-\d+-\d+\.parquet")  # one of a lake: the user names no such file
_SPILL_FILE = re.compile(r"/tmp/[a-z0-9]{16}/")
_CONVERSION = re.compile(r"^Error when converting column \"(.*?)\"\. Could not convert string \"(.*)\" to '(.+?)'", re.DOTALL)
_COUNTS = re.compile(r"Expected Number of Columns: (\d+) Found: (\d+)")
_SNIFFED = re.compile(r"contain: (\d+) columns\. .*?sniffer: (\d+)\.", re.DOTALL)
# In front of any quoted value, so that no text of the user's is taken for it.
_PARQUET_BYTES = (
    r"(?:T(?:Protocol|Transport)Exception|\ADECIMAL requires a length and scale|\A[Dd]on't know what type|\AOut of buffer\b|\bbitpacked data\b"
    r"|\bDELTA_[A-Z]+_[A-Z]+|\bBYTE_STREAM_SPLIT"
    r"|[Dd]ecompression failure|\b(?:might|may|likely|is) (?:be )?corrupt(?:ed)?\b|[Dd]ictionary (?:offset|index) out of range"
    r"|\b[Pp]arquet (?:file|page|column|footer|metadata|reader)\b[^\"']*\b(?:corrupt|invalid|Invalid|missing|truncated|mismatch|unexpected))"
)
_SKIP = "correct the file, or read it with ignore_errors = true, which leaves such lines out"


def _csv_line(found: re.Match[str], said: Said) -> Words:
    """`CSV Error on Line: n`, `Original Line: …`, the reason, `Possible Solution: …`, and the options of the reader."""
    text = found[0]
    reason = found[3].split("\n\n")[0].split("\nPossible ")[0].strip()
    file = re.search(r"\n\s*file = (.*)", text)
    where = f"{file[1].strip() if file else 'the CSV file'}, line {found[1]}"
    if value := _CONVERSION.match(reason):
        shown = fitted(value[2], SHOWN_LINE)
        message = f'{where}, column "{value[1]}": could not convert "{shown}" to {sql_types(value[3])}'
        return Words(_with_line(message, found[2]), f"{_SKIP}; if the value stands for NULL, give it as nullstr")
    if counts := _COUNTS.search(reason):
        message = f"{where}: it has {counts[2]} columns, {counts[1]} were expected"
        return Words(_with_line(message, found[2]), f"{_SKIP}; null_padding = true fills missing columns with NULL; check delim and quote")
    if "unicode" in reason or "utf-8" in reason:
        return Words(f"{where}: the file is not UTF-8 text", "convert it to UTF-8, or give its encoding, such as encoding = 'latin-1'")
    return Words(_with_line(f"{where}: {fitted(reason, 300)}", found[2]), f"{_SKIP}; check delim, quote and escape")


def _with_line(message: str, line: str) -> str:
    return f"{message}\n  {fitted(line.strip(), SHOWN_LINE)}" if line.strip() else message


def _csv_form(found: re.Match[str], said: Said) -> Words:
    sizes = _SNIFFED.search(found[0])
    if sizes:
        message = f"{found[1]}: the lines of the CSV file have {sizes[2]} columns, {sizes[1]} were expected"
        return Words(message, "correct the file, list the columns that it has, or read it with null_padding = true")
    hint = "give its options: delim = ';', quote = '\"', header = true, encoding = 'utf-16'"
    return Words(f"{found[1]}: the form of the CSV file cannot be told", hint)


def _json(found: re.Match[str], said: Said) -> Words:
    return Words(f"{found[1]}, {found[2].strip()}: {sql_types(found[3].splitlines()[0])}", "correct the file, or read it with ignore_errors = true")


def _no_match(found: re.Match[str], said: Said) -> Words:
    hint = "check the path; a relative one starts in the directory in which this process runs"
    return Words(f'no file matches "{found[1]}"', hint, thing=found[1])


def _no_parquet(found: re.Match[str], said: Said) -> Words:
    return Words(f"{found[1]} is no Parquet file, or it was cut off", "check the path and how the file was made")


def _no_encoding(found: re.Match[str], said: Said) -> Words:
    return Words(f"CSV files cannot be read in the encoding {found[1]}", "there are: utf-8, utf-16 and latin-1", thing=found[1])


def _damaged_somewhere(found: re.Match[str], said: Said) -> Words:
    """What DuckDB's Parquet reader says of the bytes inside of a file, without the name of that."""
    hint = "CHECK LAKE names the damaged files of the lake: restore them from a copy of it; a Parquet file from elsewhere has to be made anew"
    return Words(f"a Parquet file that the statement reads is damaged: {found[0].strip()}", hint, kind=OperationalError)


def _of_lake(found: re.Match[str], said: Said) -> Words:
    """A data file of the lake: what the system says of writing it, or of the disk that it is on, else it is damaged."""
    reason = _reason(found[0])
    is_written = "write" in found[0].lower()
    if reason is not None and (is_written or is_of_the_disk(reason)):
        error = file_error(None, reason, f"{'write' if is_written else 'read'} a data file of the lake")
        return Words(error.message, error.hint, kind=OperationalError)
    return Words(found[0], "the file was damaged, changed or removed: restore it from a copy of the lake", kind=OperationalError)


def _spill(found: re.Match[str], said: Said) -> Words:
    error = file_error(None, _reason(found[0]) or "it failed", "spill to the lake's folder tmp")
    return Words(error.message, f"{error.hint}; SET memory_limit = '8GB' spills less" if error.hint else None, kind=OperationalError)


def _confined(found: re.Match[str], said: Said) -> Words:
    message = f'"{found[1]}" is not used: the connection keeps to the lake (safe mode)'
    return Words(message, "it can be used without --safe (in Python: confine)", thing=found[1])


def _cannot(found: re.Match[str], said: Said) -> Words:
    error = file_error(None, found[3].strip().rstrip("."), f"{found[1].lower()} {found[2]}")
    return Words(error.message, error.hint, thing=found[2])


def _reason(message: str) -> str | None:
    found = re.search(r": ([A-Z][\w /-]+?)\.?\s*\Z", message)
    return found[1] if found else None


RULES: tuple[Rule, ...] = (
    rule(rf"^.*{_LAKE_FILE.pattern}.*$", _of_lake),
    rule(rf"^.*{_SPILL_FILE.pattern}.*$", _spill),
    rule(r"^CSV Error on Line: (\d+)\nOriginal Line: ?(.*?)\n(.*)", _csv_line),
    rule(r"^Error when sniffing file \"(.*?)\"(.*)", _csv_form),
    rule(r"^(?:JSON transform error|Malformed JSON) in file \"(.*?)\", (in line \d+|at byte \d+ in \S+ \d+): (.*)", _json),
    rule(r"^No files found that match the pattern \"(.*?)\"", _no_match),
    rule(r"^No magic bytes found at end of file '(.*?)'", _no_parquet),
    rule(r"^File '(.*?)' too small to be a Parquet file", _no_parquet),
    rule(r"^The CSV Reader does not support the encoding: (\".*?\")", _no_encoding),
    rule(r"^Cannot access (?:file|directory) \"(.*?)\" - file system operations are disabled", _confined),
    rule(r"^(?:Cannot|Could not|Failed to) (\w+)(?: \w+)?? (?:file|directory) (\".*?\"): ([^\n]*)", _cannot),
    rule(rf"\A[^\"'\n]*?{_PARQUET_BYTES}.*", _damaged_somewhere),
)
