//! The book of docs/: every page is in its table of contents, and every link of the documents leads somewhere.

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

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let mut faults = Vec::new();
    for page in documents() {
        let links = links(&document(&page));
        let own = links.iter().filter(|link| !link.contains("://"));
        faults.extend(own.filter_map(|link| fault(&page, link)));
    }
    assert_eq!(faults, Vec::<String>::new());
    assert!(fault("README.md", "docs/nothing.md").is_some() && fault("README.md", "#nothing").is_some());
}

#[test]
fn every_page_is_in_the_books_table_of_contents_once() {
    let mut listed = links(&document("docs/SUMMARY.md"));
    listed.sort();
    let pages = documents().into_iter().filter_map(|page| page.strip_prefix("docs/").map(str::to_owned));
    let pages: Vec<String> = pages.filter(|page| page != "SUMMARY.md").collect();
    assert_eq!(listed, pages);
}
