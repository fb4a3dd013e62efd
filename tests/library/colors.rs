//! Compares our CIELAB values, colour distances and hue groups with ImageMagick's, which are computed
//! independently, and checks the real daemon's searches by colour against them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use murald::internals::color::{self, Rgb};
use serde_json::{Value, json};

use crate::support::TestDaemon;

/// The two differ in how the white point and the matrix are rounded.
const TOLERANCE: f64 = 0.05;
const PICTURES: usize = 48;

/// A colour as ImageMagick describes it.
#[derive(Clone, Copy, Debug)]
struct Seen {
    lab: [f64; 3],
    hue: f64,
}

#[test]
fn lab_and_hue_groups_agree_with_imagemagick() {
    let directory = tempfile::tempdir().unwrap();
    let mut colors = scattered(4000, 1);
    // All greys, and every hue at full saturation.
    colors.extend((0..=255).map(|level| [level; 3]));
    colors
        .extend((0..=255).flat_map(|l| [[255, l, 0], [0, 255, l], [l, 0, 255], [255 - l, 255, 0]]));
    let mut doubtful = 0;
    for (&rgb, seen) in colors.iter().zip(ask(directory.path(), &colors)) {
        let ours = color::lab(rgb);
        let ours = [ours.l, ours.a, ours.b].map(f64::from);
        assert!(
            distance(ours, seen.lab) < TOLERANCE,
            "{rgb:?}: {ours:?}, {:?}",
            seen.lab
        );
        match seen.group() {
            Some(group) => assert_eq!(color::hue_group(&[rgb]), group, "{rgb:?}: {seen:?}"),
            None => doubtful += 1,
        }
    }
    assert!(
        doubtful < colors.len() / 50,
        "{doubtful} of {} lie on a border",
        colors.len()
    );
}

#[test]
fn searches_by_colour_agree_with_imagemagicks_distances() {
    let daemon = TestDaemon::started();
    let (ids, palettes) = library(&daemon);
    let flat: Vec<Rgb> = palettes.iter().flatten().copied().collect();
    let seen = ask(daemon.root(), &flat);
    let labs: Vec<Vec<[f64; 3]>> = seen
        .chunks(3)
        .map(|palette| palette.iter().map(|seen| seen.lab).collect())
        .collect();
    let check = |query: &str, nearest: &dyn Fn(usize) -> f64, within: f64| {
        let found = found(&daemon, query);
        for (at, id) in ids.iter().enumerate() {
            let distance = nearest(at);
            // Nearer to the limit than the two agree, either answer is right.
            if (distance - within).abs() > 2.0 * TOLERANCE {
                assert_eq!(
                    found.contains(id),
                    distance < within,
                    "{query}: {at} at {distance}"
                );
            }
        }
    };
    let between = |one: &[[f64; 3]], other: &[[f64; 3]]| {
        let pairs = one
            .iter()
            .flat_map(|a| other.iter().map(move |b| distance(*a, *b)));
        pairs.fold(f64::INFINITY, f64::min)
    };
    let asked = scattered(12, 7);
    for (rgb, seen) in asked.iter().zip(ask(daemon.root(), &asked)) {
        for within in [5.0, 20.0, 60.0] {
            let query = format!("colors_near=%23{}~{within}", &color::hex(*rgb)[1..]);
            check(&query, &|at| between(&labs[at], &[seen.lab]), within);
        }
    }
    for at in 0..12 {
        let apart = |other: usize| {
            if other == at {
                f64::INFINITY
            } else {
                between(&labs[at], &labs[other])
            }
        };
        check(&format!("palette_similar_to={}", ids[at]), &apart, 18.0);
        check(
            &format!("palette_similar_to={}&palette_max_delta_e=6.5", ids[at]),
            &apart,
            6.5,
        );
    }
    for group in (0..12).chain([99]) {
        let found = found(&daemon, &format!("hue_group={group}"));
        for (at, id) in ids.iter().enumerate() {
            // The first colour that is not grey decides. If a doubtful one comes before it, the group is
            // unknown.
            let groups: Option<Vec<u8>> = seen[at * 3..][..3].iter().map(Seen::group).collect();
            if let Some(groups) = groups {
                let decides = groups.into_iter().find(|&group| group != 99).unwrap_or(99);
                assert_eq!(found.contains(id), decides == group, "{:?}", palettes[at]);
            }
        }
    }
}

/// Pictures with palettes of three colours each.
fn library(daemon: &TestDaemon) -> (Vec<i64>, Vec<[Rgb; 3]>) {
    let directory = daemon.root().join("pictures");
    fs::create_dir(&directory).unwrap();
    for number in 0..PICTURES {
        let color = image::Rgb([number as u8 * 5, 9, 200]);
        let path = directory.join(format!("{number:02}.png"));
        image::RgbImage::from_pixel(8, 8, color).save(path).unwrap();
    }
    let ids = daemon.import(&[&directory]);
    assert_eq!(ids.len(), PICTURES);
    let mut palettes: Vec<[Rgb; 3]> = scattered(PICTURES * 3, 99)
        .chunks(3)
        .map(|c| [c[0], c[1], c[2]])
        .collect();
    // Palettes without any hue, or with hardly one.
    palettes[0] = [[10; 3], [128; 3], [250; 3]];
    palettes[1] = [[90, 90, 96], [20; 3], [30, 200, 40]];
    for (id, palette) in ids.iter().zip(&palettes) {
        let colors: Vec<String> = palette.iter().map(|rgb| color::hex(*rgb)).collect();
        daemon
            .client()
            .patch(&format!("/images/{id}"), &json!({ "colors": colors }))
            .ok();
    }
    (ids, palettes)
}

fn found(daemon: &TestDaemon, query: &str) -> BTreeSet<i64> {
    let page = daemon
        .client()
        .get(&format!("/images?per_page=200&{query}"))
        .ok();
    let ids = |data: &Value| {
        data.as_array()
            .unwrap()
            .iter()
            .map(|i| i["id"].as_i64().unwrap())
            .collect()
    };
    ids(&page["data"])
}

impl Seen {
    /// The hue group by the API's definition, from ImageMagick's numbers; `None` near a border.
    fn group(&self) -> Option<u8> {
        let chroma = self.lab[1].hypot(self.lab[2]);
        if (chroma - 10.0).abs() < TOLERANCE {
            return None;
        }
        if chroma < 10.0 {
            return Some(99);
        }
        let turned = (self.hue + 15.0) % 360.0;
        let border = (turned % 30.0).min(30.0 - turned % 30.0);
        (border > 0.02).then_some((turned / 30.0) as u8)
    }
}

/// Runs ImageMagick twice: for Lab and for the hue.
fn ask(directory: &Path, colors: &[Rgb]) -> Vec<Seen> {
    let path = directory.join("asked.ppm");
    let mut ppm = format!("P6\n{} 1\n255\n", colors.len()).into_bytes();
    ppm.extend(colors.concat());
    fs::write(&path, ppm).unwrap();
    let numbers = |space: &str| -> Vec<Vec<f64>> {
        let output = Command::new("convert")
            .arg(&path)
            .args(["-colorspace", space, "-depth", "16", "txt:-"])
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().skip(1).map(last_numbers).collect()
    };
    let (labs, hues) = (numbers("Lab"), numbers("HSL"));
    assert_eq!((labs.len(), hues.len()), (colors.len(), colors.len()));
    let seen = labs.into_iter().zip(hues);
    seen.map(|(lab, hsl)| Seen {
        lab: [lab[0], lab[1], lab[2]],
        hue: hsl[0],
    })
    .collect()
}

/// The numbers in the last brackets of a line like `0,0: (1,2,3)  #000  cielab(53.2,80.1,67.2)`.
fn last_numbers(line: &str) -> Vec<f64> {
    let inside = line.rsplit_once('(').unwrap().1.trim_end_matches(')');
    inside
        .split(',')
        .map(|number| number.trim_end_matches('%').parse().unwrap())
        .collect()
}

fn distance(one: [f64; 3], other: [f64; 3]) -> f64 {
    one.iter()
        .zip(other)
        .map(|(a, b)| (a - b).powi(2))
        .sum::<f64>()
        .sqrt()
}

/// Pseudo-random colours, the same in each run.
fn scattered(count: usize, seed: u64) -> Vec<Rgb> {
    let mut state = seed;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..count).map(|_| [next(), next(), next()]).collect()
}
