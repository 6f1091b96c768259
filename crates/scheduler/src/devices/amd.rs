//! The cards that AMD's `rocm-smi` lists.

use serde_json::{Map, Value};

use super::probe::{ADVICE, DeviceProbe};
use super::program::MeasuringProgram;
use crate::plan::MemoryDevice;
use docmill_core::fault::{Error, Fault, Result};

const QUERY: [&str; 4] = ["--showmeminfo", "vram", "--showuniqueid", "--json"];
const TOTAL: &str = "VRAM Total Memory (B)";
const USED: &str = "VRAM Total Used Memory (B)";

/// The graphics cards of this machine.
#[derive(Debug)]
pub(super) struct AmdProbe(pub(super) MeasuringProgram);

impl DeviceProbe for AmdProbe {
    fn read_devices(&self) -> Result<Vec<MemoryDevice>> {
        let cards = parse_cards(&self.0.read_output(&QUERY)?);
        cards.filter(|cards| !cards.is_empty()).ok_or_else(|| {
            Error::new(Fault::Unavailable, format!("rocm-smi lists no memory of cards; {ADVICE}"))
        })
    }
}

/// `{"card0": {"VRAM Total Memory (B)": "…", …}, "system": …}`; `None` if a card is described in another
/// way.
fn parse_cards(text: &str) -> Option<Vec<MemoryDevice>> {
    // Warnings may stand before the JSON.
    let json = text.get(text.find('{')?..)?;
    let all: Map<String, Value> = serde_json::from_str(json).ok()?;
    let cards = all.iter().filter_map(|(key, card)| Some((key.strip_prefix("card")?, card)));
    cards.map(|(number, card)| parse_card(number, card)).collect()
}

fn parse_card(number: &str, card: &Value) -> Option<MemoryDevice> {
    let bytes = |name: &str| card.get(name)?.as_str()?.parse::<u64>().ok();
    let (total, used) = (bytes(TOTAL)?, bytes(USED)?);
    // The number alone may name another card in another container.
    let id = card.get("Unique ID").and_then(Value::as_str).unwrap_or_default();
    Some(MemoryDevice {
        name: format!("gpu{number}-{}", id.strip_prefix("0x").unwrap_or(id)),
        total_mib: total >> 20,
        free_mib: total.saturating_sub(used) >> 20,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_memory_of_each_card_is_what_is_not_used() {
        let text = r#"WARNING: AMD GPU device(s) is/are in a low-power state.
{"card0": {"Unique ID": "0x9b1", "VRAM Total Memory (B)": "17163091968", "VRAM Total Used Memory (B)": "1048576000"},
 "card1": {"VRAM Total Memory (B)": "1073741824", "VRAM Total Used Memory (B)": "0"},
 "system": {"Driver version": "6.8"}}"#;
        let device = |name: &str, total_mib, free_mib| MemoryDevice {
            name: name.to_owned(),
            total_mib,
            free_mib,
        };
        let expected = [device("gpu0-9b1", 16_368, 15_368), device("gpu1-", 1_024, 1_024)];
        assert_eq!(parse_cards(text).unwrap(), expected);
        for wrong in ["no cards", r#"{"card0": {"VRAM Total Memory (B)": "N/A"}}"#] {
            assert_eq!(parse_cards(wrong), None, "{wrong}");
        }
    }
}
