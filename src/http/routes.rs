//! Every route of the API. Documentation is tested against this table.

use tiny_http::Method::{self, Delete, Get, Patch, Post};

use super::handlers::{
    Api, backends, config, daemon, edits, events, folders, history, images, imports, monitors,
    themes, wallpaper,
};
use super::router::{Handler, Route};

const fn route(
    method: Method,
    pattern: &'static str,
    handler: Handler<Api>,
    summary: &'static str,
) -> Route<Api> {
    Route { method, pattern, summary, handler }
}

pub static ROUTES: &[Route<Api>] = &[
    route(Get, "/healthz", daemon::healthz, "Whether the daemon answers"),
    route(Get, "/info", daemon::info, "Version, process and host"),
    route(Get, "/capabilities", daemon::capabilities, "What this installation can do"),
    route(Post, "/shutdown", daemon::shutdown, "Stop the daemon"),
    route(Get, "/events", events::stream, "Everything that happens, as server-sent events"),
    route(Get, "/images", images::list, "A page of the library"),
    route(Post, "/images", imports::import, "Take files and directories in"),
    route(Post, "/images/import-web", imports::import_web, "Take an HTML wallpaper in"),
    route(Delete, "/images", images::delete, "Remove images and their files"),
    route(Post, "/images/cancel-import", imports::cancel, "Stop an import"),
    route(Get, "/images/tags", edits::all_tags, "All tags in use"),
    route(Post, "/images/select-all", edits::select_all, "Select all images, or none"),
    route(Patch, "/images/{id}", edits::patch, "Change an image"),
    route(Get, "/images/{id}", images::one, "One image"),
    route(Get, "/images/{id}/thumbnail", images::thumbnail, "An image's thumbnail"),
    route(Get, "/images/{id}/raw", images::raw, "An image's file"),
    route(Get, "/images/history", history::list, "What hung where, newest first"),
    route(Delete, "/images/history", history::clear, "Forget the history"),
    route(Get, "/wallpaper/current", wallpaper::current, "What hangs on each monitor"),
    route(Post, "/wallpaper/set", wallpaper::set, "Hang an image"),
    route(Post, "/wallpaper/random", wallpaper::random, "Hang any image that can be shown"),
    route(Get, "/folders", folders::list, "Folders"),
    route(Post, "/folders", folders::create, "Make a folder"),
    route(Post, "/folders/move-images", folders::move_images, "Put images into a folder"),
    route(Get, "/folders/{id}", folders::get, "One folder"),
    route(Patch, "/folders/{id}", folders::patch, "Rename or move a folder"),
    route(Delete, "/folders/{id}", folders::delete, "Remove a folder"),
    route(Get, "/folders/{id}/path", folders::path, "The folders from the root down to this one"),
    route(Get, "/api/themes", themes::list, "The user's palettes"),
    route(Get, "/api/themes/{name}.css", themes::css, "One palette"),
    route(Get, "/monitors", monitors::list, "The connected monitors"),
    route(Get, "/monitors/{name}", monitors::one, "One connected monitor"),
    route(Get, "/config", config::whole, "All settings"),
    route(Patch, "/config", config::patch_whole, "Change settings of several sections"),
    route(Post, "/config/reset", config::reset_whole, "All settings to their defaults"),
    route(Get, "/config/{section}", config::section, "One section of the settings"),
    route(Patch, "/config/{section}", config::patch_section, "Change settings of a section"),
    route(Get, "/config/backends/{backend}", config::backend, "One backend's settings"),
    route(
        Patch,
        "/config/backends/{backend}",
        config::patch_backend,
        "Change a backend's settings",
    ),
    route(
        Post,
        "/config/backends/{backend}/reset",
        config::reset_backend,
        "A backend's settings to their defaults",
    ),
    route(Get, "/backends", backends::list, "Every backend and whether it can be used"),
    route(Post, "/backends/{name}/activate", backends::activate, "Use another backend"),
];
