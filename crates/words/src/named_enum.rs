//! Enums whose values have names in plans and records. The macro keeps each value and its name in
//! one place, so that no value can lack a name.

/// Defines an enum whose values have names in plans and records.
#[macro_export]
macro_rules! named_enum {
    ($(#[$about:meta])* pub enum $name:ident {
        $($(#[$about_value:meta])* $value:ident = $word:literal,)*
    }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$about_value])* $value,)*
        }

        impl $name {
            /// All values, by name.
            pub const NAMES: &'static [(&'static str, Self)] = &[$(($word, Self::$value),)*];

            /// Returns the value's name in plans and records.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $word,)*
                }
            }
        }
    };
}

named_enum! {
    /// The number of statements that create the indexes of a table.
    pub enum IndexStatements {
        /// The number that suits the engine: one for all in InnoDB, one for each index in others.
        Usual = "usual",
        /// One for all, if the engine has such a statement.
        One = "one",
        /// One for each index.
        Each = "each",
    }
}
