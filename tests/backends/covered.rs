//! Tests that videos pause under a full-screen window, with the real sway and a window of the test.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use wayland_client::globals::{GlobalListContents, registry_queue_init};
use wayland_client::protocol::{
    wl_buffer, wl_compositor, wl_registry, wl_shm, wl_shm_pool, wl_surface,
};
use wayland_client::{Connection, Dispatch, Proxy, QueueHandle, delegate_noop};
use wayland_protocols::xdg::shell::client::{xdg_surface, xdg_toplevel, xdg_wm_base};

use crate::desktop::{Desktop, wait_until};
use crate::hosted::{Hosted, videos};
use crate::rest::{is_paused, sockets, tell, told};

struct Window {
    surface: wl_surface::WlSurface,
    buffer: wl_buffer::WlBuffer,
    is_closed: bool,
}

impl Window {
    /// Opens the window full screen. A thread answers the compositor until the window is closed.
    fn open(desktop: &Desktop) {
        let run = Path::new(desktop.var("XDG_RUNTIME_DIR").unwrap());
        let stream = UnixStream::connect(run.join(desktop.var("WAYLAND_DISPLAY").unwrap()));
        let connection = Connection::from_socket(stream.unwrap()).unwrap();
        let (globals, mut queue) = registry_queue_init::<Self>(&connection).unwrap();
        let handle = queue.handle();
        let compositor: wl_compositor::WlCompositor = globals.bind(&handle, 1..=4, ()).unwrap();
        let shm: wl_shm::WlShm = globals.bind(&handle, 1..=1, ()).unwrap();
        let shell: xdg_wm_base::XdgWmBase = globals.bind(&handle, 1..=1, ()).unwrap();
        let memory: File = tempfile::tempfile().unwrap();
        memory.set_len(4 * 64 * 64).unwrap();
        let pool = shm.create_pool(memory.as_fd(), 4 * 64 * 64, &handle, ());
        let buffer = pool.create_buffer(0, 64, 64, 256, wl_shm::Format::Xrgb8888, &handle, ());
        let surface = compositor.create_surface(&handle, ());
        let toplevel = shell
            .get_xdg_surface(&surface, &handle, ())
            .get_toplevel(&handle, ());
        toplevel.set_fullscreen(None);
        surface.commit();
        std::thread::spawn(move || {
            let mut window = Self {
                surface,
                buffer,
                is_closed: false,
            };
            while !window.is_closed && queue.blocking_dispatch(&mut window).is_ok() {}
        });
    }
}

delegate_noop!(Window: ignore wl_compositor::WlCompositor);
delegate_noop!(Window: ignore wl_shm::WlShm);
delegate_noop!(Window: ignore wl_shm_pool::WlShmPool);
delegate_noop!(Window: ignore wl_surface::WlSurface);
delegate_noop!(Window: ignore wl_buffer::WlBuffer);

/// Handles the events of a protocol object.
macro_rules! on {
    ($proxy:ty, $data:ty, $act:expr) => {
        impl Dispatch<$proxy, $data> for Window {
            fn event(
                window: &mut Self,
                proxy: &$proxy,
                event: <$proxy as Proxy>::Event,
                _: &$data,
                _: &Connection,
                _: &QueueHandle<Self>,
            ) {
                let act: fn(&mut Self, &$proxy, <$proxy as Proxy>::Event) = $act;
                act(window, proxy, event);
            }
        }
    };
}
on!(wl_registry::WlRegistry, GlobalListContents, |_, _, _| ());
on!(xdg_wm_base::XdgWmBase, (), |_, shell, event| {
    if let xdg_wm_base::Event::Ping { serial } = event {
        shell.pong(serial);
    }
});
on!(xdg_surface::XdgSurface, (), |window, surface, event| {
    if let xdg_surface::Event::Configure { serial } = event {
        surface.ack_configure(serial);
        window.surface.attach(Some(&window.buffer), 0, 0);
        window.surface.commit();
    }
});
on!(xdg_toplevel::XdgToplevel, (), |window, _, event| {
    window.is_closed |= matches!(event, xdg_toplevel::Event::Close);
});

/// Waits until the monitors report these reasons, and the videos there are paused by them.
#[track_caller]
fn until(hosted: &Hosted, playing: &[PathBuf], expected: &[Value; 2]) {
    wait_until(&format!("{expected:?}"), || {
        let current = hosted.daemon.client().get("/wallpaper/current").ok();
        let reasons = [0, 1].map(|at| current["monitors"][at]["paused_by"].clone());
        let paused = [0, 1].map(|at| is_paused(&playing[at]));
        (&reasons, paused) == (expected, expected.clone().map(|by| !by.is_null()))
    });
}

#[test]
fn videos_pause_under_a_window_that_is_full_screen() {
    let settings = "[power]\npause_when_covered = true\npause_when_locked = true";
    let mut hosted = Hosted::with(
        "mpvpaper",
        &["mpvpaper"],
        &["640x480", "640x480"],
        settings,
        &[],
    );
    let [video, other] = videos(&hosted);
    hosted.set(&json!({ "image_id": video }));
    let playing = sockets(&hosted);
    let sway = |hosted: &Hosted, command: &str| {
        hosted.desktop.output("swaymsg", &["-q", command]);
    };
    let (none, covered) = (
        || [Value::Null, Value::Null],
        || [json!("covered"), Value::Null],
    );
    until(&hosted, &playing, &none());
    sway(&hosted, "focus output HEADLESS-1");
    Window::open(&hosted.desktop);
    until(&hosted, &playing, &covered());
    // A video that is set under it is paused as well; a window on a hidden workspace covers nothing.
    hosted.set(&json!({ "image_id": other, "monitors": ["HEADLESS-1"] }));
    until(&hosted, &playing, &covered());
    sway(&hosted, "workspace hidden");
    until(&hosted, &playing, &none());
    sway(&hosted, "workspace back_and_forth");
    until(&hosted, &playing, &covered());
    sway(&hosted, "fullscreen disable");
    until(&hosted, &playing, &none());
    sway(&hosted, "fullscreen enable");
    until(&hosted, &playing, &covered());
    tell(&hosted, "locked");
    until(&hosted, &playing, &[json!("locked"), json!("locked")]);
    tell(&hosted, "unlocked");
    until(&hosted, &playing, &covered());
    // The next daemon leaves the video paused until it knows that the window still covers it.
    let changes = |hosted: &Hosted| {
        let mut told = told(hosted, "HEADLESS-1");
        told.dedup();
        told
    };
    let before = changes(&hosted);
    hosted.daemon.kill9();
    hosted.daemon.start();
    until(&hosted, &playing, &covered());
    assert_eq!(changes(&hosted), before);
    sway(&hosted, "kill");
    until(&hosted, &playing, &none());
    sway(&hosted, "focus output HEADLESS-2");
    Window::open(&hosted.desktop);
    until(&hosted, &playing, &[Value::Null, json!("covered")]);
    let off = json!({ "pause_when_covered": false });
    hosted.daemon.client().patch("/config/power", &off).ok();
    until(&hosted, &playing, &none());
}
