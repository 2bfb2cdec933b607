
/*
 * The file of a zone ("state="): what is to outlive nginx, as ngx_mcp_save.h
 * has it.  It contains the ids of sessions, so it is for its owner alone.
 *
 * Both functions block, so they are for the master before workers start and
 * after they have ended, and for a process that does nothing else.
 */

#ifndef _NGX_MCP_STATE_FILE_H_INCLUDED_
#define _NGX_MCP_STATE_FILE_H_INCLUDED_


#include "ngx_mcp_zone.h"


typedef struct {
    ngx_str_t               name;         /* a zero follows */
    uint64_t                started;      /* this nginx, ms since the epoch */
    ngx_pid_t               master;       /* its process */
} ngx_mcp_state_file_t;


/*
 * Writes the file anew: under another name beside it, which is given its name
 * once all of it is on the disk.  last: no worker lives any more.  NGX_OK;
 * NGX_DECLINED: an nginx that was started later, and lives, writes it;
 * NGX_ERROR.  What is not NGX_OK is logged, and the file is as it was.
 */
ngx_int_t ngx_mcp_state_write(ngx_mcp_zone_t *zone,
    ngx_mcp_state_file_t *file, ngx_uint_t last);

/*
 * Reads it into a zone that is still empty.  NGX_OK; NGX_DECLINED: there is no
 * such file; NGX_ERROR: it is ignored.  What came of it is logged.
 */
ngx_int_t ngx_mcp_state_read(ngx_mcp_zone_t *zone,
    ngx_mcp_state_file_t *file);


#endif /* _NGX_MCP_STATE_FILE_H_INCLUDED_ */
