//! From bytes to pages: format, limits, text layer or image per page.
