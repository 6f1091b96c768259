//! The value of an expression on a document, within a budget of steps.

mod calls;
mod operators;
mod steps;

use std::borrow::Cow;
use std::rc::Rc;

use crate::expression::{CoreFunction, UserFunction, VariableSlot, XPathExpr};
use crate::functions::ArgumentValues;
use crate::pattern_cache::PatternCache;
use crate::tree::{NodeList, NodeNumber, NodeSort, NodeTree};
use crate::value::{
    AtomicValue, EvaluationError, ItemSequence, XPathItem, in_document_order, node_items,
};

/// Deepest nesting of expressions that are evaluated, calls of functions included.
const MAX_EVALUATION_DEPTH: usize = 400;
/// Items of paths from the root that are kept for the next check of a rule with that path.
pub(crate) const MAX_SHARED_ITEMS: usize = 200_000;
/// Bytes of text that are worth a step.
const STEP_TEXT_BYTES: usize = 128;

/// Variables and functions of a set of rules.
#[derive(Debug, Default)]
pub(crate) struct RuleProgram {
    /// Those that the set declares, and paths from the root that several expressions may have.
    pub globals: Vec<XPathExpr>,
    pub declared_globals: usize,
    pub functions: Vec<UserFunction>,
    pub patterns: PatternCache,
}

/// The item that an expression is evaluated for.
#[derive(Debug, Clone)]
pub(crate) struct XPathFocus<'a> {
    item: XPathItem<'a>,
    position: usize,
    size: usize,
}

impl<'a> XPathFocus<'a> {
    /// A node by itself.
    pub(crate) fn on_node(node: NodeNumber) -> Self {
        Self { item: XPathItem::Node(node), position: 1, size: 1 }
    }

    fn node(&self) -> Result<NodeNumber, EvaluationError> {
        match self.item {
            XPathItem::Node(node) => Ok(node),
            XPathItem::Atomic(_) => Err(EvaluationError::Type),
        }
    }
}

/// A variable that is evaluated when it is first asked for.
#[derive(Debug, Clone)]
enum VariableState<'a> {
    Unread,
    Evaluating,
    Known(Result<Rc<ItemSequence<'a>>, EvaluationError>),
}

/// The rule that is applied: its variables, and the node that it is applied to.
#[derive(Debug)]
struct RuleScope<'a> {
    variables: &'a [XPathExpr],
    states: Vec<VariableState<'a>>,
    node: NodeNumber,
}

/// Evaluates the expressions of one set of rules on one document.
#[derive(Debug)]
pub(crate) struct XPathEvaluator<'a> {
    program: &'a RuleProgram,
    tree: &'a NodeTree<'a>,
    steps_left: u64,
    depth: usize,
    globals: Vec<VariableState<'a>>,
    shared_items: usize,
    rule: RuleScope<'a>,
    locals: Vec<Rc<ItemSequence<'a>>>,
    /// First local of the function that is called.
    frame: usize,
}

type Evaluated<'a> = Result<ItemSequence<'a>, EvaluationError>;
type EvaluatedNodes = Result<NodeList, EvaluationError>;

/// Items that a variable has, or of an expression alone.
enum HeldItems<'a> {
    Shared(Rc<ItemSequence<'a>>),
    Own(ItemSequence<'a>),
    One(Option<XPathItem<'a>>),
}

impl<'a> std::ops::Deref for HeldItems<'a> {
    type Target = [XPathItem<'a>];

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Shared(items) => items,
            Self::Own(items) => items,
            Self::One(item) => item.as_slice(),
        }
    }
}

impl<'a> XPathEvaluator<'a> {
    pub(crate) fn new(program: &'a RuleProgram, tree: &'a NodeTree<'a>, steps_left: u64) -> Self {
        Self {
            program,
            tree,
            steps_left,
            depth: 0,
            globals: vec![VariableState::Unread; program.globals.len()],
            shared_items: 0,
            rule: RuleScope { variables: &[], states: Vec::new(), node: 0 },
            locals: Vec::new(),
            frame: 0,
        }
    }

    /// Goes on with a rule that is applied to `node`.
    pub(crate) fn enter_rule(&mut self, variables: &'a [XPathExpr], node: NodeNumber) {
        let states = vec![VariableState::Unread; variables.len()];
        self.rule = RuleScope { variables, states, node };
    }

    pub(crate) fn spend(&mut self, steps: usize) -> Result<(), EvaluationError> {
        let steps = u64::try_from(steps).unwrap_or(u64::MAX);
        self.steps_left = self.steps_left.saturating_sub(steps);
        if self.steps_left == 0 { Err(EvaluationError::Budget) } else { Ok(()) }
    }

    /// Whether an expression is true for a focus.
    ///
    /// # Errors
    /// It has no value, or none that is true or false; the budget is spent.
    pub(crate) fn is_true(
        &mut self,
        expression: &'a XPathExpr,
        focus: &XPathFocus<'a>,
    ) -> Result<bool, EvaluationError> {
        match expression {
            XPathExpr::Or(left, right) => self.join_truths(true, [left, right], focus),
            XPathExpr::And(left, right) => self.join_truths(false, [left, right], focus),
            XPathExpr::Call(CoreFunction::Not, arguments) => match arguments.first() {
                Some(argument) => Ok(!self.is_true(argument, focus)?),
                None => Err(EvaluationError::Type),
            },
            XPathExpr::GeneralComparison(comparison, left, right) => {
                self.compare_any(*comparison, [left, right], focus)
            }
            XPathExpr::SomeRelated { comparison, fixed, source } => {
                self.is_some_related(*comparison, [fixed, source], focus)
            }
            XPathExpr::Call(CoreFunction::Exists, arguments) => {
                Ok(self.count_items(arguments, focus)? > 0)
            }
            XPathExpr::Call(CoreFunction::Empty, arguments) => {
                Ok(self.count_items(arguments, focus)? == 0)
            }
            XPathExpr::Call(function, arguments) if function.is_of_texts() => {
                self.spend(1)?;
                let value = self.call_on_texts(*function, arguments, focus)?;
                value.map_or(Ok(false), |value| value.truth())
            }
            path if path.has_nodes_alone() => Ok(!self.evaluate_nodes(path, focus)?.is_empty()),
            other => truth_of(&self.hold(other, focus)?),
        }
    }

    /// `or` and `and`: an operand whose truth is `deciding` decides even beside one without a value,
    /// as the standard permits.
    fn join_truths(
        &mut self,
        deciding: bool,
        [left, right]: [&'a XPathExpr; 2],
        focus: &XPathFocus<'a>,
    ) -> Result<bool, EvaluationError> {
        match self.is_true(left, focus) {
            Ok(truth) if truth == deciding => Ok(deciding),
            Ok(_) => self.is_true(right, focus),
            Err(EvaluationError::Budget) => Err(EvaluationError::Budget),
            Err(error) => {
                if self.is_true(right, focus)? == deciding {
                    Ok(deciding)
                } else {
                    Err(error)
                }
            }
        }
    }

    /// The value of an expression for a focus.
    ///
    /// # Errors
    /// It has none; the budget is spent.
    pub(crate) fn evaluate(
        &mut self,
        expression: &'a XPathExpr,
        focus: &XPathFocus<'a>,
    ) -> Evaluated<'a> {
        self.go_deeper()?;
        let value = self.evaluate_kind(expression, focus);
        self.depth -= 1;
        value
    }

    fn go_deeper(&mut self) -> Result<(), EvaluationError> {
        self.spend(1)?;
        if self.depth >= MAX_EVALUATION_DEPTH {
            return Err(EvaluationError::Recursion);
        }
        self.depth += 1;
        Ok(())
    }

    /// The same without copying a variable's items.
    fn hold(
        &mut self,
        expression: &'a XPathExpr,
        focus: &XPathFocus<'a>,
    ) -> Result<HeldItems<'a>, EvaluationError> {
        match expression {
            XPathExpr::Variable(slot) => {
                self.spend(1)?;
                self.variable(*slot).map(HeldItems::Shared)
            }
            other => self.evaluate(other, focus).map(HeldItems::Own),
        }
    }

    fn evaluate_kind(
        &mut self,
        expression: &'a XPathExpr,
        focus: &XPathFocus<'a>,
    ) -> Evaluated<'a> {
        Ok(match expression {
            XPathExpr::Text(text) => one(AtomicValue::Text(Cow::Borrowed(text))),
            XPathExpr::UntypedText(text) => one(AtomicValue::Untyped(Cow::Borrowed(text))),
            XPathExpr::Integer(number) => one(AtomicValue::Integer(number.clone())),
            XPathExpr::Decimal(number) => one(AtomicValue::Decimal(number.clone())),
            XPathExpr::Double(number) => one(AtomicValue::Double(*number)),
            XPathExpr::Variable(slot) => self.variable(*slot)?.as_ref().clone(),
            XPathExpr::ContextItem => vec![focus.item.clone()],
            XPathExpr::Root => vec![XPathItem::Node(0)],
            XPathExpr::Sequence(parts) => {
                let mut items = Vec::new();
                for part in parts {
                    items.append(&mut self.evaluate(part, focus)?);
                }
                items
            }
            XPathExpr::Or(..)
            | XPathExpr::And(..)
            | XPathExpr::GeneralComparison(..)
            | XPathExpr::SomeRelated { .. } => vec![self.is_true(expression, focus)?.into()],
            XPathExpr::If(condition, then, otherwise) => {
                let holds = self.is_true(condition, focus)?;
                self.evaluate(if holds { then } else { otherwise }, focus)?
            }
            XPathExpr::Step(step) => node_items(self.step_nodes(focus.node()?, step)?),
            XPathExpr::Path(left, right) => self.evaluate_path(left, right, focus)?,
            XPathExpr::Filter(inside, predicates) => {
                let mut items = self.evaluate(inside, focus)?;
                for predicate in predicates {
                    items = self.filter(items, predicate)?;
                }
                items
            }
            XPathExpr::Call(function, arguments) if function.is_of_texts() => {
                let value = self.call_on_texts(*function, arguments, focus)?;
                value.into_iter().map(XPathItem::Atomic).collect()
            }
            XPathExpr::Call(function, arguments) => self.call(*function, arguments, focus)?,
            XPathExpr::UserCall(function, arguments) => {
                self.call_user(*function, arguments, focus)?
            }
            XPathExpr::Union(left, right) => {
                let mut items = self.evaluate(left, focus)?;
                items.append(&mut self.evaluate(right, focus)?);
                in_document_order(items)?
            }
            other => self.evaluate_rare(other, focus)?,
        })
    }

    fn bind(&mut self, slot: usize, value: ItemSequence<'a>) {
        let place = self.frame.saturating_add(slot);
        self.locals.truncate(place);
        // Slots are given in order, so that all before it are there.
        self.locals.push(Rc::new(value));
    }

    fn variable(&mut self, slot: VariableSlot) -> Result<Rc<ItemSequence<'a>>, EvaluationError> {
        let state = match slot {
            VariableSlot::Local(slot) => {
                let known = self.locals.get(self.frame.saturating_add(slot));
                return known.cloned().ok_or(EvaluationError::Recursion);
            }
            VariableSlot::Global(at) => self.globals.get_mut(at),
            VariableSlot::Rule(at) => self.rule.states.get_mut(at),
        };
        let state = state.ok_or(EvaluationError::Recursion)?;
        match std::mem::replace(state, VariableState::Evaluating) {
            VariableState::Known(known) => {
                *state = VariableState::Known(known.clone());
                known
            }
            VariableState::Evaluating => Err(EvaluationError::Recursion),
            VariableState::Unread => {
                let value = self.evaluate_declared(slot).map(Rc::new);
                let is_kept = self.is_kept_value(slot, &value);
                let state = match slot {
                    VariableSlot::Rule(at) => self.rule.states.get_mut(at),
                    VariableSlot::Global(at) => self.globals.get_mut(at),
                    VariableSlot::Local(_) => None,
                };
                if let Some(state) = state {
                    *state = match is_kept {
                        true => VariableState::Known(value.clone()),
                        false => VariableState::Unread,
                    };
                }
                value
            }
        }
    }

    /// Whether a value is cached: paths of a large document could take much memory.
    fn is_kept_value(
        &mut self,
        slot: VariableSlot,
        value: &Result<Rc<ItemSequence<'a>>, EvaluationError>,
    ) -> bool {
        let is_shared =
            matches!(slot, VariableSlot::Global(at) if at >= self.program.declared_globals);
        let items = value.as_ref().map_or(0, |items| items.len());
        if !is_shared || items == 0 {
            return true;
        }
        let is_kept = self.shared_items.saturating_add(items) <= MAX_SHARED_ITEMS;
        self.shared_items += if is_kept { items } else { 0 };
        is_kept
    }

    /// The value of a variable by its declaration, in a frame of its own.
    fn evaluate_declared(&mut self, slot: VariableSlot) -> Evaluated<'a> {
        let (expression, node) = match slot {
            VariableSlot::Global(at) => (self.program.globals.get(at), 0),
            VariableSlot::Rule(at) => (self.rule.variables.get(at), self.rule.node),
            VariableSlot::Local(_) => (None, 0),
        };
        let expression = expression.ok_or(EvaluationError::Recursion)?;
        let outer = std::mem::replace(&mut self.frame, self.locals.len());
        let value = self.evaluate(expression, &XPathFocus::on_node(node));
        self.locals.truncate(self.frame);
        self.frame = outer;
        value
    }

    /// The values of an expression: of nodes, their text.
    pub(crate) fn evaluate_values(
        &mut self,
        expression: &'a XPathExpr,
        focus: &XPathFocus<'a>,
    ) -> Result<ArgumentValues<'a>, EvaluationError> {
        let items = self.evaluate(expression, focus)?;
        self.atomize(items)
    }

    fn atomize(&mut self, items: ItemSequence<'a>) -> Result<ArgumentValues<'a>, EvaluationError> {
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            values.push(match item {
                XPathItem::Atomic(value) => value,
                XPathItem::Node(node) => self.node_value(node)?,
            });
        }
        Ok(values)
    }

    /// The text of a node, as a value.
    fn node_value(&mut self, node: NodeNumber) -> Result<AtomicValue<'a>, EvaluationError> {
        let text = self.tree.string_value(node);
        self.spend(text.len() / STEP_TEXT_BYTES)?;
        self.spend_inside(node)?;
        Ok(match self.tree.sort(node) {
            NodeSort::Comment | NodeSort::Instruction => AtomicValue::Text(text),
            _ => AtomicValue::Untyped(text),
        })
    }

    /// The steps for the nodes inside of one.
    fn spend_inside(&mut self, node: NodeNumber) -> Result<(), EvaluationError> {
        self.spend(self.tree.end(node).saturating_sub(node) / 4)
    }

    /// The one value of an expression, or none: without a list of items where its form has one.
    fn evaluate_value(
        &mut self,
        expression: &'a XPathExpr,
        focus: &XPathFocus<'a>,
    ) -> Result<Option<AtomicValue<'a>>, EvaluationError> {
        self.go_deeper()?;
        let value = self.evaluate_value_kind(expression, focus);
        self.depth -= 1;
        value
    }

    fn evaluate_value_kind(
        &mut self,
        expression: &'a XPathExpr,
        focus: &XPathFocus<'a>,
    ) -> Result<Option<AtomicValue<'a>>, EvaluationError> {
        match expression {
            XPathExpr::Text(text) => Ok(Some(AtomicValue::Text(Cow::Borrowed(text)))),
            XPathExpr::Integer(number) => Ok(Some(AtomicValue::Integer(number.clone()))),
            XPathExpr::Decimal(number) => Ok(Some(AtomicValue::Decimal(number.clone()))),
            XPathExpr::ContextItem => self.item_value(&focus.item).map(Some),
            XPathExpr::Arithmetic(operator, left, right) => {
                match (self.evaluate_value(left, focus)?, self.evaluate_value(right, focus)?) {
                    (Some(left), Some(right)) => left.calculate(*operator, right).map(Some),
                    _ => Ok(None),
                }
            }
            XPathExpr::Cast(inside, target) => match self.evaluate_value(inside, focus)? {
                Some(value) => value.cast(target.atomic).map(Some),
                None if target.may_be_empty => Ok(None),
                None => Err(EvaluationError::Type),
            },
            XPathExpr::Call(function, arguments) if function.is_of_texts() => {
                self.call_on_texts(*function, arguments, focus)
            }
            XPathExpr::Call(CoreFunction::Name, arguments) if arguments.is_empty() => {
                let name = self.tree.written_name(focus.node()?);
                Ok(Some(AtomicValue::Text(Cow::Borrowed(name))))
            }
            path if path.has_nodes_alone() => match self.evaluate_nodes(path, focus)?.as_slice() {
                [] => Ok(None),
                [node] => self.node_value(*node).map(Some),
                _ => Err(EvaluationError::Type),
            },
            other => match &*self.hold(other, focus)? {
                [] => Ok(None),
                [item] => self.item_value(item).map(Some),
                _ => Err(EvaluationError::Type),
            },
        }
    }

    fn item_value(&mut self, item: &XPathItem<'a>) -> Result<AtomicValue<'a>, EvaluationError> {
        match item {
            XPathItem::Atomic(value) => Ok(value.clone()),
            XPathItem::Node(node) => self.node_value(*node),
        }
    }
}

fn one(value: AtomicValue<'_>) -> ItemSequence<'_> {
    vec![XPathItem::Atomic(value)]
}

/// The effective truth of a value.
fn truth_of(items: &[XPathItem<'_>]) -> Result<bool, EvaluationError> {
    match items {
        [] => Ok(false),
        [XPathItem::Node(_), ..] => Ok(true),
        [XPathItem::Atomic(value)] => value.truth(),
        _ => Err(EvaluationError::Truth),
    }
}
