//! Tax against the net amount, by the rates that the page prints.
//!
//! A page prints percentages that are no rates of tax (discounts, interest on arrears). So either
//! they only bound the tax, or a word for the tax has to stand on the same line.

use rust_decimal::Decimal;

use super::checks::FailedFields;
use super::subject::{GateSubject, json_decimal};
use super::sums::{checked_sum, is_close};
use crate::kinds::RuleCheck;
use docmill_core::model::ExtractionMethod;

const HUNDRED: Decimal = Decimal::ONE_HUNDRED;
const CENT: Decimal = Decimal::from_parts(1, 0, 0, false, 2);
/// Printed pairs of net and tax whose combinations are tried: all of them are.
const MAX_PAIRS: usize = 12;
/// Hardly any tax on sales is lower (France has 2.1 %, India 0.25 % for rough stones): less is mostly a discount,
/// interest or a surcharge. Where nothing higher is printed, the bound is that of a page without a rate.
const MIN_RATE: Decimal = Decimal::TWO;
/// Printed percentages that are tried as rates.
const MAX_RATES: usize = 100;

/// A tax and what it has to be a share of.
pub(super) struct TaxByRateRule<'a> {
    pub(super) net: &'a str,
    pub(super) tax: &'a str,
    /// A percentage on a line with one of them is a rate, unless it is above `most`.
    pub(super) words: &'a [String],
    pub(super) most: Decimal,
    pub(super) tolerance: Decimal,
    /// The list whose entries may each be rounded, and by how much.
    pub(super) list: Option<&'a str>,
    pub(super) per_item: Decimal,
}

/// A list of taxes by rate, and what it has to make.
pub(super) struct TaxBreakdownRule<'a> {
    pub(super) list: &'a str,
    /// The fields of its entries: what is taxed, in percent, and the tax.
    pub(super) base: &'a str,
    pub(super) rate: &'a str,
    pub(super) amount: &'a str,
    pub(super) net: &'a str,
    pub(super) tax: &'a str,
    /// The list whose entries may each be rounded, and by how much.
    pub(super) lines: Option<&'a str>,
    pub(super) tolerance: Decimal,
    pub(super) per_item: Decimal,
}

impl<'a> TaxBreakdownRule<'a> {
    /// The rule of a check of this sort; `None` for one of another.
    pub(super) fn of_check(check: &'a RuleCheck) -> Option<Self> {
        let RuleCheck::TaxBreakdown {
            list,
            base,
            rate,
            amount,
            net,
            tax,
            lines,
            tolerance,
            per_item,
        } = check
        else {
            return None;
        };
        let (tolerance, per_item, lines) = (*tolerance, *per_item, lines.as_deref());
        Some(Self { list, base, rate, amount, net, tax, lines, tolerance, per_item })
    }
}

fn percent_of(of: Decimal, rate: Decimal) -> Option<Decimal> {
    of.checked_mul(rate)?.checked_div(HUNDRED)
}

impl GateSubject<'_> {
    /// Tax beyond what the highest printed percentage, or else the highest rate in use, makes of
    /// the net amount.
    pub(super) fn tax_rate_holds(
        &self,
        net: &str,
        tax: &str,
        most: Decimal,
        tolerance: Decimal,
    ) -> bool {
        let (Some(net), Some(tax)) = (self.field_number(net), self.field_number(tax)) else {
            return true;
        };
        // Percentages of an XML's texts are no rates: those of its own taxes are another rule's.
        let is_exact = self.extraction.reader == ExtractionMethod::Einvoice;
        let printed = self.ground.percentages.iter().filter(|rate| !is_exact && **rate <= most);
        let highest = printed.max().copied().filter(|rate| *rate >= MIN_RATE).unwrap_or(most);
        let bound = percent_of(net.abs(), highest).and_then(|it| it.checked_add(tolerance));
        bound.is_none_or(|bound| tax.abs() <= bound)
            || self.is_made_by_bare_rate(net, tax, most)
            || self.is_made_by_several(net.abs(), tax.abs(), most)
    }

    /// Whether a rate makes the tax to the cent that is printed without its sign, as in a column
    /// `VAT %`.
    fn is_made_by_bare_rate(&self, net: Decimal, tax: Decimal, most: Decimal) -> bool {
        let rate = tax.abs().checked_mul(HUNDRED).and_then(|it| it.checked_div(net.abs()));
        let Some(rate) = rate.map(|rate| rate.round_dp(1)).filter(|rate| *rate <= most) else {
            return false;
        };
        let made = percent_of(net.abs(), rate);
        made.is_some_and(|made| is_close(made, tax.abs(), CENT))
            && !self.ground.number_places(rate).is_empty()
    }

    /// Whether several taxes are on the whole amount, as those of a country and its states: each is
    /// printed, and is what a printed rate makes. Two halves of one rate are two.
    fn is_made_by_several(&self, net: Decimal, tax: Decimal, most: Decimal) -> bool {
        let rates = self.ground.percentages.iter().filter(|rate| **rate <= most && !rate.is_zero());
        let made = rates.take(MAX_RATES).filter_map(|rate| percent_of(net, *rate));
        let taxes = made.filter_map(|made| {
            let cents = made.round_dp(2);
            let printed = [cents, cents - CENT, cents + CENT].into_iter();
            printed
                .filter(|it| is_close(*it, made, CENT))
                .find(|it| !self.ground.number_places(*it).is_empty())
        });
        let taxes: Vec<Decimal> = taxes.collect();
        let together = checked_sum(&taxes).is_some_and(|sum| is_close(sum, tax, CENT));
        let halves = taxes.iter().any(|half| {
            is_close(*half + *half, tax, CENT) && self.number_rows().count_rows_with(*half) > 1
        });
        taxes.len() > 1 && together || halves
    }

    /// Whether a printed rate, or several of parts of the amount, make the tax.
    pub(super) fn tax_by_rate_holds(&self, rule: &TaxByRateRule<'_>) -> bool {
        let (Some(net), Some(tax)) = (self.field_number(rule.net), self.field_number(rule.tax))
        else {
            return true;
        };
        let (net, tax) = (net.abs(), tax.abs());
        let mut rates = self.ground.percentages_beside(rule.words);
        rates.retain(|rate| *rate <= rule.most);
        let (Some(lowest), Some(highest)) = (rates.first(), rates.last()) else { return true };
        let entries = rule.list.map_or(0, |list| self.list_items(list).count());
        let rounding = rule.per_item.checked_mul(Decimal::from(entries));
        let slack = rounding.unwrap_or_default() + rule.tolerance;
        let bounds = percent_of(net, *lowest).zip(percent_of(net, *highest));
        let Some((least, most)) = bounds else { return true };
        // Several rates: any share of the amount may be under any of them. One: all of it, for the
        // lowest is the highest then.
        let within = least - slack <= tax && tax <= most + slack;
        tax.is_zero()
            || within
            || self.is_made_by_several(net, tax, rule.most)
            || self.is_part_taxed(net, tax, slack)
    }

    /// The entries whose tax is not the rate's share of their base. The whole list, if its taxes do
    /// not add up to the tax or its bases exceed the net amount. Exempt amounts may be missing from
    /// it.
    pub(super) fn tax_breakdown_faults(&self, rule: &TaxBreakdownRule<'_>) -> FailedFields {
        let entries = rule.lines.map_or(0, |list| self.list_items(list).count());
        let rounding = rule.per_item.checked_mul(Decimal::from(entries)).unwrap_or_default();
        let slack = rounding + rule.tolerance;
        let mut faults: FailedFields = FailedFields::new();
        for (index, entry) in self.list_items(rule.list).enumerate() {
            let [base, rate, amount] = [rule.base, rule.rate, rule.amount]
                .map(|field| entry.get(field).and_then(json_decimal));
            let made = base.zip(rate).and_then(|(base, rate)| percent_of(base, rate));
            if let Some((made, tax)) = made.zip(amount)
                && !is_close(made, tax, slack)
            {
                faults.push(Some(format!("{}[{index}]", rule.list)));
            }
        }
        let [amounts, bases] = [rule.amount, rule.base].map(|field| {
            let all = self.item_numbers(rule.list, field);
            checked_sum(&all).filter(|_| !all.is_empty()).map(|sum| sum.abs())
        });
        let [tax, net] =
            [rule.tax, rule.net].map(|field| self.field_number(field).map(|value| value.abs()));
        let (taxes, bases) = (amounts.zip(tax), bases.zip(net));
        let differs = taxes.is_some_and(|(sum, tax)| !is_close(sum, tax, slack))
            || bases.is_some_and(|(sum, net)| sum > net + slack);
        if differs {
            faults.push(Some(rule.list.to_owned()));
        }
        faults
    }

    /// Whether only a part of the amount is taxed, and the page prints that part and its tax: the
    /// rest is exempt.
    fn is_part_taxed(&self, net: Decimal, tax: Decimal, slack: Decimal) -> bool {
        let pairs: Vec<(Decimal, Decimal)> = self
            .number_rows()
            .net_and_tax_pairs(super::sums::MAX_RATE)
            .into_iter()
            .filter(|(base, own)| *base <= net + slack && *own <= tax + slack)
            .take(MAX_PAIRS)
            .collect();
        let subsets = 1_u32 << pairs.len();
        (1..subsets).any(|chosen| {
            let own = pairs.iter().enumerate().filter(|(at, _)| chosen & (1 << at) != 0);
            let (bases, taxes): (Vec<Decimal>, Vec<Decimal>) = own.map(|(_, pair)| *pair).unzip();
            let within = checked_sum(&bases).is_some_and(|base| base <= net + slack);
            within && checked_sum(&taxes).is_some_and(|own| is_close(own, tax, slack))
        })
    }
}
