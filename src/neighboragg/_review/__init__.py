"""The review page: suspicious labels with their evidence, decisions kept in SQLite, corrections."""
