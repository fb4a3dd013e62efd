//! Tests files of many kinds with backends that accept some of them.

use std::fs::File;
use std::io::BufReader;

use super::*;
use crate::decode::Settings;
use crate::media;
use crate::thread::Spawner;

fn of(cache: &Path) -> Copies {
    let (spawner, _) = Spawner::new();
    Copies::new(
        cache.to_owned(),
        Decoder::start(Settings::default(), &spawner).unwrap(),
    )
}

const SIZE: (u32, u32) = (1920, 1080);
const PLAIN: Takes = Takes {
    formats: Some(&[Format::Png]),
    turns: true,
    profiles: true,
    animates: false,
    name: None,
};

/// A picture of one pixel, as BMP.
fn bmp(path: &Path) {
    let mut bytes = b"BM\x3a\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x01\0\0\0\x01\0\0\0".to_vec();
    bytes.extend(b"\x01\0\x18\0\0\0\0\0\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x02\x03\0");
    fs::write(path, bytes).unwrap();
}

#[test]
fn unsupported_pictures_are_copied_once() {
    let dir = tempfile::tempdir().unwrap();
    let (source, cache) = (dir.path().join("a.bmp"), dir.path().join("cache"));
    bmp(&source);
    let cancel = Cancel::new().unwrap();
    let mut copies = of(&cache);
    let copy = copies
        .of_size(&source, (&Cut::WHOLE, SIZE), &PLAIN, &cancel)
        .unwrap();
    assert_eq!(copy.parent(), Some(cache.as_path()));
    let mut file = BufReader::new(File::open(&copy).unwrap());
    let probe = media::probe(&mut file).unwrap();
    assert_eq!(
        (probe.format, probe.width, probe.height),
        (Format::Png, 1, 1)
    );
    let made = fs::metadata(&copy).unwrap().ino();
    assert_eq!(
        of(&cache)
            .of_size(&source, (&Cut::WHOLE, SIZE), &PLAIN, &cancel)
            .unwrap(),
        copy
    );
    assert_eq!(fs::metadata(&copy).unwrap().ino(), made);
    assert_eq!(
        copies
            .of_size(&copy, (&Cut::WHOLE, SIZE), &PLAIN, &cancel)
            .unwrap(),
        copy,
        "a PNG is taken as it is"
    );
    // The file is overwritten with the same length and gets its old time, as `cp -p` does.
    let time = fs::metadata(&source).unwrap().modified().unwrap();
    bmp(&source);
    File::options()
        .append(true)
        .open(&source)
        .unwrap()
        .set_modified(time)
        .unwrap();
    assert_ne!(
        copies
            .of_size(&source, (&Cut::WHOLE, SIZE), &PLAIN, &cancel)
            .unwrap(),
        copy
    );
    copies.tidy(&[]);
    assert_eq!(fs::read_dir(&cache).unwrap().count(), 0);
    assert!(
        copies
            .of_size(&source, (&Cut::WHOLE, SIZE), &PLAIN, &cancel)
            .unwrap()
            .exists(),
        "made again"
    );
}

#[test]
fn animated_picture_is_replaced_by_its_first_frame() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("a.png");
    let mut encoder = png::Encoder::new(File::create(&source).unwrap(), 1, 1);
    encoder.set_animated(2, 0).unwrap();
    let mut writer = encoder.write_header().unwrap();
    [[7], [200]]
        .iter()
        .for_each(|frame| writer.write_image_data(frame).unwrap());
    writer.finish().unwrap();
    let cancel = Cancel::new().unwrap();
    let mut copies = of(&dir.path().join("cache"));
    let moves = Takes {
        animates: true,
        ..PLAIN
    };
    assert_eq!(
        copies
            .of_size(&source, (&Cut::WHOLE, SIZE), &moves, &cancel)
            .unwrap(),
        source
    );
    let mut copies = of(&dir.path().join("cache"));
    let copy = copies
        .of_size(&source, (&Cut::WHOLE, SIZE), &PLAIN, &cancel)
        .unwrap();
    let mut file = BufReader::new(File::open(&copy).unwrap());
    let probe = media::probe(&mut file).unwrap();
    let picture = probe.decode(&mut file, (1, 1)).unwrap();
    assert_eq!(
        (probe.animated, &picture.pixels()[..3]),
        (false, &[7; 3][..])
    );
}

#[test]
fn tiny_pictures_and_tiles_are_cut_for_the_output() {
    let dir = tempfile::tempdir().unwrap();
    let cancel = Cancel::new().unwrap();
    let mut copies = of(&dir.path().join("cache"));
    let tile = Tile {
        x: 0,
        y: 0,
        width: SIZE.0,
        height: SIZE.1,
        pixels: SIZE,
    };
    let filling = Cut {
        tiles: vec![tile],
        ..Cut::WHOLE
    };
    let takes = Takes {
        turns: false,
        profiles: false,
        ..PLAIN
    };
    let mut check = |size: (u32, u32), cut: &Cut, is_cut: bool| {
        let path = dir.path().join(format!("{size:?}.png"));
        image::RgbImage::new(size.0, size.1).save(&path).unwrap();
        let ready = copies.of_size(&path, (cut, SIZE), &takes, &cancel).unwrap();
        let expected = if is_cut { SIZE } else { size };
        assert_eq!(
            image::image_dimensions(&ready).unwrap(),
            expected,
            "{cut:?}"
        );
        assert_eq!(ready != path, is_cut);
    };
    check((1, 1), &Cut::WHOLE, false);
    check((1, 1), &filling, true);
    check((200, 1), &filling, false);
    check((1, 200), &filling, true);
    check((2, 2), &filling, false);
    check(
        (2, 2),
        &Cut {
            repeats: true,
            ..filling.clone()
        },
        true,
    );
    check(
        (2, 2),
        &Cut {
            position: "top".parse().unwrap(),
            ..filling.clone()
        },
        true,
    );
}

#[test]
fn file_with_an_unsupported_name_is_linked() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("a,\n#.bmp");
    bmp(&source);
    let name = Some(Names::Linked(|_| false));
    let takes = Takes {
        formats: Some(&[Format::Bmp]),
        turns: true,
        profiles: true,
        animates: false,
        name,
    };
    let mut copies = of(&dir.path().join("cache"));
    let link = copies
        .of_size(
            &source,
            (&Cut::WHOLE, SIZE),
            &takes,
            &Cancel::new().unwrap(),
        )
        .unwrap();
    assert_eq!(fs::read_link(&link).unwrap(), source);
    assert!(link.extension().is_some_and(|extension| extension == "bmp"));
}

#[test]
fn backend_that_follows_symbolic_links_gets_none() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("a.bmp");
    bmp(&source);
    let name = Some(Names::Own(|path| !path.to_string_lossy().contains(',')));
    let takes = Takes {
        formats: Some(&[Format::Bmp]),
        turns: true,
        profiles: true,
        animates: false,
        name,
    };
    let cancel = Cancel::new().unwrap();
    let ready = |cache: &Path, path: &Path| {
        let copy = of(cache)
            .of_size(path, (&Cut::WHOLE, SIZE), &takes, &cancel)
            .unwrap();
        assert!(!copy.is_symlink());
        assert_eq!(fs::read(&copy).unwrap(), fs::read(&source).unwrap());
        copy
    };
    let cache = dir.path().join("cache");
    assert_eq!(ready(&cache, &source), source);
    let named = dir.path().join("named.png");
    fs::copy(&source, &named).unwrap();
    assert_eq!(
        ready(&dir.path().join("named"), &named).extension(),
        Some("bmp".as_ref())
    );
    let (link, odd) = (dir.path().join("link.bmp"), dir.path().join("a,b.bmp"));
    symlink("a.bmp", &link).unwrap();
    fs::hard_link(&source, &odd).unwrap();
    let inode = |path: &Path| fs::metadata(path).unwrap().ino();
    for path in [&link, &odd] {
        let twin = ready(&cache, path);
        assert_eq!(
            (twin.parent(), inode(&twin)),
            (Some(cache.as_path()), inode(&source))
        );
        assert_eq!(ready(&cache, path), twin);
    }
    assert_eq!(
        fs::read_dir(&cache).unwrap().count(),
        2,
        "and nothing is left beside them"
    );
    // There are no hard links between two file systems.
    let device = |path: &Path| fs::metadata(path).unwrap().dev();
    let places = ["/dev/shm", "/var/tmp"].map(Path::new).into_iter();
    let mut other = places.filter(|at| at.is_dir() && device(at) != device(dir.path()));
    let elsewhere = tempfile::tempdir_in(other.next().expect("a second file system")).unwrap();
    ready(elsewhere.path(), &odd);
}

#[test]
fn file_without_a_picture_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("x.png");
    let mut copies = of(&dir.path().join("cache"));
    let cancel = Cancel::new().unwrap();
    for content in [None, Some("no picture")] {
        if let Some(content) = content {
            fs::write(&source, content).unwrap();
        }
        let error = copies
            .of_size(&source, (&Cut::WHOLE, SIZE), &PLAIN, &cancel)
            .unwrap_err();
        assert!(matches!(error, Error::File { path, .. } if path == source));
    }
}
