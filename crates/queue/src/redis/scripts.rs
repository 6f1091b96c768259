//! The transitions, each one script that Redis runs as a whole: other clients see no state between
//! two steps. The texts are the `.lua` files beside this one.

use std::sync::LazyLock;

use ::redis::Script;

/// A script with its prelude.
macro_rules! script {
    ($name:literal) => {
        LazyLock::new(|| Script::new(concat!(include_str!("prelude.lua"), include_str!($name))))
    };
}

pub(super) static ADD: LazyLock<Script> = script!("add.lua");
pub(super) static LEASE: LazyLock<Script> = script!("lease.lua");
pub(super) static CHANGE: LazyLock<Script> = script!("change.lua");
pub(super) static COMPLETE: LazyLock<Script> = script!("complete.lua");
pub(super) static CLEAN: LazyLock<Script> = script!("clean.lua");
pub(super) static FOREIGN: LazyLock<Script> = script!("foreign.lua");
pub(super) static DEAD: LazyLock<Script> = script!("dead.lua");

/// Items that one run of a script takes at most: it holds up every other client meanwhile.
pub(super) const AT_A_TIME: usize = 100;
