//! XPath expressions with their names resolved: what the parser returns and the evaluator takes.

use crate::decimal::DecimalNumber;
use crate::names::NameId;
use crate::tree::NodeSort;

/// An expression.
#[derive(Debug, Clone)]
pub(crate) enum XPathExpr {
    Text(String),
    /// Text of a function's variable or value: untyped, as text of a document is.
    UntypedText(String),
    Integer(DecimalNumber),
    Decimal(DecimalNumber),
    Double(f64),
    Variable(VariableSlot),
    /// `.`
    ContextItem,
    /// The document's root.
    Root,
    /// A sequence; `()` without parts.
    Sequence(Vec<Self>),
    Or(Box<Self>, Box<Self>),
    And(Box<Self>, Box<Self>),
    /// `=` and its kin: true if it holds for any pair.
    GeneralComparison(Comparison, Box<Self>, Box<Self>),
    /// `eq` and its kin: of one item each.
    ValueComparison(Comparison, Box<Self>, Box<Self>),
    /// `is`
    SameNode(Box<Self>, Box<Self>),
    Range(Box<Self>, Box<Self>),
    Arithmetic(ArithmeticOperator, Box<Self>, Box<Self>),
    Negated(Box<Self>),
    Union(Box<Self>, Box<Self>),
    /// Nodes of the first that are in the second too, or are not.
    Selection {
        keep_common: bool,
        left: Box<Self>,
        right: Box<Self>,
    },
    Cast(Box<Self>, SingleType),
    Castable(Box<Self>, SingleType),
    If(Box<Self>, Box<Self>, Box<Self>),
    For {
        slot: usize,
        source: Box<Self>,
        result: Box<Self>,
    },
    Quantified {
        is_every: bool,
        slot: usize,
        source: Box<Self>,
        condition: Box<Self>,
    },
    /// Whether `fixed` is related to any item of `source`.
    SomeRelated {
        comparison: Comparison,
        fixed: Box<Self>,
        source: Box<Self>,
    },
    /// A variable of a function, and what follows it.
    Let {
        slot: usize,
        value: Box<Self>,
        rest: Box<Self>,
    },
    /// `left/right`
    Path(Box<Self>, Box<Self>),
    Step(AxisStep),
    Filter(Box<Self>, Vec<XPathPredicate>),
    Call(CoreFunction, Vec<Self>),
    /// A function of the rules, by its number.
    UserCall(usize, Vec<Self>),
    /// `xsl:value-of`: the values as one untyped text.
    JoinedText(Box<Self>),
    /// The conversion of a function's argument or result to its declared type.
    Converted(Box<Self>, SequenceType),
}

impl XPathExpr {
    /// Whether it has no items but nodes, by its form.
    pub(crate) fn has_nodes_alone(&self) -> bool {
        match self {
            Self::Step(_) => true,
            Self::Path(_, right) => matches!(right.as_ref(), Self::Step(_)),
            _ => false,
        }
    }
}

/// A step along an axis.
#[derive(Debug, Clone)]
pub(crate) struct AxisStep {
    pub axis: XPathAxis,
    pub test: NodeTest,
    pub predicates: Vec<XPathPredicate>,
}

/// A condition in brackets.
#[derive(Debug, Clone)]
pub(crate) struct XPathPredicate {
    pub condition: XPathExpr,
    /// Whether its value can be a number, or it asks for position or size.
    pub is_positional: bool,
}

/// Where the value of a variable is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VariableSlot {
    /// Of the whole set of rules.
    Global(usize),
    /// Of the rule that is applied.
    Rule(usize),
    /// Of an expression or a function.
    Local(usize),
}

/// The axes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum XPathAxis {
    Child,
    Attribute,
    Descendant,
    DescendantOrSelf,
    ItSelf,
    Parent,
    Ancestor,
    AncestorOrSelf,
    FollowingSibling,
    PrecedingSibling,
    Following,
    Preceding,
}

impl XPathAxis {
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "child" => Self::Child,
            "attribute" => Self::Attribute,
            "descendant" => Self::Descendant,
            "descendant-or-self" => Self::DescendantOrSelf,
            "self" => Self::ItSelf,
            "parent" => Self::Parent,
            "ancestor" => Self::Ancestor,
            "ancestor-or-self" => Self::AncestorOrSelf,
            "following-sibling" => Self::FollowingSibling,
            "preceding-sibling" => Self::PrecedingSibling,
            "following" => Self::Following,
            "preceding" => Self::Preceding,
            _ => return None,
        })
    }

    /// Whether positions count backwards in the document.
    pub(crate) fn is_reverse(self) -> bool {
        matches!(
            self,
            Self::Parent
                | Self::Ancestor
                | Self::AncestorOrSelf
                | Self::PrecedingSibling
                | Self::Preceding
        )
    }
}

/// The nodes that a step selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NodeTest {
    Name(NameId),
    /// `*`
    AnyName,
    /// `prefix:*`
    AnyInNamespace(String),
    /// `*:name`
    AnyNamespace(String),
    AnyNode,
    /// `element()`, `text()` and the like
    Sort(NodeSort),
}

/// The comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// The operators on numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ArithmeticOperator {
    Plus,
    Minus,
    Times,
    Div,
    WholeDiv,
    Mod,
}

impl CoreFunction {
    /// Whether it has one value of arguments that are texts or nothing.
    pub(crate) fn is_of_texts(self) -> bool {
        matches!(
            self,
            Self::Concat
                | Self::Contains
                | Self::EndsWith
                | Self::LowerCase
                | Self::NormalizeSpace
                | Self::StartsWith
                | Self::StringLength
                | Self::SubstringAfter
                | Self::SubstringBefore
                | Self::UpperCase
        )
    }
}

/// The types of atomic values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtomicType {
    Text,
    Boolean,
    Integer,
    Decimal,
    Double,
    Date,
    /// `xs:anyAtomicType`
    Any,
}

impl AtomicType {
    /// By its local name in the namespace of XML Schema.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "string" => Self::Text,
            "boolean" => Self::Boolean,
            "integer" => Self::Integer,
            "decimal" => Self::Decimal,
            "double" => Self::Double,
            "date" => Self::Date,
            "anyAtomicType" => Self::Any,
            _ => return None,
        })
    }
}

/// The type that a value is cast to: `xs:decimal?`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SingleType {
    pub atomic: AtomicType,
    pub may_be_empty: bool,
}

/// The type of one item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ItemType {
    /// `item()`
    Any,
    /// `node()`
    Node,
    /// `element()`, `text()` and the like
    Sort(NodeSort),
    Atomic(AtomicType),
}

/// A type and how many items of it there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SequenceType {
    pub item: ItemType,
    pub may_be_empty: bool,
    pub may_be_several: bool,
}

impl SequenceType {
    /// Anything.
    pub(crate) const ANY: Self =
        Self { item: ItemType::Any, may_be_empty: true, may_be_several: true };
}

/// A function of a set of rules.
#[derive(Debug)]
pub(crate) struct UserFunction {
    /// Its parameters' types, in the first slots of its frame.
    pub parameters: Vec<SequenceType>,
    pub body: XPathExpr,
}

macro_rules! core_functions {
    ($($variant:ident $name:literal $least:literal $most:literal;)*) => {
        /// The functions of XPath that the rules may call.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum CoreFunction { $($variant),* }

        impl CoreFunction {
            /// By its name and the number of its arguments.
            pub(crate) fn from_call(name: &str, arguments: usize) -> Option<Self> {
                let (function, least, most) = match name {
                    $($name => (Self::$variant, $least, $most),)*
                    _ => return None,
                };
                (least..=most).contains(&arguments).then_some(function)
            }
        }
    };
}

core_functions! {
    Abs "abs" 1 1;
    Avg "avg" 1 1;
    Boolean "boolean" 1 1;
    Ceiling "ceiling" 1 1;
    CodepointsToString "codepoints-to-string" 1 1;
    Concat "concat" 2 255;
    Contains "contains" 2 2;
    Count "count" 1 1;
    Data "data" 0 1;
    DistinctValues "distinct-values" 1 1;
    Empty "empty" 1 1;
    EndsWith "ends-with" 2 2;
    ExactlyOne "exactly-one" 1 1;
    Exists "exists" 1 1;
    False "false" 0 0;
    Floor "floor" 1 1;
    IndexOf "index-of" 2 2;
    Last "last" 0 0;
    LocalName "local-name" 0 1;
    LowerCase "lower-case" 1 1;
    Matches "matches" 2 3;
    Max "max" 1 1;
    Min "min" 1 1;
    Name "name" 0 1;
    NamespaceUri "namespace-uri" 0 1;
    NormalizeSpace "normalize-space" 0 1;
    Not "not" 1 1;
    Number "number" 0 1;
    Position "position" 0 0;
    Replace "replace" 3 4;
    Reverse "reverse" 1 1;
    RootOf "root" 0 1;
    Round "round" 1 1;
    StartsWith "starts-with" 2 2;
    StringJoin "string-join" 1 2;
    StringLength "string-length" 0 1;
    StringOf "string" 0 1;
    StringToCodepoints "string-to-codepoints" 1 1;
    Subsequence "subsequence" 2 3;
    Substring "substring" 2 3;
    SubstringAfter "substring-after" 2 2;
    SubstringBefore "substring-before" 2 2;
    Sum "sum" 1 2;
    Tokenize "tokenize" 1 3;
    Translate "translate" 3 3;
    True "true" 0 0;
    UpperCase "upper-case" 1 1;
    ZeroOrOne "zero-or-one" 1 1;
}
