//! Reads e-invoices, writes their data as UBL, checks that by the official rules, and reads it back.
//! Paths are read from standard input; the last line has the figures. Exit code 1: a rule that is
//! broken, or a value that is another one afterwards.
//!
//! ```sh
//! find invoices -name '*.xml' | cargo run -p docmill-schematron --example rewrite_einvoices -- rules.json
//! ```

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, BufRead, Write};
use std::process::ExitCode;

use serde_json::{Map, Value};

use docmill_formats::einvoice::{parse_einvoice, write_ubl};
use docmill_formats::xml::XmlText;
use docmill_schematron::RuleLibrary;

/// Fields that come back as they went in. The others are completed by the standard's own rules:
/// addresses get a country, lines a quantity, rows of the breakdown their base.
const KEPT: [&str; 18] = [
    "supplier_name",
    "supplier_trading_name",
    "buyer_name",
    "document_type",
    "invoice_number",
    "order_number",
    "invoice_date",
    "due_date",
    "delivery_date",
    "period_start",
    "period_end",
    "payment_reference",
    "payee_name",
    "currency",
    "subtotal",
    "vat_amount",
    "total",
    "further_accounts",
];

fn differing(before: &Map<String, Value>, after: &Map<String, Value>) -> Vec<String> {
    let kept = KEPT.iter().filter(|field| {
        let (before, after) = (before.get(**field), after.get(**field));
        before.is_some_and(|value| !value.is_null()) && before != after
    });
    let mut fields: Vec<String> = kept.map(|field| (*field).to_owned()).collect();
    let amounts = |of: &Map<String, Value>| -> Vec<Value> {
        let lines = of.get("line_items").and_then(Value::as_array).into_iter().flatten();
        lines.map(|line| line.get("amount").cloned().unwrap_or_default()).collect()
    };
    if amounts(before) != amounts(after) {
        fields.push("line_items.amount".to_owned());
    }
    fields
}

fn fields_of(bytes: &[u8]) -> Option<(Map<String, Value>, bool)> {
    let invoice = parse_einvoice(bytes).ok()?;
    let is_credit_note = invoice.is_credit_note;
    let fields = serde_json::to_value(invoice).ok()?.get("fields")?.as_object()?.clone();
    Some((fields, is_credit_note))
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("the path of a rules file is missing")?;
    let library = RuleLibrary::from_json(&std::fs::read_to_string(path)?)?;
    let (mut read, mut written, mut wrong) = (0_u32, 0_u32, 0_u32);
    let mut refusals: BTreeMap<String, u32> = BTreeMap::new();
    let mut output = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let path = line?;
        let Some((data, is_credit_note)) = fields_of(&std::fs::read(&path)?) else { continue };
        read += 1;
        let ubl = match write_ubl(&data, is_credit_note) {
            Ok(ubl) => ubl,
            Err(defects) => {
                for defect in defects.0 {
                    *refusals.entry(defect).or_default() += 1;
                }
                continue;
            }
        };
        written += 1;
        let text = XmlText::decode(ubl.as_bytes())?;
        let report = library.check(&text.parse_tree()?);
        let broken: Vec<_> = report.findings.iter().map(|finding| finding.rule.clone()).collect();
        let after = fields_of(ubl.as_bytes()).map(|(fields, _)| fields).unwrap_or_default();
        let others = differing(&data, &after);
        if !broken.is_empty() || !others.is_empty() || report.sets.is_empty() {
            wrong += 1;
            writeln!(output, "{path}: rules {broken:?}, values {others:?}")?;
        }
    }
    for (defect, count) in &refusals {
        writeln!(output, "{count} refused: {defect}")?;
    }
    writeln!(output, "{read} read, {written} written, {wrong} wrong")?;
    Ok(if wrong == 0 && written > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
