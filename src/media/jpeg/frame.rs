//! Parses a frame header, and derives the number of blocks, the samples per block and the memory
//! needed for decoding. Refuses unsupported kinds of JPEG.

use super::idct::Size;
use crate::media::decoder::check_bounds;
use crate::media::error::Error;
use crate::wire::Format;

/// Maximum number of scans; progressive encoders write ten to twenty.
const SCANS_MAX: u32 = 200;
/// Maximum number of blocks in all scans together: about three seconds of work. The largest images
/// within the limits need a third of it.
const VISITS_MAX: u64 = 64 << 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) progressive: bool,
    /// In pixels, as stored.
    pub(super) size: (u32, u32),
    /// One for grey, three for colours, four for inks.
    pub(super) components: Vec<ComponentHeader>,
    /// Maximum number of blocks per MCU over all components, horizontally and vertically.
    pub(super) most: (usize, usize),
}

/// A component as described in the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ComponentHeader {
    pub(super) id: u8,
    /// Number of blocks per MCU, horizontally and vertically.
    pub(super) blocks: (usize, usize),
    pub(super) quantiser: usize,
}

/// Describes how to decode an image.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// Samples per block side of the component with the highest resolution: 1, 2, 4 or 8.
    pub(super) side: usize,
    /// Whether coefficients are buffered until all scans are read. Otherwise each row of MCUs is
    /// transformed as soon as it is read.
    pub(super) buffered: bool,
    pub(super) output: Output,
}

/// The kind of samples in the resulting rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Output {
    /// RGB, converted from any components.
    Colors,
    /// Four inks as stored; 255 is the full amount.
    Inks,
}

/// The dimensions of a component under a plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Number of samples per block.
    pub(super) size: Size,
    /// How often each sample is repeated in the picture, horizontally and vertically.
    pub(super) repeat: (usize, usize),
    /// Number of samples that cover the picture, horizontally and vertically.
    pub(super) samples: (usize, usize),
    /// Number of blocks in a row of MCUs, and number of rows of blocks; includes padding to whole
    /// MCUs.
    pub(super) stride: usize,
    pub(super) rows: usize,
    /// Number of blocks that cover the picture, horizontally and vertically.
    pub(super) covered: (usize, usize),
    /// Number of buffered coefficients per block, in zigzag order.
    pub(super) kept: usize,
    /// Whether nonzero coefficients are tracked: a refinement scan depends on which ones earlier
    /// scans have set.
    pub(super) tracked: bool,
}

impl Frame {
    pub(super) fn read(kind: u8, content: &[u8]) -> Result<Self, Error> {
        let what = match kind {
            0xc3 => Some("lossless coding"),
            0xc9.. => Some("arithmetic coding"),
            0xc5.. => Some("hierarchical coding"),
            _ => None,
        };
        if let Some(what) = what {
            return Err(unsupported(what));
        }
        let [precision, h1, h2, w1, w2, count, components @ ..] = content else {
            return Err(damaged("its frame header is too short"));
        };
        if *precision != 8 {
            return Err(unsupported(format!("{precision} bits per sample")));
        }
        let side = |high: u8, low: u8| u32::from(u16::from_be_bytes([high, low]));
        let size = (side(*w1, *w2), side(*h1, *h2));
        if size.0 == 0 || size.1 == 0 {
            return Err(damaged("it has no pixels"));
        }
        check_bounds(size, 3)?;
        if !matches!(count, 1 | 3 | 4) {
            return Err(unsupported(format!("{count} components")));
        }
        let components = components.get(..3 * usize::from(*count));
        let components = components.ok_or_else(|| damaged("its frame header is too short"))?;
        let mut components: Vec<_> = components
            .chunks_exact(3)
            .map(ComponentHeader::read)
            .collect();
        if let [alone] = &mut components[..] {
            // The sampling factors only affect MCUs, and a scan of one component has single blocks.
            alone.blocks = (1, 1);
        }
        let sides = |part: &ComponentHeader| [part.blocks.0, part.blocks.1];
        if components
            .iter()
            .flat_map(sides)
            .any(|blocks| !(1..=4).contains(&blocks))
        {
            return Err(damaged("invalid sampling factors"));
        }
        let most = components
            .iter()
            .fold((1, 1), |most: (usize, usize), part| {
                (most.0.max(part.blocks.0), most.1.max(part.blocks.1))
            });
        let fits =
            |part: &ComponentHeader| most.0 % part.blocks.0 == 0 && most.1 % part.blocks.1 == 0;
        if !components.iter().all(fits) {
            return Err(unsupported(
                "sampling factors that are not multiples of each other",
            ));
        }
        Ok(Self {
            progressive: kind == 0xc2,
            size,
            components,
            most,
        })
    }

    /// Whether a component has a third of the resolution, which no scaled block size has.
    pub(super) fn has_thirds(&self) -> bool {
        self.components
            .iter()
            .any(|part| self.most.0 == 3 * part.blocks.0 || self.most.1 == 3 * part.blocks.1)
    }

    /// Returns the number of MCUs (minimum coded units), horizontally and vertically.
    pub(super) fn mcus(&self) -> (usize, usize) {
        let mcus = |length: u32, most: usize| (length as usize).div_ceil(8 * most);
        (
            mcus(self.size.0, self.most.0),
            mcus(self.size.1, self.most.1),
        )
    }

    /// Returns the size of the picture with `side` samples per block side.
    pub(super) fn scaled(&self, side: u32) -> (u32, u32) {
        (
            (self.size.0 * side).div_ceil(8),
            (self.size.1 * side).div_ceil(8),
        )
    }

    pub(super) fn shape(&self, plan: &Plan, part: usize) -> Shape {
        let ComponentHeader { blocks, .. } = self.components[part];
        let ratio = (self.most.0 / blocks.0, self.most.1 / blocks.1);
        // A subsampled component gets more samples per block, so that fewer must be interpolated.
        let samples = |ratio: usize| match plan.side * ratio {
            samples @ (1 | 2 | 4 | 8) => samples,
            more if more > 8 && ratio != 3 => 8,
            _ => plan.side,
        };
        let size = Size {
            width: samples(ratio.0),
            height: samples(ratio.1),
        };
        let covers = |length: u32, own: usize, most: usize, samples: usize| {
            (length as usize * own * samples).div_ceil(8 * most)
        };
        let cover = |width: usize, height: usize| {
            let across = covers(self.size.0, blocks.0, self.most.0, width);
            (across, covers(self.size.1, blocks.1, self.most.1, height))
        };
        let mcus = self.mcus();
        let kept = match size.last_wanted() {
            _ if !plan.buffered => 0,
            last => last + 1,
        };
        Shape {
            size,
            repeat: (
                plan.side * ratio.0 / size.width,
                plan.side * ratio.1 / size.height,
            ),
            samples: cover(size.width, size.height),
            stride: mcus.0 * blocks.0,
            rows: mcus.1 * blocks.1,
            covered: cover(1, 1),
            kept,
            tracked: self.progressive && kept > 1,
        }
    }

    /// Returns the maximum memory in bytes for decoding, without the file and the result.
    pub(super) fn memory(&self, plan: &Plan) -> u64 {
        let part = |part: usize| {
            let shape = self.shape(plan, part);
            let block = 2 * shape.kept + if shape.tracked { 8 } else { 0 };
            (shape.stride * shape.rows * block + shape.band(self.components[part])) as u64
        };
        // The last term is for a row that is being converted.
        (0..self.components.len()).map(part).sum::<u64>() + 16 * u64::from(self.size.0)
    }
}

impl Shape {
    /// Number of samples in a row of a plane.
    pub(super) fn plane_stride(&self) -> usize {
        self.stride * self.size.width
    }

    /// Returns the size in bytes of two rows of MCUs and one row of samples.
    fn band(&self, part: ComponentHeader) -> usize {
        self.plane_stride() * (2 * part.blocks.1 * self.size.height + 1)
    }
}

impl ComponentHeader {
    fn read(bytes: &[u8]) -> Self {
        let (across, down) = (usize::from(bytes[1] >> 4), usize::from(bytes[1] & 15));
        Self {
            id: bytes[0],
            blocks: (across, down),
            quantiser: usize::from(bytes[2]),
        }
    }
}

/// Limits the work for the scans of a file before they are decoded.
#[derive(Default)]
pub(super) struct Effort {
    scans: u32,
    visits: u64,
}

impl Effort {
    pub(super) fn add(&mut self, frame: &Frame, scan: &[u8]) -> Result<(), Error> {
        let named = |id: u8| frame.components.iter().position(|part| part.id == id);
        let count = usize::from(scan.first().copied().unwrap_or(0));
        let components = scan.get(1..).unwrap_or(&[]).chunks_exact(2).take(count);
        let plan = Plan {
            side: 8,
            buffered: false,
            output: Output::Colors,
        };
        let blocks = |part: usize| {
            let shape = frame.shape(&plan, part);
            (shape.stride * shape.rows) as u64
        };
        self.scans += 1;
        self.visits += components
            .filter_map(|part| named(part[0]))
            .map(blocks)
            .sum::<u64>();
        if self.scans > SCANS_MAX {
            return Err(unsupported(format!("more than {SCANS_MAX} scans")));
        }
        if self.visits > VISITS_MAX {
            return Err(unsupported("more blocks in its scans than murald decodes"));
        }
        Ok(())
    }
}

fn unsupported(what: impl Into<String>) -> Error {
    Error::Unsupported {
        format: Format::Jpg,
        what: what.into(),
    }
}

pub(super) type Damage = &'static str;

pub(super) const NO_CODE: Damage = "invalid Huffman code";

pub(super) fn damaged(what: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::damaged(Format::Jpg, what)
}
