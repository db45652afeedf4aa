/* A library that has RocksDB's C API by depending on a real one. Its own `rocksdb_get_pinned` and
 * `rocksdb_write` burn STATEMENT_NS and COMMIT_NS first: a symbol of a library comes before those
 * of the libraries that it depends on. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

#include "burn.h"

typedef void *(*get_pinned)(void *, void *, const char *, size_t, char **);
typedef void (*write_batch)(void *, void *, void *, char **);

static get_pinned real_get;
static write_batch real_write;

__attribute__((constructor)) static void find_real(void)
{
    calibrate();
    real_get = (get_pinned) dlsym(RTLD_NEXT, "rocksdb_get_pinned");
    real_write = (write_batch) dlsym(RTLD_NEXT, "rocksdb_write");
}

void *rocksdb_get_pinned(void *db, void *options, const char *key, size_t size, char **error)
{
    burn(STATEMENT_NS);
    return real_get(db, options, key, size, error);
}

void rocksdb_write(void *db, void *options, void *batch, char **error)
{
    burn(COMMIT_NS);
    real_write(db, options, batch, error);
}
