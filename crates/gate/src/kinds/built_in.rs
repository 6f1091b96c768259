//! The kinds that ship, as built in: the folders of `config/kinds`.

/// Files of a kind: path within its folder, and text.
pub(super) type BuiltInFiles = &'static [(&'static str, &'static str)];

macro_rules! files {
    ($kind:literal, $($file:literal),+ $(,)?) => {
        &[$(($file, include_str!(concat!("../../../../config/kinds/", $kind, "/", $file)))),+]
    };
}

/// Name and files of each.
pub(super) const KINDS: [(&str, BuiltInFiles); 5] = [
    (
        "invoice",
        files!(
            "invoice",
            "kind.toml",
            "schema.json",
            "prompt.md",
            "rules.toml",
            "labels.toml",
            "examples/bakery.txt",
            "examples/bakery.json",
            "examples/joinery.txt",
            "examples/joinery.json",
            "examples/services.txt",
            "examples/services.json",
        ),
    ),
    (
        "receipt",
        files!(
            "receipt",
            "kind.toml",
            "schema.json",
            "prompt.md",
            "rules.toml",
            "labels.toml",
            "examples/till.txt",
            "examples/till.json",
        ),
    ),
    (
        "credit_note",
        files!(
            "credit_note",
            "kind.toml",
            "schema.json",
            "prompt.md",
            "rules.toml",
            "labels.toml",
            "examples/returned.txt",
            "examples/returned.json",
        ),
    ),
    (
        "contract",
        files!(
            "contract",
            "kind.toml",
            "schema.json",
            "prompt.md",
            "rules.toml",
            "labels.toml",
            "examples/maintenance.txt",
            "examples/maintenance.json",
        ),
    ),
    (
        "generic",
        files!("generic", "kind.toml", "schema.json", "prompt.md", "rules.toml", "labels.toml"),
    ),
];
