//! Kinds of documents as data: schema, prompt, rules and labels from a folder.
