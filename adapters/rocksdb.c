/* RocksDB for Assay, as an example: Assay also measures RocksDB without an adapter, with its
 * counters and its levels. Build against any version from 6.0 on:
 *     cc -O2 -shared -fPIC rocksdb.c -o librocksdb-assay.so -lrocksdb
 *
 * Options are those of RocksDB, in its notation: write_buffer_size = "64M". Without a log, writes
 * survive nothing; with one that is not synchronized, they are in the kernel's memory. */

#include "assay_engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The functions of rocksdb/c.h that are used. They are the same in all versions. */
extern void *rocksdb_open(void *, const char *, char **);
extern void rocksdb_close(void *), rocksdb_free(void *);
extern void *rocksdb_options_create(void);
extern void rocksdb_options_destroy(void *);
extern void rocksdb_options_set_create_if_missing(void *, unsigned char);
extern void rocksdb_options_set_error_if_exists(void *, unsigned char);
extern void rocksdb_get_options_from_string(void *, const char *, void *, char **);
extern int rocksdb_property_int(void *, const char *, uint64_t *);
extern void *rocksdb_flushoptions_create(void);
extern void rocksdb_flushoptions_destroy(void *);
extern void rocksdb_flush(void *, void *, char **);
extern void *rocksdb_readoptions_create(void), *rocksdb_writeoptions_create(void);
extern void rocksdb_readoptions_destroy(void *), rocksdb_writeoptions_destroy(void *);
extern void rocksdb_writeoptions_set_sync(void *, unsigned char);
extern void rocksdb_writeoptions_disable_WAL(void *, int);
extern void *rocksdb_writebatch_create(void);
extern void rocksdb_writebatch_destroy(void *), rocksdb_writebatch_clear(void *);
extern void rocksdb_writebatch_put(void *, const char *, size_t, const char *, size_t);
extern void rocksdb_writebatch_delete(void *, const char *, size_t);
extern void rocksdb_write(void *, void *, void *, char **);
extern void *rocksdb_get_pinned(void *, void *, const char *, size_t, char **);
extern const char *rocksdb_pinnableslice_value(void *, size_t *);
extern void rocksdb_pinnableslice_destroy(void *);
extern void rocksdb_set_perf_level(int);
extern void *rocksdb_create_iterator(void *, void *);
extern void rocksdb_iter_destroy(void *), rocksdb_iter_next(void *), rocksdb_iter_prev(void *);
extern unsigned char rocksdb_iter_valid(void *);
extern void rocksdb_iter_seek(void *, const char *, size_t);
extern void rocksdb_iter_seek_for_prev(void *, const char *, size_t);
extern const char *rocksdb_iter_key(void *, size_t *), *rocksdb_iter_value(void *, size_t *);
extern void rocksdb_iter_get_error(void *, char **);

struct assay_database {
    void *db, *options;
    void *read, *unlogged, *logged, *synced;
};

struct assay_session {
    assay_database *database;
    void *batch;
    /* What is lent: the last value, or the iterator of a scan. */
    void *value, *iterator;
    int direction;
};

static int failed(char *message, int result, assay_error *error) {
    if (!message)
        return ASSAY_OK;
    snprintf(error->text, sizeof error->text, "%s", message);
    int is_full = strstr(message, "No space left") != NULL;
    rocksdb_free(message);
    return is_full ? ASSAY_FULL : result;
}

static int close_database(assay_database *database, assay_error *error) {
    (void)error;
    if (database->db)
        rocksdb_close(database->db);
    rocksdb_readoptions_destroy(database->read);
    rocksdb_writeoptions_destroy(database->unlogged);
    rocksdb_writeoptions_destroy(database->logged);
    rocksdb_writeoptions_destroy(database->synced);
    rocksdb_options_destroy(database->options);
    free(database);
    return ASSAY_OK;
}

static int open_database(const char *directory, int create, const assay_option *options,
                         size_t count, assay_database **result, assay_error *error) {
    assay_database *database = calloc(1, sizeof *database);
    database->read = rocksdb_readoptions_create();
    database->unlogged = rocksdb_writeoptions_create();
    database->logged = rocksdb_writeoptions_create();
    database->synced = rocksdb_writeoptions_create();
    rocksdb_writeoptions_disable_WAL(database->unlogged, 1);
    rocksdb_writeoptions_set_sync(database->synced, 1);
    database->options = rocksdb_options_create();

    int outcome = ASSAY_OK;
    for (size_t i = 0; i < count && outcome == ASSAY_OK; i++) {
        size_t size = strlen(options[i].name) + strlen(options[i].value) + 2;
        char *message = NULL, *text = malloc(size);
        snprintf(text, size, "%s=%s", options[i].name, options[i].value);
        void *next = rocksdb_options_create();
        rocksdb_get_options_from_string(database->options, text, next, &message);
        rocksdb_options_destroy(database->options);
        database->options = next;
        free(text);
        outcome = failed(message, ASSAY_BAD_OPTION, error);
    }
    if (outcome == ASSAY_OK) {
        char *message = NULL;
        rocksdb_options_set_create_if_missing(database->options, (unsigned char)create);
        rocksdb_options_set_error_if_exists(database->options, (unsigned char)create);
        database->db = rocksdb_open(database->options, directory, &message);
        outcome = failed(message, ASSAY_FAILED, error);
    }
    if (outcome == ASSAY_OK)
        *result = database;
    else
        close_database(database, error);
    return outcome;
}

static int open_session(assay_database *database, assay_session **result, assay_error *error) {
    (void)error;
    assay_session *session = calloc(1, sizeof *session);
    session->database = database;
    session->batch = rocksdb_writebatch_create();
    *result = session;
    return ASSAY_OK;
}

static void release(assay_session *session) {
    if (session->value)
        rocksdb_pinnableslice_destroy(session->value);
    if (session->iterator)
        rocksdb_iter_destroy(session->iterator);
    session->value = session->iterator = NULL;
}

static void close_session(assay_session *session) {
    release(session);
    rocksdb_writebatch_destroy(session->batch);
    free(session);
}

static int write_changes(assay_session *session, const assay_change *changes, size_t count,
                         uint32_t durability, assay_error *error) {
    assay_database *database = session->database;
    char *message = NULL;
    rocksdb_writebatch_clear(session->batch);
    for (size_t i = 0; i < count; i++) {
        assay_bytes key = changes[i].key, value = changes[i].value;
        if (value.start)
            rocksdb_writebatch_put(session->batch, key.start, key.size, value.start, value.size);
        else
            rocksdb_writebatch_delete(session->batch, key.start, key.size);
    }
    void *options = durability == ASSAY_SURVIVES_NOTHING ? database->unlogged : database->logged;
    if (durability == ASSAY_SURVIVES_MACHINE)
        options = database->synced;
    rocksdb_write(database->db, options, session->batch, &message);
    return failed(message, ASSAY_FAILED, error);
}

static int get(assay_session *session, assay_bytes key, assay_bytes *value, assay_error *error) {
    char *message = NULL;
    release(session);
    session->value = rocksdb_get_pinned(session->database->db, session->database->read, key.start,
                                        key.size, &message);
    if (!session->value)
        return message ? failed(message, ASSAY_FAILED, error) : ASSAY_NOT_FOUND;
    value->start = rocksdb_pinnableslice_value(session->value, &value->size);
    return ASSAY_OK;
}

/* Lends the entry at which the iterator is. */
static int read_entry(assay_session *session, assay_entry *entry, assay_error *error) {
    if (!rocksdb_iter_valid(session->iterator)) {
        char *message = NULL;
        rocksdb_iter_get_error(session->iterator, &message);
        return message ? failed(message, ASSAY_FAILED, error) : ASSAY_NOT_FOUND;
    }
    entry->key.start = rocksdb_iter_key(session->iterator, &entry->key.size);
    entry->value.start = rocksdb_iter_value(session->iterator, &entry->value.size);
    return ASSAY_OK;
}

static int seek(assay_session *session, assay_bytes from, int direction, assay_entry *entry,
                assay_error *error) {
    release(session);
    session->direction = direction;
    session->iterator = rocksdb_create_iterator(session->database->db, session->database->read);
    if (direction == ASSAY_UPWARD)
        rocksdb_iter_seek(session->iterator, from.start, from.size);
    else
        rocksdb_iter_seek_for_prev(session->iterator, from.start, from.size);
    return read_entry(session, entry, error);
}

static int next(assay_session *session, assay_entry *entry, assay_error *error) {
    if (session->direction == ASSAY_UPWARD)
        rocksdb_iter_next(session->iterator);
    else
        rocksdb_iter_prev(session->iterator);
    return read_entry(session, entry, error);
}

/* Turns off counters of each thread, which cost a tenth of a read. */
static void enter_thread(assay_session *session) {
    (void)session;
    rocksdb_set_perf_level(1);
}

static int flush(assay_database *database, assay_error *error) {
    char *message = NULL;
    void *options = rocksdb_flushoptions_create();
    rocksdb_flush(database->db, options, &message);
    rocksdb_flushoptions_destroy(options);
    return failed(message, ASSAY_FAILED, error);
}

static size_t counters(assay_database *database, assay_counter *counters, size_t capacity) {
    static const struct { const char *property, *name, *role; } all[] = {
        {"rocksdb.cur-size-all-mem-tables", "memtable_bytes", "memtable_bytes"},
        {"rocksdb.live-sst-files-size", "live_sst_bytes", "tree_bytes"},
        {"rocksdb.estimate-pending-compaction-bytes", "pending_compaction_bytes",
         "pending_compaction_bytes"},
    };
    size_t count = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all && count < capacity; i++) {
        uint64_t value;
        if (rocksdb_property_int(database->db, all[i].property, &value) == 0)
            counters[count++] = (assay_counter){all[i].name, (double)value, 0, all[i].role};
    }
    return count;
}

const assay_engine_table *assay_engine(void) {
    static const assay_engine_table table = {
        .size = sizeof table,
        .name = "RocksDB",
        .version = "(by adapter)",
        .durabilities = ASSAY_SURVIVES_NOTHING | ASSAY_SURVIVES_PROCESS | ASSAY_SURVIVES_MACHINE,
        .features = ASSAY_ATOMIC_BATCHES | ASSAY_REVERSE_SCANS,
        .open = open_database,
        .close = close_database,
        .open_session = open_session,
        .close_session = close_session,
        .write = write_changes,
        .get = get,
        .seek = seek,
        .next = next,
        .release = release,
        .enter_thread = enter_thread,
        .flush = flush,
        .counters = counters,
    };
    return &table;
}
