/* A library that is loaded into MariaDB before all others, with LD_PRELOAD. Its own `send` burns
 * STATEMENT_NS first. The server calls `send` once for each answer that fits into its buffer. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "burn.h"

typedef ssize_t (*send_bytes)(int, const void *, size_t, int);

static send_bytes real_send;

__attribute__((constructor)) static void find_real(void)
{
    calibrate();
    real_send = (send_bytes) dlsym(RTLD_NEXT, "send");
}

ssize_t send(int socket, const void *bytes, size_t size, int flags)
{
    burn(STATEMENT_NS);
    return real_send(socket, bytes, size, flags);
}
