"""What Alembic runs: the migrations, in the transaction that `database.open_database` has begun."""

from alembic import context

from autograder.leaderboard.store.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
