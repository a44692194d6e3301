//! Options of tables, fixed when a table is made: given on the command line, and shown.

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use zubilo::{KeyOrder, TableOptions};

/// What a new table is to be.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Options of a new table")]
pub(crate) struct LayoutArgs {
    /// How keys sort: as bytes, as native numbers of 4 or 8 bytes, or from their last byte
    #[arg(long, value_enum, value_name = "ORDER")]
    key_order: Option<OrderArg>,
    /// Many sorted values under a key
    #[arg(long)]
    duplicates: bool,
    /// How the values of a key sort; implies --duplicates
    #[arg(long, value_enum, value_name = "ORDER")]
    value_order: Option<OrderArg>,
    /// Many values under a key, all of one size, packed; implies --duplicates
    #[arg(long)]
    fixed_values: bool,
    /// Count records, so that the n-th and the rank of a key are found at once
    #[arg(long)]
    counted: bool,
    /// Align values to so many bytes
    #[arg(long, value_name = "BYTES",
          value_parser = clap::builder::PossibleValuesParser::new(["2", "4", "8", "16"]),
          conflicts_with_all = ["duplicates", "value_order", "fixed_values"])]
    align: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OrderArg {
    Bytes,
    Integer,
    Reversed,
}

impl OrderArg {
    fn order(self) -> KeyOrder {
        match self {
            OrderArg::Bytes => KeyOrder::Bytes,
            OrderArg::Integer => KeyOrder::Integer,
            OrderArg::Reversed => KeyOrder::Reversed,
        }
    }
}

impl LayoutArgs {
    /// What was asked for, if anything was.
    pub(crate) fn given(&self) -> Option<TableOptions> {
        let any = self.key_order.is_some()
            || self.value_order.is_some()
            || self.align.is_some()
            || self.duplicates
            || self.fixed_values
            || self.counted;
        any.then(|| self.options())
    }

    pub(crate) fn options(&self) -> TableOptions {
        let mut options = TableOptions::new();
        if let Some(order) = self.key_order {
            options = options.key_order(order.order());
        }
        if self.duplicates {
            options = options.duplicates();
        }
        if let Some(order) = self.value_order {
            options = options.value_order(order.order());
        }
        if self.fixed_values {
            options = options.fixed_duplicates();
        }
        if self.counted {
            options = options.counted();
        }
        if let Some(bytes) = self.align.as_ref().and_then(|bytes| bytes.parse().ok()) {
            options = options.align_values(bytes);
        }
        options
    }
}

fn order_name(order: KeyOrder) -> &'static str {
    match order {
        KeyOrder::Bytes => "bytes",
        KeyOrder::Integer => "integer",
        KeyOrder::Reversed => "reversed",
        KeyOrder::Custom => "custom",
    }
}

/// In words; nothing of what every table is that nobody asked anything of.
pub(crate) fn describe(options: &TableOptions) -> String {
    let mut parts = Vec::new();
    if options.keys() != KeyOrder::Bytes {
        parts.push(format!("{} keys", order_name(options.keys())));
    }
    if options.has_duplicates() {
        parts.push(if options.has_fixed_values() { "fixed values" } else { "duplicates" }.into());
        if options.values() != KeyOrder::Bytes {
            parts.push(format!("{} values", order_name(options.values())));
        }
    }
    if options.is_counted() {
        parts.push("counted".into());
    }
    if options.alignment() > 1 {
        parts.push(format!("align {}", options.alignment()));
    }
    parts.join(", ")
}

/// As JSON.
pub(crate) fn to_value(options: &TableOptions) -> Value {
    json!({
        "key_order": order_name(options.keys()),
        "duplicates": options.has_duplicates(),
        "value_order": options.has_duplicates().then(|| order_name(options.values())),
        "fixed_values": options.has_fixed_values(),
        "counted": options.is_counted(),
        "align": options.alignment(),
    })
}
