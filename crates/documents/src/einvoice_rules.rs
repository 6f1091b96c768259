//! The official rules that e-invoices are checked by (`einvoice.rules`).
//!
//! A page process reads the files before it is confined, and compiles them at the first e-invoice. The
//! worker compiles them as it starts, so that rules that cannot be used are an error of the
//! configuration and not of a document.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use docmill_core::fault::{self, Error, Fault};
use docmill_core::model::RuleReport;
use docmill_formats::einvoice;
use docmill_formats::xml::XmlText;
use docmill_schematron::RuleLibrary;

/// Bytes of all rules files together: more than ten times those of EN 16931, Peppol and `XRechnung`.
const MAX_RULES_BYTES: usize = 16 << 20;

/// Rules files, compiled when they are first needed.
#[derive(Debug, Default)]
pub struct EinvoiceRules {
    files: Vec<(PathBuf, String)>,
    library: OnceLock<fault::Result<RuleLibrary>>,
}

impl EinvoiceRules {
    /// Reads a rules file, or those in a folder, by name. An empty path: none.
    ///
    /// # Errors
    /// They cannot be read, are not text, or are too large; a folder without any.
    pub fn read(path: &Path) -> io::Result<Self> {
        if path.as_os_str().is_empty() {
            return Ok(Self::default());
        }
        let mut files = Vec::new();
        let mut bytes = 0_usize;
        for path in list_files(path)? {
            let text = fs::read_to_string(&path)?;
            bytes = bytes.saturating_add(text.len());
            if bytes > MAX_RULES_BYTES {
                let text = format!("rules of e-invoices are larger than {MAX_RULES_BYTES} bytes");
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
            }
            files.push((path, text));
        }
        Ok(Self { files, library: OnceLock::new() })
    }

    /// Reads the rules of a configuration and compiles them; returns the names of their sets.
    ///
    /// # Errors
    /// `Misconfigured`: they cannot be read, or an expression in them is not.
    pub fn verify(path: &Path) -> fault::Result<Vec<String>> {
        let rules = Self::read(path).map_err(|error| {
            let text = format!("einvoice.rules: {} cannot be read", path.display());
            Error::new(Fault::Misconfigured, text).with_source(error)
        })?;
        Ok(rules.compile()?.titles().map(str::to_owned).collect())
    }

    /// Checks an e-invoice by every set that is meant for it; `None`: none is, or it is not XML.
    ///
    /// # Errors
    /// The rules cannot be compiled.
    pub fn check_invoice(&self, file: &[u8]) -> fault::Result<Option<RuleReport>> {
        if self.files.is_empty() {
            return Ok(None);
        }
        let library = match self.library.get_or_init(|| self.compile()) {
            Ok(library) => library,
            Err(error) => return Err(Error::new(error.fault, error.context.clone())),
        };
        let Ok(text) = XmlText::decode(file) else { return Ok(None) };
        let Ok(tree) = text.parse_tree() else { return Ok(None) };
        let Some(root) = einvoice::find_root(&tree) else { return Ok(None) };
        let mut report = if root == tree.root_element() {
            library.check(&tree)
        } else {
            library.check_within(root)
        };
        report.keep_gravest();
        Ok(Some(report).filter(|report| !report.sets.is_empty()))
    }

    fn compile(&self) -> fault::Result<RuleLibrary> {
        let mut library = RuleLibrary::default();
        for (path, text) in &self.files {
            library.add_json(text).map_err(|error| {
                let text = format!("einvoice.rules: {}: {error}", path.display());
                Error::new(Fault::Misconfigured, text)
            })?;
        }
        Ok(library)
    }
}

/// A file, or the files of a folder whose names end in `.json`.
fn list_files(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path)? {
        let file = entry?.path();
        if file.extension().is_some_and(|ending| ending == "json") {
            files.push(file);
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "the folder has no .json file"));
    }
    Ok(files)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A rules file for invoices in UBL: one number, which must not be `X`.
    pub(crate) const RULES: &str = r#"{"format": 1, "sets": [{"name": "Set", "version": "1",
        "applies": "exists(/*:Invoice)", "schematron":
        "<schema xmlns='http://purl.oclc.org/dsdl/schematron'><ns prefix='u' uri='urn:oasis:names:specification:ubl:schema:xsd:Invoice-2'/><pattern><rule context='/u:Invoice'><assert id='S-1' flag='warning' test=\"*:ID != 'X'\">No X.</assert></rule></pattern></schema>"}]}"#;

    const INVOICE: &str = "<Invoice xmlns='urn:oasis:names:specification:ubl:schema:xsd:Invoice-2'><ID>X</ID></Invoice>";

    fn rules_of(files: &[(&str, &str)]) -> (tempfile::TempDir, io::Result<EinvoiceRules>) {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let rules = EinvoiceRules::read(folder.path());
        (folder, rules)
    }

    #[test]
    fn an_invoice_is_checked_as_it_is_and_within_an_envelope() {
        let (_folder, rules) = rules_of(&[("a.json", RULES), ("notes.txt", "no rules")]);
        let rules = rules.unwrap();
        let envelope = format!(
            "<StandardBusinessDocument xmlns='http://www.unece.org/cefact/namespaces/StandardBusinessDocumentHeader'>{INVOICE}</StandardBusinessDocument>"
        );
        for file in [INVOICE, &envelope] {
            let report = rules.check_invoice(file.as_bytes()).unwrap().unwrap();
            let found: Vec<_> = report.findings.iter().map(|it| it.rule.as_str()).collect();
            assert_eq!((report.sets, found), (vec!["Set 1".to_owned()], vec!["S-1"]), "{file}");
        }
        let sound = INVOICE.replace("<ID>X", "<ID>12");
        assert_eq!(rules.check_invoice(sound.as_bytes()).unwrap().unwrap().findings, []);
        for other in ["UNB+UNOC:3", "<CreditNote/>", "<Invoice"] {
            assert_eq!(rules.check_invoice(other.as_bytes()).unwrap(), None, "{other}");
        }
    }

    #[test]
    fn rules_that_cannot_be_used_are_an_error_of_the_configuration() {
        assert_eq!(EinvoiceRules::verify(Path::new("")).unwrap(), [""; 0]);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rules.json");
        let broken = RULES.replace("!=", "!!=");
        for text in [None, Some("{}"), Some(broken.as_str())] {
            if let Some(text) = text {
                fs::write(&file, text).unwrap();
            }
            let error = EinvoiceRules::verify(&file).unwrap_err();
            assert_eq!(error.fault, Fault::Misconfigured, "{text:?}");
            assert!(error.to_string().contains("einvoice.rules"), "{error}");
        }
        assert!(rules_of(&[("notes.txt", "no rules")]).1.is_err());
        fs::write(&file, RULES).unwrap();
        assert_eq!(EinvoiceRules::verify(&file).unwrap(), ["Set 1"]);
    }
}
