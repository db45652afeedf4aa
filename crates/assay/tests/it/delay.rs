//! Load ranks far from the server: something delays what passes between them.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc;
use std::time::Duration;

use load::{Clock as _, SystemClock};
use serde_json::Value;

use crate::foreign_server::Foreign;
use crate::place::{POSTGRES, Place, eventually, workload};
use crate::ranks::{self, Hosts, Link};
use crate::show_json::Shown;
use crate::stall::step;
use crate::{not_here, tun};

/// A delay that can change, in nanoseconds.
type Delay = Arc<AtomicU64>;

/// Passes on what is read, each part after the delay, until one end is closed.
fn pass_on(
    mut from: impl Read + Send + 'static,
    mut to: impl Write + Send + 'static,
    delay: &Delay,
) {
    let delay = Arc::clone(delay);
    let (sender, receiver) = mpsc::channel::<(u64, Vec<u8>)>();
    let clock = SystemClock::begin();
    let reader_clock = clock.clone();

    std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            let due = reader_clock.now() + delay.load(Relaxed);
            if sender.send((due, buffer[..length].to_vec())).is_err() {
                break;
            }
        }
    });

    std::thread::spawn(move || {
        for (due, part) in receiver {
            std::thread::sleep(Duration::from_nanos(due.saturating_sub(clock.now())));
            if to.write_all(&part).is_err() {
                break;
            }
        }
    });
}

/// A connection that both directions end.
struct Connection(TcpStream);

impl Drop for Connection {
    fn drop(&mut self) {
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

impl Read for Connection {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Connection {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

/// Accepts connections, and passes on what they say to a port of this host and back. Returns its
/// own port.
fn relay(port: u16, delay: Duration) -> u16 {
    let delay = Arc::new(AtomicU64::new(delay.as_nanos() as u64));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let own_port = listener.local_addr().unwrap().port();

    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else {
                continue;
            };
            let ends = [&client, &server].map(|end| {
                end.set_nodelay(true).unwrap();
                Connection(end.try_clone().unwrap())
            });

            let [client_again, server_again] = ends;
            pass_on(Connection(client), server_again, &delay);
            pass_on(Connection(server), client_again, &delay);
        }
    });
    own_port
}

/// The figures of a run of two load ranks, in microseconds.
struct Delays {
    /// The shortest query.
    query_us: f64,
    /// The shortest operation of any kind.
    shortest_us: f64,
    /// The shortest query that does nothing, of each rank.
    round_trips_us: Vec<f64>,
}

/// Runs a plan with two load ranks on a server.
fn measure(url: &str) -> Delays {
    let place = Place::new();
    let steps = "steps = [\"l.i0\", \"l.x\", \"qr100\"]";
    let workload = workload(600, 200, "1s", steps);
    let plan = format!("clients = [2]\n{workload}[build.theirs]\nurl = \"{url}\"\n");

    ranks::run(&place, &plan, 2).expect_code(0);
    let run = place.only_run();
    let shown = Shown::read(&place, &run);
    shown.assert_all_valid();

    let histograms = step(&run, "qr100").histograms().unwrap();
    let shortest = |of: &str| {
        let kinds = histograms.iter().filter(|(kind, _)| kind.ends_with(of));
        let shortest = kinds.map(|(_, histogram)| histogram.min());
        shortest.min().unwrap() as f64 / 1e3
    };

    let ranks = shown.row("theirs.default", "qr100")["ranks"].as_array().unwrap();
    Delays {
        query_us: shortest("query.service"),
        shortest_us: shortest(".service"),
        round_trips_us: ranks.iter().map(|rank| number(rank, "round_trip_us")).collect(),
    }
}

fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("no {key} in {row}"))
}

#[test]
fn a_delay_on_the_way_to_the_server_is_in_every_operation_once() {
    if !ranks::mpi_is_here_or_test_is_skipped() {
        return;
    }

    let server = Foreign::start();
    let near = server.url("right");
    let port = server.port();
    // There and back.
    let far_port = relay(port, Duration::from_millis(1));
    let far = near.replace(&format!(":{port}/"), &format!(":{far_port}/"));

    let (near, far) = (measure(&near), measure(&far));
    assert!(near.query_us < 2000.0, "{} us", near.query_us);
    assert!(far.shortest_us >= 2000.0, "{} us", far.shortest_us);
    let growth_us = far.query_us - near.query_us;
    assert!(growth_us < 4000.0, "{} us", growth_us);

    for (near, far) in near.round_trips_us.iter().zip(&far.round_trips_us) {
        assert!(*far >= 2000.0 && near < far, "{near} us and {far} us");
    }
}

/// Connects two hosts. Returns the delays of what the first one sends, and of what the other one
/// sends.
fn wire(hosts: &Hosts) -> std::io::Result<[Delay; 2]> {
    let delays = [(); 2].map(|()| Delay::default());
    let first = tun::open(&hosts.names[0], "eth0")?;
    let other = tun::open(&hosts.names[1], "eth0")?;
    pass_on(first.try_clone()?, other.try_clone()?, &delays[0]);
    pass_on(other, first, &delays[1]);
    Ok(delays)
}

#[test]
#[ignore = "it needs network namespaces"]
fn the_true_offset_of_a_clock_is_within_the_uncertainty_whichever_way_is_slow() {
    if !ranks::mpi_is_here_or_test_is_skipped() {
        return;
    }
    let Some(hosts) = Hosts::make_or_test_is_skipped(2, Link::Tun) else {
        return;
    };
    let [there, back] = match wire(&hosts) {
        Ok(delays) => delays,
        Err(error) => return not_here("tun", &format!("`/dev/net/tun`: {error}")),
    };

    let set = |there_ms: u64, back_ms: u64| {
        there.store(there_ms * 1_000_000, Relaxed);
        back.store(back_ms * 1_000_000, Relaxed);
    };

    let place = Place::new();
    let steps = "steps = [\"l.i0\", \"l.x\", \"qr100\", \"qp100\"]";
    let plan = format!("clients = [1]\n{}{POSTGRES}", workload(600, 200, "3s", steps));
    place.write("plan.toml", &plan);
    let args = ["run", "plan.toml", "--results", "results", "--data", "data"];

    set(9, 1);
    let mut running = hosts.spawn(&place, &args);
    place.wait_for_step(&mut running, "03-qr100");
    set(1, 9);
    running.wait().expect_code(0);
    eventually("all processes have ended", || place.processes().is_empty());
    place.assert_nothing_is_left();

    let shown = Shown::read(&place, &place.only_run());
    shown.assert_all_valid();

    // Each query waits 10 ms for messages on their way.
    let metrics = &shown.row("pg.base", "qr100")["metrics"];
    assert!(number(metrics, "op_handover_us") >= 5000.0, "{metrics}");

    // The clocks of both ranks are one machine's: the offset is the same all the time.
    let (mut lowest, mut highest) = (f64::MAX, f64::MIN);
    let (mut at_least, mut at_most) = (f64::MIN, f64::MAX);
    for row in shown.rows() {
        let rank = &row["ranks"][0];
        assert!(number(rank, "round_trip_us") >= 9990.0, "{rank}");
        let uncertainty = number(rank, "clock_uncertainty_us");
        assert!(uncertainty >= 4995.0, "{rank}");
        let before = number(rank, "clock_offset_us");
        for offset in [before, before + number(rank, "clock_drift_us")] {
            (lowest, highest) = (offset.min(lowest), offset.max(highest));
            at_least = at_least.max(offset - uncertainty);
            at_most = at_most.min(offset + uncertainty);
        }
    }

    assert!(highest - lowest > 4000.0, "the way did not change: {lowest} to {highest} us");
    assert!(at_least <= at_most, "no offset is possible: {at_least} to {at_most} us");
}
