//! Calls of the functions of XPath and of those that a set of rules defines.

use std::borrow::Cow;
use std::rc::Rc;

use super::{Evaluated, STEP_TEXT_BYTES, XPathEvaluator, XPathFocus, one};
use crate::expression::{CoreFunction, XPathExpr};
use crate::functions::{apply_to_texts, call_function};
use crate::value::{AtomicValue, EvaluationError, ItemSequence, XPathItem};

impl<'a> XPathEvaluator<'a> {
    pub(super) fn call_user(
        &mut self,
        function: usize,
        arguments: &'a [XPathExpr],
        focus: &XPathFocus<'a>,
    ) -> Evaluated<'a> {
        let program = self.program;
        let function = program.functions.get(function).ok_or(EvaluationError::Recursion)?;
        let mut values = Vec::with_capacity(arguments.len());
        for (argument, target) in arguments.iter().zip(&function.parameters) {
            let items = self.evaluate(argument, focus)?;
            values.push(Rc::new(self.convert(items, *target)?));
        }
        let outer = std::mem::replace(&mut self.frame, self.locals.len());
        self.locals.append(&mut values);
        let value = self.evaluate(&function.body, focus);
        self.locals.truncate(self.frame);
        self.frame = outer;
        value
    }

    /// The items of an argument, counted.
    pub(super) fn count_items(
        &mut self,
        arguments: &'a [XPathExpr],
        focus: &XPathFocus<'a>,
    ) -> Result<usize, EvaluationError> {
        let argument = arguments.first().ok_or(EvaluationError::Type)?;
        if argument.has_nodes_alone() {
            return Ok(self.evaluate_nodes(argument, focus)?.len());
        }
        Ok(self.hold(argument, focus)?.len())
    }

    /// The value of a function that takes texts alone.
    pub(super) fn call_on_texts(
        &mut self,
        function: CoreFunction,
        arguments: &'a [XPathExpr],
        focus: &XPathFocus<'a>,
    ) -> Result<Option<AtomicValue<'a>>, EvaluationError> {
        if function == CoreFunction::Concat {
            let mut text = String::new();
            for argument in arguments {
                if let Some(value) = self.evaluate_value(argument, focus)? {
                    text.push_str(&value.into_text());
                }
            }
            self.spend(text.len() / STEP_TEXT_BYTES)?;
            return Ok(Some(AtomicValue::Text(Cow::Owned(text))));
        }
        let text = match arguments.first() {
            Some(argument) => self.evaluate_value(argument, focus)?,
            None => Some(self.item_value(&focus.item)?),
        };
        let part = match arguments.get(1) {
            Some(argument) => self.evaluate_value(argument, focus)?,
            None => None,
        };
        let (text, part) = (text_of(text)?, text_of(part)?);
        self.spend((text.len() + part.len()) / STEP_TEXT_BYTES)?;
        Ok(Some(apply_to_texts(function, text, &part)))
    }

    pub(super) fn call(
        &mut self,
        function: CoreFunction,
        arguments: &'a [XPathExpr],
        focus: &XPathFocus<'a>,
    ) -> Evaluated<'a> {
        use CoreFunction as F;
        match function {
            F::True => return Ok(vec![true.into()]),
            F::False => return Ok(vec![false.into()]),
            F::Position => return Ok(vec![focus.position.into()]),
            F::Last => return Ok(vec![focus.size.into()]),
            F::Exists | F::Empty => {
                let is_empty = self.count_items(arguments, focus)? == 0;
                return Ok(vec![(is_empty == (function == F::Empty)).into()]);
            }
            F::Not | F::Boolean => {
                let argument = arguments.first().ok_or(EvaluationError::Type)?;
                let holds = self.is_true(argument, focus)?;
                return Ok(vec![(holds == (function == F::Boolean)).into()]);
            }
            F::Count => return Ok(vec![self.count_items(arguments, focus)?.into()]),
            _ => {}
        }
        let mut given = Vec::with_capacity(arguments.len());
        for argument in arguments {
            given.push(self.evaluate(argument, focus)?);
        }
        if given.is_empty() {
            given.push(vec![focus.item.clone()]);
        }
        if let Some(value) = self.call_on_items(function, &mut given) {
            return value;
        }
        let mut values = Vec::with_capacity(given.len());
        for items in given {
            values.push(self.atomize(items)?);
        }
        for value in values.iter().flatten() {
            if let AtomicValue::Text(text) | AtomicValue::Untyped(text) = value {
                self.spend(text.len() / STEP_TEXT_BYTES)?;
            }
        }
        if matches!(function, F::DistinctValues) {
            let count = values.first().map_or(0, Vec::len);
            self.spend(count.saturating_mul(count))?;
        }
        call_function(function, values, &self.program.patterns)
    }

    /// The functions that take items as they are; `None`: another function.
    fn call_on_items(
        &self,
        function: CoreFunction,
        given: &mut [ItemSequence<'a>],
    ) -> Option<Evaluated<'a>> {
        use CoreFunction as F;
        let first = given.first_mut()?;
        Some(match function {
            F::Reverse => {
                first.reverse();
                Ok(std::mem::take(first))
            }
            F::ZeroOrOne if first.len() <= 1 => Ok(std::mem::take(first)),
            F::ExactlyOne if first.len() == 1 => Ok(std::mem::take(first)),
            F::ZeroOrOne | F::ExactlyOne => Err(EvaluationError::Type),
            F::RootOf => Ok(vec![XPathItem::Node(0)]),
            F::Name | F::LocalName | F::NamespaceUri => match first.as_slice() {
                [] => Ok(one(AtomicValue::Text(Cow::Borrowed("")))),
                [XPathItem::Node(node)] => Ok(vec![
                    match function {
                        F::Name => Cow::Borrowed(self.tree.written_name(*node)),
                        F::LocalName => Cow::Borrowed(self.tree.local_name(*node)),
                        _ => Cow::Borrowed(self.tree.namespace(*node)),
                    }
                    .into(),
                ]),
                _ => Err(EvaluationError::Type),
            },
            F::Subsequence => subsequence(given),
            _ => return None,
        })
    }
}

/// A text; none is empty.
fn text_of(value: Option<AtomicValue<'_>>) -> Result<Cow<'_, str>, EvaluationError> {
    match value {
        None => Ok(Cow::Borrowed("")),
        Some(AtomicValue::Text(text) | AtomicValue::Untyped(text)) => Ok(text),
        Some(_) => Err(EvaluationError::Type),
    }
}

/// `subsequence` by its start and, if given, its length.
fn subsequence<'a>(given: &mut [ItemSequence<'a>]) -> Evaluated<'a> {
    let mut bounds = [1.0, f64::INFINITY];
    for (bound, items) in bounds.iter_mut().zip(given.iter().skip(1)) {
        match items.as_slice() {
            [XPathItem::Atomic(value)] => *bound = (value.to_double()? + 0.5).floor(),
            _ => return Err(EvaluationError::Type),
        }
    }
    let [start, length] = bounds;
    let items = given.first_mut().map(std::mem::take).unwrap_or_default();
    let mut at = 0.0;
    let kept = items.into_iter().filter(|_| {
        at += 1.0;
        at >= start && at < start + length
    });
    Ok(kept.collect())
}
