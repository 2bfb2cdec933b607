
/*
 * The file of a zone ("state="): what is to outlive nginx, as ngx_mcp_save.h
 * has it.  It contains the ids of sessions, so it is for its owner alone, the
 * user of the workers.  One that is of something else, of a newer format, a
 * link, or in the hands of other users is neither read nor written.
 *
 * The file says which nginx wrote it.  Once a worker runs, the file is that of
 * its nginx.  One that writes it only at its end drops what it has read then: a
 * start that fails before loses nothing, and no session comes back that has
 * ended meanwhile.  Of two nginx that run at once, the one that was started
 * later owns the file; the other does not write it.
 *
 * All functions but claim() and test() block for long, so they are for the
 * master before workers start and after they have ended, and for a process that
 * does nothing else.
 */

#ifndef _NGX_MCP_STATE_FILE_H_INCLUDED_
#define _NGX_MCP_STATE_FILE_H_INCLUDED_


#include "ngx_mcp_zone.h"


typedef struct {
    ngx_str_t               name;         /* a zero follows */
    uint64_t                started;      /* this nginx, ms since the epoch */
    ngx_pid_t               master;       /* its process */
    ngx_uid_t               user;         /* of its workers */
    ngx_fd_t                fd;           /* of hold(), or NGX_INVALID_FILE */
    const char             *reported;     /* why it was not written at last */
} ngx_mcp_state_file_t;


/*
 * Writes the file anew: under another name beside it, which is given its name
 * once all of it is on the disk.  last: no worker lives any more.  NGX_OK;
 * NGX_DECLINED: an nginx that was started later, and lives, writes it;
 * NGX_ERROR.  What is not NGX_OK is logged, and the file is as it was.
 */
ngx_int_t ngx_mcp_state_write(ngx_mcp_zone_t *zone,
    ngx_mcp_state_file_t *file, ngx_uint_t last);

/* removes what killed processes left beside the file */
void ngx_mcp_state_sweep(ngx_mcp_zone_t *zone, ngx_mcp_state_file_t *file);

/*
 * Reads it into a zone that is still empty.  NGX_OK; NGX_DECLINED: there is no
 * such file, or no session in it; NGX_ERROR: it is ignored.  What came of it is
 * logged.
 */
ngx_int_t ngx_mcp_state_read(ngx_mcp_zone_t *zone,
    ngx_mcp_state_file_t *file);

/* warns if the file is one that is left alone */
void ngx_mcp_state_test(ngx_mcp_zone_t *zone, ngx_mcp_state_file_t *file);

/*
 * For the master: makes the file if there is none, gives it to the user of the
 * workers, and with claim sets file->fd, which the caller closes, for claim();
 * not if an nginx that was started later, and lives, owns the file.  Errors are
 * logged.
 */
void ngx_mcp_state_hold(ngx_mcp_zone_t *zone, ngx_mcp_state_file_t *file,
    ngx_uint_t claim);

/*
 * For a worker: makes the file that of this nginx, without the sessions unless
 * keep is set.  Closes file->fd, which is set.
 */
void ngx_mcp_state_claim(ngx_mcp_zone_t *zone, ngx_mcp_state_file_t *file,
    ngx_uint_t keep);


#endif /* _NGX_MCP_STATE_FILE_H_INCLUDED_ */
