//! Postgres: pool, migrations, and one function per statement.
