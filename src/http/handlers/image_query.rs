//! What a list of images is asked for: the query of `GET /images`.

use super::super::query::{Paging, Query as Parameters};
use crate::color::{Rgb, parse_hex};
use crate::http::Error;
use crate::store::index::{Near, Query, SortBy};
use crate::wire::{MediaFilter, SortOrder};

/// ΔE76 up to which palettes are similar, where the client does not say.
const SIMILAR: f32 = 18.0;

/// Reads all parameters; filters combine by AND.
pub(super) fn query(parameters: &Parameters<'_>) -> Result<(Query, Paging), Error> {
    let paging = parameters.paging()?;
    let within = distance(parameters, "palette_max_delta_e")?.unwrap_or(SIMILAR);
    let similar_to = parameters.value::<i64>("palette_similar_to", "it is the id of an image")?;
    let query = Query {
        media_type: parameters.word::<MediaFilter>("media_type")?,
        animated: parameters.value("animated", "animated is true or false")?,
        search: parameters.get("search").unwrap_or_default().to_owned(),
        tags: parameters.list("tags", |tag| Ok(tag.to_owned()))?.unwrap_or_default(),
        colors: parameters.list("colors", |item| color("colors", item, item))?.unwrap_or_default(),
        colors_near: parameters.list("colors_near", near)?.unwrap_or_default(),
        hue_group: hue_group(parameters)?,
        similar_to: similar_to.map(|id| (id, within)),
        folder: folder(parameters)?,
        sort_by: parameters.word("sort_by")?.unwrap_or(SortBy::ImportedAt),
        descending: parameters.word("sort_order")?.unwrap_or(SortOrder::Desc) == SortOrder::Desc,
        offset: paging.offset(),
        limit: paging.per_page,
    };
    Ok((query, paging))
}

fn hue_group(parameters: &Parameters<'_>) -> Result<Option<u8>, Error> {
    let allowed = "hue_group is 0 to 11, or 99 for neutral";
    match parameters.value("hue_group", allowed)? {
        Some(group @ (12..=98 | 100..)) => {
            Err(Error::parameter("hue_group", &u8::to_string(&group), allowed))
        }
        group => Ok(group),
    }
}

fn folder(parameters: &Parameters<'_>) -> Result<Option<Option<i64>>, Error> {
    match parameters.get("folder_id") {
        Some("root") => Ok(Some(None)),
        _ => Ok(parameters.value("folder_id", "folder_id is an id, or root")?.map(Some)),
    }
}

fn color(name: &str, item: &str, hex: &str) -> Result<Rgb, Error> {
    let allowed = "colours are written #rrggbb";
    parse_hex(hex).ok_or_else(|| Error::parameter(name, item, allowed))
}

/// `#rrggbb~maxDeltaE`
fn near(item: &str) -> Result<Near, Error> {
    let refused = || Error::parameter("colors_near", item, "items are written #rrggbb~12.5");
    let (hex, within) = item.split_once('~').ok_or_else(refused)?;
    let within = within.parse().ok().filter(is_distance).ok_or_else(refused)?;
    Ok(Near { color: color("colors_near", item, hex)?, within })
}

fn distance(parameters: &Parameters<'_>, name: &str) -> Result<Option<f32>, Error> {
    let allowed = format!("{name} is a number from 0");
    match parameters.value::<f32>(name, &allowed)? {
        Some(number) if !is_distance(&number) => {
            Err(Error::parameter(name, &number.to_string(), allowed))
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
        let parameters = Parameters::of(Some(raw)).unwrap();
        query(&parameters).map(|(query, _)| query).map_err(|f| f.into_response("x").text())
    }

    #[test]
    fn image_query_reads_every_filter() {
        let all = parse(
            "media_type=gif&animated=true&search=a+b&tags=x,y&colors=%23ff0080,00ff00&hue_group=99&page=3\
             &colors_near=%23010203~2.5&palette_similar_to=7&folder_id=root&sort_by=hue\
             &sort_order=asc&per_page=9&unknown=1",
        )
        .unwrap();
        assert_eq!((all.media_type, all.search.as_str()), (Some(MediaFilter::Gif), "a b"));
        assert_eq!(all.animated, Some(true));
        assert_eq!((all.tags.len(), all.colors), (2, vec![[255, 0, 128], [0, 255, 0]]));
        assert_eq!(all.colors_near, [Near { color: [1, 2, 3], within: 2.5 }]);
        assert_eq!((all.hue_group, all.similar_to), (Some(99), Some((7, SIMILAR))));
        assert_eq!((all.folder, all.sort_by, all.descending), (Some(None), SortBy::Hue, false));
        assert_eq!((all.offset, all.limit), (18, 9));
        let none = parse("").unwrap();
        assert_eq!((none.folder, none.descending, none.limit), (None, true, 50));
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
        check("colors=red", "#rrggbb");
        check("colors=%23ff0000,", "empty");
        check("colors_near=%23ff0000", "~12.5");
        check("colors_near=%23ff0000~-1", "~12.5");
        check("colors_near=%23ff0000~NaN", "~12.5");
        check("colors_near=red~1", "#rrggbb");
        check("palette_max_delta_e=inf", "from 0");
        check("palette_similar_to=x", "id");
        check("folder_id=null", "root");
        check("page=0", "from 1");
    }
}
