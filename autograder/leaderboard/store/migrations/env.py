"""The script that Alembic runs. It applies the migrations in the transaction begun by `database.open_database`."""

from alembic import context

from autograder.leaderboard.store.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
