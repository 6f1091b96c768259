//! The cards that `nvidia-smi` lists, the instances of a partitioned card (MIG), and cards whose memory
//! is the machine's (GB10, Jetson).

use super::main_memory::read_main_memory;
use super::probe::{ADVICE, DeviceProbe};
use super::program::MeasuringProgram;
use crate::plan::MemoryDevice;
use docmill_core::fault::{Error, Fault, Result};

/// Asked by us only for what we read.
const QUERY: [&str; 2] = [
    "--query-gpu=index,uuid,memory.total,memory.free,mig.mode.current",
    "--format=csv,noheader,nounits",
];
/// The instances of partitioned cards are in this form alone.
const DETAILS: [&str; 2] = ["--query", "--xml-format"];

/// The graphics cards of this machine.
#[derive(Debug)]
pub(super) struct NvidiaProbe(pub(super) MeasuringProgram);

/// A card of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ListedCard {
    name: String,
    memory: CardMemory,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CardMemory {
    /// Its own: all of it, and the part that is free, in MiB.
    Own { total_mib: u64, free_mib: u64 },
    /// That of the machine.
    Shared,
    /// That of its instances.
    Partitioned,
    /// Not told to us.
    Unknown,
}

impl DeviceProbe for NvidiaProbe {
    fn read_devices(&self) -> Result<Vec<MemoryDevice>> {
        let cards = parse_cards(&self.0.read_output(&QUERY)?);
        let cards = cards.filter(|cards| !cards.is_empty()).ok_or_else(|| no_cards("cards"))?;
        let mut devices = Vec::new();
        for card in &cards {
            match card.memory {
                CardMemory::Own { total_mib, free_mib } => {
                    devices.push(MemoryDevice { name: card.name.clone(), total_mib, free_mib });
                }
                CardMemory::Shared => {
                    devices.push(MemoryDevice { name: card.name.clone(), ..read_main_memory()? });
                }
                CardMemory::Partitioned => {}
                CardMemory::Unknown => {
                    tracing::warn!(card = card.name, "nvidia-smi does not say a card's memory");
                }
            }
        }
        if cards.iter().any(|card| card.memory == CardMemory::Partitioned) {
            let instances = parse_instances(&self.0.read_output(&DETAILS)?);
            devices.extend(instances.ok_or_else(|| no_cards("instances of partitioned cards"))?);
        }
        if devices.is_empty() { Err(no_cards("memory of cards")) } else { Ok(devices) }
    }
}

fn no_cards(what: &str) -> Error {
    Error::new(Fault::Unavailable, format!("nvidia-smi lists no {what}; {ADVICE}"))
}

/// `0, GPU-6f…, 24576, 21034, Disabled` in each line; `None` if a line is anything else.
fn parse_cards(text: &str) -> Option<Vec<ListedCard>> {
    text.lines().filter(|line| !line.trim().is_empty()).map(parse_card).collect()
}

/// A card, from a line of `nvidia-smi`. Values that are not there stand in brackets.
fn parse_card(line: &str) -> Option<ListedCard> {
    let cells: Vec<&str> = line.split(',').map(str::trim).collect();
    let [index, uuid, total, free, partitioned] = *cells.as_slice() else { return None };
    let memory = match (total.parse(), free.parse()) {
        _ if partitioned == "Enabled" => CardMemory::Partitioned,
        (Ok(total_mib), Ok(free_mib)) => CardMemory::Own { total_mib, free_mib },
        _ if [total, free].contains(&"[N/A]") || [total, free].contains(&"[Not Supported]") => {
            CardMemory::Shared
        }
        _ if total.starts_with('[') || free.starts_with('[') => CardMemory::Unknown,
        _ => return None,
    };
    // The index alone may name another card in another container.
    let name = format!("gpu{index}-{}", uuid.strip_prefix("GPU-").unwrap_or(uuid));
    Some(ListedCard { name, memory })
}

/// The instances of every partitioned card, from the text of `nvidia-smi --query --xml-format`, in which
/// each value stands between its tags; `None`: the text is another. It comes from a program of this
/// machine, so its tags are looked for, and no XML is parsed.
fn parse_instances(text: &str) -> Option<Vec<MemoryDevice>> {
    let mut devices = Vec::new();
    text.find("<nvidia_smi_log>")?;
    for (number, card) in text.split("<gpu ").skip(1).enumerate() {
        let uuid = tag_value(card, "uuid")?;
        let uuid = uuid.strip_prefix("GPU-").unwrap_or(uuid);
        for instance in card.split("<mig_device>").skip(1) {
            let index = tag_value(instance, "index")?;
            let memory = tag_value(instance, "fb_memory_usage")?;
            devices.push(MemoryDevice {
                name: format!("gpu{number}.{index}-{uuid}"),
                total_mib: parse_mib(tag_value(memory, "total")?)?,
                free_mib: parse_mib(tag_value(memory, "free")?)?,
            });
        }
    }
    Some(devices)
}

/// The text between the first pair of tags of this name.
fn tag_value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    rest.split_once(&format!("</{name}>")).map(|(value, _)| value.trim())
}

/// `9856 MiB`.
fn parse_mib(text: &str) -> Option<u64> {
    text.strip_suffix("MiB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(name: &str, free_mib: u64) -> ListedCard {
        let memory = CardMemory::Own { total_mib: 24_576, free_mib };
        ListedCard { name: name.to_owned(), memory }
    }

    #[test]
    fn every_card_is_a_device_of_its_own_and_nothing_is_added_up() {
        let text = "0, GPU-aa-1, 24576, 20000, [N/A]\n1, GPU-bb-2, 24576, 24000, Disabled\n\n";
        assert_eq!(
            parse_cards(text).unwrap(),
            [own("gpu0-aa-1", 20_000), own("gpu1-bb-2", 24_000)]
        );
        for wrong in ["No devices were found", "0, GPU-a, 5, 5", "0,a,x,2,3", "0,a,1,2,3,4"] {
            assert_eq!(parse_cards(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn one_card_without_numbers_does_not_hide_the_others() {
        #[rustfmt::skip]
        let table = [
            ("1, GPU-b, [N/A], [N/A], [N/A]",                    CardMemory::Shared),
            ("1, GPU-b, [Not Supported], [Not Supported], [N/A]",CardMemory::Shared),
            ("1, GPU-b, [N/A], [N/A], Enabled",                  CardMemory::Partitioned),
            ("1, GPU-b, 81920, 81000, Enabled",                  CardMemory::Partitioned),
            ("1, GPU-b, [Insufficient Permissions], [Insufficient Permissions], [N/A]", CardMemory::Unknown),
        ];
        for (line, memory) in table {
            let text = format!("0, GPU-a, 24576, 20000, [N/A]\n{line}\n");
            let second = ListedCard { name: "gpu1-b".to_owned(), memory };
            assert_eq!(parse_cards(&text).unwrap(), [own("gpu0-a", 20_000), second], "{line}");
        }
    }

    #[test]
    fn instances_of_a_partitioned_card_are_devices_of_their_own() {
        let text = r#"<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log>
  <gpu id="00000000:0F:00.0"><uuid>GPU-aa</uuid>
    <fb_memory_usage><total>40960 MiB</total><free>100 MiB</free></fb_memory_usage>
    <mig_devices>
      <mig_device><index>0</index><gpu_instance_id>1</gpu_instance_id>
        <fb_memory_usage><total>19968 MiB</total><used>37 MiB</used><free>19930 MiB</free></fb_memory_usage>
      </mig_device>
      <mig_device><index>1</index><gpu_instance_id>2</gpu_instance_id>
        <fb_memory_usage><total>9856 MiB</total><used>12 MiB</used><free>9843 MiB</free></fb_memory_usage>
      </mig_device>
    </mig_devices>
  </gpu>
  <gpu id="00000000:1F:00.0"><uuid>GPU-bb</uuid><mig_devices>None</mig_devices></gpu>
</nvidia_smi_log>"#;
        let device = |name: &str, total_mib, free_mib| MemoryDevice {
            name: name.to_owned(),
            total_mib,
            free_mib,
        };
        let expected = [device("gpu0.0-aa", 19_968, 19_930), device("gpu0.1-aa", 9_856, 9_843)];
        assert_eq!(parse_instances(text).unwrap(), expected);
        assert_eq!(parse_instances("no XML"), None);
    }
}
