//! A Schematron schema from its source: namespaces, variables, functions, patterns and rules, every
//! expression compiled. Phases and diagnostics are passed over: all patterns are active.

use std::collections::BTreeMap;

use docmill_formats::xml::{XmlNode, XmlText};

use crate::context_pattern::{ContextPattern, PatternSubject, context_patterns};
use crate::evaluator::RuleProgram;
use crate::expression::XPathExpr;
use crate::function_reader::read_functions;
use crate::names::{NameId, NameTable};
use crate::parser::{StaticContext, parse_context, parse_xpath};
use crate::pattern_cache::PatternCache;
use crate::token::SyntaxError;
use crate::tree::{NodeNumber, NodeSort, NodeTree};

const SCHEMATRON: &str = "http://purl.oclc.org/dsdl/schematron";
/// Deepest chain of rules that extend each other.
const MAX_EXTENSIONS: usize = 16;

/// A schema that is ready to be applied.
#[derive(Debug)]
pub(crate) struct CompiledSchema {
    pub program: RuleProgram,
    pub patterns: Vec<RulePattern>,
    /// Whether the rules are meant for a document.
    pub applies: XPathExpr,
}

/// Rules of which the first whose context matches is applied to a node, and no other.
#[derive(Debug, Default)]
pub(crate) struct RulePattern {
    pub rules: Vec<CompiledRule>,
    /// By the name of the elements: rule and alternative of its context, in order.
    named: BTreeMap<NameId, Vec<RuleContext>>,
    /// Those that match elements of other names.
    unnamed: Vec<RuleContext>,
    attributes: Vec<RuleContext>,
    roots: Vec<RuleContext>,
}

/// An alternative of the context of a rule.
#[derive(Debug, Clone)]
pub(crate) struct RuleContext {
    /// Place of the rule in its pattern.
    pub rule: usize,
    pub pattern: ContextPattern,
    /// The name of the parent, where that is fixed: most contexts are refused by it.
    pub parent: Option<NameId>,
}

/// A rule: what is to be checked of the nodes of its context.
#[derive(Debug, Default)]
pub(crate) struct CompiledRule {
    pub variables: Vec<XPathExpr>,
    pub checks: Vec<CompiledCheck>,
}

/// An assertion, or a report.
#[derive(Debug)]
pub(crate) struct CompiledCheck {
    pub id: String,
    /// `flag` or `role` of the check, its rule or pattern.
    pub severity: String,
    pub test: XPathExpr,
    /// Whether the test is to be true.
    pub is_assertion: bool,
    pub message: Vec<RuleTextPart>,
}

/// A part of the text of a check.
#[derive(Debug)]
pub(crate) enum RuleTextPart {
    Text(String),
    /// The value of an expression.
    Value(XPathExpr),
    /// The name of the node.
    Name,
}

impl RulePattern {
    fn add_context(&mut self, context: RuleContext) {
        match context.pattern.subject() {
            PatternSubject::Element(name) => self.named.entry(name).or_default().push(context),
            PatternSubject::AnyElement => self.unnamed.push(context),
            PatternSubject::Attribute(_) | PatternSubject::AnyAttribute => {
                self.attributes.push(context);
            }
            PatternSubject::Root => self.roots.push(context),
        }
    }

    /// Contexts of any name beside those of each name, in the order of the rules.
    fn merge_unnamed(&mut self) {
        for contexts in self.named.values_mut() {
            contexts.extend(self.unnamed.iter().cloned());
            contexts.sort_by_key(|context| context.rule);
        }
    }

    /// The nodes that a context may match, in document order.
    pub(crate) fn candidates(&self, tree: &NodeTree<'_>) -> Vec<NodeNumber> {
        let mut nodes: Vec<NodeNumber> = Vec::new();
        if !self.roots.is_empty() {
            nodes.push(0);
        }
        if self.unnamed.is_empty() {
            for name in self.named.keys() {
                nodes.extend_from_slice(tree.named_inside(0, *name));
            }
        } else {
            nodes.extend(tree.nodes_of_sort(NodeSort::Element));
        }
        if !self.attributes.is_empty() {
            nodes.extend(tree.nodes_of_sort(NodeSort::Attribute));
        }
        nodes.sort_unstable();
        nodes
    }

    /// The contexts that may match an element of a name.
    pub(crate) fn element_contexts(&self, name: NameId) -> &[RuleContext] {
        self.named.get(&name).unwrap_or(&self.unnamed)
    }

    pub(crate) fn attribute_contexts(&self) -> &[RuleContext] {
        &self.attributes
    }

    pub(crate) fn root_contexts(&self) -> &[RuleContext] {
        &self.roots
    }
}

/// The sources of a schema.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SchemaSource<'s> {
    pub schematron: &'s str,
    /// Included files by the address that names them.
    pub includes: &'s BTreeMap<String, String>,
    /// An expression on the document: whether the rules are meant for it.
    pub applies: &'s str,
}

/// Compiles a schema; the names in its expressions are added to `names`.
///
/// # Errors
/// It is no XML or no schema, or an expression is beyond the subset.
pub(crate) fn compile_schema(
    source: SchemaSource<'_>,
    names: &mut NameTable,
) -> Result<CompiledSchema, SyntaxError> {
    let text = decode(source.schematron)?;
    let main = text.parse_tree().map_err(|error| SyntaxError(error.to_string()))?;
    let mut included = Vec::new();
    for (address, content) in source.includes {
        included.push((address.as_str(), decode(content)?));
    }
    let mut trees = Vec::new();
    for (address, text) in &included {
        let tree = text.parse_tree().map_err(|error| SyntaxError(error.to_string()))?;
        trees.push((*address, tree));
    }
    let mut parts = Vec::new();
    for child in main.root_element().children().filter(XmlNode::is_element) {
        if is_named(child, "include") {
            let address = attribute(child, "href")?;
            let (_, tree) = trees
                .iter()
                .find(|(name, _)| *name == address)
                .ok_or_else(|| SyntaxError(format!("the included file {address} is absent")))?;
            parts.push(tree.root_element());
        } else {
            parts.push(child);
        }
    }
    let mut reader = SchemaReader::default();
    reader.context.names = std::mem::take(names);
    let compiled = reader.read(&parts, source.applies);
    *names = reader.context.names;
    compiled
}

fn decode(text: &str) -> Result<XmlText, SyntaxError> {
    XmlText::decode(text.as_bytes()).map_err(|error| SyntaxError(error.to_string()))
}

fn is_named(node: XmlNode<'_, '_>, name: &str) -> bool {
    node.has_tag_name((SCHEMATRON, name))
}

fn attribute<'a>(node: XmlNode<'a, '_>, name: &str) -> Result<&'a str, SyntaxError> {
    node.attribute(name)
        .ok_or_else(|| SyntaxError(format!("{} without {name}", node.tag_name().name())))
}

#[derive(Default)]
struct SchemaReader {
    context: StaticContext,
    globals: Vec<String>,
    patterns: Vec<RulePattern>,
}

impl SchemaReader {
    fn read(
        &mut self,
        parts: &[XmlNode<'_, '_>],
        applies: &str,
    ) -> Result<CompiledSchema, SyntaxError> {
        // Names of functions may have the prefixes of the XML itself.
        for part in parts {
            for declared in part.namespaces() {
                let prefix = declared.name().unwrap_or_default().to_owned();
                self.context.namespaces.insert(prefix, declared.uri().to_owned());
            }
        }
        self.context.namespaces.remove("");
        for part in parts.iter().filter(|part| is_named(**part, "ns")) {
            let (prefix, uri) = (attribute(*part, "prefix")?, attribute(*part, "uri")?);
            self.context.namespaces.insert(prefix.to_owned(), uri.to_owned());
        }
        self.declare_globals(parts)?;
        let functions = read_functions(parts, &mut self.context)?;
        let mut globals = Vec::new();
        for value in std::mem::take(&mut self.globals) {
            globals.push(parse_xpath(&value, &mut self.context)?);
        }
        for part in parts.iter().filter(|part| is_named(**part, "pattern")) {
            self.read_pattern(*part, parts)?;
        }
        let applies = parse_xpath(applies, &mut self.context)?;
        globals.append(&mut self.context.shared_paths);
        let declared_globals = self.context.declared_globals;
        let program =
            RuleProgram { globals, declared_globals, functions, patterns: PatternCache::default() };
        Ok(CompiledSchema { program, patterns: std::mem::take(&mut self.patterns), applies })
    }

    /// The variables of schema and patterns, which all expressions may use.
    fn declare_globals(&mut self, parts: &[XmlNode<'_, '_>]) -> Result<(), SyntaxError> {
        for part in parts {
            let lets: Vec<XmlNode<'_, '_>> = if is_named(*part, "let") {
                vec![*part]
            } else if is_named(*part, "pattern") && part.attribute("abstract") != Some("true") {
                part.children().filter(|it| is_named(*it, "let")).collect()
            } else {
                Vec::new()
            };
            for variable in lets {
                let (name, value) = (attribute(variable, "name")?, attribute(variable, "value")?);
                self.context.globals.insert(name.to_owned(), self.globals.len());
                self.globals.push(value.to_owned());
            }
        }
        self.context.declared_globals = self.globals.len();
        Ok(())
    }

    fn read_pattern(
        &mut self,
        pattern: XmlNode<'_, '_>,
        parts: &[XmlNode<'_, '_>],
    ) -> Result<(), SyntaxError> {
        if pattern.attribute("abstract") == Some("true") {
            return Ok(());
        }
        // Longest name first.
        let mut parameters: Vec<(String, String)> = Vec::new();
        let mut body = pattern;
        if let Some(name) = pattern.attribute("is-a") {
            let named = parts
                .iter()
                .find(|part| is_named(**part, "pattern") && part.attribute("id") == Some(name));
            body = *named.ok_or_else(|| SyntaxError(format!("the pattern {name} is absent")))?;
            for parameter in pattern.children().filter(|it| is_named(*it, "param")) {
                let (name, value) = (attribute(parameter, "name")?, attribute(parameter, "value")?);
                parameters.push((format!("${name}"), value.to_owned()));
            }
            parameters.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        }
        let mut compiled = RulePattern::default();
        for rule in body.children().filter(|it| is_named(*it, "rule")) {
            if rule.attribute("abstract") == Some("true") {
                continue;
            }
            let place = compiled.rules.len();
            self.context.rule_variables.clear();
            let context = replace_parameters(attribute(rule, "context")?, &parameters);
            let context = parse_context(&context, &mut self.context)?;
            for pattern in context_patterns(&context)? {
                let parent = pattern.parent_name();
                compiled.add_context(RuleContext { rule: place, pattern, parent });
            }
            let mut read = CompiledRule::default();
            self.read_rule(rule, body, &parameters, &mut read)?;
            compiled.rules.push(read);
        }
        compiled.merge_unnamed();
        self.patterns.push(compiled);
        Ok(())
    }

    fn read_rule(
        &mut self,
        rule: XmlNode<'_, '_>,
        pattern: XmlNode<'_, '_>,
        parameters: &[(String, String)],
        read: &mut CompiledRule,
    ) -> Result<(), SyntaxError> {
        if self.context.rule_variables.len() > 1_000 || read.checks.len() > 100_000 {
            return Err(SyntaxError("rules extend each other in a circle".to_owned()));
        }
        for child in rule.children().filter(XmlNode::is_element) {
            if is_named(child, "let") {
                let value = replace_parameters(attribute(child, "value")?, parameters);
                let value = parse_xpath(&value, &mut self.context)?;
                self.context.rule_variables.push(attribute(child, "name")?.to_owned());
                read.variables.push(value);
            } else if is_named(child, "assert") || is_named(child, "report") {
                read.checks.push(self.read_check(child, parameters)?);
            } else if is_named(child, "extends") {
                let name = attribute(child, "rule")?;
                let depth = rule.ancestors().count();
                let extended = pattern
                    .children()
                    .find(|it| is_named(*it, "rule") && it.attribute("id") == Some(name))
                    .filter(|it| *it != rule && depth < MAX_EXTENSIONS);
                let extended =
                    extended.ok_or_else(|| SyntaxError(format!("the rule {name} is absent")))?;
                self.read_rule(extended, pattern, parameters, read)?;
            }
        }
        Ok(())
    }

    fn read_check(
        &mut self,
        check: XmlNode<'_, '_>,
        parameters: &[(String, String)],
    ) -> Result<CompiledCheck, SyntaxError> {
        let test = replace_parameters(attribute(check, "test")?, parameters);
        let mut message = Vec::new();
        for part in check.children() {
            if let Some(text) = part.text().filter(|_| part.is_text()) {
                message.push(RuleTextPart::Text(text.to_owned()));
            } else if is_named(part, "value-of") {
                let value = replace_parameters(attribute(part, "select")?, parameters);
                message.push(RuleTextPart::Value(parse_xpath(&value, &mut self.context)?));
            } else if is_named(part, "name") {
                message.push(RuleTextPart::Name);
            } else if part.is_element() {
                let text = part.descendants().filter_map(|it| it.text().filter(|_| it.is_text()));
                message.push(RuleTextPart::Text(text.collect()));
            }
        }
        // The nearest of check and rule that has one.
        let severity = check
            .ancestors()
            .find_map(|node| node.attribute("flag").or_else(|| node.attribute("role")));
        Ok(CompiledCheck {
            id: check.attribute("id").unwrap_or_default().to_owned(),
            severity: severity.unwrap_or("fatal").to_owned(),
            test: parse_xpath(&test, &mut self.context)?,
            is_assertion: is_named(check, "assert"),
            message,
        })
    }
}

fn replace_parameters(text: &str, parameters: &[(String, String)]) -> String {
    let mut replaced = text.to_owned();
    for (name, value) in parameters {
        replaced = replaced.replace(name, value);
    }
    replaced
}
