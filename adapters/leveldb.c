/* LevelDB for Assay. Build: cc -O2 -shared -fPIC leveldb.c -o libleveldb-assay.so -lleveldb
 *
 * Options, with the names of LevelDB: write_buffer_size, block_size, max_open_files,
 * max_file_size (bytes), cache_size (bytes of the block cache), compression (true for Snappy),
 * bloom_bits (bits for each key; 0 for no filter). A write without a wait for the device is in the
 * kernel's memory when it returns, so that it survives the process. */

#include "assay_engine.h"

#include <leveldb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WRITE_BUFFER, BLOCK, OPEN_FILES, FILE_SIZE, CACHE, COMPRESSION, BLOOM, OPTION_COUNT };

static const char *const names[OPTION_COUNT] = {
    "write_buffer_size", "block_size", "max_open_files", "max_file_size",
    "cache_size",        "compression", "bloom_bits",
};

struct assay_database {
    leveldb_t *db;
    leveldb_options_t *options;
    leveldb_cache_t *cache;
    leveldb_filterpolicy_t *filter;
    leveldb_readoptions_t *read;
    leveldb_writeoptions_t *unsynced, *synced;
    char values[OPTION_COUNT][24];
};

struct assay_session {
    assay_database *database;
    leveldb_writebatch_t *batch;
    /* What is lent: the last value, or the iterator of a scan. */
    char *value;
    leveldb_iterator_t *iterator;
    int direction;
};

static int failed(char *message, assay_error *error) {
    if (!message)
        return ASSAY_OK;
    snprintf(error->text, sizeof error->text, "%s", message);
    int is_full = strstr(message, "No space left") != NULL;
    leveldb_free(message);
    return is_full ? ASSAY_FULL : ASSAY_FAILED;
}

static int read_options(assay_database *database, const assay_option *options, size_t count,
                        assay_error *error) {
    const char *const defaults[OPTION_COUNT] = {"4194304", "4096", "1000", "2097152",
                                                "8388608", "true", "0"};
    for (int i = 0; i < OPTION_COUNT; i++)
        strcpy(database->values[i], defaults[i]);
    for (size_t i = 0; i < count; i++) {
        int at = 0;
        while (at < OPTION_COUNT && strcmp(names[at], options[i].name) != 0)
            at++;
        const char *value = options[i].value;
        char *end = "no number";
        if (at < OPTION_COUNT && at != COMPRESSION && strlen(value) < 20)
            strtoull(value, &end, 10);
        int is_flag = strcmp(value, "true") == 0 || strcmp(value, "false") == 0;
        if (at == OPTION_COUNT || !*value || (at == COMPRESSION ? !is_flag : *end)) {
            snprintf(error->text, sizeof error->text, "`%s = %s` is not an option",
                     options[i].name, value);
            return ASSAY_BAD_OPTION;
        }
        strcpy(database->values[at], value);
    }
    return ASSAY_OK;
}

static void destroy(assay_database *database) {
    if (database->db)
        leveldb_close(database->db);
    leveldb_readoptions_destroy(database->read);
    leveldb_writeoptions_destroy(database->unsynced);
    leveldb_writeoptions_destroy(database->synced);
    leveldb_options_destroy(database->options);
    if (database->filter)
        leveldb_filterpolicy_destroy(database->filter);
    if (database->cache)
        leveldb_cache_destroy(database->cache);
    free(database);
}

static int open_database(const char *directory, int create, const assay_option *options,
                         size_t count, assay_database **result, assay_error *error) {
    assay_database *database = calloc(1, sizeof *database);
    leveldb_options_t *set = database->options = leveldb_options_create();
    database->read = leveldb_readoptions_create();
    database->unsynced = leveldb_writeoptions_create();
    database->synced = leveldb_writeoptions_create();
    leveldb_writeoptions_set_sync(database->synced, 1);
    int outcome = read_options(database, options, count, error);
    if (outcome != ASSAY_OK) {
        destroy(database);
        return outcome;
    }

    unsigned long long number[OPTION_COUNT];
    for (int i = 0; i < OPTION_COUNT; i++)
        number[i] = strtoull(database->values[i], NULL, 10);
    database->cache = leveldb_cache_create_lru(number[CACHE]);
    leveldb_options_set_cache(set, database->cache);
    if (number[BLOOM]) {
        database->filter = leveldb_filterpolicy_create_bloom((int)number[BLOOM]);
        leveldb_options_set_filter_policy(set, database->filter);
    }
    leveldb_options_set_write_buffer_size(set, number[WRITE_BUFFER]);
    leveldb_options_set_block_size(set, number[BLOCK]);
    leveldb_options_set_max_open_files(set, (int)number[OPEN_FILES]);
    leveldb_options_set_max_file_size(set, number[FILE_SIZE]);
    int compresses = strcmp(database->values[COMPRESSION], "true") == 0;
    leveldb_options_set_compression(set, compresses ? leveldb_snappy_compression
                                                    : leveldb_no_compression);
    leveldb_options_set_create_if_missing(set, (unsigned char)create);
    leveldb_options_set_error_if_exists(set, (unsigned char)create);

    char *message = NULL;
    database->db = leveldb_open(set, directory, &message);
    if (!database->db) {
        outcome = failed(message, error);
        destroy(database);
        return outcome;
    }
    *result = database;
    return ASSAY_OK;
}

static int close_database(assay_database *database, assay_error *error) {
    (void)error;
    destroy(database);
    return ASSAY_OK;
}

static int open_session(assay_database *database, assay_session **result, assay_error *error) {
    (void)error;
    assay_session *session = calloc(1, sizeof *session);
    session->database = database;
    session->batch = leveldb_writebatch_create();
    *result = session;
    return ASSAY_OK;
}

static void release(assay_session *session) {
    if (session->value)
        leveldb_free(session->value);
    if (session->iterator)
        leveldb_iter_destroy(session->iterator);
    session->value = NULL;
    session->iterator = NULL;
}

static void close_session(assay_session *session) {
    release(session);
    leveldb_writebatch_destroy(session->batch);
    free(session);
}

static int write_changes(assay_session *session, const assay_change *changes, size_t count,
                         uint32_t durability, assay_error *error) {
    assay_database *database = session->database;
    char *message = NULL;
    leveldb_writebatch_clear(session->batch);
    for (size_t i = 0; i < count; i++) {
        assay_bytes key = changes[i].key, value = changes[i].value;
        if (value.start)
            leveldb_writebatch_put(session->batch, key.start, key.size, value.start, value.size);
        else
            leveldb_writebatch_delete(session->batch, key.start, key.size);
    }
    int waits = durability == ASSAY_SURVIVES_MACHINE;
    leveldb_write(database->db, waits ? database->synced : database->unsynced, session->batch,
                  &message);
    return failed(message, error);
}

static int get(assay_session *session, assay_bytes key, assay_bytes *value, assay_error *error) {
    char *message = NULL;
    release(session);
    session->value = leveldb_get(session->database->db, session->database->read, key.start,
                                 key.size, &value->size, &message);
    value->start = session->value;
    if (message)
        return failed(message, error);
    return session->value ? ASSAY_OK : ASSAY_NOT_FOUND;
}

/* Lends the entry at which the iterator is. */
static int read_entry(assay_session *session, assay_entry *entry, assay_error *error) {
    if (!leveldb_iter_valid(session->iterator)) {
        char *message = NULL;
        leveldb_iter_get_error(session->iterator, &message);
        return message ? failed(message, error) : ASSAY_NOT_FOUND;
    }
    entry->key.start = leveldb_iter_key(session->iterator, &entry->key.size);
    entry->value.start = leveldb_iter_value(session->iterator, &entry->value.size);
    return ASSAY_OK;
}

static int seek(assay_session *session, assay_bytes from, int direction, assay_entry *entry,
                assay_error *error) {
    release(session);
    session->direction = direction;
    session->iterator = leveldb_create_iterator(session->database->db, session->database->read);
    leveldb_iter_seek(session->iterator, from.start, from.size);
    if (direction == ASSAY_DOWNWARD) {
        /* The iterator is at the first key that is not below: go back unless it is the key. */
        if (!leveldb_iter_valid(session->iterator)) {
            leveldb_iter_seek_to_last(session->iterator);
        } else {
            size_t size;
            const char *key = leveldb_iter_key(session->iterator, &size);
            if (size != from.size || memcmp(key, from.start, size) != 0)
                leveldb_iter_prev(session->iterator);
        }
    }
    return read_entry(session, entry, error);
}

static int next(assay_session *session, assay_entry *entry, assay_error *error) {
    if (session->direction == ASSAY_UPWARD)
        leveldb_iter_next(session->iterator);
    else
        leveldb_iter_prev(session->iterator);
    return read_entry(session, entry, error);
}

/* Waits until all levels stay as they are: LevelDB does not tell whether it compacts. */
static int wait_until_idle(assay_database *database, uint32_t milliseconds, assay_error *error) {
    (void)error;
    struct timespec pause = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    char *before = leveldb_property_value(database->db, "leveldb.stats");
    nanosleep(&pause, NULL);
    char *after = leveldb_property_value(database->db, "leveldb.stats");
    int is_idle = before && after && strcmp(before, after) == 0;
    leveldb_free(before);
    leveldb_free(after);
    return is_idle ? ASSAY_OK : ASSAY_BUSY;
}

static size_t settings(assay_database *database, assay_option *settings, size_t capacity) {
    for (size_t i = 0; i < OPTION_COUNT && i < capacity; i++)
        settings[i] = (assay_option){names[i], database->values[i]};
    return OPTION_COUNT;
}

const assay_engine_table *assay_engine(void) {
    static char version[24];
    snprintf(version, sizeof version, "%d.%d", leveldb_major_version(), leveldb_minor_version());
    static const assay_engine_table table = {
        .size = sizeof table,
        .name = "LevelDB",
        .version = version,
        .durabilities = ASSAY_SURVIVES_PROCESS | ASSAY_SURVIVES_MACHINE,
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
        .wait_until_idle = wait_until_idle,
        .settings = settings,
    };
    return &table;
}
