"""Z-order: rows that are near each other in several columns at once stand near each other in the files.

Each column's values are replaced by their rank among all rows (NULL first, equal values alike, NaN last: any type that
DuckDB orders), cut to some bits, and the bits of all columns are interleaved into one number. Text of SQL only.
"""

from __future__ import annotations

_KEY_BITS = 62  # of a BIGINT
_COLUMN_BITS = 16


def values(count: int) -> list[str]:
    """What the columns to order by are called in the rows that `keys` takes."""
    return [f"lake_value_{i}" for i in range(count)]


def keys(rows: str, count: int) -> str:
    """A SELECT of place, position, part and the key z of each of `rows`: a SELECT of lake_place, lake_at, lake_part and `values(count)`."""
    if count == 0:
        return f"SELECT lake_place AS place, lake_at AS position, lake_part AS part, 0 AS z FROM ({rows})"
    bits = min(_COLUMN_BITS, _KEY_BITS // count)
    ranks = ", ".join(f"rank() OVER (ORDER BY {value} ASC NULLS FIRST) AS lake_rank_{i}" for i, value in enumerate(values(count)))
    scaled = ", ".join(f"((lake_rank_{i} - 1)::HUGEINT * {2**bits} // lake_count)::BIGINT AS lake_rank_{i}" for i in range(count))
    terms = (f"(((lake_rank_{i} >> {bit}) & 1) << {bit * count + count - 1 - i})" for bit in range(bits) for i in range(count))
    ranked = f"SELECT lake_place, lake_at, lake_part, count(*) OVER () AS lake_count, {ranks} FROM ({rows})"
    z = " | ".join(terms)
    return (
        f"SELECT lake_place AS place, lake_at AS position, lake_part AS part, {z} AS z"
        f" FROM (SELECT lake_place, lake_at, lake_part, {scaled} FROM ({ranked}))"
    )
