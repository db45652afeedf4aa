use super::*;

/// The head of a file of callgrind.
const HEAD: &str = "\
# callgrind format
version: 1
creator: callgrind-3.19.0
pid: 25259
cmd:  ./server -D data: x=y
part: 1
thread: 2


desc: I1 cache: 
desc: Trigger: dump

positions: line
events: Ir
summary: 0


";

fn read(text: &str) -> Result<Dump, Damage> {
    parse(text, &mut FunctionNames::default())
}

fn parsed(body: &str) -> Dump {
    read(&format!("{HEAD}{body}")).unwrap()
}

/// Returns each function as `object name own`.
fn functions(dump: &Dump) -> Vec<String> {
    let functions = dump.graph.functions.iter();
    functions.map(|one| format!("{} {} {}", one.object, one.name, one.own)).collect()
}

/// Returns calls as `caller callee count inclusive`.
fn calls(dump: &Dump) -> Vec<String> {
    let name = |index: usize| &dump.graph.functions[index].name;
    let calls = dump.graph.calls.iter();
    calls
        .map(|one| {
            let (caller, callee) = (name(one.caller), name(one.callee));
            format!("{caller} {callee} {} {}", one.count, one.inclusive)
        })
        .collect()
}

#[test]
fn names_and_positions_may_be_compressed() {
    let compressed = parsed(
        "ob=(1) /usr/bin/server\n\
         fl=(1) main.c\n\
         fn=(1) execute\n\
         16 100\n\
         +3 20\n\
         cob=(2) /usr/lib/libc.so.6\n\
         cfi=(2) copy.c\n\
         cfn=(2) memcpy\n\
         calls=3 -16 \n\
         * 60\n\
         -2 7\n\
         \n\
         ob=(2)\n\
         fl=(2)\n\
         fn=(2)\n\
         0 60\n\
         \n\
         totals: 187\n",
    );
    let plain = parsed(
        "ob=/usr/bin/server\n\
         fl=main.c\n\
         fn=execute\n\
         16 100\n\
         19 20\n\
         cob=/usr/lib/libc.so.6\n\
         cfl=copy.c\n\
         cfn=memcpy\n\
         calls=3 0\n\
         19 60\n\
         17 7\n\
         ob=/usr/lib/libc.so.6\n\
         fn=memcpy\n\
         0 60\n\
         totals: 187\n",
    );
    assert_eq!(compressed, plain);
    assert_eq!(compressed.thread, 2);
    assert_eq!(compressed.events, BTreeMap::from([("Ir".to_owned(), 187)]));
    assert_eq!(functions(&compressed), ["server execute 127", "libc.so.6 memcpy 60"]);
    assert_eq!(calls(&compressed), ["execute memcpy 3 60"]);
}

#[test]
fn a_called_function_without_an_object_is_in_the_object_of_its_caller() {
    let dump = parsed(
        "ob=server\n\
         fn=execute\n\
         cob=libc.so.6\n\
         cfn=memcpy\n\
         calls=1 0\n\
         0 5\n\
         cfn=plan\n\
         calls=1 0\n\
         0 6\n\
         totals: 0\n",
    );
    assert_eq!(functions(&dump), ["server execute 0", "libc.so.6 memcpy 0", "server plan 0"]);
}

#[test]
fn several_events_and_positions_are_read() {
    let text = "thread: 1\n\
                event: Ir : Instruction Fetch\n\
                positions: instr line\n\
                events: Dr Ir Dw\n\
                fn=execute\n\
                0x80001234 90 1 20\n\
                +3 * 5 30 7\n\
                +0x10 +1\n\
                cfn=plan\n\
                calls=2 0x90 3\n\
                * * 1 9\n\
                totals: 6 50 7\n";
    let dump = read(text).unwrap();
    let events = [("Dr".to_owned(), 6), ("Ir".to_owned(), 50), ("Dw".to_owned(), 7)];
    assert_eq!(dump.events, BTreeMap::from(events));
    assert_eq!(functions(&dump), [" execute 50", " plan 0"]);
    assert_eq!(calls(&dump), ["execute plan 2 9"]);
}

#[test]
fn inlined_code_of_other_files_and_jumps_belong_to_the_function() {
    let dump = parsed(
        "fn=execute\n\
         10 1\n\
         fi=other.h\n\
         20 2\n\
         jump=5 30\n\
         20\n\
         jcnd=3/4 +2\n\
         *\n\
         jfi=third.h\n\
         jfn=plan\n\
         jump=1 1\n\
         0\n\
         fe=main.c\n\
         30 4\n\
         totals: 7\n",
    );
    assert_eq!(functions(&dump), [" execute 7"]);
}

#[test]
fn recursive_calls_have_counts_and_the_cost_of_the_outermost_call() {
    let dump = parsed(
        "fn=main\n\
         0 10\n\
         cfn=walk\n\
         calls=1 0\n\
         0 90\n\
         fn=walk\n\
         0 20\n\
         cfn=walk'2\n\
         calls=1 0\n\
         0 70\n\
         fn=walk'2\n\
         0 30\n\
         cfn=walk'2\n\
         calls=4 0\n\
         0 60\n\
         cfn=step\n\
         calls=5 0\n\
         0 40\n\
         fn=step\n\
         0 40\n\
         totals: 100\n",
    );
    assert_eq!(functions(&dump), [" main 10", " walk 50", " step 40"]);
    assert_eq!(calls(&dump), ["main walk 1 90", "walk walk 5 0", "walk step 5 40"]);
}

#[test]
fn a_call_that_began_before_a_fork_has_no_cost() {
    // -314, as callgrind writes it.
    let dump = parsed("fn=a\n0 5\ncfn=b\ncalls=1 0\n0 18446744073709551302\ntotals: 5\n");
    assert_eq!(calls(&dump), ["a b 1 0"]);
}

#[test]
fn functions_have_the_names_that_they_have_in_profiles() {
    let names = [
        ("_ZN7rocksdb6DBImpl3GetERKNS_11ReadOptionsE", "rocksdb::DBImpl::Get"),
        ("_ZN7rocksdb6DBImpl3GetERKNS_11ReadOptionsE'2", "rocksdb::DBImpl::Get"),
        ("heap_insert.part.0", "heap_insert"),
        ("0x00000000001d70d0", "0x1d70d0"),
        ("0x00000000001d70d0'2", "0x1d70d0"),
        ("(below main)", "(below main)"),
        ("???", "???"),
    ];
    for (written, expected) in names {
        let dump = parsed(&format!("ob=???\nfn=(7) {written}\n0 1\ntotals: 1\n"));
        assert_eq!(functions(&dump), [format!(" {expected} 1")]);
    }
}

#[test]
fn stubs_have_the_name_of_what_they_call() {
    let dump = parsed(
        "ob=server\n\
         fn=main\n\
         cob=???\n\
         cfn=0x0000000004c62e28\n\
         calls=2 0\n\
         0 22\n\
         cob=???\n\
         cfn=0x0000000004d00000\n\
         calls=3 0\n\
         0 33\n\
         ob=???\n\
         fn=0x0000000004c62e28\n\
         0 2\n\
         cob=libc.so.6\n\
         cfn=free\n\
         calls=2 0\n\
         0 20\n\
         fn=0x0000000004d00000\n\
         0 3\n\
         cob=libc.so.6\n\
         cfn=free\n\
         calls=3 0\n\
         0 30\n\
         totals: 5\n",
    );
    assert_eq!(functions(&dump), ["server main 0", " free@plt 5", "libc.so.6 free 0"]);
    assert_eq!(calls(&dump), ["main free@plt 5 55", "free@plt free 5 50"]);
}

#[test]
fn a_file_without_counts_has_no_functions() {
    let dump = parsed("totals: 0\n");
    assert_eq!(dump.graph, WorkGraph::default());
    assert_eq!(dump.events, BTreeMap::from([("Ir".to_owned(), 0)]));
}

#[test]
fn damaged_files_are_errors_with_their_line() {
    let head_lines = HEAD.lines().count();
    for (body, line, what) in [
        ("", 0, "the file lacks its end"),
        ("fn=a\n0 5\n", 2, "the file lacks its end"),
        ("fn=a\n0 5\ntotals: 6\n", 3, "the costs differ from their totals"),
        ("0 5\n", 1, "costs come before the first function"),
        ("fn=(3)\n", 1, "the name (3) is unknown"),
        ("ob=(3)\n", 1, "the name (3) is unknown"),
        ("fn=a\n0 x\n", 2, "`x` is not a number"),
        ("fn=a\n0 -5\n", 2, "`-5` is not a number"),
        ("fn=a\n+ 5\n", 2, "`` is not a number"),
        ("fn=a\n0 5 6\n", 2, "2 costs of 1 events"),
        ("fn=a\ncalls=1 0\n0 5\n", 3, "calls of no function"),
        ("fn=a\ncfn=b\ncalls=x 0\n", 3, "`x` is not a number"),
        ("fn=a\ncfn=b\ncalls=\n", 3, "`` is not a number"),
        ("fn=a\n0 18446744073709551615\n0 1\n", 3, "the costs are too large"),
        ("fn=a\n0 281474976710657\ntotals: 281474976710657\n", 3, "the counts are too large"),
        ("fn=a\ncfn=b\ncalls=281474976710657 0\n0 1\ntotals: 0\n", 5, "the counts are too large"),
        ("fn=a\n0 18446744073709551616\n", 2, "`18446744073709551616` is not a number"),
        ("thread: 4294967296\n", 1, "`4294967296` is not a number"),
        ("events: Ir\n", 1, "a second list of events"),
        ("nothing\n", 1, "`nothing` is not a line of counts"),
        ("key: 5\n", 1, "the key `key` is unknown"),
        ("key=5\n", 1, "the key `key` is unknown"),
    ] {
        let damage = read(&format!("{HEAD}{body}")).unwrap_err();
        assert_eq!(damage.what, what, "{body}");
        assert_eq!(damage.line, head_lines + line, "{body}");
    }
    assert_eq!(read("").unwrap_err().what, "the file lacks its end");
    assert_eq!(read("events: Dr\n").unwrap_err().what, "no event is `Ir`");
    assert_eq!(read("fn=a\n0 5\n").unwrap_err().what, "the names of the events are missing");
}

#[test]
fn a_file_that_is_cut_or_changed_anywhere_does_not_panic() {
    let whole = format!(
        "{HEAD}ob=(1) /usr/bin/server\nfn=(1) a\n0 9\ncob=(2) b\ncfn=(2) c'2\ncalls=2 0\n* 8\n\
         jump=1 3\n0\nfn=(2)\n0 8\ntotals: 17\n"
    );
    assert!(read(&whole).is_ok());
    for at in 0..whole.len() - 1 {
        assert!(read(&whole[..at]).is_err(), "{at}");
        for byte in [b'(', b'=', b':', b'\'', b'\n', b'9', b'-'] {
            let mut changed = whole.clone().into_bytes();
            changed[at] = byte;
            let _ = read(&String::from_utf8(changed).unwrap());
        }
    }
}
