//! Server URLs, taken apart: `scheme://USER:PASSWORD@HOST:PORT/DATABASE?name=value&...`.

/// The parts of a URL that were given, percent-encoding undone.
#[derive(Default)]
pub(crate) struct Url {
    /// By their names: `user`, `password`, `host`, `port`, `database`.
    pub(crate) parts: Vec<(&'static str, String)>,
    pub(crate) parameters: Vec<(String, String)>,
}

impl Url {
    /// Takes apart what follows `scheme://`.
    ///
    /// # Errors
    /// Says which part is wrong; never holds a password, or what may be a part of one.
    pub(crate) fn parse(rest: &str) -> Result<Self, String> {
        let mut url = Self::default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        if rest[end..].contains('@') {
            // What is taken for host, port and database may be parts of a password.
            return Err("an `@` follows a `/` or a `?`: write `/` as `%2F` and `?` as `%3F` in a user or a password, \
                        and `@` as `%40` elsewhere"
                .into());
        }
        let (rest, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, place) = authority
            .rsplit_once('@')
            .map_or((None, authority), |(login, place)| (Some(login), place));
        let (user, password) = login.map_or(("", ""), |login| {
            login.split_once(':').unwrap_or((login, ""))
        });
        let (host, port) = match place.strip_prefix('[') {
            Some(bracketed) => {
                let (host, rest) = bracketed
                    .split_once(']')
                    .ok_or("the host has a `[` without `]`")?;
                (host, rest.strip_prefix(':').unwrap_or(rest))
            }
            None => place.rsplit_once(':').unwrap_or((place, "")),
        };
        for (name, text) in [
            ("user", user),
            ("password", password),
            ("host", host),
            ("port", port),
            ("database", database),
        ] {
            let Some(value) = decoded(name, text)? else {
                continue;
            };
            if name == "port" && !matches!(value.parse::<u16>(), Ok(1..)) {
                // Without an `@` it may be a password whose host is missing.
                let port = login.map_or(String::new(), |_| format!(" `{value}`"));
                return Err(format!("the port{port} is not a number from 1 to 65535"));
            }
            url.parts.push((name, value));
        }
        for parameter in parameters.split('&').filter(|text| !text.is_empty()) {
            let (name, value) = parameter
                .split_once('=')
                .ok_or_else(|| format!("parameter `{parameter}` has no value"))?;
            url.parameters
                .extend(decoded(name, value)?.map(|value| (name.to_string(), value)));
        }
        Ok(url)
    }
}

/// Undoes percent-encoding; `None` for nothing. The text itself may be a password and is not put into messages.
fn decoded(part: &str, text: &str) -> Result<Option<String>, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        match (digit(rest.next()), digit(rest.next())) {
            // Two hexadecimal digits make at most 255.
            (Some(high), Some(low)) => bytes.push((high * 16 + low) as u8),
            _ => {
                return Err(format!(
                    "{part} has a `%` without two hexadecimal digits; write `%25` for a percent sign"
                ));
            }
        }
    }
    if bytes.contains(&0) {
        return Err(format!("{part} has a zero byte"));
    }
    let text = String::from_utf8(bytes).map_err(|_| format!("{part} is not UTF-8"))?;
    Ok(Some(text).filter(|text| !text.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_found_and_decoded() {
        let url = Url::parse("me:p%40ss%3A@[::1]:7/ib?a=b%26c&d=").unwrap();
        let parts = ["me", "p@ss:", "::1", "7", "ib"].map(String::from);
        let names = ["user", "password", "host", "port", "database"];
        assert_eq!(url.parts, Vec::from_iter(names.into_iter().zip(parts)));
        assert_eq!(url.parameters, [("a".to_string(), "b&c".to_string())]);
        let url = Url::parse("").unwrap();
        assert_eq!(url.parts, []);
    }

    #[test]
    fn what_is_wrong_is_said_without_a_password() {
        for (url, said) in [
            ("u:hunter2%zz@h/d", "password"),
            ("u:hunter2@[h/d", "`[`"),
            ("u:hunter2@h/d?x", "`x`"),
            ("u:hunter2@h%00/d", "zero byte"),
            ("u:hunter2", "the port is not a number"),
            ("u:hunter2/d", "the port is not a number"),
            ("u:hun/ter2@h/d", "`%2F`"),
            ("u:12?hunter2@h/d", "`%3F`"),
            ("u:p@hunter2/x@h/d", "`@`"),
        ] {
            let error = Url::parse(url).err().unwrap();
            assert!(
                error.contains(said) && !error.contains("hunter2"),
                "{error}"
            );
        }
    }
}
