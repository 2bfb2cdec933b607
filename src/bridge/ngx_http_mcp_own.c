
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_own.h"


ngx_http_mcp_own_lists_t  *ngx_http_mcp_own_lists;


ngx_int_t
ngx_http_mcp_own_want(ngx_http_mcp_bridge_t *bridge,
    ngx_http_mcp_upstream_t *u, ngx_str_t *tenant, ngx_str_t *list_key)
{
    return NGX_OK;
}


void
ngx_http_mcp_own_need(ngx_http_mcp_own_t *own, ngx_uint_t who,
    ngx_uint_t needed)
{
    /* void */
}


ngx_int_t
ngx_http_mcp_own_request(ngx_http_mcp_own_t *own, ngx_str_t *method,
    ngx_str_t *params, ngx_http_mcp_own_done_pt done, void *data)
{
    return NGX_ERROR;
}


void
ngx_http_mcp_own_doorbell(ngx_mcp_zone_t *zone)
{
    /* void */
}
