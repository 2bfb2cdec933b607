
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * How long the lock of the zone is held, in microseconds of CPU time, since the
 * last reset.
 */

#ifndef _BENCH_HOLD_H_INCLUDED_
#define _BENCH_HOLD_H_INCLUDED_


#include "env.h"


void bench_hold_reset(void);
double bench_hold_quantile(double q);


#endif /* _BENCH_HOLD_H_INCLUDED_ */
