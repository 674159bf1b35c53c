"""The clause that an error is about, where neither DuckDB nor the error itself says the place: by the words of the message.

Owns: which clause each kind of message is about. Promises: a place is given only where it is sure: the clause stands in the text once,
outside of strings and comments, and the text reads no view (`Names.reads_view`; the caller asks), whose text could be meant as well.
Linear in the text. Pure functions.
"""

from __future__ import annotations

import re
from itertools import islice

from lakelite.errors import Position

_ASIDE = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/|\$(\w*)\$.*?\$\1\$", re.DOTALL)
_NAME = r"(?:(?:\w+|\"[^\"]*\")\.)?(?:\w+|\"[^\"]*\")"
_INSERT = rf"\bINSERT\s+(?:OR\s+\w+\s+)?(?:INTO\s+|OVERWRITE\s+(?:INTO\s+)?)?(?P<here>{_NAME})"

# The words of a message; then a clause, or several of which any is meant. What the message names as \1 stands in them as {0}; `here` is
# the place within the clause.
_CLAUSES: tuple[tuple[str, str], ...] = (
    (r"^the queries of a set operation ", r"\b(?:UNION|INTERSECT|EXCEPT)\b"),
    (r"^a subquery that stands for one value gave more than one row", r"\(\s*(?:SELECT|FROM|WITH|VALUES)\b"),
    (r"^a slice cannot have the step 0", r"\[[^\[\]]*:[^\[\]]*:\s*0\s*\]|\b(?:list|array)_slice\s*\("),
    (r"^the step of a range cannot be 0", r"\b(?:range|generate_series)\s*\("),
    (r"^GROUP BY term out of range", r"\bGROUP\s+BY\b"),
    (r"^ORDER term out of range", r"\bORDER\s+BY\b"),
    (r"^a table needs a column", r"\(\s*\)"),
    (r"^Map keys must be unique", r"\bmap\s*[({{]|\bmap_(?:from_entries|concat)\s*\("),
    (r"^the size of a sample ", r"\b(?:TABLESAMPLE|USING\s+SAMPLE)\b"),
    (r"^SELECT clause without selection list", r"\bSELECT\b"),
    (r"^DEFAULT value cannot contain", r"\bDEFAULT\b"),
    (r"^DISTINCT requires at least one argument", r"\bDISTINCT\b"),
    (r"^FOREIGN KEY is not enforced", r"\bFOREIGN\s+KEY\s*\([^()]*\)\s*REFERENCES\b|\bREFERENCES\b"),
    (r"^Cannot extract field '(.+?)' from expression \"(.+?)\"", r"(?<!\w)\"?{1}\"?\s*\.\s*(?P<here>\"?{0}\"?)(?!\w)"),
    (r"^the size of a type has to be a constant", r"\b(?:VARCHAR|CHAR|DECIMAL|NUMERIC|TEXT)\s*\(\s*[^\d\s)]"),
    (r"^a lambda function can only stand", r"\blambda\b"),
    (r"^the column #\d+ ", r"\#\d+"),
    (r"^a hexadecimal string ", r"\bx'"),
    (r"^SUMMARIZE ", r"\bSUMMARIZE\b"),
    (r"^sequences are not ", r"\b(?:nextval|currval)\s*\("),
    (r"^a string would have ", r"\b(?:repeat|lpad|rpad)\s*\("),
    (r"^printf and format ", r"\b(?:printf|format)\s*\("),
    (
        r"^Memory must have a number|^Must have at least 1 thread|^\w+ cannot be |^\w+ has to be a whole number",
        r"\A\s*SET\s+(?:GLOBAL\s+|SESSION\s+|LOCAL\s+)?(?P<here>\w+)",
    ),
    (r"^LIMIT/OFFSET cannot be", r"\b(?:LIMIT|OFFSET)\s+-"),
    (r"^Missing ASOF JOIN inequality", r"\bASOF\b"),
    (r"^UNPIVOT ", r"\bUNPIVOT\b"),
    (r"^More VIEW aliases", rf"\bVIEW\s+(?:IF\s+NOT\s+EXISTS\s+)?(?P<here>{_NAME})"),
    (r"^the schema main cannot", r"\bSCHEMA\s+(?:IF\s+EXISTS\s+)?(?P<here>\"?main)"),
    (r"^(?:Left|Right)-shift value", r"<<|>>"),
    (r"^Invalid escape string", r"\bESCAPE\b"),
    (r"^Invalid UTF8 Codepoint", r"\bchr\s*\("),
    (r"^[Tt]able .*?does not (?:have a column named|contain column) \"(.+?)\"", r"(?<![\w.])(?P<here>\"?{0}\"?)(?!\w)"),
    (r"^The specified columns as conflict target", r"\bON\s+CONFLICT\b"),
    (r"^a past version of a table cannot stand here", rf"(?P<here>{_NAME})\s+(?:AT\s*\(|FOR\s+(?:VERSION|TIMESTAMP)\s+AS\b)"),
    (r"^subqueries prohibited in CHECK", r"\bCHECK\b"),
    (r"^MERGE would update a row|^the table has \d+ columns, and the source of the MERGE", r"\bUPDATE\b"),
)  # fmt: skip
# Of these the second one of two is meant.
_SECOND: tuple[tuple[str, str], ...] = (
    (
        r'^two queries of WITH are called "(.+?)"',
        r"(?:\bWITH|,)\s+(?:RECURSIVE\s+)?(?P<here>\"?{0}\"?)(?:\s*\([^()]*\))?\s+AS\s+(?:(?:NOT\s+)?MATERIALIZED\s+)?\(",
    ),
    (r"has more than one primary key", r"\bPRIMARY\s+KEY\b"),
)  # fmt: skip
_KNOWN = tuple((message, one, nth) for group, nth in ((_CLAUSES, 1), (_SECOND, 2)) for message, one in group)
_PATTERN = re.compile(r"\bregexp_\w+\s*\([^,()']*(?:'(?:[^']|'')*')?\s*,\s*(?P<here>'(?:[^']|'')*')", re.IGNORECASE)
_OF_ROWS = re.compile(r"^NOT NULL constraint failed: .*?([^.]+)$|^CHECK constraint failed on table|^Duplicate key ", re.DOTALL)
_TARGET = re.compile(rf"{_INSERT}|\A\s*(?:MERGE\s+INTO|UPDATE|COPY|ALTER\s+TABLE)\s+(?P<other>{_NAME})", re.IGNORECASE)
_COUNTS = re.compile(r"^\d+ columns are listed, but|^table \S+ has \d+ columns, but")
_SUPPLIED = re.compile(rf"\A\s*{_INSERT.replace('<here>', '<target>')}\s*(?:\([^()]*\)\s*)?(?P<here>(?:VALUES|SELECT|FROM)\b)", re.IGNORECASE)
_TWICE = re.compile(r'^column "(.+?)" already exists')
_SPOKEN_OF = re.compile(
    r"\A'?(\w+)'?(?:\(\)|:| expects| takes| accepts| radix| requires| with )|\b[Aa]rgument (?:for|to|of) '?(\w+)|argument to (\w+)$"
)
_NO_CALL = r"(?<!\bINTO )(?<!\bTABLE )(?<!\bOVERWRITE )(?<!\bVIEW )(?<!\bAS )(?<!\bUSING )(?<![\w.])"  # names of tables, with their columns


def clause(message: str, text: str) -> Position | None:
    """Where in `text` the clause stands that `message` is about; None: the message names none, or it is not sure which one."""
    found = _pattern(message, text) if message.startswith("the regular expression is not valid") else _by_words(message, blanked(text))
    return None if found is None else Position.at(text, found)


def _by_words(message: str, plain: str) -> int | None:
    if rows := _OF_ROWS.search(message):
        return _column_set(plain, rows[1]) if rows[1] and re.match(r"\s*UPDATE\b", plain, re.IGNORECASE) else _target(plain)
    if _COUNTS.search(message):
        return _supplied(plain)
    if twice := _TWICE.search(message):
        return _second_item(plain, twice[1])
    for pattern, one, nth in _KNOWN:
        if found := re.search(pattern, message, re.DOTALL):
            return _nth(re.compile(one.format(*map(re.escape, found.groups())), re.IGNORECASE), plain, nth)
    return None


def call(message: str, text: str) -> tuple[str, int] | None:
    """The function that the message speaks of and the text calls once, and where; None: there is none, or there are several."""
    spoken = _SPOKEN_OF.search(message)
    if spoken is None or re.search(r"\berror\s*\(", text, re.IGNORECASE):  # the message may be the user's own
        return None
    name = next(group for group in spoken.groups() if group).lower()
    place = _nth(re.compile(rf"{_NO_CALL}{name}\s*\(", re.IGNORECASE), blanked(text), 1)
    return None if place is None else (name, place)


def blanked(text: str) -> str:
    """The text with blanks for what is inside of strings, comments, and names in quotes that are more than a word."""

    def blank(found: re.Match[str]) -> str:
        whole = found[0]
        if whole[0] == '"' and re.fullmatch(r"\w+", whole[1:-1]):
            return whole
        edge = whole[0] if whole[0] in "'\"" else " "
        return edge + " " * (len(whole) - 2) + edge

    return _ASIDE.sub(blank, text)


def _nth(pattern: re.Pattern[str], plain: str, nth: int) -> int | None:
    """Where the nth of exactly so many clauses is."""
    found = list(islice(pattern.finditer(plain), nth + 1))
    return found[-1].start("here" if "here" in pattern.groupindex else 0) if len(found) == nth else None


def _pattern(message: str, text: str) -> int | None:
    """The regular expression of the only call that has one, if the message is about it."""
    place = _nth(_PATTERN, text, 1)
    about = message.rpartition(": ")[2]
    return (
        place if place is not None and about in text[place:] and len(re.findall(r"\bregexp_|[!~]~|\bSIMILAR\b", text, re.IGNORECASE)) == 1 else None
    )


def _target(plain: str) -> int | None:
    """The name of the table that the statement writes to."""
    found = _TARGET.search(plain)
    if found is None or (found["here"] and re.match(r"\s*MERGE\b", plain, re.IGNORECASE)):
        return None
    return found.start("here" if found["here"] else "other")


def _column_set(plain: str, name: str) -> int | None:
    """The column in the SET list of an UPDATE; its table if it is not clear which one is meant."""
    assigned = re.compile(rf"(?:\bSET|,)\s*(?P<here>\"?{re.escape(name)}\"?)\s*=(?!=)", re.IGNORECASE)
    place = _nth(assigned, plain, 1)
    return _target(plain) if place is None else place


def _supplied(plain: str) -> int | None:
    """What an INSERT supplies; of a MERGE its only INSERT."""
    if re.match(r"\s*MERGE\b", plain, re.IGNORECASE):
        return _nth(re.compile(r"\bINSERT\b", re.IGNORECASE), plain, 1)
    found = _SUPPLIED.search(plain)
    return found.start("here") if found else None


def _second_item(plain: str, name: str) -> int | None:
    """The second item that begins with the name, in the first brackets of a CREATE TABLE, or behind ADD COLUMN."""
    first = plain.find("(")
    if first < 0 or not re.match(r"\s*CREATE\b", plain, re.IGNORECASE):
        return None
    depth, found, begins = 0, [], False
    for token in re.finditer(r"[(\[{]|[)\]}]|,|\"\w+\"|\w+", plain[first:]):
        shown = token[0]
        if begins and shown.strip('"').lower() == name.lower():
            found.append(first + token.start())
        depth += (shown in "([{") - (shown in ")]}")
        begins = depth == 1 and shown in "(,"
        if depth == 0:
            break
    return found[1] if len(found) == 2 else None
