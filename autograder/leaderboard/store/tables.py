"""The tables of the leaderboard, as they are after the last migration.

The tables that record the past (entries, results, history) are append-only, which triggers of the database enforce. The
table of work (jobs) changes. Only this table states whether an entry waits, runs, or has ended.
"""

from __future__ import annotations

from sqlalchemy import JSON, Column, Float, ForeignKey, Index, Integer, LargeBinary, MetaData, String, Table, Text

QUEUED, RUNNING, MEASURED, REFUSED = "queued", "running", "measured", "refused"
# Kinds of history lines that queries search for. A refused entry with a COUNTED line still uses up quota.
TAKEN_UP, COUNTED = "taken up", "counted"

metadata = MetaData()

settings = Table(
    "settings", metadata, Column("name", String(40), primary_key=True), Column("value", LargeBinary, nullable=False)
)
students = Table(
    "students",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(80), nullable=False, unique=True),
    Column("token_sha256", String(64), nullable=False, unique=True),
    Column("expires", Float, nullable=False),
)
files = Table(
    "files", metadata, Column("sha256", String(64), primary_key=True), Column("content", LargeBinary, nullable=False)
)
entries = Table(
    "entries",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("event", String(40), nullable=False),
    Column("student_id", ForeignKey("students.id"), nullable=False),
    Column("name", String(80), nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("size", Integer, nullable=False),
    Column("facts", JSON, nullable=False),
    Column("stamp", Float, nullable=False),
)
jobs = Table(
    "jobs",
    metadata,
    Column("entry_id", ForeignKey("entries.id"), primary_key=True),
    Column("event", String(40), nullable=False),
    Column("student_id", Integer, nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("day", Integer, nullable=False),
    Column("state", String(10), nullable=False, index=True),
    Column("attempt", Integer, nullable=False, default=0),
    Column("worker", String(80), nullable=False, default=""),
    Column("lease", Float, nullable=False, default=0.0),
    Column("progress", String(200), nullable=False, default=""),
)
Index(
    "one_entry_per_file",
    jobs.c.event,
    jobs.c.sha256,
    unique=True,
    sqlite_where=jobs.c.state != REFUSED,
    postgresql_where=jobs.c.state != REFUSED,
)
Index("jobs_of_a_day", jobs.c.student_id, jobs.c.event, jobs.c.day)
results = Table(
    "results",
    metadata,
    Column("entry_id", ForeignKey("entries.id"), primary_key=True),
    Column("scores", JSON, nullable=False),
    Column("evidence", JSON, nullable=False),
)
history = Table(
    "history",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("entry_id", ForeignKey("entries.id"), nullable=False, index=True),
    Column("stamp", Float, nullable=False),
    Column("what", String(20), nullable=False),
    Column("detail", Text, nullable=False),
)
