//! What a message body means. Pure: nothing is looked up.
