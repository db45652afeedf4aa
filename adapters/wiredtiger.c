/* WiredTiger for Assay: Debian's 3.2.1, or a release that was built from source as README.md says.
 * Build: cc -O2 -shared -fPIC wiredtiger.c -o libwiredtiger-assay.so -lwiredtiger
 *
 * Options: config (settings of wiredtiger_open, such as "cache_size=4GB"; the default is 1GB),
 * table_config (settings of WT_SESSION::create), log (true or false).
 *
 * With the durability process, a commit writes its log record to the kernel. With machine, it then
 * waits for the device. With none, the record may stay in the memory of the process. Without a log,
 * none is the only durability. */

#include "assay_engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wiredtiger.h>

static const char table_uri[] = "table:entries";

struct assay_database {
    WT_CONNECTION *connection;
    int logs;
};

struct assay_session {
    assay_database *database;
    WT_SESSION *session;
    WT_CURSOR *cursor;
    int direction;
};

/* What WiredTiger said last in this thread. Without handlers, it would print. */
static _Thread_local char message[sizeof(((assay_error *)0)->text)];

static int keep_error(WT_EVENT_HANDLER *handler, WT_SESSION *session, int code, const char *text) {
    (void)handler, (void)session, (void)code;
    snprintf(message, sizeof message, "%s", text);
    return 0;
}

static int ignore(WT_EVENT_HANDLER *handler, WT_SESSION *session, const char *text) {
    (void)handler, (void)session, (void)text;
    return 0;
}

static WT_EVENT_HANDLER handler = {.handle_error = keep_error, .handle_message = ignore};

static int failed(int code, assay_error *error) {
    if (code == 0)
        return ASSAY_OK;
    if (code == WT_NOTFOUND)
        return ASSAY_NOT_FOUND;
    const char *text = message[0] ? message : wiredtiger_strerror(code);
    snprintf(error->text, sizeof error->text, "%s", text);
    message[0] = 0;
    return code == WT_ROLLBACK ? ASSAY_BUSY : code == ENOSPC ? ASSAY_FULL : ASSAY_FAILED;
}

static int open_database(const char *directory, int create, const assay_option *options,
                         size_t count, assay_database **result, assay_error *error) {
    enum { CONFIG, TABLE_CONFIG, LOG, OPTION_COUNT };
    static const char *const names[] = {"config", "table_config", "log"};
    const char *values[] = {"", "", "true"};
    for (size_t i = 0; i < count; i++) {
        const char *name = options[i].name, *value = options[i].value;
        int at = 0;
        while (at < OPTION_COUNT && strcmp(names[at], name) != 0)
            at++;
        int is_flag = strcmp(value, "true") == 0 || strcmp(value, "false") == 0;
        if (at == OPTION_COUNT || (at == LOG && !is_flag) || strlen(value) > 3500) {
            snprintf(error->text, sizeof error->text, "`%s = %s` is not an option", name, value);
            return ASSAY_BAD_OPTION;
        }
        values[at] = value;
    }

    /* Later settings replace earlier ones. The durabilities rely on the last ones. */
    char config[4096], table_config[4096];
    snprintf(config, sizeof config,
             "cache_size=1GB,session_max=1024,statistics=(fast),checkpoint=(wait=60),%s,%s"
             "log=(enabled=%s),transaction_sync=(enabled=true,method=none)",
             values[CONFIG], create ? "create,exclusive," : "", values[LOG]);
    snprintf(table_config, sizeof table_config, "key_format=u,value_format=u,%s",
             values[TABLE_CONFIG]);

    assay_database *database = calloc(1, sizeof *database);
    if (!database)
        return failed(ENOMEM, error);
    database->logs = strcmp(values[LOG], "true") == 0;
    WT_SESSION *session;
    int code = wiredtiger_open(directory, &handler, config, &database->connection);
    if (code == 0)
        code = database->connection->open_session(database->connection, NULL, NULL, &session);
    if (code == 0) {
        code = session->create(session, table_uri, table_config);
        session->close(session, NULL);
    }
    if (code == 0) {
        *result = database;
        return ASSAY_OK;
    }

    int outcome = failed(code, error);
    if (database->connection)
        database->connection->close(database->connection, NULL);
    free(database);
    return code == EINVAL ? ASSAY_BAD_OPTION : outcome;
}

static int close_database(assay_database *database, assay_error *error) {
    int code = database->connection->close(database->connection, NULL);
    free(database);
    return failed(code, error);
}

static int open_session(assay_database *database, assay_session **result, assay_error *error) {
    assay_session *session = calloc(1, sizeof *session);
    if (!session)
        return failed(ENOMEM, error);
    session->database = database;
    WT_CONNECTION *connection = database->connection;
    int code = connection->open_session(connection, NULL, NULL, &session->session);
    if (code == 0)
        code = session->session->open_cursor(session->session, table_uri, NULL, NULL,
                                             &session->cursor);
    if (code != 0) {
        if (session->session)
            session->session->close(session->session, NULL);
        free(session);
        return failed(code, error);
    }
    *result = session;
    return ASSAY_OK;
}

static void close_session(assay_session *session) {
    /* This closes its cursor, too. */
    session->session->close(session->session, NULL);
    free(session);
}

static void release(assay_session *session) {
    session->cursor->reset(session->cursor);
}

static int apply(WT_CURSOR *cursor, const assay_change *change) {
    WT_ITEM key = {.data = change->key.start, .size = change->key.size};
    WT_ITEM value = {.data = change->value.start, .size = change->value.size};
    cursor->set_key(cursor, &key);
    if (change->value.start) {
        cursor->set_value(cursor, &value);
        return cursor->insert(cursor);
    }
    int code = cursor->remove(cursor);
    return code == WT_NOTFOUND ? 0 : code;
}

static int write_changes(assay_session *session, const assay_change *changes, size_t count,
                         uint32_t durability, assay_error *error) {
    WT_SESSION *wt = session->session;
    int logs = session->database->logs;
    if (!logs && durability != ASSAY_SURVIVES_NOTHING) {
        snprintf(error->text, sizeof error->text, "without a log, no write survives the process");
        return ASSAY_FAILED;
    }

    /* A single change is a transaction by itself, but only others can leave their log unwritten. */
    int defers_log = logs && durability == ASSAY_SURVIVES_NOTHING;
    int is_explicit = count > 1 || defers_log;
    release(session);
    int code = is_explicit ? wt->begin_transaction(wt, NULL) : 0;
    if (code != 0)
        return failed(code, error);
    for (size_t i = 0; i < count && code == 0; i++)
        code = apply(session->cursor, &changes[i]);
    if (is_explicit && code == 0)
        code = wt->commit_transaction(wt, defers_log ? "sync=off" : NULL);
    else if (is_explicit)
        wt->rollback_transaction(wt, NULL);
    /* Without a setting, this would not wait, although `on` is called the default. */
    if (code == 0 && durability == ASSAY_SURVIVES_MACHINE)
        code = wt->log_flush(wt, "sync=on");
    return failed(code, error);
}

static int get(assay_session *session, assay_bytes key, assay_bytes *value, assay_error *error) {
    WT_CURSOR *cursor = session->cursor;
    WT_ITEM wanted = {.data = key.start, .size = key.size}, found;
    /* A cursor that is somewhere keeps its snapshot of the data. */
    release(session);
    cursor->set_key(cursor, &wanted);
    int code = cursor->search(cursor);
    if (code == 0 && (code = cursor->get_value(cursor, &found)) == 0)
        *value = (assay_bytes){found.data ? found.data : "", found.size};
    return failed(code, error);
}

/* Lends the entry at which the cursor is, unless it could not get there. */
static int read_entry(WT_CURSOR *cursor, int code, assay_entry *entry, assay_error *error) {
    WT_ITEM key, value;
    if (code == 0)
        code = cursor->get_key(cursor, &key);
    if (code == 0)
        code = cursor->get_value(cursor, &value);
    if (code == 0) {
        entry->key = (assay_bytes){key.data, key.size};
        entry->value = (assay_bytes){value.data ? value.data : "", value.size};
    }
    return failed(code, error);
}

static int next(assay_session *session, assay_entry *entry, assay_error *error) {
    WT_CURSOR *cursor = session->cursor;
    int code = session->direction == ASSAY_UPWARD ? cursor->next(cursor) : cursor->prev(cursor);
    return read_entry(cursor, code, entry, error);
}

static int seek(assay_session *session, assay_bytes from, int direction, assay_entry *entry,
                assay_error *error) {
    WT_CURSOR *cursor = session->cursor;
    WT_ITEM key = {.data = from.start, .size = from.size};
    int side = 0;
    release(session);
    session->direction = direction;
    /* WiredTiger has no empty keys, so all keys are above an empty one. */
    if (from.size == 0 && direction == ASSAY_DOWNWARD)
        return ASSAY_NOT_FOUND;
    if (from.size == 0)
        return next(session, entry, error);

    cursor->set_key(cursor, &key);
    int code = cursor->search_near(cursor, &side);
    /* The cursor is at the key, or at a neighbor on either side. */
    if (code == 0 && direction == ASSAY_UPWARD && side < 0)
        code = cursor->next(cursor);
    if (code == 0 && direction == ASSAY_DOWNWARD && side > 0)
        code = cursor->prev(cursor);
    return read_entry(cursor, code, entry, error);
}

/* Writes all changed pages, and waits for the device. Sessions are not for several threads, so this
 * has its own. */
static int checkpoint(assay_database *database, assay_error *error) {
    WT_SESSION *session;
    int code = database->connection->open_session(database->connection, NULL, NULL, &session);
    if (code == 0) {
        code = session->checkpoint(session, NULL);
        session->close(session, NULL);
    }
    return failed(code, error);
}

static size_t counters(assay_database *database, assay_counter *counters, size_t capacity) {
    static const struct {
        int key;
        assay_counter counter;
    } all[] = {
        {WT_STAT_CONN_FSYNC_IO, {"fsync_count", 0, 1, "fsync_count"}},
        {WT_STAT_CONN_LOG_SYNC, {"log_fsync_count", 0, 1, "log_fsync_count"}},
        {WT_STAT_CONN_LOG_BYTES_WRITTEN, {"log_bytes", 0, 1, "log_bytes"}},
        {WT_STAT_CONN_BLOCK_BYTE_WRITE, {"block_written_bytes", 0, 1, NULL}},
        {WT_STAT_CONN_BLOCK_BYTE_READ, {"block_read_bytes", 0, 1, NULL}},
        {WT_STAT_CONN_CACHE_WRITE, {"cache_written_page_count", 0, 1, "work"}},
        {WT_STAT_CONN_CACHE_READ, {"cache_read_page_count", 0, 1, "work"}},
        {WT_STAT_CONN_CACHE_BYTES_INUSE, {"cache_bytes", 0, 0, "block_cache_bytes"}},
        {WT_STAT_CONN_CACHE_BYTES_DIRTY, {"dirty_bytes", 0, 0, "dirty_bytes"}},
    };
    size_t count = sizeof all / sizeof *all, read = 0;
    WT_SESSION *session;
    WT_CURSOR *cursor;
    if (database->connection->open_session(database->connection, NULL, NULL, &session) != 0)
        return 0;
    if (session->open_cursor(session, "statistics:", NULL, NULL, &cursor) == 0) {
        for (; read < count && read < capacity; read++) {
            const char *description, *text;
            int64_t value;
            cursor->set_key(cursor, all[read].key);
            if (cursor->search(cursor) != 0 ||
                cursor->get_value(cursor, &description, &text, &value) != 0)
                break;
            counters[read] = all[read].counter;
            counters[read].value = (double)value;
        }
    }
    session->close(session, NULL);
    return read;
}

const assay_engine_table *assay_engine(void) {
    static char version[24];
    int major, minor, patch;
    wiredtiger_version(&major, &minor, &patch);
    snprintf(version, sizeof version, "%d.%d.%d", major, minor, patch);
    static const assay_engine_table table = {
        .size = sizeof table,
        .name = "WiredTiger",
        .version = version,
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
        .sync = checkpoint,
        .flush = checkpoint,
        .counters = counters,
    };
    return &table;
}
