//! The book of docs/: every page is in its table of contents, and every link of the documents leads somewhere, as files
//! and in the book.

use super::{document, documents};
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
fn beside(page: &str, target: &str) -> String {
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
fn fault(page: &str, link: &str) -> Option<String> {
    let (target, heading) = link.split_once('#').unwrap_or((link, ""));
    let target = if target.is_empty() { page.to_owned() } else { beside(page, target) };
    let there = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(&target).exists();
    if !there {
        return Some(format!("{page}: there is no {target}"));
    }
    let missing = !heading.is_empty() && !anchors(&document(&target)).iter().any(|has| has == heading);
    missing.then(|| format!("{page}: {target} has no heading #{heading}"))
}

/// Links of a page that lead to no other site.
fn own_links(page: &str) -> Vec<String> {
    links(&document(page)).into_iter().filter(|link| !link.contains("://")).collect()
}

/// The chapters, by their paths in the repository.
fn chapters() -> Vec<String> {
    links(&document("docs/SUMMARY.md")).iter().map(|link| beside("docs/SUMMARY.md", link)).collect()
}

/// What `make book` puts beside them.
fn copied() -> Vec<String> {
    let makefile = document("Makefile");
    let line = makefile.lines().find_map(|line| line.strip_prefix("BOOK ")).unwrap();
    line.split_whitespace().skip(1).map(str::to_owned).collect()
}

/// What is wrong with a link of a chapter in the book, where pages alone are chapters, and a directory shows nothing.
fn fault_in_the_book(page: &str, link: &str, chapters: &[String], copied: &[String]) -> Option<String> {
    let target = link.split('#').next().filter(|target| !target.is_empty())?;
    let target = beside(page, target);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(&target);
    let there = match target.ends_with(".md") {
        true => chapters.contains(&target),
        false => path.is_file() && copied.iter().any(|kept| Path::new(&target).starts_with(kept)),
    };
    (!there).then(|| format!("{page}: {target} is not in the book"))
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let mut faults = Vec::new();
    for page in documents().into_iter().chain(chapters()) {
        faults.extend(own_links(&page).iter().filter_map(|link| fault(&page, link)));
    }
    assert_eq!(faults, Vec::<String>::new());
    assert!(fault("README.md", "docs/nothing.md").is_some() && fault("README.md", "#nothing").is_some());
}

#[test]
fn every_link_of_the_book_leads_to_a_chapter_or_to_a_file_beside_it() {
    let (chapters, copied) = (chapters(), copied());
    let fault = |page: &str, link: &str| fault_in_the_book(page, link, &chapters, &copied);
    let of = |page: &String| own_links(page).iter().filter_map(|link| fault(page, link)).collect::<Vec<_>>();
    assert_eq!(chapters.iter().flat_map(of).collect::<Vec<_>>(), Vec::<String>::new());
    for link in ["../examples", "../tests/README.md", "../Cargo.toml", "SUMMARY.md"] {
        assert!(fault("docs/run.md", link).is_some(), "{link}");
    }
    assert!(
        copied.iter().any(|kept| kept == "docs") && fault("docs/run.md", "../examples/mixed.toml").is_none()
    );
}

#[test]
fn every_page_is_in_the_books_table_of_contents_once() {
    let mut listed = chapters();
    listed.sort();
    let pages = documents().into_iter().filter(|page| page != "docs/SUMMARY.md");
    let mut pages: Vec<String> =
        pages.chain(["CHANGELOG.md", "CONTRIBUTING.md"].map(str::to_owned)).collect();
    pages.sort();
    assert_eq!(listed, pages);
}
