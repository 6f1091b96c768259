//! Holds the marks of style and size that `scripts/marks.py` counts to their ceilings.

use std::process::Command;

#[test]
fn no_mark_of_style_or_size_is_above_its_ceiling() {
    let counted = Command::new("python3").arg("scripts/marks.py").output().unwrap();
    let table = String::from_utf8_lossy(&counted.stdout);
    let problem = String::from_utf8_lossy(&counted.stderr);
    assert!(table.contains("closures bound by let"), "the script counts nothing: {table}{problem}");
    assert!(counted.status.success(), "see scripts/marks.py --list:\n{table}{problem}");
}
