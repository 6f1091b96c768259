//! Counts names: public types that share one, names of one word, and tuple parameters that hide a
//! second parameter.
//!
//! Product code only, no tests. A good name cannot be counted; docs/dev/glossary.md has the nouns
//! of the domain.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::{Attribute, FnArg, ImplItem, Item, Signature, TraitItem, Type, Visibility};

/// Names of types that mean something only behind their module (`queue::Config`).
const BEHIND_THEIR_MODULE: &[&str] = &["Config", "Error", "Row"];
/// Of all types, in percent: those whose name is one word.
const ONE_WORD_TYPES: usize = 35;
/// Of all functions, in percent: those whose name is one word.
const ONE_WORD_FUNCTIONS: usize = 45;

/// The declarations of product code.
#[derive(Default)]
struct Declarations {
    /// Bare name of a type to the files that declare one.
    types: BTreeMap<String, Vec<PathBuf>>,
    /// The same of types that are `pub`; private ones are seen in their module only.
    public_types: BTreeMap<String, Vec<PathBuf>>,
    /// Other names of types.
    aliases: Vec<String>,
    /// Functions and methods, except those that implement a trait: their names are the trait's.
    functions: Vec<String>,
    /// `file: function` for each tuple parameter that is neither coordinates nor a range.
    tuple_parameters: Vec<String>,
}

impl Declarations {
    fn of_workspace() -> Self {
        let mut found = Self::default();
        let mut roots = vec![PathBuf::from("src")];
        if let Ok(crates) = fs::read_dir("crates") {
            roots.extend(crates.map(|entry| entry.unwrap().path().join("src")));
        }
        for root in roots {
            for name in ["lib.rs", "main.rs"] {
                let file = root.join(name);
                if file.exists() {
                    found.read_file(&file, &root);
                }
            }
        }
        found
    }

    /// Reads `file`, whose child modules lie in `children`.
    fn read_file(&mut self, file: &Path, children: &Path) {
        let text = fs::read_to_string(file).unwrap();
        let items = syn::parse_file(&text).unwrap().items;
        self.read_items(&items, file, children);
    }

    fn read_items(&mut self, items: &[Item], file: &Path, children: &Path) {
        for item in items {
            match item {
                Item::Mod(module) if !is_test_only(&module.attrs) => {
                    let below = children.join(module.ident.to_string());
                    match &module.content {
                        Some((_, items)) => self.read_items(items, file, &below),
                        None => self.read_file(&below.with_extension("rs"), &below),
                    }
                }
                Item::Struct(item) if !is_test_only(&item.attrs) => {
                    self.add_type(&item.ident, &item.vis, file)
                }
                Item::Enum(item) if !is_test_only(&item.attrs) => {
                    self.add_type(&item.ident, &item.vis, file)
                }
                Item::Trait(item) if !is_test_only(&item.attrs) => {
                    self.add_type(&item.ident, &item.vis, file);
                    for item in &item.items {
                        if let TraitItem::Fn(function) = item {
                            self.add_function(&function.sig, file);
                        }
                    }
                }
                Item::Type(item) => self.aliases.push(item.ident.to_string()),
                Item::Fn(item) if !is_test_only(&item.attrs) => self.add_function(&item.sig, file),
                Item::Impl(item) if item.trait_.is_none() && !is_test_only(&item.attrs) => {
                    for item in &item.items {
                        if let ImplItem::Fn(function) = item
                            && !is_test_only(&function.attrs)
                        {
                            self.add_function(&function.sig, file);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn add_type(&mut self, name: &syn::Ident, visibility: &Visibility, file: &Path) {
        self.types.entry(name.to_string()).or_default().push(file.to_owned());
        if matches!(visibility, Visibility::Public(_)) {
            self.public_types.entry(name.to_string()).or_default().push(file.to_owned());
        }
    }

    fn declares(&self, name: &str) -> bool {
        self.types.contains_key(name)
            || self.aliases.iter().chain(&self.functions).any(|declared| declared == name)
    }

    fn add_function(&mut self, signature: &Signature, file: &Path) {
        let hides_parameters = |argument: &FnArg| match argument {
            FnArg::Receiver(_) => false,
            FnArg::Typed(argument) => is_bundle(&argument.ty),
        };
        if signature.inputs.iter().any(hides_parameters) {
            self.tuple_parameters.push(format!("{}: {}", file.display(), signature.ident));
        }
        self.functions.push(signature.ident.to_string());
    }
}

/// Whether an item is compiled for tests alone.
fn is_test_only(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let Ok(list) = attribute.meta.require_list() else { return false };
        list.path.is_ident("cfg") && list.tokens.to_string() == "test"
    })
}

/// Whether a parameter is a tuple of unlike things. Coordinates and ranges are tuples of one type.
fn is_bundle(parameter: &Type) -> bool {
    let Type::Tuple(tuple) = parameter else { return false };
    let number = |element: &Type| match element {
        Type::Path(path) => path.path.get_ident().map(ToString::to_string).filter(|name| {
            ["f32", "f64", "i32", "i64", "u8", "u16", "u32", "u64", "usize"]
                .contains(&name.as_str())
        }),
        _ => None,
    };
    let mut numbers = tuple.elems.iter().map(number);
    match numbers.next() {
        None => false,
        Some(None) => true,
        Some(first) => numbers.any(|other| other != first),
    }
}

/// Words of a name in `CamelCase`; a run of capitals is one word.
fn words_of_type(name: &str) -> usize {
    let mut words = 0;
    let mut before = '_';
    for c in name.chars() {
        if c.is_uppercase() && !before.is_uppercase() {
            words += 1;
        }
        before = c;
    }
    words
}

fn percent(part: usize, whole: usize) -> usize {
    (part * 100).div_ceil(whole.max(1))
}

#[test]
fn a_public_type_has_a_unique_name_and_most_names_have_more_than_one_word() {
    let found = Declarations::of_workspace();
    let all: usize = found.types.values().map(Vec::len).sum();
    assert!(all > 300, "only {all} types were found");
    let shared: Vec<_> = found
        .public_types
        .iter()
        .filter(|(name, files)| files.len() > 1 && !BEHIND_THEIR_MODULE.contains(&name.as_str()))
        .collect();
    assert!(shared.is_empty(), "public types that share their name: {shared:#?}");
    let short = found.types.iter().filter(|(name, _)| words_of_type(name) < 2);
    let short: usize = short.map(|(_, files)| files.len()).sum();
    assert!(percent(short, all) <= ONE_WORD_TYPES, "{short} of {all} types have one word");
}

#[test]
fn most_functions_say_what_they_do_to_what() {
    let functions = Declarations::of_workspace().functions;
    let all = functions.len();
    assert!(all > 1000, "the reader of declarations finds only {all} functions");
    let short = functions.iter().filter(|name| !name.contains('_')).count();
    assert!(percent(short, all) <= ONE_WORD_FUNCTIONS, "{short} of {all} functions have one word");
}

#[test]
fn no_parameter_is_a_tuple_of_unlike_things() {
    let hidden = Declarations::of_workspace().tuple_parameters;
    assert!(hidden.is_empty(), "give each of these a struct with a name: {hidden:#?}");
}

#[test]
fn every_name_in_the_walk_through_the_code_is_declared() {
    let found = Declarations::of_workspace();
    let architecture = fs::read_to_string("docs/explanation/architecture.md").unwrap();
    let walk = architecture.split("\n## ").find(|part| part.starts_with("One document")).unwrap();
    // The text in backticks, without paths and commands.
    let names: Vec<_> = walk
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|name| !name.contains(['/', ' ']))
        .filter_map(|name| name.split("::").last())
        .collect();
    assert!(names.len() > 30, "only {} names were found", names.len());
    let unknown: Vec<_> = names.into_iter().filter(|name| !found.declares(name)).collect();
    assert!(unknown.is_empty(), "no such type or function: {unknown:?}");
}

#[test]
fn the_glossary_has_one_short_row_per_noun() {
    let glossary = fs::read_to_string("docs/dev/glossary.md").unwrap();
    let rows: Vec<Vec<&str>> = glossary
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"))
        .map(|row| row.split(" | ").collect())
        .skip(1)
        .filter(|cells: &Vec<_>| cells.len() == 3 && !cells[0].starts_with("**"))
        .collect();
    assert!((60..=100).contains(&rows.len()), "{} nouns", rows.len());
    let nouns: BTreeSet<&str> = rows.iter().map(|cells| cells[0]).collect();
    assert_eq!(nouns.len(), rows.len(), "a noun has two rows");
    let long: Vec<_> = rows.iter().filter(|cells| cells.join(" ").len() > 160).collect();
    assert!(long.is_empty(), "{long:#?}");
}

#[test]
fn the_counter_of_words_reads_camel_case() {
    for (name, words) in [("Ledger", 1), ("ClaimHandle", 2), ("HTTP", 1), ("PageTextLayer", 3)] {
        assert_eq!(words_of_type(name), words, "{name}");
    }
    let bundle: Type = syn::parse_str("(&Ports, &Hold)").unwrap();
    let point: Type = syn::parse_str("(f32, f32)").unwrap();
    assert!(is_bundle(&bundle) && !is_bundle(&point));
}
