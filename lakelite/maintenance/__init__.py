"""Upkeep of a lake: moving rows between fragments and removing what no kept snapshot needs."""
