//! Printing and parsing of key paths.
//!
//! A path is its keys, joined by dots. A name that is not made of letters, digits, `_` and `-` only, or that looks like
//! an index, is written in double quotes, so that `head."0"` is the str and `head.0` the int or the index.

use std::fmt::{self, Write};
use std::iter::Peekable;
use std::str::Chars;
use std::sync::Arc;

use super::path::{DictKey, Key, KeyPath};
use crate::error::{Error, Result};

/// A segment of a printed path: a number or a name. The tree that it is matched with determines the kind of key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// An index, or a dict key that is an int.
    Number(i64),
    /// A field, or a dict key that is a str.
    Text(Arc<str>),
}

impl Key {
    /// The segment that the key prints as.
    #[must_use]
    pub fn segment(&self) -> Segment {
        match self {
            Self::Index(index) => Segment::Number(i64::try_from(*index).unwrap_or(i64::MAX)),
            Self::Item(DictKey::Number(number)) => Segment::Number(*number),
            Self::Field(name) | Self::Item(DictKey::Text(name)) => Segment::Text(name.clone()),
        }
    }
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(name) if is_plain(name) => f.write_str(name),
            Self::Text(name) => write_quoted(f, name),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.segment().fmt(f)
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, key) in self.keys().into_iter().enumerate() {
            if i > 0 {
                f.write_char('.')?;
            }
            key.fmt(f)?;
        }
        Ok(())
    }
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && !is_number(name) && name.chars().all(is_plain_char)
}

fn is_plain_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-'
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn write_quoted(f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
    f.write_char('"')?;
    for c in name.chars() {
        match c {
            '"' | '\\' => write!(f, "\\{c}")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            c if c.is_control() => write!(f, "{}", c.escape_unicode())?,
            c => f.write_char(c)?,
        }
    }
    f.write_char('"')
}

/// A printed path without quotes and escapes, keys joined by dots: `layers.0.a.b` for `layers.0."a.b"`.
///
/// Two paths may have the same text, so that it can match patterns, but not identify a part.
///
/// # Errors
/// As [`parse`].
pub fn unquoted(text: &str) -> Result<String> {
    let raw = |segment: &Segment| match segment {
        Segment::Number(number) => number.to_string(),
        Segment::Text(name) => name.to_string(),
    };
    Ok(parse(text)?.iter().map(raw).collect::<Vec<_>>().join("."))
}

/// Reads a printed path: `layers.0."a.b"`. The empty text is the root.
///
/// # Errors
/// [`Error::KeyPath`] if a key is empty, has an unclosed quote, or has characters that need quotes.
pub fn parse(text: &str) -> Result<Vec<Segment>> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let mut rest = text.chars().peekable();
    let mut segments = Vec::new();
    loop {
        segments
            .push(segment(&mut rest).map_err(|what| Error::KeyPath(format!("cannot read the path {text:?}: {what}")))?);
        match rest.next() {
            None => return Ok(segments),
            Some('.') => {}
            Some(c) => {
                return Err(Error::KeyPath(format!("cannot read the path {text:?}: a dot must come before {c:?}")));
            }
        }
    }
}

type Parsed<T> = std::result::Result<T, String>;

fn segment(rest: &mut Peekable<Chars>) -> Parsed<Segment> {
    if rest.next_if_eq(&'"').is_some() {
        return quoted(rest).map(|name| Segment::Text(name.into()));
    }
    let mut word = String::new();
    while let Some(c) = rest.next_if(|c| *c != '.') {
        word.push(c);
    }
    if is_number(&word) {
        return word.parse().map(Segment::Number).map_err(|_| format!("{word} is too large for an index"));
    }
    if word.is_empty() {
        return Err("a key is empty; an empty dict key is written \"\"".into());
    }
    if !is_plain(&word) {
        return Err(format!("the key {word:?} needs double quotes"));
    }
    Ok(Segment::Text(word.into()))
}

fn quoted(rest: &mut Peekable<Chars>) -> Parsed<String> {
    let mut name = String::new();
    loop {
        match rest.next().ok_or("a double quote is not closed")? {
            '"' => return Ok(name),
            '\\' => name.push(escaped(rest)?),
            c => name.push(c),
        }
    }
}

fn escaped(rest: &mut Peekable<Chars>) -> Parsed<char> {
    match rest.next() {
        Some(c @ ('"' | '\\')) => Ok(c),
        Some('n') => Ok('\n'),
        Some('r') => Ok('\r'),
        Some('t') => Ok('\t'),
        Some('u') => unicode(rest),
        _ => Err(r#"a backslash must come before one of " \ n r t u{...}"#.into()),
    }
}

fn unicode(rest: &mut Peekable<Chars>) -> Parsed<char> {
    let written: String = rest.by_ref().take_while(|c| *c != '}').collect();
    let digits = written.strip_prefix('{').unwrap_or_default();
    let code = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32);
    code.ok_or_else(|| format!("\\u{written} is no character"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn keys() -> impl Strategy<Value = Key> {
        let name = prop_oneof!["[a-z_]{1,4}", "-?[0-9]{1,3}", ".*", "[.\"\\\\\n\t]{0,4}"];
        let name = name.prop_map(|name| Arc::<str>::from(name.as_str()));
        prop_oneof![
            name.clone().prop_map(Key::Field),
            (0..1000_usize).prop_map(Key::Index),
            any::<i64>().prop_map(|number| Key::Item(DictKey::Number(number))),
            name.prop_map(|name| Key::Item(DictKey::Text(name))),
        ]
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(keys in prop::collection::vec(keys(), 0..6)) {
            let segments: Vec<_> = keys.iter().map(Key::segment).collect();
            let path: KeyPath = keys.into_iter().collect();
            prop_assert_eq!(parse(&path.to_string()).unwrap(), segments);
        }

        #[test]
        fn what_is_read_prints_alike(text in r#"[a0."\\-]{0,8}"#) {
            if let Ok(segments) = parse(&text) {
                let printed = segments.iter().map(Segment::to_string).collect::<Vec<_>>().join(".");
                prop_assert_eq!(parse(&printed).unwrap(), segments);
            }
        }
    }

    #[test]
    fn unquoted_text_has_the_keys_as_they_are() {
        let cases = [
            ("layers.0.weight", "layers.0.weight"),
            (r#""0.bias""#, "0.bias"),
            (r#"head."a.b"."0""#, "head.a.b.0"),
            (r#""a\"b\\c\n""#, "a\"b\\c\n"),
            ("", ""),
        ];
        for (printed, expected) in cases {
            assert_eq!(unquoted(printed).unwrap(), expected, "{printed}");
        }
        assert!(unquoted("a..b").is_err());
    }

    #[test]
    fn quotes_stand_only_where_they_must() {
        let cases = [
            ("weight", "weight"),
            ("größe", "größe"),
            ("layer-norm_1", "layer-norm_1"),
            ("", r#""""#),
            ("a.b", r#""a.b""#),
            ("0", r#""0""#),
            ("-1", r#""-1""#),
            ("a b", r#""a b""#),
            ("*", r#""*""#),
            ("\"\\", r#""\"\\""#),
            ("\n\u{1b}", r#""\n\u{1b}""#),
        ];
        for (name, printed) in cases {
            assert_eq!(Key::Field(name.into()).to_string(), printed);
        }
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        let cases = [
            ("a..b", "a key is empty"),
            (".a", "a key is empty"),
            ("a b", "needs double quotes"),
            ("\"a", "not closed"),
            ("\"a\"b", "a dot must come before"),
            (r#""\x""#, "a backslash must come before"),
            (r#""\u{110000}""#, "is no character"),
            ("99999999999999999999", "too large"),
        ];
        for (text, why) in cases {
            let message = parse(text).unwrap_err().to_string();
            assert!(message.contains(why), "{text}: {message}");
        }
    }
}
