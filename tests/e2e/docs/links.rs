//! The book of docs/: every page is in its table of contents, and every link of the documents leads somewhere, as files
//! and in the book.

use super::{document_paths, read_document};
use std::path::{Component, Path, PathBuf};

/// Text and target of every link, outside of code.
fn links(text: &str) -> Vec<String> {
    let prose = text.split("```").step_by(2).collect::<Vec<_>>().join("\n");
    let prose = prose.split('`').step_by(2).collect::<Vec<_>>().join("x");
    let targets = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    targets.map(|(target, _)| target.to_owned()).collect()
}

/// How GitHub and mdBook name a heading.
fn anchor(heading: &str) -> String {
    let letters = heading.trim().to_lowercase();
    let kept = letters.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
    kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

fn anchors(text: &str) -> Vec<String> {
    let prose = text.split("```").step_by(2).flat_map(str::lines);
    prose.filter(|line| line.starts_with('#')).map(|line| anchor(line.trim_start_matches('#'))).collect()
}

/// `docs/a.md` and `../b.md` give `b.md`.
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

/// What is wrong with a link of a page.
fn link_error(page: &str, link: &str) -> Option<String> {
    let (target, heading) = link.split_once('#').unwrap_or((link, ""));
    let target = if target.is_empty() { page.to_owned() } else { resolve_relative(page, target) };
    let there = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(&target).exists();
    if !there {
        return Some(format!("{page}: there is no {target}"));
    }
    let missing = !heading.is_empty() && !anchors(&read_document(&target)).iter().any(|has| has == heading);
    missing.then(|| format!("{page}: {target} has no heading #{heading}"))
}

/// Links of a page that lead to no other site.
fn internal_links(page: &str) -> Vec<String> {
    links(&read_document(page)).into_iter().filter(|link| !link.contains("://")).collect()
}

/// The chapters, by their paths in the repository.
fn chapters() -> Vec<String> {
    links(&read_document("docs/SUMMARY.md"))
        .iter()
        .map(|link| resolve_relative("docs/SUMMARY.md", link))
        .collect()
}

/// What `make book` puts beside them.
fn copied_files() -> Vec<String> {
    let makefile = read_document("Makefile");
    let line = makefile.lines().find_map(|line| line.strip_prefix("BOOK ")).unwrap();
    line.split_whitespace().skip(1).map(str::to_owned).collect()
}

/// What is wrong with a link of a chapter in the book, where pages alone are chapters, and a directory shows nothing.
fn book_link_error(page: &str, link: &str, chapters: &[String], copied: &[String]) -> Option<String> {
    let target = link.split('#').next().filter(|target| !target.is_empty())?;
    let target = resolve_relative(page, target);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(&target);
    let there = match target.ends_with(".md") {
        true => chapters.contains(&target),
        false => path.is_file() && copied.iter().any(|kept| Path::new(&target).starts_with(kept)),
    };
    (!there).then(|| format!("{page}: {target} is not in the book"))
}

#[test]
fn links_point_to_existing_files_and_headings() {
    let mut faults = Vec::new();
    for page in document_paths().into_iter().chain(chapters()) {
        faults.extend(internal_links(&page).iter().filter_map(|link| link_error(&page, link)));
    }
    assert_eq!(faults, Vec::<String>::new());
    assert!(
        link_error("README.md", "docs/nothing.md").is_some() && link_error("README.md", "#nothing").is_some()
    );
}

#[test]
fn book_links_point_to_existing_pages() {
    let (chapters, copied) = (chapters(), copied_files());
    let fault = |page: &str, link: &str| book_link_error(page, link, &chapters, &copied);
    let of =
        |page: &String| internal_links(page).iter().filter_map(|link| fault(page, link)).collect::<Vec<_>>();
    assert_eq!(chapters.iter().flat_map(of).collect::<Vec<_>>(), Vec::<String>::new());
    for link in ["../examples", "../tests/README.md", "../Cargo.toml", "SUMMARY.md"] {
        assert!(fault("docs/run.md", link).is_some(), "{link}");
    }
    assert!(
        copied.iter().any(|kept| kept == "docs") && fault("docs/run.md", "../examples/mixed.toml").is_none()
    );
}

#[test]
fn every_page_is_in_the_table_of_contents() {
    let mut listed = chapters();
    listed.sort();
    let pages = document_paths().into_iter().filter(|page| page != "docs/SUMMARY.md");
    let mut pages: Vec<String> =
        pages.chain(["CHANGELOG.md", "CONTRIBUTING.md"].map(str::to_owned)).collect();
    pages.sort();
    assert_eq!(listed, pages);
}
