/* An extension of PostgreSQL that burns STATEMENT_NS at the start of each statement, and COMMIT_NS
 * when a transaction that wrote commits. */

#include "postgres.h"

#include "access/xact.h"
#include "executor/executor.h"
#include "fmgr.h"

#include "burn.h"

PG_MODULE_MAGIC;

void _PG_init(void);

static ExecutorStart_hook_type previous_start;

static void start(QueryDesc *query, int flags)
{
    burn(STATEMENT_NS);
    if (previous_start)
        previous_start(query, flags);
    else
        standard_ExecutorStart(query, flags);
}

static void commit(XactEvent event, void *unused)
{
    if (event == XACT_EVENT_PRE_COMMIT && TransactionIdIsValid(GetTopTransactionIdIfAny()))
        burn(COMMIT_NS);
}

/* A library of `session_preload_libraries` begins with a connection. The callback of commits
 * belongs to a process; the one of `shared_preload_libraries` is inherited by all of them. */
void _PG_init(void)
{
    calibrate();
    previous_start = ExecutorStart_hook;
    ExecutorStart_hook = start;
    RegisterXactCallback(commit, NULL);
}
