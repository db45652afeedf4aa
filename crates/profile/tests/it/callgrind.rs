//! Counts of a real program under a real valgrind.

use profile::callgrind::{Counted, Counter, Options, WorkError, split};
use words::WorkGraph;

use crate::skipped::say_skipped;
use crate::subject::{GO_ON, Subject, call_count, callgrind_or_skip, inclusive, kill, own};

/// The user of tests that need another one.
const OTHER_USER: u32 = 7001;

/// Returns the counts of the thread that reads commands.
fn main_thread(all: &[Counted], process: u32) -> &Counted {
    all.iter().find(|counted| counted.thread == Some(process)).unwrap()
}

#[test]
fn calls_are_counted_exactly_between_begin_and_end() {
    let Some(callgrind) = callgrind_or_skip() else {
        return;
    };
    assert!(callgrind.version().starts_with("callgrind 3."), "{}", callgrind.version());
    let mut subject = Subject::start(&callgrind);
    let id = subject.id();

    let first = subject.count(&["repeat 1000"]);
    // Not counted.
    subject.ask("repeat 77");
    let second = subject.count(&["repeat 1000", "repeat 500"]);

    for (all, leaves, repeats) in [(&first, 1000, 1), (&second, 1500, 2)] {
        assert_eq!(all.len(), 1, "{all:?}");
        let counted = main_thread(all, id);
        assert_eq!(call_count(counted, "leaf"), leaves);
        assert_eq!(call_count(counted, "repeat"), repeats);
        assert_eq!(inclusive(counted, "leaf"), own(counted, "leaf"));
        assert_eq!(inclusive(counted, "repeat"), own(counted, "repeat") + own(counted, "leaf"));
        assert_eq!(counted.events["Ir"], counted.graph.total());
        assert_eq!(counted.events.len(), 1);
    }
    let per_leaf = |all: &[Counted]| {
        let counted = main_thread(all, id);
        own(counted, "leaf") / call_count(counted, "leaf")
    };
    assert_eq!(per_leaf(&first), per_leaf(&second));
}

#[test]
fn two_runs_execute_equally_many_instructions() {
    let Some(callgrind) = callgrind_or_skip() else {
        return;
    };
    let count = || {
        let mut subject = Subject::start(&callgrind);
        let all = subject.count(&["repeat 1000", "thread 50", "descend 5", "fork 20"]);
        all.into_iter().map(|counted| counted.events).collect::<Vec<_>>()
    };
    let first = count();
    assert_eq!(first.len(), 3, "{first:?}");
    assert_eq!(first, count());
}

#[test]
fn threads_are_counted_apart_under_the_ids_of_the_kernel() {
    let Some(callgrind) = callgrind_or_skip() else {
        return;
    };
    let mut subject = Subject::start(&callgrind);
    let id = subject.id();
    let all = subject.count(&["repeat 30", "thread 50"]);

    assert_eq!(all.len(), 2);
    let other = all.iter().find(|counted| counted.thread != Some(id)).unwrap();
    assert_eq!(call_count(main_thread(&all, id), "leaf"), 30);
    assert_eq!(call_count(other, "leaf"), 50);
    assert_eq!(call_count(other, "work_of_thread"), 1);

    let thread = other.thread.unwrap();
    assert!(fs_err::exists(format!("/proc/{id}/task/{thread}")).unwrap());
}

#[test]
fn a_thread_that_ended_has_no_id() {
    let Some(callgrind) = callgrind_or_skip() else {
        return;
    };
    let mut subject = Subject::start(&callgrind);
    let all = subject.count(&["thread 50", "join"]);
    let ended = all.iter().find(|counted| counted.thread.is_none()).unwrap();
    assert_eq!(call_count(ended, "leaf"), 50);
}

#[test]
fn costs_of_recursive_calls_are_counted_once() {
    let Some(callgrind) = callgrind_or_skip() else {
        return;
    };
    let mut subject = Subject::start(&callgrind);
    let id = subject.id();
    let all = subject.count(&["descend 10", "ping 20"]);
    let counted = main_thread(&all, id);

    assert_eq!(call_count(counted, "descend"), 10);
    assert_eq!(call_count(counted, "ping"), 10);
    assert_eq!(call_count(counted, "pong"), 10);
    assert_eq!(call_count(counted, "leaf"), 30);

    let leaf = own(counted, "leaf") / 30;
    assert_eq!(inclusive(counted, "descend"), own(counted, "descend") + 10 * leaf);
    let both = own(counted, "ping") + own(counted, "pong") + 20 * leaf;
    assert_eq!(inclusive(counted, "ping"), both);
    // The first `ping` itself is not below `pong`.
    let first = both - inclusive(counted, "pong");
    assert_eq!(first, own(counted, "ping") / 10 + leaf);
}

#[test]
fn work_is_split_between_an_engine_and_its_client() {
    let Some(callgrind) = callgrind_or_skip() else {
        return;
    };
    let mut subject = Subject::start(&callgrind);
    let id = subject.id();
    let all = subject.count(&["repeat 100", "engine 300"]);
    let counted = main_thread(&all, id);

    let split = split(&counted.graph, |_, callee| callee.object == "libengine.so");
    let part = |graph: &WorkGraph| Counted { graph: graph.clone(), ..counted.clone() };
    let (engine, client) = (part(&split.engine), part(&split.client));

    // The engine calls back `leaf`.
    let leaf = own(counted, "leaf") / 400;
    assert_eq!(own(&engine, "leaf"), 300 * leaf);
    assert_eq!(own(&client, "leaf"), 100 * leaf);
    assert_eq!(engine.graph.total(), own(counted, "db_work") + 300 * leaf);
    assert_eq!(engine.graph.total() + client.graph.total(), counted.graph.total());
    assert_eq!((call_count(&engine, "leaf"), call_count(&client, "leaf")), (300, 100));
}

#[test]
fn a_child_has_its_own_work_and_not_that_of_its_parent() {
    let Some(callgrind) = callgrind_or_skip() else {
        return;
    };
    let mut subject = Subject::start(&callgrind);
    let id = subject.id();
    let all = subject.count(&["repeat 1000", "thread 50", "fork 20", "repeat 7", "exec"]);

    let parent = main_thread(&all, id);
    assert_eq!(call_count(parent, "leaf"), 1007);
    assert_eq!(call_count(parent, "work_of_child"), 0);
    // The one that started another program has been replaced by that, which counts nothing.
    let children: Vec<&Counted> = all.iter().filter(|counted| counted.process != id).collect();
    assert_eq!(children.len(), 1, "{children:?}");
    assert_eq!(call_count(children[0], "leaf"), 20);
    assert_eq!(call_count(children[0], "repeat"), 1);
    assert_eq!(children[0].thread, None);
}

#[test]
fn counting_ends_in_children_that_still_run() {
    let Some(callgrind) = callgrind_or_skip() else {
        return;
    };
    let mut subject = Subject::start(&callgrind);
    let before = subject.start_child(5);

    subject.begin().unwrap();
    let child = subject.start_child(20);
    let all = subject.end().unwrap();
    let counted = main_thread(&all, child);
    assert_eq!((counted.process, call_count(counted, "leaf")), (child, 20));
    // It was not asked to count, and did nothing.
    assert!(all.iter().all(|counted| counted.process != before));

    // Nothing is left to count in it.
    subject.begin().unwrap();
    let all = subject.end().unwrap();
    assert!(all.iter().all(|counted| counted.process != child), "{all:?}");
}

#[test]
fn a_busy_process_answers_like_one_that_waits() {
    let Some(callgrind) = callgrind_or_skip() else {
        return;
    };
    let mut subject = Subject::start(&callgrind);
    let id = subject.id();

    assert_eq!(subject.ask("spin"), "ticks");
    subject.begin().unwrap();
    assert_eq!(subject.ask("tick"), "ticks");
    let all = subject.end().unwrap();
    assert_eq!(subject.ask("stop"), "done");
    assert_eq!(call_count(main_thread(&all, id), "puts"), 1);
}

#[test]
fn caches_and_branches_are_simulated_if_asked() {
    let Some(callgrind) = callgrind_or_skip() else {
        return;
    };
    let mut subject = Subject::start_with(
        &callgrind,
        Options { simulate_cache: true, ..Options::default() },
        None,
    );
    let id = subject.id();
    let all = subject.count(&["repeat 1000"]);
    let counted = main_thread(&all, id);
    for event in ["Ir", "Dr", "Dw", "D1mr", "ILmr", "Bc", "Bcm"] {
        assert!(counted.events[event] > 0, "{event}: {:?}", counted.events);
    }
    assert_eq!(counted.events["Ir"], counted.graph.total());
}

#[test]
fn nothing_is_left_but_logs_and_pipes() {
    let Some(callgrind) = callgrind_or_skip() else {
        return;
    };
    let mut subject = Subject::start(&callgrind);
    let id = subject.id();
    subject.count(&["repeat 10", "thread 5", "fork 5"]);

    let files = subject.files();
    let pipes: Vec<&String> = files.iter().filter(|name| name.starts_with("vgdb-")).collect();
    assert_eq!(pipes.len(), 3, "{files:?}");
    assert!(pipes.iter().all(|name| name.contains(&id.to_string())), "{files:?}");
    assert!(files.iter().all(|name| name.starts_with("vgdb-") || name.starts_with("log.")));
}

#[test]
fn a_process_that_was_gone_before_is_skipped_and_one_that_was_killed_is_lost() {
    let Some(callgrind) = callgrind_or_skip() else {
        return;
    };
    let mut subject = Subject::start(&callgrind);
    let id = subject.id();
    let [early, late] = [subject.start_child(1), subject.start_child(1)];

    kill(early);
    subject.counter.begin(&[id, early, late], &GO_ON).unwrap();
    assert_eq!(subject.ask("repeat 10"), "done");
    let all = subject.end().unwrap();
    assert_eq!(call_count(main_thread(&all, id), "leaf"), 10);

    subject.counter.begin(&[id, late], &GO_ON).unwrap();
    kill(late);
    let error = subject.end().unwrap_err();
    assert!(matches!(error, WorkError::Lost { process, .. } if process == late), "{error}");
}

#[test]
fn a_process_of_another_user_is_counted_as_that_user() {
    let Some(callgrind) = callgrind_or_skip() else {
        return;
    };
    if !rustix::process::geteuid().is_root() {
        return say_skipped("only root can start a process as another user");
    }
    let mut subject = Subject::start_with(&callgrind, Options::default(), Some(OTHER_USER));
    let id = subject.id();
    let all = subject.count(&["repeat 10"]);
    assert_eq!(call_count(main_thread(&all, id), "leaf"), 10);

    // `vgdb` of another user or group would stop the process and wait forever.
    let counts = subject.counts();
    for user in [None, Some((OTHER_USER, 0)), Some((0, OTHER_USER))] {
        let error = Counter::new(&callgrind, &counts, user).begin(&[id], &GO_ON).unwrap_err();
        assert!(matches!(error, WorkError::OtherUser { .. }), "{error}");
        assert!(error.to_string().contains("runs as user 7001 and group 7001"), "{error}");
    }
    assert_eq!(subject.ask("repeat 10"), "done");
}

#[test]
fn a_process_that_does_not_run_under_callgrind_is_an_error() {
    let Some(callgrind) = callgrind_or_skip() else {
        return;
    };
    let mut subject = Subject::start(&callgrind);
    let own = std::process::id();
    let error = subject.counter.begin(&[own], &GO_ON).unwrap_err();
    assert!(matches!(error, WorkError::NotUnderCallgrind { process, .. } if process == own));
}
