-- A row without a name_key is one in which none of these is written yet.
ALTER TABLE image ADD COLUMN words TEXT NOT NULL DEFAULT '';
ALTER TABLE image ADD COLUMN name_key BLOB NOT NULL DEFAULT x'';
ALTER TABLE image ADD COLUMN hue INTEGER NOT NULL DEFAULT 0;

CREATE INDEX image_name_key ON image (name_key, id);
CREATE INDEX image_hue ON image (hue, id);
-- All that filters look at: a fifth of the table, in the order that most lists have.
CREATE INDEX image_list ON image (imported_at, id, words, media_type, animated, hue_group, width, height,
    folder_id, file_size, hue, name_key, colors);
DROP INDEX image_media_type;

CREATE TABLE tag (
    id     INTEGER PRIMARY KEY,
    name   TEXT NOT NULL UNIQUE,
    folded TEXT NOT NULL
) STRICT;
CREATE INDEX tag_folded ON tag (folded);
CREATE TABLE image_tag (
    tag_id   INTEGER NOT NULL REFERENCES tag (id),
    image_id INTEGER NOT NULL REFERENCES image (id) ON DELETE CASCADE,
    PRIMARY KEY (tag_id, image_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX image_tag_image ON image_tag (image_id);

-- One row: equal versions mean that queries find the same, and that no palette has changed.
CREATE TABLE library (lists INTEGER NOT NULL, palettes INTEGER NOT NULL) STRICT;
INSERT INTO library VALUES (1, 1);
CREATE TRIGGER image_added AFTER INSERT ON image BEGIN
    UPDATE library SET lists = lists + 1, palettes = palettes + 1;
END;
CREATE TRIGGER image_removed AFTER DELETE ON image BEGIN
    UPDATE library SET lists = lists + 1, palettes = palettes + 1;
END;
CREATE TRIGGER image_changed AFTER UPDATE OF name, media_type, animated, width, height, file_size, checksum,
    tags, hue_group, folder_id, imported_at, words, name_key, hue ON image BEGIN
    UPDATE library SET lists = lists + 1;
END;
CREATE TRIGGER image_recolored AFTER UPDATE OF colors ON image BEGIN
    UPDATE library SET lists = lists + 1, palettes = palettes + 1;
END;
CREATE TRIGGER folder_moved AFTER UPDATE OF parent_id ON folder BEGIN
    UPDATE library SET lists = lists + 1;
END;
CREATE TRIGGER watched_file_added AFTER INSERT ON watched_file BEGIN
    UPDATE library SET lists = lists + 1;
END;
CREATE TRIGGER watched_file_removed AFTER DELETE ON watched_file WHEN OLD.image_id NOT NULL BEGIN
    UPDATE library SET lists = lists + 1;
END;
CREATE TRIGGER watched_file_changed AFTER UPDATE OF path, image_id ON watched_file BEGIN
    UPDATE library SET lists = lists + 1;
END;
