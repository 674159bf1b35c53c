"""Values that do not fit, and parameters that cannot be passed."""

from __future__ import annotations

import re

from lakelite.cells import fitted
from lakelite.errors import DataError, IntegrityError
from lakelite.mapping.names import did_you_mean, listed
from lakelite.mapping.words import Rule, Said, Words, rule, sql_types

SHOWN = 100  # characters of a value
_TRY = "TRY_CAST gives NULL instead of an error"


def _of(column: str | None) -> str:
    return f" (column {column})" if column else ""


def _no_conversion(found: re.Match[str], said: Said) -> Words:
    message = f"could not convert '{fitted(found[1], SHOWN)}' to {sql_types(found[2])}{_of(found[3])}"
    hint = f"give a {sql_types(found[2])}" if re.match(r"\s*SET\b", said.text, re.IGNORECASE) else _TRY
    return Words(message, hint, thing=f"'{found[1]}'", is_item=found[3] is not None)


def _no_moment(found: re.Match[str], said: Said) -> Words:
    message = f"could not convert '{fitted(found[2], SHOWN)}' to {found[1].upper()}{_of(found[4])}"
    return Words(message, f"write it as {found[3]}; {_TRY}", thing=f"'{found[2]}'", is_item=found[4] is not None)


def _no_such_moment(found: re.Match[str], said: Said) -> Words:
    message = f"{found[1]} value out of range: '{fitted(found[2], SHOWN)}'{_of(found[3])}"
    return Words(message, f"one of its parts is too large; {_TRY}", thing=f"'{found[2]}'", is_item=found[3] is not None)


def _unparsed(found: re.Match[str], said: Said) -> Words:
    message = f"could not parse '{fitted(found[1], SHOWN)}' with the format '{found[2]}': {found[3][:1].lower()}{found[3][1:]}"
    return Words(message, "try_strptime gives NULL instead of an error", thing=f"'{found[1]}'")


def _regex(found: re.Match[str], said: Said) -> Words:
    return Words(f"the regular expression is not valid: {found[0]}", "a backslash in front of a special character takes it as it is")


def _out_of_range(found: re.Match[str], said: Said) -> Words:
    message = f"{found[1]} is out of range for {sql_types(found[2])}{_of(found[3])}"
    return Words(message, f"use a wider type; {_TRY}", thing=found[1], is_item=found[3] is not None)


def _too_many_digits(found: re.Match[str], said: Said) -> Words:
    message = f"{found[1]} is out of range: a lake holds numbers of up to 38 digits, in HUGEINT and UHUGEINT too{_of(found[2])}"
    return Words(message, "VARCHAR holds every digit, DOUBLE about 16 of them", thing=found[1], is_item=found[2] is not None)


_NUMBER = re.compile(r"U?(?:TINY|SMALL|BIG|HUGE)?INT|U?INTEGER|DECIMAL|DOUBLE|FLOAT")


def _no_cast(found: re.Match[str], said: Said) -> Words:
    source, target = sql_types(found[1]), sql_types(found[2])
    hint = "cast it to VARCHAR first, if its text is what is meant"
    if target in ("DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE") and _NUMBER.match(source):
        hint = "a moment is made of a number by make_date(2024, 1, 31), make_timestamp(microseconds since 1970) or to_timestamp(seconds)"
    return Words(f"{source} cannot be cast to {target}", hint)


def _no_json(found: re.Match[str], said: Said) -> Words:
    return Words(fitted(found[0], 200), "json_valid(x) tells which values are JSON")


def _no_format(found: re.Match[str], said: Said) -> Words:
    return Words(f"the format {found[1]} is not known", "such as %Y-%m-%d %H:%M:%S", thing=found[1])


def _overflow(found: re.Match[str], said: Said) -> Words:
    hint = "cast an operand to a wider type, such as HUGEINT or DOUBLE"
    return Words(f"overflow in {found[1]}: {found[3]} does not fit {sql_types(found[2])}", hint, thing=found[3])


def _division(found: re.Match[str], said: Said) -> Words:
    inner = found[1].strip()
    bare = inner[1:-1] if inner.startswith("(") and inner.endswith(")") else inner
    return Words(f"division by zero in {bare}", "nullif(divisor, 0) or TRY(…) gives NULL instead", thing=bare)


def _many_rows(found: re.Match[str], said: Said) -> Words:
    return Words("a subquery that stands for one value gave more than one row", "add LIMIT 1, an aggregate such as max(…), or a condition")


def _not_null(found: re.Match[str], said: Said) -> Words:
    return Words(found[0].splitlines()[0], "give a value, or a DEFAULT to the column", kind=IntegrityError)


def _date_part(found: re.Match[str], said: Said) -> Words:
    parts = "year quarter month week day hour minute second millisecond microsecond epoch dow doy decade century".split()
    return Words(f'there is no part "{found[1]}" of a date', did_you_mean(found[1], parts, f"there are: {listed(parts[:7])} and more"), found[1])


def _parameter_type(found: re.Match[str], said: Said) -> Words:
    return Words(f"a parameter cannot be of the Python type {found[1]}", "pass a number, text, bytes, date, time, list, dict or None")


def _large_parameter(found: re.Match[str], said: Said) -> Words:
    return Words("a parameter is too large: a whole number has at most 128 bits", "pass it as a text, or as a float", kind=DataError)


def _surrogate(found: re.Match[str], said: Said) -> Words:
    return Words("a text holds half of a surrogate pair, which is no character", "pass bytes for what is no text", kind=DataError)


def _long_string(found: re.Match[str], said: Said) -> Words:
    return Words(f"a string would have {found[1]} bytes", f"at most {found[2]} are possible: ask for fewer")


def _list_length(found: re.Match[str], said: Said) -> Words:
    return Words(found[0].splitlines()[0], "an ARRAY has a fixed length; INTEGER[] takes lists of any length")


def _one_type(found: re.Match[str], said: Said) -> Words:
    return Words(f"the arguments of {found[1]} have types that do not go together", "give all of them one type; a cast chooses it: x::TYPE")


def _format(found: re.Match[str], said: Said) -> Words:
    return Words(
        f"printf and format do not know {found[1]} for {sql_types(found[2])}", "%s takes any value of printf, {} any of format", kind=DataError
    )


_OF_COLUMN = r"(?: when casting from source column (.+))?"
RULES: tuple[Rule, ...] = (
    rule(r"^NOT NULL constraint failed: (.*)", _not_null),
    rule(rf"^(?:Failed to cast value: )?Could not convert string ['\"](.*)['\"] to '?(.+?)'?{_OF_COLUMN}$", _no_conversion),
    rule(
        rf"^Type \w+ with value (\S+) can't be cast because the value is out of range for the destination type (\w+(?:\([\d,]+\))?){_OF_COLUMN}",
        _out_of_range,
    ),
    rule(rf"^Type \w+ with value '(.*)' can't be cast to the destination type (.+?){_OF_COLUMN}$", _no_conversion),
    rule(rf"^invalid (\w+) field format: \"(.*?)\", expected format is \(?(.*?)\)?{_OF_COLUMN}$", _no_moment),
    rule(rf"^(\w+) field value out of range: \"(.*)\"{_OF_COLUMN}", _no_such_moment),
    rule(r"^Unimplemented type for cast \((.+) -> (.+)\)", _no_cast),
    rule(r"^Malformed JSON at byte .*", _no_json),
    rule(r"^Failed to parse format specifier (\S+):", _no_format),
    rule(r"^Could not parse string \"(.*?)\" according to format specifier \"(.*?)\".*\nError: ([^\n]*)", _unparsed),
    rule(
        r"^(?:missing \S+|unexpected \S|invalid (?:perl operator|escape sequence|character class(?: range)?|named capture group|repetition size)"
        r"|(?:no argument for|bad) repetition operator): [^\n]*$|^trailing \\.*",
        _regex,
    ),
    rule(rf"^Could not cast value (\S{{39,}}) to DECIMAL\(38,0\){_OF_COLUMN}", _too_many_digits),
    rule(rf"^Could not cast value (\S+) to (DECIMAL\([\d,]+\)){_OF_COLUMN}", _out_of_range),
    rule(r"^(?:Overflow|Underflow) in (\w+) of (\w+) \((.*?)\)", _overflow),
    rule(r"^Cannot create a string of size: '(\d+)', the maximum supported string size is: '(\d+)'", _long_string),
    rule(r"^Cannot cast (?:list|array) (?:with|of) (?:length|size) .*", _list_length),
    rule(r"^Cannot deduce template type '.*' in function: '(\w+)\(", _one_type),
    rule(r"^Invalid type specifier (\".*?\") for formatting a value of type (\w+)", _format),
    rule(r"^Division by zero in expression (.*?)\. Use TRY", _division),
    rule(r"^More than one row returned by a subquery used as an expression", _many_rows),
    rule(r"^extract specifier \"(.*?)\" not recognized", _date_part),
    rule(r"type '<\w+ '(.+?)'>' to DuckDB LogicalType", _parameter_type),
    rule(r"^Python integer too large for 128-bit integer type", _large_parameter),
    rule(r"^Python Conversion Failure: cannot encode str as UTF-8, surrogate", _surrogate),
)
