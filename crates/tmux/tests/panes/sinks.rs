//! Whatever stands in a name, a label, a command or a path, it arrives as it is, and tmux executes nothing.

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};

use tmux::{Created, Error, Server};

use crate::bench::{Bench, claim, everywhere, idle, label, owner, plainly, read, until, words};

/// Each would leave a mark, or lose a letter, in one of the places where tmux expands. None holds a slash, so that
/// all can be the names of files.
const NASTY: [&str; 22] = [
    "#(touch $MARK)",
    "##(touch $MARK)",
    "#{E:@x}#{pane_id}#D#H",
    "#[fg=red]#[",
    "$(touch $MARK)",
    "`touch $MARK`",
    "$HOME ${HOME}",
    "~",
    "~root",
    "%H%%M%",
    "a;b",
    "a;",
    "a\\;",
    ";",
    "; run-shell 'touch $MARK' ;",
    "a\nrun-shell 'touch $MARK'\n",
    "'\"'\"\\\\",
    "-x",
    "tab\tesc\x1b[31m\u{7f}\r\u{1}",
    "{ } } ,",
    "# not a comment",
    "日本 🦀 é",
];

fn assert_no_mark(bench: &Bench, text: &str) {
    assert!(!bench.path("mark").exists(), "{text:?} was executed");
}

/// A program that writes its arguments down and stays.
fn dump(bench: &Bench, text: &str) -> Vec<String> {
    let program = bench.script("dump", "file=$1; shift; printf '%s\\0' \"$@\" >\"$file\"; exec sleep 1000");
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let fifo = bench.fifo(&format!("fifo-{}", NEXT.fetch_add(1, Ordering::Relaxed)));
    words([program.to_str().unwrap(), fifo.to_str().unwrap(), text, "", text])
}

fn assert_arrived(argv: &[String]) {
    let arrived = String::from_utf8(read(argv[1].clone().into())).unwrap();
    assert_eq!(arrived, format!("{}\0\0{}\0", argv[2], argv[4]));
}

fn team(server: &mut Server) -> Created {
    let made = server.new_session("team", "one", &idle()).unwrap();
    claim(server, made, &owner("ann"), &label(""));
    made
}

#[test]
fn arguments_arrive_as_they_are() {
    everywhere(|bench| {
        let (mut server, _notices) = bench.connect();
        let team = team(&mut server);
        for text in NASTY {
            let argv = dump(bench, text);
            let made = server.split(team.window, &argv).unwrap();
            assert_arrived(&argv);
            server.claim(made.pane, &owner("bob"), &label("")).unwrap();
            server.kill(made.pane, &owner("bob")).unwrap();
            assert_no_mark(bench, text);
        }
        let argv = dump(bench, &NASTY.concat());
        server.new_window(team.session, "two", &argv).unwrap();
        assert_arrived(&argv);
    });
}

#[test]
fn without_a_control_connection_they_arrive_as_well() {
    plainly(|bench| {
        let (mut server, notices) = bench.connect();
        let team = team(&mut server);
        bench.wrapper("case \" $* \" in *' -C '*) exit 1;; esac");
        bench.run(["detach-client", "-s", &bench.hidden()[0]]);
        while notices.recv_timeout(std::time::Duration::from_secs(9)).unwrap() != tmux::Notice::Lost {}
        for text in NASTY {
            let argv = dump(bench, text);
            let made = server.split(team.window, &argv).unwrap();
            assert_arrived(&argv);
            server.claim(made.pane, &owner("bob"), &label(text)).unwrap();
            assert_eq!(server.kill(made.pane, &owner("bob")).unwrap(), tmux::Killed::Killed);
        }
        assert!(server.alive());
        assert!(bench.hidden().is_empty());
        assert_eq!(server.kill("%0".parse().unwrap(), &owner("bob")).unwrap(), tmux::Killed::NotOurs);
        assert!(matches!(server.capture(team.pane, &owner("bob"), None), Err(Error::NotOurs { .. })));
        server.capture(team.pane, &owner("ann"), None).unwrap();
        assert_no_mark(bench, "");
    });
}

#[test]
fn labels_are_shown_and_never_expanded() {
    everywhere(|bench| {
        let (mut server, _notices) = bench.connect();
        let made = team(&mut server);
        let _person = bench.attach();
        bench.run(["switch-client", "-t", "=team:"]);
        for text in NASTY {
            server.label(made.pane, &owner("ann"), &label(text)).unwrap();
            let shown: String = text.chars().filter(|c| !c.is_control() && *c != '#').collect();
            let pane = made.pane.to_string();
            let border = bench.run(["display-message", "-p", "-t", &pane, "#{T:pane-border-format}"]);
            // 3.4 alone prints a backslash before a dollar.
            let border = border.replace("\\$", "$");
            let want = format!("#[fg=colour208]#[bold]{shown}#[default] {shown} | {shown}");
            assert_eq!(border.trim(), want.trim(), "{text:?}");
            assert_no_mark(bench, text);
        }
    });
}

#[test]
fn a_foreign_colour_brings_no_style() {
    everywhere(|bench| {
        let (mut server, _notices) = bench.connect();
        let made = team(&mut server);
        for text in NASTY {
            let label = tmux::Label { color: text.into(), ..label("x") };
            server.label(made.pane, &owner("ann"), &label).unwrap();
            let color = bench.run(["show-options", "-pv", "-t", &made.pane.to_string(), "@teamd_color"]);
            assert_eq!(color, "default");
        }
    });
}

#[test]
fn a_record_goes_to_the_very_file() {
    everywhere(|bench| {
        let (mut server, _notices) = bench.connect();
        for (index, text) in NASTY.iter().enumerate() {
            let fifo = bench.fifo(&format!("go-{index}"));
            let argv = words([
                "sh",
                "-c",
                "read go <\"$1\"; echo heard; exec sleep 1000",
                "sh",
                fifo.to_str().unwrap(),
            ]);
            let made = server.new_session(&format!("team-{index}"), "one", &argv).unwrap();
            server.claim(made.pane, &owner("ann"), &label("")).unwrap();
            fs::create_dir(bench.path(format!("d{text}"))).unwrap();
            let file = bench.path(format!("d{text}")).join(text);
            server.record(made.pane, &owner("ann"), &into(&file)).unwrap();
            bench.file(&format!("go-{index}"), "go\n");
            until(&format!("the record {text:?}"), || {
                fs::read_to_string(&file).is_ok_and(|text| text.contains("heard")).then_some(())
            });
            assert_no_mark(bench, text);
        }
    });
}

/// What appends its input to `file`.
fn into(file: &std::path::Path) -> Vec<std::path::PathBuf> {
    vec!["/bin/sh".into(), "-c".into(), "exec cat >>\"$1\"".into(), "sh".into(), file.to_owned()]
}

#[test]
fn names_that_are_not_plain_are_refused() {
    plainly(|bench| {
        let (mut server, _notices) = bench.connect();
        let team = team(&mut server);
        for text in NASTY.into_iter().filter(|text| *text != "-x") {
            for refused in [
                server.new_session(text, "one", &idle()),
                server.new_session("two", text, &idle()),
                server.new_window(team.session, text, &idle()),
            ] {
                assert!(matches!(refused, Err(Error::Invalid { .. })), "{text:?}");
            }
        }
        let made = server.new_session("-x", "-y", &idle()).unwrap();
        server.new_window(made.session, "-y", &idle()).unwrap();
        for argv in [words(["sleep"]), words([""; 0]), words(["sleep", "a\0b"])] {
            assert!(matches!(server.split(team.window, &argv), Err(Error::Invalid { .. })), "{argv:?}");
        }
    });
}
