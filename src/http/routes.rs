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
    Route {
        method,
        pattern,
        summary,
        handler,
        bare: false,
    }
}

/// A route that takes no body.
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
    route(
        Get,
        "/healthz",
        daemon::healthz,
        "Check whether the daemon answers",
    ),
    route(
        Get,
        "/info",
        daemon::info,
        "Show version, session and paths",
    ),
    route(
        Get,
        "/capabilities",
        daemon::capabilities,
        "Show whether ffmpeg is available",
    ),
    route(
        Get,
        "/debug",
        daemon::debug,
        "Show the internal state, for bug reports",
    ),
    route(Post, "/shutdown", daemon::shutdown, "Stop the daemon"),
    route(Get, "/events", daemon::events, "Stream events"),
    route(Get, "/images", images::list, "List images, page by page"),
    route(
        Post,
        "/images",
        library::import,
        "Import files and directories",
    ),
    route(
        Post,
        "/images/import-web",
        library::import_web,
        "Import an HTML wallpaper",
    ),
    route(
        Delete,
        "/images",
        images::delete,
        "Delete images and their files",
    ),
    route(
        Post,
        "/images/cancel-import",
        library::cancel_import,
        "Cancel an import",
    ),
    route(
        Get,
        "/images/ids",
        images::ids,
        "List the IDs of all matching images",
    ),
    route(
        Get,
        "/images/tags",
        images::all_tags,
        "List the tags in use",
    ),
    route(
        Post,
        "/images/select-all",
        images::select_all,
        "Select or deselect all images",
    ),
    route(
        Patch,
        "/images",
        images::patch_many,
        "Change the tags of several images",
    ),
    route(Patch, "/images/{id}", images::patch, "Change an image"),
    route(Get, "/images/{id}", images::one, "Get an image"),
    route(
        Get,
        "/images/{id}/thumbnail",
        images::thumbnail,
        "Get a thumbnail (WebP)",
    ),
    route(
        Get,
        "/images/{id}/raw",
        images::raw,
        "Get the file of an image",
    ),
    bare(
        Post,
        "/images/{id}/ensure-browser-preview",
        library::ensure_preview,
        "Create a preview for browsers",
    ),
    route(
        Post,
        "/images/{id}/extract-video-palette",
        library::extract_palette,
        "Extract the palette of a frame",
    ),
    route(
        Post,
        "/images/{id}/video-loop-export",
        library::export_loop,
        "Export a loop from a video",
    ),
    route(
        Get,
        "/images/history",
        wallpaper::history,
        "List past wallpapers, newest first",
    ),
    bare(
        Delete,
        "/images/history",
        wallpaper::clear_history,
        "Clear the history",
    ),
    route(
        Get,
        "/wallpaper/current",
        wallpaper::current,
        "Show what each monitor displays",
    ),
    route(Post, "/wallpaper/set", wallpaper::set, "Set the wallpaper"),
    route(
        Post,
        "/wallpaper/random",
        wallpaper::random,
        "Set a random image",
    ),
    route(
        Post,
        "/wallpaper/back",
        wallpaper::back,
        "Go back to the previous wallpaper",
    ),
    route(
        Post,
        "/wallpaper/sound",
        wallpaper::sound,
        "Change the sound of videos",
    ),
    route(Get, "/why", why::list, "Explain what each monitor displays"),
    route(
        Get,
        "/workspaces",
        session::workspaces,
        "List the wallpapers of workspaces",
    ),
    route(Get, "/playlists", playlists::list, "List the playlists"),
    route(Post, "/playlists", playlists::create, "Create a playlist"),
    route(Get, "/playlists/{id}", playlists::get, "Get a playlist"),
    route(
        Patch,
        "/playlists/{id}",
        playlists::patch,
        "Change a playlist",
    ),
    bare(
        Delete,
        "/playlists/{id}",
        playlists::delete,
        "Delete a playlist",
    ),
    route(
        Get,
        "/playlists/{id}/images",
        playlists::images,
        "List the images of a playlist",
    ),
    route(
        Get,
        "/playlists/{id}/images/ids",
        playlists::image_ids,
        "List the image IDs of a playlist",
    ),
    route(
        Post,
        "/playlists/{id}/start",
        playlists::start,
        "Start a playlist",
    ),
    route(
        Post,
        "/playlists/{id}/stop",
        playlists::act,
        "Stop a playlist",
    ),
    route(
        Post,
        "/playlists/{id}/pause",
        playlists::act,
        "Pause a playlist",
    ),
    route(
        Post,
        "/playlists/{id}/resume",
        playlists::act,
        "Resume a playlist",
    ),
    route(
        Post,
        "/playlists/{id}/next",
        playlists::act,
        "Show the next image of a playlist",
    ),
    route(
        Post,
        "/playlists/{id}/previous",
        playlists::act,
        "Show the previous image of a playlist",
    ),
    route(
        Get,
        "/playlists/active",
        playlists::active,
        "List the running playlists",
    ),
    route(
        Get,
        "/playlists/active/{monitor}",
        playlists::active_on,
        "Get the playlist of a monitor",
    ),
    route(
        Post,
        "/playlists/active/stop",
        playlists::act_on_all,
        "Stop all running playlists",
    ),
    route(
        Post,
        "/playlists/active/pause",
        playlists::act_on_all,
        "Pause all running playlists",
    ),
    route(
        Post,
        "/playlists/active/resume",
        playlists::act_on_all,
        "Resume all paused playlists",
    ),
    route(
        Post,
        "/playlists/active/next",
        playlists::act_on_all,
        "Show the next image of all playlists",
    ),
    route(
        Post,
        "/playlists/active/previous",
        playlists::act_on_all,
        "Show the previous image of all playlists",
    ),
    route(
        Get,
        "/appearance",
        session::appearance,
        "Show light or dark mode",
    ),
    route(
        Put,
        "/appearance",
        session::put_appearance,
        "Set light or dark mode",
    ),
    route(
        Get,
        "/power",
        session::power,
        "Show the session and battery state",
    ),
    route(
        Put,
        "/power",
        session::put_power,
        "Report the session as locked or idle",
    ),
    route(Get, "/folders", library::folders, "List folders"),
    route(Post, "/folders", library::create_folder, "Create a folder"),
    route(
        Post,
        "/folders/move-images",
        library::move_images,
        "Move images into a folder",
    ),
    route(Get, "/folders/{id}", library::folder, "Get a folder"),
    route(
        Patch,
        "/folders/{id}",
        library::patch_folder,
        "Rename or move a folder",
    ),
    bare(
        Delete,
        "/folders/{id}",
        library::delete_folder,
        "Delete a folder",
    ),
    route(
        Get,
        "/folders/{id}/path",
        library::folder_path,
        "List a folder and its parents",
    ),
    bare(
        Post,
        "/library/purge-missing",
        library::purge_missing,
        "Remove images whose files are missing",
    ),
    route(
        Get,
        "/library/watch",
        library::watched,
        "List the watched directories",
    ),
    route(
        Put,
        "/library/watch",
        library::put_watch,
        "Set the watched directories",
    ),
    route(
        Patch,
        "/library/watch",
        library::patch_watch,
        "Add or remove watched directories",
    ),
    bare(
        Post,
        "/library/scan",
        library::scan,
        "Rescan the watched directories",
    ),
    route(Get, "/api/themes", config::themes, "List your themes"),
    route(
        Get,
        "/api/themes/{name}.css",
        config::theme_css,
        "Get the style sheet of a theme",
    ),
    route(
        Get,
        "/monitors",
        session::monitors,
        "List the connected monitors",
    ),
    route(Get, "/monitors/{name}", session::monitor, "Get a monitor"),
    route(Get, "/config", config::whole, "Show all settings"),
    route(
        Patch,
        "/config",
        config::patch_whole,
        "Change settings in several sections",
    ),
    bare(
        Post,
        "/config/reset",
        config::reset_whole,
        "Reset all settings",
    ),
    route(Get, "/config/{section}", config::section, "Show a section"),
    route(
        Patch,
        "/config/{section}",
        config::patch_section,
        "Change a section",
    ),
    route(
        Get,
        "/config/backends/{backend}",
        config::backend,
        "Show the settings of a backend",
    ),
    route(
        Patch,
        "/config/backends/{backend}",
        config::patch_backend,
        "Change the settings of a backend",
    ),
    bare(
        Post,
        "/config/backends/{backend}/reset",
        config::reset_backend,
        "Reset the settings of a backend",
    ),
    route(Get, "/backends", config::backends, "List the backends"),
    bare(
        Post,
        "/backends/{name}/activate",
        config::activate,
        "Switch to a backend",
    ),
];
