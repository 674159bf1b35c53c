"""What lakelite has of what SQLAlchemy's compliance suite asks for, and what the suite has to know to run on a lake.

Given to the suite by `test_compliance.py`. A property that is closed is refused by lakelite by name, or is no part of it; the README says so.
"""

from __future__ import annotations

from sqlalchemy.dialects import registry
from sqlalchemy.testing import exclusions
from sqlalchemy.testing.provision import temp_table_keyword_args
from sqlalchemy.testing.requirements import SuiteRequirements

registry.register("lakelite.lakelite", "lakelite.interfaces.sqlalchemy", "LakeliteDialect")  # the suite names the driver, too
HAS = """
    create_table_as create_temp_table_as table_ddl_if_exists uuid_data_type table_value_constructor boolean_col_expressions nullsordering intersect except_
    window_functions window_range window_range_numeric window_range_non_numeric ctes ctes_with_update_delete ctes_with_values tuple_in views
    implicit_default_schema reflects_pk_names comment_reflection comment_reflection_full_unicode temp_table_comment_reflection
    schema_create_delete temp_table_reflection temp_table_names has_temp_table temporary_views create_or_replace_view unique_constraint_reflection
    check_constraint_reflection inline_check_constraint_reflection unicode_ddl datetime_interval datetime_literals datetime_timezone time_timezone
    timestamp_microseconds datetime_historic datetime_timezone_historic date_historic autocommit skip_autocommit_rollback isolation_level array_type json_type
    precision_numerics_enotation_small precision_numerics_many_significant_digits server_defaults expression_server_defaults aggregate_order_by
    precision_numerics_retains_significant_digits infinity_floats float_or_double_precision_behaves_generically savepoints update_from delete_from
    mod_operator_as_percent_sign order_by_label_with_expression regexp_match regexp_replace fetch_first fetch_no_order_by fetch_expression
    supports_bitwise_or supports_bitwise_and supports_bitwise_not supports_bitwise_xor supports_bitwise_shift percent_schema_names nvarchar_types
    supports_distinct_on binary_literals legacy_unconditional_json_extract
""".split()
LACKS = """
    on_update_cascade index_reflection foreign_key_constraint_reflection indexes_with_ascdesc reflect_indexes_with_ascdesc implements_get_lastrowid
""".split()


class Requirements(SuiteRequirements):
    """Every other requirement is as the suite has it."""

    def get_isolation_levels(self, config):
        return {"default": "SERIALIZABLE", "supported": ["SERIALIZABLE", "WRITE SERIALIZABLE", "SNAPSHOT", "AUTOCOMMIT"]}


for _name in HAS + LACKS:
    assert hasattr(SuiteRequirements, _name), _name
    setattr(Requirements, _name, property(lambda self, rule=exclusions.open if _name in HAS else exclusions.closed: rule()))


@temp_table_keyword_args.for_db("lakelite")
def _temporary(cfg, engine):
    return {"prefixes": ["TEMPORARY"]}
