//! The query of a request: parameters decoded once, and the pages that all lists share.

use std::borrow::Cow;

use super::error::Error;
use crate::wire::{BadParameter, Pagination, Parameters};

const PER_PAGE: u64 = 50;
const PER_PAGE_MOST: u64 = 200;

/// `page` and `per_page`, within their bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Paging {
    /// From 1.
    pub page: u64,
    pub per_page: u64,
}

/// Parses the query of a request.
pub(super) fn parse(raw: Option<&str>) -> Result<Parameters<'_>, Error> {
    let Some(raw) = raw else {
        return Ok(Parameters::default());
    };
    let bad = || Error::bad_request("the query has a bad percent sequence");
    let pairs = raw.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        Ok((
            decode(name, true).ok_or_else(bad)?,
            decode(value, true).ok_or_else(bad)?,
        ))
    });
    Ok(Parameters::from_pairs(pairs.collect::<Result<_, Error>>()?))
}

impl Paging {
    /// `page` and `per_page` are integers from 1; a `per_page` above 200 counts as 200.
    pub(super) fn read(parameters: &Parameters<'_>) -> Result<Self, BadParameter> {
        let page = parameters.integer("page", 1, u64::MAX)?.unwrap_or(1);
        let per_page = parameters
            .integer("per_page", 1, u64::MAX)?
            .unwrap_or(PER_PAGE);
        Ok(Self {
            page,
            per_page: per_page.min(PER_PAGE_MOST),
        })
    }

    /// The number of items before this page. It saturates, so that a huge page lies behind any end.
    pub(crate) fn offset(self) -> u64 {
        (self.page - 1).saturating_mul(self.per_page)
    }

    pub(crate) fn of(self, total_items: u64) -> Pagination {
        Pagination {
            page: self.page,
            per_page: self.per_page,
            total_items,
            total_pages: total_items.div_ceil(self.per_page),
        }
    }
}

/// Percent-decodes once; with `plus`, reads `+` as a space, as forms write it. `None` if a `%` is
/// not followed by two hexadecimal digits, or if the result is not UTF-8.
pub(super) fn decode(raw: &str, plus: bool) -> Option<Cow<'_, str>> {
    if !raw
        .bytes()
        .any(|byte| byte == b'%' || (plus && byte == b'+'))
    {
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
            let found = Paging::read(&parse(Some(raw)).unwrap()).ok();
            assert_eq!(
                found.map(|paging| (paging.page, paging.per_page)),
                expected,
                "{raw}"
            );
        };
        check("", Some((1, 50)));
        check("page=3&per_page=7", Some((3, 7)));
        check("per_page=5000", Some((1, 200)));
        check("page=18446744073709551615", Some((u64::MAX, 50)));
        // A larger integer is valid, too; no list has such a page.
        check("page=18446744073709551616", Some((u64::MAX, 50)));
        check("per_page=99999999999999999999", Some((1, 200)));
        for bad in ["0", "-1", "x", "1.5", "", "%201", "9999999999999999999x"] {
            check(&format!("page={bad}"), None);
            check(&format!("per_page={bad}"), None);
        }
        let last = Paging {
            page: u64::MAX,
            per_page: 200,
        };
        assert_eq!(last.offset(), u64::MAX);
        assert_eq!((last.of(0).total_pages, last.of(201).total_pages), (0, 2));
    }

    #[test]
    fn values_are_decoded_and_named_when_wrong() {
        let query = parse(Some("a=1+2%2B3&a=no&mode=up&&flag&c=x%2Cy,z")).unwrap();
        assert_eq!(
            (query.get("a"), query.get("flag")),
            (Some("1 2+3"), Some(""))
        );
        assert_eq!(query.get("b"), None);
        let text = query.word::<Mode>("mode").unwrap_err().to_string();
        assert!(
            text.contains("mode") && text.contains("up") && text.contains("extend"),
            "{text}"
        );
        let list = query
            .list("c", |item| Ok(item.to_owned()))
            .unwrap()
            .unwrap();
        assert_eq!(list, ["x", "y", "z"]);
        assert!(query.list("flag", |_| Ok(())).is_err());
        assert!(query.list("b", |_| Ok(())).unwrap().is_none());
        assert!(parse(Some("a=%f")).is_err());
    }
}
