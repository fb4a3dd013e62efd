//! Every route of the API. Documentation is tested against this table.

use tiny_http::Method::{self, Delete, Get, Patch, Post, Put};

use super::handlers::{Api, config, daemon, images, library, playlists, session, wallpaper, why};
use super::router::{Handler, Route};

const fn route(
    method: Method,
    pattern: &'static str,
    handler: Handler<Api>,
    summary: &'static str,
) -> Route<Api> {
    Route { method, pattern, summary, handler, bare: false }
}

/// One that takes no body.
const fn bare(
    method: Method,
    pattern: &'static str,
    handler: Handler<Api>,
    summary: &'static str,
) -> Route<Api> {
    let mut route = route(method, pattern, handler, summary);
    route.bare = true;
    route
}

pub static ROUTES: &[Route<Api>] = &[
    route(Get, "/healthz", daemon::healthz, "Whether the daemon answers"),
    route(Get, "/info", daemon::info, "Version, process and host"),
    route(Get, "/capabilities", daemon::capabilities, "What this installation can do"),
    route(Get, "/debug", daemon::debug, "What goes on inside the daemon"),
    route(Post, "/shutdown", daemon::shutdown, "Stop the daemon"),
    route(Get, "/events", daemon::events, "Everything that happens, as server-sent events"),
    route(Get, "/images", images::list, "List images, page by page"),
    route(Post, "/images", library::import, "Import files and directories"),
    route(Post, "/images/import-web", library::import_web, "Import an HTML wallpaper"),
    route(Delete, "/images", images::delete, "Delete images and their files"),
    route(Post, "/images/cancel-import", library::cancel_import, "Stop an import"),
    route(Get, "/images/ids", images::ids, "List the ids of images, all at one instant"),
    route(Get, "/images/tags", images::all_tags, "List all tags that images have"),
    route(Post, "/images/select-all", images::select_all, "Mark all images as selected, or none"),
    route(Patch, "/images/{id}", images::patch, "Change an image"),
    route(Get, "/images/{id}", images::one, "One image"),
    route(Get, "/images/{id}/thumbnail", images::thumbnail, "An image's thumbnail"),
    route(Get, "/images/{id}/raw", images::raw, "An image's file"),
    bare(
        Post,
        "/images/{id}/ensure-browser-preview",
        library::ensure_preview,
        "Make a video's preview for browsers",
    ),
    route(
        Post,
        "/images/{id}/extract-video-palette",
        library::extract_palette,
        "Take a video's palette from one moment of it",
    ),
    route(
        Post,
        "/images/{id}/video-loop-export",
        library::export_loop,
        "Cut a loop out of a video",
    ),
    route(
        Get,
        "/images/history",
        wallpaper::history,
        "List the wallpapers that were shown, newest first",
    ),
    bare(Delete, "/images/history", wallpaper::clear_history, "Forget the history"),
    route(Get, "/wallpaper/current", wallpaper::current, "What each monitor shows"),
    route(Post, "/wallpaper/set", wallpaper::set, "Show an image as the wallpaper"),
    route(Post, "/wallpaper/random", wallpaper::random, "Show an image at random"),
    route(Post, "/wallpaper/back", wallpaper::back, "Show what was there before"),
    route(Get, "/why", why::list, "Why each monitor shows what it shows"),
    route(Get, "/playlists", playlists::list, "List the playlists"),
    route(Post, "/playlists", playlists::create, "Create a playlist"),
    route(Get, "/playlists/{id}", playlists::get, "One playlist"),
    route(Patch, "/playlists/{id}", playlists::patch, "Change a playlist"),
    bare(Delete, "/playlists/{id}", playlists::delete, "Delete a playlist"),
    route(Get, "/playlists/{id}/images", playlists::images, "The images of a playlist"),
    route(
        Get,
        "/playlists/{id}/images/ids",
        playlists::image_ids,
        "The ids of the images of a playlist, all at one instant",
    ),
    route(Post, "/playlists/{id}/start", playlists::start, "Start a playlist"),
    route(Post, "/playlists/{id}/stop", playlists::stop, "Stop a playlist"),
    route(Post, "/playlists/{id}/pause", playlists::pause, "Pause a playlist"),
    route(Post, "/playlists/{id}/resume", playlists::resume, "Let a paused playlist go on"),
    route(Post, "/playlists/{id}/next", playlists::next, "Show the next image of a playlist"),
    route(
        Post,
        "/playlists/{id}/previous",
        playlists::previous,
        "Show the previous image of a playlist",
    ),
    route(Get, "/playlists/active", playlists::active, "List the playlists that run"),
    route(
        Get,
        "/playlists/active/{monitor}",
        playlists::active_on,
        "The playlist that runs on a monitor",
    ),
    route(Post, "/playlists/active/stop", playlists::stop_all, "Stop all running playlists"),
    route(Post, "/playlists/active/pause", playlists::pause_all, "Pause all running playlists"),
    route(
        Post,
        "/playlists/active/resume",
        playlists::resume_all,
        "Let all paused playlists go on",
    ),
    route(
        Post,
        "/playlists/active/next",
        playlists::next_all,
        "Show the next image of each running playlist",
    ),
    route(
        Post,
        "/playlists/active/previous",
        playlists::previous_all,
        "Show the previous image of each running playlist",
    ),
    route(Get, "/appearance", session::appearance, "Whether it is light or dark"),
    route(Put, "/appearance", session::put_appearance, "Say what decides between light and dark"),
    route(Get, "/power", session::power, "Whether the session is locked or idle"),
    route(Put, "/power", session::put_power, "Say whether the session is locked or idle"),
    route(Get, "/folders", library::folders, "List folders"),
    route(Post, "/folders", library::create_folder, "Create a folder"),
    route(Post, "/folders/move-images", library::move_images, "Put images into a folder"),
    route(Get, "/folders/{id}", library::folder, "One folder"),
    route(Patch, "/folders/{id}", library::patch_folder, "Rename or move a folder"),
    bare(Delete, "/folders/{id}", library::delete_folder, "Delete a folder"),
    route(
        Get,
        "/folders/{id}/path",
        library::folder_path,
        "The folders from the root down to this one",
    ),
    bare(
        Post,
        "/library/purge-missing",
        library::purge_missing,
        "Forget all images whose files are missing",
    ),
    route(
        Get,
        "/library/watch",
        library::watched,
        "The directories that are watched, and how they are",
    ),
    route(Put, "/library/watch", library::watch, "Say which directories are watched"),
    bare(Post, "/library/scan", library::scan, "Look at all watched directories again"),
    route(Get, "/api/themes", config::themes, "List the user's themes for graphical clients"),
    route(Get, "/api/themes/{name}.css", config::theme_css, "A theme's style sheet"),
    route(Get, "/monitors", session::monitors, "List the connected monitors"),
    route(Get, "/monitors/{name}", session::monitor, "One connected monitor"),
    route(Get, "/config", config::whole, "All settings"),
    route(Patch, "/config", config::patch_whole, "Change settings of several sections"),
    bare(Post, "/config/reset", config::reset_whole, "Reset all settings to their defaults"),
    route(Get, "/config/{section}", config::section, "One section of the settings"),
    route(Patch, "/config/{section}", config::patch_section, "Change settings of a section"),
    route(Get, "/config/backends/{backend}", config::backend, "One backend's settings"),
    route(
        Patch,
        "/config/backends/{backend}",
        config::patch_backend,
        "Change a backend's settings",
    ),
    bare(
        Post,
        "/config/backends/{backend}/reset",
        config::reset_backend,
        "Reset a backend's settings to their defaults",
    ),
    route(Get, "/backends", config::backends, "List the backends, and whether each can be used"),
    bare(Post, "/backends/{name}/activate", config::activate, "Use another backend"),
];
