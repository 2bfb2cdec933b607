
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * The format of a state file (ngx_mcp_state_file.h) behind its header: each
 * entity is a tag, a length and as many bytes, in the host's byte order.  The
 * bytes of an entity are its attributes; each of them again is a tag, a length
 * and bytes, which are a number of 64 bits or a text.  An entity has each
 * attribute at most once.
 *
 * A reader skips tags that it does not know, and treats a missing attribute as
 * 0 or empty.  So a version of the module reads the files of other versions,
 * whatever the layout of their zones.  For this reason a tag must never get
 * another meaning.
 *
 * Entities are in any order.  An entity that belongs to another one names its
 * owner by a number that is unique in the file.  All other names are ids,
 * texts, or hashes of the zone, whose key is in the file.
 */

#ifndef _NGX_MCP_TLV_H_INCLUDED_
#define _NGX_MCP_TLV_H_INCLUDED_


#include "ngx_mcp_zone.h"


#define NGX_MCP_TLV_HEAD  8               /* bytes of tag and length */


/* attributes */

typedef enum {
    NGX_MCP_TLV_NAME = 1,
    NGX_MCP_TLV_ID = 2,
    NGX_MCP_TLV_ENDPOINT = 3,
    NGX_MCP_TLV_TENANT = 4,
    NGX_MCP_TLV_IDENTITY = 5,
    NGX_MCP_TLV_ACCOUNT = 6,              /* hash */
    NGX_MCP_TLV_LIMITED = 7,
    NGX_MCP_TLV_LIMIT_KEY = 8,
    NGX_MCP_TLV_CLIENT_NAME = 9,
    NGX_MCP_TLV_CLIENT_VERSION = 10,
    NGX_MCP_TLV_INITIALIZE = 12,
    NGX_MCP_TLV_REVISION = 13,
    NGX_MCP_TLV_OFFERED = 14,
    NGX_MCP_TLV_OWN_LISTS = 15,
    NGX_MCP_TLV_TIMEOUT = 16,             /* ms */
    NGX_MCP_TLV_EVENT_MAX = 17,
    NGX_MCP_TLV_EVENT_SIZE = 18,
    NGX_MCP_TLV_CREATED = 19,             /* ms since the epoch */
    NGX_MCP_TLV_SEEN = 20,                /* likewise */
    NGX_MCP_TLV_IDLE = 21,                /* ms since it was used */
    NGX_MCP_TLV_USED = 22,
    NGX_MCP_TLV_LEVEL = 23,
    NGX_MCP_TLV_CHANNEL = 24,
    NGX_MCP_TLV_LAST = 25,                /* position of a log */
    NGX_MCP_TLV_READ_OWN = 26,                 /* delivered until here */
    NGX_MCP_TLV_READ_GROUP = 27,
    NGX_MCP_TLV_READ_ENDPOINT = 28,
    NGX_MCP_TLV_START = 29,
    NGX_MCP_TLV_START_ENDPOINT = 30,
    NGX_MCP_TLV_BEGIN = 31,
    NGX_MCP_TLV_TAKEN = 32,
    NGX_MCP_TLV_COUNT = 33,
    NGX_MCP_TLV_GAP = 34,
    NGX_MCP_TLV_URI = 35,
    NGX_MCP_TLV_UPSTREAM = 36,            /* hash */
    NGX_MCP_TLV_FLAGS = 37,
    NGX_MCP_TLV_SERIAL = 38,
    NGX_MCP_TLV_POSITION = 39,
    NGX_MCP_TLV_STAMP = 40,
    NGX_MCP_TLV_TARGET = 41,              /* hashes and flags, 64 bits each */
    NGX_MCP_TLV_TEXT = 42,
    NGX_MCP_TLV_LOSSES = 44,
    NGX_MCP_TLV_ORDER = 45,
    NGX_MCP_TLV_TIME = 46,
    NGX_MCP_TLV_LOST = 47,
    NGX_MCP_TLV_KEY = 48,
    NGX_MCP_TLV_NOTE = 49,
    NGX_MCP_TLV_FENCE = 50,
    NGX_MCP_TLV_USER = 51,
    NGX_MCP_TLV_AUDIENCE = 52,            /* hash */
    NGX_MCP_TLV_HASH_KEY = 53,
    NGX_MCP_TLV_GENERATION = 54,
    NGX_MCP_TLV_SUM = 55,
    NGX_MCP_TLV_REF = 56,                 /* unique number of the entity */
    NGX_MCP_TLV_OWNER = 57,               /* unique number of its owner */
    NGX_MCP_TLV_LIST_KEY = 58,            /* of an audience */
    NGX_MCP_TLV_ATTRIBUTES = 64           /* all tags above are lower */
} ngx_mcp_tlv_attribute_e;


/* entities */

typedef enum {
    NGX_MCP_TLV_ZONE = 64,                /* the first one */
    NGX_MCP_TLV_END = 65,                 /* the last one */
    NGX_MCP_TLV_GROUP = 66,
    NGX_MCP_TLV_ALL_TENANTS = 67,         /* all tenants of an endpoint */
    NGX_MCP_TLV_SESSION = 68,
    NGX_MCP_TLV_SUBSCRIPTION = 69,        /* of a session */
    NGX_MCP_TLV_CALL = 70,                /* of a session */
    NGX_MCP_TLV_UPSTREAM_SESSION = 71,    /* of a session, or of a group */
    NGX_MCP_TLV_EVENT = 72,               /* of a session, call, topic, group,
                                             or of all tenants */
    NGX_MCP_TLV_TOPIC = 73,
    NGX_MCP_TLV_LEASE = 74,
    NGX_MCP_TLV_EVENT_ID = 75
} ngx_mcp_tlv_entity_e;


/* flags of a subscription */

#define NGX_MCP_TLV_INTEREST    0x01      /* it uses an interest */
#define NGX_MCP_TLV_ACCEPTED    0x02      /* the upstream has accepted the
                                             interest */
#define NGX_MCP_TLV_TOPIC_KEPT  0x04

/* flags of a call */

#define NGX_MCP_TLV_RUNNING     0x01
#define NGX_MCP_TLV_ANSWERED    0x02

/* flags of a topic */

#define NGX_MCP_TLV_OTHER       0x01
#define NGX_MCP_TLV_ANNOUNCED   0x02

/* a lease had a connected reader, or an upstream session a GET stream */

#define NGX_MCP_TLV_CONNECTED   0x01


/* a buffer to write to; "full" is set when something did not fit */

typedef struct {
    u_char                 *start;
    u_char                 *pos;
    u_char                 *end;
    ngx_uint_t              full;
} ngx_mcp_tlv_t;

/* begin and end an entity; end() takes the result of begin() */
size_t ngx_mcp_tlv_begin(ngx_mcp_tlv_t *out, ngx_uint_t tag);
void ngx_mcp_tlv_end(ngx_mcp_tlv_t *out, size_t begin);

/*
 * Begins an attribute of len bytes.  Returns where its value is to be written;
 * NULL: the buffer is full.
 */
u_char *ngx_mcp_tlv_room(ngx_mcp_tlv_t *out, ngx_uint_t tag, size_t len);
void ngx_mcp_tlv_data(ngx_mcp_tlv_t *out, ngx_uint_t tag, void *data,
    size_t len);

/* writes a number; 0 is not written */
void ngx_mcp_tlv_number(ngx_mcp_tlv_t *out, ngx_uint_t tag, uint64_t n);


/*
 * Reads the next entity or attribute, and moves *left behind it; *value points
 * into the text.  NGX_OK; NGX_DONE: nothing is left; NGX_ERROR: its length is
 * larger than the rest.
 */
ngx_int_t ngx_mcp_tlv_next(ngx_str_t *left, ngx_uint_t *tag,
    ngx_str_t *value);

/*
 * Finds the attributes of an entity: NGX_MCP_TLV_ATTRIBUTES values by tag,
 * with data NULL if one is missing.  value() returns the number in an
 * attribute.
 */
void ngx_mcp_tlv_attributes(ngx_str_t *entity, ngx_str_t *attributes);
uint64_t ngx_mcp_tlv_value(ngx_str_t *attribute);


#endif /* _NGX_MCP_TLV_H_INCLUDED_ */
