//! Language models as a port, with the vendors' protocols behind it. What is asked and what the
//! reply is worth is for others to say.

pub mod llm;
