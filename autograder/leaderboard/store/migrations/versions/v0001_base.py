"""The first version of the schema. A database without a version number is assumed to have exactly this schema."""

from alembic import op

revision, down_revision = "0001", None

TABLES = """
CREATE TABLE settings (name VARCHAR(40) NOT NULL PRIMARY KEY, value {binary} NOT NULL);
CREATE TABLE students (id {serial} NOT NULL PRIMARY KEY, name VARCHAR(80) NOT NULL,
    token_sha256 VARCHAR(64) NOT NULL, expires FLOAT NOT NULL, UNIQUE (name), UNIQUE (token_sha256));
CREATE TABLE files (sha256 VARCHAR(64) NOT NULL PRIMARY KEY, content {binary} NOT NULL);
CREATE TABLE entries (id {serial} NOT NULL PRIMARY KEY, event VARCHAR(40) NOT NULL,
    student_id INTEGER NOT NULL REFERENCES students (id), name VARCHAR(80) NOT NULL, sha256 VARCHAR(64) NOT NULL,
    size INTEGER NOT NULL, facts JSON NOT NULL, stamp FLOAT NOT NULL);
CREATE TABLE jobs (entry_id INTEGER NOT NULL PRIMARY KEY REFERENCES entries (id), event VARCHAR(40) NOT NULL,
    student_id INTEGER NOT NULL, sha256 VARCHAR(64) NOT NULL, day INTEGER NOT NULL, state VARCHAR(10) NOT NULL,
    attempt INTEGER NOT NULL, worker VARCHAR(80) NOT NULL, lease FLOAT NOT NULL, progress VARCHAR(200) NOT NULL);
CREATE INDEX ix_jobs_state ON jobs (state);
CREATE UNIQUE INDEX one_entry_per_file ON jobs (event, sha256) WHERE state != 'refused';
CREATE INDEX jobs_of_a_day ON jobs (student_id, event, day);
CREATE TABLE results (entry_id INTEGER NOT NULL PRIMARY KEY REFERENCES entries (id), scores JSON NOT NULL,
    evidence JSON NOT NULL);
CREATE TABLE history (id {serial} NOT NULL PRIMARY KEY, entry_id INTEGER NOT NULL REFERENCES entries (id),
    stamp FLOAT NOT NULL, what VARCHAR(20) NOT NULL, detail TEXT NOT NULL);
CREATE INDEX ix_history_entry_id ON history (entry_id)
"""
TYPES = {"sqlite": {"serial": "INTEGER", "binary": "BLOB"}, "postgresql": {"serial": "SERIAL", "binary": "BYTEA"}}
APPEND_ONLY = {
    "sqlite": "CREATE TRIGGER {table}_no_{change} BEFORE {change} ON {table} "
    "BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END",
    "postgresql": "CREATE TRIGGER {table}_no_{change} BEFORE {change} ON {table} "
    "FOR EACH STATEMENT EXECUTE FUNCTION append_only()",
}


def upgrade() -> None:
    """Create the tables, and the triggers that make entries, results and history append-only."""
    dialect = op.get_bind().dialect.name
    for statement in TABLES.format(**TYPES[dialect]).split(";"):
        op.execute(statement)
    changes = ["update", "delete"]
    if dialect == "postgresql":
        changes.append("truncate")
        op.execute(
            "CREATE OR REPLACE FUNCTION append_only() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME; END $$"
        )
    for table in ("entries", "results", "history"):
        for change in changes:
            op.execute(APPEND_ONLY[dialect].format(table=table, change=change))
