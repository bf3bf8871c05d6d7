"""The schema as it was before it had versions: a database without one is taken to have exactly this."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy import Column, Float, ForeignKey, Integer, LargeBinary, String

revision, down_revision = "0001", None


def upgrade() -> None:
    """Create the tables, and the triggers that keep what happened as it is."""
    op.create_table(
        "settings", Column("name", String(40), primary_key=True), Column("value", LargeBinary, nullable=False)
    )
    op.create_table(
        "students",
        Column("id", Integer, primary_key=True),
        Column("name", String(80), nullable=False, unique=True),
        Column("token_sha256", String(64), nullable=False, unique=True),
        Column("expires", Float, nullable=False),
    )
    op.create_table(
        "files", Column("sha256", String(64), primary_key=True), Column("content", LargeBinary, nullable=False)
    )
    op.create_table(
        "entries",
        Column("id", Integer, primary_key=True),
        Column("event", String(40), nullable=False),
        Column("student_id", Integer, ForeignKey("students.id"), nullable=False),
        Column("name", String(80), nullable=False),
        Column("sha256", String(64), nullable=False),
        Column("size", Integer, nullable=False),
        Column("facts", sa.JSON, nullable=False),
        Column("stamp", Float, nullable=False),
    )
    op.create_table(
        "jobs",
        Column("entry_id", Integer, ForeignKey("entries.id"), primary_key=True),
        Column("event", String(40), nullable=False),
        Column("student_id", Integer, nullable=False),
        Column("sha256", String(64), nullable=False),
        Column("day", Integer, nullable=False),
        Column("state", String(10), nullable=False, index=True),
        Column("attempt", Integer, nullable=False),
        Column("worker", String(80), nullable=False),
        Column("lease", Float, nullable=False),
        Column("progress", String(200), nullable=False),
    )
    not_refused = sa.text("state != 'refused'")
    only: Any = {"sqlite_where": not_refused, "postgresql_where": not_refused}
    op.create_index("one_entry_per_file", "jobs", ["event", "sha256"], unique=True, **only)
    op.create_index("jobs_of_a_day", "jobs", ["student_id", "event", "day"])
    op.create_table(
        "results",
        Column("entry_id", Integer, ForeignKey("entries.id"), primary_key=True),
        Column("scores", sa.JSON, nullable=False),
        Column("evidence", sa.JSON, nullable=False),
    )
    op.create_table(
        "history",
        Column("id", Integer, primary_key=True),
        Column("entry_id", Integer, ForeignKey("entries.id"), nullable=False, index=True),
        Column("stamp", Float, nullable=False),
        Column("what", String(20), nullable=False),
        Column("detail", sa.Text, nullable=False),
    )
    postgresql = op.get_bind().dialect.name == "postgresql"
    if postgresql:
        op.execute(
            "CREATE OR REPLACE FUNCTION append_only() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME; END $$"
        )
    for table in ("entries", "results", "history"):
        if postgresql:
            op.execute(
                f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
                "FOR EACH STATEMENT EXECUTE FUNCTION append_only()"
            )
            continue
        for change in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER {table}_no_{change.lower()} BEFORE {change} ON {table} "
                f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
            )
