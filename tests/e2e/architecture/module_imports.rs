//! Which module of a crate imports which: found in `use` declarations and in paths that begin with
//! `crate`, `super`, `self`, a child module or an imported module. A re-exported item counts as an
//! import from where it is defined. `mod NAME;` and tests don't count.

use super::rust_tokens::file_tokens;
use std::collections::{BTreeMap, BTreeSet};

/// A module's path from the root of its crate.
type ModulePath = Vec<String>;

/// The imports between the modules of one crate.
#[derive(Default)]
pub(super) struct ModuleImports {
    /// The modules that each module imports from. The root is `crate`.
    imported: BTreeMap<String, BTreeSet<String>>,
    /// `MODULE: ITEM` for each item that a module imports from its parent.
    from_parent: BTreeSet<String>,
}

/// What one file says.
struct ParsedModule {
    path: ModulePath,
    /// Every path that the file names, from the root of the crate, with the parts of `use`.
    references: BTreeSet<ModulePath>,
    /// What each name that a `use` declares stands for, from the root of the crate.
    names: BTreeMap<String, ModulePath>,
    /// Names in other crates that a `use` declares.
    foreign_names: BTreeSet<String>,
    /// Paths behind which stands `::*`.
    globs: Vec<ModulePath>,
    /// Functions, types, constants and so on that the file defines.
    defined: BTreeSet<String>,
}

/// Where a path leads.
enum Target {
    Module,
    Item(ModulePath, String),
    Foreign,
}

const DEFINING_KEYWORDS: [&str; 8] = ["fn", "struct", "enum", "union", "trait", "type", "const", "static"];

impl ModuleImports {
    /// Reads a crate from its files: paths below `src`, and texts.
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
        // A module that is only named is imported with what is used of it.
        let Target::Item(from, item) = resolve(modules, path, 0) else { return };
        if from == module.path {
            return;
        }
        self.imported.entry(display(&module.path)).or_default().insert(display(&from));
        if module.path.split_last().is_some_and(|(_, parent)| parent == from) {
            self.from_parent.insert(format!("{}: {item}", display(&module.path)));
        }
    }

    /// The groups of modules that import each other, directly or through others.
    pub(super) fn cycles(&self) -> Vec<BTreeSet<String>> {
        let reached: BTreeMap<&String, BTreeSet<&String>> =
            self.imported.keys().map(|module| (module, self.reached_from(module))).collect();
        let group = |module: &String| -> BTreeSet<String> {
            let mutual = reached[module]
                .iter()
                .filter(|other| reached.get(*other).is_some_and(|back| back.contains(module)));
            mutual.map(|other| (*other).clone()).collect()
        };
        let groups: BTreeSet<BTreeSet<String>> = self.imported.keys().map(group).collect();
        groups.into_iter().filter(|group| group.len() > 1).collect()
    }

    fn reached_from<'a>(&'a self, start: &'a String) -> BTreeSet<&'a String> {
        let (mut reached, mut left) = (BTreeSet::new(), vec![start]);
        while let Some(module) = left.pop() {
            let next = self.imported.get(module).into_iter().flatten();
            left.extend(next.filter(|next| reached.insert(*next)));
        }
        reached
    }

    /// One line for each item that a module imports from its parent.
    pub(super) fn parent_imports(&self) -> &BTreeSet<String> {
        &self.from_parent
    }
}

fn display(path: &[String]) -> String {
    if path.is_empty() { "crate".to_owned() } else { path.join("::") }
}

/// `lib.rs`, `a.rs`, `a/mod.rs` and `a/b.rs`.
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
    let kept = parts.iter().filter(|(path, _)| paths.contains(*path));
    kept.map(|(path, file)| (path.clone(), FileParser::parse(path, &file.tokens, &paths))).collect()
}

fn child(path: &[String], name: &str) -> ModulePath {
    [path, &[name.to_owned()]].concat()
}

/// Follows re-exports, also those of modules, as far as no cycle of them can be.
fn resolve(modules: &BTreeMap<ModulePath, ParsedModule>, path: &[String], followed: usize) -> Target {
    let mut module = ModulePath::new();
    for (at, name) in path.iter().enumerate() {
        let next = child(&module, name);
        if modules.contains_key(&next) {
            module = next;
            continue;
        }
        let Some(parsed) = modules.get(&module) else { return Target::Foreign };
        if parsed.defined.contains(name) || followed > 10 {
            return Target::Item(module, name.clone());
        }
        if let Some(target) = parsed.names.get(name) {
            return resolve(modules, &[target, &path[at + 1..]].concat(), followed + 1);
        }
        if parsed.foreign_names.contains(name) {
            return Target::Foreign;
        }
        let behind_globs = parsed.globs.iter().map(|glob| [glob, &path[at..]].concat());
        let found = behind_globs.map(|path| resolve(modules, &path, followed + 1));
        let defines = |from: &ModulePath, item: &String| modules[from].defined.contains(item);
        let mut found =
            found.filter(|target| matches!(target, Target::Item(from, item) if defines(from, item)));
        return found.next().unwrap_or(Target::Item(module, name.clone()));
    }
    Target::Module
}

/// Reads the tokens of one file.
struct FileParser<'a> {
    tokens: &'a [String],
    at: usize,
    paths: &'a BTreeSet<ModulePath>,
    /// The modules in the file around the present token, with the depth of braces at which each
    /// ends.
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
            defined: BTreeSet::new(),
        };
        let mut parser = FileParser { tokens, at: 0, paths, inline: Vec::new(), depth: 0, module };
        while parser.at < tokens.len() {
            parser.read_use_or_skip();
        }
        (parser.at, parser.depth, parser.inline) = (0, 0, Vec::new());
        while parser.at < tokens.len() {
            parser.read_path_or_skip();
        }
        parser.module
    }

    fn token(&self, offset: usize) -> &str {
        self.tokens.get(self.at + offset).map_or("", String::as_str)
    }

    /// The first pass: what the file declares.
    fn read_use_or_skip(&mut self) {
        if self.token(0) == "use" && self.token(1) != "<" {
            self.at += 1;
            let start = if self.token(0) == "::" { vec![String::new()] } else { Vec::new() };
            self.at += start.len();
            self.read_use_tree(start);
            return;
        }
        if DEFINING_KEYWORDS.contains(&self.token(0)) {
            self.module.defined.insert(self.token(1).to_owned());
        }
        if self.token(0) == "macro_rules" && self.token(1) == "!" {
            self.module.defined.insert(self.token(2).to_owned());
        }
        self.step();
    }

    /// Reads up to the comma, brace or semicolon behind one tree of a `use`.
    fn read_use_tree(&mut self, mut path: ModulePath) {
        loop {
            match self.token(0) {
                "" | ";" | "," | "}" => return self.declare(&path, None),
                "::" => self.at += 1,
                "{" => return self.read_use_group(&path),
                "as" => {
                    let name = self.token(1).to_owned();
                    self.at += 2;
                    return self.declare(&path, Some(name));
                }
                word => {
                    path.push(word.to_owned());
                    self.at += 1;
                }
            }
        }
    }

    fn read_use_group(&mut self, path: &[String]) {
        while !["", "}"].contains(&self.token(0)) {
            self.at += 1; // the brace that opens the group, or a comma
            // Behind the last comma there may be no tree.
            if self.token(0) != "}" {
                self.read_use_tree(path.to_vec());
            }
        }
        self.at += 1;
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

    /// The second pass: the paths in the code.
    fn read_path_or_skip(&mut self) {
        let is_qualified = self.at > 0 && ["::", "."].contains(&self.tokens[self.at - 1].as_str());
        if self.token(0) == "pub" && self.token(1) == "(" {
            // `pub(in crate::x)` imports nothing.
            while !["", ")"].contains(&self.token(0)) {
                self.at += 1;
            }
            return;
        }
        if self.token(0) == "use" && self.token(1) != "<" {
            while !["", ";"].contains(&self.token(0)) {
                self.at += 1;
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
            self.at += 2;
        }
        self.at += 1;
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
        self.at += 1;
    }

    /// The path from the root of the crate. None if it leads to another crate, or is a type's own.
    fn absolute(&self, path: &[String]) -> Option<ModulePath> {
        let inline = self.inline.iter().map(|(name, _)| name.clone());
        let mut here: ModulePath = self.module.path.iter().cloned().chain(inline).collect();
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => here.clear(),
            "self" => {}
            "super" => {
                here.pop()?;
                let further = rest.iter().take_while(|name| *name == "super").count();
                here.truncate(here.len().checked_sub(further)?);
                return Some([&here, &rest[further..]].concat());
            }
            name if self.paths.contains(&child(&here, name)) => here.push(name.to_owned()),
            name => here = self.module.names.get(name).filter(|target| *target != path)?.clone(),
        }
        Some([&here, rest].concat())
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
    assert_eq!(imports.imported["a"], names(&["b", "b::other"]));
    assert_eq!(imports.imported["crate"], names(&["a", "d"]));
    assert_eq!(imports.parent_imports().len(), 0);
    // Without the one path that closes it there is none.
    let without = files.map(|(path, text)| (path, text.replace("a::A;", "u8;").replace("C(a::A)", "C(u8)")));
    assert_eq!(read_example(&without.each_ref().map(|(path, text)| (*path, &**text))).cycles().len(), 0);
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
    assert_eq!(imports.cycles().len(), 1, "{:?}", imports.imported);
    assert!(imports.cycles()[0].iter().eq(["a", "b", "b::deep"]), "{:?}", imports.imported);
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
    let found: Vec<String> = read_example(&files).parent_imports().iter().cloned().collect();
    assert_eq!(found, ["a::b: LIMIT", "a::b: f", "a::c: f", "a::d: *"]);
}
