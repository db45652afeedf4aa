/* The interface between Assay and a storage engine with keys and values, version 1.
 *
 * An adapter is a shared library that exports one function, assay_engine, which returns a table
 * of functions. Plans name the library: [build.mine] library = "./libmine.so". Assay loads it into a
 * process of its own, for one database. `assay conform libmine.so` tests it.
 *
 * Rules that hold for all functions:
 *
 *   Results   A function that can fail returns one of ASSAY_OK, ASSAY_NOT_FOUND, ... After any but
 *             the first two, error->text says what failed. Never print, and never call exit.
 *   Bytes     Keys have at least one byte. Keys and values are any bytes, with their sizes. Keys
 *             are ordered as memcmp orders them; of two keys, one of which begins with the other,
 *             the shorter one is first.
 *   Lending   What Assay passes is valid during the call. What the engine returns belongs to the
 *             engine and stays valid until the next call with the same session or database.
 *   Threads   Any number of threads use a database at the same time, each with a session of its
 *             own. A session is used by one thread at a time, and not always by the same one.
 *   Absence   The functions at the end of the table may be null. Assay does not imitate what an
 *             engine does not offer: steps that need it are not applicable.
 */

#ifndef ASSAY_ENGINE_H
#define ASSAY_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. A later one will export another function. */
#define ASSAY_ENGINE_VERSION 1

/* What a function returns. */
enum {
    ASSAY_OK = 0,
    /* There is no such key, or no further entry. Not an error. */
    ASSAY_NOT_FOUND = 1,
    /* A conflict with other sessions: the same call may succeed if it is repeated. Nothing was
     * changed. */
    ASSAY_BUSY = 2,
    /* The device, or the space that the options allow, is full. */
    ASSAY_FULL = 3,
    /* An option is unknown, or its value is refused. */
    ASSAY_BAD_OPTION = 4,
    /* Anything else. */
    ASSAY_FAILED = 5
};

/* Where a function says what failed: UTF-8 with a terminating zero. */
typedef struct assay_error {
    char text[512];
} assay_error;

/* Bytes, which are not terminated. A missing value has a null start; an empty one must not. */
typedef struct assay_bytes {
    const void *start;
    size_t size;
} assay_bytes;

typedef struct assay_entry {
    assay_bytes key;
    assay_bytes value;
} assay_entry;

/* An entry to write, whether or not the key exists; or with a null value.start, a key to remove,
 * whether or not it exists. */
typedef assay_entry assay_change;

/* What a write that has returned survives. */
enum {
    /* Nothing: what was not flushed is lost with the process. */
    ASSAY_SURVIVES_NOTHING = 1,
    /* The process is killed. A crash of the machine may lose it. */
    ASSAY_SURVIVES_PROCESS = 2,
    /* The machine loses power: the write is on the device, by fsync or the like. */
    ASSAY_SURVIVES_MACHINE = 4
};

/* What an engine can do beyond the required functions. */
enum {
    /* write applies all of its changes or none, also when the process is killed. Without this,
     * Assay passes one change at a time. */
    ASSAY_ATOMIC_BATCHES = 1,
    /* seek can go downward. */
    ASSAY_REVERSE_SCANS = 2
};

/* The directions of seek. */
enum { ASSAY_UPWARD = 0, ASSAY_DOWNWARD = 1 };

/* An option of a config, both texts with a terminating zero. */
typedef struct assay_option {
    const char *name;
    const char *value;
} assay_option;

/* A counter of the engine. The unit comes last in the name: "log_bytes", "compaction_seconds". */
typedef struct assay_counter {
    const char *name;
    double value;
    /* 1: it only grows while the database is open. 0: it rises and falls. */
    int is_cumulative;
    /* What it means, if Assay should compute with it; null otherwise. docs/engine.md lists the
     * roles: "fsync_count", "log_bytes", "written_bytes", "stall_seconds", ... */
    const char *role;
} assay_counter;

/* The engine's own types. */
typedef struct assay_database assay_database;
typedef struct assay_session assay_session;

typedef struct assay_engine_table {
    /* sizeof(assay_engine_table), so that later tables may be longer. */
    size_t size;
    /* The name of the engine, and its version: "LMDB", "0.9.31". */
    const char *name;
    const char *version;
    /* The sum of the ASSAY_SURVIVES_... that writes may ask for, and of the features above. */
    uint32_t durabilities;
    uint32_t features;
    /* The largest number of sessions that may write at the same time; 0 if any number may.
     * Sessions that only have to wait for each other count as any number. */
    uint32_t writers_max;

    /* Opens the database in a directory, which exists. If `create` is 1, the directory is empty,
     * and the database is created; otherwise it was created by the same or an older version. */
    int (*open)(const char *directory, int create, const assay_option *options, size_t option_count,
                assay_database **database, assay_error *error);
    /* Closes a database without sessions. All that was written is there when it is opened again,
     * whatever its durability. It releases everything, even if it fails. */
    int (*close)(assay_database *database, assay_error *error);

    /* Opens and closes what one thread needs. */
    int (*open_session)(assay_database *database, assay_session **session, assay_error *error);
    void (*close_session)(assay_session *session);

    /* Applies changes in their order. `durability` is one of the table's: with
     * ASSAY_SURVIVES_MACHINE, the changes are on the device when the function returns. */
    int (*write)(assay_session *session, const assay_change *changes, size_t count,
                 uint32_t durability, assay_error *error);
    /* Finds a key. */
    int (*get)(assay_session *session, assay_bytes key, assay_bytes *value, assay_error *error);
    /* Begins a scan of the current data, and returns its first entry: the first one whose key is
     * not below `key`; downward, the last one whose key is not above `key`. */
    int (*seek)(assay_session *session, assay_bytes key, int direction, assay_entry *entry,
                assay_error *error);
    /* Returns the next entry in the direction of the scan. The scan sees the data as of its seek,
     * or newer data. */
    int (*next)(assay_session *session, assay_entry *entry, assay_error *error);
    /* Ends the scan, and gives back all that the session holds of the data: what was read is no
     * longer used. Assay calls this when a session pauses, too. */
    void (*release)(assay_session *session);

    /* Each of the following may be null. */

    /* Called by a thread that is going to use a session, before it is measured: for what the
     * engine keeps for each thread. */
    void (*enter_thread)(assay_session *session);
    /* Finds several keys at once. Values have a null start before the call, and missing ones
     * after it. */
    int (*get_several)(assay_session *session, const assay_bytes *keys, size_t count,
                       assay_bytes *values, assay_error *error);
    /* Makes all that was written survive a loss of power. */
    int (*sync)(assay_database *database, assay_error *error);
    /* Writes what is only in memory, such as memtables and changed pages, to files. */
    int (*flush)(assay_database *database, assay_error *error);
    /* Waits until no compaction or other work in the background is running or due, but no longer
     * than this. Returns ASSAY_BUSY if there is still some. */
    int (*wait_until_idle)(assay_database *database, uint32_t milliseconds, assay_error *error);
    /* Writes up to `capacity` counters, and returns how many there are. Called about once a
     * second during the load. */
    size_t (*counters)(assay_database *database, assay_counter *counters, size_t capacity);
    /* Writes up to `capacity` settings in effect, and returns how many there are. */
    size_t (*settings)(assay_database *database, assay_option *settings, size_t capacity);
} assay_engine_table;

/* The only function that an adapter exports. The table must never change. */
const assay_engine_table *assay_engine(void);

#ifdef __cplusplus
}
#endif

#endif
