//! The context of a rule: a path that is matched from its last step up to the root.

use crate::evaluator::XPathEvaluator;
use crate::expression::{AxisStep, NodeTest, XPathAxis, XPathExpr, XPathPredicate};
use crate::names::NameId;
use crate::token::SyntaxError;
use crate::tree::{NodeNumber, NodeSort, NodeTree};
use crate::value::EvaluationError;

/// One alternative of a context.
#[derive(Debug, Clone, Default)]
pub(crate) struct ContextPattern {
    /// Whether the first step starts at the root.
    is_anchored: bool,
    /// First to last; none for the root itself.
    steps: Vec<PatternStep>,
    /// A `//` that the next step follows.
    ends_in_descent: bool,
}

/// A step of a context.
#[derive(Debug, Clone)]
struct PatternStep {
    step: AxisStep,
    /// Whether any number of elements may lie between it and the one before.
    is_descent: bool,
}

/// The nodes that a context may match, by which it is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatternSubject {
    Element(NameId),
    Attribute(NameId),
    AnyElement,
    AnyAttribute,
    Root,
}

/// The alternatives of a context.
///
/// # Errors
/// It is no pattern of the kinds that the rules use.
pub(crate) fn context_patterns(context: &XPathExpr) -> Result<Vec<ContextPattern>, SyntaxError> {
    match context {
        XPathExpr::Union(left, right) => {
            let mut patterns = context_patterns(left)?;
            patterns.append(&mut context_patterns(right)?);
            Ok(patterns)
        }
        XPathExpr::Root => Ok(vec![ContextPattern { is_anchored: true, ..Default::default() }]),
        XPathExpr::Step(_) => continue_patterns(&[ContextPattern::default()], context),
        XPathExpr::Path(left, right) => continue_patterns(&context_patterns(left)?, right),
        XPathExpr::Filter(inside, predicates) => {
            with_predicates(context_patterns(inside)?, predicates)
        }
        _ => Err(SyntaxError("a context of a kind that is not read".to_owned())),
    }
}

/// Each pattern followed by each alternative of what is to its right.
fn continue_patterns(
    patterns: &[ContextPattern],
    right: &XPathExpr,
) -> Result<Vec<ContextPattern>, SyntaxError> {
    match right {
        XPathExpr::Union(one, other) => {
            let mut continued = continue_patterns(patterns, one)?;
            continued.append(&mut continue_patterns(patterns, other)?);
            Ok(continued)
        }
        XPathExpr::Path(first, rest) => {
            continue_patterns(&continue_patterns(patterns, first)?, rest)
        }
        XPathExpr::Filter(inside, predicates) => {
            with_predicates(continue_patterns(patterns, inside)?, predicates)
        }
        XPathExpr::Step(step) => {
            patterns.iter().map(|pattern| pattern.clone().followed_by(step)).collect()
        }
        _ => Err(SyntaxError("a context of a kind that is not read".to_owned())),
    }
}

fn with_predicates(
    mut patterns: Vec<ContextPattern>,
    predicates: &[XPathPredicate],
) -> Result<Vec<ContextPattern>, SyntaxError> {
    // Positions would count over all alternatives; a variable is a condition in all rules so far.
    let are_conditions = predicates
        .iter()
        .all(|it| !it.is_positional || matches!(it.condition, XPathExpr::Variable(_)));
    for pattern in &mut patterns {
        let last = pattern.steps.last_mut().filter(|_| are_conditions);
        let last = last.ok_or_else(|| SyntaxError("a position in a context".to_owned()))?;
        last.step.predicates.extend_from_slice(predicates);
    }
    Ok(patterns)
}

impl ContextPattern {
    fn followed_by(mut self, step: &AxisStep) -> Result<Self, SyntaxError> {
        let mut is_descent = self.ends_in_descent;
        self.ends_in_descent = false;
        if is_descent && self.is_anchored && self.steps.is_empty() {
            // Every node is somewhere below the root.
            (self.is_anchored, is_descent) = (false, false);
        }
        match step.axis {
            XPathAxis::Child | XPathAxis::Attribute => {
                self.steps.push(PatternStep { step: step.clone(), is_descent });
            }
            XPathAxis::Descendant => {
                let step = AxisStep { axis: XPathAxis::Child, ..step.clone() };
                self.steps.push(PatternStep { step, is_descent: true });
            }
            XPathAxis::DescendantOrSelf
                if step.test == NodeTest::AnyNode && step.predicates.is_empty() =>
            {
                self.ends_in_descent = true;
            }
            _ => return Err(SyntaxError("an axis that no context has".to_owned())),
        }
        Ok(self)
    }

    /// The nodes that it may match.
    pub(crate) fn subject(&self) -> PatternSubject {
        let Some(PatternStep { step, .. }) = self.steps.last() else {
            return PatternSubject::Root;
        };
        match (step.axis == XPathAxis::Attribute, &step.test) {
            (false, NodeTest::Name(name)) => PatternSubject::Element(*name),
            (true, NodeTest::Name(name)) => PatternSubject::Attribute(*name),
            (false, _) => PatternSubject::AnyElement,
            (true, _) => PatternSubject::AnyAttribute,
        }
    }

    /// The name of the parents of the nodes that it may match, if there is one.
    pub(crate) fn parent_name(&self) -> Option<NameId> {
        let [.., parent, last] = self.steps.as_slice() else { return None };
        match parent.step.test {
            NodeTest::Name(name) if !last.is_descent => Some(name),
            _ => None,
        }
    }

    /// Whether it matches a node. A predicate without a value matches nothing.
    ///
    /// # Errors
    /// The budget is spent.
    pub(crate) fn is_match<'a>(
        &'a self,
        node: NodeNumber,
        tree: &NodeTree<'a>,
        evaluator: &mut XPathEvaluator<'a>,
    ) -> Result<bool, EvaluationError> {
        evaluator.spend(1)?;
        if self.steps.is_empty() {
            return Ok(tree.sort(node) == NodeSort::Root);
        }
        match self.is_match_up_to(&self.steps, node, tree, evaluator) {
            Err(EvaluationError::Budget) => Err(EvaluationError::Budget),
            matched => Ok(matched.unwrap_or(false)),
        }
    }

    fn is_match_up_to<'a>(
        &'a self,
        steps: &'a [PatternStep],
        node: NodeNumber,
        tree: &NodeTree<'a>,
        evaluator: &mut XPathEvaluator<'a>,
    ) -> Result<bool, EvaluationError> {
        let Some((last, before)) = steps.split_last() else {
            return Ok(!self.is_anchored || tree.sort(node) == NodeSort::Root);
        };
        if !evaluator.passes_test(node, &last.step) {
            return Ok(false);
        }
        let Some(parent) = tree.parent(node) else { return Ok(false) };
        let mut above = Some(parent);
        let mut is_below = false;
        while let Some(at) = above.filter(|_| !is_below) {
            evaluator.spend(1)?;
            is_below = self.is_match_up_to(before, at, tree, evaluator)?;
            above = tree.parent(at).filter(|_| last.is_descent);
        }
        Ok(is_below && evaluator.passes_predicates(node, &last.step)?)
    }
}
