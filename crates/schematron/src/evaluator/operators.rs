//! Operators on values: comparison of one item, arithmetic, sets of nodes, casts, bindings.

use std::borrow::Cow;

use super::{Evaluated, HeldItems, XPathEvaluator, XPathFocus, one};
use crate::expression::{AtomicType, Comparison, ItemType, SequenceType, XPathExpr};
use crate::value::{
    AtomicValue, EvaluationError, ItemSequence, XPathItem, in_document_order, node_items, nodes_of,
};

/// Most items of a range.
const MAX_RANGE_ITEMS: usize = 100_000;

impl<'a> XPathEvaluator<'a> {
    /// Whether any value of the left is related to any of the right.
    pub(super) fn compare_any(
        &mut self,
        comparison: Comparison,
        [left, right]: [&'a XPathExpr; 2],
        focus: &XPathFocus<'a>,
    ) -> Result<bool, EvaluationError> {
        let left = self.evaluate_operand(left, focus)?;
        let right = self.evaluate_operand(right, focus)?;
        for one in left.iter() {
            self.spend(right.len())?;
            for other in right.iter() {
                if let (XPathItem::Atomic(one), XPathItem::Atomic(other)) = (one, other)
                    && one.is_related(comparison, other)?
                {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// The values of an operand of a comparison.
    fn evaluate_operand(
        &mut self,
        operand: &'a XPathExpr,
        focus: &XPathFocus<'a>,
    ) -> Result<HeldItems<'a>, EvaluationError> {
        if has_one_value(operand) {
            let value = self.evaluate_value(operand, focus)?;
            return Ok(HeldItems::One(value.map(XPathItem::Atomic)));
        }
        if operand.has_nodes_alone() {
            let nodes = self.evaluate_nodes(operand, focus)?;
            if let [node] = nodes.as_slice() {
                return Ok(HeldItems::One(Some(XPathItem::Atomic(self.node_value(*node)?))));
            }
            let values = self.atomize(node_items(nodes))?;
            return Ok(HeldItems::Own(values.into_iter().map(XPathItem::Atomic).collect()));
        }
        let items = self.hold(operand, focus)?;
        if !items.iter().any(|item| matches!(item, XPathItem::Node(_))) {
            return Ok(items);
        }
        let values = self.atomize(items.to_vec())?;
        Ok(HeldItems::Own(values.into_iter().map(XPathItem::Atomic).collect()))
    }

    /// Whether values that are the same for all items of a source are related to any of them.
    pub(super) fn is_some_related(
        &mut self,
        comparison: Comparison,
        [fixed, source]: [&'a XPathExpr; 2],
        focus: &XPathFocus<'a>,
    ) -> Result<bool, EvaluationError> {
        let source = self.hold(source, focus)?;
        if source.is_empty() {
            return Ok(false);
        }
        let fixed = self.evaluate_values(fixed, focus)?;
        for item in source.iter() {
            self.spend(fixed.len())?;
            let of_node;
            let value = match item {
                XPathItem::Atomic(value) => value,
                XPathItem::Node(node) => {
                    of_node = self.node_value(*node)?;
                    &of_node
                }
            };
            for one in &fixed {
                if one.is_related(comparison, value)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    pub(super) fn evaluate_rare(
        &mut self,
        expression: &'a XPathExpr,
        focus: &XPathFocus<'a>,
    ) -> Evaluated<'a> {
        Ok(match expression {
            XPathExpr::ValueComparison(comparison, left, right) => {
                match (self.evaluate_value(left, focus)?, self.evaluate_value(right, focus)?) {
                    (Some(left), Some(right)) => {
                        vec![left.is_comparable(*comparison, &right)?.into()]
                    }
                    _ => Vec::new(),
                }
            }
            XPathExpr::Arithmetic(..) | XPathExpr::Cast(..) => {
                let value = self.evaluate_value_kind(expression, focus)?;
                value.into_iter().map(XPathItem::Atomic).collect()
            }
            XPathExpr::Negated(inside) => match self.evaluate_value(inside, focus)? {
                None => Vec::new(),
                Some(AtomicValue::Integer(number)) => one(AtomicValue::Integer(number.negated())),
                Some(AtomicValue::Decimal(number)) => one(AtomicValue::Decimal(number.negated())),
                Some(other) => one(AtomicValue::Double(-other.to_double()?)),
            },
            XPathExpr::Range(left, right) => self.evaluate_range(left, right, focus)?,
            XPathExpr::SameNode(left, right) => {
                let (left, right) = (self.evaluate(left, focus)?, self.evaluate(right, focus)?);
                match (left.as_slice(), right.as_slice()) {
                    ([XPathItem::Node(left)], [XPathItem::Node(right)]) => {
                        vec![(left == right).into()]
                    }
                    ([], _) | (_, []) => Vec::new(),
                    _ => return Err(EvaluationError::Type),
                }
            }
            XPathExpr::Selection { keep_common, left, right } => {
                let left = in_document_order(self.evaluate(left, focus)?)?;
                let right = nodes_of(&self.evaluate(right, focus)?)?;
                self.spend(left.len().saturating_mul(right.len()))?;
                let kept = left.into_iter().filter(|item| match item {
                    XPathItem::Node(node) => right.contains(node) == *keep_common,
                    XPathItem::Atomic(_) => false,
                });
                kept.collect()
            }
            other => self.evaluate_conversion(other, focus)?,
        })
    }

    /// The expressions that give a value another type.
    fn evaluate_conversion(
        &mut self,
        expression: &'a XPathExpr,
        focus: &XPathFocus<'a>,
    ) -> Evaluated<'a> {
        Ok(match expression {
            XPathExpr::Castable(inside, target) => {
                let mut values = self.evaluate_values(inside, focus)?;
                let value = values.pop();
                let is_castable = values.is_empty()
                    && value.map_or(target.may_be_empty, |value| value.cast(target.atomic).is_ok());
                vec![is_castable.into()]
            }
            XPathExpr::JoinedText(inside) => {
                let values = self.evaluate_values(inside, focus)?;
                let texts: Vec<Cow<'_, str>> =
                    values.into_iter().map(AtomicValue::into_text).collect();
                one(AtomicValue::Untyped(Cow::Owned(texts.join(" "))))
            }
            XPathExpr::Converted(inside, target) => {
                let items = self.evaluate(inside, focus)?;
                self.convert(items, *target)?
            }
            other => self.evaluate_binding(other, focus)?,
        })
    }

    /// The expressions that bind a variable.
    fn evaluate_binding(
        &mut self,
        expression: &'a XPathExpr,
        focus: &XPathFocus<'a>,
    ) -> Evaluated<'a> {
        match expression {
            XPathExpr::For { slot, source, result } => {
                let mut items = Vec::new();
                for item in self.evaluate(source, focus)? {
                    self.bind(*slot, vec![item]);
                    items.append(&mut self.evaluate(result, focus)?);
                }
                Ok(items)
            }
            XPathExpr::Quantified { is_every, slot, source, condition } => {
                for item in self.evaluate(source, focus)? {
                    self.bind(*slot, vec![item]);
                    if self.is_true(condition, focus)? != *is_every {
                        return Ok(vec![(!is_every).into()]);
                    }
                }
                Ok(vec![(*is_every).into()])
            }
            XPathExpr::Let { slot, value, rest } => {
                let value = self.evaluate(value, focus)?;
                self.bind(*slot, value);
                self.evaluate(rest, focus)
            }
            _ => Err(EvaluationError::Type),
        }
    }

    fn evaluate_range(
        &mut self,
        left: &'a XPathExpr,
        right: &'a XPathExpr,
        focus: &XPathFocus<'a>,
    ) -> Evaluated<'a> {
        let ends = (self.evaluate_value(left, focus)?, self.evaluate_value(right, focus)?);
        let (Some(left), Some(right)) = ends else { return Ok(Vec::new()) };
        let (left, right) =
            match (left.convert(AtomicType::Integer), right.convert(AtomicType::Integer)) {
                (Ok(AtomicValue::Integer(left)), Ok(AtomicValue::Integer(right))) => (left, right),
                _ => return Err(EvaluationError::Type),
            };
        let (left, right) = (left.to_i64(), right.to_i64());
        let (Some(left), Some(right)) = (left, right) else {
            return Err(EvaluationError::Overflow);
        };
        let count = usize::try_from(right.saturating_sub(left).saturating_add(1)).unwrap_or(0);
        if count > MAX_RANGE_ITEMS {
            return Err(EvaluationError::Budget);
        }
        self.spend(count)?;
        Ok((left..=right).map(|it| XPathItem::Atomic(AtomicValue::Integer(it.into()))).collect())
    }

    /// Items as a declared type has them.
    pub(super) fn convert(
        &mut self,
        items: ItemSequence<'a>,
        target: SequenceType,
    ) -> Evaluated<'a> {
        let items = match target.item {
            ItemType::Atomic(atomic) => {
                let values = self.atomize(items)?.into_iter();
                let converted = values.map(|value| value.convert(atomic).map(XPathItem::Atomic));
                converted.collect::<Evaluated<'a>>()?
            }
            _ => items,
        };
        let fits = items.iter().all(|item| self.has_type(item, target.item))
            && (target.may_be_empty || !items.is_empty())
            && (target.may_be_several || items.len() <= 1);
        if fits { Ok(items) } else { Err(EvaluationError::Type) }
    }

    fn has_type(&self, item: &XPathItem<'a>, expected: ItemType) -> bool {
        match (expected, item) {
            (ItemType::Any, _)
            | (ItemType::Node, XPathItem::Node(_))
            | (ItemType::Atomic(_), XPathItem::Atomic(_)) => true,
            (ItemType::Sort(sort), XPathItem::Node(node)) => self.tree.sort(*node) == sort,
            _ => false,
        }
    }
}

/// Whether an expression has at most one value, by its form.
fn has_one_value(expression: &XPathExpr) -> bool {
    match expression {
        XPathExpr::Text(_)
        | XPathExpr::Integer(_)
        | XPathExpr::Decimal(_)
        | XPathExpr::ContextItem
        | XPathExpr::Arithmetic(..)
        | XPathExpr::Cast(..) => true,
        XPathExpr::Call(function, _) => function.is_of_texts(),
        _ => false,
    }
}
