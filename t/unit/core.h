
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Stand-ins for the few functions of nginx's core that the protocol layer
 * calls.  Each allocation of a pool is one of malloc(), so that the sanitizer
 * sees where it ends.
 */

#ifndef _CORE_H_INCLUDED_
#define _CORE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_sha1.h>


/* while it is set, allocations fail */
extern ngx_uint_t  core_no_memory;

/* a copy in memory of its own, which ends with the text; free() it */
u_char *core_copy(const void *data, size_t len);


#endif /* _CORE_H_INCLUDED_ */
