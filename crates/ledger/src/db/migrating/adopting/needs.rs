//! Names that our schema needs, read from the migrations themselves: their tables, views and
//! indexes, and the columns that they add to `document` and `ingestion`. Not an SQL parser: the
//! migrations write these statements in one form each, which the tests check.

use sqlx::migrate::Migrator;

/// The line of the baseline that estimates when an ingestion was created.
pub(super) const GUESSED_CREATION: &str =
    "    created_at = COALESCE(started_at, completed_at, created_at),\n";

/// Columns with the same meaning for the product and for docmill.
const SHARED_MEANING: [&str; 10] = [
    "document.original_name",
    "document.sha256",
    "document.size_bytes",
    "document.tenant",
    "document.tags",
    "document.created_at",
    "ingestion.created_at",
    "ingestion.updated_at",
    "ingestion.tenant",
    "ingestion.pages",
];

/// A column that a migration adds to a table of the earlier system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AddedColumn {
    pub table: String,
    pub name: String,
    pub column_type: String,
    pub default: Option<String>,
    pub not_null: bool,
}

impl AddedColumn {
    /// `table.column`.
    pub(super) fn key(&self) -> String {
        format!("{}.{}", self.table, self.name)
    }

    /// Whether a product's column of that name may be it.
    pub(super) fn is_shared(&self) -> bool {
        SHARED_MEANING.contains(&self.key().as_str())
    }

    /// The type as Postgres writes it.
    pub(super) fn full_type(&self) -> &str {
        match self.column_type.as_str() {
            "timestamptz" => "timestamp with time zone",
            "int" => "integer",
            other => other,
        }
    }

    /// Whether values of this type can be taken as they are, or converted without loss.
    pub(super) fn takes(&self, existing: &str, is_enum: bool) -> bool {
        let existing = existing.split('(').next().unwrap_or(existing);
        existing == self.full_type()
            || match self.full_type() {
                "text" => is_enum || matches!(existing, "character varying" | "character"),
                "bigint" => matches!(existing, "integer" | "smallint"),
                "integer" => existing == "smallint",
                "jsonb" => existing == "json",
                "timestamp with time zone" => {
                    existing.starts_with("timestamp") || existing == "date"
                }
                _ => false,
            }
    }

    /// The default for rows that are there, before any function of ours is; none if null will do.
    pub(super) fn default_before_us(&self) -> Option<String> {
        let default = self.default.as_ref().filter(|_| self.not_null)?;
        Some(default.replace("docmill_now()", "now()"))
    }
}

/// Names that must be free, and columns that must fit.
#[derive(Debug, Default)]
pub(super) struct SchemaNeeds {
    /// Tables, views and indexes.
    pub relations: Vec<String>,
    /// Columns of the two tables of the earlier system.
    pub columns: Vec<AddedColumn>,
}

impl SchemaNeeds {
    /// Of all migrations.
    pub(super) fn of(all: &Migrator) -> Self {
        let mut needs = Self::default();
        for migration in all.iter() {
            needs.read(migration.sql.as_str());
        }
        needs
    }

    fn read(&mut self, sql: &str) {
        let mut altered = "";
        for line in sql.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                ["ALTER", "TABLE", table, rest @ ..] => {
                    altered = table.trim_end_matches(';');
                    self.read_column(altered, rest);
                }
                ["CREATE", rest @ ..] => self.read_relation(rest),
                rest => self.read_column(altered, rest),
            }
            if line.trim_end().ends_with(';') {
                altered = "";
            }
        }
    }

    fn read_relation(&mut self, words: &[&str]) {
        let ignored = ["OR", "REPLACE", "UNIQUE", "CONCURRENTLY", "IF", "NOT", "EXISTS"];
        let mut words = words.iter().filter(|word| !ignored.contains(word));
        let is_relation =
            words.next().is_some_and(|word| ["TABLE", "VIEW", "INDEX"].contains(word));
        let Some(name) = words.next().filter(|_| is_relation) else { return };
        let name = name.trim_end_matches(['(', ';']).to_owned();
        let earlier = ["document", "ingestion"].contains(&name.as_str());
        if !earlier && !self.relations.contains(&name) {
            self.relations.push(name);
        }
    }

    fn read_column(&mut self, table: &str, words: &[&str]) {
        let ["ADD", "COLUMN", name, column_type, rest @ ..] = words else { return };
        // Only columns of the earlier system are added IF NOT EXISTS.
        if *name == "IF" || !["document", "ingestion"].contains(&table) {
            return;
        }
        let default = rest.iter().position(|word| *word == "DEFAULT");
        let default = default.and_then(|at| rest.get(at + 1));
        self.columns.push(AddedColumn {
            table: table.to_owned(),
            name: (*name).to_owned(),
            column_type: column_type.trim_end_matches([',', ';']).to_owned(),
            default: default.map(|word| word.trim_end_matches([',', ';']).to_owned()),
            not_null: rest.starts_with(&["NOT", "NULL"]),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::{GUESSED_CREATION, SHARED_MEANING, SchemaNeeds};

    #[test]
    fn names_made_by_the_migrations_are_found_in_them() {
        let needs = SchemaNeeds::of(&crate::db::MIGRATIONS);
        for name in ["worker", "attempt", "pause", "ops_review", "ingestion_by_age", "spending_day"]
        {
            assert!(needs.relations.iter().any(|relation| relation == name), "{name}");
        }
        let column = |key: &str| needs.columns.iter().find(|column| column.key() == key);
        let made = column("document.created_at").unwrap();
        assert_eq!(
            (made.full_type(), made.default.as_deref(), made.not_null),
            ("timestamp with time zone", Some("docmill_now()"), true)
        );
        assert_eq!(column("document.review_reasons").unwrap().default.as_deref(), Some("'{}'"));
        assert_eq!(column("ingestion.grounded").unwrap().column_type, "jsonb");
        assert!(column("ingestion.priority").unwrap().not_null);
        assert!(column("document.file_path").is_none());
        for shared in SHARED_MEANING {
            assert!(column(shared).is_some_and(super::AddedColumn::is_shared), "{shared}");
        }
    }

    #[test]
    fn every_column_that_a_migration_adds_is_in_the_form_that_is_read() {
        let needs = SchemaNeeds::of(&crate::db::MIGRATIONS);
        for migration in crate::db::MIGRATIONS.iter() {
            let sql = migration.sql.as_str();
            let written = sql.matches("ADD COLUMN").count();
            let read = sql.lines().filter(|line| line.trim().starts_with("ADD COLUMN")).count()
                + sql
                    .lines()
                    .filter(|line| line.starts_with("ALTER TABLE") && line.contains("ADD COLUMN"))
                    .count();
            assert_eq!(written, read, "migration {}", migration.version);
        }
        assert!(needs.columns.len() > 40);
        let mut migrations = crate::db::MIGRATIONS.iter().map(|one| one.sql.as_str());
        assert!(migrations.next().unwrap().contains(GUESSED_CREATION));
        assert!(
            migrations.all(|later| !later.contains("ADD COLUMN IF NOT EXISTS")),
            "a column that is added IF NOT EXISTS is taken for the earlier system's"
        );
    }
}
