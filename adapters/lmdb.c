/* LMDB for Assay. Build: cc -O2 -shared -fPIC lmdb.c -o liblmdb-assay.so -llmdb
 *
 * Options: map_size (bytes; the largest size of the database, 16 GiB unless given), writemap
 * (true or false). A write is one transaction. Without a wait for the device, it is in the
 * kernel's memory, so that it survives the process. */

#include "assay_engine.h"

#include <errno.h>
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct assay_database {
    MDB_env *env;
    MDB_dbi dbi;
    char map_size[24];
    int writemap;
};

struct assay_session {
    assay_database *database;
    /* The view that reads share until they are released, and the cursor of a scan. */
    MDB_txn *view;
    int is_reset;
    MDB_cursor *cursor;
    MDB_cursor_op step;
};

static int failed(int code, assay_error *error) {
    if (code == MDB_SUCCESS)
        return ASSAY_OK;
    if (code == MDB_NOTFOUND)
        return ASSAY_NOT_FOUND;
    snprintf(error->text, sizeof error->text, "%s", mdb_strerror(code));
    return code == MDB_MAP_FULL || code == ENOSPC ? ASSAY_FULL : ASSAY_FAILED;
}

static int set_options(assay_database *database, const assay_option *options, size_t count,
                       unsigned *flags, assay_error *error) {
    unsigned long long map_size = 16ull << 30;
    for (size_t i = 0; i < count; i++) {
        const char *name = options[i].name, *value = options[i].value;
        char *end;
        if (strcmp(name, "map_size") == 0) {
            map_size = strtoull(value, &end, 10);
            if (*value && !*end && map_size >= 1 << 20)
                continue;
        } else if (strcmp(name, "writemap") == 0) {
            database->writemap = strcmp(value, "true") == 0;
            if (database->writemap || strcmp(value, "false") == 0)
                continue;
        }
        snprintf(error->text, sizeof error->text, "`%s = %s` is not an option", name, value);
        return ASSAY_BAD_OPTION;
    }
    snprintf(database->map_size, sizeof database->map_size, "%llu", map_size);
    *flags = database->writemap ? MDB_WRITEMAP : 0;
    return failed(mdb_env_set_mapsize(database->env, map_size), error);
}

static int open_database(const char *directory, int create, const assay_option *options,
                         size_t count, assay_database **result, assay_error *error) {
    char file[4096];
    snprintf(file, sizeof file, "%s/data.mdb", directory);
    /* LMDB would create it. */
    if (!create && access(file, F_OK) != 0) {
        snprintf(error->text, sizeof error->text, "there is no database in %s", directory);
        return ASSAY_FAILED;
    }
    assay_database *database = calloc(1, sizeof *database);
    if (!database)
        return failed(ENOMEM, error);
    unsigned flags = 0;
    MDB_txn *txn = NULL;

    int outcome = failed(mdb_env_create(&database->env), error);
    if (outcome == ASSAY_OK)
        outcome = set_options(database, options, count, &flags, error);
    if (outcome == ASSAY_OK)
        outcome = failed(mdb_env_set_maxreaders(database->env, 1024), error);
    /* Sessions move between threads, so readers are not tied to threads. Each write says whether
     * it is synchronized. */
    flags |= MDB_NOTLS | MDB_NOSYNC | MDB_NORDAHEAD;
    if (outcome == ASSAY_OK)
        outcome = failed(mdb_env_open(database->env, directory, flags, 0600), error);
    if (outcome == ASSAY_OK)
        outcome = failed(mdb_txn_begin(database->env, NULL, 0, &txn), error);
    if (outcome == ASSAY_OK)
        outcome = failed(mdb_dbi_open(txn, NULL, 0, &database->dbi), error);
    if (outcome == ASSAY_OK)
        outcome = failed(mdb_txn_commit(txn), error);
    else if (txn)
        mdb_txn_abort(txn);
    if (outcome != ASSAY_OK) {
        mdb_env_close(database->env);
        free(database);
        return outcome;
    }
    *result = database;
    return ASSAY_OK;
}

static int sync_database(assay_database *database, assay_error *error) {
    return failed(mdb_env_sync(database->env, 1), error);
}

static int close_database(assay_database *database, assay_error *error) {
    int outcome = sync_database(database, error);
    mdb_env_close(database->env);
    free(database);
    return outcome;
}

static int open_session(assay_database *database, assay_session **result, assay_error *error) {
    assay_session *session = calloc(1, sizeof *session);
    if (!session)
        return failed(ENOMEM, error);
    session->database = database;
    *result = session;
    return ASSAY_OK;
}

static void release(assay_session *session) {
    if (session->view && !session->is_reset) {
        mdb_txn_reset(session->view);
        session->is_reset = 1;
    }
}

static void close_session(assay_session *session) {
    if (session->cursor)
        mdb_cursor_close(session->cursor);
    if (session->view)
        mdb_txn_abort(session->view);
    free(session);
}

/* Begins a view of the current data. */
static int begin_view(assay_session *session, assay_error *error) {
    release(session);
    int code = session->view ? mdb_txn_renew(session->view)
                             : mdb_txn_begin(session->database->env, NULL, MDB_RDONLY,
                                             &session->view);
    session->is_reset = code != MDB_SUCCESS;
    return failed(code, error);
}

static int write_changes(assay_session *session, const assay_change *changes, size_t count,
                         uint32_t durability, assay_error *error) {
    assay_database *database = session->database;
    MDB_txn *txn;
    release(session);
    int code = mdb_txn_begin(database->env, NULL, 0, &txn);
    if (code != MDB_SUCCESS)
        return failed(code, error);
    for (size_t i = 0; i < count && code == MDB_SUCCESS; i++) {
        MDB_val key = {changes[i].key.size, (void *)changes[i].key.start};
        MDB_val value = {changes[i].value.size, (void *)changes[i].value.start};
        if (changes[i].value.start)
            code = mdb_put(txn, database->dbi, &key, &value, 0);
        else if ((code = mdb_del(txn, database->dbi, &key, NULL)) == MDB_NOTFOUND)
            code = MDB_SUCCESS;
    }
    if (code != MDB_SUCCESS) {
        mdb_txn_abort(txn);
        return failed(code, error);
    }
    code = mdb_txn_commit(txn);
    if (code == MDB_SUCCESS && durability == ASSAY_SURVIVES_MACHINE)
        code = mdb_env_sync(database->env, 1);
    return failed(code, error);
}

static int get(assay_session *session, assay_bytes key, assay_bytes *value, assay_error *error) {
    MDB_val wanted = {key.size, (void *)key.start}, found;
    int outcome = begin_view(session, error);
    if (outcome != ASSAY_OK)
        return outcome;
    outcome = failed(mdb_get(session->view, session->database->dbi, &wanted, &found), error);
    if (outcome == ASSAY_OK)
        *value = (assay_bytes){found.mv_data, found.mv_size};
    return outcome;
}

/* All keys are read in one view, so that all values stay. */
static int get_several(assay_session *session, const assay_bytes *keys, size_t count,
                       assay_bytes *values, assay_error *error) {
    int outcome = begin_view(session, error);
    for (size_t i = 0; i < count && outcome == ASSAY_OK; i++) {
        MDB_val wanted = {keys[i].size, (void *)keys[i].start}, found;
        int code = mdb_get(session->view, session->database->dbi, &wanted, &found);
        if (code == MDB_SUCCESS)
            values[i] = (assay_bytes){found.mv_data, found.mv_size};
        else if (code != MDB_NOTFOUND)
            outcome = failed(code, error);
    }
    return outcome;
}

static int read_entry(MDB_val key, MDB_val value, int code, assay_entry *entry,
                      assay_error *error) {
    if (code == MDB_SUCCESS) {
        entry->key = (assay_bytes){key.mv_data, key.mv_size};
        entry->value = (assay_bytes){value.mv_data, value.mv_size};
    }
    return failed(code, error);
}

static int seek(assay_session *session, assay_bytes from, int direction, assay_entry *entry,
                assay_error *error) {
    MDB_val key = {from.size, (void *)from.start}, value;
    int outcome = begin_view(session, error);
    if (outcome != ASSAY_OK)
        return outcome;
    int code = session->cursor
                   ? mdb_cursor_renew(session->view, session->cursor)
                   : mdb_cursor_open(session->view, session->database->dbi, &session->cursor);
    if (code != MDB_SUCCESS)
        return failed(code, error);

    session->step = direction == ASSAY_UPWARD ? MDB_NEXT : MDB_PREV;
    /* LMDB has no empty keys, so all keys are above an empty one. */
    if (from.size == 0 && direction == ASSAY_DOWNWARD)
        return ASSAY_NOT_FOUND;
    MDB_cursor_op first = from.size == 0 ? MDB_FIRST : MDB_SET_RANGE;
    code = mdb_cursor_get(session->cursor, &key, &value, first);
    if (direction == ASSAY_DOWNWARD) {
        /* The cursor is at the first key that is not below: go back unless it is the key. */
        if (code == MDB_NOTFOUND)
            code = mdb_cursor_get(session->cursor, &key, &value, MDB_LAST);
        else if (code == MDB_SUCCESS &&
                 (key.mv_size != from.size || memcmp(key.mv_data, from.start, from.size) != 0))
            code = mdb_cursor_get(session->cursor, &key, &value, MDB_PREV);
    }
    return read_entry(key, value, code, entry, error);
}

static int next(assay_session *session, assay_entry *entry, assay_error *error) {
    MDB_val key, value;
    int code = mdb_cursor_get(session->cursor, &key, &value, session->step);
    return read_entry(key, value, code, entry, error);
}

static size_t counters(assay_database *database, assay_counter *counters, size_t capacity) {
    MDB_envinfo info;
    MDB_stat stat;
    if (mdb_env_info(database->env, &info) || mdb_env_stat(database->env, &stat))
        return 0;
    double used = (double)(info.me_last_pgno + 1) * stat.ms_psize;
    assay_counter all[] = {
        {"transaction_count", (double)info.me_last_txnid, 1, NULL},
        {"database_bytes", used, 0, "database_bytes"},
        {"branch_page_count", (double)stat.ms_branch_pages, 0, NULL},
        {"leaf_page_count", (double)stat.ms_leaf_pages, 0, NULL},
        {"overflow_page_count", (double)stat.ms_overflow_pages, 0, NULL},
        {"tree_depth", (double)stat.ms_depth, 0, NULL},
    };
    size_t count = sizeof all / sizeof *all;
    memcpy(counters, all, sizeof *all * (count < capacity ? count : capacity));
    return count;
}

static size_t settings(assay_database *database, assay_option *settings, size_t capacity) {
    assay_option all[] = {
        {"map_size", database->map_size},
        {"writemap", database->writemap ? "true" : "false"},
    };
    size_t count = sizeof all / sizeof *all;
    memcpy(settings, all, sizeof *all * (count < capacity ? count : capacity));
    return count;
}

const assay_engine_table *assay_engine(void) {
    static const char version[] = {MDB_VERSION_MAJOR + '0', '.', MDB_VERSION_MINOR + '0', '.',
                                   MDB_VERSION_PATCH / 10 + '0', MDB_VERSION_PATCH % 10 + '0', 0};
    static const assay_engine_table table = {
        .size = sizeof table,
        .name = "LMDB",
        .version = version,
        .durabilities = ASSAY_SURVIVES_PROCESS | ASSAY_SURVIVES_MACHINE,
        .features = ASSAY_ATOMIC_BATCHES | ASSAY_REVERSE_SCANS,
        .writers_max = 0,
        .open = open_database,
        .close = close_database,
        .open_session = open_session,
        .close_session = close_session,
        .write = write_changes,
        .get = get,
        .seek = seek,
        .next = next,
        .release = release,
        .get_several = get_several,
        .sync = sync_database,
        .counters = counters,
        .settings = settings,
    };
    return &table;
}
