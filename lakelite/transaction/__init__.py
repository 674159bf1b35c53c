"""Transactions: what statements change, how a commit is reconciled with what others committed, and how it lands."""
