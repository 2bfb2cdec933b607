
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Identifiers: session ids, which are UUIDv7, and event ids, which name
 * positions in logs.
 */

#ifndef _NGX_MCP_ID_H_INCLUDED_
#define _NGX_MCP_ID_H_INCLUDED_


#include "ngx_mcp_core.h"


/*
 * Fills dst with at most 4080 random bytes from the kernel.  NGX_OK; NGX_ERROR:
 * the kernel returned an error.
 */
ngx_int_t ngx_mcp_random(void *dst, size_t len);

/*
 * Writes a UUIDv7 (RFC 9562) of 36 characters to dst; 74 of its bits are
 * random bits from the kernel.  NGX_OK or NGX_ERROR (no random bytes).
 */
ngx_int_t ngx_mcp_uuid(u_char *dst);

/* writes a UUIDv7 in quotes, NGX_MCP_UUID_LEN + 2 characters, to dst */
ngx_int_t ngx_mcp_uuid_raw(u_char *dst);

/* writes 16 bytes as a UUID's canonical text; returns the end of the text */
u_char *ngx_mcp_uuid_print(u_char *dst, u_char *bin);

/*
 * Writes a number in lower-case hexadecimal digits without leading zeros, at
 * most 16 bytes; returns the end.
 */
u_char *ngx_mcp_hex_print(u_char *dst, uint64_t n);


/*
 * An event id: "GENERATION-CHANNEL-OWN-GROUP-ENDPOINT", all in hex.  The last
 * three are positions in the logs of the session, its group and its endpoint.
 */

#define NGX_MCP_EVENT_ID_LEN  (8 + 1 + 8 + 1 + 16 + 1 + 16 + 1 + 16)

typedef struct {
    uint32_t                generation;   /* generation of the zone */
    uint32_t                channel;      /* number of the stream's channel */
    uint64_t                own;          /* position in the session's log */
    uint64_t                group;        /* position in the group's log */
    uint64_t                endpoint;     /* position in the endpoint's log */
} ngx_mcp_event_id_t;

/* writes an event id, at most NGX_MCP_EVENT_ID_LEN bytes; returns the end */
u_char *ngx_mcp_event_id_print(u_char *dst, ngx_mcp_event_id_t *id);

/* reads an event id; NGX_OK; NGX_DECLINED: the text is no event id */
ngx_int_t ngx_mcp_event_id_parse(ngx_str_t *text, ngx_mcp_event_id_t *id);


#endif /* _NGX_MCP_ID_H_INCLUDED_ */
