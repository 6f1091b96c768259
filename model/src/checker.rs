//! Visits every state of a protocol, breadth first, and reports a broken property with its path.
//!
//! States are compared in full, not by a hash, so that none is skipped. Liveness is checked over
//! fair steps: those of a world without new faults. From every reachable state, each path of fair
//! steps must lead to a goal; the checker reports the maximum number of ticks. Existing checkers do
//! not offer this: they check *eventually* along one path, and give it up where paths join or form
//! a cycle. Not promised: states beyond the bounds of the protocol.

use std::fmt::Debug;
use std::hash::{BuildHasher, Hash};

/// Something that goes from state to state.
pub trait Protocol {
    /// A complete state.
    type State: Copy + Eq + Hash + Debug;

    /// Where it may begin.
    fn initial_states(&self) -> Vec<Self::State>;

    /// Every step that is possible in this state.
    fn list_steps(&self, state: &Self::State, steps: &mut Vec<ProtocolStep<Self::State>>);

    /// The property that does not hold in this state.
    fn find_broken(&self, state: &Self::State) -> Option<&'static str>;
}

/// A step to another state.
#[derive(Debug, Clone, Copy)]
pub struct ProtocolStep<S> {
    /// The step and its actor.
    pub label: &'static str,
    /// The state after it.
    pub state: S,
    /// Whether it belongs to a world without faults.
    pub fair: bool,
    /// Whether time passes.
    pub ticks: bool,
    /// The property that this step breaks.
    pub broken: Option<&'static str>,
}

/// How a property is broken: the shortest way there.
#[derive(Debug, Clone)]
pub struct Counterexample {
    /// The property.
    pub property: &'static str,
    /// The steps from an initial state, and the state after the last.
    pub path: Vec<String>,
}

/// Every state that can be reached.
pub struct StateGraph<S> {
    states: Vec<S>,
    parents: Vec<u32>,
    slots: Vec<u32>,
    hasher: std::collections::hash_map::RandomState,
    /// From, to, ticks: grouped by `from`, in ascending order.
    fair: Vec<(u32, u32, bool)>,
    /// Steps between states, fair or not.
    pub steps: u64,
    /// The first property that was found broken.
    pub counterexample: Option<Counterexample>,
}

const NONE: u32 = u32::MAX;

impl<S: Copy + Eq + Hash + Debug> StateGraph<S> {
    /// Visits every state; stops at the first that is broken.
    pub fn explore<P: Protocol<State = S>>(protocol: &P) -> Self {
        let mut graph = Self {
            states: Vec::new(),
            parents: Vec::new(),
            slots: vec![NONE; 1 << 16],
            hasher: std::collections::hash_map::RandomState::new(),
            fair: Vec::new(),
            steps: 0,
            counterexample: None,
        };
        for state in protocol.initial_states() {
            graph.insert(state, NONE);
        }
        let (mut at, mut steps) = (0, Vec::new());
        while let Some(state) = graph.states.get(at).copied() {
            let from = index(at);
            if let Some(property) = protocol.find_broken(&state) {
                graph.counterexample =
                    Some(graph.explain(protocol, graph.way_to(from), property, None));
                break;
            }
            steps.clear();
            protocol.list_steps(&state, &mut steps);
            graph.steps += steps.len() as u64;
            for step in &steps {
                if let Some(property) = step.broken {
                    let way = graph.way_to(from);
                    let explained = graph.explain(protocol, way, property, Some(step.label));
                    graph.counterexample = Some(explained);
                    return graph;
                }
                let to = graph.insert(step.state, from);
                if step.fair {
                    graph.fair.push((from, to, step.ticks));
                }
            }
            at += 1;
        }
        graph
    }

    /// How many states there are.
    pub fn count_states(&self) -> usize {
        self.states.len()
    }

    /// The most ticks that fair steps take from any state to one that `is_goal`.
    ///
    /// # Errors
    /// A state from which they may never get there.
    pub fn longest_way<P: Protocol<State = S>>(
        &self,
        protocol: &P,
        property: &'static str,
        is_goal: impl Fn(&S) -> bool,
    ) -> Result<u32, Counterexample> {
        let goals: Vec<bool> = self.states.iter().map(is_goal).collect();
        let mut open = vec![0_u32; self.states.len()];
        let mut into = vec![0_u32; self.states.len() + 1];
        for &(from, to, _) in &self.fair {
            open[from as usize] += 1;
            into[to as usize + 1] += 1;
        }
        for at in 1..into.len() {
            into[at] += into[at - 1];
        }
        let mut next = into.clone();
        let mut edges = vec![(NONE, false); self.fair.len()];
        for &(from, to, ticks) in &self.fair {
            edges[next[to as usize] as usize] = (from, ticks);
            next[to as usize] += 1;
        }
        // Backwards from the goals: a state counts once all of its fair steps do.
        let mut longest_of = vec![0_u32; self.states.len()];
        let mut ways = vec![NONE; self.states.len()];
        let mut known: Vec<u32> =
            (0..self.states.len()).filter(|at| goals[*at]).map(index).collect();
        let (mut reached, mut longest) = (known.len(), 0);
        while let Some(to) = known.pop() {
            let (begin, end) = (into[to as usize] as usize, into[to as usize + 1] as usize);
            for &(from, ticks) in &edges[begin..end] {
                let at = from as usize;
                if goals[at] {
                    continue;
                }
                longest_of[at] = longest_of[at].max(longest_of[to as usize] + u32::from(ticks));
                open[at] -= 1;
                if open[at] == 0 {
                    ways[at] = longest_of[at];
                    longest = longest.max(ways[at]);
                    reached += 1;
                    known.push(from);
                }
            }
        }
        if reached == self.states.len() {
            return Ok(longest);
        }
        // Never resolved: a dead end, a circle, or what leads there. Followed until it repeats itself.
        let is_stuck = |at: u32| !goals[at as usize] && ways[at as usize] == NONE;
        let first = (0..index(self.states.len())).find(|at| is_stuck(*at)).unwrap_or_default();
        let mut way = self.way_to(first);
        while let Some(&at) = way.last()
            && let Some(next) = self.fair_from(at).find(|next| is_stuck(*next))
        {
            way.push(next);
            if way.iter().filter(|seen| **seen == next).count() > 1 {
                break;
            }
        }
        Err(self.explain(protocol, way, property, None))
    }

    fn fair_from(&self, from: u32) -> impl Iterator<Item = u32> + '_ {
        let begin = self.fair.partition_point(|edge| edge.0 < from);
        self.fair[begin..].iter().take_while(move |edge| edge.0 == from).map(|edge| edge.1)
    }

    fn insert(&mut self, state: S, parent: u32) -> u32 {
        if self.states.len() * 2 > self.slots.len() {
            self.grow();
        }
        let mut slot = self.slot_of(&state);
        while self.slots[slot] != NONE {
            if self.states[self.slots[slot] as usize] == state {
                return self.slots[slot];
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        let at = index(self.states.len());
        self.slots[slot] = at;
        self.states.push(state);
        self.parents.push(parent);
        at
    }

    fn slot_of(&self, state: &S) -> usize {
        let hash = self.hasher.hash_one(state);
        usize::try_from(hash & (self.slots.len() as u64 - 1)).unwrap_or_default()
    }

    fn grow(&mut self) {
        self.slots = vec![NONE; self.slots.len() * 2];
        for at in 0..self.states.len() {
            let mut slot = self.slot_of(&self.states[at]);
            while self.slots[slot] != NONE {
                slot = (slot + 1) & (self.slots.len() - 1);
            }
            self.slots[slot] = index(at);
        }
    }

    fn way_to(&self, state: u32) -> Vec<u32> {
        let mut way = vec![state];
        while let Some(&at) = way.last()
            && self.parents[at as usize] != NONE
        {
            way.push(self.parents[at as usize]);
        }
        way.reverse();
        way
    }

    /// The steps from each state of the way to the next, then the last one and the last state.
    fn explain<P: Protocol<State = S>>(
        &self,
        protocol: &P,
        way: Vec<u32>,
        property: &'static str,
        last: Option<&'static str>,
    ) -> Counterexample {
        let mut path = Vec::new();
        for pair in way.windows(2) {
            let (from, to) = (self.states[pair[0] as usize], self.states[pair[1] as usize]);
            let mut steps = Vec::new();
            protocol.list_steps(&from, &mut steps);
            let taken = steps.iter().find(|step| step.state == to);
            path.extend(taken.map(|step| step.label.to_owned()));
        }
        path.extend(last.map(str::to_owned));
        path.extend(way.last().map(|at| format!("{:?}", self.states[*at as usize])));
        Counterexample { property, path }
    }
}

fn index(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(NONE)
}
