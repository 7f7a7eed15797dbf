//! Finds the imports between the modules of a crate: in `use` declarations and in paths that begin
//! with `crate`, `super`, `self`, a child module or an imported module. A re-exported item counts
//! as an import from the module that defines it. `mod NAME;` and tests do not count.

use super::rust_tokens::file_tokens;
use std::collections::{BTreeMap, BTreeSet};

/// A module's path from the root of its crate.
type ModulePath = Vec<String>;

/// The imports between the modules of one crate.
#[derive(Default)]
pub(super) struct ModuleImports {
    /// The modules that each module imports from. The root is `crate`.
    imports: BTreeMap<String, BTreeSet<String>>,
    /// `MODULE: ITEM` for each item that a module imports from its parent.
    parent_imports: BTreeSet<String>,
}

/// The paths and names of one file.
struct ParsedModule {
    path: ModulePath,
    /// Every path that the file names, from the root of the crate, with the parts of `use`.
    references: BTreeSet<ModulePath>,
    /// The path from the root of the crate for each name that a `use` declares.
    names: BTreeMap<String, ModulePath>,
    /// Names in other crates that a `use` declares.
    foreign_names: BTreeSet<String>,
    /// The modules that the file imports with `::*`.
    globs: Vec<ModulePath>,
    /// Functions, types, constants and so on that the file defines.
    definitions: BTreeSet<String>,
}

/// What a path refers to.
enum Target {
    Module,
    /// The module that defines an item, and the name of the item.
    Item(ModulePath, String),
    /// Something in another crate.
    Foreign,
}

const DEFINING_KEYWORDS: [&str; 8] = ["fn", "struct", "enum", "union", "trait", "type", "const", "static"];

impl ModuleImports {
    /// Reads a crate from its files: the path of each file below `src`, and its text.
    pub(super) fn read(files: &[(String, String)]) -> ModuleImports {
        let modules = parse_crate(files);
        let mut imports = ModuleImports::default();
        for module in modules.values() {
            for reference in &module.references {
                imports.add(&modules, module, reference);
            }
        }
        imports
    }

    fn add(&mut self, modules: &BTreeMap<ModulePath, ParsedModule>, module: &ParsedModule, path: &[String]) {
        // A path to a module is no import; the items of the module that the code uses are.
        let Target::Item(from, item) = resolve(modules, path, 0) else { return };
        if from == module.path {
            return;
        }
        self.imports.entry(display(&module.path)).or_default().insert(display(&from));
        if module.path.split_last().is_some_and(|(_, parent)| parent == from) {
            self.parent_imports.insert(format!("{}: {item}", display(&module.path)));
        }
    }

    /// The groups of modules that import each other, directly or through others.
    pub(super) fn cycles(&self) -> Vec<BTreeSet<String>> {
        let reached: BTreeMap<&String, BTreeSet<&String>> =
            self.imports.keys().map(|module| (module, self.reached_from(module))).collect();
        let group = |module: &String| -> BTreeSet<String> {
            let mutual = reached[module]
                .iter()
                .filter(|other| reached.get(*other).is_some_and(|modules| modules.contains(module)));
            mutual.map(|other| (*other).clone()).collect()
        };
        let groups: BTreeSet<BTreeSet<String>> = self.imports.keys().map(group).collect();
        groups.into_iter().filter(|group| group.len() > 1).collect()
    }

    fn reached_from<'a>(&'a self, start: &'a String) -> BTreeSet<&'a String> {
        let (mut reached, mut pending) = (BTreeSet::new(), vec![start]);
        while let Some(module) = pending.pop() {
            let next = self.imports.get(module).into_iter().flatten();
            pending.extend(next.filter(|next| reached.insert(*next)));
        }
        reached
    }

    /// One line for each item that a module imports from its parent.
    pub(super) fn parent_imports(&self) -> &BTreeSet<String> {
        &self.parent_imports
    }
}

fn display(path: &[String]) -> String {
    if path.is_empty() { "crate".to_owned() } else { path.join("::") }
}

/// The path of the module in `file`: `lib.rs`, `a.rs`, `a/mod.rs` or `a/b.rs`.
fn module_path(file: &str) -> ModulePath {
    let name = file.strip_suffix(".rs").unwrap_or(file);
    let mut path: ModulePath = name.split('/').map(str::to_owned).collect();
    let is_root = path.len() == 1 && ["lib", "main"].contains(&name);
    if is_root || path.last().is_some_and(|last| last == "mod") {
        path.pop();
    }
    path
}

fn parse_crate(files: &[(String, String)]) -> BTreeMap<ModulePath, ParsedModule> {
    let has_library = files.iter().any(|(file, _)| file == "lib.rs");
    let files = files.iter().filter(|(file, _)| !(has_library && file == "main.rs"));
    let parts: BTreeMap<ModulePath, _> =
        files.map(|(file, text)| (module_path(file), file_tokens(text))).collect();
    let tests: BTreeSet<ModulePath> = parts
        .iter()
        .flat_map(|(path, file)| file.test_modules.iter().map(|name| child(path, name)))
        .collect();
    let is_test = |path: &ModulePath| (0..=path.len()).any(|length| tests.contains(&path[..length]));
    let paths: BTreeSet<ModulePath> = parts.keys().filter(|path| !is_test(path)).cloned().collect();
    let files = parts.iter().filter(|(path, _)| paths.contains(*path));
    files.map(|(path, file)| (path.clone(), FileParser::parse(path, &file.tokens, &paths))).collect()
}

fn child(path: &[String], name: &str) -> ModulePath {
    [path, &[name.to_owned()]].concat()
}

/// Resolves a path from the root of the crate. `re_exports` is the number of re-exports that led to
/// `path`. If there are more than 10, no further one is followed, because re-exports can form a
/// cycle.
fn resolve(modules: &BTreeMap<ModulePath, ParsedModule>, path: &[String], re_exports: usize) -> Target {
    let mut module = ModulePath::new();
    for (index, name) in path.iter().enumerate() {
        let next = child(&module, name);
        if modules.contains_key(&next) {
            module = next;
            continue;
        }
        let Some(parsed) = modules.get(&module) else { return Target::Foreign };
        if parsed.definitions.contains(name) || re_exports > 10 {
            return Target::Item(module, name.clone());
        }
        if let Some(target) = parsed.names.get(name) {
            return resolve(modules, &[target, &path[index + 1..]].concat(), re_exports + 1);
        }
        if parsed.foreign_names.contains(name) {
            return Target::Foreign;
        }
        let glob_paths = parsed.globs.iter().map(|glob| [glob, &path[index..]].concat());
        let targets = glob_paths.map(|path| resolve(modules, &path, re_exports + 1));
        let defines = |from: &ModulePath, item: &String| modules[from].definitions.contains(item);
        let mut targets =
            targets.filter(|target| matches!(target, Target::Item(from, item) if defines(from, item)));
        return targets.next().unwrap_or(Target::Item(module, name.clone()));
    }
    Target::Module
}

/// Reads the tokens of one file.
struct FileParser<'a> {
    tokens: &'a [String],
    /// Index of the next token.
    index: usize,
    paths: &'a BTreeSet<ModulePath>,
    /// The inline modules around the next token. The number is the brace depth at which each ends.
    inline: Vec<(String, usize)>,
    depth: usize,
    module: ParsedModule,
}

impl<'a> FileParser<'a> {
    fn parse(path: &[String], tokens: &'a [String], paths: &'a BTreeSet<ModulePath>) -> ParsedModule {
        let module = ParsedModule {
            path: path.to_vec(),
            references: BTreeSet::new(),
            names: BTreeMap::new(),
            foreign_names: BTreeSet::new(),
            globs: Vec::new(),
            definitions: BTreeSet::new(),
        };
        let mut parser = FileParser { tokens, index: 0, paths, inline: Vec::new(), depth: 0, module };
        while parser.index < tokens.len() {
            parser.read_use_or_skip();
        }
        (parser.index, parser.depth, parser.inline) = (0, 0, Vec::new());
        while parser.index < tokens.len() {
            parser.read_path_or_skip();
        }
        parser.module
    }

    fn token(&self, offset: usize) -> &str {
        self.tokens.get(self.index + offset).map_or("", String::as_str)
    }

    /// The first pass: reads a `use` or the name of a definition.
    fn read_use_or_skip(&mut self) {
        if self.token(0) == "use" && self.token(1) != "<" {
            self.index += 1;
            let start = if self.token(0) == "::" { vec![String::new()] } else { Vec::new() };
            self.index += start.len();
            self.read_use_tree(start);
            return;
        }
        if DEFINING_KEYWORDS.contains(&self.token(0)) {
            self.module.definitions.insert(self.token(1).to_owned());
        }
        if self.token(0) == "macro_rules" && self.token(1) == "!" {
            self.module.definitions.insert(self.token(2).to_owned());
        }
        self.step();
    }

    /// Reads one tree of a `use`, up to the comma, brace or semicolon after it.
    fn read_use_tree(&mut self, mut path: ModulePath) {
        loop {
            match self.token(0) {
                "" | ";" | "," | "}" => return self.declare(&path, None),
                "::" => self.index += 1,
                "{" => return self.read_use_group(&path),
                "as" => {
                    let name = self.token(1).to_owned();
                    self.index += 2;
                    return self.declare(&path, Some(name));
                }
                word => {
                    path.push(word.to_owned());
                    self.index += 1;
                }
            }
        }
    }

    fn read_use_group(&mut self, path: &[String]) {
        while !["", "}"].contains(&self.token(0)) {
            self.index += 1; // the opening brace, or a comma
            // A trailing comma has no tree after it.
            if self.token(0) != "}" {
                self.read_use_tree(path.to_vec());
            }
        }
        self.index += 1;
    }

    fn declare(&mut self, path: &[String], name: Option<String>) {
        let mut path = path.to_vec();
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let Some(last) = path.last().cloned() else { return };
        let name = name.unwrap_or_else(|| last.clone());
        match self.absolute(&path) {
            Some(target) if last == "*" => {
                self.module.globs.push(target[..target.len() - 1].to_vec());
                self.module.references.insert(target);
            }
            Some(target) => {
                self.module.references.insert(target.clone());
                self.module.names.insert(name, target);
            }
            None => {
                self.module.foreign_names.insert(name);
            }
        }
    }

    /// The second pass: reads a path in the code.
    fn read_path_or_skip(&mut self) {
        let is_qualified = self.index > 0 && ["::", "."].contains(&self.tokens[self.index - 1].as_str());
        if self.token(0) == "pub" && self.token(1) == "(" {
            // `pub(in crate::x)` imports nothing.
            while !["", ")"].contains(&self.token(0)) {
                self.index += 1;
            }
            return;
        }
        if self.token(0) == "use" && self.token(1) != "<" {
            while !["", ";"].contains(&self.token(0)) {
                self.index += 1;
            }
            return;
        }
        if self.token(1) != "::" || is_qualified {
            return self.step();
        }
        let mut path = vec![self.token(0).to_owned()];
        while self.token(1) == "::"
            && self.token(2).starts_with(|letter: char| letter.is_alphabetic() || letter == '_')
        {
            path.push(self.token(2).to_owned());
            self.index += 2;
        }
        self.index += 1;
        self.module.references.extend(self.absolute(&path));
    }

    fn step(&mut self) {
        match self.token(0) {
            "mod" if self.token(2) == "{" => self.inline.push((self.token(1).to_owned(), self.depth + 1)),
            "{" => self.depth += 1,
            "}" => {
                if self.inline.last().is_some_and(|(_, depth)| *depth == self.depth) {
                    self.inline.pop();
                }
                self.depth = self.depth.saturating_sub(1);
            }
            _ => {}
        }
        self.index += 1;
    }

    /// The path from the root of the crate. `None` for a path to another crate or into a type of
    /// this file.
    fn absolute(&self, path: &[String]) -> Option<ModulePath> {
        let inline = self.inline.iter().map(|(name, _)| name.clone());
        let mut base: ModulePath = self.module.path.iter().cloned().chain(inline).collect();
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => base.clear(),
            "self" => {}
            "super" => {
                base.pop()?;
                let parents = rest.iter().take_while(|name| *name == "super").count();
                base.truncate(base.len().checked_sub(parents)?);
                return Some([&base, &rest[parents..]].concat());
            }
            name if self.paths.contains(&child(&base, name)) => base.push(name.to_owned()),
            name => base = self.module.names.get(name).filter(|target| *target != path)?.clone(),
        }
        Some([&base, rest].concat())
    }
}

#[cfg(test)]
fn read_example(files: &[(&str, &str)]) -> ModuleImports {
    let files: Vec<_> = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
    ModuleImports::read(&files)
}

#[test]
fn cycle_through_three_modules_is_found() {
    let files = [
        ("lib.rs", "mod a; mod b; mod c; mod d; use a::A; pub fn run() { d::go() }"),
        ("a.rs", "use crate::b::{self, other::{Other as O}, B}; pub struct A;"),
        ("b/mod.rs", "mod other; pub use other::Other; pub struct B(crate::c::C);"),
        ("b/other.rs", "pub struct Other;"),
        ("c.rs", "use super::a; pub struct C(a::A);"),
        ("d.rs", "use crate::a::A; pub fn go() {} #[cfg(test)] mod tests { use crate::run; }"),
    ];
    let names = |group: &[&str]| group.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<String>>();
    let imports = read_example(&files);
    assert_eq!(imports.cycles(), [names(&["a", "b", "c"])]);
    assert_eq!(imports.imports["a"], names(&["b", "b::other"]));
    assert_eq!(imports.imports["crate"], names(&["a", "d"]));
    assert_eq!(imports.parent_imports().len(), 0);
    // Without the path that closes the cycle there is none.
    let acyclic_files =
        files.map(|(path, text)| (path, text.replace("a::A;", "u8;").replace("C(a::A)", "C(u8)")));
    assert_eq!(
        read_example(&acyclic_files.each_ref().map(|(path, text)| (*path, &**text))).cycles().len(),
        0
    );
}

#[test]
fn re_export_is_an_import_from_where_it_is_defined() {
    let files = [
        ("lib.rs", "mod a; mod b; pub use a::A; pub use b::*; pub use std::fmt::Debug;"),
        ("a.rs", "use crate::B; use super::Debug; pub struct A(B);"),
        ("b.rs", "use crate::b::deep::C as Deep; mod deep; pub struct B; #[cfg(test)] mod tests;"),
        ("b/deep.rs", "use super::super::A; pub struct C(A);"),
        ("b/tests.rs", "use crate::A;"),
    ];
    let imports = read_example(&files);
    assert_eq!(imports.cycles().len(), 1, "{:?}", imports.imports);
    assert!(imports.cycles()[0].iter().eq(["a", "b", "b::deep"]), "{:?}", imports.imports);
    assert_eq!(imports.parent_imports().len(), 0);
}

#[test]
fn import_from_the_parent_is_found_and_one_of_a_sibling_is_not() {
    let files = [
        ("lib.rs", "mod a; pub fn root() {}"),
        ("a.rs", "mod b; mod c; mod d; pub const LIMIT: u8 = 1; pub fn f() { b::g() }"),
        ("a/b.rs", "use super::c::C; pub fn g() -> C { super::f(); let x = super::LIMIT; C }"),
        (
            "a/c.rs",
            "use crate::a; pub struct C; fn f() { a::f(); crate::root() } mod inner { use super::C; }",
        ),
        ("a/d.rs", "use super::*; pub(in crate::a) fn h() -> &'static str { \"super::f\" } // super::f"),
    ];
    let items: Vec<String> = read_example(&files).parent_imports().iter().cloned().collect();
    assert_eq!(items, ["a::b: LIMIT", "a::b: f", "a::c: f", "a::d: *"]);
}
