//! Finds windows that cover the wallpaper of an X server, such as a file manager's desktop.
//!
//! Runs on the calling thread. It changes nothing and follows no events, since it would wake for each
//! new window.

use x11rb::protocol::xproto::{AtomEnum, ConnectionExt as _, MapState, Window};

use super::Output;
use super::x_server::{Error, XServer};

/// More than anybody has open.
const WINDOWS: usize = 4096;

/// A visible window of the type that desktops have, which covers more than half of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DesktopWindow {
    /// Its program, as the window names it.
    pub(crate) class: Option<String>,
    pub(crate) pid: Option<i32>,
}

/// The desktop windows of an X server; none if it cannot be asked.
pub(crate) fn desktop_windows(display: &str, outputs: &[Output]) -> Vec<DesktopWindow> {
    find(display, outputs).unwrap_or_else(|error| {
        log::debug!("cannot ask the X server for desktop windows: {error}");
        Vec::new()
    })
}

fn find(display: &str, outputs: &[Output]) -> Result<Vec<DesktopWindow>, Error> {
    let server = XServer::connect(display)?;
    let root = server.root;
    let [kind, desktop, list, pid] = server.atoms([
        "_NET_WM_WINDOW_TYPE",
        "_NET_WM_WINDOW_TYPE_DESKTOP",
        "_NET_CLIENT_LIST",
        "_NET_WM_PID",
    ])?;
    // A window manager may have put it into a frame; without one it is the root window's child.
    let mut windows = server.server.query_tree(root)?.reply()?.children;
    windows.extend(server.numbers(root, list)?);
    windows.sort_unstable();
    windows.dedup();
    let mut found = Vec::new();
    for window in windows.into_iter().take(WINDOWS) {
        // One that has gone by now is no window of any type.
        let is_desktop = server.numbers(window, kind).unwrap_or_default().contains(&desktop);
        if is_desktop && server.covers_any(window, outputs).unwrap_or(false) {
            let pid = server.numbers(window, pid)?.first().and_then(|&pid| pid.try_into().ok());
            found.push(DesktopWindow { class: server.class(window)?, pid });
        }
    }
    Ok(found)
}

impl XServer {
    /// The second name of `WM_CLASS`, which is the program's.
    fn class(&self, window: Window) -> Result<Option<String>, Error> {
        let property = self.property(window, AtomEnum::WM_CLASS.into())?;
        let name = property.value.split(|&byte| byte == 0).rfind(|name| !name.is_empty());
        Ok(name.map(|name| String::from_utf8_lossy(name).into_owned()))
    }

    fn covers_any(&self, window: Window, outputs: &[Output]) -> Result<bool, Error> {
        let attributes = self.server.get_window_attributes(window)?.reply()?;
        let size = self.server.get_geometry(window)?.reply()?;
        let place = self.server.translate_coordinates(window, self.root, 0, 0)?.reply()?;
        let place = [place.dst_x, place.dst_y].map(i64::from);
        let size = [size.width, size.height].map(i64::from);
        let hides = |output: &Output| {
            let at = [output.x, output.y].map(i64::from);
            covers(
                (place, size),
                (at, [output.logical_width, output.logical_height].map(i64::from)),
            )
        };
        Ok(attributes.map_state == MapState::VIEWABLE && outputs.iter().any(hides))
    }
}

/// A place and a size.
type Area = ([i64; 2], [i64; 2]);

/// Whether one lies over more than half of the other.
fn covers((place, size): Area, (at, of): Area) -> bool {
    let shared = |axis: usize| {
        let end = (place[axis] + size[axis]).min(at[axis] + of[axis]);
        (end - place[axis].max(at[axis])).max(0)
    };
    2 * shared(0) * shared(1) > of[0] * of[1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_covers_an_output_of_which_it_has_more_than_half() {
        let check = |place, size, expected| {
            let output = ([1920, 0], [1280, 720]);
            assert_eq!(covers((place, size), output), expected, "{place:?} {size:?}");
        };
        check([0, 0], [3200, 1080], true);
        check([1920, 0], [1280, 720], true);
        // Beside a panel.
        check([1920, 40], [1280, 680], true);
        check([0, 0], [1920, 1080], false);
        check([1920, 0], [640, 720], false);
        check([-5000, -5000], [100, 100], false);
    }
}
