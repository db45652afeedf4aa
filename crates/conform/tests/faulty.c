/* The adapter of LMDB with a planted fault: PLANT is a statement that puts one of the functions
 * below into the table, such as `table.write = lost_write`. */

#define assay_engine engine_without_fault
#include "../../../adapters/lmdb.c"
#undef assay_engine

#include <unistd.h>

static int write_count;

/* Forgets each hundredth write. */
static int lost_write(assay_session *session, const assay_change *changes, size_t count,
                      uint32_t durability, assay_error *error) {
    if (++write_count % 100 == 0)
        return ASSAY_OK;
    return write_changes(session, changes, count, durability, error);
}

/* Applies the changes of a batch in the opposite order. */
static int batch_in_wrong_order(assay_session *session, const assay_change *changes, size_t count,
                                uint32_t durability, assay_error *error) {
    assay_change *turned = malloc(count * sizeof *turned);
    for (size_t i = 0; i < count; i++)
        turned[i] = changes[count - 1 - i];
    int outcome = write_changes(session, turned, count, durability, error);
    free(turned);
    return outcome;
}

/* Applies each change of a batch alone. */
static int torn_batch(assay_session *session, const assay_change *changes, size_t count,
                      uint32_t durability, assay_error *error) {
    int outcome = ASSAY_OK;
    for (size_t i = 0; i < count && outcome == ASSAY_OK; i++) {
        outcome = write_changes(session, &changes[i], 1, durability, error);
        /* A busy machine seldom stops the process between two changes by itself. */
        usleep(500);
    }
    return outcome;
}

/* Does not wait for the device. */
static int unsynced_write(assay_session *session, const assay_change *changes, size_t count,
                          uint32_t durability, assay_error *error) {
    (void)durability;
    return write_changes(session, changes, count, ASSAY_SURVIVES_PROCESS, error);
}

/* Acknowledges writes that are still in the memory of the process. */
static int late_write(assay_session *session, const assay_change *changes, size_t count,
                      uint32_t durability, assay_error *error) {
    static assay_change kept[64];
    static size_t kept_count;
    for (size_t i = 0; i < count; i++) {
        assay_change change = changes[i];
        void *key = malloc(change.key.size), *value = malloc(change.value.size + 1);
        memcpy(key, change.key.start, change.key.size);
        if (change.value.start)
            memcpy(value, change.value.start, change.value.size);
        change.key.start = key;
        change.value.start = change.value.start ? value : NULL;
        kept[kept_count++] = change;
    }
    if (kept_count < 50)
        return ASSAY_OK;
    size_t all = kept_count;
    kept_count = 0;
    return write_changes(session, kept, all, durability, error);
}

/* Cuts long values. */
static int cut_value(assay_session *session, const assay_change *changes, size_t count,
                     uint32_t durability, assay_error *error) {
    assay_change *cut = malloc(count * sizeof *cut);
    memcpy(cut, changes, count * sizeof *cut);
    for (size_t i = 0; i < count; i++)
        if (cut[i].value.size > 65536)
            cut[i].value.size = 65536;
    int outcome = write_changes(session, cut, count, durability, error);
    free(cut);
    return outcome;
}

/* Ignores removals. */
static int kept_key(assay_session *session, const assay_change *changes, size_t count,
                    uint32_t durability, assay_error *error) {
    int outcome = ASSAY_OK;
    for (size_t i = 0; i < count && outcome == ASSAY_OK; i++)
        if (changes[i].value.start)
            outcome = write_changes(session, &changes[i], 1, durability, error);
    return outcome;
}

/* Skips an entry now and then. */
static int skipping_next(assay_session *session, assay_entry *entry, assay_error *error) {
    int outcome = next(session, entry, error);
    return ++write_count % 50 == 0 && outcome == ASSAY_OK ? next(session, entry, error) : outcome;
}

/* All sessions share one. */
static int shared_session(assay_database *database, assay_session **result, assay_error *error) {
    static assay_session *only;
    static assay_database *of;
    if (only && of == database) {
        *result = only;
        return ASSAY_OK;
    }
    of = database;
    int outcome = open_session(database, &only, error);
    *result = only;
    return outcome;
}

static void never_close_session(assay_session *session) {
    release(session);
}

/* Reads an old view again. */
static int stale_get(assay_session *session, assay_bytes key, assay_bytes *value,
                     assay_error *error) {
    MDB_val wanted = {key.size, (void *)key.start}, found;
    if (!session->view && begin_view(session, error) != ASSAY_OK)
        return ASSAY_FAILED;
    if (session->is_reset) {
        mdb_txn_renew(session->view);
        session->is_reset = 0;
    }
    int outcome =
        failed(mdb_get(session->view, session->database->dbi, &wanted, &found), error);
    if (outcome == ASSAY_OK)
        *value = (assay_bytes){found.mv_data, found.mv_size};
    return outcome;
}

/* Keeps memory for each read. */
static int leaking_get(assay_session *session, assay_bytes key, assay_bytes *value,
                       assay_error *error) {
    int outcome = get(session, key, value, error);
    if (outcome == ASSAY_OK) {
        char *copy = malloc(value->size + 200);
        memset(copy, 1, value->size + 200);
        memcpy(copy, value->start, value->size);
        value->start = copy;
    }
    return outcome;
}

/* Keeps a file open for each session. */
static int session_with_file(assay_database *database, assay_session **result,
                             assay_error *error) {
    if (!fopen("/dev/null", "r")) {
        snprintf(error->text, sizeof error->text, "too many files");
        return ASSAY_FAILED;
    }
    return open_session(database, result, error);
}

/* Crashes. */
static int crashing_get(assay_session *session, assay_bytes key, assay_bytes *value,
                        assay_error *error) {
    if (++write_count > 500)
        abort();
    return get(session, key, value, error);
}

static size_t shrinking_counters(assay_database *database, assay_counter *counters,
                                 size_t capacity) {
    (void)database;
    if (capacity)
        counters[0] = (assay_counter){"read_count", 1e6 - ++write_count, 1, NULL};
    return 1;
}

static size_t counters_of_unknown_role(assay_database *database, assay_counter *counters,
                                       size_t capacity) {
    (void)database;
    if (capacity)
        counters[0] = (assay_counter){"read_count", ++write_count, 1, "reads"};
    return 1;
}

static int unknown_options_are_taken(const char *directory, int create,
                                     const assay_option *options, size_t count,
                                     assay_database **result, assay_error *error) {
    (void)options;
    (void)count;
    return open_database(directory, create, NULL, 0, result, error);
}

static int sync_that_does_nothing(assay_database *database, assay_error *error) {
    (void)database;
    (void)error;
    return ASSAY_OK;
}

/* Never returns once an fsync has failed. */
static int sync_that_hangs_after_failure(assay_database *database, assay_error *error) {
    int outcome = sync_database(database, error);
    while (outcome != ASSAY_OK)
        pause();
    return outcome;
}

const assay_engine_table *assay_engine(void);

const assay_engine_table *assay_engine(void) {
    static assay_engine_table table;
    table = *engine_without_fault();
    PLANT;
    return &table;
}
