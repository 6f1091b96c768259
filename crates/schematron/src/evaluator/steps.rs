//! Paths: the nodes of axes, and the predicates that they are filtered by.

use super::{Evaluated, EvaluatedNodes, XPathEvaluator, XPathFocus, truth_of};
use crate::expression::{AxisStep, NodeTest, XPathAxis, XPathExpr, XPathPredicate};
use crate::names::NameId;
use crate::tree::{NodeList, NodeNumber, NodeSort, NodeTree};
use crate::value::{
    AtomicValue, EvaluationError, ItemSequence, XPathItem, in_document_order, node_items, nodes_of,
};

impl<'a> XPathEvaluator<'a> {
    pub(super) fn evaluate_path(
        &mut self,
        left: &'a XPathExpr,
        right: &'a XPathExpr,
        focus: &XPathFocus<'a>,
    ) -> Evaluated<'a> {
        if let XPathExpr::Step(step) = right {
            return Ok(node_items(self.path_nodes(left, step, focus)?));
        }
        let from = self.evaluate_nodes(left, focus)?;
        let size = from.len();
        let mut items = Vec::new();
        for (place, node) in from.into_iter().enumerate() {
            let item = XPathItem::Node(node);
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

    /// The nodes of an expression.
    ///
    /// # Errors
    /// It has other items, or no value.
    pub(super) fn evaluate_nodes(
        &mut self,
        expression: &'a XPathExpr,
        focus: &XPathFocus<'a>,
    ) -> EvaluatedNodes {
        self.go_deeper()?;
        let nodes = match expression {
            XPathExpr::Step(step) => focus.node().and_then(|node| self.step_nodes(node, step)),
            XPathExpr::Path(left, right) if let XPathExpr::Step(step) = right.as_ref() => {
                self.path_nodes(left, step, focus)
            }
            other => self.hold(other, focus).and_then(|items| nodes_of(&items)),
        };
        self.depth -= 1;
        nodes
    }

    /// The nodes that a step selects from those of a path, in document order.
    fn path_nodes(
        &mut self,
        left: &'a XPathExpr,
        step: &'a AxisStep,
        focus: &XPathFocus<'a>,
    ) -> EvaluatedNodes {
        // Most rules concern elements that are absent.
        if is_absent(self.tree, step) && is_plain(left) {
            return focus.node().map(|_| NodeList::new());
        }
        let mut nodes = NodeList::new();
        let several;
        if let Some((above, name)) = attributes_below(left, step) {
            let from = self.evaluate_nodes(above, focus)?;
            several = from.len() > 1;
            for node in from {
                nodes.extend_from_slice(self.tree.attributes_inside(node, name));
            }
            self.spend(nodes.len())?;
            for predicate in &step.predicates {
                nodes = self.filter_nodes(nodes, predicate)?;
            }
        } else {
            let from = self.evaluate_nodes(left, focus)?;
            several = from.len() > 1;
            for node in from {
                self.add_step_nodes(node, step, &mut nodes)?;
            }
        }
        if several && !nodes.is_sorted_by(|left, right| left < right) {
            nodes.sort_unstable();
            nodes.dedup();
        }
        Ok(nodes)
    }

    /// The nodes that a step selects from a node, in document order.
    ///
    /// # Errors
    /// A predicate has no value; the budget is spent.
    pub(crate) fn step_nodes(&mut self, node: NodeNumber, step: &'a AxisStep) -> EvaluatedNodes {
        let mut nodes = NodeList::new();
        self.add_step_nodes(node, step, &mut nodes)?;
        Ok(nodes)
    }

    fn add_step_nodes(
        &mut self,
        node: NodeNumber,
        step: &'a AxisStep,
        nodes: &mut NodeList,
    ) -> Result<(), EvaluationError> {
        if is_absent(self.tree, step) {
            return Ok(());
        }
        if step.predicates.is_empty() && self.add_indexed_nodes(node, step, nodes)? {
            return Ok(());
        }
        let mut own = NodeList::new();
        if !self.add_indexed_nodes(node, step, &mut own)? {
            own = self.axis_nodes(node, step)?;
        }
        for predicate in &step.predicates {
            own = self.filter_nodes(own, predicate)?;
        }
        if step.axis.is_reverse() {
            own.reverse();
        }
        nodes.append(&mut own);
        Ok(())
    }

    /// The nodes of an axis that a test accepts, in the order in which positions are counted.
    fn axis_nodes(&mut self, node: NodeNumber, step: &AxisStep) -> EvaluatedNodes {
        let tree = self.tree;
        let (own_end, parent) = (tree.end(node), tree.parent(node));
        let inside = node.saturating_add(1)..own_end;
        let mut nodes: NodeList = match step.axis {
            // Added above.
            XPathAxis::Attribute | XPathAxis::Child | XPathAxis::ItSelf | XPathAxis::Parent => {
                NodeList::new()
            }
            XPathAxis::Descendant => inside.collect(),
            XPathAxis::DescendantOrSelf => (node..own_end.max(inside.start)).collect(),
            XPathAxis::Ancestor => ancestors(tree, parent),
            XPathAxis::AncestorOrSelf => ancestors(tree, Some(node)),
            XPathAxis::FollowingSibling | XPathAxis::PrecedingSibling => match parent {
                Some(parent) if tree.sort(node) != NodeSort::Attribute => {
                    let is_following = step.axis == XPathAxis::FollowingSibling;
                    let others = tree.children(parent).filter(|it| *it != node);
                    let (before, behind): (NodeList, NodeList) = others.partition(|it| *it < node);
                    if is_following { behind } else { before.into_iter().rev().collect() }
                }
                _ => NodeList::new(),
            },
            XPathAxis::Following => (own_end..tree.len()).collect(),
            XPathAxis::Preceding => {
                let above = ancestors(tree, parent);
                (0..node).rev().filter(|it| !above.contains(it)).collect()
            }
        };
        self.spend(nodes.len())?;
        let keeps_own = step.axis == XPathAxis::DescendantOrSelf;
        nodes.retain(|it| {
            let is_attribute = tree.sort(*it) == NodeSort::Attribute;
            let is_on_axis = !is_attribute
                || (keeps_own && *it == node)
                || step.axis == XPathAxis::AncestorOrSelf;
            is_on_axis && is_accepted(tree, *it, &step.test, false)
        });
        Ok(nodes)
    }

    /// Adds the nodes of an axis that needs no walk over the tree; `false`: another axis.
    fn add_indexed_nodes(
        &mut self,
        node: NodeNumber,
        step: &AxisStep,
        nodes: &mut NodeList,
    ) -> Result<bool, EvaluationError> {
        let tree = self.tree;
        let before = nodes.len();
        let mut passed = 1;
        match (step.axis, &step.test) {
            (XPathAxis::Descendant, NodeTest::Name(name)) => {
                nodes.extend_from_slice(tree.named_inside(node, *name));
            }
            (XPathAxis::Child, NodeTest::Name(name)) => {
                passed += tree.add_named_children(node, *name, nodes);
            }
            (XPathAxis::Child, test) => {
                passed += tree.child_count(node);
                nodes.extend(tree.children(node).filter(|it| is_accepted(tree, *it, test, false)));
            }
            (XPathAxis::Attribute, test) => {
                nodes.extend(tree.attributes(node).filter(|it| is_accepted(tree, *it, test, true)));
            }
            (XPathAxis::Parent, test) => {
                let parent = tree.parent(node);
                nodes.extend(parent.filter(|it| is_accepted(tree, *it, test, false)));
            }
            (XPathAxis::ItSelf, test) => {
                nodes.extend(Some(node).filter(|it| is_accepted(tree, *it, test, false)));
            }
            _ => return Ok(false),
        }
        self.spend(passed.max(nodes.len().saturating_sub(before)))?;
        Ok(true)
    }

    /// Whether a node passes the test of a step.
    pub(crate) fn passes_test(&self, node: NodeNumber, step: &AxisStep) -> bool {
        is_accepted(self.tree, node, &step.test, step.axis == XPathAxis::Attribute)
    }

    fn filter_nodes(&mut self, nodes: NodeList, predicate: &'a XPathPredicate) -> EvaluatedNodes {
        let size = nodes.len();
        let mut kept = NodeList::new();
        for (place, node) in nodes.into_iter().enumerate() {
            let item = XPathItem::Node(node);
            let focus = XPathFocus { item, position: place.saturating_add(1), size };
            if self.is_kept(predicate, &focus)? {
                kept.push(node);
            }
        }
        Ok(kept)
    }

    pub(super) fn filter(
        &mut self,
        items: ItemSequence<'a>,
        predicate: &'a XPathPredicate,
    ) -> Evaluated<'a> {
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

    /// Whether an item passes a predicate: a number is compared with its position.
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
}

/// A node and those it is inside of, nearest first.
fn ancestors(tree: &NodeTree<'_>, from: Option<NodeNumber>) -> NodeList {
    std::iter::successors(from, |node| tree.parent(*node)).collect()
}

/// Whether no element or attribute of the document has the name of a step.
fn is_absent(tree: &NodeTree<'_>, step: &AxisStep) -> bool {
    match &step.test {
        NodeTest::Name(name) => tree.named(*name, step.axis == XPathAxis::Attribute).is_empty(),
        _ => false,
    }
}

/// Whether a path has a value wherever there is a node: steps without predicates.
fn is_plain(path: &XPathExpr) -> bool {
    match path {
        XPathExpr::Root => true,
        XPathExpr::Step(step) => step.predicates.is_empty(),
        XPathExpr::Path(left, right) => is_plain(left) && is_plain(right),
        _ => false,
    }
}

/// Splits `above//@name` into the path and the attribute's name.
fn attributes_below<'e>(left: &'e XPathExpr, step: &AxisStep) -> Option<(&'e XPathExpr, NameId)> {
    let (XPathExpr::Path(above, every), NodeTest::Name(name)) = (left, &step.test) else {
        return None;
    };
    let XPathExpr::Step(every) = every.as_ref() else { return None };
    let is_every = every.axis == XPathAxis::DescendantOrSelf
        && every.test == NodeTest::AnyNode
        && every.predicates.is_empty();
    let is_plain = step.predicates.iter().all(|it| !it.is_positional);
    (is_every && is_plain && step.axis == XPathAxis::Attribute).then_some((above, *name))
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
