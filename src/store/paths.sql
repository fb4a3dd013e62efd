-- An image in place keeps its path while its file is missing, and another image may have the file of this
-- path meanwhile: only the paths of images that are there are unique. Runs without foreign keys, as it
-- would remove the rows that refer to images.
CREATE TABLE new_image (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    name          TEXT    NOT NULL UNIQUE,
    path          TEXT    NOT NULL,
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
    overrides     TEXT,
    in_place      INTEGER NOT NULL DEFAULT 0,
    words         TEXT    NOT NULL DEFAULT '',
    name_key      BLOB    NOT NULL DEFAULT x'',
    hue           INTEGER NOT NULL DEFAULT 0,
    description   TEXT    NOT NULL DEFAULT '',
    position      TEXT,
    -- In microseconds since 1970; 0 without a time limit.
    missing_since INTEGER
) STRICT;
INSERT INTO new_image SELECT id, name, path, media_type, format, width, height, duration, animated, audio_enabled,
    file_size, checksum, tags, colors, hue_group, folder_id, is_selected, imported_at, source_path, preview_path,
    web_meta, overrides, in_place, words, name_key, hue, description, position, missing_since FROM image;
-- An image whose file had the content of another image had a path that no file has.
UPDATE new_image SET path = substr(path, 1, length(path) - length('.murald-displaced-' || id)),
    missing_since = CAST(unixepoch('subsec') * 1000000 AS INTEGER)
    WHERE in_place AND path LIKE '%.murald-displaced-' || id;
-- No id is used again.
DELETE FROM sqlite_sequence WHERE name = 'new_image';
INSERT INTO sqlite_sequence (name, seq) SELECT 'new_image', seq FROM sqlite_sequence WHERE name = 'image';
DROP TABLE image;
ALTER TABLE new_image RENAME TO image;

-- Queries by path use it only if they say that the image is not missing.
CREATE UNIQUE INDEX image_path ON image (path) WHERE missing_since IS NULL;
CREATE INDEX image_missing ON image (missing_since) WHERE missing_since IS NOT NULL;
CREATE INDEX image_imported_at ON image (imported_at, id);
CREATE INDEX image_file_size ON image (file_size, id);
CREATE INDEX image_folder ON image (folder_id);
CREATE INDEX image_name_key ON image (name_key, id);
CREATE INDEX image_hue ON image (hue, id);
-- All that filters look at: a fifth of the table, in the order that most lists have.
CREATE INDEX image_list ON image (imported_at, id, words, media_type, animated, hue_group, width, height,
    folder_id, file_size, hue, name_key, colors);
CREATE TRIGGER image_added AFTER INSERT ON image BEGIN
    UPDATE library SET lists = lists + 1;
END;
CREATE TRIGGER image_removed AFTER DELETE ON image BEGIN
    UPDATE library SET lists = lists + 1;
END;
CREATE TRIGGER image_changed AFTER UPDATE OF name, media_type, animated, width, height, file_size, checksum,
    tags, colors, hue_group, folder_id, imported_at, words, name_key, hue ON image BEGIN
    UPDATE library SET lists = lists + 1;
END;

-- A file belongs to the image of its own content; others are read again.
DELETE FROM watched_file WHERE image_id IS NOT NULL AND NOT EXISTS
    (SELECT 1 FROM image WHERE image.checksum = watched_file.checksum AND +image.id = image_id);
