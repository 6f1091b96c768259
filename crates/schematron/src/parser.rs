//! XPath 2.0 from text, as far as the rules of e-invoices use it. An expression beyond that is an
//! error: the rules are refused, not read by half.

use std::collections::HashMap;

use crate::decimal::DecimalNumber;
use crate::expression::{
    ArithmeticOperator, AtomicType, AxisStep, Comparison, CoreFunction, ItemType, NodeTest,
    SequenceType, SingleType, VariableSlot, XPathAxis, XPathExpr, XPathPredicate,
};
use crate::names::NameTable;
use crate::token::{SyntaxError, XPathToken, split_tokens};
use crate::tree::NodeSort;

/// Deepest nesting of an expression.
const MAX_NESTING: usize = 128;
const SCHEMA_NAMESPACE: &str = "http://www.w3.org/2001/XMLSchema";
const FUNCTION_NAMESPACE: &str = "http://www.w3.org/2005/xpath-functions";

/// The names that an expression may use.
#[derive(Debug, Default)]
pub(crate) struct StaticContext {
    /// Namespaces by prefix.
    pub namespaces: HashMap<String, String>,
    /// Names of nodes so far.
    pub names: NameTable,
    /// Variables of the whole set.
    pub globals: HashMap<String, usize>,
    /// Paths from the root, which have one value in a document: values of further variables, whose
    /// numbers follow on those that the set declares.
    pub shared_paths: Vec<XPathExpr>,
    /// Variables that the set declares.
    pub declared_globals: usize,
    /// Functions by namespace, local name and number of arguments.
    pub functions: HashMap<(String, String, usize), usize>,
    /// Variables of the rule.
    pub rule_variables: Vec<String>,
    /// Variables in scope, innermost last.
    pub locals: Vec<String>,
}

impl StaticContext {
    fn namespace(&self, prefix: &str) -> Result<&str, SyntaxError> {
        match (self.namespaces.get(prefix), prefix) {
            (Some(namespace), _) => Ok(namespace),
            (None, "xs") => Ok(SCHEMA_NAMESPACE),
            (None, "fn") => Ok(FUNCTION_NAMESPACE),
            _ => Err(SyntaxError(format!("the prefix `{prefix}` is not declared"))),
        }
    }

    /// The expanded form of a name with a prefix.
    ///
    /// # Errors
    /// A prefix that is not declared.
    pub(crate) fn expand(&self, name: &str) -> Result<(String, String), SyntaxError> {
        match name.split_once(':') {
            Some((prefix, local)) => Ok((self.namespace(prefix)?.to_owned(), local.to_owned())),
            None => Ok((String::new(), name.to_owned())),
        }
    }

    fn find_variable(&self, name: &str) -> Result<VariableSlot, SyntaxError> {
        if let Some(slot) = self.locals.iter().rposition(|it| it == name) {
            return Ok(VariableSlot::Local(slot));
        }
        if let Some(slot) = self.rule_variables.iter().rposition(|it| it == name) {
            return Ok(VariableSlot::Rule(slot));
        }
        let global = self.globals.get(name).copied().map(VariableSlot::Global);
        global.ok_or_else(|| SyntaxError(format!("the variable `${name}` is not declared")))
    }
}

/// Reads an expression.
///
/// # Errors
/// It is beyond the subset, or a name is not declared.
pub(crate) fn parse_xpath(
    text: &str,
    context: &mut StaticContext,
) -> Result<XPathExpr, SyntaxError> {
    parse_whole(text, ExpressionParser::new(text, context)?)
}

/// Reads the context of a rule, whose paths stay as they are.
///
/// # Errors
/// As [`parse_xpath`].
pub(crate) fn parse_context(
    text: &str,
    context: &mut StaticContext,
) -> Result<XPathExpr, SyntaxError> {
    let parser = ExpressionParser::new(text, context)?;
    parse_whole(text, ExpressionParser { shares_paths: false, ..parser })
}

fn parse_whole(text: &str, mut parser: ExpressionParser<'_>) -> Parsed {
    let found = parser.parse_expression().and_then(|found| match parser.peek() {
        None => Ok(found),
        Some(token) => Err(SyntaxError(format!("{token:?} is not expected"))),
    });
    found.map_err(|SyntaxError(message)| SyntaxError(format!("{message} in `{text}`")))
}

/// Reads the name of a type: `xs:decimal?`.
///
/// # Errors
/// A type that the rules do not use.
pub(crate) fn parse_type(
    text: &str,
    context: &mut StaticContext,
) -> Result<SequenceType, SyntaxError> {
    ExpressionParser::new(text, context)?.parse_sequence_type()
}

struct ExpressionParser<'c> {
    tokens: Vec<XPathToken>,
    at: usize,
    nesting: usize,
    /// Whether paths from the root become variables of the set.
    shares_paths: bool,
    /// The variables of rules and expressions that were read so far.
    read_variables: Vec<VariableSlot>,
    context: &'c mut StaticContext,
}

type Parsed = Result<XPathExpr, SyntaxError>;

/// An operator between two operands, and how tightly it binds.
#[derive(Clone, Copy)]
enum BinaryOperator {
    Or,
    And,
    General(Comparison),
    Value(Comparison),
    Same,
    Range,
    Arithmetic(ArithmeticOperator),
    Union,
    Intersect,
    Except,
}

impl BinaryOperator {
    fn from_token(token: &XPathToken) -> Option<Self> {
        use ArithmeticOperator as A;
        use Comparison as C;
        Some(match token {
            XPathToken::Name { prefix: None, local } => match local.as_str() {
                "or" => Self::Or,
                "and" => Self::And,
                "eq" => Self::Value(C::Equal),
                "ne" => Self::Value(C::NotEqual),
                "lt" => Self::Value(C::Less),
                "le" => Self::Value(C::LessOrEqual),
                "gt" => Self::Value(C::Greater),
                "ge" => Self::Value(C::GreaterOrEqual),
                "is" => Self::Same,
                "to" => Self::Range,
                "div" => Self::Arithmetic(A::Div),
                "idiv" => Self::Arithmetic(A::WholeDiv),
                "mod" => Self::Arithmetic(A::Mod),
                "union" => Self::Union,
                "intersect" => Self::Intersect,
                "except" => Self::Except,
                _ => return None,
            },
            XPathToken::Sign(sign) => match *sign {
                "=" => Self::General(C::Equal),
                "!=" => Self::General(C::NotEqual),
                "<" => Self::General(C::Less),
                "<=" => Self::General(C::LessOrEqual),
                ">" => Self::General(C::Greater),
                ">=" => Self::General(C::GreaterOrEqual),
                "+" => Self::Arithmetic(A::Plus),
                "-" => Self::Arithmetic(A::Minus),
                "*" => Self::Arithmetic(A::Times),
                "|" => Self::Union,
                _ => return None,
            },
            _ => return None,
        })
    }

    fn power(self) -> u8 {
        match self {
            Self::Or => 1,
            Self::And => 2,
            Self::General(_) | Self::Value(_) | Self::Same => 3,
            Self::Range => 4,
            Self::Arithmetic(ArithmeticOperator::Plus | ArithmeticOperator::Minus) => 5,
            Self::Arithmetic(_) => 6,
            Self::Union => 7,
            Self::Intersect | Self::Except => 8,
        }
    }

    fn join(self, left: XPathExpr, right: XPathExpr) -> XPathExpr {
        let (left, right) = (Box::new(left), Box::new(right));
        match self {
            Self::Or => XPathExpr::Or(left, right),
            Self::And => XPathExpr::And(left, right),
            Self::General(comparison) => XPathExpr::GeneralComparison(comparison, left, right),
            Self::Value(comparison) => XPathExpr::ValueComparison(comparison, left, right),
            Self::Same => XPathExpr::SameNode(left, right),
            Self::Range => XPathExpr::Range(left, right),
            Self::Arithmetic(operator) => XPathExpr::Arithmetic(operator, left, right),
            Self::Union => XPathExpr::Union(left, right),
            Self::Intersect => XPathExpr::Selection { keep_common: true, left, right },
            Self::Except => XPathExpr::Selection { keep_common: false, left, right },
        }
    }
}

impl<'c> ExpressionParser<'c> {
    fn new(text: &str, context: &'c mut StaticContext) -> Result<Self, SyntaxError> {
        let tokens = split_tokens(text)?;
        let read_variables = Vec::new();
        Ok(Self { tokens, at: 0, nesting: 0, shares_paths: true, read_variables, context })
    }

    fn peek(&self) -> Option<&XPathToken> {
        self.tokens.get(self.at)
    }

    fn sees_sign(&self, ahead: usize, sign: &str) -> bool {
        let token = self.tokens.get(self.at.saturating_add(ahead));
        matches!(token, Some(XPathToken::Sign(found)) if *found == sign)
    }

    fn sees_word(&self, ahead: usize, word: &str) -> bool {
        matches!(
            self.tokens.get(self.at.saturating_add(ahead)),
            Some(XPathToken::Name { prefix: None, local }) if local == word
        )
    }

    fn take_sign(&mut self, sign: &str) -> bool {
        let is_next = self.sees_sign(0, sign);
        self.at += usize::from(is_next);
        is_next
    }

    fn take_word(&mut self, word: &str) -> bool {
        let is_next = self.sees_word(0, word);
        self.at += usize::from(is_next);
        is_next
    }

    fn expect_sign(&mut self, sign: &str) -> Result<(), SyntaxError> {
        if self.take_sign(sign) {
            return Ok(());
        }
        Err(SyntaxError(format!("`{sign}` is missing before {:?}", self.peek())))
    }

    fn expect_word(&mut self, word: &str) -> Result<(), SyntaxError> {
        if self.take_word(word) {
            return Ok(());
        }
        Err(SyntaxError(format!("`{word}` is missing before {:?}", self.peek())))
    }

    fn take_name(&mut self) -> Result<(Option<String>, String), SyntaxError> {
        match self.tokens.get(self.at) {
            Some(XPathToken::Name { prefix, local }) => {
                self.at += 1;
                Ok((prefix.clone(), local.clone()))
            }
            other => Err(SyntaxError(format!("{other:?} is no name"))),
        }
    }

    /// A variable's name as its declaration has it: a prefix means the same in a whole schema.
    fn take_variable(&mut self) -> Result<String, SyntaxError> {
        let (prefix, local) = self.take_name()?;
        Ok(prefix.map_or_else(|| local.clone(), |prefix| format!("{prefix}:{local}")))
    }

    /// Expressions with commas between them.
    fn parse_expression(&mut self) -> Parsed {
        let first = self.parse_single()?;
        if !self.sees_sign(0, ",") {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.take_sign(",") {
            parts.push(self.parse_single()?);
        }
        Ok(XPathExpr::Sequence(parts))
    }

    fn parse_single(&mut self) -> Parsed {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return Err(SyntaxError("it is nested too deep".to_owned()));
        }
        let is_bound = self.sees_sign(1, "$");
        let found = if is_bound && self.take_word("for") {
            self.parse_for()
        } else if is_bound && self.take_word("some") {
            self.parse_quantified(false)
        } else if is_bound && self.take_word("every") {
            self.parse_quantified(true)
        } else if self.sees_sign(1, "(") && self.take_word("if") {
            self.parse_if()
        } else {
            self.parse_binary(0)
        };
        self.nesting -= 1;
        found
    }

    /// `$name in expression`; the variable is not in scope yet.
    fn parse_binding(&mut self) -> Result<(String, XPathExpr), SyntaxError> {
        self.expect_sign("$")?;
        let name = self.take_variable()?;
        self.expect_word("in")?;
        Ok((name, self.parse_single()?))
    }

    fn parse_for(&mut self) -> Parsed {
        let (name, source) = self.parse_binding()?;
        let slot = self.context.locals.len();
        self.context.locals.push(name);
        let result = if self.take_sign(",") {
            self.parse_for()
        } else {
            self.expect_word("return").and_then(|()| self.parse_single())
        };
        self.context.locals.pop();
        Ok(XPathExpr::For { slot, source: Box::new(source), result: Box::new(result?) })
    }

    fn parse_quantified(&mut self, is_every: bool) -> Parsed {
        let (name, source) = self.parse_binding()?;
        let slot = self.context.locals.len();
        self.context.locals.push(name);
        let read_before = self.read_variables.len();
        let condition = if self.take_sign(",") {
            self.parse_quantified(is_every)
        } else {
            self.expect_word("satisfies").and_then(|()| self.parse_single())
        };
        self.context.locals.pop();
        let own = VariableSlot::Local(slot);
        let read = self.read_variables.iter().skip(read_before);
        let is_read_once = read.filter(|it| **it == own).count() == 1;
        let source = Box::new(source);
        Ok(match condition? {
            // `some $code in $codes satisfies @code = $code`: the left side is invariant.
            XPathExpr::GeneralComparison(comparison, fixed, right)
                if !is_every
                    && is_read_once
                    && matches!(*right, XPathExpr::Variable(slot) if slot == own) =>
            {
                XPathExpr::SomeRelated { comparison, fixed, source }
            }
            condition => {
                XPathExpr::Quantified { is_every, slot, source, condition: Box::new(condition) }
            }
        })
    }

    fn parse_if(&mut self) -> Parsed {
        self.expect_sign("(")?;
        let condition = self.parse_expression()?;
        self.expect_sign(")")?;
        self.expect_word("then")?;
        let then = self.parse_single()?;
        self.expect_word("else")?;
        let otherwise = self.parse_single()?;
        Ok(XPathExpr::If(Box::new(condition), Box::new(then), Box::new(otherwise)))
    }

    /// Operands with operators that bind at least as tightly as `power`.
    fn parse_binary(&mut self, power: u8) -> Parsed {
        let mut left = self.parse_cast()?;
        while let Some(operator) = self.peek().and_then(BinaryOperator::from_token) {
            if operator.power() < power {
                break;
            }
            self.at += 1;
            let right = self.parse_binary(operator.power().saturating_add(1))?;
            left = operator.join(left, right);
        }
        Ok(left)
    }

    fn parse_cast(&mut self) -> Parsed {
        let operand = self.parse_unary()?;
        if self.sees_word(1, "as") && self.take_word("castable") {
            self.at += 1;
            let target = self.parse_single_type()?;
            return Ok(XPathExpr::Castable(Box::new(operand), target));
        }
        if self.sees_word(1, "as") && self.take_word("cast") {
            self.at += 1;
            let target = self.parse_single_type()?;
            return Ok(XPathExpr::Cast(Box::new(operand), target));
        }
        Ok(operand)
    }

    fn parse_single_type(&mut self) -> Result<SingleType, SyntaxError> {
        let (prefix, local) = self.take_name()?;
        let atomic = self.atomic_type(prefix.as_deref(), &local)?;
        Ok(SingleType { atomic, may_be_empty: self.take_sign("?") })
    }

    fn atomic_type(&self, prefix: Option<&str>, local: &str) -> Result<AtomicType, SyntaxError> {
        let namespace = self.context.namespace(prefix.unwrap_or_default())?;
        let atomic = AtomicType::from_name(local).filter(|_| namespace == SCHEMA_NAMESPACE);
        atomic.ok_or_else(|| SyntaxError(format!("the type `{local}` is not read")))
    }

    fn parse_item_type(&mut self) -> Result<ItemType, SyntaxError> {
        let (prefix, local) = self.take_name()?;
        if !self.take_sign("(") {
            return self.atomic_type(prefix.as_deref(), &local).map(ItemType::Atomic);
        }
        self.expect_sign(")")?;
        match (prefix, local.as_str()) {
            (None, "item") => Ok(ItemType::Any),
            (None, local) => match kind_test(local)? {
                NodeTest::Sort(sort) => Ok(ItemType::Sort(sort)),
                _ => Ok(ItemType::Node),
            },
            (Some(_), local) => Err(SyntaxError(format!("the type `{local}()` is not read"))),
        }
    }

    fn parse_sequence_type(&mut self) -> Result<SequenceType, SyntaxError> {
        let item = self.parse_item_type()?;
        let (may_be_empty, may_be_several) = if self.take_sign("?") {
            (true, false)
        } else if self.take_sign("*") {
            (true, true)
        } else {
            (false, self.take_sign("+"))
        };
        Ok(SequenceType { item, may_be_empty, may_be_several })
    }

    fn parse_unary(&mut self) -> Parsed {
        let mut is_negative = false;
        loop {
            if self.take_sign("-") {
                is_negative = !is_negative;
            } else if !self.take_sign("+") {
                break;
            }
        }
        let operand = self.parse_path()?;
        Ok(if is_negative { XPathExpr::Negated(Box::new(operand)) } else { operand })
    }

    fn parse_path(&mut self) -> Parsed {
        let is_from_root = self.sees_sign(0, "/") || self.sees_sign(0, "//");
        let read_before = self.read_variables.len();
        let path = self.parse_steps()?;
        let read = self.read_variables.get(read_before..).unwrap_or_default();
        let has_one_value = read.iter().all(|slot| matches!(slot, VariableSlot::Global(_)));
        if !is_from_root || !has_one_value || !self.shares_paths || is_root(&path) {
            return Ok(path);
        }
        let context = &mut *self.context;
        context.shared_paths.push(path);
        let number = context.declared_globals + context.shared_paths.len() - 1;
        Ok(XPathExpr::Variable(VariableSlot::Global(number)))
    }

    fn parse_steps(&mut self) -> Parsed {
        let mut path = if self.take_sign("//") {
            descend(XPathExpr::Root, self.parse_step()?)
        } else if self.take_sign("/") {
            if !self.starts_step() {
                return Ok(XPathExpr::Root);
            }
            XPathExpr::Path(Box::new(XPathExpr::Root), Box::new(self.parse_step()?))
        } else {
            self.parse_step()?
        };
        loop {
            path = if self.take_sign("//") {
                descend(path, self.parse_step()?)
            } else if self.take_sign("/") {
                XPathExpr::Path(Box::new(path), Box::new(self.parse_step()?))
            } else {
                return Ok(path);
            };
        }
    }

    /// Whether a step follows a `/`, which stands alone otherwise.
    fn starts_step(&self) -> bool {
        match self.peek() {
            Some(XPathToken::Name { .. } | XPathToken::Text(_) | XPathToken::Number(_)) => true,
            Some(XPathToken::Sign(sign)) => matches!(*sign, "@" | ".." | "." | "*" | "(" | "$"),
            None => false,
        }
    }

    fn parse_step(&mut self) -> Parsed {
        if let Some(primary) = self.parse_primary()? {
            let predicates = self.parse_predicates()?;
            return Ok(if predicates.is_empty() {
                primary
            } else {
                XPathExpr::Filter(Box::new(primary), predicates)
            });
        }
        let (axis, test) = self.parse_axis_and_test()?;
        let predicates = self.parse_predicates()?;
        Ok(XPathExpr::Step(AxisStep { axis, test, predicates }))
    }

    fn parse_predicates(&mut self) -> Result<Vec<XPathPredicate>, SyntaxError> {
        let mut predicates = Vec::new();
        let shares_paths = std::mem::replace(&mut self.shares_paths, true);
        while self.take_sign("[") {
            let condition = self.parse_expression()?;
            self.expect_sign("]")?;
            let is_positional = is_positional(&condition);
            predicates.push(XPathPredicate { condition, is_positional });
        }
        self.shares_paths = shares_paths;
        Ok(predicates)
    }

    /// A literal, variable, sequence in parentheses, `.` or call; `None`: a step along an axis.
    fn parse_primary(&mut self) -> Result<Option<XPathExpr>, SyntaxError> {
        let Some(token) = self.peek().cloned() else {
            return Err(SyntaxError("it ends too early".to_owned()));
        };
        Ok(Some(match token {
            XPathToken::Text(text) => {
                self.at += 1;
                XPathExpr::Text(text)
            }
            XPathToken::Number(number) => {
                self.at += 1;
                number_literal(&number)?
            }
            XPathToken::Sign("$") => {
                self.at += 1;
                let name = self.take_variable()?;
                let slot = self.context.find_variable(&name)?;
                self.read_variables.push(slot);
                XPathExpr::Variable(slot)
            }
            XPathToken::Sign("(") => {
                self.at += 1;
                if self.take_sign(")") {
                    return Ok(Some(XPathExpr::Sequence(Vec::new())));
                }
                let inside = self.parse_expression()?;
                self.expect_sign(")")?;
                inside
            }
            XPathToken::Sign(".") => {
                self.at += 1;
                XPathExpr::ContextItem
            }
            XPathToken::Name { prefix, local } if self.sees_sign(1, "(") => {
                if prefix.is_none() && kind_test(&local).is_ok() {
                    return Ok(None);
                }
                self.at += 2;
                let arguments = self.parse_arguments()?;
                self.resolve_call(prefix.as_deref(), &local, arguments)?
            }
            _ => return Ok(None),
        }))
    }

    /// Arguments behind the opening parenthesis, which it closes.
    fn parse_arguments(&mut self) -> Result<Vec<XPathExpr>, SyntaxError> {
        let mut arguments = Vec::new();
        if self.take_sign(")") {
            return Ok(arguments);
        }
        loop {
            arguments.push(self.parse_single()?);
            if !self.take_sign(",") {
                self.expect_sign(")")?;
                return Ok(arguments);
            }
        }
    }

    fn resolve_call(
        &self,
        prefix: Option<&str>,
        local: &str,
        mut arguments: Vec<XPathExpr>,
    ) -> Parsed {
        let count = arguments.len();
        let unknown = || SyntaxError(format!("the function `{local}` with {count} arguments"));
        let namespace = match prefix {
            None => FUNCTION_NAMESPACE,
            Some(prefix) => self.context.namespace(prefix)?,
        };
        if namespace == SCHEMA_NAMESPACE {
            let atomic = AtomicType::from_name(local).ok_or_else(unknown)?;
            let (Some(argument), true) = (arguments.pop(), count == 1) else {
                return Err(unknown());
            };
            let target = SingleType { atomic, may_be_empty: true };
            return Ok(XPathExpr::Cast(Box::new(argument), target));
        }
        let key = (namespace.to_owned(), local.to_owned(), count);
        if let Some(function) = self.context.functions.get(&key) {
            return Ok(XPathExpr::UserCall(*function, arguments));
        }
        let is_core = namespace == FUNCTION_NAMESPACE;
        let function = CoreFunction::from_call(local, count).filter(|_| is_core);
        Ok(XPathExpr::Call(function.ok_or_else(unknown)?, arguments))
    }

    fn parse_axis_and_test(&mut self) -> Result<(XPathAxis, NodeTest), SyntaxError> {
        if self.take_sign("..") {
            return Ok((XPathAxis::Parent, NodeTest::AnyNode));
        }
        if self.take_sign("@") {
            return Ok((XPathAxis::Attribute, self.parse_test()?));
        }
        if self.sees_sign(1, "::") {
            let (_, name) = self.take_name()?;
            self.at += 1;
            let axis = XPathAxis::from_name(&name);
            let axis = axis.ok_or_else(|| SyntaxError(format!("the axis `{name}` is not read")))?;
            return Ok((axis, self.parse_test()?));
        }
        let test = self.parse_test()?;
        let is_attribute = test == NodeTest::Sort(NodeSort::Attribute);
        Ok((if is_attribute { XPathAxis::Attribute } else { XPathAxis::Child }, test))
    }

    fn parse_test(&mut self) -> Result<NodeTest, SyntaxError> {
        if self.take_sign("*") {
            return Ok(NodeTest::AnyName);
        }
        let (prefix, local) = self.take_name()?;
        if prefix.is_none() && self.take_sign("(") {
            self.expect_sign(")")?;
            return kind_test(&local);
        }
        let Some(prefix) = prefix else {
            return Ok(NodeTest::Name(self.context.names.intern("", &local)));
        };
        if prefix == "*" {
            return Ok(NodeTest::AnyNamespace(local));
        }
        let namespace = self.context.namespace(&prefix)?.to_owned();
        Ok(if local == "*" {
            NodeTest::AnyInNamespace(namespace)
        } else {
            NodeTest::Name(self.context.names.intern(&namespace, &local))
        })
    }
}

fn kind_test(name: &str) -> Result<NodeTest, SyntaxError> {
    Ok(NodeTest::Sort(match name {
        "node" => return Ok(NodeTest::AnyNode),
        "text" => NodeSort::Text,
        "comment" => NodeSort::Comment,
        "processing-instruction" => NodeSort::Instruction,
        "element" => NodeSort::Element,
        "attribute" => NodeSort::Attribute,
        "document-node" => NodeSort::Root,
        _ => return Err(SyntaxError(format!("the test `{name}()` is not read"))),
    }))
}

fn number_literal(number: &str) -> Parsed {
    let unread = || SyntaxError(format!("{number} is no number"));
    if number.contains(['e', 'E']) {
        return number.parse().map(XPathExpr::Double).map_err(|_| unread());
    }
    let value = DecimalNumber::from_text(number).ok_or_else(unread)?;
    let is_integer = !number.contains('.');
    Ok(if is_integer { XPathExpr::Integer(value) } else { XPathExpr::Decimal(value) })
}

fn is_root(path: &XPathExpr) -> bool {
    matches!(path, XPathExpr::Root)
}

/// Whether positions do not matter in a step to children, nor in steps that are united.
fn is_plain_step(step: &XPathExpr) -> bool {
    match step {
        XPathExpr::Step(AxisStep { axis: XPathAxis::Child, predicates, .. }) => {
            !predicates.iter().any(|it| it.is_positional)
        }
        XPathExpr::Union(left, right) => is_plain_step(left) && is_plain_step(right),
        _ => false,
    }
}

/// `left//right`: one step down to any depth where positions do not matter.
fn descend(left: XPathExpr, right: XPathExpr) -> XPathExpr {
    if let XPathExpr::Union(one, other) = &right
        && is_root(&left)
        && is_plain_step(&right)
    {
        let (one, other) = (descend(XPathExpr::Root, *one.clone()), descend(left, *other.clone()));
        return XPathExpr::Union(Box::new(one), Box::new(other));
    }
    if let XPathExpr::Step(AxisStep { axis: XPathAxis::Child, test, predicates }) = &right
        && !predicates.iter().any(|it| it.is_positional)
    {
        let (test, predicates) = (test.clone(), predicates.clone());
        let step = AxisStep { axis: XPathAxis::Descendant, test, predicates };
        return XPathExpr::Path(Box::new(left), Box::new(XPathExpr::Step(step)));
    }
    let (axis, test) = (XPathAxis::DescendantOrSelf, NodeTest::AnyNode);
    let every = XPathExpr::Step(AxisStep { axis, test, predicates: Vec::new() });
    let inside = XPathExpr::Path(Box::new(left), Box::new(every));
    XPathExpr::Path(Box::new(inside), Box::new(right))
}

/// Whether a condition can have a number as its value, or asks for position or size itself.
fn is_positional(condition: &XPathExpr) -> bool {
    use CoreFunction as F;
    match condition {
        XPathExpr::Text(_) | XPathExpr::Castable(..) | XPathExpr::Step(_) => false,
        XPathExpr::Or(left, right)
        | XPathExpr::And(left, right)
        | XPathExpr::GeneralComparison(_, left, right)
        | XPathExpr::ValueComparison(_, left, right)
        | XPathExpr::SomeRelated { fixed: left, source: right, .. }
        | XPathExpr::SameNode(left, right) => asks_position(left) || asks_position(right),
        XPathExpr::Path(left, right) => asks_position(left) || is_positional(right),
        XPathExpr::Quantified { source, condition, .. } => {
            asks_position(source) || asks_position(condition)
        }
        XPathExpr::Call(function, arguments) => {
            let is_truth_or_text = matches!(
                function,
                F::Not
                    | F::Exists
                    | F::Empty
                    | F::Boolean
                    | F::True
                    | F::False
                    | F::Contains
                    | F::StartsWith
                    | F::EndsWith
                    | F::Matches
                    | F::NormalizeSpace
                    | F::UpperCase
                    | F::LowerCase
            );
            !is_truth_or_text || arguments.iter().any(asks_position)
        }
        _ => true,
    }
}

/// Whether `position()` or `last()` of the surrounding focus may be asked for in it.
fn asks_position(expression: &XPathExpr) -> bool {
    match expression {
        XPathExpr::Text(_)
        | XPathExpr::UntypedText(_)
        | XPathExpr::Integer(_)
        | XPathExpr::Decimal(_)
        | XPathExpr::Double(_)
        | XPathExpr::Variable(_)
        | XPathExpr::ContextItem
        | XPathExpr::Root
        | XPathExpr::Step(_) => false,
        XPathExpr::Call(CoreFunction::Position | CoreFunction::Last, _) => true,
        XPathExpr::Call(_, arguments) | XPathExpr::UserCall(_, arguments) => {
            arguments.iter().any(asks_position)
        }
        XPathExpr::Sequence(parts) => parts.iter().any(asks_position),
        // The focus of the right side is another one.
        XPathExpr::Path(left, _) => asks_position(left),
        XPathExpr::Filter(inside, _)
        | XPathExpr::Negated(inside)
        | XPathExpr::JoinedText(inside)
        | XPathExpr::Cast(inside, _)
        | XPathExpr::Castable(inside, _)
        | XPathExpr::Converted(inside, _) => asks_position(inside),
        XPathExpr::Or(left, right)
        | XPathExpr::And(left, right)
        | XPathExpr::GeneralComparison(_, left, right)
        | XPathExpr::ValueComparison(_, left, right)
        | XPathExpr::SomeRelated { fixed: left, source: right, .. }
        | XPathExpr::SameNode(left, right)
        | XPathExpr::Range(left, right)
        | XPathExpr::Arithmetic(_, left, right)
        | XPathExpr::Union(left, right)
        | XPathExpr::Selection { left, right, .. } => asks_position(left) || asks_position(right),
        XPathExpr::If(condition, then, otherwise) => {
            [condition, then, otherwise].into_iter().any(|it| asks_position(it))
        }
        XPathExpr::For { source, result, .. } => asks_position(source) || asks_position(result),
        XPathExpr::Quantified { source, condition, .. } => {
            asks_position(source) || asks_position(condition)
        }
        XPathExpr::Let { value, rest, .. } => asks_position(value) || asks_position(rest),
    }
}
