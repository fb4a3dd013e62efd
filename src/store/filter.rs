//! Parses filters for lists of images from a query string or a JSON object, with the parameter
//! names of `GET /images`. Pure.

use std::path::PathBuf;

use serde_json::{Map, Value};

use super::query::{Near, Query};
use crate::color::{self, Rgb};
use crate::digest::Checksum;
use crate::wire::{BadParameter, MediaFilter, Parameters, SortBy, SortOrder};

/// Why a JSON object is not a valid filter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadFilter {
    /// There is no filter of this name.
    #[error("no field {name:?}")]
    Field { name: String },
    /// The value is null, an object, or a list with one of these.
    #[error("{name} cannot be {value}")]
    Type { name: String, value: String },
    #[error("{_0}")]
    Value(BadParameter),
}

/// The default of `palette_max_delta_e` (ΔE76).
const SIMILAR: f32 = 18.0;

/// The parameters of a dynamic playlist's source: the filters and the order.
pub(crate) const SOURCE: [&str; 20] = [
    "animated",
    "checksum",
    "colors",
    "colors_near",
    "directory",
    "folder_id",
    "hue_group",
    "media_type",
    "min_height",
    "min_width",
    "name",
    "name_prefix",
    "orientation",
    "palette_max_delta_e",
    "palette_similar_to",
    "recursive",
    "search",
    "tags",
    "sort_by",
    "sort_order",
];

/// The parameters that are filters.
pub(crate) const FILTERS: &[&str] = SOURCE.split_at(18).0;

/// Reads all parameters except those of paging; filters combine by AND.
pub(crate) fn query(parameters: &Parameters<'_>) -> Result<Query, BadParameter> {
    let within = distance(parameters, "palette_max_delta_e")?.unwrap_or(SIMILAR);
    let similar_to = parameters.id(
        "palette_similar_to",
        "palette_similar_to must be an image ID",
    )?;
    let sort_by = match parameters.get("sort_by") {
        // A graphical client's name of it.
        Some("created_at") => Some(SortBy::ImportedAt),
        _ => parameters.word("sort_by")?,
    };
    let size = |name| {
        let least = parameters.integer(name, 1, u32::MAX.into());
        least.map(|least| least.map_or(0, |least| least as u32))
    };
    let text = |name| parameters.get(name).map(str::to_owned);
    Ok(Query {
        media_type: parameters.word::<MediaFilter>("media_type")?,
        animated: parameters.value("animated", "animated must be true or false")?,
        search: text("search").unwrap_or_default(),
        tags: parameters
            .list("tags", |tag| Ok(tag.to_owned()))?
            .unwrap_or_default(),
        colors: parameters
            .list("colors", |item| color("colors", item, item))?
            .unwrap_or_default(),
        colors_near: parameters.list("colors_near", near)?.unwrap_or_default(),
        hue_groups: parameters.list("hue_group", hue_group)?.unwrap_or_default(),
        orientation: parameters.word("orientation")?,
        min_width: size("min_width")?,
        min_height: size("min_height")?,
        name: text("name"),
        name_prefix: text("name_prefix").unwrap_or_default(),
        checksum: parameters.get("checksum").map(checksum).transpose()?,
        similar_to: similar_to.map(|id| (id, within)),
        directory: parameters.get("directory").map(directory).transpose()?,
        folder: folder(parameters)?,
        recursive: parameters
            .value("recursive", "recursive must be true or false")?
            .unwrap_or(false),
        by_likeness: similar_to.is_some() && sort_by.is_none(),
        sort_by: sort_by.unwrap_or(SortBy::ImportedAt),
        descending: parameters.word("sort_order")?.unwrap_or(SortOrder::Desc) == SortOrder::Desc,
        ..Query::default()
    })
}

/// Reads filters from a JSON object. Values are JSON's own, or strings as in a query string.
pub(crate) fn from_fields(fields: &Map<String, Value>) -> Result<Query, BadFilter> {
    query(&parameters(fields, FILTERS)?).map_err(BadFilter::Value)
}

/// Converts a JSON value to the text that a query string would have.
fn written(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Array(items) => {
            let items: Option<Vec<String>> = items.iter().map(written).collect();
            items.map(|items| items.join(","))
        }
        Value::Null | Value::Object(_) => None,
    }
}

/// Reads the source of a dynamic playlist; includes subfolders and sorts by name unless told otherwise.
pub(crate) fn from_source(fields: &Map<String, Value>) -> Result<Query, BadFilter> {
    let parameters = parameters(fields, &SOURCE)?;
    let found = query(&parameters).map_err(BadFilter::Value)?;
    let has = |name| parameters.get(name).is_some();
    Ok(Query {
        recursive: found.recursive || !has("recursive"),
        sort_by: if has("sort_by") {
            found.sort_by
        } else {
            SortBy::Name
        },
        descending: found.descending && has("sort_order"),
        by_likeness: false,
        limit: u64::MAX,
        ..found
    })
}

fn parameters<'a>(
    fields: &'a Map<String, Value>,
    known: &[&str],
) -> Result<Parameters<'a>, BadFilter> {
    let pair = |(name, value): (&'a String, &'a Value)| {
        if !known.contains(&name.as_str()) {
            return Err(BadFilter::Field { name: name.clone() });
        }
        let bad = || BadFilter::Type {
            name: name.clone(),
            value: value.to_string(),
        };
        Ok((name.as_str().into(), written(value).ok_or_else(bad)?.into()))
    };
    Ok(Parameters::from_pairs(
        fields.iter().map(pair).collect::<Result<_, _>>()?,
    ))
}

fn hue_group(item: &str) -> Result<u8, BadParameter> {
    let group = item
        .parse()
        .ok()
        .filter(|group| matches!(group, 0..12 | 99));
    group.ok_or_else(|| {
        BadParameter::new(
            "hue_group",
            item,
            "hue_group must be 0 to 11, or 99 for neutral",
        )
    })
}

/// Reads 64 hexadecimal digits with or without `sha256:` in front.
fn checksum(text: &str) -> Result<Checksum, BadParameter> {
    let digits = text.strip_prefix("sha256:").unwrap_or(text);
    let byte = |at: usize| u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok();
    let mut sum = Checksum::default();
    let read = sum.iter_mut().enumerate().try_for_each(|(at, to)| {
        *to = byte(at)?;
        Some(())
    });
    let is_whole = digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    read.filter(|()| is_whole).map(|()| sum).ok_or_else(|| {
        BadParameter::new("checksum", text, "checksum must be 64 hexadecimal digits")
    })
}

fn directory(text: &str) -> Result<PathBuf, BadParameter> {
    let path = PathBuf::from(text);
    if path.is_absolute() {
        Ok(path)
    } else {
        Err(BadParameter::new(
            "directory",
            text,
            "directory must be an absolute path",
        ))
    }
}

fn folder(parameters: &Parameters<'_>) -> Result<Option<Option<i64>>, BadParameter> {
    match parameters.get("folder_id") {
        Some("root" | "0") => Ok(Some(None)),
        _ => Ok(parameters
            .id("folder_id", "folder_id must be an ID or root")?
            .map(Some)),
    }
}

fn color(name: &str, item: &str, hex: &str) -> Result<Rgb, BadParameter> {
    let allowed = format!("{name} must be #rrggbb, #rgb or a CSS colour name");
    color::parse(hex).ok_or_else(|| BadParameter::new(name, item, allowed))
}

/// Reads `#rrggbb~maxDeltaE`.
fn near(item: &str) -> Result<Near, BadParameter> {
    let refused = || {
        BadParameter::new(
            "colors_near",
            item,
            "colors_near must be a list of #rrggbb~12.5",
        )
    };
    let (hex, within) = item.split_once('~').ok_or_else(refused)?;
    let within = within
        .parse()
        .ok()
        .filter(is_distance)
        .ok_or_else(refused)?;
    Ok(Near {
        color: color("colors_near", item, hex)?,
        within,
    })
}

fn distance(parameters: &Parameters<'_>, name: &str) -> Result<Option<f32>, BadParameter> {
    let allowed = format!("{name} must be a number from 0");
    match parameters.value::<f32>(name, &allowed)? {
        Some(number) if !is_distance(&number) => {
            Err(BadParameter::new(name, &number.to_string(), allowed))
        }
        number => Ok(number),
    }
}

fn is_distance(number: &f32) -> bool {
    number.is_finite() && *number >= 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(raw: &str) -> Result<Query, String> {
        let pairs = raw.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap();
            (
                name.into(),
                value.replace('+', " ").replace("%23", "#").into(),
            )
        });
        query(&Parameters::from_pairs(pairs.collect())).map_err(|bad| bad.to_string())
    }

    #[test]
    fn image_query_reads_every_filter() {
        let all = parse(
            "media_type=gif&animated=true&search=a+b&tags=x,y&colors=%23ff0080,00ff00&hue_group=99,7\
             &colors_near=%23010203~2.5&palette_similar_to=7&folder_id=root&sort_by=hue\
             &sort_order=asc&unknown=1",
        )
        .unwrap();
        assert_eq!(
            (all.media_type, all.search.as_str()),
            (Some(MediaFilter::Gif), "a b")
        );
        assert_eq!(all.animated, Some(true));
        assert_eq!(
            (all.tags.len(), all.colors),
            (2, vec![[255, 0, 128], [0, 255, 0]])
        );
        assert_eq!(
            all.colors_near,
            [Near {
                color: [1, 2, 3],
                within: 2.5
            }]
        );
        assert_eq!(
            (all.hue_groups, all.similar_to),
            (vec![99, 7], Some((7, SIMILAR)))
        );
        assert!(!all.by_likeness && parse("palette_similar_to=7").unwrap().by_likeness);
        let sum = "0f".repeat(32);
        let more = parse(&format!(
            "orientation=portrait&min_width=1920&min_height=1&name=a+b&name_prefix=A&recursive=true\
             &colors=Tomato,%23f0a&colors_near=navy~3&checksum=sha256:{sum}"
        ))
        .unwrap();
        assert_eq!(
            (more.min_width, more.min_height, more.recursive),
            (1920, 1, true)
        );
        assert_eq!(
            (more.name.as_deref(), more.name_prefix.as_str()),
            (Some("a b"), "A")
        );
        assert_eq!(more.colors, [[255, 99, 71], [255, 0, 170]]);
        assert_eq!(more.colors_near[0].color, [0, 0, 128]);
        assert_eq!(more.checksum, Some([15; 32]));
        assert_eq!(
            parse(&format!("checksum={sum}")).unwrap().checksum,
            Some([15; 32])
        );
        assert_eq!(
            (all.folder, all.sort_by, all.descending),
            (Some(None), SortBy::Hue, false)
        );
        let client = parse("folder_id=0&sort_by=created_at").unwrap();
        assert_eq!(
            (client.folder, client.sort_by),
            (Some(None), SortBy::ImportedAt)
        );
        let none = parse("").unwrap();
        assert_eq!((none.folder, none.descending), (None, true));
    }

    #[test]
    fn image_query_names_bad_parameters() {
        let check = |raw: &str, said: &str| {
            let text = parse(raw).expect_err(raw);
            assert!(text.contains(raw.split('=').next().unwrap()), "{text}");
            assert!(text.contains(said), "{raw}: {text}");
        };
        check("sort_by=size", "name, imported_at, file_size, hue");
        check("sort_order=up", "asc, desc");
        check("media_type=GIF", "image, video, gif, web");
        check("animated=1", "true or false");
        check("hue_group=12", "0 to 11, or 99");
        check("hue_group=-1", "0 to 11, or 99");
        check("hue_group=300", "0 to 11, or 99");
        check("colors=reddish", "CSS");
        check("hue_group=1,,2", "empty");
        check("orientation=wide", "landscape, portrait, square");
        check("min_width=0", "from 1");
        check("checksum=12", "64");
        check("checksum=sha256:", "64");
        check("recursive=1", "true or false");
        check("directory=walls", "absolute path");
        check("colors=%23ff0000,", "empty");
        check("colors_near=%23ff0000", "~12.5");
        check("colors_near=%23ff0000~-1", "~12.5");
        check("colors_near=%23ff0000~NaN", "~12.5");
        check("colors_near=reddish~1", "#rrggbb");
        check("palette_max_delta_e=inf", "from 0");
        check("palette_similar_to=x", "image ID");
        check("palette_similar_to=0", "image ID");
        check("folder_id=null", "root");
        check("folder_id=-58800", "root");
    }

    #[test]
    fn filter_is_read_from_json() {
        let read =
            |json: Value| from_fields(json.as_object().unwrap()).map_err(|bad| bad.to_string());
        let all = read(serde_json::json!({
            "tags": ["a", "b"], "animated": false, "min_width": 800, "hue_group": "7,8",
            "folder_id": "root", "palette_similar_to": 3,
        }));
        let all = all.unwrap();
        assert_eq!(
            (all.tags.len(), all.animated, all.min_width),
            (2, Some(false), 800)
        );
        assert_eq!((all.hue_groups, all.folder), (vec![7, 8], Some(None)));
        let refused = |json: Value, said: &str| {
            let text = read(json).unwrap_err();
            assert!(text.contains(said), "{text}");
        };
        refused(serde_json::json!({ "tag": "a" }), "no field \"tag\"");
        refused(serde_json::json!({ "page": 2 }), "no field");
        refused(serde_json::json!({ "tags": null }), "tags cannot be null");
        refused(serde_json::json!({ "min_width": 0 }), "from 1");
    }
    #[test]
    fn source_includes_subfolders_and_sorts_by_name_by_default() {
        let read = |json: Value| from_source(json.as_object().unwrap()).unwrap();
        let order = |query: Query| (query.recursive, query.sort_by, query.descending);
        assert_eq!(
            order(read(serde_json::json!({}))),
            (true, SortBy::Name, false)
        );
        let given = serde_json::json!({
            "folder_id": 3, "recursive": false, "sort_by": "hue", "sort_order": "desc",
        });
        assert_eq!(order(read(given)), (false, SortBy::Hue, true));
        let deep = read(serde_json::json!({ "folder_id": 3, "recursive": true }));
        assert_eq!((order(deep.clone()).0, deep.folder), (true, Some(Some(3))));
        assert_eq!((deep.offset, deep.limit), (0, u64::MAX));
    }

    #[test]
    fn numbers_and_checksums_are_parsed_exactly() {
        let within = parse("palette_similar_to=7&palette_max_delta_e=12.5")
            .unwrap()
            .similar_to;
        assert_eq!(within, Some((7, 12.5)));
        let digits = "0f".repeat(31);
        for end in ["0f0f", "+f", "0g", "é"] {
            let text = parse(&format!("checksum={digits}{end}")).unwrap_err();
            assert!(text.contains("64"), "{end}: {text}");
        }
    }
}
