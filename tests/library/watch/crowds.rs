//! Eight programs create, rename, rewrite and remove watched files at the same time.

use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::Walls;

/// Creates a hundred pictures; after each it renames, rewrites or removes a random one, or does nothing.
const PROGRAM: &str = r#"
import os, random, struct, sys, zlib
root, me = sys.argv[1], int(sys.argv[2])
dice = random.Random(me)
def chunk(kind, data):
    return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
def png(number):
    rows = b''.join(b'\0' + struct.pack('>I', number) * 3 for _ in range(4))
    head = struct.pack('>IIBBBBB', 4, 4, 8, 2, 0, 0, 0)
    return (b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', head) + chunk(b'IDAT', zlib.compress(rows))
            + chunk(b'IEND', b''))
names = []
for at in range(100):
    sub = os.path.join(root, 'd%d' % (at % 5))
    os.makedirs(sub, exist_ok=True)
    name = os.path.join(sub, '%d-%d.png' % (me, at))
    open(name, 'wb').write(png(me * 1000 + at))
    names.append(name)
    pick = dice.randrange(len(names))
    what = dice.randrange(4)
    if what == 0:
        to = names[pick].replace('.png', 'r.png')
        os.rename(names[pick], to)
        names[pick] = to
    elif what == 1:
        data = png(me * 1000 + 500 + at)
        with open(names[pick], 'wb') as file:
            for piece in range(0, len(data), 20):
                file.write(data[piece:piece + 20])
                file.flush()
    elif what == 2:
        os.remove(names.pop(pick))
"#;

#[test]
fn rows_and_files_agree_after_eight_concurrent_writers() {
    let walls = Walls::with(&[("a.png", 1)]);
    let (id, playlist) = (walls.id("a.png"), walls.treasure("a.png"));
    let programs: Vec<_> = (1..=8)
        .map(|number: u32| {
            let mut program = Command::new("python3");
            program
                .args(["-c", PROGRAM])
                .arg(&walls.directory)
                .arg(number.to_string());
            program.spawn().unwrap()
        })
        .collect();
    for mut program in programs {
        assert!(program.wait().unwrap().success());
    }
    let ended = Instant::now();
    loop {
        let (images, files) = (walls.images(), super::files(&walls.directory));
        let is_same = |(name, content): (&String, &String)| {
            images
                .get(name)
                .is_some_and(|image| image["checksum"] == **content)
        };
        if images.len() == files.len() && files.iter().all(is_same) {
            break;
        }
        let missing: Vec<_> = files.iter().filter(|one| !is_same(*one)).take(5).collect();
        let stuck = ended.elapsed() > Duration::from_secs(120);
        assert!(
            !stuck,
            "{} rows, {} files, {missing:?}",
            images.len(),
            files.len()
        );
        sleep(Duration::from_millis(100));
    }
    assert_eq!(
        (walls.id("a.png"), walls.in_playlist(playlist)),
        (id, vec![id])
    );
}
