//! Reads the boxes of AVIF and HEIC that describe the primary image: whether it is composed, and
//! its orientation and colours. Other programs decode the image; these properties decide which.
//!
//! No length in the file is trusted: all reads stay within the box.

use std::collections::BTreeMap;
use std::io::{self, Read, SeekFrom};

use super::decoder::Input;
use super::error::{Error, Traits};
use super::icc::{Profile, Samples};

/// Maximum number of bytes read from `meta`, which may contain a profile of up to 4 MiB.
const META_MAX: u64 = 5 << 20;
/// Limits on the number of boxes, the header of a box in bytes, and offsets in the file.
const BOXES_MAX: usize = 64;
const HEAD_MAX: u64 = 16;
const FILE_MAX: u64 = 1 << 40;
/// Auxiliary types that mean alpha.
const ALPHA: [&[u8]; 2] = [
    b"urn:mpeg:mpegB:cicp:systems:auxiliary:alpha",
    b"urn:mpeg:hevc:2015:auxid:1",
];

/// Reads the traits of a file; they are empty if there is no primary image.
pub(super) fn traits(input: &mut dyn Input) -> Result<Traits, Error> {
    let content = metadata(input).map_err(Error::Read)?;
    let meta = Meta::read(Bytes(&content));
    Ok(meta.map(|meta| meta.traits()).unwrap_or_default())
}

/// Reads the content of the box `meta`, which may be after the pixels; empty if there is none.
fn metadata(input: &mut dyn Input) -> io::Result<Vec<u8>> {
    let mut start = 0;
    let mut read = Vec::new();
    for _ in 0..BOXES_MAX {
        input.seek(SeekFrom::Start(start))?;
        read.clear();
        (&mut *input).take(HEAD_MAX).read_to_end(&mut read)?;
        let mut left = Bytes(&read);
        let Some((name, length)) = left.head() else {
            break;
        };
        let content = start + (read.len() - left.0.len()) as u64;
        if name == *b"meta" {
            input.seek(SeekFrom::Start(content))?;
            read.clear();
            (&mut *input)
                .take(length.unwrap_or(META_MAX).min(META_MAX))
                .read_to_end(&mut read)?;
            return Ok(read);
        }
        let end = length.and_then(|length| content.checked_add(length));
        let Some(end) = end.filter(|&end| end <= FILE_MAX) else {
            break;
        };
        start = end;
    }
    Ok(Vec::new())
}

#[derive(Clone, Copy)]
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, left) = self.0.split_at_checked(count)?;
        self.0 = left;
        Some(taken)
    }

    fn number(&mut self, bytes: usize) -> Option<u32> {
        Some(
            self.take(bytes)?
                .iter()
                .fold(0, |number, &byte| number << 8 | u32::from(byte)),
        )
    }

    fn name(&mut self) -> Option<[u8; 4]> {
        self.take(4)?.try_into().ok()
    }

    /// Reads version and flags.
    fn version(&mut self) -> Option<(u32, u32)> {
        Some((self.number(1)?, self.number(3)?))
    }

    /// Reads the header of a box: its name, and the length of its content. `None` means up to the
    /// end.
    fn head(&mut self) -> Option<([u8; 4], Option<u64>)> {
        let (length, name) = (self.number(4)?, self.name()?);
        let length = match length {
            0 => None,
            1 => {
                let (high, low) = (self.number(4)?, self.number(4)?);
                Some((u64::from(high) << 32 | u64::from(low)).checked_sub(16)?)
            }
            length => Some(u64::from(length).checked_sub(8)?),
        };
        Some((name, length))
    }

    fn next_box(&mut self) -> Option<([u8; 4], Self)> {
        let (name, length) = self.head()?;
        let length = length.map_or(Ok(self.0.len()), usize::try_from).ok()?;
        Some((name, Self(self.take(length)?)))
    }

    fn boxes(mut self) -> impl Iterator<Item = ([u8; 4], Self)> {
        std::iter::from_fn(move || self.next_box())
    }
}

/// The parts of `meta` that describe how images are shown.
#[derive(Default)]
struct Meta<'a> {
    primary: u32,
    /// The type of each item; `None` if it is hidden.
    items: BTreeMap<u32, Option<[u8; 4]>>,
    /// The type of each reference, and the items from and to which it leads.
    references: Vec<([u8; 4], u32, u32)>,
    properties: Vec<([u8; 4], Bytes<'a>)>,
    /// Pairs of an item and the number of one of its properties, from 1.
    associations: Vec<(u32, usize)>,
}

impl<'a> Meta<'a> {
    fn read(mut content: Bytes<'a>) -> Option<Self> {
        content.version()?;
        let mut meta = Self::default();
        for (name, mut content) in content.boxes() {
            // Damaged boxes are ignored.
            match &name {
                b"pitm" => {
                    let (version, _) = content.version()?;
                    meta.primary = content.number(if version == 0 { 2 } else { 4 })?;
                }
                b"iinf" => drop(meta.read_items(content)),
                b"iref" => drop(meta.read_references(content)),
                b"iprp" => content.boxes().for_each(|(name, content)| match &name {
                    b"ipco" => meta.properties = content.boxes().collect(),
                    b"ipma" => drop(meta.read_associations(content)),
                    _ => {}
                }),
                _ => {}
            }
        }
        meta.items.contains_key(&meta.primary).then_some(meta)
    }

    fn read_items(&mut self, mut content: Bytes<'a>) -> Option<()> {
        let (version, _) = content.version()?;
        content.number(if version == 0 { 2 } else { 4 })?;
        for (_, mut entry) in content.boxes() {
            let (version, flags) = entry.version()?;
            let id = entry.number(if version < 3 { 2 } else { 4 })?;
            entry.number(2)?;
            let kind = entry.name()?;
            self.items.insert(id, (flags & 1 == 0).then_some(kind));
        }
        Some(())
    }

    fn read_references(&mut self, mut content: Bytes<'a>) -> Option<()> {
        let bytes = if content.version()?.0 == 0 { 2 } else { 4 };
        for (kind, mut entry) in content.boxes() {
            let (from, count) = (entry.number(bytes)?, entry.number(2)?);
            for _ in 0..count {
                self.references.push((kind, from, entry.number(bytes)?));
            }
        }
        Some(())
    }

    fn read_associations(&mut self, mut content: Bytes<'a>) -> Option<()> {
        let (version, flags) = content.version()?;
        for _ in 0..content.number(4)? {
            let item = content.number(if version == 0 { 2 } else { 4 })?;
            for _ in 0..content.number(1)? {
                // The highest bit means that the property is essential.
                let number = match flags & 1 {
                    0 => content.number(1)? & 0x7f,
                    _ => content.number(2)? & 0x7fff,
                };
                self.associations.push((item, number as usize));
            }
        }
        Some(())
    }

    fn properties_of(&self, item: u32) -> impl Iterator<Item = &([u8; 4], Bytes<'a>)> {
        let of_it = self.associations.iter().filter(move |(of, _)| *of == item);
        of_it.filter_map(|(_, number)| self.properties.get(number.checked_sub(1)?))
    }

    fn traits(&self) -> Traits {
        let mut traits = Traits {
            number: self.number(),
            ..Traits::default()
        };
        let kind = self.items.get(&self.primary).copied().flatten();
        traits.derived = matches!(kind.as_ref(), Some(b"grid" | b"iovl" | b"iden"));
        traits.premultiplied = self
            .references
            .iter()
            .any(|(kind, from, _)| kind == b"prem" && *from == self.primary);
        let auxiliary = self
            .references
            .iter()
            .filter(|(kind, _, to)| kind == b"auxl" && *to == self.primary);
        traits.alpha = auxiliary.clone().any(|(_, from, _)| {
            let is_alpha = |content: &Bytes<'_>| {
                let kind = content.0.get(4..).unwrap_or_default();
                ALPHA.iter().any(|alpha| kind.starts_with(alpha))
            };
            self.properties_of(*from)
                .any(|(name, it)| name == b"auxC" && is_alpha(it))
        });
        let mut corners = [0, 1, 2, 3];
        let mut has_profile = false;
        for (name, mut content) in self.properties_of(self.primary).copied() {
            let first = content.0.first().copied().unwrap_or_default();
            match &name {
                b"clap" => traits.cropped = true,
                // In quarter turns, counterclockwise.
                b"irot" => corners.rotate_left(usize::from(first & 3)),
                b"imir" if first & 1 == 0 => corners.reverse(),
                b"imir" => corners = [corners[1], corners[0], corners[3], corners[2]],
                b"colr" => match content.name().as_ref() {
                    Some(b"nclx") => traits.points = points(content),
                    Some(b"prof" | b"rICC") => {
                        has_profile = true;
                        let profile = Profile::read(content.0, Samples::Rgb);
                        traits.profile = profile.is_some_and(|it| it.changes_anything());
                    }
                    _ => {}
                },
                _ => {}
            }
        }
        traits.points = traits.points.filter(|_| !has_profile);
        traits.orientation = exif_number(corners);
        traits
    }

    /// Returns the number, from 1, of the primary image among the visible images; `None` if it is
    /// the only one.
    fn number(&self) -> Option<usize> {
        let is_part = |id: u32| {
            let is = |(kind, from, _): &([u8; 4], u32, u32)| {
                *from == id && (kind == b"thmb" || kind == b"auxl")
            };
            self.references.iter().any(is)
        };
        let is_picture = |id: u32| self.properties_of(id).any(|(name, _)| name == b"ispe");
        let shown = self
            .items
            .iter()
            .filter(|(_, kind)| kind.is_some())
            .map(|(&id, _)| id);
        let shown: Vec<u32> = shown.filter(|&id| is_picture(id) && !is_part(id)).collect();
        let at = shown.iter().position(|&id| id == self.primary)?;
        (shown.len() > 1).then_some(at + 1)
    }
}

/// Returns the code points of `nclx`, or `None` if they mean sRGB, for which there are several.
fn points(mut content: Bytes<'_>) -> Option<(u8, u8)> {
    let (primaries, transfer) = (content.number(2)?, content.number(2)?);
    let primaries = if matches!(primaries, 0 | 2) {
        1
    } else {
        u8::try_from(primaries).ok()?
    };
    let transfer = match transfer {
        0..=2 | 6 | 13..=15 => 13,
        other => u8::try_from(other).ok()?,
    };
    ((primaries, transfer) != (1, 13)).then_some((primaries, transfer))
}

/// Returns EXIF's orientation for the positions of the corners, clockwise from the top left.
fn exif_number(corners: [u8; 4]) -> u8 {
    match corners {
        [1, 0, ..] => 2,
        [2, 3, ..] => 3,
        [3, 2, ..] => 4,
        [0, 3, ..] => 5,
        [3, 0, ..] => 6,
        [2, 1, ..] => 7,
        [1, 2, ..] => 8,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn a_box(name: &[u8; 4], content: &[u8]) -> Vec<u8> {
        [
            &(content.len() as u32 + 8).to_be_bytes(),
            &name[..],
            content,
        ]
        .concat()
    }

    /// Creates a file whose image has this type and these properties, and an alpha image beside it.
    fn file(kind: &[u8; 4], properties: &[(&[u8; 4], &[u8])]) -> Vec<u8> {
        let entry = |id: u8, kind: &[u8; 4]| {
            a_box(
                b"infe",
                &[&[2, 0, 0, 0, 0, id, 0, 0], &kind[..], b"\0"].concat(),
            )
        };
        let items = [&[0, 0, 0, 0, 0, 2][..], &entry(1, kind), &entry(2, b"av01")].concat();
        let alpha = [&[0; 4], ALPHA[0], b"\0"].concat();
        let all = [(b"ispe", &[0; 12][..]), (b"auxC", &alpha)];
        let ipco: Vec<u8> = all
            .iter()
            .chain(properties)
            .flat_map(|(name, it)| a_box(name, it))
            .collect();
        let own: Vec<u8> = (3..3 + properties.len() as u8)
            .map(|number| number | 0x80)
            .collect();
        let ipma = [
            &[0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 1 + own.len() as u8, 1][..],
            &own,
        ];
        let ipma = [&ipma.concat()[..], &[0, 2, 2, 1, 2]].concat();
        let iprp = [a_box(b"ipco", &ipco), a_box(b"ipma", &ipma)].concat();
        let auxl = a_box(b"auxl", &[0, 2, 0, 1, 0, 1]);
        let meta = [
            vec![0; 4],
            a_box(b"pitm", &[0, 0, 0, 0, 0, 1]),
            a_box(b"iinf", &items),
            a_box(b"iref", &[&[0; 4], &auxl[..]].concat()),
            a_box(b"iprp", &iprp),
        ];
        [
            a_box(b"ftyp", b"avif\0\0\0\0avif"),
            a_box(b"meta", &meta.concat()),
        ]
        .concat()
    }

    fn of(bytes: &[u8]) -> Traits {
        traits(&mut Cursor::new(bytes)).unwrap()
    }

    #[test]
    fn properties_of_the_primary_image_are_read() {
        let alpha = Traits {
            alpha: true,
            ..Traits::default()
        };
        assert_eq!(of(&file(b"av01", &[])), alpha);
        assert_eq!(
            of(&file(b"grid", &[])),
            Traits {
                derived: true,
                ..alpha
            }
        );
        assert_eq!(
            of(&file(b"av01", &[(b"clap", b"")])),
            Traits {
                cropped: true,
                ..alpha
            }
        );
        let colors = |numbers: &[u8]| of(&file(b"av01", &[(b"colr", numbers)])).points;
        assert_eq!(colors(b"nclx\0\x09\0\x10\0\x09\x80"), Some((9, 16)));
        assert_eq!(colors(b"nclx\0\x0c\0\x01\0\x06\x80"), Some((12, 13)));
        assert_eq!(colors(b"nclx\0\x01\0\x06\0\x06\x80"), None);
    }

    #[test]
    fn metadata_may_be_behind_the_pixels() {
        let whole = file(b"grid", &[]);
        let (brand, meta) = whole.split_at(20);
        let pixels = a_box(b"mdat", &vec![7; META_MAX as usize]);
        let long = [
            &[0, 0, 0, 1][..],
            b"free",
            &[0, 0, 0, 0, 0, 0, 0, 20],
            &[0; 4],
        ]
        .concat();
        assert_eq!(of(&[brand, &pixels, &long, meta].concat()), of(&whole));
        assert!(of(&whole).derived);
        let endless = [&[0xff; 4][..], b"free"].concat();
        assert_eq!(of(&[brand, &endless, meta].concat()), Traits::default());
    }

    #[test]
    fn rotation_and_mirroring_apply_in_file_order() {
        let check = |properties: &[(&[u8; 4], &[u8])], expected| {
            assert_eq!(
                of(&file(b"av01", properties)).orientation,
                expected,
                "{properties:?}"
            );
        };
        for (turns, expected) in [0, 8, 3, 6].into_iter().enumerate() {
            check(&[(b"irot", &[turns as u8])], expected);
        }
        check(&[(b"imir", &[0])], 4);
        check(&[(b"imir", &[1])], 2);
        check(&[(b"irot", &[1]), (b"imir", &[1])], 7);
        check(&[(b"imir", &[1]), (b"irot", &[1])], 5);
    }

    #[test]
    fn damaged_boxes_cause_no_panic() {
        let whole = file(
            b"grid",
            &[(b"irot", &[1]), (b"colr", b"nclx\0\x09\0\x10\0\x09\x80")],
        );
        for at in 0..whole.len() {
            of(&whole[..at]);
            for value in [0, 1, 0x7f, 0xff] {
                let mut damaged = whole.clone();
                damaged[at] = value;
                of(&damaged);
            }
        }
    }
}
