//! The items that the tests and benches of this package use, by module.
//!
//! It is no public API. The compiler reports items that are neither used nor listed here as dead
//! code.

/// The parsers, for the fuzz targets in `tests/fuzz`.
#[cfg(parsers)]
pub mod parsers {
    pub use crate::backends::fuzz as backends;
    pub use crate::cli::fuzz as cli;
    pub use crate::compositor::fuzz as compositor;
    pub use crate::compositor::ipc_fuzz as ipc;
    pub use crate::config::fuzz as config;
    pub use crate::draw::fuzz as draw;
    pub use crate::http::fuzz as http;
    pub use crate::library::fuzz as library;
    pub use crate::media::fuzz as media;
    pub use crate::process::fuzz as process;
    pub use crate::transcode::fuzz as transcode;
}

pub mod backends {
    pub use crate::backends::{Backend, Backends, Error, Kind, Placement, Web};
}

pub mod cli {
    pub use crate::cli::{Arity, Exit, Flag, GLOBAL, GROUPS, Kind, Verb, View};
}

pub mod color {
    pub use crate::color::{Rgb, hex, hue_group, lab, parse};
}

pub mod compositor {
    pub use crate::compositor::{Compositor, Identity, Output, Outputs, Session, Watch};
}

pub mod config {
    pub use crate::config::{
        BackendName, Config, ConfigHandle, Error, Key, Rule, Section, ValueType, Watch,
    };
}

pub mod decode {
    pub use crate::decode::{Decoder, Settings};
}

pub mod desktop {
    pub use crate::desktop::Handle;
}

pub mod digest {
    pub use crate::digest::hex;
}

pub mod events {
    pub use crate::events::{BUFFER, EventBus, EventFilter, Subscription};
}

pub mod http {
    pub use crate::http::{
        Api, Error, Handler, Limits, ROUTES, Reply, Request, Response, Route, Router, Server, Stop,
        file,
    };
}

pub mod kernel {
    pub use crate::kernel::Kernel;
}

pub mod library {
    pub use crate::library::{Library, Running, Settings, start};
}

pub mod media {
    pub use crate::media::{Picture, encode, palette, probe};
}

pub mod memory {
    pub use crate::memory::{restrain, trim};
}

pub mod paths {
    pub use crate::paths::{Dirs, Env};
}

pub mod playlist {
    pub use crate::playlist::{DaemonWallpapers, PlayerOwner, start};
}

pub mod process {
    pub use crate::process::{Identity, Launch, ProcessRecords, Versions, which};
}

pub mod store {
    pub use crate::store::{Connection, Error, Store};

    pub mod edits {
        pub use crate::store::edits::{ImageChange, change, renames};
    }

    pub mod folders {
        pub use crate::store::folders::{Refusal, insert};
    }

    pub mod migrations {
        pub use crate::store::migrations::{STEPS, run};
    }

    pub mod images {
        pub use crate::digest::Checksum;
        pub use crate::store::images::{NewImage, after, by_ids, files, ids, insert};
    }

    pub mod pending_files {
        pub use crate::store::pending_files::list;
    }
}

pub mod sys {
    pub use crate::sys::Cancel;
}

pub mod thread {
    pub use crate::thread::{Deaths, Spawner};
}

pub mod transcode {
    pub use crate::transcode::{Error, Ffmpeg, Limits, Threads, start};
}

pub mod wallpaper {
    pub use crate::wallpaper::{
        Applied, Ask, Error, Handle, ReconcilerOwner, Request, Targets, start,
    };
}

pub mod wire {
    pub use crate::wire::{
        DayTime, DeleteImages, Event, EventKind, Format, GalleryDomain, HistorySource, Image, Mode,
        Source, Timestamp, WebCapabilities,
    };
}
