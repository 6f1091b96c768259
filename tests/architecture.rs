//! Holds the rules of the layout that Cargo does not: the map in the docs, imports without circles,
//! SQL and XML in one library each, and light dependencies for the tests of formats and gate.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is how a test fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Modules that still import from each other in a circle, a parent and its children included: their
/// number by package. None may be added; a smaller number is written here.
const MODULES_IN_CIRCLES: &[(&str, usize)] = &[
    ("client", 6),
    ("compat", 37),
    ("core", 20),
    ("docmill", 44),
    ("documents", 5),
    ("eval", 5),
    ("extract", 53),
    ("gate", 18),
    ("ledger", 16),
    ("llm", 6),
    ("operations", 12),
    ("queue", 2),
    ("worker", 8),
];
/// Dependencies too slow to compile for the table tests of formats and gate.
const HEAVY: &[&str] = &["aws-", "hyper", "opencv", "reqwest", "sqlx", "tesseract"];

/// The libraries' folders, by name.
fn libraries() -> BTreeSet<String> {
    let folders = fs::read_dir("crates").unwrap();
    let names = folders.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names: BTreeSet<String> = names.collect();
    assert!(names.len() > 5, "the libraries are looked for in crates/: {names:?}");
    names
}

fn manifest(library: &str) -> toml::Table {
    fs::read_to_string(format!("crates/{library}/Cargo.toml")).unwrap().parse().unwrap()
}

/// The words in backticks in one cell of a table.
fn words(cell: &str) -> BTreeSet<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The table of libraries in docs/explanation/architecture.md: each with the libraries that it
/// uses.
fn drawn_libraries() -> BTreeMap<String, BTreeSet<String>> {
    let page = fs::read_to_string("docs/explanation/architecture.md").unwrap();
    let (_, table) = page.split_once("| crate | uses |").unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        (cells[1].trim_matches('`').to_owned(), words(cells[2]))
    })
    .collect()
}

/// Every source file of the workspace but the stand-ins.
fn every_source() -> Vec<(String, String, String)> {
    let mut files = Vec::new();
    sources(Path::new("src"), None, &mut files);
    for library in libraries() {
        sources(&Path::new("crates").join(library).join("src"), None, &mut files);
    }
    files
}

/// Every `.rs` file below `dir`, as (top-level module, path, text without line comments).
fn sources(dir: &Path, module: Option<&str>, found: &mut Vec<(String, String, String)>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let module = module.unwrap_or(&stem);
        if path.is_dir() {
            sources(&path, Some(module), found);
        } else if path.extension().is_some_and(|it| it == "rs") && !matches!(module, "lib" | "main")
        {
            let text = fs::read_to_string(&path).unwrap();
            let code = text.lines().map(|line| line.split("//").next().unwrap());
            let code = code.collect::<Vec<_>>().join("\n");
            found.push((module.to_owned(), path.display().to_string(), code));
        }
    }
}

/// Every path of at least two names in the code, those in braces one by one: `a::{b, c::d}` is
/// `a::b` and `a::c::d`.
fn paths_in(code: &str) -> Vec<Vec<String>> {
    let (mut found, mut path, mut prefixes) = (Vec::new(), Vec::new(), Vec::new());
    let mut previous = "";
    for token in tokens_of(code) {
        match token {
            "::" => {}
            "{" if previous == "::" => prefixes.push(std::mem::take(&mut path)),
            _ if previous == "::" => path.push(token.to_owned()),
            _ => {
                found.push(std::mem::take(&mut path));
                match token {
                    "{" => prefixes.push(Vec::new()),
                    "}" => drop(prefixes.pop()),
                    _ if previous != "as" && token != "as" && is_name(token) => {
                        path = prefixes.last().cloned().unwrap_or_default();
                        path.push(token.to_owned());
                    }
                    _ => {}
                }
            }
        }
        previous = token;
    }
    found.push(path);
    found.retain(|path| path.len() > 1);
    found
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphanumeric() || c == '_')
}

/// Names, `::`, and every other sign by itself.
fn tokens_of(code: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_in_name = |c: char| c.is_alphanumeric() || c == '_';
        let length = match first {
            _ if is_in_name(first) => rest.find(|c| !is_in_name(c)).unwrap_or(rest.len()),
            ':' if rest.starts_with("::") => 2,
            sign => sign.len_utf8(),
        };
        let (token, behind) = rest.split_at(length);
        tokens.push(token);
        rest = behind.trim_start();
    }
    tokens
}

/// The modules of one crate with their code, without tests: the names on the way to each, and which
/// of the others it takes something from.
fn imports_of(src: &Path) -> BTreeMap<Vec<String>, BTreeSet<Vec<String>>> {
    let mut files = Vec::new();
    sources(src, None, &mut files);
    let modules: BTreeMap<Vec<String>, String> = files
        .into_iter()
        .map(|(_, path, code)| {
            let inside = Path::new(&path).strip_prefix(src).unwrap().with_extension("");
            let names = inside.iter().map(|name| name.to_str().unwrap().to_owned());
            (names.collect(), without_tests(&code))
        })
        .filter(|(names, _): &(Vec<String>, _)| !names.iter().any(|name| name == "tests"))
        .collect();
    let imports = modules.iter().map(|(module, code)| {
        let paths = paths_in(code).into_iter();
        let mut from: BTreeSet<_> =
            paths.filter_map(|path| module_meant(&path, module, &modules)).collect();
        from.remove(module);
        (module.clone(), from)
    });
    imports.collect()
}

/// The code before its tests; who may see something is not what is taken from there.
fn without_tests(code: &str) -> String {
    let product = code.split("#[cfg(test)]\nmod tests {").next().unwrap();
    product.replace("pub(in crate::", "pub(in ")
}

/// The innermost module on a path that stands in `module`; `None` if it leads out of the crate.
fn module_meant(
    path: &[String],
    module: &[String],
    modules: &BTreeMap<Vec<String>, String>,
) -> Option<Vec<String>> {
    let ups = path.iter().take_while(|name| *name == "super").count();
    let child = || modules.contains_key(&[module, &path[..1]].concat());
    let (mut meant, rest) = match path[0].as_str() {
        "crate" => (Vec::new(), &path[1..]),
        "self" => (module.to_vec(), &path[1..]),
        "super" => (module[..module.len().checked_sub(ups)?].to_vec(), &path[ups..]),
        _ if child() => (module.to_vec(), path),
        _ => return None,
    };
    for name in rest {
        meant.push(name.clone());
        if !modules.contains_key(&meant) {
            meant.pop();
            break;
        }
    }
    (!meant.is_empty()).then_some(meant)
}

/// Everything that a module takes something from, directly or through others.
fn reached_from<'a>(
    module: &[String],
    imports: &'a BTreeMap<Vec<String>, BTreeSet<Vec<String>>>,
) -> BTreeSet<&'a Vec<String>> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<_> = imports[module].iter().collect();
    while let Some(next) = open.pop() {
        if reached.insert(next) {
            open.extend(&imports[next]);
        }
    }
    reached
}

#[test]
fn no_module_joins_those_that_import_from_each_other_in_a_circle() {
    let packages = libraries().into_iter().map(|name| (format!("crates/{name}/src"), name));
    let mut circles: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (src, name) in packages.chain([("src".to_owned(), "docmill".to_owned())]) {
        let imports = imports_of(Path::new(&src));
        for module in imports.keys() {
            if reached_from(module, &imports).contains(module) {
                circles.entry(name.clone()).or_default().push(module.join("::"));
            }
        }
    }
    let counts: Vec<_> = circles.iter().map(|(name, found)| (name.as_str(), found.len())).collect();
    assert_eq!(counts, MODULES_IN_CIRCLES, "modules in circles: {circles:#?}");
}

#[test]
fn sql_is_written_in_one_room_only() {
    let files = every_source();
    let may = |path: &str| {
        let path = path.replace('\\', "/");
        path == "crates/ledger/src/db.rs" || path.starts_with("crates/ledger/src/db/")
    };
    let (inside, outside): (Vec<_>, Vec<_>) = files
        .iter()
        .filter(|(_, _, code)| code.contains("sqlx::"))
        .map(|(_, path, _)| path.as_str())
        .partition(|path| may(path));
    assert!(outside.is_empty(), "sqlx is for db: {outside:?}");
    assert!(inside.len() > 3, "the reader of sources finds no SQL: {inside:?}");
    let service: toml::Table = fs::read_to_string("Cargo.toml").unwrap().parse().unwrap();
    let manifests = libraries().into_iter().map(|name| (name.clone(), manifest(&name)));
    let users = manifests.chain([("the service".to_owned(), service)]);
    let users = users.filter(|(_, manifest)| manifest["dependencies"].get("sqlx").is_some());
    assert_eq!(users.map(|(name, _)| name).collect::<Vec<_>>(), ["ledger"]);
}

#[test]
fn the_map_of_libraries_in_the_docs_agrees_with_their_manifests() {
    let drawn = drawn_libraries();
    assert_eq!(drawn.keys().cloned().collect::<BTreeSet<_>>(), libraries());
    for (name, uses) in drawn {
        let dependencies = manifest(&name)["dependencies"].as_table().unwrap().clone();
        let used = dependencies.keys().filter_map(|name| name.strip_prefix("docmill-"));
        assert_eq!(uses, used.map(str::to_owned).collect(), "the libraries that {name} uses");
    }
}

#[test]
fn the_tests_of_formats_and_gate_wait_for_nothing_heavy() {
    let lock: toml::Table = fs::read_to_string("Cargo.lock").unwrap().parse().unwrap();
    let packages = lock["package"].as_array().unwrap();
    let mut open = vec!["docmill-formats".to_owned(), "docmill-gate".to_owned()];
    let mut seen = BTreeSet::new();
    while let Some(name) = open.pop() {
        if !seen.insert(name.clone()) {
            continue;
        }
        let heavy = HEAVY.iter().any(|start| name.starts_with(start));
        assert!(!heavy, "formats or gate would wait for {name}");
        for package in packages.iter().filter(|each| each["name"].as_str() == Some(&name)) {
            let needs = package.get("dependencies").and_then(|list| list.as_array());
            let needs = needs.into_iter().flatten().filter_map(|need| need.as_str());
            open.extend(needs.map(|need| need.split(' ').next().unwrap().to_owned()));
        }
    }
    assert!(seen.len() > 50, "the lock file is not read: {seen:?}");
}

#[test]
fn builds_for_measuring_optimise_every_crate_of_ours() {
    let optimised = fs::read_to_string("scripts/optimised.toml").unwrap();
    let as_released = fs::read_to_string("scripts/as_released.toml").unwrap();
    for library in libraries() {
        assert!(optimised.contains(&format!("docmill-{library}.opt-level = 2")), "{library}");
        let released = "{ opt-level = 3, debug-assertions = false, overflow-checks = false }";
        assert!(as_released.contains(&format!("docmill-{library} = {released}")), "{library}");
    }
}

#[test]
fn commands_reach_the_database_only_through_operations() {
    let mut files = Vec::new();
    sources(Path::new("src"), None, &mut files);
    let commands: Vec<_> = files.iter().filter(|(module, ..)| module == "cli").collect();
    assert!(commands.len() > 20, "the reader of sources finds the commands");
    let direct: Vec<_> = commands
        .iter()
        .filter(|(_, _, code)| code.contains("docmill_ledger::db"))
        .map(|(_, path, _)| path)
        .collect();
    assert!(direct.is_empty(), "commands call docmill_operations: {direct:?}");
}

#[test]
fn the_reader_of_imports_sees_through_braces() {
    let code = "use super::{a::{self, B}, c as d, e::*};\nfn f(x: g::H) { i::<J>::k(l); }";
    let paths: Vec<_> = paths_in(code).iter().map(|path| path.join("::")).collect();
    let expected = ["super::a::self", "super::a::B", "super::c", "super::e::*", "g::H", "i::<"];
    assert_eq!(paths, expected);
}

#[test]
fn a_path_means_the_innermost_module_on_it() {
    let names = |path: &str| path.split("::").map(str::to_owned).collect::<Vec<_>>();
    let modules = ["a", "a::b", "a::b::c", "d"].map(|path| (names(path), String::new())).into();
    let table = [
        ("super::X", "a::b", Some("a")),
        ("super::b::c::X::new", "a::d", Some("a::b::c")),
        ("crate::d::X", "a::b", Some("d")),
        ("c::X", "a::b", Some("a::b::c")),
        ("self::c", "a::b", Some("a::b::c")),
        ("super::super::d::X", "a::b", Some("d")),
        ("std::fmt", "a::b", None),
        ("crate::X", "a::b", None),
    ];
    for (path, module, expected) in table {
        let meant = module_meant(&names(path), &names(module), &modules);
        assert_eq!(meant.map(|meant| meant.join("::")).as_deref(), expected, "{path} in {module}");
    }
}

/// Files of product code below `folder`; what only tests use is left out.
fn product_files(folder: &str, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.to_str().unwrap().to_owned();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "tests") {
            product_files(&name, found);
        } else if name.ends_with(".rs") && !name.ends_with("tests.rs") {
            let text = fs::read_to_string(&path).unwrap();
            let product = text.split("#[cfg(test)]\nmod tests").next().unwrap().to_owned();
            found.push((name, product));
        }
    }
}

#[test]
fn xml_from_strangers_is_parsed_where_documents_are_opened_and_nowhere_else() {
    for library in libraries().into_iter().filter(|library| library != "formats") {
        let dependencies = &manifest(&library)["dependencies"];
        assert!(dependencies.get("roxmltree").is_none(), "{library} has a parser of XML");
    }
    let mut files = Vec::new();
    product_files("src", &mut files);
    product_files("crates", &mut files);
    let parses = |text: &str| {
        ["XmlText::decode", "parse_einvoice(", "EinvoiceFinding::from_files", "lay_out_document("]
            .iter()
            .any(|call| text.contains(call))
    };
    let callers: Vec<&str> =
        files.iter().filter(|(_, text)| parses(text)).map(|(name, _)| name.as_str()).collect();
    assert!(callers.contains(&"crates/documents/src/document.rs"), "{callers:?}");
    for caller in callers {
        let opens = caller.starts_with("crates/formats/src/")
            // Called where documents are opened: `lay_out_document` is among the calls above.
            || caller.starts_with("crates/office/src/")
            // Rules, which an operator chose.
            || caller == "crates/schematron/src/schema.rs"
            // Comparisons on public files, no part of the product.
            || caller.starts_with("crates/schematron/examples/")
            || caller == "crates/documents/src/document.rs"
            // Within the page process, too.
            || caller == "crates/documents/src/einvoice_files.rs"
            || caller == "crates/documents/src/einvoice_rules.rs"
            || caller.starts_with("crates/documents/src/pdf/");
        assert!(opens, "{caller} parses XML outside the page process");
    }
}
