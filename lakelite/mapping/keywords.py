"""The words of the language, and what one of them may mean where it does not fit. Pure, and knows no library."""

from __future__ import annotations

CLAUSES = """SELECT FROM WHERE GROUP ORDER HAVING LIMIT OFFSET UNION INTERSECT EXCEPT QUALIFY WINDOW VALUES RETURNING DISTINCT BETWEEN
    PARTITION INNER LEFT RIGHT OUTER CROSS JOIN USING INTERVAL EXISTS DEFAULT PRIMARY REFERENCES INTO TABLE AND LIKE CASE WHEN THEN ELSE
    CAST NULL NOT BY ON AS""".split()

_OTHER_WORDS = "OVER PIVOT UNPIVOT IN IS OR SET ALL ANY ASC DESC FOR END FILTER FIRST LAST ROWS RANGE WITH WITHIN USE SHOW".split()

_RESERVED = """ANALYSE ANALYZE ARRAY ASYMMETRIC BOTH CHECK COLLATE COLUMN CONSTRAINT CREATE DEFERRABLE DESCRIBE DO FALSE FETCH FOREIGN GRANT INITIALLY
    LAMBDA LATERAL LEADING ONLY PIVOT_LONGER PIVOT_WIDER PLACING SOME SUMMARIZE SYMMETRIC TO TRAILING TRUE UNIQUE VARIADIC""".split()


def misplaced(before: str, word: str) -> str:
    """What a word that does not fit may mean, if it is no slip of a keyword."""
    above, _, on_line = before.rpartition("\n")
    if word[:1] in (".", "\\") and above.strip() and not on_line.strip():
        return "a semicolon ends the statement that stands in front of a command"
    before = before.rstrip()
    if before.endswith(",") and not word[:1].isalnum():
        return "something is missing behind the comma"
    if is_known(word) or word.upper() in _RESERVED:
        return f'it is a word of the language: as a name write "{word}" in double quotes; else something is missing in front of it'
    if not before:
        return "a statement begins with a word such as SELECT, INSERT, UPDATE or CREATE"
    return "what stands in front of it does not go on like this: a comma, an operator or a keyword is missing, or it is a word too many"


def is_known(word: str) -> bool:
    return word.upper() in CLAUSES or word.upper() in _OTHER_WORDS
