//! Whatever stands in a name, a label, a command or a path, it arrives as it is, and tmux executes nothing.

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};

use tmux::{CreatedPane, Error, TmuxServer};

use crate::test_server::{
    TestServer, idle_command, label, on_all_servers, on_default_servers, read, strings, tag, tag_created,
    wait_until,
};

/// Each would leave a mark, or lose a letter, in one of the places where tmux expands. None holds a slash, so that
/// all can be the names of files.
const HOSTILE_TEXTS: [&str; 22] = [
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

fn assert_no_mark(bench: &TestServer, text: &str) {
    assert!(!bench.path("mark").exists(), "{text:?} was executed");
}

/// A program that writes its arguments down and stays.
fn dump(bench: &TestServer, text: &str) -> Vec<String> {
    let program =
        bench.write_script("dump", "file=$1; shift; printf '%s\\0' \"$@\" >\"$file\"; exec sleep 1000");
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let fifo = bench.make_fifo(&format!("fifo-{}", NEXT.fetch_add(1, Ordering::Relaxed)));
    strings([program.to_str().unwrap(), fifo.to_str().unwrap(), text, "", text])
}

fn assert_arrived(argv: &[String]) {
    let arrived = String::from_utf8(read(argv[1].clone().into())).unwrap();
    assert_eq!(arrived, format!("{}\0\0{}\0", argv[2], argv[4]));
}

fn team(server: &mut TmuxServer) -> CreatedPane {
    let made = server.new_session("team", "one", &idle_command()).unwrap();
    tag_created(server, made, &tag("ann"), &label(""));
    made
}

#[test]
fn arguments_are_passed_unchanged() {
    on_all_servers(|bench| {
        let (mut server, _notices) = bench.connect();
        let team = team(&mut server);
        for text in HOSTILE_TEXTS {
            let argv = dump(bench, text);
            let made = server.split(team.window, &argv).unwrap();
            assert_arrived(&argv);
            server.tag_pane(made.pane, &tag("bob"), &label("")).unwrap();
            server.kill(made.pane, &tag("bob")).unwrap();
            assert_no_mark(bench, text);
        }
        let argv = dump(bench, &HOSTILE_TEXTS.concat());
        server.new_window(team.session, "two", &argv).unwrap();
        assert_arrived(&argv);
    });
}

#[test]
fn arguments_are_passed_unchanged_by_subprocess() {
    on_default_servers(|bench| {
        let (mut server, notices) = bench.connect();
        let team = team(&mut server);
        bench.write_tmux_wrapper("case \" $* \" in *' -C '*) exit 1;; esac");
        bench.run(["detach-client", "-s", &bench.hidden_sessions()[0]]);
        while notices.recv_timeout(std::time::Duration::from_secs(9)).unwrap()
            != tmux::ServerNotice::Disconnected
        {}
        for text in HOSTILE_TEXTS {
            let argv = dump(bench, text);
            let made = server.split(team.window, &argv).unwrap();
            assert_arrived(&argv);
            server.tag_pane(made.pane, &tag("bob"), &label(text)).unwrap();
            assert_eq!(server.kill(made.pane, &tag("bob")).unwrap(), tmux::KillOutcome::Killed);
        }
        assert!(server.is_alive());
        assert!(bench.hidden_sessions().is_empty());
        assert_eq!(server.kill("%0".parse().unwrap(), &tag("bob")).unwrap(), tmux::KillOutcome::NotOwned);
        assert!(matches!(server.capture(team.pane, &tag("bob"), None), Err(Error::NotOwned { .. })));
        server.capture(team.pane, &tag("ann"), None).unwrap();
        assert_no_mark(bench, "");
    });
}

#[test]
fn labels_are_not_expanded() {
    on_all_servers(|bench| {
        let (mut server, _notices) = bench.connect();
        let made = team(&mut server);
        let _person = bench.attach_user();
        bench.run(["switch-client", "-t", "=team:"]);
        for text in HOSTILE_TEXTS {
            server.set_label(made.pane, &tag("ann"), &label(text)).unwrap();
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
fn unknown_color_sets_no_style() {
    on_all_servers(|bench| {
        let (mut server, _notices) = bench.connect();
        let made = team(&mut server);
        for text in HOSTILE_TEXTS {
            let label = tmux::BorderLabel { color: text.into(), ..label("x") };
            server.set_label(made.pane, &tag("ann"), &label).unwrap();
            let color = bench.run(["show-options", "-pv", "-t", &made.pane.to_string(), "@teamd_color"]);
            assert_eq!(color, "default");
        }
    });
}

#[test]
fn pipe_writes_to_the_exact_file() {
    on_all_servers(|bench| {
        let (mut server, _notices) = bench.connect();
        for (index, text) in HOSTILE_TEXTS.iter().enumerate() {
            let fifo = bench.make_fifo(&format!("go-{index}"));
            let argv = strings([
                "sh",
                "-c",
                "read go <\"$1\"; echo heard; exec sleep 1000",
                "sh",
                fifo.to_str().unwrap(),
            ]);
            let made = server.new_session(&format!("team-{index}"), "one", &argv).unwrap();
            server.tag_pane(made.pane, &tag("ann"), &label("")).unwrap();
            fs::create_dir(bench.path(format!("d{text}"))).unwrap();
            let file = bench.path(format!("d{text}")).join(text);
            server.pipe_output(made.pane, &tag("ann"), &into(&file)).unwrap();
            bench.write_file(&format!("go-{index}"), "go\n");
            wait_until(&format!("the record {text:?}"), || {
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
fn invalid_names_are_rejected() {
    on_default_servers(|bench| {
        let (mut server, _notices) = bench.connect();
        let team = team(&mut server);
        for text in HOSTILE_TEXTS.into_iter().filter(|text| *text != "-x") {
            for refused in [
                server.new_session(text, "one", &idle_command()),
                server.new_session("two", text, &idle_command()),
                server.new_window(team.session, text, &idle_command()),
            ] {
                assert!(matches!(refused, Err(Error::InvalidArgument { .. })), "{text:?}");
            }
        }
        let made = server.new_session("-x", "-y", &idle_command()).unwrap();
        server.new_window(made.session, "-y", &idle_command()).unwrap();
        for argv in [strings(["sleep"]), strings([""; 0]), strings(["sleep", "a\0b"])] {
            assert!(
                matches!(server.split(team.window, &argv), Err(Error::InvalidArgument { .. })),
                "{argv:?}"
            );
        }
    });
}
