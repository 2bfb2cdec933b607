
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * The file of a zone ("state=") has the records that outlive nginx, as saved
 * by ngx_mcp_save.h.  It contains the ids of sessions, so only its owner, the
 * user of the workers, may access it.  A file is neither read nor written if
 * it is not a state file, has a newer format, is a link, or if other users can
 * access it.
 *
 * The header of the file names the nginx instance that owns it.  When a worker
 * starts, it claims the file for its instance.  If nginx writes the file only
 * when it exits, the worker also removes the sessions from the file, so that
 * sessions that have ended meanwhile are not restored later; a start that fails
 * before does not change the file.  Of two instances that run at the same time,
 * the one that was started later owns the file; the other one does not write
 * it.
 *
 * All functions but claim() and test() block for long.  So they are for the
 * master before workers start and after they have ended, and for a process that
 * does nothing else.
 */

#ifndef _NGX_MCP_STATE_FILE_H_INCLUDED_
#define _NGX_MCP_STATE_FILE_H_INCLUDED_


#include "ngx_mcp_zone.h"


typedef struct {
    ngx_str_t               name;         /* a zero follows */
    uint64_t                started;      /* start of this nginx, ms since the
                                             epoch */
    ngx_pid_t               master;       /* process of its master */
    ngx_uid_t               user;         /* user of its workers */
    ngx_fd_t                fd;           /* file that ngx_mcp_state_hold()
                                             opened, or NGX_INVALID_FILE */
    const char             *reported;     /* reason logged last for which the
                                             file was not written */
} ngx_mcp_state_file_t;


/*
 * Writes a new file in the folder of the old one, and renames it once all of it
 * is on the disk.  last: 1: no worker lives any more.  NGX_OK; NGX_DECLINED: a
 * live nginx that was started later writes the file; NGX_ERROR: it cannot be
 * written.  Unless the result is NGX_OK, the reason is logged and the file is
 * unchanged.
 */
ngx_int_t ngx_mcp_state_write(ngx_mcp_zone_t *zone,
    ngx_mcp_state_file_t *file, ngx_uint_t last);

/* removes unfinished new files that killed processes left in the folder */
void ngx_mcp_state_sweep(ngx_mcp_zone_t *zone, ngx_mcp_state_file_t *file);

/*
 * Reads the file into a zone that is still empty, and logs the result.
 * NGX_OK; NGX_DECLINED: there is no such file, or no session in it; NGX_ERROR:
 * the file is ignored.
 */
ngx_int_t ngx_mcp_state_read(ngx_mcp_zone_t *zone,
    ngx_mcp_state_file_t *file);

/* logs a warning if the file can neither be read nor written */
void ngx_mcp_state_test(ngx_mcp_zone_t *zone, ngx_mcp_state_file_t *file);

/*
 * For the master: makes the file if there is none, and gives it to the user of
 * the workers.  claim: also opens file->fd for ngx_mcp_state_claim(); the
 * caller closes it.  Does nothing if a live nginx that was started later owns
 * the file.  Errors are logged.
 */
void ngx_mcp_state_hold(ngx_mcp_zone_t *zone, ngx_mcp_state_file_t *file,
    ngx_uint_t claim);

/*
 * For a worker: claims the file for this nginx instance, and removes the
 * sessions from it unless "keep" is set.  Closes file->fd, which has to be
 * open.
 */
void ngx_mcp_state_claim(ngx_mcp_zone_t *zone, ngx_mcp_state_file_t *file,
    ngx_uint_t keep);


#endif /* _NGX_MCP_STATE_FILE_H_INCLUDED_ */
