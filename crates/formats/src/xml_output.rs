//! XML that the program writes, element by element. Names are the program's own; values are escaped.

/// XML that is being written, element by element.
pub(crate) struct XmlOutput {
    text: String,
    open: Vec<String>,
}

impl XmlOutput {
    /// Begins with the root and its namespaces.
    pub(crate) fn start(root: &str, namespaces: &[(&str, &str)]) -> Self {
        let text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned();
        let mut output = Self { text, open: Vec::new() };
        output.write_tag(root, namespaces);
        output.text.push('\n');
        output.open.push(root.to_owned());
        output
    }

    fn write_tag(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.text.push_str(&"  ".repeat(self.open.len()));
        self.text.push('<');
        self.text.push_str(name);
        for (name, value) in attributes {
            self.text.push_str(&format!(" {name}=\"{}\"", escape(value)));
        }
        self.text.push('>');
    }

    /// Begins an element that holds others.
    pub(crate) fn open(&mut self, name: &str) {
        self.open_with(name, &[]);
    }

    /// The same, with attributes.
    pub(crate) fn open_with(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.write_tag(name, attributes);
        self.text.push('\n');
        self.open.push(name.to_owned());
    }

    /// Ends the innermost open element.
    pub(crate) fn close(&mut self) {
        if let Some(name) = self.open.pop() {
            self.text.push_str(&format!("{}</{name}>\n", "  ".repeat(self.open.len())));
        }
    }

    /// An element of text, with attributes.
    pub(crate) fn leaf(&mut self, name: &str, attributes: &[(&str, &str)], value: &str) {
        self.write_tag(name, attributes);
        self.text.push_str(&format!("{}</{name}>\n", escape(value)));
    }

    /// An element of text.
    pub(crate) fn value(&mut self, name: &str, value: &str) {
        self.leaf(name, &[], value);
    }

    /// An element of text within another.
    pub(crate) fn within(&mut self, parent: &str, name: &str, value: &str) {
        self.open(parent);
        self.value(name, value);
        self.close();
    }

    /// Ends all open elements.
    pub(crate) fn finish(mut self) -> String {
        while !self.open.is_empty() {
            self.close();
        }
        self.text
    }
}

/// Text as XML has it; characters that XML 1.0 does not allow are left out.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => {}
            c if c.is_control() => {}
            c => escaped.push(c),
        }
    }
    escaped
}
