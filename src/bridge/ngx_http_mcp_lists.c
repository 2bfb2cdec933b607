
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_lists.h"


void
ngx_http_mcp_lists_doorbell(ngx_mcp_zone_t *zone)
{
    /* void */
}
