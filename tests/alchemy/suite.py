"""SQLAlchemy's own compliance suite, as a file that pytest can run; see `test_compliance.py`."""

from sqlalchemy.testing.suite import *  # noqa: F403
