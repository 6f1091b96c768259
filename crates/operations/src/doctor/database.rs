//! Postgres: version, schema, roles, encryption.

use std::time::SystemTime;

use super::clock::{self, ClockSample};
use super::{DoctorFinding, Severity, findings_or_unusable};
use docmill_core::fault::Result;
use docmill_ledger::db::reports::inspect::{self, DatabaseInspection};
use docmill_ledger::db::reports::rights::{self, LoginRights};
use docmill_ledger::db::reports::row_security;
use docmill_ledger::db::{Db, SchemaVersion};

/// Versions that are tested.
const MIN_VERSION: i32 = 13;
const MAX_VERSION: i32 = 17;

/// Every check of the database.
pub async fn check(db: &Db) -> Vec<DoctorFinding> {
    let facts = match inspect::inspect_database(db).await {
        Ok(facts) => facts,
        Err(error) => return vec![DoctorFinding::unusable("database", &error)],
    };
    let mut findings = vec![
        check_version(facts.version),
        check_standby(&facts),
        check_encryption(ServerTrust {
            leaves_machine: db.is_remote(),
            encrypted: facts.encrypted,
            verified: db.verifies_server(),
        }),
    ];
    if !facts.may_use {
        findings.push(missing_schema(db, &facts));
        return findings;
    }
    let roles = match rights::inspect_rights(db).await {
        Ok(rights) => check_roles(&facts, &rights),
        Err(error) => DoctorFinding::unusable("database.roles", &error),
    };
    if roles.verdict == Severity::Wrong {
        // A table without read permission proves nothing about the schema.
        findings.push(roles);
        return findings;
    }
    findings.push(roles);
    findings.extend(findings_or_unusable("database.rows", check_rows(db).await));
    findings.extend(findings_or_unusable("database.schema", check_schema(db).await));
    findings.extend(findings_or_unusable("clock.database", check_time(db).await));
    findings
}

fn check_version(number: i32) -> DoctorFinding {
    const CHECK: &str = "database.version";
    let major = number / 10_000;
    let text = format!("Postgres {major}");
    if major < MIN_VERSION {
        let advice =
            format!("upgrade the server: docmill needs Postgres {MIN_VERSION} to {MAX_VERSION}");
        return DoctorFinding::wrong(CHECK, text, advice);
    }
    if major > MAX_VERSION {
        let advice = format!("docmill is tested with Postgres {MIN_VERSION} to {MAX_VERSION}");
        return DoctorFinding::warn(CHECK, text, advice);
    }
    DoctorFinding::ok(CHECK, text)
}

fn check_standby(facts: &DatabaseInspection) -> DoctorFinding {
    const CHECK: &str = "database.primary";
    if facts.standby {
        let advice = "let database.url name the primary (the writer's endpoint)";
        return DoctorFinding::wrong(CHECK, "this server only follows another", advice);
    }
    DoctorFinding::ok(CHECK, "takes writes")
}

/// Facts about the connection to the server.
#[derive(Debug, Clone, Copy)]
struct ServerTrust {
    leaves_machine: bool,
    encrypted: bool,
    /// Certificate and name are those of the server that `database.url` names.
    verified: bool,
}

fn check_encryption(trust: ServerTrust) -> DoctorFinding {
    const CHECK: &str = "database.encryption";
    let advice = "add ?sslmode=verify-full&sslrootcert=FILE to database.url";
    match trust {
        ServerTrust { leaves_machine: false, encrypted: false, .. } => {
            DoctorFinding::ok(CHECK, "on this machine")
        }
        ServerTrust { leaves_machine: true, encrypted: false, .. } => {
            DoctorFinding::wrong(CHECK, "the connection is not encrypted", advice)
        }
        ServerTrust { leaves_machine: true, verified: false, .. } => DoctorFinding::warn(
            CHECK,
            "TLS, but whoever answers is believed: only sslmode=verify-full verifies the server",
            advice,
        ),
        ServerTrust { encrypted: true, .. } => DoctorFinding::ok(CHECK, "TLS"),
    }
}

fn missing_schema(db: &Db, facts: &DatabaseInspection) -> DoctorFinding {
    DoctorFinding::wrong(
        "database.schema",
        format!("{}: the login {} sees no such schema", db.description(), facts.login),
        "run `docmill migrate` as the owner, then GRANT docmill_worker to this login",
    )
}

async fn check_schema(db: &Db) -> Result<Vec<DoctorFinding>> {
    const CHECK: &str = "database.schema";
    Ok(vec![match db.schema_version().await? {
        SchemaVersion::Current => DoctorFinding::ok(CHECK, "as this program knows it"),
        SchemaVersion::Newer => {
            DoctorFinding::ok(CHECK, "newer than this program, which tolerates it")
        }
        SchemaVersion::Older(applied) => {
            let has = applied.map_or("none".to_owned(), |version| version.to_string());
            let text = format!("migrations are missing, newest applied: {has}");
            DoctorFinding::wrong(CHECK, text, "run `docmill migrate` before the workers start")
        }
    }])
}

/// Row-level security hides no document from this login.
async fn check_rows(db: &Db) -> Result<Vec<DoctorFinding>> {
    const CHECK: &str = "database.rows";
    let tables = row_security::find_filtered_tables(db).await?;
    if tables.is_empty() {
        return Ok(vec![DoctorFinding::ok(CHECK, "row-level security hides none from this login")]);
    }
    let text = format!("row-level security hides rows of {} from this login", tables.join(" and "));
    let remedy = row_security::describe_remedy(db, &tables);
    Ok(vec![DoctorFinding::wrong(CHECK, text, remedy)])
}

/// The login has the rights of a worker, or of the console and the commands.
fn check_roles(facts: &DatabaseInspection, rights: &LoginRights) -> DoctorFinding {
    const CHECK: &str = "database.roles";
    let login = &facts.login;
    if rights.lacking_as_worker.is_empty() && facts.may_create {
        return DoctorFinding::warn(
            CHECK,
            format!("the login {login} may change the schema"),
            "give workers a login in docmill_worker, and migrate with one in docmill_migrator",
        );
    }
    if rights.lacking_as_worker.is_empty() {
        let text = format!("the login {login} may do what a worker does and no more");
        return DoctorFinding::ok(CHECK, text);
    }
    if rights.lacking_as_operator.is_empty() {
        let text = format!("the login {login} may do what the console and operators do");
        return DoctorFinding::ok(CHECK, format!("{text}; a worker needs one in docmill_worker"));
    }
    if rights.has_role("docmill_worker") {
        return find_lost_rights(login, "docmill_worker", &rights.lacking_as_worker);
    }
    if rights.has_role("docmill_operator") {
        return find_lost_rights(login, "docmill_operator", &rights.lacking_as_operator);
    }
    let grant = format!("GRANT docmill_worker TO {login}");
    match rights.roles.first() {
        Some(role) => DoctorFinding::warn(
            CHECK,
            format!("the login {login} is in {role}: a worker and the console need more"),
            grant,
        ),
        None => {
            let lacking = rights.lacking_as_worker.join(", ");
            DoctorFinding::wrong(CHECK, format!("the login {login} lacks {lacking}"), grant)
        }
    }
}

/// A role that lost rights: a restore without privileges, or a REVOKE by hand.
fn find_lost_rights(login: &str, role: &str, lacking: &[String]) -> DoctorFinding {
    let text = format!("{role}, the role of {login}, lacks {}", lacking.join(", "));
    let grants: Vec<String> =
        lacking.iter().map(|right| format!("GRANT {right} TO {role}")).collect();
    let advice = format!("run as the owner of the schema: {}", grants.join("; "));
    DoctorFinding::wrong("database.roles", text, advice)
}

async fn check_time(db: &Db) -> Result<Vec<DoctorFinding>> {
    let before = SystemTime::now();
    let theirs = inspect::database_time(db).await?;
    let at = before + before.elapsed().unwrap_or_default() / 2;
    let reading = ClockSample { theirs: theirs.into(), at };
    Ok(vec![clock::check("clock.database", "Postgres", reading)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_verified_server_on_another_machine_is_well() {
        for (leaves_machine, encrypted, verified, verdict) in [
            (false, false, false, Severity::Ok),
            (false, true, false, Severity::Ok),
            (true, false, false, Severity::Wrong),
            (true, true, false, Severity::Warn),
            (true, true, true, Severity::Ok),
        ] {
            let trust = ServerTrust { leaves_machine, encrypted, verified };
            assert_eq!(check_encryption(trust).verdict, verdict, "{trust:?}");
        }
    }

    #[test]
    fn a_version_that_is_too_old_is_wrong_and_one_nobody_has_tried_is_doubtful() {
        for (number, verdict) in [
            (120_022, Severity::Wrong),
            (130_000, Severity::Ok),
            (170_006, Severity::Ok),
            (180_000, Severity::Warn),
        ] {
            assert_eq!(check_version(number).verdict, verdict, "{number}");
        }
    }
}
