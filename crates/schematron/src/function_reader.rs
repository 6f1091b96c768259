//! The functions that rules declare in XSLT: parameters, variables, choices and one value.

use docmill_formats::xml::XmlNode;

use crate::expression::{SequenceType, UserFunction, XPathExpr};
use crate::parser::{StaticContext, parse_type, parse_xpath};
use crate::token::SyntaxError;

const XSLT: &str = "http://www.w3.org/1999/XSL/Transform";

/// The functions among the parts of a schema; the context learns their names before any is read,
/// because they call each other.
///
/// # Errors
/// A function uses an instruction or expression that is not read.
pub(crate) fn read_functions(
    parts: &[XmlNode<'_, '_>],
    context: &mut StaticContext,
) -> Result<Vec<UserFunction>, SyntaxError> {
    let declared = parts.iter().filter(|part| part.has_tag_name((XSLT, "function")));
    let declared: Vec<XmlNode<'_, '_>> = declared.copied().collect();
    for (number, function) in declared.iter().enumerate() {
        let (namespace, local) = context.expand(required(*function, "name")?)?;
        let parameters = instructions(*function).filter(|it| is_named(*it, "param")).count();
        context.functions.insert((namespace, local, parameters), number);
    }
    declared.into_iter().map(|function| read_function(function, context)).collect()
}

fn is_named(node: XmlNode<'_, '_>, name: &str) -> bool {
    node.has_tag_name((XSLT, name))
}

fn required<'a>(node: XmlNode<'a, '_>, name: &str) -> Result<&'a str, SyntaxError> {
    node.attribute(name)
        .ok_or_else(|| SyntaxError(format!("{} without {name}", node.tag_name().name())))
}

fn instructions<'a, 'i>(node: XmlNode<'a, 'i>) -> impl Iterator<Item = XmlNode<'a, 'i>> {
    node.children().filter(XmlNode::is_element)
}

fn declared_type(
    node: XmlNode<'_, '_>,
    context: &mut StaticContext,
) -> Result<SequenceType, SyntaxError> {
    node.attribute("as").map_or(Ok(SequenceType::ANY), |text| parse_type(text, context))
}

fn read_function(
    function: XmlNode<'_, '_>,
    context: &mut StaticContext,
) -> Result<UserFunction, SyntaxError> {
    let mut parameters = Vec::new();
    context.locals.clear();
    for parameter in instructions(function).filter(|it| is_named(*it, "param")) {
        parameters.push(declared_type(parameter, context)?);
        context.locals.push(required(parameter, "name")?.to_owned());
    }
    let body: Vec<XmlNode<'_, '_>> =
        instructions(function).filter(|it| !is_named(*it, "param")).collect();
    let value = read_body(&body, context)?;
    context.locals.clear();
    let body = XPathExpr::Converted(Box::new(value), declared_type(function, context)?);
    Ok(UserFunction { parameters, body })
}

/// The value of instructions in a row.
fn read_body(
    body: &[XmlNode<'_, '_>],
    context: &mut StaticContext,
) -> Result<XPathExpr, SyntaxError> {
    let Some((first, rest)) = body.split_first() else {
        return Ok(XPathExpr::Sequence(Vec::new()));
    };
    if is_named(*first, "variable") {
        let value = Box::new(read_variable(*first, context)?);
        let slot = context.locals.len();
        context.locals.push(required(*first, "name")?.to_owned());
        let rest = read_body(rest, context);
        context.locals.pop();
        return Ok(XPathExpr::Let { slot, value, rest: Box::new(rest?) });
    }
    let value = read_instruction(*first, context)?;
    if rest.is_empty() {
        return Ok(value);
    }
    Ok(XPathExpr::Sequence(vec![value, read_body(rest, context)?]))
}

fn read_variable(
    variable: XmlNode<'_, '_>,
    context: &mut StaticContext,
) -> Result<XPathExpr, SyntaxError> {
    let value = if let Some(select) = variable.attribute("select") {
        parse_xpath(select, context)?
    } else if instructions(variable).next().is_none() {
        XPathExpr::UntypedText(variable.text().unwrap_or_default().to_owned())
    } else {
        let body: Vec<XmlNode<'_, '_>> = instructions(variable).collect();
        read_body(&body, context)?
    };
    Ok(XPathExpr::Converted(Box::new(value), declared_type(variable, context)?))
}

fn read_instruction(
    instruction: XmlNode<'_, '_>,
    context: &mut StaticContext,
) -> Result<XPathExpr, SyntaxError> {
    if is_named(instruction, "sequence") {
        return parse_xpath(required(instruction, "select")?, context);
    }
    if is_named(instruction, "value-of") {
        let value = parse_xpath(required(instruction, "select")?, context)?;
        return Ok(XPathExpr::JoinedText(Box::new(value)));
    }
    if is_named(instruction, "choose") {
        let branches: Vec<XmlNode<'_, '_>> = instructions(instruction).collect();
        let mut chosen = XPathExpr::Sequence(Vec::new());
        for branch in branches.into_iter().rev() {
            let body: Vec<XmlNode<'_, '_>> = instructions(branch).collect();
            let value = read_body(&body, context)?;
            chosen = if is_named(branch, "otherwise") {
                value
            } else {
                let condition = parse_xpath(required(branch, "test")?, context)?;
                XPathExpr::If(Box::new(condition), Box::new(value), Box::new(chosen))
            };
        }
        return Ok(chosen);
    }
    Err(SyntaxError(format!("{} in a function is not read", instruction.tag_name().name())))
}
