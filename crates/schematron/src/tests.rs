//! XPath and Schematron on small documents, by what the standards say.

use std::fmt::Write as _;

use docmill_core::model::{RuleReport, RuleSeverity};
use docmill_formats::xml::XmlText;
use serde_json::json;

use crate::evaluator::MAX_SHARED_ITEMS;
use crate::library::{MAX_FINDINGS, RuleLibrary, RulesError};

const HEAD: &str = r#"<schema xmlns="http://purl.oclc.org/dsdl/schematron" xmlns:x="http://www.w3.org/1999/XSL/Transform">
<ns prefix="i" uri="urn:i"/><ns prefix="u" uri="urn:u"/>"#;

/// The rules of one set, as in a rules file.
fn library_of(body: &str, applies: &str) -> Result<RuleLibrary, RulesError> {
    let set = json!({
        "name": "Set", "version": "1", "applies": applies,
        "schematron": format!("{HEAD}{body}</schema>"),
        "includes": {
            "more.sch": r#"<pattern xmlns="http://purl.oclc.org/dsdl/schematron">
                <let name="included" value="7"/></pattern>"#,
        },
    });
    RuleLibrary::from_json(&json!({ "format": 1, "sets": [set] }).to_string())
}

fn check(library: &RuleLibrary, document: &str) -> RuleReport {
    let text = XmlText::decode(document.as_bytes()).unwrap();
    library.check(&text.parse_tree().unwrap())
}

/// `rule location` of each finding.
fn findings(report: &RuleReport) -> Vec<String> {
    let texts = report.findings.iter().map(|it| format!("{} {}", it.rule, it.location));
    texts.collect()
}

const DOCUMENT: &str = r#"<i:a xmlns:i="urn:i" n="5"><i:b c="x">1.10</i:b><i:b c="y">2.20</i:b>
<i:d> two  words </i:d><i:e/><i:f>abc</i:f><!--note--><i:g><i:b>3</i:b></i:g></i:a>"#;

/// `true`, `false` or the code of the error.
fn verdict(test: &str) -> String {
    let test = test.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
    let body = format!(
        r#"<pattern><rule context="/i:a"><assert id="t" test="{test}">-</assert></rule></pattern>"#
    );
    let library = library_of(&body, "true()").unwrap_or_else(|error| panic!("{error}"));
    match check(&library, DOCUMENT).findings.first() {
        None => "true".to_owned(),
        Some(finding) => finding.error.clone().unwrap_or_else(|| "false".to_owned()),
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn expressions_have_the_value_that_xpath_gives_them() {
    #[rustfmt::skip]
    let table = [
        // Comparison: any pair; untyped text takes the other's type.
        ("i:b = 1.1",                                      "true"),
        ("i:b = '1.10'",                                   "true"),
        ("i:b = '1.1'",                                    "false"),
        ("i:b != i:b",                                     "true"),
        ("i:f = 1",                                        "FORG0001"),
        ("i:f = true()",                                   "FORG0001"),
        ("'1' = 1",                                        "XPTY0004"),
        ("() = ()",                                        "false"),
        ("i:f eq 'abc'",                                   "true"),
        ("number(i:f) = number(i:f)",                      "false"),
        ("number(i:f) != 1",                               "true"),
        // Numbers: decimals are exact, untyped text is a double.
        ("xs:decimal('0.1') + xs:decimal('0.2') = 0.3",    "true"),
        ("sum(i:b/xs:decimal(.)) = 3.3",                   "true"),
        ("sum(i:b) = 3.3000000000000003e0",                "true"),
        ("sum(()) = 0 and count(()) = 0",                  "true"),
        ("1 div 3 = 0.333333333333333333",                 "true"),
        ("7 idiv 2 = 3 and 7 mod 2 = 1 and -7 idiv 2 = -3", "true"),
        ("1 div 0 = 1",                                    "FOAR0001"),
        ("1e0 div 0 > 1",                                  "true"),
        ("round(2.5) = 3 and round(-2.5) = -2",            "true"),
        ("xs:decimal(i:f) = 1",                            "FORG0001"),
        ("xs:integer('1.0') = 1",                          "FORG0001"),
        ("2 + 3 * 4 = 14 and (2 + 3) * 4 = 20",            "true"),
        ("10 - 2 - 3 = 5",                                 "true"),
        ("max((1, 3, 2)) = 3 and min((2, 1)) = 1 and avg((1, 2)) = 1.5", "true"),
        // Paths, positions and axes.
        ("count(//i:b) = 3 and count(i:b) = 2",            "true"),
        ("i:b[2] = '2.20' and i:b[last()]/@c = 'y'",       "true"),
        ("count(//i:b[1]) = 2 and count((//i:b)[1]) = 1",  "true"),
        ("count(i:b[@c]) = 2 and count(i:b[c]) = 0",       "true"),
        ("count(//@c) = 2 and count(i:g//@c) = 0 and //@n = '5'", "true"),
        ("count(//(i:b|i:e)) = 4 and count(//(i:b|i:e)/.[1]) = 4", "true"),
        // Elements that the document does not have: what stands before them still counts.
        ("exists(i:f[xs:decimal(.) = 1]/i:absent)",        "FORG0001"),
        ("exists('x'/i:absent)",                           "XPTY0004"),
        ("exists(i:f/i:absent/i:b) or exists(//i:absent)", "false"),
        ("i:g/i:b/ancestor::i:a/@n = '5'",                 "true"),
        ("name(i:g/i:b/../..) = 'i:a'",                    "true"),
        ("i:d/preceding-sibling::i:b[1] = '2.20'",         "true"),
        ("count(i:b/following-sibling::*) = 5",            "true"),
        ("count(i:g/preceding::i:b) = 2",                  "true"),
        ("count(i:b | i:b | i:e) = 3",                     "true"),
        ("count(* except i:b) = 4",                        "true"),
        ("count(comment()) = 1 and count(@*) = 1",         "true"),
        ("i:b/(@c, .)[1] = ('x', 'y')",                    "true"),
        ("count(*:b) = 2 and count(i:*) = 6",              "true"),
        ("self::i:a and not(self::i:b)",                   "true"),
        // Texts.
        ("normalize-space(i:d) = 'two words'",             "true"),
        ("normalize-space(i:b) = ''",                      "XPTY0004"),
        ("string-length(normalize-space(i:z)) = 0",        "true"),
        ("substring('12345', 2, 3) = '234' and substring('12345', 0, 3) = '12'", "true"),
        ("substring-after('1.234', '.') = '234' and substring-before('a-b', '-') = 'a'", "true"),
        ("translate('abc', 'abc', 'AB') = 'AB'",           "true"),
        ("tokenize('a b', '\\s') = 'b' and count(tokenize('', ',')) = 0", "true"),
        ("replace('a1b2', '[0-9]', '') = 'ab' and replace('ab', '(a)', '$1$1') = 'aab'", "true"),
        ("matches('a', '(')",                              "FORX0002"),
        ("replace('a', 'x?', '')",                         "FORX0002"),
        ("string-join(for $c in string-to-codepoints('AB') return string($c - 55), '') = '1011'", "true"),
        ("xs:decimal('123456789012345678901234567890123456789012345678901234567890') mod 97 = 10", "true"),
        ("contains(' AE E S ', concat(' ', 'E', ' '))",    "true"),
        ("concat('a', 1, 2.50, true()) = 'a12.5true'",     "true"),
        // Conditions and bindings.
        ("if (i:e) then true() else false()",              "true"),
        ("some $x in i:b satisfies $x > 2",                "true"),
        ("some $x in i:b satisfies '2.20' = $x",           "true"),
        ("some $x in () satisfies xs:decimal(i:f) = $x",   "false"),
        ("some $x in i:b satisfies i:b[$x > 2] = $x",      "true"),
        ("some $x in i:b satisfies /i:a/i:b[. = $x] = $x", "true"),
        ("every $x in i:b satisfies //i:b = $x",           "true"),
        ("some $i:x in i:b satisfies $i:x > 2",            "true"),
        ("every $x in i:b satisfies $x > 2",               "false"),
        ("every $x in i:z satisfies false()",              "true"),
        ("(for $x in (1 to 3), $y in (1, 2) return $x * $y)[6] = 6", "true"),
        ("'2024-02-29' castable as xs:date and not('2023-02-29' castable as xs:date)", "true"),
        ("xs:date('2026-01-02') > xs:date('2026-01-01')",  "true"),
        ("distinct-values((1, 1.0, 2))[2] = 2",            "true"),
        ("i:b",                                            "true"),
        ("(1, 2)",                                         "FORG0006"),
        // An operand that decides does so beside one without a value.
        ("i:f = 1 or true()",                              "true"),
        ("i:f = 1 and false()",                            "false"),
        ("true() or i:f = 1",                              "true"),
        ("not(i:f = 1 or false())",                        "FORG0001"),
    ];
    for (test, expected) in table {
        assert_eq!(verdict(test), expected, "{test}");
    }
}

#[test]
fn rules_with_an_expression_that_is_not_read_are_refused_as_a_whole() {
    for test in [
        "it's",
        "1 +",
        "(1",
        "$absent",
        "z:a",
        "unknown()",
        "string-length(1, 2)",
        "xs:duration('P1D')",
        "namespace::a",
        "(: open",
        "a b",
    ] {
        let body = format!(
            r#"<pattern><rule context="i:a"><assert id="t" test="{test}">-</assert></rule></pattern>"#
        );
        let error = library_of(&body, "true()").unwrap_err().to_string();
        assert!(error.starts_with("the rules Set: "), "{test}: {error}");
    }
    let deep = "(".repeat(200) + "1" + &")".repeat(200);
    let body = format!(
        r#"<pattern><rule context="i:a"><assert id="t" test="{deep}">-</assert></rule></pattern>"#
    );
    assert!(library_of(&body, "true()").unwrap_err().to_string().contains("too deep"));
    for context in ["i:b[1] | (i:c | i:d)[1]", "count(i:a)", "ancestor::i:a", "1"] {
        let body = format!(r#"<pattern><rule context="{context}"/></pattern>"#);
        let refused = library_of(&body, "true()").is_err();
        assert!(refused, "{context}");
    }
    let file = json!({ "format": 2, "sets": [] }).to_string();
    assert!(matches!(RuleLibrary::from_json(&file), Err(RulesError::Format(2))));
}

#[test]
fn of_each_pattern_the_first_rule_that_matches_a_node_is_applied_and_no_other() {
    let rule = |id: &str, context: &str| {
        format!(r#"<rule context="{context}"><assert id="{id}" test="false()">-</assert></rule>"#)
    };
    let table: [(&str, &[&str], &[&str]); 10] = [
        ("by name", &["i:b", "*"], &["0 /i:a/i:b[1]", "0 /i:a/i:b[2]", "0 /i:a/i:g/i:b"]),
        ("by parent", &["i:g/i:b"], &["0 /i:a/i:g/i:b"]),
        ("by root", &["/i:a/i:g//i:b", "/i:b"], &["0 /i:a/i:g/i:b"]),
        ("at any depth", &["//i:g"], &["0 /i:a/i:g"]),
        ("by condition", &["i:b[@c = 'y']", "i:b[. = 3]"], &["0 /i:a/i:b[2]", "1 /i:a/i:g/i:b"]),
        ("alternatives", &["i:e | i:f"], &["0 /i:a/i:e", "0 /i:a/i:f"]),
        ("alternatives inside", &["(/i:a | /i:z)/(i:e | i:d)"], &["0 /i:a/i:d", "0 /i:a/i:e"]),
        ("attributes", &["@c"], &["0 /i:a/i:b[1]/@c", "0 /i:a/i:b[2]/@c"]),
        ("position", &["i:b[2]"], &["0 /i:a/i:b[2]"]),
        ("the root", &["/"], &["0 /"]),
    ];
    for (name, contexts, expected) in table {
        let rules: String =
            contexts.iter().enumerate().map(|(at, it)| rule(&at.to_string(), it)).collect();
        let library = library_of(&format!("<pattern>{rules}</pattern>"), "true()").unwrap();
        let found = findings(&check(&library, DOCUMENT));
        let found: Vec<&str> = found
            .iter()
            .map(String::as_str)
            .filter(|it| !it.starts_with("1 ") || expected.contains(it))
            .collect();
        assert_eq!(found, expected, "{name}");
    }
    let twice = rule("p", "i:e") + "</pattern><pattern>" + &rule("q", "i:e");
    let library = library_of(&format!("<pattern>{twice}</pattern>"), "true()").unwrap();
    assert_eq!(findings(&check(&library, DOCUMENT)), ["p /i:a/i:e", "q /i:a/i:e"]);
}

#[test]
#[rustfmt::skip]
fn variables_functions_abstract_patterns_and_messages_are_those_of_schematron() {
    let body = r#"
<let name="late" value="$early + 1"/><let name="early" value="1"/>
<include href="more.sch"/>
<x:function name="u:twice" as="xs:decimal"><x:param name="of" as="xs:decimal"/>
  <x:variable name="two">2</x:variable><x:value-of select="$of * xs:decimal($two)"/></x:function>
<x:function name="u:down" as="xs:integer"><x:param name="n"/>
  <x:choose><x:when test="$n = 0"><x:sequence select="0"/></x:when>
  <x:otherwise><x:sequence select="u:down($n - 1) + 1"/></x:otherwise></x:choose></x:function>
<pattern abstract="true" id="form"><rule context="$where">
  <let name="own" value="name(.)"/>
  <assert id="$id-is-no-parameter" flag="warning" test="$own = '$name'"> <name/> is
    <value-of select="$own"/>, not $name </assert></rule></pattern>
<pattern is-a="form"><param name="where" value="i:e"/><param name="name" value="i:z"/></pattern>
<pattern><rule context="i:f" role="information">
  <assert id="late" test="$late = 2 and $included = 7">-</assert>
  <assert id="twice" test="u:twice(1.5) = 3">-</assert>
  <assert id="untyped" test="u:twice(.) = 3">-</assert>
  <assert id="down" test="u:down(20) = 20">-</assert>
  <assert id="too deep" test="u:down(2000) = 2000">-</assert>
  <report id="reported" test="true()">-</report>
  <report id="silent" test="false()">-</report>
</rule></pattern>"#;
    let report = check(&library_of(body, "true()").unwrap(), DOCUMENT);
    let found: Vec<(&str, Option<&str>)> =
        report.findings.iter().map(|it| (it.rule.as_str(), it.error.as_deref())).collect();
    let expected = [("$id-is-no-parameter", None), ("untyped", Some("FORG0001")), ("too deep", Some("XTDE0640")), ("reported", None)];
    assert_eq!(found, expected);
    let severities: Vec<RuleSeverity> = report.findings.iter().map(|it| it.severity).collect();
    assert_eq!(severities[..2], [RuleSeverity::Warning, RuleSeverity::Information]);
    assert_eq!(report.findings[0].text, "i:e is i:e, not $name");
}

#[test]
fn a_set_is_applied_to_the_documents_that_it_is_meant_for() {
    let body =
        r#"<pattern><rule context="*"><assert id="t" test="false()">-</assert></rule></pattern>"#;
    for (applies, sets) in [("/i:a", 1), ("/i:z", 0), ("/i:a/i:f = 1", 0)] {
        let library = library_of(body, applies).unwrap();
        assert_eq!(check(&library, DOCUMENT).sets.len(), sets, "{applies}");
    }
}

#[test]
fn a_document_that_makes_a_rule_quadratic_ends_at_the_budget_and_says_so() {
    let body = r#"<pattern><rule context="/i:a">
        <assert id="t" test="count(distinct-values(//i:b)) = 0">-</assert></rule></pattern>"#;
    let library = library_of(body, "true()").unwrap();
    let mut document = "<i:a xmlns:i='urn:i'>".to_owned();
    for number in 0..9_000 {
        write!(document, "<i:b>{number}</i:b>").unwrap();
    }
    document.push_str("</i:a>");
    assert!(check(&library, &document).is_cut);
    assert!(!check(&library, DOCUMENT).is_cut);
}

#[test]
fn a_path_from_the_root_costs_the_same_for_one_line_and_for_ten_thousand() {
    let rule = r#"<pattern><rule context="i:l"><assert id="t" test="count(/i:a/i:l/i:q) > 1">-</assert></rule></pattern>"#;
    let lines = "<i:l><i:q/></i:l>".repeat(10_000);
    let report = check(
        &library_of(rule, "true()").unwrap(),
        &format!(r#"<i:a xmlns:i="urn:i">{lines}</i:a>"#),
    );
    assert!(!report.is_cut && report.findings.is_empty(), "the budget is spent");
}

#[test]
fn a_path_of_very_many_nodes_is_not_kept_in_memory_but_costs_its_steps_again() {
    let rule = r#"<pattern><rule context="i:k"><assert id="t" test="count(//i:l) > 1">-</assert></rule></pattern>"#;
    let library = library_of(rule, "true()").unwrap();
    for (count, is_cut) in [(MAX_SHARED_ITEMS, false), (MAX_SHARED_ITEMS + 1, true)] {
        let (lines, rules) = ("<i:l/>".repeat(count), "<i:k/>".repeat(400));
        let document = format!(r#"<i:a xmlns:i="urn:i">{lines}{rules}</i:a>"#);
        assert_eq!(check(&library, &document).is_cut, is_cut, "{count}");
    }
}

#[test]
fn findings_and_numbers_have_an_end() {
    let body = r#"<pattern><rule context="i:b"><assert id="t" test="false()">-</assert></rule>
        <rule context="i:n"><assert id="n" test="xs:decimal(.) * xs:decimal(.) > 0">-</assert></rule>
        </pattern>"#;
    let library = library_of(body, "true()").unwrap();
    let many = MAX_FINDINGS + 7;
    let report = check(&library, &format!("<i:a xmlns:i='urn:i'>{}</i:a>", "<i:b/>".repeat(many)));
    assert_eq!((report.findings.len(), report.more_findings), (MAX_FINDINGS, 7));
    for (digits, error) in [(150, None), (350, Some("FOAR0002")), (500, Some("FORG0001"))] {
        let number = "9".repeat(digits);
        let report = check(&library, &format!("<i:n xmlns:i='urn:i'>{number}</i:n>"));
        let found = report.findings.first().and_then(|it| it.error.as_deref());
        assert_eq!(found, error, "{digits} digits");
    }
}

/// `XPTY0004` where an argument of another type than the declared one is passed, else `true`.
#[test]
fn arguments_are_of_the_declared_type_of_node_or_value() {
    #[rustfmt::skip]
    let table = [
        ("element()?",  "i:none",       "true"),
        ("element()?",  "i:d",          "true"),
        ("element()?",  "i:b",          "XPTY0004"),
        ("element()?",  "i:b[1]/@c",    "XPTY0004"),
        ("element()?",  "'text'",       "XPTY0004"),
        ("element()",   "i:none",       "XPTY0004"),
        ("element()+",  "i:b",          "true"),
        ("element()*",  "(i:b, 1)",     "XPTY0004"),
        ("attribute()", "i:b[1]/@c",    "true"),
        ("text()",      "i:d/text()",   "true"),
        ("node()*",     "(i:b, @n)",    "true"),
        ("node()",      "1",            "XPTY0004"),
        ("item()",      "1",            "true"),
        ("item()",      "(1, 2)",       "XPTY0004"),
        ("xs:string",   "i:d",          "true"),
    ];
    for (declared, argument, expected) in table {
        let body = format!(
            r#"<x:function name="u:f"><x:param name="of" as="{declared}"/><x:sequence select="true()"/></x:function>
            <pattern><rule context="/i:a"><assert id="t" test="u:f({argument})">-</assert></rule></pattern>"#
        );
        let library = library_of(&body, "true()").unwrap_or_else(|error| panic!("{error}"));
        let found = check(&library, DOCUMENT).findings.first().map(|it| it.error.clone());
        let found = found.map_or("true".to_owned(), |error| error.unwrap_or("false".to_owned()));
        assert_eq!(found, expected, "{argument} as {declared}");
    }
}

#[test]
fn a_child_is_found_by_its_name_among_few_and_among_many_and_named_as_it_is_written() {
    let body = r#"<pattern><rule context="//i:l"><assert id="n" test="count(i:b) = xs:integer(@n) and not(i:zz)">-</assert>
        <assert id="t" test="every $b in i:b satisfies ends-with(name($b), 'b') and i:*[last()]/name() = 'j:c'"><value-of select="i:b/name()"/></assert></rule></pattern>"#;
    let library = library_of(body, "true()").unwrap();
    for count in [1_usize, 31, 32, 90] {
        let (all, other) = ("<i:b/>".repeat(count), "<i:b n='0'><i:b/></i:b>");
        let line = |children: &str| format!("<i:l n='{count}'>{children}<j:c/></i:l>");
        let lines = [line(&all), line(&all), format!("<i:l n='1'>{other}<j:c/></i:l>")].concat();
        let document = format!("<i:a xmlns:i='urn:i' xmlns:j='urn:i'>{lines}</i:a>");
        assert_eq!(findings(&check(&library, &document)), [""; 0], "{count}");
        let document = document.replace("<j:c/>", "<j:c/><i:b/>");
        let wrong = check(&library, &document).findings;
        assert_eq!(wrong.len(), 6, "{count}");
        assert_eq!(wrong[0].location, "/i:a/i:l[1]", "{count}");
    }
}
