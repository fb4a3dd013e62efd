-- Version 1, as it was: migrations.rs renames and adds the rest. Times are microseconds since 1970 (UTC), flags 0 or 1, lists JSON arrays.
-- AUTOINCREMENT: an id is never used again.

CREATE TABLE folder (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    name       TEXT    NOT NULL,
    parent_id  INTEGER REFERENCES folder (id),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;
-- NULL is never equal to NULL, 0 is no id: so names are unique at the root too.
CREATE UNIQUE INDEX folder_name ON folder (ifnull(parent_id, 0), name);

CREATE TABLE image (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    name          TEXT    NOT NULL UNIQUE,
    path          TEXT    NOT NULL UNIQUE,
    media_type    TEXT    NOT NULL,
    format        TEXT    NOT NULL,
    width         INTEGER NOT NULL,
    height        INTEGER NOT NULL,
    duration      REAL    NOT NULL,
    animated      INTEGER NOT NULL,
    audio_enabled INTEGER NOT NULL,
    file_size     INTEGER NOT NULL,
    checksum      BLOB    NOT NULL UNIQUE,
    tags          TEXT    NOT NULL,
    -- Three bytes a colour, most dominant first.
    colors        BLOB    NOT NULL,
    -- 0 to 11, or 99; follows from the colours.
    hue_group     INTEGER NOT NULL,
    folder_id     INTEGER REFERENCES folder (id),
    is_selected   INTEGER NOT NULL DEFAULT 0,
    imported_at   INTEGER NOT NULL,
    source_path   TEXT    NOT NULL,
    preview_path  TEXT,
    web_meta      TEXT,
    overrides     TEXT
) STRICT;
CREATE INDEX image_imported_at ON image (imported_at, id);
CREATE INDEX image_file_size ON image (file_size, id);
CREATE INDEX image_media_type ON image (media_type);
CREATE INDEX image_folder ON image (folder_id);

-- Files of ours that no row owns: on their way in, or on their way out. Removed at start.
CREATE TABLE loose_file (
    path TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

-- Renames on their way: the row has the old path until the file has the new one.
CREATE TABLE rename (
    image_id  INTEGER PRIMARY KEY,
    from_path TEXT NOT NULL,
    to_path   TEXT NOT NULL
) STRICT;

CREATE TABLE playlist (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    name          TEXT    NOT NULL UNIQUE,
    type          TEXT    NOT NULL,
    interval      INTEGER NOT NULL,
    play_order    TEXT    NOT NULL,
    start_first   INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL
) STRICT;

CREATE TABLE playlist_image (
    playlist_id INTEGER NOT NULL REFERENCES playlist (id) ON DELETE CASCADE,
    -- For good, wherever an edit moves it: its entry in the index below stays as it is.
    row         INTEGER NOT NULL,
    -- With gaps.
    position    INTEGER NOT NULL,
    image_id    INTEGER NOT NULL REFERENCES image (id) ON DELETE CASCADE,
    -- Minutes since midnight.
    time        INTEGER,
    PRIMARY KEY (playlist_id, row)
) STRICT, WITHOUT ROWID;
CREATE INDEX playlist_image_image ON playlist_image (image_id);

-- Where a playlist stands, and whether it runs.
CREATE TABLE playback (
    playlist_id INTEGER PRIMARY KEY REFERENCES playlist (id) ON DELETE CASCADE,
    running     INTEGER NOT NULL,
    state       TEXT    NOT NULL
) STRICT;

CREATE TABLE history (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    image_id      INTEGER NOT NULL,
    image_name    TEXT    NOT NULL,
    monitors      TEXT    NOT NULL,
    mode          TEXT    NOT NULL,
    set_at        INTEGER NOT NULL,
    source        TEXT    NOT NULL,
    playlist_id   INTEGER,
    playlist_name TEXT,
    backend       TEXT    NOT NULL
) STRICT;
CREATE INDEX history_image ON history (image_id);

-- What is shown, or was last, on each monitor.
CREATE TABLE scene (
    monitor  TEXT    PRIMARY KEY,
    image_id INTEGER NOT NULL REFERENCES image (id) ON DELETE CASCADE,
    mode     TEXT    NOT NULL,
    -- The monitors that were set together: an extended picture is cut for all of them.
    together TEXT    NOT NULL,
    backend  TEXT    NOT NULL,
    set_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX scene_image ON scene (image_id);
