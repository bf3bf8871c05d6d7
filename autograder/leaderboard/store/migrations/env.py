"""The script that Alembic runs. It applies the migrations in the transaction that `database.open_database` began."""

from alembic import context

from autograder.leaderboard.store.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
