//! Compares the palettes of images with the colours of a query, which SQL cannot do.

use rusqlite::{Connection, OptionalExtension};

use super::Error;
use super::query::{Near, Query};
use crate::color::{Lab, Rgb, lab};

/// The colours that a query asks for.
pub(super) struct WantedColors {
    exact: Vec<Rgb>,
    near: Vec<(Lab, f32)>,
    like: Option<Like>,
}

/// The palette of a reference image, and the maximum distance from it.
struct Like {
    id: i64,
    colors: Vec<Lab>,
    within: f32,
}

impl WantedColors {
    /// `None` if the query does not ask for colours.
    pub(super) fn from_query(
        connection: &Connection,
        query: &Query,
    ) -> Result<Option<Self>, Error> {
        if !query.is_about_colors() {
            return Ok(None);
        }
        let near = |&Near { color, within }: &Near| (lab(color), within);
        let like = |(id, within)| {
            let sql = "SELECT colors FROM image WHERE id = ?1";
            let mut statement = connection.prepare_cached(sql)?;
            let colors: Option<Vec<u8>> = statement.query_row([id], |row| row.get(0)).optional()?;
            let colors = labs(colors.unwrap_or_default().as_chunks().0);
            Ok::<_, Error>(Like { id, colors, within })
        };
        Ok(Some(Self {
            exact: query.colors.clone(),
            near: query.colors_near.iter().map(near).collect(),
            like: query.similar_to.map(like).transpose()?,
        }))
    }

    /// The sum of the distances from each colour of the reference image to the nearest colour of this
    /// image, or 0 without a reference. `None` if the image does not match.
    pub(super) fn distance(&self, id: i64, colors: &[Rgb]) -> Option<f32> {
        if colors.is_empty() || !self.exact.iter().all(|color| colors.contains(color)) {
            return None;
        }
        let colors = labs(colors);
        let is_near = |&(color, within)| nearest(&colors, color) <= within;
        if !self.near.iter().all(is_near) {
            return None;
        }
        let Some(like) = &self.like else {
            return Some(0.0);
        };
        let mut is_alike = false;
        let mut sum = 0.0;
        for &color in &like.colors {
            let distance = nearest(&colors, color);
            is_alike |= distance <= like.within;
            sum += distance;
        }
        (is_alike && id != like.id).then_some(sum)
    }
}

fn labs(colors: &[Rgb]) -> Vec<Lab> {
    colors.iter().map(|&color| lab(color)).collect()
}

/// The distance from a colour to the nearest of `colors`.
fn nearest(colors: &[Lab], color: Lab) -> f32 {
    let squares = colors.iter().map(|own| own.distance_squared(color));
    squares.fold(f32::INFINITY, f32::min).sqrt()
}
