
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * URI templates (RFC 6570), as far as the module needs them: whether a URI may
 * have been made from a template.
 */

#ifndef _NGX_MCP_TEMPLATE_H_INCLUDED_
#define _NGX_MCP_TEMPLATE_H_INCLUDED_


#include "ngx_mcp_core.h"


/* bytes of the longest URI and the longest template that can match */
#define NGX_MCP_TEMPLATE_URI  2048


/*
 * Returns whether a template (RFC 6570) can expand to a URI.  An expression
 * stands for at least one character; expressions of a query or of parameters
 * may stand for none.  "{name}" and "{.name}" stand for no slash; the others
 * may.
 */
ngx_uint_t ngx_mcp_template_matches(ngx_str_t *template, ngx_str_t *uri);


#endif /* _NGX_MCP_TEMPLATE_H_INCLUDED_ */
