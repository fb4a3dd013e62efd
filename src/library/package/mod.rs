//! Imports packages: HTML wallpapers, which become a directory of the library, and videos that come
//! with a title and a preview.
//!
//! Packages land like pictures ([`super::import_file`]): copied under a temporary name, flushed, noted
//! as pending, renamed, and in one transaction the row written and the note removed. Runs on the calling
//! thread; the source's disk is read on a thread that may hang (`apart`). The source is never changed,
//! and no link out of it is followed.

mod apart;
#[cfg(parsers)]
#[path = "../../../tests/fuzz/src/parsers/package.rs"]
pub(super) mod fuzz;
mod look;
mod manifest;
mod root;
mod tree;

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::Error;
use super::context::ImportContext;
use super::decode::Tools;
use super::import_file::no_thumbnail;
use super::name::Name;
use super::task::{Imported, Prepared, Ready, Source};
use crate::color;
use crate::store::images::{NewImage, NewPackage};
use crate::wire::{Format, MediaType, Resolution, WebMeta};

use apart::{SILENT_FOR, apart};
use look::{package_look, preview_of};
pub(super) use look::{package_still, package_thumbnail};
pub(super) use manifest::is_manifest;
use manifest::{Kind, Manifest};
use root::Refusal;
use root::Root;
use tree::{Content, Tree};

/// A directory that can be imported.
enum Found {
    Page(Package),
    Video(Root, Manifest),
}

/// An HTML wallpaper whose files were listed and accepted.
struct Package {
    tree: Tree,
    manifest: Manifest,
}

impl ImportContext {
    /// Copies a package that is a page, named by its directory or by a file in it.
    pub(super) fn prepare_web(
        &self,
        source: &Path,
        folder: Option<i64>,
        tools: Tools<'_>,
    ) -> Result<Prepared, Error> {
        let source = manifest::package_of(source);
        let owned = source.to_owned();
        let open =
            move |signs: &_| Package::open(&owned, signs).map_err(|refusal| refusal.of(&owned));
        let package = apart(source, SILENT_FOR, open)?;
        self.prepare_page(source, package, folder, tools)
    }

    /// Copies a package, which is a page or a video.
    pub(super) fn prepare_package(
        &self,
        source: &Path,
        folder: Option<i64>,
        tools: Tools<'_>,
    ) -> Result<Prepared, Error> {
        let owned = source.to_owned();
        let found = apart(source, SILENT_FOR, move |signs| {
            let found = opened(&owned).and_then(|(root, manifest)| match manifest.kind {
                Kind::Web => Package::survey(root, manifest, signs).map(Found::Page),
                Kind::Video => Ok(Found::Video(root, manifest)),
            });
            found.map_err(|refusal| refusal.of(&owned))
        })?;
        match found {
            Found::Page(package) => self.prepare_page(source, package, folder, tools),
            Found::Video(root, manifest) => self.prepare_video(root, manifest, folder, tools),
        }
    }

    fn prepare_page(
        &self,
        source: &Path,
        package: Package,
        folder: Option<i64>,
        tools: Tools<'_>,
    ) -> Result<Prepared, Error> {
        let name = Name::of_title(&package.manifest.title, String::new());
        // Removed with all that is in it unless it lands.
        let mut copy = self.new_copy()?;
        let (to, decoder) = (copy.path.clone(), tools.decoder.clone());
        let (manifest, content) = apart(source, SILENT_FOR, move |signs| {
            let is_stopped = || {
                signs.fetch_add(1, Ordering::AcqRel);
                decoder.is_stopped()
            };
            Ok((package.manifest, package.tree.read(Some(&to), &is_stopped)?))
        })?;
        (copy.checksum, copy.size) = (content.checksum, content.size);
        if let Some(imported) = self.present(&copy.checksum)? {
            return Ok(imported.into());
        }
        manifest.complete(&copy.path)?;
        let row = self.describe_package((source, &copy.path), &manifest, content, folder, tools);
        tree::flush(&copy.path)?;
        Ok(Prepared::Copy(Box::new(Ready {
            copy,
            name,
            row,
            note: None,
        })))
    }

    /// Copies the package's video, named by the package's title, with its preview as thumbnail.
    fn prepare_video(
        &self,
        root: Root,
        manifest: Manifest,
        folder: Option<i64>,
        tools: Tools<'_>,
    ) -> Result<Prepared, Error> {
        let (path, package) = (root.path().join(&manifest.entry), root.path().to_owned());
        let (entry, file) = (manifest.entry.clone(), path.clone());
        apart(&path, SILENT_FOR, move |_| {
            root.linked_file(&entry)
                .map(drop)
                .map_err(Error::file("read", &file))
        })?;
        let mut source = Source::look_at(&path, tools.decoder)?;
        source.name = Name::of_title(&manifest.title, source.name.extension);
        let prepared = self.prepare_file(&path, source, folder, tools)?;
        if let Prepared::Copy(ready) = &prepared
            && let Some(new) = self.new_thumbnail(&path)
            && preview_of(&package, &manifest, Resolution::Default, tools, new.path()).is_some()
        {
            self.put_thumbnail(&path, &ready.row.checksum, &new);
        }
        Ok(prepared)
    }

    /// Gives a row to a package that somebody put into the library's directory. Never removes it.
    pub(super) fn adopt_package(&self, path: &Path, tools: Tools<'_>) -> Result<Imported, Error> {
        let package =
            Package::open(path, &AtomicU64::new(0)).map_err(|refusal| refusal.of(path))?;
        // Named by the directory, not by the title: the owner may have renamed it.
        let own = path.file_name().unwrap_or_default();
        let name = Name::of_title(&own.to_string_lossy(), String::new());
        let content = package.tree.read(None, &|| tools.decoder.is_stopped())?;
        if let Some(imported) = self.present(&content.checksum)? {
            return Ok(imported);
        }
        package.manifest.complete(path)?;
        let row = self.describe_package((path, path), &package.manifest, content, None, tools);
        self.keep(path, Some(own), &name, row)
    }

    /// The row of a package that lies at `root` now, and its thumbnail in the cache.
    fn describe_package(
        &self,
        (source, root): (&Path, &Path),
        manifest: &Manifest,
        content: Content,
        folder: Option<i64>,
        tools: Tools<'_>,
    ) -> NewImage {
        let new = self.new_thumbnail(source);
        let look = new.as_ref().and_then(|new| {
            let look = package_look(root, manifest, Resolution::Default, tools, new.path());
            look.inspect_err(|error| no_thumbnail(source, error)).ok()
        });
        if let (Some(new), Some(_)) = (&new, &look) {
            self.put_thumbnail(source, &content.checksum, new);
        }
        let look = look.flatten();
        let (width, height) = look.as_ref().map_or((0, 0), |look| look.size);
        let colors = look.map_or_else(Vec::new, |look| look.colors);
        NewImage {
            name: String::new(),
            path: root.join(&manifest.entry),
            format: Format::Html,
            width,
            height,
            duration: 0.0,
            animated: false,
            audio_enabled: false,
            file_size: content.size,
            checksum: content.checksum,
            hue_group: color::hue_group(&colors),
            colors,
            folder_id: folder,
            source_path: source.to_owned(),
            in_place: false,
            web: Some(NewPackage {
                meta: manifest.meta(root),
                preview: manifest.preview.clone(),
                overrides: manifest.overrides.clone(),
            }),
        }
    }
}

/// The media type of a package, and its title.
pub(super) fn content(source: &Path) -> Result<(MediaType, String), Error> {
    let (_, manifest) = opened(source).map_err(|refusal| refusal.of(source))?;
    let media_type = match manifest.kind {
        Kind::Web => MediaType::Web,
        Kind::Video => MediaType::Video,
    };
    Ok((media_type, manifest.title))
}

fn opened(source: &Path) -> Result<(Root, Manifest), Refusal> {
    let root = Root::open(source).map_err(Refusal::closed)?;
    let manifest = Manifest::read(&root)?;
    Ok((root, manifest))
}

impl Package {
    fn open(source: &Path, signs: &AtomicU64) -> Result<Self, Refusal> {
        let (root, manifest) = opened(source)?;
        match manifest.kind {
            Kind::Web => Self::survey(root, manifest, signs),
            Kind::Video => Err(Refusal::new("it is a video: `murald import` imports it")),
        }
    }

    fn survey(root: Root, manifest: Manifest, signs: &AtomicU64) -> Result<Self, Refusal> {
        let tree = Tree::survey(root, signs)?;
        if tree.root().linked_file(&manifest.entry).is_err() {
            let entry = manifest.entry.display();
            return Err(Refusal::new(format!("its HTML file {entry} is missing")));
        }
        Ok(Self { tree, manifest })
    }
}

impl Manifest {
    /// Writes a manifest if the package has none, as capabilities are stored in it.
    fn complete(&self, root: &Path) -> Result<(), Error> {
        if self.file.is_some() {
            return Ok(());
        }
        let path = root.join(manifest::OWN);
        File::create_new(&path)
            .and_then(|mut file| file.write_all(self.text().as_bytes()))
            .map_err(Error::file("write", &path))
    }
}

/// A manifest as it was before it was written.
pub(super) struct Before {
    path: PathBuf,
    text: String,
}

impl Before {
    pub(super) fn put_back(&self) -> Result<(), Error> {
        write_manifest(&self.path, &self.text)
    }
}

/// Writes a package's capabilities into its manifest, in place of those that it asked for.
pub(super) fn write_capabilities(meta: &WebMeta) -> Result<Before, Error> {
    let (root, path) = (&meta.package_root, &meta.manifest_path);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let opened = Root::open(root).map_err(Refusal::closed);
    let texts = opened
        .and_then(|root| manifest::text(&root, &name))
        .and_then(|text| {
            let old = text.ok_or_else(|| Refusal::new(format!("its {name} is missing")))?;
            Ok((
                manifest::with_capabilities(&name, &old, meta.capabilities)?,
                old,
            ))
        });
    let (new, old) = texts.map_err(|refusal| refusal.of(root))?;
    write_manifest(path, &new)?;
    Ok(Before {
        path: path.clone(),
        text: old,
    })
}

fn write_manifest(path: &Path, text: &str) -> Result<(), Error> {
    let temporary = path.with_file_name(".murald-manifest");
    let write = || {
        // Removes a file that a kill has left, or the package's own file of this name. That name may be
        // a link to another of the package's files, so it is never written through.
        match fs::remove_file(&temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = File::create_new(&temporary)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    };
    write().map_err(|error| {
        fs::remove_file(&temporary).ok();
        Error::file("write", path)(error)
    })
}
