//! Finds rings: files of one module that import each other in a circle. `mod.rs` counts as a file, and a
//! re-exported name counts for the file that defines it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The path of a module, from the root of the crate.
type Module = Vec<String>;

/// One `use` path, and whether it is a re-export.
struct Import {
    path: Module,
    is_public: bool,
}

#[derive(Default)]
struct Graph {
    /// The paths that each module names, in `use` or in its code.
    names: BTreeMap<Module, Vec<Module>>,
    /// The re-exports of each module, by name.
    reexports: BTreeMap<Module, BTreeMap<String, Module>>,
}

/// The rings among these sources; paths are relative to `src`.
pub(crate) fn rings<'s>(sources: impl Iterator<Item = (&'s Path, &'s str)>) -> Vec<Vec<String>> {
    let codes: BTreeMap<Module, String> = sources
        .filter(|(path, _)| !is_test(path))
        .map(|(path, text)| (module(path), code(text)))
        .collect();
    let mut graph = Graph::default();
    for (here, text) in &codes {
        let (imports, body) = imports(text);
        let names = graph.names.entry(here.clone()).or_default();
        for import in imports {
            let Some(target) = absolute(&import.path, here, &codes) else {
                continue;
            };
            match (import.is_public, target.last()) {
                (true, Some(_)) => {
                    let name = import.path.last().unwrap().clone();
                    graph
                        .reexports
                        .entry(here.clone())
                        .or_default()
                        .insert(name, target);
                }
                _ => names.push(target),
            }
        }
        let relative = ["crate", "super", "self"];
        for path in paths(&body).filter(|path| relative.contains(&path[0].as_str())) {
            names.extend(absolute(&path, here, &codes));
        }
    }
    graph.rings(&codes)
}

fn is_test(path: &Path) -> bool {
    path.ends_with("tests.rs") || path.components().any(|part| part.as_os_str() == "tests")
}

fn module(path: &Path) -> Module {
    let path = path.with_extension("");
    let mut parts: Module = path
        .components()
        .map(|part| part.as_os_str().to_str().unwrap().to_owned())
        .collect();
    if parts
        .last()
        .is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str()))
    {
        parts.pop();
    }
    parts
}

/// The code of a file, without comments and inline tests.
fn code(text: &str) -> String {
    let tests = text
        .match_indices("#[cfg(test)]\n")
        .map(|(at, mark)| (at, &text[at + mark.len()..]));
    let inline = |next: &str| {
        let line = next.lines().next().unwrap_or_default();
        line.contains("mod ") && line.ends_with('{') && !line.starts_with(' ')
    };
    let end = tests
        .into_iter()
        .find(|(_, next)| inline(next))
        .map_or(text.len(), |(at, _)| at);
    let lines = text[..end]
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// The imports of a file, and the rest of it.
fn imports(code: &str) -> (Vec<Import>, String) {
    let (mut imports, mut body, mut statement) = (Vec::new(), String::new(), None);
    for line in code.lines() {
        let start = line.trim_start();
        let tree = start
            .split_once("use ")
            .filter(|(before, _)| is_visibility(before.trim_end()));
        match (&mut statement, tree) {
            (None, Some((before, tree))) => statement = Some((!before.is_empty(), tree.to_owned())),
            (None, None) => body.extend([line, "\n"]),
            (Some((_, tree)), _) => tree.push_str(start),
        }
        if let Some((is_public, tree)) = statement.take_if(|_| line.ends_with(';')) {
            let add = &mut |path| imports.push(Import { path, is_public });
            leaves(tree.trim_end_matches(';'), &[], add);
        }
    }
    (imports, body)
}

fn is_visibility(text: &str) -> bool {
    text.is_empty() || text == "pub" || (text.starts_with("pub(") && text.ends_with(')'))
}

/// Calls `add` with each path of a tree of imports.
fn leaves(tree: &str, prefix: &[String], add: &mut impl FnMut(Module)) {
    let tree = tree
        .split(" as ")
        .next()
        .filter(|_| !tree.contains('{'))
        .unwrap_or(tree)
        .trim();
    let Some(open) = tree.find('{') else {
        let parts = tree
            .split("::")
            .filter(|part| !part.is_empty() && *part != "self");
        let own = tree.starts_with("self::").then(|| "self".to_owned());
        let path = prefix
            .iter()
            .cloned()
            .chain(own)
            .chain(parts.map(str::to_owned));
        return add(path.collect());
    };
    let before = tree[..open]
        .split("::")
        .filter(|part| !part.is_empty())
        .map(str::to_owned);
    let prefix: Module = prefix.iter().cloned().chain(before).collect();
    let inside = &tree[open + 1..tree.rfind('}').unwrap()];
    let (mut depth, mut from) = (0, 0);
    for (at, byte) in inside.bytes().chain([b',']).enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b',' if depth == 0 => {
                if !inside[from..at].trim().is_empty() {
                    leaves(&inside[from..at], &prefix, add);
                }
                from = at + 1;
            }
            _ => {}
        }
    }
}

/// The paths of at least two names in a piece of code.
fn paths(code: &str) -> impl Iterator<Item = Module> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    code.split(move |c: char| !is_part(c))
        .filter(|word| word.contains("::"))
        .map(|word| {
            word.split("::")
                .filter(|part| !part.is_empty())
                .map(str::to_owned)
                .collect()
        })
        .filter(|path: &Module| path.len() > 1)
}

/// A path from the root of the crate; `None` for a path into another crate.
fn absolute(
    path: &[String],
    here: &[String],
    modules: &BTreeMap<Module, String>,
) -> Option<Module> {
    let first = path.first()?;
    if first == "crate" {
        return Some(path[1..].to_vec());
    }
    let mut base = here.to_vec();
    let rest = if first == "self" { &path[1..] } else { path };
    let up = rest.iter().take_while(|part| *part == "super").count();
    base.truncate(base.len().saturating_sub(up));
    base.extend_from_slice(&rest[up..]);
    let is_relative = first == "self" || up > 0;
    let child = [here, &rest[..rest.len().min(1)]].concat();
    (is_relative || modules.contains_key(&child)).then_some(base)
}

impl Graph {
    /// The module that defines the target of a path.
    fn defines(
        &self,
        target: &[String],
        modules: &BTreeMap<Module, String>,
        depth: usize,
    ) -> Option<Module> {
        let length = (1..=target.len())
            .rev()
            .find(|&n| modules.contains_key(&target[..n]))?;
        let (head, rest) = target.split_at(length);
        let reexport = rest
            .first()
            .and_then(|name| self.reexports.get(head)?.get(name));
        match reexport.filter(|_| depth < 9) {
            Some(real) => self.defines(&[real.as_slice(), &rest[1..]].concat(), modules, depth + 1),
            None => Some(head.to_vec()),
        }
    }

    fn rings(&self, modules: &BTreeMap<Module, String>) -> Vec<Vec<String>> {
        let mut arrows: BTreeMap<&Module, BTreeSet<Module>> = BTreeMap::new();
        for (from, targets) in &self.names {
            let to = targets
                .iter()
                .filter_map(|target| self.defines(target, modules, 0));
            let near = to.filter(|to| to != from && !from.is_empty() && to[..1] == from[..1]);
            arrows.insert(from, near.collect());
        }
        let reach = |start: &Module| {
            let (mut seen, mut left) = (BTreeSet::new(), vec![start.clone()]);
            while let Some(next) = left.pop() {
                let new = arrows
                    .get(&next)
                    .into_iter()
                    .flatten()
                    .filter(|to| !seen.contains(*to));
                let new: Vec<Module> = new.cloned().collect();
                seen.extend(new.iter().cloned());
                left.extend(new);
            }
            seen
        };
        let reached: BTreeMap<&Module, BTreeSet<Module>> =
            self.names.keys().map(|from| (from, reach(from))).collect();
        let mut rings = BTreeSet::new();
        for (from, to) in &reached {
            if to.contains(*from) {
                let back = to.iter().filter(|other| reached[other].contains(*from));
                rings.insert(back.map(|module| module.join("/")).collect::<Vec<_>>());
            }
        }
        rings.into_iter().collect()
    }
}
