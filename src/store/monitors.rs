//! Stores which monitors murald has seen, and which monitor was connected to each connector.
//!
//! The wallpaper of a monitor is stored under the name of its connector. If another monitor uses
//! that connector, the wallpaper is stored under the first monitor's identity until that one is
//! back.

use std::collections::BTreeMap;

use rusqlite::{Connection, params};

use super::Error;

/// Returns the connectors of the monitors that were connected when a wallpaper was set; others are
/// new.
pub(crate) fn seen(connection: &Connection) -> Result<Vec<String>, Error> {
    let mut statement =
        connection.prepare_cached("SELECT name FROM monitor WHERE seen ORDER BY name")?;
    let names = statement.query_map([], |row| row.get(0))?;
    Ok(names.collect::<Result<_, _>>()?)
}

pub(crate) fn note_seen(connection: &Connection, names: &[String]) -> Result<(), Error> {
    let sql = "INSERT INTO monitor (name, seen) VALUES (?1, 1) \
               ON CONFLICT (name) DO UPDATE SET seen = 1 WHERE NOT seen";
    let mut statement = connection.prepare_cached(sql)?;
    for name in names {
        statement.execute([name])?;
    }
    Ok(())
}

/// Returns the identity of the monitor on each connector, if known.
pub(crate) fn identities(connection: &Connection) -> Result<BTreeMap<String, String>, Error> {
    let sql = "SELECT name, identity FROM monitor WHERE identity <> ''";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Moves wallpapers along with monitors that have changed connectors. `now` has the identity of the
/// monitor on each connected connector, if known. Wallpapers on the connectors `alike`, whose
/// monitors cannot be told apart, do not move.
pub(crate) fn follow(
    connection: &Connection,
    now: &BTreeMap<String, String>,
    alike: &[String],
) -> Result<(), Error> {
    // First, so that none of these monitors is mistaken for an identical one that was disconnected.
    for name in alike {
        forget(connection, name)?;
    }
    let before = identities(connection)?;
    let moved: Vec<(&String, &String)> = now
        .iter()
        .filter(|(name, identity)| before.get(*name) != Some(*identity))
        .collect();
    // Set all aside before any is restored, as two monitors may have swapped connectors.
    for (name, _) in &moved {
        if let Some(old) = before.get(*name) {
            rename(connection, name, &away(old))?;
        }
    }
    for (name, identity) in &moved {
        // The monitor may have been on another connector that is unused now.
        let left = before
            .iter()
            .find(|(other, known)| known == identity && !now.contains_key(*other));
        if let Some((other, _)) = left {
            rename(connection, other, &away(identity))?;
            forget(connection, other)?;
        }
        rename(connection, &away(identity), name)?;
        let was_known = before.contains_key(*name);
        let sql = "INSERT INTO monitor (name, seen, identity) VALUES (?1, 0, ?2) ON CONFLICT (name) \
                   DO UPDATE SET identity = ?2, seen = iif(?3, 0, seen)";
        connection
            .prepare_cached(sql)?
            .execute(params![name, identity, was_known])?;
    }
    Ok(())
}

/// The name that stores the wallpaper of a disconnected monitor. No connector has such a name.
fn away(identity: &str) -> String {
    format!("@{identity}")
}

fn forget(connection: &Connection, name: &str) -> Result<(), Error> {
    connection
        .prepare_cached("UPDATE monitor SET identity = '' WHERE name = ?1")?
        .execute([name])?;
    Ok(())
}

/// Moves the wallpaper of a monitor to another name, if there is one.
fn rename(connection: &Connection, from: &str, to: &str) -> Result<(), Error> {
    for table in ["assignments", "walk"] {
        let sql = format!("UPDATE OR REPLACE {table} SET monitor = ?2 WHERE monitor = ?1");
        connection.prepare_cached(&sql)?.execute([from, to])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::assignments::{self, Assignment};
    use crate::store::images::tests::picture;
    use crate::store::tests::scratch;
    use crate::wire::{Mode, Timestamp};

    fn names(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(name, id)| ((*name).to_owned(), (*id).to_owned()))
            .collect()
    }

    #[test]
    fn monitor_is_new_until_a_wallpaper_is_set_while_it_is_connected() {
        let (_directory, store) = scratch();
        let of = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let note = |names| store.write(|c| note_seen(c, &of(names))).unwrap();
        let seen = || store.read(seen).unwrap();
        assert_eq!(seen(), of(&[]));
        note(&["B", "A"]);
        note(&["B"]);
        assert_eq!(seen(), ["A", "B"]);
        // Another monitor on the same connector is new.
        for who in ["one", "two"] {
            store
                .write(|c| follow(c, &names(&[("A", who), ("C", "three")]), &[]))
                .unwrap();
        }
        assert_eq!(seen(), ["B"]);
        note(&["A"]);
        assert_eq!(seen(), ["A", "B"]);
    }

    #[test]
    fn wallpapers_follow_their_monitors() {
        let (_directory, store) = scratch();
        let ids: Vec<i64> = ["a", "b", "c"]
            .iter()
            .map(|name| {
                store
                    .write(|c| crate::store::images::insert(c, &picture(name, 1)))
                    .unwrap()
            })
            .collect();
        let put = |name: &str, at: usize| {
            let assignment = Assignment {
                monitor: name.to_owned(),
                image_id: ids[at],
                mode: Mode::Individual,
                together: Vec::new(),
                backend: "feh".to_owned(),
                set_at: Timestamp::now(),
                fit: None,
                position: None,
                sound: None,
            };
            store.write(|c| assignments::put(c, &assignment)).unwrap();
        };
        let check_with = |now: &[(&str, &str)], alike: &[&str], expected: &[(&str, usize)]| {
            let shown = store.write(|c| {
                let alike: Vec<String> = alike.iter().map(ToString::to_string).collect();
                follow(c, &names(now), &alike)?;
                assignments::all(c)
            });
            let shown: Vec<_> = shown
                .unwrap()
                .into_iter()
                .map(|row| (row.monitor, row.image_id))
                .collect();
            let expected: Vec<_> = expected
                .iter()
                .map(|(name, at)| ((*name).to_owned(), ids[*at]))
                .collect();
            assert_eq!(shown, expected, "{now:?}");
        };
        let check = |now: &[(&str, &str)], expected| check_with(now, &[], expected);
        check(&[("A", "one"), ("B", "two")], &[]);
        put("A", 0);
        put("B", 1);
        check(&[("A", "one"), ("B", "two")], &[("A", 0), ("B", 1)]);
        // Two monitors swap connectors.
        check(&[("A", "two"), ("B", "one")], &[("A", 1), ("B", 0)]);
        // A monitor is disconnected and returns on another connector.
        check(&[("A", "two")], &[("A", 1), ("B", 0)]);
        check(&[("A", "two"), ("C", "one")], &[("A", 1), ("C", 0)]);
        // An unknown monitor on the connector has no wallpaper; the stored one waits for its
        // monitor.
        check(&[("A", "two"), ("C", "three")], &[("A", 1)]);
        put("C", 2);
        check(&[("A", "one"), ("C", "three")], &[("A", 0), ("C", 2)]);
        check(
            &[("A", "one"), ("B", "two"), ("C", "three")],
            &[("A", 0), ("B", 1), ("C", 2)],
        );
        // If identities are unknown, connectors decide.
        check(&[], &[("A", 0), ("B", 1), ("C", 2)]);
        check(&[("D", "four")], &[("A", 0), ("B", 1), ("C", 2)]);
        // An identical monitor is connected beside A, and stays when A is disconnected: it is not
        // mistaken for A.
        check(&[("A", "one")], &[("A", 0), ("B", 1), ("C", 2)]);
        check_with(&[], &["A", "B"], &[("A", 0), ("B", 1), ("C", 2)]);
        check(&[("B", "one")], &[("A", 0), ("B", 1), ("C", 2)]);
    }
}
