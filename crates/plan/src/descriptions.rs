//! The meaning of a plan's keys, for its schema and for the tables of `docs/plan.md`.
//!
//! Tables that users know by an example in that document (builds, configs, tests) are not here.

/// The meaning of one key of a table, or of several that are explained together.
pub(crate) struct Description {
    /// The table with the keys, by its dotted path; empty for the top of a plan.
    pub(crate) table: &'static str,
    pub(crate) keys: &'static [&'static str],
    /// The default in Markdown, where no constant value is the default.
    #[cfg_attr(not(test), expect(dead_code, reason = "only the document shows it"))]
    pub(crate) default: Option<&'static str>,
    /// The meaning in Markdown, or [`AS_ABOVE`].
    pub(crate) meaning: &'static str,
}

/// The meaning of keys that an earlier table explains.
pub(crate) const AS_ABOVE: &str = "as above";

impl Description {
    /// Returns the description of a key of a table. A workload's key may be explained with that of
    /// another workload.
    pub(crate) fn of(table: &str, key: &str) -> Option<&'static Self> {
        let explains = |row: &&Self| row.keys.contains(&key) && row.meaning != AS_ABOVE;
        let own = DESCRIPTIONS.iter().filter(explains).find(|row| row.table == table);
        if own.is_some() || !is_workload(table) {
            return own;
        }

        DESCRIPTIONS.iter().filter(explains).find(|row| is_workload(row.table))
    }
}

/// Returns true for the path of a workload's own table.
fn is_workload(table: &str) -> bool {
    table.strip_prefix("workload.").is_some_and(|name| !name.contains('.'))
}

macro_rules! descriptions {
    ($($table:literal { $($($key:literal)+ $(or $default:literal)? => $meaning:literal;)* })*) => {
        /// All descriptions, in the order of the document.
        pub(crate) const DESCRIPTIONS: &[Description] = &[$($(Description {
            table: $table,
            keys: &[$($key),+],
            default: descriptions!(@default $($default)?),
            meaning: $meaning,
        }),*),*];
    };
    (@default) => { None };
    (@default $default:literal) => { Some($default) };
}

descriptions! {
    "" {
        "name" or "the file's"
            => "part of the run directory's name";
        "clients"
            => "numbers of clients to run with";
        "repeats"
            => "how many times to run each cell; verdicts need repeats, and Assay advises at least \
                five. 0 measures no time, and counts only [exact work](#exact). Or \
                `\"until decided\"`: adds repeats until each step of each target is \
                faster or slower than the base, or a change that matters is ruled out, or the \
                time is up ([statistics.md](statistics.md#until-decided))";
        "time"
            => "for `repeats = \"until decided\"`: the maximum time for one `assay run`. A repeat \
                begins only if it is expected to end in time; `--resume` continues for as long \
                again";
        "effect"
            => "for `repeats = \"until decided\"`: the smallest change that matters; `0.03` is \
                3%";
        "order"
            => "targets alternate within each repeat: odd repeats in a random order by the `seed`, \
                even ones in the reverse of the one before (`ab ba`). Or `\"grouped\"`: `aa bb`";
        "turns"
            => "how the targets of a repeat take [turns](turns.md) within each step: `\"off\"` \
                measures one cell after the other, `\"auto\"` chooses the length of a turn for each \
                step, and a time such as `\"100ms\"` sets it. `--turns` overrides it";
        "idle"
            => "what a target does between its turns: `\"frozen\"` or `\"running\"`";
        "placement"
            => "the processors of connections and of the server threads behind them: `\"kernel\"` \
                leaves them to the kernel, `\"pinned\"` puts those of each target on the same \
                ones, `\"shuffled\"` draws them anew for each turn";
        "base" or "the first target"
            => "the target that others are compared with; or [one for each engine or \
                build](#several-bases)";
        "against-itself"
            => "a target to measure alone, twice: once more as `build.config-again`. Any \
                difference between the two is noise. `assay run --aa` sets this key";
        "seed"
            => "the seed of all rows and random choices, including the order of cells";
        "data-dir" or "`data` in the results' directory (`results`, or the one of `--results`)"
            => "where databases are created; `--data DIR` overrides it";
        "keep-data"
            => "keep a cell's database";
        "reuse"
            => "keep the database that the first steps load, and begin later cells with a copy of \
                it: `true` in all runs, `\"run\"` only in this one, `\"repeat\"` only in the same \
                repeat. [Databases](databases.md) says \
                what is then measured. `--reuse DIR` chooses the directory";
        "keep-after" or "none"
            => "keep the database of a cell after these steps, for runs that begin `from` one of them \
                ([databases.md](databases.md#begin-after-any-step)). `--keep-after STEP` sets this \
                key";
        "from" or "the first step"
            => "begin with a copy of the database that was kept after this step, and leave out the \
                steps up to it. `--from STEP` sets this key";
        "only-steps" or "all"
            => "run only these of the measured steps, after `from` or after the load. `--only-step \
                STEP` sets this key";
        "alone" or "none"
            => "steps to measure also right after the load, without the steps before them, in cells \
                of their own (variants such as `alone-readrandom`). A finding says if such a step \
                differs from the same step in sequence ([findings.md](findings.md#steps-in-sequence)). \
                `assay run --alone STEP` sets this key";
        "disk-floor" or "`false`"
            => "measure what the disk of the databases can do for a program alone, before the first \
                cell and after the last ([metrics.md](metrics.md#the-floor-of-the-disk))";
        "system-calls" or "`\"off\"`"
            => "the engine's system calls that each measured step counts by kind \
                ([metrics.md](metrics.md#system-calls)): `\"syncs\"` such as `fdatasync`, \
                `\"common\"`, or `\"all\"`. Counting needs root, and makes the engine slower";
        "server-timeout"
            => "how long a server may take to start, and to stop";
        "server-user" or "`postgres` or `mysql`, else the owner of the data directory, else `nobody`"
            => "who runs the servers when Assay is root";
        "listen" or "none; with [load ranks](load-ranks.md) on other hosts, an address that they all reach"
            => "the IP address of this host on which servers that Assay starts listen, at a free \
                port. All clients then connect there by TCP, with a password made for the server, \
                instead of to its private socket";
        "before-step" "after-step" or "none"
            => "commands of a shell that run on this host before and after each step \
                ([below](#commands-around-steps))";
        "step-command-timeout" or "`\"10m\"`"
            => "how long such a command may take";
    }
    "design" {
        "kind"
            => "which targets to measure: `\"screening\"`, `\"full\"`, \
                `\"one-at-a-time\"` or `\"listed\"` ([designs.md](designs.md#the-design))";
        "targets" or "the fewest of 4, 8, 16 and 32"
            => "the number of targets of a screening: 4, 8, 12, 16, 20, 24 or 32";
        "exclude" or "none"
            => "levels that cannot go together: a list of tables such as \
                `{ full_page_writes = false, wal_compression = \"lz4\" }`";
        "combinations" or "none"
            => "the targets of a listed design beside the base: a list of tables as for `exclude`. \
                Factors that a table does not name have the base's level";
        "fold-over"
            => "also measures the opposite of each target, which tells effects from interactions \
                of two factors. `assay augment RUN` adds them to a run";
    }
    "workload.insert" {
        "steps"
            => "any list of `l.i0`, `l.x`, `l.i1`, `l.i2`, `settle`, `qrN`, `qpN`; a suffix \
                repeats one: `qr100.2`. `l.x` may come before `l.i0`. N may be 0, after `settle`";
        "initial-rows"
            => "rows per table that `l.i0` inserts";
        "write-rows"
            => "rows per table that `l.i1` (4/5) and `l.i2` (1/5) insert";
        "read-write-time"
            => "how long each `qrN` and `qpN` runs. Like every time of a step, it is at least \
                `\"100ms\"`; a step of less than a second has no figures per second";
        "delete-per-insert"
            => "delete as many rows as are inserted";
        "transactions"
            => "`l.i0` commits every 100 rows and `l.i1` every 50; with `\"small\"`, every 10 and \
                5";
        "tables"
            => "one table for each client, or `\"shared\"`: one for all";
        "partitions"
            => "range partitions of each table";
        "long-transaction"
            => "how long an additional connection per client holds its transaction; in all steps \
                except `l.i0`, `l.x`, `qr0` and `qp0`";
        "indexes"
            => "or `\"before-2023-12\"`: the definitions before December 2023";
        "secondary-indexes"
            => "how many indexes `l.x` creates, of `marketsegment`, `registersegment` and `pdc` \
                in this order. Range queries scan those that exist. With `0`, the default of \
                `steps` has neither `l.x` nor `qrN`, and a list with them is refused";
        "index-statements"
            => "how `l.x` creates them: InnoDB in one statement, the others in one each; or \
                always in `\"one\"`, or `\"each\"`";
        "bulk-load"
            => "run `l.i0` in the engine's fastest way: for MyRocks with `rocksdb_bulk_load`. \
                Other engines, and tables that clients share, have no such way, and a warning \
                says so";
        "data-length-min" "data-length-max"
            => "characters of the column `data`";
        "checks"
            => "what to check after each step; `\"keys\"`, `\"off\"`";
        "error-limit"
            => "a step fails if it has more failed operations than this";
        "attempts"
            => "how many times to try an operation that fails with a transient error";
        "settle-at-least" "settle-at-most"
            => "the shortest and the longest time for settling";
        "lag-at-most"
            => "the largest lag of [replicas](#replicas) that counts as bounded";
        "step.\"NAME\"" or ""
            => "keys for one step: see below";
    }
    "workload.kv" {
        "steps"
            => "any list of these, `drain`, `revrange`, `multireadwhilewriting`, `mergerandom`, \
                `readwhilemerging` and other `*whilemerging`, `deleteseq`, `deleterandom`, \
                `deleterange`, `mixgraph`, `randomtransaction`, and `ycsb_a` to `ycsb_f`, `fillseq` or `fillsst` first; a suffix repeats one: `overwrite.2`";
        "keys"
            => "keys that `fillseq` or `fillsst` writes";
        "key-size" "value-size"
            => "bytes; at least 8 and 16";
        "merge-operator"
            => "what merges do: `\"put\"` keeps the newest value, `\"uint64add\"` adds numbers of 64 bits, \
                so that `value-size` is 8";
        "compression-ratio"
            => "the share of a value that is random; the rest compresses to nothing";
        "write-rate"
            => "bytes of keys and values that the writer of `*whilewriting` and `*whilemerging` \
                sends, whether or not the engine keeps up";
        "read-time"
            => "how long each read-only step runs";
        "read-write-time"
            => "how long each `*whilewriting`, `*whilemerging`, `overwrite`, `mergerandom`, \
                `mixgraph`, `randomtransaction` and `ycsb_*` runs";
        "read-keys"
            => "the keys that steps read, except `mixgraph`, `randomtransaction` and `ycsb_*`: `\"zipfian(0.99)\"` has the distribution \
                of `ycsb_*`, and `\"exponential(15)\"` that of `db_bench --read_random_exp_range`";
        "rate"
            => "operations per second and client of each step that runs for a time, open loop, beside the \
                writer's `write-rate`; or `\"70% of max\"`, a share of the \
                [highest rate](transactions.md#a-share-of-the-highest-rate)";
        "max" or "what Assay measures"
            => "the highest rate of all clients together, of which `rate` is a share: one for all \
                numbers of clients, or `{ 1 = \"2k\", 8 = \"9k\" }`. For other numbers of clients, Assay measures it first";
        "measured-max" or "none"
            => "what Assay measured, in the plan that a run records";
        "sync"
            => "whether each write is on the disk before it returns, whatever the config's \
                `durability`; not of `fillseq`";
        "scan-length"
            => "entries of each scan";
        "multiget-keys"
            => "keys of each read of several";
        "verify-share"
            => "the share of reads whose value is compared with what was written";
        "checks"
            => "what to check after each step; `\"keys\"`: without a scan of all keys; `\"off\"`";
        "error-limit" "attempts"
            => "as above";
        "settle-at-least" "settle-at-most"
            => "the shortest and the longest wait of `drain`, of `flush`, and at the end of \
                `overwrite` and `mergerandom`";
        "step.\"NAME\"" or ""
            => "for one step: `time`, `write-rate` (of `*while*`), `read-keys`, `rate`, `max`, `sync`, \
                `writes` (of `overwritesome`) and `deletes` (of `delete*`), both by default a tenth \
                of `keys`, `range-width` (100 keys, of `deleterange`); [`mixgraph`](method.md#mixgraph) and [`randomtransaction`](method.md#transactions-with-keys) have more";
    }
    "workload.sysbench" {
        "tables"
            => "number of tables: `sbtest1` ... `sbtestN`";
        "rows"
            => "rows per table; at most `\"2G\"`, since `id` is an integer of 32 bits";
        "load-connections"
            => "connections that load. It does not depend on `clients`, so all cells load the \
                same tables. SQLite allows one writer, so one connection loads it";
        "load-batch"
            => "rows per statement of the load";
        "primary-key"
            => "whether `id` is the primary key. With `false`, it has a secondary index instead; \
                not applicable to SQLite, whose cells are left out";
        "secondary-index"
            => "whether `k` has an index, which the step `index` creates";
        "distribution"
            => "the distribution of random ids and values of `k`. `\"zipfian\"` is sysbench's, \
                with the exponent 0.8; `\"zipfian(0.99)\"` has another exponent. sysbench's own \
                default is different: most of the time it reads the same few rows";
        "prepared"
            => "whether to use prepared statements, unless a test says otherwise. `scan` and \
                single inserts are sent as text, as published. If all statements of a test are \
                sent as text, so are its `begin` and `commit`";
        "warmup"
            => "how long each test runs before it is measured";
        "read-time" "write-time"
            => "how long each test runs that reads, and each that writes (`write-only` uses \
                `read-time`)";
        "rate"
            => "events per second and client, open loop; or `\"70% of max\"`, a share of the \
                [highest rate](transactions.md#a-share-of-the-highest-rate)";
        "max" or "what Assay measures"
            => "as above";
        "measured-max" or "none"
            => "as above";
        "order"
            => "the default of `steps`: a few tests of each group; `\"classic\"`: the 42 steps of \
                2023 to April 2025; `\"current\"`: those since then";
        "steps" or "by `order`"
            => "any list that begins with `load`: `index`, `settle` and tests. On a server of a \
                `url`, you can omit `load` to use tables of `sysbench prepare`: see below";
        "checks" "error-limit" "attempts" "settle-at-least" "settle-at-most" "lag-at-most"
            => "as above";
        "step.\"NAME\"" or ""
            => "for one step: `time`, `warmup`, `distribution`, `rate`, `max`, `reported`, and the \
                test's arguments";
    }
    "workload.transactions" {
        "use" or ""
            => "a script of Assay: `\"tpcb\"`, `\"orders\"` or `\"ycsb\"`; or give a `script`";
        "script" or ""
            => "a [script](transactions.md#scripts) of your own: tables, transactions, tests and checks";
        "scale"
            => "the size of the tables, in the unit of the script: branches of `tpcb`, warehouses of \
                `orders`, thousands of rows of `ycsb`";
        "load-connections" "load-batch"
            => "as above";
        "statements"
            => "`\"portable\"`: the same on all engines; `\"native\"`: those that the script has \
                for one engine";
        "form"
            => "how a client sends a transaction: `\"statements\"`, or in one round trip as a \
                `\"procedure\"` or a `\"block\"` ([forms](transactions.md#forms))";
        "home"
            => "the rows of a table for which a client works, such as warehouses of `orders`: \
                `\"fixed\"`, `\"spread\"` or `\"all\"` ([homes](transactions.md#homes))";
        "isolation"
            => "the isolation level: `\"read-committed\"`, `\"repeatable-read\"`, \
                `\"serializable\"`, or `\"default\"`: the engine's. SQLite has only one";
        "transactions"
            => "end each test after this number of transactions, over all clients, instead of after \
                a time ([equal work](transactions.md#equal-work))";
        "warmup"
            => "how long each test runs before it is measured; with `transactions`, `\"0s\"`";
        "time"
            => "how long each test is measured";
        "rate"
            => "transactions per second and client, open loop; or `\"70% of max\"`, a share of the \
                [highest rate](transactions.md#a-share-of-the-highest-rate)";
        "max" or "what Assay measures"
            => "as above";
        "measured-max" or "none"
            => "as above";
        "think" "keying"
            => "how long a client waits after (`think`) and before (`keying`) each transaction, as a \
                [terminal](transactions.md#terminals) does: one time for all, or `{ NAME = \"12s\" }`";
        "think-factor"
            => "multiplies all times of `think` and `keying`";
        "checks" "error-limit" "attempts" "settle-at-least" "settle-at-most" "lag-at-most"
            => "as above";
        "steps" or "the script's"
            => "any list of `load`, `index`, `settle` and the script's tests and transactions; `load` \
                comes first, or after `index`";
        "step.\"NAME\"" or ""
            => "for one step: `transactions`, `time`, `warmup`, `home`, `isolation`, \
                `rate`, `max`, `think`, `keying`, `think-factor`, `reported`";
    }
    "rates" {
        "load"
            => "rows or keys per second that the engines load";
        "index"
            => "rows per second whose secondary indexes they build";
        "insert"
            => "rows per second that they write while there are indexes, or keys that they overwrite";
        "transactions"
            => "transactions per second of tests that end after a number of transactions";
    }
    "profile" {
        "repeats"
            => "how often to profile each cell, beside its measured `repeats`; profiled cells are \
                never compared by throughput";
        "frequency"
            => "samples per second of each busy processor";
        "call-graph"
            => "how to find the callers of a function: `\"fp\"` by frame pointers, `\"dwarf\"` by \
                unwinding, `\"lbr\"` by the processor's record of branches (Intel). `\"auto\"` \
                uses frame pointers if the program keeps them, else unwinding";
    }
    "exact" {
        "repeats"
            => "how many cells of each target count the engine's instructions instead of time, \
                under `valgrind` on one connection of each role. Two or more tell how exact they are";
        "operations"
            => "operations of each connection that are counted in a step";
        "warmup"
            => "operations of each connection before those";
        "simulate"
            => "`\"cache\"` also simulates the processor's caches and branches, at half the speed";
    }
}
