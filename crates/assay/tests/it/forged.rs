//! Changes the JSON files of a record as a forger would: with the right checksums.

use std::path::Path;

use serde_json::Value;

/// Changes a JSON file, and the checksums in it and in the files that list it.
pub fn change_json(path: &Path, change: impl FnOnce(&mut Value)) {
    let mut value: Value = serde_json::from_slice(&fs_err::read(path).unwrap()).unwrap();
    change(&mut value);
    let text = write_json(path, value);

    let lister = match path.file_name().unwrap().to_str().unwrap() {
        "step.json" => "cell.json",
        "cell.json" => "run.json",
        _ => return,
    };

    let mut folders = path.ancestors().skip(1);
    let folder = folders.find(|folder| folder.join(lister).exists()).unwrap();
    let name = path.strip_prefix(folder).unwrap().to_str().unwrap();
    change_json_dyn(&folder.join(lister), &mut |list| {
        let mut files = list["files"].as_array_mut().unwrap().iter_mut();
        if let Some(file) = files.find(|file| file["name"] == *name) {
            file["size_bytes"] = text.len().into();
            file["crc32"] = format!("{:08x}", crc32fast::hash(text.as_bytes())).into();
        }
    });
}

/// Writes a JSON file with its checksum, and returns its text.
pub fn write_json(path: &Path, mut value: Value) -> String {
    value.as_object_mut().unwrap().remove("crc32");
    let text = serde_json::to_string_pretty(&value).unwrap() + "\n";
    let sum = crc32fast::hash(text.as_bytes());
    let body = text.strip_suffix("\n}\n").unwrap();
    let text = format!("{body},\n  \"crc32\": \"{sum:08x}\"\n}}\n");
    fs_err::write(path, &text).unwrap();
    text
}

/// The same without a type parameter, which would be infinite.
fn change_json_dyn(path: &Path, change: &mut dyn FnMut(&mut Value)) {
    change_json(path, |value| change(value));
}
