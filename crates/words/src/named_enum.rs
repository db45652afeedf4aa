//! Enums whose values have a name in plans and records.

/// Defines an enum with the name of each value in plans and records.
#[macro_export]
macro_rules! named_enum {
    ($(#[$about:meta])* pub enum $name:ident {
        $($(#[$about_value:meta])* $value:ident = $word:literal,)*
    }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$about_value])* $value,)*
        }

        impl $name {
            /// All values, by name.
            pub const NAMES: &'static [(&'static str, Self)] = &[$(($word, Self::$value),)*];

            /// Returns its name in plans and records.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $word,)*
                }
            }
        }
    };
}

named_enum! {
    /// With how many statements the indexes of a table are made.
    pub enum IndexStatements {
        /// As suits the engine: InnoDB one, the others one for each.
        Usual = "usual",
        /// One for all, where the engine has such a statement.
        One = "one",
        /// One for each index.
        Each = "each",
    }
}
