"""The clause that an error is about, where neither DuckDB nor the error itself says the place: by the words of the message.

Owns: which clause each kind of message is about. Promises: a place is given only where such a clause stands in the text once,
outside of strings and comments; a wrong one never. Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lakelite.errors import Position

_ASIDE = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/|\$(\w*)\$.*?\$\1\$", re.DOTALL)
_TARGET = r"\b(?:INTO|OVERWRITE|OVERWRITE\s+INTO|UPDATE|COPY|TABLE)\s+(?P<here>(?:\w+\.|\"[^\"]*\"\.)?(?:\w+|\"[^\"]*\"))(?!\s+(?:SET\s+\*|BY\b))"

# The words of a message; then the clauses, the likeliest first. What the message names as \1 stands in them as {0}; `here` is the place.
_CLAUSES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"^the queries of a set operation ", (r"\b(?:UNION|INTERSECT|EXCEPT)\b",)),
    (
        r"^\d+ columns are listed, but|^table \S+ has \d+ columns, but|^the table has \d+ columns, and",
        (r"\bVALUES\b", r"\bUPDATE\s+SET\s+\*", r"\bINSERT\s+\*", _TARGET),
    ),
    (r"^NOT NULL constraint failed: .*?(\w+)$", (r"\bSET\s+(?:[^()]*,\s*)?(?P<here>\"?{0}\"?)\s*=", _TARGET)),
    (r"^CHECK constraint failed on table|^Duplicate key ", (_TARGET,)),
    (r'^column "(.+?)" already exists', (r"[(,]\s*\"?{0}\"?[\s,].*?,\s*(?P<here>\"?{0}\"?)(?=[\s,)])",)),
    (r"^a subquery that stands for one value gave more than one row", (r"\(\s*(?:SELECT|FROM|WITH|VALUES)\b",)),
    (r"^a slice cannot have the step 0", (r"\[[^\[\]]*:[^\[\]]*:[^\[\]]*\]",)),
    (r"^the step of a range cannot be 0", (r"\b(?:range|generate_series)\s*\(",)),
    (r"^GROUP BY term out of range", (r"\bGROUP\s+BY\b",)),
    (r"^ORDER term out of range", (r"\bORDER\s+BY\b",)),
    (r"^a table needs a column", (r"\(\s*\)",)),
    (r"^Map keys must be unique", (r"\bmap\s*[({{]", r"\bmap_from_entries\s*\(")),
    (r"^the size of a sample ", (r"\b(?:TABLESAMPLE|USING\s+SAMPLE)\b",)),
    (r"^SELECT clause without selection list", (r"\bSELECT\b",)),
    (r"^DEFAULT value cannot contain", (r"\bDEFAULT\b",)),
    (r"^DISTINCT requires at least one argument", (r"\bDISTINCT\b",)),
    (r"^FOREIGN KEY is not enforced", (r"\b(?:FOREIGN\s+KEY|REFERENCES)\b",)),
    (r"^Cannot extract field '(.+?)' from", (r"\.\s*(?P<here>\"?{0}\"?)(?!\w)",)),
    (r"^the size of a type has to be a constant", (r"\b(?:VARCHAR|CHAR|DECIMAL|NUMERIC|TEXT)\s*\(",)),
    (r"^a lambda function can only stand", (r"\blambda\b", r"->")),
    (r'^two queries of WITH are called "(.+?)"', (r",\s*(?P<here>\"?{0}\"?)\s+AS\b",)),
    (r"^the column #\d+ ", (r"\#\d+",)),
    (r"^a hexadecimal string ", (r"\bx'",)),
    (r"^SUMMARIZE ", (r"\bSUMMARIZE\b",)),
    (r"^sequences are not ", (r"\b(?:nextval|currval)\s*\(",)),
    (r"^a string would have ", (r"\b(?:repeat|lpad|rpad)\s*\(",)),
    (r"^printf and format ", (r"\b(?:printf|format)\s*\(",)),
    (r"^the regular expression is not valid: .*: (.+)$", (r"'[^']*{0}[^']*'",)),
    (r"^Memory must have a number|^\w+ cannot be |^\w+ has to be a whole number", (r"^\s*SET\s+(?P<here>\w+)",)),
    (r"^more than one table is called \"(.+?)\"", (r",\s*(?:\w+\.)?(?P<here>\"?{0}\"?)(?!\w)",)),
    (r"^LIMIT/OFFSET cannot be", (r"\b(?:LIMIT|OFFSET)\s+-",)),
    (r"^Missing ASOF JOIN inequality", (r"\bASOF\b",)),
    (r"^UNPIVOT ", (r"\bUNPIVOT\b",)),
    (r"^More VIEW aliases", (r"\bVIEW\s+(?P<here>(?:\w+|\"[^\"]*\"))",)),
    (r"^the schema main cannot", (r"\bSCHEMA\s+(?:IF\s+EXISTS\s+)?(?P<here>\"?main)",)),
    (r"^(?:Left|Right)-shift value", (r"<<|>>",)),
    (r"^Invalid escape string", (r"\bESCAPE\b",)),
    (r"^Invalid UTF8 Codepoint", (r"\bchr\s*\(",)),
    (r"^Must have at least 1 thread", (r"^\s*SET\s+(?P<here>\w+)",)),
    (r"^[Tt]able .*?does not (?:have a column named|contain column) \"(.+?)\"", (r"(?<![\w.])(?P<here>\"?{0}\"?)(?!\w)",)),
    (r"has more than one primary key", (r"\bPRIMARY\s+KEY\b.*?(?P<here>\bPRIMARY\s+KEY\b)",)),
    (r"^The specified columns as conflict target", (r"\bON\s+CONFLICT\b",)),
    (r"^subqueries prohibited in CHECK", (r"\bCHECK\b",)),
    (r"^MERGE would update a row", (r"\bUPDATE\b",)),
)  # fmt: skip
_SPOKEN_OF = re.compile(
    r"\b[a-z]+_\w+\b|^'?(\w+)'?(?:\(\)|:| expects| takes| accepts| radix| requires)|\bargument (?:for|to|of) '?(\w+)", re.IGNORECASE
)
_NOT_A_CALL = r"(?<!\bINTO )(?<!\bTABLE )(?<!\bOVERWRITE )(?<!\bVIEW )(?<!\bAS )(?<!\bUSING )(?<!\.)"  # names of tables, with their columns
_KNOWN = tuple((re.compile(message, re.DOTALL), clauses) for message, clauses in _CLAUSES)


def clause(message: str, text: str) -> Position | None:
    """Where in `text` the clause stands that `message` is about; None: the message names none, or it stands there twice."""
    for pattern, clauses in _KNOWN:
        if found := pattern.search(message):
            names = [re.escape(group) for group in found.groups()]
            places = (_only(re.compile(one.format(*names), re.IGNORECASE | re.DOTALL), text) for one in clauses)
            return next((Position.at(text, place) for place in places if place is not None), None)
    return None


def call(message: str, text: str) -> tuple[str, int] | None:
    """The function that the message speaks of and the text calls once, and where; None: there is none, or there are several."""
    words = {found[found.lastindex or 0].lower() for found in _SPOKEN_OF.finditer(message)}
    calls = [(word, _only(re.compile(rf"{_NOT_A_CALL}\b{word}\s*\(", re.IGNORECASE), text)) for word in words]
    found = [(word, place) for word, place in calls if place is not None]
    return found[0] if len(found) == 1 else None


def _only(pattern: re.Pattern[str], text: str) -> int | None:
    found = list(_outside(pattern, text))
    return found[0] if len(found) == 1 else None


def _outside(pattern: re.Pattern[str], text: str) -> Iterator[int]:
    """Where the clause begins, outside of strings, quoted names and comments (at the beginning of one it may)."""
    aside = [found.span() for found in _ASIDE.finditer(text)]
    for found in pattern.finditer(text):
        start = found.start("here" if "here" in pattern.groupindex else 0)
        if not any(first < start < last for first, last in aside):
            yield start
