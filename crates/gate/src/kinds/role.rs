//! The roles of fields: their meaning for the program, apart from their names.

use std::collections::BTreeMap;

/// The meaning of a field for the readers. A role has the name of its field in the kind `invoice`;
/// a kind whose field has another name states it under `[roles]` in its `kind.toml`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldRole {
    /// The issuer's name.
    SupplierName,
    /// The issuer's address.
    SupplierAddress,
    /// The issuer's VAT identifier.
    SupplierVatId,
    /// The recipient's name.
    BuyerName,
    /// The recipient's VAT identifier.
    BuyerVatId,
    /// The document's own number.
    DocumentNumber,
    /// The number of the customer's order.
    OrderNumber,
    /// The day of issue.
    IssueDate,
    /// The day by which to pay.
    DueDate,
    /// The terms of payment.
    PaymentTerms,
    /// The discounts for early payment.
    CashDiscounts,
    /// The account to pay to.
    Iban,
    /// The bank of that account.
    Bic,
    /// The currency of the amounts.
    Currency,
    /// The lines.
    Lines,
    /// The allowances on the whole document.
    Allowances,
    /// The charges on the whole document.
    Charges,
    /// The taxes by rate.
    Taxes,
    /// The total without tax.
    NetAmount,
    /// The tax.
    TaxAmount,
    /// The total.
    Total,
    /// The code of the sort of document (UNTDID 1001).
    DocumentType,
    /// The name that the issuer trades under, if it is another.
    TradingName,
    /// The name of the payee, if it is not the issuer.
    PayeeName,
    /// The reference to be quoted with the payment.
    PaymentReference,
    /// The day of delivery.
    DeliveryDate,
    /// The first day of the period that is invoiced.
    PeriodStart,
    /// The last day of that period.
    PeriodEnd,
    /// The due dates of a payment in instalments.
    Instalments,
    /// The other accounts that may be paid to.
    FurtherAccounts,
    /// The sum that was paid before.
    PaidAmount,
    /// The rounding of the amount that is due.
    RoundingAmount,
    /// The amount that is left to pay.
    AmountDue,
}

use FieldRole as R;

const NAMES: [(FieldRole, &str); 33] = [
    (R::SupplierName, "supplier_name"),
    (R::SupplierAddress, "supplier_address"),
    (R::SupplierVatId, "supplier_vat_id"),
    (R::BuyerName, "buyer_name"),
    (R::BuyerVatId, "buyer_vat_id"),
    (R::DocumentNumber, "invoice_number"),
    (R::OrderNumber, "order_number"),
    (R::IssueDate, "invoice_date"),
    (R::DueDate, "due_date"),
    (R::PaymentTerms, "payment_terms"),
    (R::CashDiscounts, "cash_discounts"),
    (R::Iban, "iban"),
    (R::Bic, "bic"),
    (R::Currency, "currency"),
    (R::Lines, "line_items"),
    (R::Allowances, "allowances"),
    (R::Charges, "charges"),
    (R::Taxes, "taxes"),
    (R::NetAmount, "subtotal"),
    (R::TaxAmount, "vat_amount"),
    (R::Total, "total"),
    (R::DocumentType, "document_type"),
    (R::TradingName, "supplier_trading_name"),
    (R::PayeeName, "payee_name"),
    (R::PaymentReference, "payment_reference"),
    (R::DeliveryDate, "delivery_date"),
    (R::PeriodStart, "period_start"),
    (R::PeriodEnd, "period_end"),
    (R::Instalments, "instalments"),
    (R::FurtherAccounts, "further_accounts"),
    (R::PaidAmount, "paid_amount"),
    (R::RoundingAmount, "rounding_amount"),
    (R::AmountDue, "amount_due"),
];

impl FieldRole {
    /// Whether e-invoices alone fill fields of this role, in a kind that has no label for them.
    pub fn is_of_einvoices(self) -> bool {
        matches!(
            self,
            R::DocumentType
                | R::TradingName
                | R::PayeeName
                | R::PaymentReference
                | R::DeliveryDate
                | R::PeriodStart
                | R::PeriodEnd
                | R::Instalments
                | R::FurtherAccounts
                | R::PaidAmount
                | R::RoundingAmount
                | R::AmountDue
        )
    }

    /// The role's name in `kind.toml`, and its field's where the kind states no other.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(role, _)| *role == self).map_or("", |(_, name)| name)
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        NAMES.iter().find(|(_, own)| *own == name).map(|(role, _)| *role)
    }

    /// The names of all roles, for a complaint.
    pub(super) fn all_names() -> String {
        NAMES.map(|(_, name)| name).join(", ")
    }
}

/// The roles whose fields have other names: role's name to field.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct RoleNames(pub(super) BTreeMap<String, String>);

impl RoleNames {
    /// The field of a role's name; other names are fields themselves.
    pub(super) fn field_of<'n>(&'n self, name: &'n str) -> &'n str {
        self.0.get(name).map_or(name, String::as_str)
    }

    /// The name of a field's role, or of a field without one.
    pub(super) fn name_of<'n>(&'n self, field: &'n str) -> &'n str {
        let mut renamed = self.0.iter().filter(|(_, own)| own.as_str() == field);
        renamed.next().map_or(field, |(name, _)| name.as_str())
    }
}
