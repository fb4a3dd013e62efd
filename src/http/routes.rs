//! Every route of the API. Documentation is tested against this table.

use tiny_http::Method::{self, Delete, Get, Patch, Post, Put};

use super::handlers::{Api, config, daemon, images, library, playlists, session, wallpaper, why};
use super::router::{Handler, Route};

const fn route(method: Method, pattern: &'static str, handler: Handler<Api>) -> Route<Api> {
    Route {
        method,
        pattern,
        handler,
        bare: false,
    }
}

/// A route that takes no body.
const fn bare(method: Method, pattern: &'static str, handler: Handler<Api>) -> Route<Api> {
    let mut route = route(method, pattern, handler);
    route.bare = true;
    route
}

pub static ROUTES: &[Route<Api>] = &[
    route(Get, "/healthz", daemon::healthz),
    route(Get, "/info", daemon::info),
    route(Get, "/capabilities", daemon::capabilities),
    route(Get, "/debug", daemon::debug),
    route(Post, "/shutdown", daemon::shutdown),
    route(Get, "/events", daemon::events),
    route(Get, "/images", images::list),
    route(Post, "/images", library::import),
    route(Post, "/images/import-web", library::import_web),
    route(Delete, "/images", images::delete),
    route(Post, "/images/cancel-import", library::cancel_import),
    route(Get, "/images/ids", images::ids),
    route(Get, "/images/tags", images::all_tags),
    route(Post, "/images/select-all", images::select_all),
    route(Patch, "/images", images::patch_many),
    route(Patch, "/images/{id}", images::patch),
    route(Get, "/images/{id}", images::one),
    route(Get, "/images/{id}/thumbnail", images::thumbnail),
    route(Get, "/images/{id}/raw", images::raw),
    bare(
        Post,
        "/images/{id}/ensure-browser-preview",
        library::ensure_preview,
    ),
    route(
        Post,
        "/images/{id}/extract-video-palette",
        library::extract_palette,
    ),
    route(Post, "/images/{id}/video-loop-export", library::export_loop),
    route(Get, "/images/history", wallpaper::history),
    bare(Delete, "/images/history", wallpaper::clear_history),
    route(Get, "/wallpaper/current", wallpaper::current),
    route(Post, "/wallpaper/set", wallpaper::set),
    route(Post, "/wallpaper/random", wallpaper::random),
    route(Post, "/wallpaper/back", wallpaper::back),
    route(Post, "/wallpaper/sound", wallpaper::sound),
    route(Get, "/why", why::list),
    route(Get, "/workspaces", session::workspaces),
    route(Get, "/playlists", playlists::list),
    route(Post, "/playlists", playlists::create),
    route(Get, "/playlists/{id}", playlists::get),
    route(Patch, "/playlists/{id}", playlists::patch),
    bare(Delete, "/playlists/{id}", playlists::delete),
    route(Get, "/playlists/{id}/images", playlists::images),
    route(Get, "/playlists/{id}/images/ids", playlists::image_ids),
    route(Post, "/playlists/{id}/start", playlists::start),
    route(Post, "/playlists/{id}/stop", playlists::act),
    route(Post, "/playlists/{id}/pause", playlists::act),
    route(Post, "/playlists/{id}/resume", playlists::act),
    route(Post, "/playlists/{id}/next", playlists::act),
    route(Post, "/playlists/{id}/previous", playlists::act),
    route(Get, "/playlists/active", playlists::active),
    route(Get, "/playlists/active/{monitor}", playlists::active_on),
    route(Post, "/playlists/active/stop", playlists::act_on_all),
    route(Post, "/playlists/active/pause", playlists::act_on_all),
    route(Post, "/playlists/active/resume", playlists::act_on_all),
    route(Post, "/playlists/active/next", playlists::act_on_all),
    route(Post, "/playlists/active/previous", playlists::act_on_all),
    route(Get, "/appearance", session::appearance),
    route(Put, "/appearance", session::put_appearance),
    route(Get, "/power", session::power),
    route(Put, "/power", session::put_power),
    route(Get, "/folders", library::folders),
    route(Post, "/folders", library::create_folder),
    route(Post, "/folders/move-images", library::move_images),
    route(Get, "/folders/{id}", library::folder),
    route(Patch, "/folders/{id}", library::patch_folder),
    bare(Delete, "/folders/{id}", library::delete_folder),
    route(Get, "/folders/{id}/path", library::folder_path),
    bare(Post, "/library/purge-missing", library::purge_missing),
    route(Get, "/library/watch", library::watched),
    route(Put, "/library/watch", library::put_watch),
    route(Patch, "/library/watch", library::patch_watch),
    bare(Post, "/library/scan", library::scan),
    route(Get, "/api/themes", config::themes),
    route(Get, "/api/themes/{name}.css", config::theme_css),
    route(Get, "/monitors", session::monitors),
    route(Get, "/monitors/{name}", session::monitor),
    route(Get, "/config", config::whole),
    route(Patch, "/config", config::patch_whole),
    bare(Post, "/config/reset", config::reset_whole),
    route(Get, "/config/{section}", config::section),
    route(Patch, "/config/{section}", config::patch_section),
    route(Get, "/config/backends/{backend}", config::backend),
    route(Patch, "/config/backends/{backend}", config::patch_backend),
    bare(
        Post,
        "/config/backends/{backend}/reset",
        config::reset_backend,
    ),
    route(Get, "/backends", config::backends),
    bare(Post, "/backends/{name}/activate", config::activate),
];
