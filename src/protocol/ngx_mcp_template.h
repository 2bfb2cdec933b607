
/*
 * URI templates (RFC 6570), as far as MCP needs them here: whether a URI may
 * have come from one.
 *
 * No state, no allocation.
 */

#ifndef _NGX_MCP_TEMPLATE_H_INCLUDED_
#define _NGX_MCP_TEMPLATE_H_INCLUDED_


#include "ngx_mcp_core.h"


/* bytes of a URI, and of a template; longer ones do not match */
#define NGX_MCP_TEMPLATE_URI  2048


/*
 * Expressions stand for at least one character: of "{name}" and "{.name}" none
 * is a slash, of the others any may be.  Those of a query and of parameters
 * may stand for nothing.
 */
ngx_uint_t ngx_mcp_template_matches(ngx_str_t *template, ngx_str_t *uri);


#endif /* _NGX_MCP_TEMPLATE_H_INCLUDED_ */
