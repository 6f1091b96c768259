//! Postgres: version, schema, roles, encryption.

use std::time::SystemTime;

use super::clock::{self, Reading};
use super::{Finding, answered};
use crate::db::inspect::{self, Inspection};
use crate::db::{Db, SchemaVersion};
use crate::fault::Result;

/// Versions that are tested.
const OLDEST: i32 = 13;
const NEWEST: i32 = 17;

/// Every check of the database; `url` tells whether the way to it leaves this machine.
pub async fn check(db: &Db, leaves_machine: bool) -> Vec<Finding> {
    let facts = match inspect::inspect(db).await {
        Ok(facts) => facts,
        Err(error) => return vec![Finding::unusable("database", &error)],
    };
    let mut findings =
        vec![version(facts.version), standby(&facts), encryption(&facts, leaves_machine)];
    if !facts.may_use {
        findings.push(no_schema(db, &facts));
        return findings;
    }
    findings.extend(answered("database.schema", schema(db).await));
    findings.push(roles(&facts));
    findings.extend(answered("clock.database", time(db).await));
    findings
}

fn version(number: i32) -> Finding {
    const CHECK: &str = "database.version";
    let major = number / 10_000;
    let text = format!("Postgres {major}");
    if major < OLDEST {
        let advice = format!("upgrade the server: docmill needs Postgres {OLDEST} to {NEWEST}");
        return Finding::wrong(CHECK, text, advice);
    }
    if major > NEWEST {
        let advice = format!("docmill is tested with Postgres {OLDEST} to {NEWEST}");
        return Finding::warn(CHECK, text, advice);
    }
    Finding::ok(CHECK, text)
}

fn standby(facts: &Inspection) -> Finding {
    const CHECK: &str = "database.primary";
    if facts.standby {
        let advice = "let database.url name the primary (the writer's endpoint)";
        return Finding::wrong(CHECK, "this server only follows another", advice);
    }
    Finding::ok(CHECK, "takes writes")
}

fn encryption(facts: &Inspection, leaves_machine: bool) -> Finding {
    const CHECK: &str = "database.encryption";
    if leaves_machine && !facts.encrypted {
        let advice = "add ?sslmode=verify-full&sslrootcert=FILE to database.url";
        return Finding::warn(CHECK, "the connection is not encrypted", advice);
    }
    Finding::ok(CHECK, if facts.encrypted { "TLS" } else { "on this machine" })
}

fn no_schema(db: &Db, facts: &Inspection) -> Finding {
    Finding::wrong(
        "database.schema",
        format!("{}: the login {} sees no such schema", db.describe(), facts.login),
        "run `docmill migrate` as the owner, then GRANT docmill_worker to this login",
    )
}

async fn schema(db: &Db) -> Result<Vec<Finding>> {
    const CHECK: &str = "database.schema";
    Ok(vec![match db.schema_version().await? {
        SchemaVersion::Current => Finding::ok(CHECK, "as this program knows it"),
        SchemaVersion::Newer => Finding::ok(CHECK, "newer than this program, which tolerates it"),
        SchemaVersion::Older(applied) => {
            let has = applied.map_or("none".to_owned(), |version| version.to_string());
            let text = format!("migrations are missing, newest applied: {has}");
            Finding::wrong(CHECK, text, "run `docmill migrate` before the workers start")
        }
    }])
}

/// A worker needs rows, not tables.
fn roles(facts: &Inspection) -> Finding {
    const CHECK: &str = "database.roles";
    let login = &facts.login;
    if !facts.lacking.is_empty() {
        return Finding::wrong(
            CHECK,
            format!("the login {login} may not read and write {}", facts.lacking.join(", ")),
            format!("GRANT docmill_worker TO {login}"),
        );
    }
    if facts.may_create {
        return Finding::warn(
            CHECK,
            format!("the login {login} may change the schema"),
            "give workers a login in docmill_worker, and migrate with one in docmill_migrator",
        );
    }
    Finding::ok(CHECK, format!("the login {login} may do what a worker does and no more"))
}

async fn time(db: &Db) -> Result<Vec<Finding>> {
    let before = SystemTime::now();
    let theirs = inspect::now(db).await?;
    let at = before + before.elapsed().unwrap_or_default() / 2;
    let reading = Reading { theirs: theirs.into(), at };
    Ok(vec![clock::check("clock.database", "Postgres", reading)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::doctor::Verdict;

    #[test]
    fn a_version_that_is_too_old_is_wrong_and_one_nobody_has_tried_is_doubtful() {
        for (number, verdict) in [
            (120_022, Verdict::Wrong),
            (130_000, Verdict::Ok),
            (170_006, Verdict::Ok),
            (180_000, Verdict::Warn),
        ] {
            assert_eq!(version(number).verdict, verdict, "{number}");
        }
    }
}
