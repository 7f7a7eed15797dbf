//! Tests that text in names, labels, commands and paths is passed unchanged, and that tmux executes
//! none of it.

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};

use tmux::{CreatedPane, Error, TmuxServer};

use crate::test_server::{
    TestServer, idle_command, label, on_all_servers, on_default_servers, read, strings, tag, tag_created,
    wait_until,
};

/// Texts that create the file `$MARK` or lose a character if tmux or a shell expands them. No text
/// contains a slash, so each can be a file name.
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

/// Checks that the file `$MARK` does not exist, so no text was executed.
fn assert_no_mark(fixture: &TestServer, text: &str) {
    assert!(!fixture.path("mark").exists(), "{text:?} was executed");
}

/// Returns a command that writes `text`, an empty argument and `text` again to a FIFO, and keeps
/// running. The FIFO is its first argument.
fn dump_command(fixture: &TestServer, text: &str) -> Vec<String> {
    let program =
        fixture.write_script("dump", "file=$1; shift; printf '%s\\0' \"$@\" >\"$file\"; exec sleep 1000");
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let fifo = fixture.make_fifo(&format!("fifo-{}", NEXT.fetch_add(1, Ordering::Relaxed)));
    strings([program.to_str().unwrap(), fifo.to_str().unwrap(), text, "", text])
}

/// Reads the FIFO of a [`dump_command`] and checks that the arguments are unchanged.
fn assert_args_unchanged(argv: &[String]) {
    let received = String::from_utf8(read(argv[1].clone().into())).unwrap();
    assert_eq!(received, format!("{}\0\0{}\0", argv[2], argv[4]));
}

/// Creates a session with one pane, which has the tag `ann`.
fn create_team(server: &mut TmuxServer) -> CreatedPane {
    let created = server.new_session("team", "one", &idle_command()).unwrap();
    tag_created(server, &created, &tag("ann"), &label(""));
    created
}

#[test]
fn arguments_are_passed_unchanged() {
    on_all_servers(|fixture| {
        let (mut server, _notices) = fixture.connect();
        let team = create_team(&mut server);
        for text in HOSTILE_TEXTS {
            let argv = dump_command(fixture, text);
            let created = server.split(team.window, &argv).unwrap();
            assert_args_unchanged(&argv);
            server.tag_pane(created.pane, &tag("bob"), &label("")).unwrap();
            server.kill(created.pane, &tag("bob")).unwrap();
            assert_no_mark(fixture, text);
        }
        let argv = dump_command(fixture, &HOSTILE_TEXTS.concat());
        server.new_window(team.session, "two", &argv).unwrap();
        assert_args_unchanged(&argv);
    });
}

#[test]
fn arguments_are_passed_unchanged_without_a_control_connection() {
    on_default_servers(|fixture| {
        let (mut server, notices) = fixture.connect();
        let team = create_team(&mut server);
        // The client cannot connect again, so each call starts a tmux process.
        fixture.write_tmux_wrapper("case \" $* \" in *' -C new-session '*) exit 1;; esac");
        fixture.run(["detach-client", "-s", &fixture.hidden_sessions()[0]]);
        while notices.recv_timeout(std::time::Duration::from_secs(9)).unwrap()
            != tmux::ServerNotice::Disconnected
        {}
        for text in HOSTILE_TEXTS {
            let argv = dump_command(fixture, text);
            let created = server.split(team.window, &argv).unwrap();
            assert_args_unchanged(&argv);
            server.tag_pane(created.pane, &tag("bob"), &label(text)).unwrap();
            assert_eq!(server.kill(created.pane, &tag("bob")).unwrap(), tmux::KillOutcome::Killed);
        }
        assert!(server.is_alive());
        assert!(fixture.hidden_sessions().is_empty());
        assert_eq!(server.kill("%0".parse().unwrap(), &tag("bob")).unwrap(), tmux::KillOutcome::NotOwned);
        assert!(matches!(server.capture(team.pane, &tag("bob"), None), Err(Error::NotOwned { .. })));
        server.capture(team.pane, &tag("ann"), None).unwrap();
        assert_no_mark(fixture, "");
    });
}

#[test]
fn labels_are_not_expanded() {
    on_all_servers(|fixture| {
        let (mut server, _notices) = fixture.connect();
        let created = create_team(&mut server);
        let _user = fixture.attach_user();
        fixture.run(["switch-client", "-t", "=team:"]);
        for text in HOSTILE_TEXTS {
            server.set_label(created.pane, &tag("ann"), &label(text)).unwrap();
            let shown: String = text.chars().filter(|c| !c.is_control() && *c != '#').collect();
            let pane = created.pane.to_string();
            let border = fixture.run(["display-message", "-p", "-t", &pane, "#{T:pane-border-format}"]);
            // Only tmux 3.4 prints a backslash before a dollar sign.
            let border = border.replace("\\$", "$");
            let expected = format!("#[fg=colour208]#[bold]{shown}#[default] {shown} | {shown}");
            assert_eq!(border.trim(), expected.trim(), "{text:?}");
            assert_no_mark(fixture, text);
        }
    });
}

#[test]
fn unknown_color_sets_no_style() {
    on_all_servers(|fixture| {
        let (mut server, _notices) = fixture.connect();
        let created = create_team(&mut server);
        for text in HOSTILE_TEXTS {
            let label = tmux::BorderLabel { color: text.into(), ..label("x") };
            server.set_label(created.pane, &tag("ann"), &label).unwrap();
            let color = fixture.run(["show-options", "-pv", "-t", &created.pane.to_string(), "@teamd_color"]);
            assert_eq!(color, "default");
        }
    });
}

#[test]
fn pipe_writes_to_the_exact_file() {
    on_all_servers(|fixture| {
        let (mut server, _notices) = fixture.connect();
        for (index, text) in HOSTILE_TEXTS.iter().enumerate() {
            let fifo = fixture.make_fifo(&format!("go-{index}"));
            let argv = strings([
                "sh",
                "-c",
                "read go <\"$1\"; echo heard; exec sleep 1000",
                "sh",
                fifo.to_str().unwrap(),
            ]);
            let created = server.new_session(&format!("team-{index}"), "one", &argv).unwrap();
            server.tag_pane(created.pane, &tag("ann"), &label("")).unwrap();
            fs::create_dir(fixture.path(format!("d{text}"))).unwrap();
            let file = fixture.path(format!("d{text}")).join(text);
            server.pipe_output(created.pane, &tag("ann"), &append_command(&file)).unwrap();
            fixture.write_file(&format!("go-{index}"), "go\n");
            wait_until(&format!("output in the file {text:?}"), || {
                fs::read_to_string(&file).is_ok_and(|text| text.contains("heard")).then_some(())
            });
            assert_no_mark(fixture, text);
        }
    });
}

/// Returns a command that appends its input to `file`.
fn append_command(file: &std::path::Path) -> Vec<std::path::PathBuf> {
    vec!["/bin/sh".into(), "-c".into(), "exec cat >>\"$1\"".into(), "sh".into(), file.to_owned()]
}

#[test]
fn invalid_names_are_rejected() {
    on_default_servers(|fixture| {
        let (mut server, _notices) = fixture.connect();
        let team = create_team(&mut server);
        for text in HOSTILE_TEXTS.into_iter().filter(|text| *text != "-x") {
            for result in [
                server.new_session(text, "one", &idle_command()),
                server.new_session("two", text, &idle_command()),
                server.new_window(team.session, text, &idle_command()),
            ] {
                assert!(matches!(result, Err(Error::InvalidArgument { .. })), "{text:?}");
            }
        }
        let created = server.new_session("-x", "-y", &idle_command()).unwrap();
        server.new_window(created.session, "-y", &idle_command()).unwrap();
        for argv in [strings(["sleep"]), strings([""; 0]), strings(["sleep", "a\0b"])] {
            assert!(
                matches!(server.split(team.window, &argv), Err(Error::InvalidArgument { .. })),
                "{argv:?}"
            );
        }
    });
}
