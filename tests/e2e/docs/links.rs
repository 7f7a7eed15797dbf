//! The book of docs/: every page is in its table of contents, and every link of a page leads to an
//! existing file and heading, in the repository and in the book.

use super::{document_paths, read_document};
use std::path::{Component, Path, PathBuf};

/// The target of every link outside of code.
fn links(text: &str) -> Vec<String> {
    let prose = text.split("```").step_by(2).collect::<Vec<_>>().join("\n");
    let prose = prose.split('`').step_by(2).collect::<Vec<_>>().join("x");
    let targets = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    targets.map(|(target, _)| target.to_owned()).collect()
}

/// The anchor that GitHub and mdBook give to a heading.
fn anchor(heading: &str) -> String {
    let lowercase = heading.trim().to_lowercase();
    let characters = lowercase.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
    characters.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

fn anchors(text: &str) -> Vec<String> {
    let prose = text.split("```").step_by(2).flat_map(str::lines);
    prose.filter(|line| line.starts_with('#')).map(|line| anchor(line.trim_start_matches('#'))).collect()
}

/// The path of the link `target` on `page`, from the root of the repository: `docs/a.md` and
/// `../b.md` give `b.md`.
fn resolve_relative(page: &str, target: &str) -> String {
    let mut path = PathBuf::new();
    for part in Path::new(page).parent().unwrap().join(target).components() {
        match part {
            Component::ParentDir => assert!(path.pop(), "{target} of {page} leads out of the repository"),
            part => path.push(part),
        }
    }
    path.display().to_string()
}

/// Why a link on a page is wrong. `None` if it is right.
fn link_error(page: &str, link: &str) -> Option<String> {
    let (target, heading) = link.split_once('#').unwrap_or((link, ""));
    let target = if target.is_empty() { page.to_owned() } else { resolve_relative(page, target) };
    let exists = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(&target).exists();
    if !exists {
        return Some(format!("{page}: there is no {target}"));
    }
    let is_missing =
        !heading.is_empty() && !anchors(&read_document(&target)).iter().any(|anchor| anchor == heading);
    is_missing.then(|| format!("{page}: {target} has no heading #{heading}"))
}

/// The links of a page that do not lead to another site.
fn internal_links(page: &str) -> Vec<String> {
    links(&read_document(page)).into_iter().filter(|link| !link.contains("://")).collect()
}

/// The chapters of the book, by their paths in the repository.
fn chapters() -> Vec<String> {
    links(&read_document("docs/SUMMARY.md"))
        .iter()
        .map(|link| resolve_relative("docs/SUMMARY.md", link))
        .collect()
}

/// The paths that `make book` copies into the book.
fn copied_files() -> Vec<String> {
    let makefile = read_document("Makefile");
    let line = makefile.lines().find_map(|line| line.strip_prefix("BOOK ")).unwrap();
    line.split_whitespace().skip(1).map(str::to_owned).collect()
}

/// Why a link of a chapter is wrong in the book. `None` if it is right. In the book, a link to a
/// page must lead to a chapter, and any other link to a file that is copied. Directories have no
/// page.
fn book_link_error(page: &str, link: &str, chapters: &[String], copied_paths: &[String]) -> Option<String> {
    let target = link.split('#').next().filter(|target| !target.is_empty())?;
    let target = resolve_relative(page, target);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(&target);
    let is_in_book = match target.ends_with(".md") {
        true => chapters.contains(&target),
        false => {
            path.is_file()
                && copied_paths.iter().any(|copied_path| Path::new(&target).starts_with(copied_path))
        }
    };
    (!is_in_book).then(|| format!("{page}: {target} is not in the book"))
}

#[test]
fn links_point_to_existing_files_and_headings() {
    let mut errors = Vec::new();
    for page in document_paths().into_iter().chain(chapters()) {
        errors.extend(internal_links(&page).iter().filter_map(|link| link_error(&page, link)));
    }
    assert_eq!(errors, Vec::<String>::new());
    assert!(
        link_error("README.md", "docs/nothing.md").is_some() && link_error("README.md", "#nothing").is_some()
    );
}

#[test]
fn book_links_point_to_existing_pages() {
    let (chapters, copied_paths) = (chapters(), copied_files());
    let error_of = |page: &str, link: &str| book_link_error(page, link, &chapters, &copied_paths);
    let errors_of = |page: &String| {
        internal_links(page).iter().filter_map(|link| error_of(page, link)).collect::<Vec<_>>()
    };
    assert_eq!(chapters.iter().flat_map(errors_of).collect::<Vec<_>>(), Vec::<String>::new());
    for link in ["../examples", "../tests/README.md", "../Cargo.toml", "SUMMARY.md"] {
        assert!(error_of("docs/run.md", link).is_some(), "{link}");
    }
    assert!(
        copied_paths.iter().any(|path| path == "docs")
            && error_of("docs/run.md", "../examples/mixed.toml").is_none()
    );
}

#[test]
fn every_page_is_in_the_table_of_contents() {
    let mut chapters = chapters();
    chapters.sort();
    let pages = document_paths().into_iter().filter(|page| page != "docs/SUMMARY.md");
    let mut pages: Vec<String> =
        pages.chain(["CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"].map(str::to_owned)).collect();
    pages.sort();
    assert_eq!(chapters, pages);
}
