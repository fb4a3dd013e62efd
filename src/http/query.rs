//! The query of a request: parameters decoded once, and the rules that all lists share.
//!
//! Unknown parameters are ignored; a value that is not understood is a 400 that names the
//! parameter, the value and what is allowed. Of repeated parameters the first counts.

use std::borrow::Cow;
use std::fmt::Display;
use std::str::FromStr;

use super::error::Error;
use crate::wire::{Pagination, Unknown};

const PER_PAGE: u64 = 50;
const PER_PAGE_MOST: u64 = 200;

#[derive(Debug, Default)]
pub struct Query<'a> {
    pairs: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

/// `page` and `per_page`, within their bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paging {
    /// From 1.
    pub page: u64,
    pub per_page: u64,
}

impl<'a> Query<'a> {
    pub(super) fn of(raw: Option<&'a str>) -> Result<Self, Error> {
        let Some(raw) = raw else { return Ok(Self::default()) };
        let bad = || Error::bad_request("the query has a bad percent sequence");
        let pairs = raw.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decode(name, true).ok_or_else(bad)?, decode(value, true).ok_or_else(bad)?))
        });
        Ok(Self { pairs: pairs.collect::<Result<_, Error>>()? })
    }

    /// Parameters that are decoded already.
    pub(super) fn of_pairs(pairs: Vec<(Cow<'a, str>, Cow<'a, str>)>) -> Self {
        Self { pairs }
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(key, _)| key == name).map(|(_, value)| &**value)
    }

    /// An enumerated parameter.
    pub fn word<T: FromStr<Err = Unknown>>(&self, name: &str) -> Result<Option<T>, Error> {
        let parsed = self.get(name).map(str::parse).transpose();
        parsed.map_err(|unknown| Error::word(name, &unknown))
    }

    /// Any other parameter with a type; `allowed` says what it may be.
    pub fn value<T: FromStr>(&self, name: &str, allowed: impl Display) -> Result<Option<T>, Error> {
        let Some(text) = self.get(name) else { return Ok(None) };
        match text.parse() {
            Ok(value) => Ok(Some(value)),
            Err(_) => Err(Error::parameter(name, text, allowed)),
        }
    }

    /// An integer parameter between two bounds, both included.
    pub fn integer(&self, name: &str, from: u64, to: u64) -> Result<Option<u64>, Error> {
        let allowed = || match to {
            u64::MAX => format!("{name} is an integer from {from}"),
            _ => format!("{name} is an integer from {from} to {to}"),
        };
        let number = self.value(name, allowed())?;
        match number {
            Some(number) if !(from..=to).contains(&number) => {
                Err(Error::parameter(name, &number.to_string(), allowed()))
            }
            _ => Ok(number),
        }
    }

    /// The items of a comma list; an absent parameter has none. Empty items are malformed.
    pub fn list<T>(
        &self,
        name: &str,
        item: impl Fn(&str) -> Result<T, Error>,
    ) -> Result<Option<Vec<T>>, Error> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let items = text.split(',').map(|part| match part.trim() {
            "" => Err(Error::parameter(name, text, format!("{name} has no empty items"))),
            part => item(part),
        });
        items.collect::<Result<_, _>>().map(Some)
    }

    /// `page` from 1; `per_page` from 1, where more than 200 counts as 200.
    pub fn paging(&self) -> Result<Paging, Error> {
        let page = self.integer("page", 1, u64::MAX)?.unwrap_or(1);
        let per_page = self.integer("per_page", 1, u64::MAX)?.unwrap_or(PER_PAGE);
        Ok(Paging { page, per_page: per_page.min(PER_PAGE_MOST) })
    }
}

impl Paging {
    /// Items before this page; a page beyond all numbers is past any end.
    pub fn offset(self) -> u64 {
        (self.page - 1).saturating_mul(self.per_page)
    }

    pub fn of(self, total_items: u64) -> Pagination {
        Pagination {
            page: self.page,
            per_page: self.per_page,
            total_items,
            total_pages: total_items.div_ceil(self.per_page),
        }
    }
}

/// Percent-decodes once; `plus` reads `+` as a space, as forms write it. `None`: not two
/// hexadecimal digits after a `%`, or not UTF-8.
pub(super) fn decode(raw: &str, plus: bool) -> Option<Cow<'_, str>> {
    if !raw.bytes().any(|byte| byte == b'%' || (plus && byte == b'+')) {
        return Some(Cow::Borrowed(raw));
    }
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                (digit()? << 4 | digit()?) as u8
            }
            b'+' if plus => b' ',
            other => other,
        });
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Mode;

    #[test]
    fn pages_have_bounds() {
        let check = |raw: &str, expected: Option<(u64, u64)>| {
            let found = Query::of(Some(raw)).unwrap().paging().ok();
            assert_eq!(found.map(|paging| (paging.page, paging.per_page)), expected, "{raw}");
        };
        check("", Some((1, 50)));
        check("page=3&per_page=7", Some((3, 7)));
        check("per_page=5000", Some((1, 200)));
        check("page=18446744073709551615", Some((u64::MAX, 50)));
        check("page=18446744073709551616", None);
        for bad in ["0", "-1", "x", "1.5", "", "%201", "99999999999999999999"] {
            check(&format!("page={bad}"), None);
            check(&format!("per_page={bad}"), None);
        }
        let last = Paging { page: u64::MAX, per_page: 200 };
        assert_eq!(last.offset(), u64::MAX);
        assert_eq!((last.of(0).total_pages, last.of(201).total_pages), (0, 2));
    }

    #[test]
    fn values_are_decoded_and_named_when_wrong() {
        let query = Query::of(Some("a=1+2%2B3&a=no&mode=up&&flag&c=x%2Cy,z")).unwrap();
        assert_eq!((query.get("a"), query.get("flag")), (Some("1 2+3"), Some("")));
        assert_eq!(query.get("b"), None);
        let text = query.word::<Mode>("mode").unwrap_err().into_response("x").text();
        assert!(text.contains("mode") && text.contains("up") && text.contains("extend"), "{text}");
        let list = query.list("c", |item| Ok(item.to_owned())).unwrap().unwrap();
        assert_eq!(list, ["x", "y", "z"]);
        assert!(query.list("flag", |_| Ok(())).is_err());
        assert!(query.list("b", |_| Ok(())).unwrap().is_none());
        assert!(Query::of(Some("a=%f")).is_err());
    }
}
