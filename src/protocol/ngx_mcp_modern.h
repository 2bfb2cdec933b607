
/*
 * Texts of revision 2026-07-28 as a server of it takes and gives them, made of
 * those of the middle, which has no envelope, and back.
 */

#ifndef _NGX_MCP_MODERN_H_INCLUDED_
#define _NGX_MCP_MODERN_H_INCLUDED_


#include "ngx_mcp_message.h"
#include "ngx_mcp_splice.h"


/* the client, as each request describes it */

typedef struct {
    ngx_str_t               info;         /* raw object, or empty */
    ngx_str_t               capabilities; /* likewise */
    ngx_uint_t              level;        /* of logs, ngx_mcp_level_e */
} ngx_mcp_modern_client_t;


/*
 * The client of these raw params of initialize; what is not of the revision is
 * changed in a copy in pool.  NGX_OK or NGX_ERROR.
 */
ngx_int_t ngx_mcp_modern_client(ngx_pool_t *pool, ngx_str_t *initialize,
    ngx_mcp_modern_client_t *client);

/* raw members of params._meta, without braces; data NULL: no memory */
ngx_str_t ngx_mcp_modern_envelope(ngx_pool_t *pool,
    ngx_mcp_modern_client_t *client);

/*
 * A scanned request with this envelope, with another raw id if that is not
 * empty, and with raw members put into params if these are not.  data NULL: no
 * memory.
 */
ngx_str_t ngx_mcp_modern_request(ngx_pool_t *pool, ngx_str_t *text,
    ngx_mcp_json_t *json, ngx_str_t *envelope, ngx_str_t *id,
    ngx_str_t *members);

/*
 * Takes out of a scanned message, in its place, what only clients of the
 * revision know.  method: of the request that a result answers, or OTHER.
 * The scan is that of another text then: 1; 0: nothing was taken out.
 */
ngx_uint_t ngx_mcp_modern_plain(ngx_str_t *text, ngx_mcp_json_t *json,
    ngx_uint_t method);

/*
 * The raw result of server/discover as one of initialize.  data NULL: no
 * memory, or it does not name the revision among those that the server supports
 */
ngx_str_t ngx_mcp_modern_discovered(ngx_pool_t *pool, ngx_str_t *result);

/* whether it names it */
ngx_uint_t ngx_mcp_modern_offered(ngx_str_t *result);

/* likewise of the raw error by which a server refuses a version */
ngx_uint_t ngx_mcp_modern_supported(ngx_str_t *error);


#endif /* _NGX_MCP_MODERN_H_INCLUDED_ */
