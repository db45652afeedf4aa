//! The JSON schema of plans, with which editors complete and check them.
//!
//! The code that reads a plan asks for each key with its kind of value. So the schema is recorded
//! while one plan of each workload is read.

use std::sync::LazyLock;

use serde_json::{Value as Json, json};

use crate::compared::commits::{GIT, is_recipe_key};
use crate::compared::host_metrics::{HOST_DISKS, HOST_METRICS};
use crate::compared::options::FACTORS;
use crate::descriptions::Description;
use crate::reading::context::Context;
use crate::reading::document;
use crate::spec::ENV;

/// Plans that together have every possible table.
const PLANS: [&str; 5] = [
    "repeats = 'until decided'\n[profile]\n[exact]\n[workload.insert.step.'l.i1']\ntime = '1s'\n\
     [build.a]\nsqlite = 'bundled'\n[config.sqlite.a]\n[config.postgres.a]\n[config.mysql.a]\n[config.null.a]\n[[target]]\n",
    "[workload.kv]\nsteps = ['fillseq', 'overwritesome', 'readwhilewriting', 'deleterange', 'mixgraph', 'randomtransaction']\n\
     [build.a]\nrocksdb = 'a'\n[config.rocksdb.a]\n[config.library.a]\n",
    "[workload.sysbench.test.a]\ngroup = 'point'\n[[workload.sysbench.test.a.statement]]\nsql = 'SELECT 1'\n\
     [build.a]\nsqlite = 'bundled'\n",
    "[workload.transactions]\nuse = 'tpcb'\n[build.a]\nsqlite = 'bundled'\n",
    "[workload.insert]\n[build.a]\nsqlite = 'bundled'\n[design]\n[factors.set]\na = [1, 2]\n",
];

/// Tables whose keys are names that users choose, as are the keys of `config.ENGINE`.
const TABLES_OF_NAMES: [&str; 3] = ["build", "step", "test"];
/// Lists of tables.
const LISTS: [&str; 2] = ["target", "statement"];

/// Every key that can be in a plan, by its dotted path, and its schema unless it is a table or read
/// piece by piece.
static KEYS: LazyLock<Vec<(String, Option<Json>)>> = LazyLock::new(|| {
    let mut keys = Vec::new();
    for text in PLANS {
        let mut cx = Context::new(text);
        cx.schemas = Some(Vec::new());
        if let Some(tree) = document::read(&mut cx, text) {
            crate::read(&mut cx, "plan", tree);
        }
        keys.extend(cx.schemas.into_iter().flatten());
    }
    keys
});

/// Returns the table in which the key belongs, as help says it; `None` where no table of a plan has
/// it, or more than one.
pub(crate) fn table_with(key: &str) -> Option<String> {
    let mut tables: Vec<String> = Vec::new();
    for (path, _) in KEYS.iter() {
        let names = names(path);
        let above = match names.split_last() {
            Some((last, above)) if *last == key => above,
            _ => continue,
        };

        let table = match above {
            [] => "at the top of the plan, before all tables".to_owned(),
            ["workload", workload] => format!("of `[workload.{workload}]`"),
            ["config", engine, _] => format!("of `[config.{engine}.NAME]`"),
            ["build", _] => "of `[build.NAME]`".to_owned(),
            _ => return None,
        };

        if !tables.contains(&table) {
            tables.push(table);
        }
    }

    let table = tables.pop()?;
    tables.is_empty().then_some(table)
}

/// Returns the constant default of a key, by its dotted path; `None` if it has none.
#[cfg(test)]
pub(crate) fn default_of(path: &str) -> Option<&'static Json> {
    let schema = KEYS.iter().find_map(|(known, schema)| schema.as_ref().filter(|_| known == path));
    schema.and_then(|schema| schema.get("default"))
}

/// Returns the names of the keys of a table that is no list and has no keys that users choose.
#[cfg(test)]
pub(crate) fn keys_of(table: &str) -> Vec<&'static str> {
    let mut keys = Vec::new();
    for (path, _) in KEYS.iter() {
        let (before, key) = path.rsplit_once('.').unwrap_or(("", path));
        if before == table && !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys
}

/// Returns the JSON schema (draft 7) of plans.
pub fn schema() -> Json {
    let mut root = table();
    for (path, schema) in KEYS.iter() {
        add(&mut root, path, schema.as_ref());
    }

    root["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    root["title"] = json!("A plan of Assay");
    let properties = &mut root["properties"];

    // A build has one source, and a plan one workload.
    let build = &mut properties["build"]["additionalProperties"];
    let mut sources = Vec::new();
    for (key, _) in build["properties"].as_object().into_iter().flatten() {
        if key == GIT {
            sources.push(json!({ "required": [GIT, "engine", "ref", "make", "gives"] }));
        } else if ![FACTORS, "replica-url", HOST_METRICS, HOST_DISKS].contains(&key.as_str())
            && !is_recipe_key(key)
        {
            sources.push(json!({ "required": [key] }));
        }
    }
    build["oneOf"] = Json::Array(sources);

    let workload = &mut properties["workload"];
    workload["maxProperties"] = json!(1);

    // The arguments of the test that the step runs.
    workload["properties"]["sysbench"]["properties"]["step"]["additionalProperties"]["additionalProperties"] =
        json!({ "type": "integer" });

    // A variant has the keys of its workload, except for variants.
    for (_, workload) in workload["properties"].as_object_mut().into_iter().flatten() {
        if let Some(properties) = workload["properties"].as_object_mut() {
            properties.remove("variant");
        }
        let variant = workload.clone();
        workload["properties"]["variant"] =
            json!({ "type": "object", "additionalProperties": variant });
    }
    root
}

fn table() -> Json {
    json!({ "type": "object", "properties": {}, "additionalProperties": false })
}

/// Adds the schema of a key, by its dotted path. A key without one is a table, or read piece by
/// piece.
fn add(root: &mut Json, path: &str, schema: Option<&Json>) {
    let names = names(path);
    let mut node = root;

    // The last two names before the current one.
    let mut above = ["", ""];
    for (depth, name) in names.iter().enumerate() {
        // The position of a statement is no name.
        if above[1] == "statement" && name.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }

        let is_named = TABLES_OF_NAMES.contains(&above[1]) || above[0] == "config";
        let slot = if is_named {
            &mut node["additionalProperties"]
        } else {
            &mut node["properties"][name]
        };

        let is_last = depth + 1 == names.len();
        if slot.is_null() || *slot == json!(false) {
            *slot = match schema {
                Some(schema) if is_last => described(&names, schema.clone()),
                _ => match by_hand(above, name) {
                    Some(schema) if is_last => described(&names, schema),
                    _ if LISTS.contains(name) => json!({ "type": "array", "items": table() }),
                    _ => table(),
                },
            };
        }

        node = if LISTS.contains(name) { &mut slot["items"] } else { slot };
        above = [above[1], *name];
    }
}

/// Splits a dotted path into names; some of them may be in quotes.
fn names(path: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for (index, part) in path.split('"').enumerate() {
        match index % 2 {
            0 => names.extend(part.split('.').filter(|name| !name.is_empty())),
            _ => names.push(part),
        }
    }
    names
}

/// Returns the schema of a key that is read piece by piece; `above` has the last two names before
/// it.
fn by_hand(above: [&str; 2], key: &str) -> Option<Json> {
    let text = json!({ "type": "string", "minLength": 1 });
    let computed = json!({ "type": ["integer", "string"] });
    let map = |values: Json| json!({ "type": "object", "additionalProperties": values });
    let scalar = json!({ "type": ["string", "number", "boolean"] });
    let is_at_top = above == ["", ""];

    Some(match key {
        FACTORS if is_at_top => table(),
        "exclude" | "combinations" => json!({ "type": "array", "items": map(scalar) }),
        _ if above == ["", FACTORS] => {
            map(json!({ "type": "array", "items": scalar, "minItems": 2 }))
        }
        "set" | "load" | ENV | FACTORS => map(scalar),
        "null" if above[0] == "build" => json!({ "enum": ["bundled"] }),
        HOST_DISKS => json!({ "type": "array", "items": text, "minItems": 1 }),
        "replica-url" => {
            let list = json!({ "type": "array", "items": text, "minItems": 1 });
            json!({ "anyOf": [text, list] })
        }
        _ if above[0] == "build" => text,
        "base" => json!({ "anyOf": [text, map(text.clone())] }),
        "against-itself" | "load-with" | "sql" | "values" => text,
        "builds" | "configs" => json!({ "type": "array", "items": text, "minItems": 1 }),
        "arguments" => map(json!({ "type": "integer" })),
        "parameters" => map(computed),
        "count" | "weight" | "repeat" => computed,
        "rows" => {
            let ends = json!({ "least": computed, "most": computed });
            let ends =
                json!({ "type": "object", "properties": ends, "additionalProperties": false });
            json!({ "anyOf": [computed, ends] })
        }
        _ => return None,
    })
}

/// Adds the description of a key. Removes the default of a step's key, which follows from the
/// workload.
fn described(names: &[&str], mut schema: Json) -> Json {
    let (key, table) = names.split_last().unwrap_or((&"", &[]));
    if table.contains(&"step")
        && let Some(schema) = schema.as_object_mut()
    {
        schema.remove("default");
    }

    if let Some(description) = Description::of(&table.join("."), key) {
        schema["description"] = json!(description.meaning.replace('`', ""));
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Collects the paths of tables that have no keys.
    fn empty(path: &str, node: &Json, found: &mut Vec<String>) {
        let properties = node["properties"].as_object();
        let is_empty = properties.is_none_or(|properties| properties.is_empty());
        if is_empty && node["additionalProperties"] == json!(false) {
            found.push(path.to_owned());
        }
        for (name, inner) in properties.into_iter().flatten() {
            empty(&format!("{path}.{name}"), inner, found);
        }
        for (name, inner) in [("*", "additionalProperties"), ("[]", "items")] {
            if node[inner].is_null() {
                continue;
            }
            empty(&format!("{path}.{name}"), &node[inner], found);
        }
    }

    #[test]
    fn every_key_has_a_schema() {
        let mut found = Vec::new();
        empty("", &schema(), &mut found);
        assert_eq!(found, [""; 0], "give these a schema in `by_hand`");
    }

    #[test]
    fn keys_have_their_types_defaults_and_descriptions() {
        let schema = schema();
        let insert = &schema["properties"]["workload"]["properties"]["insert"]["properties"];
        assert_eq!(insert["tables"]["enum"], json!(["per-client", "shared"]));
        assert_eq!(insert["tables"]["default"], "per-client");
        assert_eq!(
            insert["tables"]["description"],
            "one table for each client, or \"shared\": one for all"
        );
        let step = &insert["step"]["additionalProperties"]["properties"];
        let keys: Vec<&String> = step.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["rate", "rows", "rows-per-commit", "time"]);
        let variant = &insert["variant"]["additionalProperties"]["properties"];
        assert_eq!(variant["tables"], insert["tables"]);
        let sources = schema["properties"]["build"]["additionalProperties"]["oneOf"].clone();
        let of_commit = json!({ "required": ["git", "engine", "ref", "make", "gives"] });
        assert!(sources.as_array().unwrap().contains(&of_commit), "{sources}");
        assert!(!sources.as_array().unwrap().contains(&json!({ "required": ["patch"] })));
        let kv = &schema["properties"]["workload"]["properties"]["kv"]["properties"];
        assert_eq!(kv["checks"]["enum"], json!(["full", "keys", "off"]));
        assert_eq!(
            kv["attempts"]["description"],
            "how many times to try an operation that fails with a transient error"
        );
    }

    #[test]
    fn the_schema_has_builds_and_configs_of_every_engine() {
        let schema = schema();
        let builds = &schema["properties"]["build"]["additionalProperties"]["properties"];
        let configs = &schema["properties"]["config"]["properties"];

        for (engine, _) in words::Engine::NAMES {
            assert!(builds[engine].is_object(), "no build of `{engine}`");
            assert!(configs[engine].is_object(), "no config of `{engine}`: add one to `PLANS`");
        }
    }
}
