//! The sorts of errors, each as one change to correct data.

use fastrand::Rng;
use serde::Serialize;
use serde_json::{Map, Number, Value, json};
use time::Duration;

use docmill_formats::notation::date;
use docmill_gate::kinds::{FieldType, Kind};

/// A sort of error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorSort {
    /// Two neighbouring digits of an amount, date or identifier in each other's place, or one
    /// misread where all are alike.
    DigitSwap,
    /// The values of two fields of one type in each other's place.
    SwappedFields,
    /// An entry of a list is lacking.
    DroppedRow,
    /// A plausible value that the document does not hold.
    InventedValue,
}

impl ErrorSort {
    /// All sorts of errors.
    pub const ALL: [Self; 4] =
        [Self::DigitSwap, Self::SwappedFields, Self::DroppedRow, Self::InventedValue];

    /// The stable word, as in the JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::DigitSwap => "digit_swap",
            Self::SwappedFields => "swapped_fields",
            Self::DroppedRow => "dropped_row",
            Self::InventedValue => "invented_value",
        }
    }

    /// Makes one error. Returns the field it is in; none if the data offers no place for one.
    pub(super) fn inject(
        self,
        kind: &Kind,
        data: &mut Map<String, Value>,
        rng: &mut Rng,
    ) -> Option<String> {
        let before = data.clone();
        let field = match self {
            Self::DigitSwap => swap_digits_in_field(kind, data, rng),
            Self::SwappedFields => swap_fields(kind, data, rng),
            Self::DroppedRow => drop_row(data, rng),
            Self::InventedValue => invent_value(kind, data, rng),
        }?;
        (*data != before).then_some(field)
    }
}

fn swap_digits_in_field(
    kind: &Kind,
    data: &mut Map<String, Value>,
    rng: &mut Rng,
) -> Option<String> {
    let mut places: Vec<String> = kind
        .fields()
        .filter(|(field, of)| match of {
            FieldType::Number => data.get(*field).is_some_and(|it| it.as_f64() != Some(0.0)),
            FieldType::Date => true,
            // Addresses and names hold digits too, but a misread house number is another sort of
            // error.
            FieldType::Text => {
                ["number", "_id", "iban"].iter().any(|ending| field.ends_with(ending))
            }
            FieldType::Boolean | FieldType::List | FieldType::Object => false,
        })
        .filter(|(field, _)| {
            data.get(*field).is_some_and(|it| {
                !it.is_null() && it.to_string().chars().filter(char::is_ascii_digit).count() > 1
            })
        })
        .map(|(field, _)| format!("/{field}"))
        .collect();
    for (list, value) in data.iter() {
        for (index, row) in value.as_array().into_iter().flatten().enumerate() {
            let fields = row.as_object().into_iter().flatten();
            let numbers = fields.filter(|(_, it)| it.as_f64().is_some_and(|it| it != 0.0));
            places.extend(numbers.map(|(field, _)| format!("/{list}/{index}/{field}")));
        }
    }
    let place = rng.choice(places)?;
    let mut all = Value::Object(std::mem::take(data));
    if let Some(value) = all.pointer_mut(&place) {
        *value = swap_digits(value, rng);
    }
    if let Value::Object(all) = all {
        *data = all;
    }
    Some(place)
}

/// The value with two digits swapped, of the same type; a date stays one of the calendar.
fn swap_digits(value: &Value, rng: &mut Rng) -> Value {
    for _ in 0..20 {
        let (text, number) = match value {
            Value::Number(number) => (number.to_string(), true),
            Value::String(text) => (text.clone(), false),
            other => return other.clone(),
        };
        let is_date = date::parse_iso(&text).is_some();
        let changed = swap_text_digits(&text, rng);
        if changed == text || (is_date && date::parse_iso(&changed).is_none()) {
            continue;
        }
        if !number {
            return changed.into();
        }
        let parsed = changed.parse::<f64>().ok().filter(|it| Some(*it) != value.as_f64());
        if let Some(number) = parsed.and_then(Number::from_f64) {
            return number.into();
        }
    }
    value.clone()
}

fn swap_text_digits(text: &str, rng: &mut Rng) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    let digits: Vec<usize> = characters
        .iter()
        .enumerate()
        .filter(|(_, c)| c.is_ascii_digit())
        .map(|(at, _)| at)
        .collect();
    let pairs: Vec<(usize, usize)> = digits
        .windows(2)
        .filter_map(|pair| match pair {
            [a, b] if characters.get(*a) != characters.get(*b) => Some((*a, *b)),
            _ => None,
        })
        .collect();
    if let Some((a, b)) = rng.choice(pairs) {
        characters.swap(a, b);
    } else if let Some(place) = rng.choice(digits).and_then(|at| characters.get_mut(at)) {
        let other = place.to_digit(10).map_or(1, |digit| (digit + rng.u32(1..10)) % 10);
        *place = char::from_digit(other, 10).unwrap_or('0');
    }
    characters.into_iter().collect()
}

fn swap_fields(kind: &Kind, data: &mut Map<String, Value>, rng: &mut Rng) -> Option<String> {
    let known = kind.fields().filter(|(field, _)| data.get(*field).is_some_and(|it| !it.is_null()));
    let fields: Vec<(&str, FieldType)> = known.collect();
    let mut pairs = Vec::new();
    for (at, a) in fields.iter().enumerate() {
        for b in fields.iter().skip(at + 1) {
            let whole = matches!(a.1, FieldType::List | FieldType::Object);
            if a.1 == b.1 && !whole && data.get(a.0) != data.get(b.0) {
                pairs.push((a.0, b.0));
            }
        }
    }
    let (a, b) = rng.choice(pairs)?;
    let (left, right) = (data.get(a)?.clone(), data.get(b)?.clone());
    data.insert(a.to_owned(), right);
    data.insert(b.to_owned(), left);
    Some(format!("{a} and {b}"))
}

fn drop_row(data: &mut Map<String, Value>, rng: &mut Rng) -> Option<String> {
    let lists: Vec<&String> = data
        .iter()
        .filter(|(_, value)| value.as_array().is_some_and(|rows| !rows.is_empty()))
        .map(|(field, _)| field)
        .collect();
    let list = rng.choice(lists)?.clone();
    let rows = data.get_mut(&list)?.as_array_mut()?;
    let index = rng.usize(0..rows.len());
    rows.remove(index);
    Some(format!("{list}[{index}]"))
}

fn invent_value(kind: &Kind, data: &mut Map<String, Value>, rng: &mut Rng) -> Option<String> {
    let known = kind.fields().filter(|(field, _)| data.get(*field).is_some_and(|it| !it.is_null()));
    // Lines are invented, but no entries of lists of another form.
    let able = known.filter(|(field, of)| match of {
        FieldType::Object => false,
        FieldType::List => kind.item_fields(field).contains(&"description"),
        _ => true,
    });
    let fields: Vec<(&str, FieldType)> = able.collect();
    let (field, of) = rng.choice(fields)?;
    let value = data.get_mut(field)?;
    match (of, &mut *value) {
        (FieldType::Number, value) => *value = random_amount(value.as_f64()?, rng),
        (FieldType::Date, value) => {
            let known = date::parse_iso(value.as_str()?)?;
            let days = Duration::days(rng.i64(1..300) * if rng.bool() { 1 } else { -1 });
            *value = date::to_iso(known.checked_add(days)?).into();
        }
        (FieldType::List, Value::Array(rows)) => {
            let price = random_amount(rng.f64() * 500.0, rng);
            rows.push(json!({
                "description": "Consulting on site", "quantity": 1, "unit_price": price,
                "amount": price
            }));
        }
        (_, value) => *value = random_text(field, rng).into(),
    }
    Some(field.to_owned())
}

/// A number of two decimals around another.
fn random_amount(near: f64, rng: &mut Rng) -> Value {
    let cents = (near.abs().max(1.0) * (0.3 + 2.0 * rng.f64()) * 100.0).round();
    json!(cents / 100.0)
}

fn random_text(field: &str, rng: &mut Rng) -> String {
    const NAMES: [&str; 5] = [
        "Nordlicht Handels GmbH",
        "Aurora Supplies Ltd",
        "Brasserie du Pont SARL",
        "Veldhuis Techniek BV",
        "Montalto Forniture Srl",
    ];
    if field.contains("currency") {
        return (*rng.choice(["EUR", "USD", "GBP", "CHF", "SEK", "PLN"]).unwrap_or("CHF"))
            .to_owned();
    }
    if field.ends_with("_id") {
        return format!("DE{}", rng.u32(100_000_000..1_000_000_000));
    }
    if field.ends_with("number") {
        return format!("R-{}-{}", rng.u32(2010..2030), rng.u32(1_000..100_000));
    }
    if field.contains("address") {
        return format!("Lindenallee {}, {} Musterfeld", rng.u32(2..200), rng.u32(10_000..99_999));
    }
    rng.choice(NAMES).unwrap_or("Aurora Supplies Ltd").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use docmill_core::config::KindsConfig;
    use docmill_gate::kinds::KindSet;

    #[test]
    fn every_sort_changes_correct_data_and_keeps_its_types() {
        let kinds = KindSet::load(&KindsConfig::default()).unwrap();
        let kind = kinds.get("invoice").unwrap();
        let data = json!({
            "supplier_name": "A GmbH", "supplier_vat_id": "DE136695976", "invoice_number": "17-2",
            "invoice_date": "2024-01-02", "due_date": "2024-02-01", "currency": "EUR",
            "line_items": [{"amount": 10.5}, {"amount": 12}], "subtotal": 22.5, "total": 26.78
        });
        for sort in ErrorSort::ALL {
            let mut changed = 0;
            for seed in 0..50 {
                let mut own = data.as_object().unwrap().clone();
                if sort.inject(kind, &mut own, &mut Rng::with_seed(seed)).is_some() {
                    changed += 1;
                    assert_ne!(Some(&own), data.as_object(), "{sort:?}");
                    for (field, value) in &own {
                        let same = std::mem::discriminant(value)
                            == std::mem::discriminant(&data[field.as_str()]);
                        assert!(same, "{sort:?} {field} {value}");
                    }
                }
            }
            assert!(changed > 40, "{sort:?}: {changed}");
        }
    }
}
