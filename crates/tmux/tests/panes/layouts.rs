//! Tests that layouts apply to teamd's windows.

use crate::hide_and_show_panes::{create_two_panes, row};
use crate::test_server::{idle_command, on_all_servers, on_default_servers};

#[test]
fn layout_applies_only_to_teamd_windows() {
    on_default_servers(|fixture| {
        let (mut server, _notices) = fixture.connect();
        let (ann, _bob) = create_two_panes(&mut server);
        let user_window = row(&mut server, "%0".parse().unwrap()).window;
        fixture.run(["split-window", "-d", "-t", &user_window.to_string(), "sleep", "1000"]);
        let layout = |window: &str| fixture.run(["display-message", "-p", "-t", window, "#{window_layout}"]);
        let before = layout(&user_window.to_string());
        server.apply_layout(user_window, "even-horizontal").unwrap();
        assert_eq!(layout(&user_window.to_string()), before);
        let window = ann.window.to_string();
        server.apply_layout(ann.window, "even-horizontal").unwrap();
        assert!(layout(&window).contains('{'), "the panes are side by side: {}", layout(&window));
        server.apply_layout(ann.window, "even-vertical").unwrap();
        assert!(layout(&window).contains('['), "the panes are one above the other: {}", layout(&window));
        server.apply_layout("@9999".parse().unwrap(), "tiled").unwrap();
    });
}

#[test]
fn main_pane_is_the_largest_at_any_size() {
    on_all_servers(|fixture| {
        let (mut server, _notices) = fixture.connect();
        let (ann, _bob) = create_two_panes(&mut server);
        server.split(ann.window, &idle_command()).unwrap();
        let window = ann.window.to_string();
        let resize =
            |columns, lines| fixture.run(["resize-window", "-t", &window, "-x", columns, "-y", lines]);
        let list_sizes = |field: &str| -> Vec<u32> {
            // A hook of the hostile configuration adds a line to the output.
            let all = fixture.run(["list-panes", "-t", &window, "-F", field]);
            all.lines().filter_map(|size| size.parse().ok()).collect()
        };
        for (layout, field) in [("main-vertical", "#{pane_width}"), ("main-horizontal", "#{pane_height}")] {
            for (minimum, columns, lines) in [(8, "80", "24"), (18, "200", "50")] {
                resize(columns, lines);
                server.apply_layout(ann.window, layout).unwrap();
                let sizes = list_sizes(field);
                assert!(sizes[0] > sizes[1] && sizes[1..].iter().all(|size| *size >= minimum), "{sizes:?}");
            }
            resize("80", "24");
            let sizes = list_sizes(field);
            assert!(sizes[0] > sizes[1] && sizes[0] > sizes[2], "{layout}: {sizes:?}");
        }
    });
}
