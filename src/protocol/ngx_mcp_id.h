
/*
 * Identifiers: UUIDv7 session ids and event ids, which are positions.
 */

#ifndef _NGX_MCP_ID_H_INCLUDED_
#define _NGX_MCP_ID_H_INCLUDED_


#include "ngx_mcp_core.h"


/* random bytes of the system, a few; NGX_ERROR: it has none yet */
ngx_int_t ngx_mcp_random(void *dst, size_t len);

/*
 * Writes a UUIDv7 (RFC 9562) of 36 characters to dst, 74 random bits from the
 * kernel's generator.  NGX_OK or NGX_ERROR.
 */
ngx_int_t ngx_mcp_uuid(u_char *dst);

/* 16 bytes as canonical text; returns its end */
u_char *ngx_mcp_uuid_print(u_char *dst, u_char *bin);

/* no capitals, no leading zeros; at most 16 bytes; returns the end */
u_char *ngx_mcp_hex_print(u_char *dst, uint64_t n);


/* an event id: "GENERATION-CHANNEL-OWN-GROUP-ENDPOINT", all in hex */

#define NGX_MCP_EVENT_ID_LEN  (8 + 1 + 8 + 1 + 16 + 1 + 16 + 1 + 16)

typedef struct {
    uint32_t                generation;   /* of the zone */
    uint32_t                channel;
    uint64_t                own;
    uint64_t                group;        /* endpoint and tenant */
    uint64_t                endpoint;
} ngx_mcp_event_id_t;

u_char *ngx_mcp_event_id_print(u_char *dst, ngx_mcp_event_id_t *id);

/* NGX_OK, or NGX_DECLINED when it is not one of ours */
ngx_int_t ngx_mcp_event_id_parse(ngx_str_t *text, ngx_mcp_event_id_t *id);


#endif /* _NGX_MCP_ID_H_INCLUDED_ */
