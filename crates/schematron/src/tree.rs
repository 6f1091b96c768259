//! A document as XPath sees it: nodes in document order, attributes among them.

use std::borrow::Cow;

use docmill_formats::xml::{XmlNode as Node, XmlNodeType as NodeType};

use crate::names::{NameId, NameTable};
use smallvec::SmallVec;

/// Number of a node: its place in document order. The root is 0; attributes follow their element.
pub(crate) type NodeNumber = usize;

/// Nodes of a step, usually few.
pub(crate) type NodeList = SmallVec<[NodeNumber; 4]>;

/// Minimum children of a node for an index lookup by name instead of a scan.
const MIN_LARGE_CHILDREN: usize = 32;

/// The kinds of nodes in XPath's data model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodeSort {
    Root,
    Element,
    Attribute,
    Text,
    Comment,
    Instruction,
}

/// A node and where it stands.
#[derive(Debug)]
struct NodeRecord<'a> {
    sort: NodeSort,
    name: NameId,
    parent: Option<NodeNumber>,
    first_child: NodeNumber,
    /// The number behind its last descendant.
    end: NodeNumber,
    /// Children, of every sort.
    child_count: usize,
    /// Its elements among the tree's.
    elements: (usize, usize),
    /// Value of an attribute, text or comment.
    text: &'a str,
    local_name: &'a str,
    namespace: Option<&'a str>,
    /// Its name as it is written, with its prefix.
    written_name: &'a str,
}

/// A document whose names are numbers of a [`NameTable`].
#[derive(Debug)]
pub(crate) struct NodeTree<'a> {
    nodes: Vec<NodeRecord<'a>>,
    /// The elements of each name, in document order.
    by_name: Vec<Vec<NodeNumber>>,
    /// The elements of each node side by side, with their names.
    elements: Vec<(NameId, NodeNumber)>,
    /// The elements of each name behind the numbers of their parents, by these.
    by_parent: Vec<Vec<(NodeNumber, NodeNumber)>>,
    /// The attributes of each name, in document order.
    attributes_by_name: Vec<Vec<NodeNumber>>,
}

impl<'a> NodeTree<'a> {
    /// The tree of a parsed document, or of the document that an element is the root of. Its depth is
    /// bounded by the parser's caller.
    pub(crate) fn new(document: Node<'a, '_>, names: &NameTable) -> Self {
        let by_name = vec![Vec::new(); names.len()];
        let mut tree = Self {
            nodes: Vec::new(),
            elements: Vec::new(),
            by_parent: vec![Vec::new(); names.len()],
            attributes_by_name: by_name.clone(),
            by_name,
        };
        if document.is_root() {
            tree.add_node(document, None, names);
        } else {
            tree.add_root_of(document, names);
        }
        for (number, node) in tree.nodes.iter().enumerate() {
            let index = match node.sort {
                NodeSort::Element => &mut tree.by_name,
                NodeSort::Attribute => &mut tree.attributes_by_name,
                _ => continue,
            };
            if let Some(named) = index.get_mut(node.name.index()) {
                named.push(number);
            }
            let of_parents = tree.by_parent.get_mut(node.name.index());
            if let (Some(named), Some(parent), NodeSort::Element) =
                (of_parents, node.parent, node.sort)
            {
                named.push((parent, number));
            }
        }
        for named in &mut tree.by_parent {
            named.sort_unstable();
        }
        tree
    }

    /// A root with one element.
    fn add_root_of(&mut self, element: Node<'a, '_>, names: &NameTable) {
        self.nodes.push(NodeRecord {
            sort: NodeSort::Root,
            name: NameId::FOREIGN,
            parent: None,
            first_child: 1,
            end: 1,
            child_count: 1,
            elements: (0, 0),
            text: "",
            local_name: "",
            namespace: None,
            written_name: "",
        });
        self.add_node(element, Some(0), names);
        self.close_node(0, 1, 1);
    }

    fn add_node(&mut self, node: Node<'a, '_>, parent: Option<NodeNumber>, names: &NameTable) {
        let sort = match node.node_type() {
            NodeType::Root => NodeSort::Root,
            NodeType::Element => NodeSort::Element,
            NodeType::Text => NodeSort::Text,
            NodeType::Comment => NodeSort::Comment,
            NodeType::PI => NodeSort::Instruction,
        };
        let name = node.tag_name();
        let (namespace, local_name) = (name.namespace(), name.name());
        let number = self.nodes.len();
        let is_element = sort == NodeSort::Element;
        self.nodes.push(NodeRecord {
            sort,
            name: if is_element { names.find(namespace, local_name) } else { NameId::FOREIGN },
            parent,
            first_child: number,
            end: number,
            child_count: 0,
            elements: (0, 0),
            text: if is_element { "" } else { node.text().unwrap_or_default() },
            local_name,
            namespace,
            written_name: if is_element {
                written_name(node, node.range().start.saturating_add(1))
            } else {
                ""
            },
        });
        for attribute in node.attributes() {
            let (namespace, local_name) = (attribute.namespace(), attribute.name());
            let end = self.nodes.len().saturating_add(1);
            self.nodes.push(NodeRecord {
                sort: NodeSort::Attribute,
                name: names.find(namespace, local_name),
                parent: Some(number),
                first_child: end,
                end,
                child_count: 0,
                elements: (0, 0),
                text: attribute.value(),
                local_name,
                namespace,
                written_name: written_name(node, attribute.range().start),
            });
        }
        let first_child = self.nodes.len();
        let mut child_count = 0;
        for child in node.children() {
            self.add_node(child, Some(number), names);
            child_count += 1;
        }
        self.close_node(number, first_child, child_count);
    }

    /// Completes a node behind its last descendant.
    fn close_node(&mut self, number: NodeNumber, first_child: NodeNumber, child_count: usize) {
        let (end, first_element) = (self.nodes.len(), self.elements.len());
        let mut at = first_child;
        while let Some(child) = self.nodes.get(at) {
            if child.sort == NodeSort::Element {
                self.elements.push((child.name, at));
            }
            at = child.end.max(at.saturating_add(1));
        }
        let elements = (first_element, self.elements.len());
        if let Some(record) = self.nodes.get_mut(number) {
            (record.first_child, record.end, record.child_count) = (first_child, end, child_count);
            record.elements = elements;
        }
    }

    /// Nodes of the document.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn sort(&self, node: NodeNumber) -> NodeSort {
        self.nodes.get(node).map_or(NodeSort::Comment, |it| it.sort)
    }

    /// The number of its name.
    pub(crate) fn name(&self, node: NodeNumber) -> NameId {
        self.nodes.get(node).map_or(NameId::FOREIGN, |it| it.name)
    }

    pub(crate) fn local_name(&self, node: NodeNumber) -> &'a str {
        self.nodes.get(node).map_or("", |it| it.local_name)
    }

    /// The namespace of its name; empty for none.
    pub(crate) fn namespace(&self, node: NodeNumber) -> &'a str {
        self.nodes.get(node).and_then(|it| it.namespace).unwrap_or_default()
    }

    /// Its name as it is written, with its prefix.
    pub(crate) fn written_name(&self, node: NodeNumber) -> &'a str {
        self.nodes.get(node).map_or("", |it| it.written_name)
    }

    pub(crate) fn parent(&self, node: NodeNumber) -> Option<NodeNumber> {
        self.nodes.get(node).and_then(|it| it.parent)
    }

    /// The number behind its last descendant.
    pub(crate) fn end(&self, node: NodeNumber) -> NodeNumber {
        self.nodes.get(node).map_or(node, |it| it.end)
    }

    /// Its children, of every sort.
    pub(crate) fn child_count(&self, node: NodeNumber) -> usize {
        self.nodes.get(node).map_or(0, |it| it.child_count)
    }

    /// All nodes of a sort, in document order.
    pub(crate) fn nodes_of_sort(&self, sort: NodeSort) -> impl Iterator<Item = NodeNumber> + '_ {
        let nodes = self.nodes.iter().enumerate().filter(move |(_, node)| node.sort == sort);
        nodes.map(|(number, _)| number)
    }

    /// The elements or attributes of a name in the document.
    pub(crate) fn named(&self, name: NameId, is_attribute: bool) -> &[NodeNumber] {
        let index = if is_attribute { &self.attributes_by_name } else { &self.by_name };
        index.get(name.index()).map(Vec::as_slice).unwrap_or_default()
    }

    /// The elements of a name among the descendants of a node, in document order.
    pub(crate) fn named_inside(&self, node: NodeNumber, name: NameId) -> &[NodeNumber] {
        self.inside(self.named(name, false), node)
    }

    /// Adds the elements of a name among the children of a node, in document order. Returns how many
    /// elements were passed.
    pub(crate) fn add_named_children(
        &self,
        node: NodeNumber,
        name: NameId,
        nodes: &mut NodeList,
    ) -> usize {
        let (first, end) = self.nodes.get(node).map_or((0, 0), |it| it.elements);
        let elements = self.elements.get(first..end).unwrap_or_default();
        if elements.len() < MIN_LARGE_CHILDREN {
            for (own, child) in elements {
                if *own == name {
                    nodes.push(*child);
                }
            }
            return elements.len();
        }
        let named = self.by_parent.get(name.index()).map(Vec::as_slice).unwrap_or_default();
        let first = named.partition_point(|(parent, _)| *parent < node);
        let own = named.iter().skip(first).take_while(|(parent, _)| *parent == node);
        nodes.extend(own.map(|(_, child)| *child));
        0
    }

    /// The attributes of a name that a node and its descendants have, in document order.
    pub(crate) fn attributes_inside(&self, node: NodeNumber, name: NameId) -> &[NodeNumber] {
        self.inside(self.named(name, true), node)
    }

    /// Those of some nodes that are behind a node and before its end.
    fn inside<'n>(&self, named: &'n [NodeNumber], node: NodeNumber) -> &'n [NodeNumber] {
        let first = named.partition_point(|it| *it <= node);
        let end = named.partition_point(|it| *it < self.end(node));
        named.get(first..end).unwrap_or_default()
    }

    /// Its attributes, in document order.
    pub(crate) fn attributes(&self, node: NodeNumber) -> impl Iterator<Item = NodeNumber> + '_ {
        let first = node.saturating_add(1);
        let is_element = self.sort(node) == NodeSort::Element;
        let end = if is_element { self.end(node) } else { first };
        (first..end).take_while(|it| self.sort(*it) == NodeSort::Attribute)
    }

    /// Its children, in document order.
    pub(crate) fn children(&self, node: NodeNumber) -> impl Iterator<Item = NodeNumber> + '_ {
        let (first, end) = self.nodes.get(node).map_or((0, 0), |it| (it.first_child, it.end));
        std::iter::successors(Some(first), |at| Some(self.end(*at).max(at.saturating_add(1))))
            .take_while(move |at| *at < end)
    }

    /// The value as a string: its text, or that of all its descendants.
    pub(crate) fn string_value(&self, node: NodeNumber) -> Cow<'a, str> {
        let is_parent = matches!(self.sort(node), NodeSort::Element | NodeSort::Root);
        if !is_parent {
            return Cow::Borrowed(self.nodes.get(node).map_or("", |it| it.text));
        }
        let inside = self.nodes.get(node..self.end(node)).unwrap_or_default();
        let mut texts = inside.iter().filter(|it| it.sort == NodeSort::Text).map(|it| it.text);
        let first = texts.next().unwrap_or_default();
        match texts.next() {
            None => Cow::Borrowed(first),
            Some(second) => Cow::Owned([first, second].into_iter().chain(texts).collect()),
        }
    }

    /// Where a node stands: the names on the way to it, with a number where a name is not alone.
    pub(crate) fn location(&self, node: NodeNumber) -> String {
        let mut steps = Vec::new();
        let mut at = node;
        while let Some(parent) = self.parent(at) {
            let name = self.written_name(at);
            steps.push(match self.sort(at) {
                NodeSort::Attribute => format!("/@{name}"),
                _ => match self.number_among_siblings(at, parent) {
                    (1, 1) => format!("/{name}"),
                    (number, _) => format!("/{name}[{number}]"),
                },
            });
            at = parent;
        }
        steps.reverse();
        if steps.is_empty() { "/".to_owned() } else { steps.concat() }
    }

    /// The place of an element among the siblings of its name, and their number.
    fn number_among_siblings(&self, node: NodeNumber, parent: NodeNumber) -> (usize, usize) {
        let (mut number, mut count) = (0, 0);
        for at in self.children(parent) {
            let is_same = self.sort(at) == NodeSort::Element
                && self.local_name(at) == self.local_name(node)
                && self.namespace(at) == self.namespace(node);
            count += usize::from(is_same);
            if at == node {
                number = count;
            }
        }
        (number, count)
    }
}

/// The name that begins at a place of the text of a node's document.
fn written_name<'a>(node: Node<'a, '_>, start: usize) -> &'a str {
    let rest = node.document().input_text().get(start..).unwrap_or_default();
    let is_end = |byte: u8| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>' | b'=');
    let end = rest.bytes().position(is_end).unwrap_or(rest.len());
    rest.get(..end).unwrap_or_default()
}
