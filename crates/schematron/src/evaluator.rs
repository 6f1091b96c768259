//! The value of an expression on a document, within a budget of steps.

use std::borrow::Cow;
use std::rc::Rc;

use crate::expression::{
    AtomicType, AxisStep, CoreFunction, ItemType, NodeTest, SequenceType, UserFunction,
    VariableSlot, XPathAxis, XPathExpr, XPathPredicate,
};
use crate::functions::{ArgumentValues, call_function};
use crate::pattern_cache::PatternCache;
use crate::tree::{NodeNumber, NodeSort, NodeTree};
use crate::value::{AtomicValue, EvaluationError, ItemSequence, XPathItem};

/// Deepest nesting of expressions that are evaluated, calls of functions included.
const MAX_EVALUATION_DEPTH: usize = 400;
/// Bytes of text that are worth a step.
const STEP_TEXT_BYTES: usize = 128;
/// Most items of a range.
const MAX_RANGE_ITEMS: usize = 100_000;

/// Variables and functions of a set of rules.
#[derive(Debug, Default)]
pub(crate) struct RuleProgram {
    pub globals: Vec<XPathExpr>,
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
    rule: RuleScope<'a>,
    locals: Vec<Rc<ItemSequence<'a>>>,
    /// First local of the function that is called.
    frame: usize,
}

type Evaluated<'a> = Result<ItemSequence<'a>, EvaluationError>;

impl<'a> XPathEvaluator<'a> {
    pub(crate) fn new(program: &'a RuleProgram, tree: &'a NodeTree<'a>, steps_left: u64) -> Self {
        Self {
            program,
            tree,
            steps_left,
            depth: 0,
            globals: vec![VariableState::Unread; program.globals.len()],
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
                let left = self.evaluate_values(left, focus)?;
                let right = self.evaluate_values(right, focus)?;
                for one in &left {
                    self.spend(right.len())?;
                    for other in &right {
                        if one.is_related(*comparison, other)? {
                            return Ok(true);
                        }
                    }
                }
                Ok(false)
            }
            other => truth_of(&self.evaluate(other, focus)?),
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
        self.spend(1)?;
        if self.depth >= MAX_EVALUATION_DEPTH {
            return Err(EvaluationError::Recursion);
        }
        self.depth += 1;
        let value = self.evaluate_kind(expression, focus);
        self.depth -= 1;
        value
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
            XPathExpr::Or(..) | XPathExpr::And(..) | XPathExpr::GeneralComparison(..) => {
                vec![self.is_true(expression, focus)?.into()]
            }
            XPathExpr::If(condition, then, otherwise) => {
                let holds = self.is_true(condition, focus)?;
                self.evaluate(if holds { then } else { otherwise }, focus)?
            }
            XPathExpr::Step(step) => {
                let nodes = self.step_nodes(focus.node()?, step)?;
                nodes.into_iter().map(XPathItem::Node).collect()
            }
            XPathExpr::Path(left, right) => self.evaluate_path(left, right, focus)?,
            XPathExpr::Filter(inside, predicates) => {
                let mut items = self.evaluate(inside, focus)?;
                for predicate in predicates {
                    items = self.filter(items, predicate)?;
                }
                items
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

    fn evaluate_rare(
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
            XPathExpr::Arithmetic(operator, left, right) => {
                match (self.evaluate_value(left, focus)?, self.evaluate_value(right, focus)?) {
                    (Some(left), Some(right)) => one(left.calculate(*operator, right)?),
                    _ => Vec::new(),
                }
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
            XPathExpr::Cast(inside, target) => {
                let value = self.evaluate_value(inside, focus)?;
                match (value, target.may_be_empty) {
                    (Some(value), _) => one(value.cast(target.atomic)?),
                    (None, true) => Vec::new(),
                    (None, false) => return Err(EvaluationError::Type),
                }
            }
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
                let state = match slot {
                    VariableSlot::Rule(at) => self.rule.states.get_mut(at),
                    VariableSlot::Global(at) => self.globals.get_mut(at),
                    VariableSlot::Local(_) => None,
                };
                if let Some(state) = state {
                    *state = VariableState::Known(value.clone());
                }
                value
            }
        }
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
                XPathItem::Node(node) => {
                    let text = self.tree.string_value(node);
                    self.spend(text.len() / STEP_TEXT_BYTES)?;
                    self.spend_inside(node)?;
                    match self.tree.sort(node) {
                        NodeSort::Comment | NodeSort::Instruction => AtomicValue::Text(text),
                        _ => AtomicValue::Untyped(text),
                    }
                }
            });
        }
        Ok(values)
    }

    /// The steps for the nodes inside of one.
    fn spend_inside(&mut self, node: NodeNumber) -> Result<(), EvaluationError> {
        self.spend(self.tree.end(node).saturating_sub(node) / 4)
    }

    /// The one value of an expression, or none.
    fn evaluate_value(
        &mut self,
        expression: &'a XPathExpr,
        focus: &XPathFocus<'a>,
    ) -> Result<Option<AtomicValue<'a>>, EvaluationError> {
        let mut values = self.evaluate_values(expression, focus)?;
        if values.len() > 1 {
            return Err(EvaluationError::Type);
        }
        Ok(values.pop())
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

    fn evaluate_path(
        &mut self,
        left: &'a XPathExpr,
        right: &'a XPathExpr,
        focus: &XPathFocus<'a>,
    ) -> Evaluated<'a> {
        let from = self.evaluate(left, focus)?;
        if let XPathExpr::Step(step) = right {
            let mut nodes = Vec::new();
            for item in &from {
                let XPathItem::Node(node) = item else { return Err(EvaluationError::Type) };
                nodes.append(&mut self.step_nodes(*node, step)?);
            }
            if from.len() > 1 && !nodes.is_sorted_by(|left, right| left < right) {
                nodes.sort_unstable();
                nodes.dedup();
            }
            return Ok(nodes.into_iter().map(XPathItem::Node).collect());
        }
        let size = from.len();
        let mut items = Vec::new();
        for (place, item) in from.into_iter().enumerate() {
            let XPathItem::Node(_) = item else { return Err(EvaluationError::Type) };
            let focus = XPathFocus { item, position: place.saturating_add(1), size };
            items.append(&mut self.evaluate(right, &focus)?);
        }
        let nodes = items.iter().filter(|item| matches!(item, XPathItem::Node(_))).count();
        match nodes {
            0 => Ok(items),
            _ if nodes == items.len() => in_document_order(items),
            _ => Err(EvaluationError::Type),
        }
    }

    /// The nodes that a step selects from a node, in document order.
    ///
    /// # Errors
    /// A predicate has no value; the budget is spent.
    pub(crate) fn step_nodes(
        &mut self,
        node: NodeNumber,
        step: &'a AxisStep,
    ) -> Result<Vec<NodeNumber>, EvaluationError> {
        let mut nodes = self.axis_nodes(node, step)?;
        for predicate in &step.predicates {
            nodes = self.filter_nodes(nodes, predicate)?;
        }
        if step.axis.is_reverse() {
            nodes.reverse();
        }
        Ok(nodes)
    }

    /// The nodes of an axis that a test accepts, in the order in which positions are counted.
    fn axis_nodes(
        &mut self,
        node: NodeNumber,
        step: &AxisStep,
    ) -> Result<Vec<NodeNumber>, EvaluationError> {
        if let Some(nodes) = self.indexed_nodes(node, step)? {
            return Ok(nodes);
        }
        let tree = self.tree;
        let (own_end, parent) = (tree.end(node), tree.parent(node));
        let inside = node.saturating_add(1)..own_end;
        let mut nodes: Vec<NodeNumber> = match step.axis {
            // Found above.
            XPathAxis::Attribute => Vec::new(),
            XPathAxis::Child => tree.children(node).collect(),
            XPathAxis::Descendant => inside.collect(),
            XPathAxis::DescendantOrSelf => (node..own_end.max(inside.start)).collect(),
            XPathAxis::ItSelf => vec![node],
            XPathAxis::Parent => parent.into_iter().collect(),
            XPathAxis::Ancestor => ancestors(tree, parent),
            XPathAxis::AncestorOrSelf => ancestors(tree, Some(node)),
            XPathAxis::FollowingSibling | XPathAxis::PrecedingSibling => match parent {
                Some(parent) if tree.sort(node) != NodeSort::Attribute => {
                    let is_following = step.axis == XPathAxis::FollowingSibling;
                    let others = tree.children(parent).filter(|it| *it != node);
                    let (before, behind): (Vec<_>, Vec<_>) = others.partition(|it| *it < node);
                    if is_following { behind } else { before.into_iter().rev().collect() }
                }
                _ => Vec::new(),
            },
            XPathAxis::Following => (own_end..tree.len()).collect(),
            XPathAxis::Preceding => {
                let above = ancestors(tree, parent);
                (0..node).rev().filter(|it| !above.contains(it)).collect()
            }
        };
        self.spend(nodes.len())?;
        let keeps_own = matches!(step.axis, XPathAxis::ItSelf | XPathAxis::DescendantOrSelf);
        nodes.retain(|it| {
            let is_attribute = tree.sort(*it) == NodeSort::Attribute;
            let is_on_axis = !is_attribute
                || (keeps_own && *it == node)
                || step.axis == XPathAxis::AncestorOrSelf;
            is_on_axis && is_accepted(tree, *it, &step.test, false)
        });
        Ok(nodes)
    }

    /// The same of axes that need no walk over the tree; `None`: another axis.
    fn indexed_nodes(
        &mut self,
        node: NodeNumber,
        step: &AxisStep,
    ) -> Result<Option<Vec<NodeNumber>>, EvaluationError> {
        let tree = self.tree;
        match (step.axis, &step.test) {
            (XPathAxis::Descendant, NodeTest::Name(name)) => {
                let nodes = tree.named_inside(node, *name).to_vec();
                self.spend(nodes.len())?;
                Ok(Some(nodes))
            }
            (XPathAxis::Child, NodeTest::Name(name)) if is_large(tree, node) => {
                let inside = tree.named_inside(node, *name);
                self.spend(inside.len().saturating_add(1))?;
                let own = inside.iter().copied().filter(|it| tree.parent(*it) == Some(node));
                Ok(Some(own.collect()))
            }
            (XPathAxis::Attribute, test) => {
                let own = tree.attributes(node).filter(|it| is_accepted(tree, *it, test, true));
                let nodes: Vec<NodeNumber> = own.collect();
                self.spend(nodes.len().saturating_add(1))?;
                Ok(Some(nodes))
            }
            (XPathAxis::Child, test) => {
                let (mut nodes, mut passed) = (Vec::new(), 0_usize);
                for child in tree.children(node) {
                    passed += 1;
                    if is_accepted(tree, child, test, false) {
                        nodes.push(child);
                    }
                }
                self.spend(passed)?;
                Ok(Some(nodes))
            }
            _ => Ok(None),
        }
    }

    /// Whether a node passes the test of a step.
    pub(crate) fn passes_test(&self, node: NodeNumber, step: &AxisStep) -> bool {
        is_accepted(self.tree, node, &step.test, step.axis == XPathAxis::Attribute)
    }

    fn filter_nodes(
        &mut self,
        nodes: Vec<NodeNumber>,
        predicate: &'a XPathPredicate,
    ) -> Result<Vec<NodeNumber>, EvaluationError> {
        let size = nodes.len();
        let mut kept = Vec::new();
        for (place, node) in nodes.into_iter().enumerate() {
            let item = XPathItem::Node(node);
            let focus = XPathFocus { item, position: place.saturating_add(1), size };
            if self.is_kept(predicate, &focus)? {
                kept.push(node);
            }
        }
        Ok(kept)
    }

    fn filter(&mut self, items: ItemSequence<'a>, predicate: &'a XPathPredicate) -> Evaluated<'a> {
        let size = items.len();
        let mut kept = Vec::new();
        for (place, item) in items.into_iter().enumerate() {
            let focus = XPathFocus { item, position: place.saturating_add(1), size };
            if self.is_kept(predicate, &focus)? {
                kept.push(focus.item);
            }
        }
        Ok(kept)
    }

    /// Whether an item stays: a number is compared with its position.
    fn is_kept(
        &mut self,
        predicate: &'a XPathPredicate,
        focus: &XPathFocus<'a>,
    ) -> Result<bool, EvaluationError> {
        if !predicate.is_positional {
            return self.is_true(&predicate.condition, focus);
        }
        let value = self.evaluate(&predicate.condition, focus)?;
        match value.as_slice() {
            [XPathItem::Atomic(AtomicValue::Integer(number) | AtomicValue::Decimal(number))] => {
                Ok(number.to_index() == Some(focus.position))
            }
            [XPathItem::Atomic(AtomicValue::Double(number))] => {
                Ok(*number == AtomicValue::Integer(focus.position.into()).to_double()?)
            }
            other => truth_of(other),
        }
    }

    /// Whether a node passes the predicates of a step; where they ask for positions: whether it is
    /// among the nodes that the step selects from its parent.
    ///
    /// # Errors
    /// A predicate has no value; the budget is spent.
    pub(crate) fn passes_predicates(
        &mut self,
        node: NodeNumber,
        step: &'a AxisStep,
    ) -> Result<bool, EvaluationError> {
        if step.predicates.iter().any(|it| it.is_positional) {
            let parent = self.tree.parent(node).ok_or(EvaluationError::Type)?;
            return Ok(self.step_nodes(parent, step)?.contains(&node));
        }
        let focus = XPathFocus::on_node(node);
        for predicate in &step.predicates {
            if !self.is_true(&predicate.condition, &focus)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn call_user(
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

    /// Items as a declared type has them.
    fn convert(&mut self, items: ItemSequence<'a>, target: SequenceType) -> Evaluated<'a> {
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

    fn call(
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
            F::Not | F::Boolean => {
                let argument = arguments.first().ok_or(EvaluationError::Type)?;
                let holds = self.is_true(argument, focus)?;
                return Ok(vec![(holds == (function == F::Boolean)).into()]);
            }
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
            F::Count => Ok(vec![first.len().into()]),
            F::Exists => Ok(vec![(!first.is_empty()).into()]),
            F::Empty => Ok(vec![first.is_empty().into()]),
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
                        F::Name => self.tree.qualified_name(*node),
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

fn one(value: AtomicValue<'_>) -> ItemSequence<'_> {
    vec![XPathItem::Atomic(value)]
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

/// The effective truth of a value.
fn truth_of(items: &[XPathItem<'_>]) -> Result<bool, EvaluationError> {
    match items {
        [] => Ok(false),
        [XPathItem::Node(_), ..] => Ok(true),
        [XPathItem::Atomic(value)] => value.truth(),
        _ => Err(EvaluationError::Truth),
    }
}

fn nodes_of(items: &[XPathItem<'_>]) -> Result<Vec<NodeNumber>, EvaluationError> {
    let nodes = items.iter().map(|item| match item {
        XPathItem::Node(node) => Ok(*node),
        XPathItem::Atomic(_) => Err(EvaluationError::Type),
    });
    nodes.collect()
}

/// Nodes, each once.
fn in_document_order(items: ItemSequence<'_>) -> Evaluated<'_> {
    let mut nodes = nodes_of(&items)?;
    nodes.sort_unstable();
    nodes.dedup();
    Ok(nodes.into_iter().map(XPathItem::Node).collect())
}

/// A node and those it is inside of, nearest first.
fn ancestors(tree: &NodeTree<'_>, from: Option<NodeNumber>) -> Vec<NodeNumber> {
    std::iter::successors(from, |node| tree.parent(*node)).collect()
}

/// Nodes inside of a node whose children of a name are looked up rather than passed one by one: the
/// whole document is stepped into for each of its lines.
const MIN_LARGE_NODES: usize = 64;

fn is_large(tree: &NodeTree<'_>, node: NodeNumber) -> bool {
    tree.end(node).saturating_sub(node) >= MIN_LARGE_NODES
}

fn is_accepted(
    tree: &NodeTree<'_>,
    node: NodeNumber,
    test: &NodeTest,
    is_attribute_axis: bool,
) -> bool {
    let sort = tree.sort(node);
    let has_name = match is_attribute_axis {
        true => sort == NodeSort::Attribute,
        false => sort == NodeSort::Element,
    };
    match test {
        NodeTest::Name(name) => has_name && tree.name(node) == *name,
        NodeTest::AnyName => has_name,
        NodeTest::AnyInNamespace(namespace) => has_name && tree.namespace(node) == namespace,
        NodeTest::AnyNamespace(local) => has_name && tree.local_name(node) == local,
        NodeTest::AnyNode => true,
        NodeTest::Sort(expected) => sort == *expected,
    }
}
