//! Parses URLs of servers: `scheme://USER:PASSWORD@HOST:PORT/DATABASE?name=value&...`.

/// The parts of a URL, with percent-encoding decoded.
#[derive(Default)]
pub(crate) struct Url {
    /// The parts by name: `user`, `password`, `host`, `port`, `database`.
    pub(crate) parts: Vec<(&'static str, String)>,
    pub(crate) parameters: Vec<(String, String)>,
}

impl Url {
    /// Parses the text after `scheme://`.
    ///
    /// # Errors
    /// A message about the invalid part. It never contains a password or a part of one.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let end = text.find(['/', '?']).unwrap_or(text.len());
        if text[end..].contains('@') {
            // What looks like a host, port or database may be a part of a password.
            return Err("an `@` follows a `/` or a `?`: write `/` as `%2F` and `?` as `%3F` in a user or a password, \
                        and `@` as `%40` elsewhere"
                .into());
        }

        let (path, parameters) = text.split_once('?').unwrap_or((text, ""));
        let (authority, database) = path.split_once('/').unwrap_or((path, ""));
        let (login, location) = match authority.rsplit_once('@') {
            Some((login, location)) => (Some(login), location),
            None => (None, authority),
        };
        let (user, password) =
            login.map_or(("", ""), |login| login.split_once(':').unwrap_or((login, "")));
        let (host, port) = split_location(location)?;

        let mut url = Self::default();
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
                // Without an `@`, it may be a password in a URL without a host.
                let port = login.map_or(String::new(), |_| format!(" `{value}`"));
                return Err(format!("the port{port} is not a number from 1 to 65535"));
            }
            url.parts.push((name, value));
        }

        for parameter in parameters.split('&').filter(|text| !text.is_empty()) {
            let Some((name, value)) = parameter.split_once('=') else {
                // Without an `@`, it may be the end of a password, too.
                let parameter = login.map_or(String::new(), |_| format!(" `{parameter}`"));
                return Err(format!("the parameter{parameter} has no value"));
            };
            url.parameters.extend(decoded(name, value)?.map(|value| (name.to_string(), value)));
        }
        Ok(url)
    }
}

/// Splits `HOST:PORT`, where the host may be an IP address in brackets.
fn split_location(location: &str) -> Result<(&str, &str), String> {
    let Some(bracketed) = location.strip_prefix('[') else {
        return Ok(location.rsplit_once(':').unwrap_or((location, "")));
    };
    let (host, port) = bracketed.split_once(']').ok_or("the host has a `[` without `]`")?;
    Ok((host, port.strip_prefix(':').unwrap_or(port)))
}

/// Returns text as a value of a URL has it.
pub(crate) fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());

    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() {
            encoded.push(char::from(byte));
        } else {
            encoded += &format!("%{byte:02X}");
        }
    }

    encoded
}

/// Decodes percent-encoding. Returns `None` for an empty text. Messages must not contain the text,
/// which may be a password.
fn decoded(part: &str, text: &str) -> Result<Option<String>, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut encoded = text.bytes();

    while let Some(byte) = encoded.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }

        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);

        match (digit(encoded.next()), digit(encoded.next())) {
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

    let value = String::from_utf8(bytes).map_err(|_| format!("{part} is not UTF-8"))?;
    Ok(Some(value).filter(|value| !value.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_decoded() {
        let url = Url::parse("me:p%40ss%3A@[::1]:7/ib?a=b%26c&d=").unwrap();
        let parts = ["me", "p@ss:", "::1", "7", "ib"].map(String::from);
        let names = ["user", "password", "host", "port", "database"];
        assert_eq!(url.parts, Vec::from_iter(names.into_iter().zip(parts)));
        assert_eq!(url.parameters, [("a".to_string(), "b&c".to_string())]);
        let url = Url::parse("").unwrap();
        assert_eq!(url.parts, []);
    }

    #[test]
    fn an_encoded_text_is_decoded_unchanged() {
        let text = "a/b@c?d&e=f%g\n+";
        let url = Url::parse(&format!("h?x={}", encoded(text))).unwrap();
        assert_eq!(url.parameters, [("x".to_string(), text.to_string())]);
    }

    #[test]
    fn error_messages_contain_no_password() {
        for (url, text) in [
            ("u:hunter2%zz@h/d", "password"),
            ("u:hunter2@[h/d", "`[`"),
            ("u:hunter2@h/d?x", "`x`"),
            ("u:hunter2@h%00/d", "zero byte"),
            ("u:hunter2", "the port is not a number"),
            ("u:hunter2/d", "the port is not a number"),
            ("u:12?hunter2", "the parameter has no value"),
            ("u:hun/ter2@h/d", "`%2F`"),
            ("u:12?hunter2@h/d", "`%3F`"),
            ("u:p@hunter2/x@h/d", "`@`"),
        ] {
            let error = Url::parse(url).err().unwrap();
            assert!(error.contains(text) && !error.contains("hunter2"), "{error}");
        }
    }
}
