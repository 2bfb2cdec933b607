
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * The module: configurations and the context of a request to an endpoint.
 */

#ifndef _NGX_HTTP_MCP_MODULE_H_INCLUDED_
#define _NGX_HTTP_MCP_MODULE_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_compat.h"
#include "ngx_http_mcp_bridge.h"
#include "ngx_http_mcp_profile.h"
#include "ngx_http_mcp_feed.h"
#include "ngx_http_mcp_legacy.h"
#include "ngx_http_mcp_listener.h"
#include "ngx_http_mcp_shared.h"
#include "ngx_mcp_message.h"
#include "ngx_mcp_id.h"
#include "ngx_mcp_schema.h"
#include "ngx_mcp_state_file.h"
#include "ngx_mcp_caller.h"
#include "ngx_mcp_log.h"
#include "ngx_mcp_profile.h"
#include "ngx_mcp_worker.h"


typedef struct ngx_http_mcp_call_s    ngx_http_mcp_call_t;
typedef struct ngx_http_mcp_stream_s  ngx_http_mcp_stream_t;
typedef struct ngx_http_mcp_output_s  ngx_http_mcp_output_t;
typedef struct ngx_http_mcp_client_s  ngx_http_mcp_client_t;

typedef struct ngx_http_mcp_initialize_s  ngx_http_mcp_initialize_t;

typedef struct ngx_http_mcp_publish_conf_s  ngx_http_mcp_publish_conf_t;


/* an mcp_zone; its handle is the first member */

typedef struct {
    ngx_mcp_zone_t              zone;
    ngx_cycle_t                *cycle;
    size_t                      size;         /* 0: not declared */
    ngx_uint_t                  published;    /* an mcp_publish writes to it */
    ngx_uint_t                  fresh;        /* the zone was just made */
    ngx_mcp_state_file_t        state;        /* name empty: no state file */
    ngx_msec_t                  interval;     /* between writes of the file;
                                                 0: only at exit */
    ngx_msec_t                  due;          /* time of the next write */
    ngx_str_t                   directive;    /* first that names the zone */
    u_char                     *file;
    ngx_uint_t                  line;
} ngx_http_mcp_zone_t;


/* a directive that is checked after the whole configuration is read */

typedef struct {
    ngx_str_t                   directive;
    u_char                     *file;
    ngx_uint_t                  line;
    void                      **srv_conf;
    void                      **loc_conf;
    ngx_http_handler_pt         handler;      /* that it sets, or NULL */
} ngx_http_mcp_directive_t;


typedef struct {
    ngx_array_t                 zones;        /* ngx_http_mcp_zone_t * */
    ngx_array_t                 endpoints;    /* ngx_http_mcp_loc_conf_t * */
    ngx_array_t                 used;         /* ngx_http_mcp_directive_t: in
                                                 locations, for what is there */
    ngx_array_t                 handlers;     /* ngx_http_mcp_directive_t: those
                                                 that answer requests */
    ngx_array_t                 bridges;      /* ngx_http_mcp_bridge_t *, of
                                                 the endpoints */
    uint64_t                    epoch;        /* of this configuration */
    ngx_uint_t                  batches;      /* mcp_batch is on somewhere */
} ngx_http_mcp_main_conf_t;


/* an initialize result, and the tenant for which it holds */

#define NGX_HTTP_MCP_RESULTS        16
#define NGX_HTTP_MCP_RESULT_TENANT  128

typedef struct {
    ngx_pool_t                 *pool;         /* NULL: there is no result */
    ngx_str_t                   text;         /* members of the result behind
                                                 protocolVersion */
    ngx_str_t                   info;         /* serverInfo in text, raw */
    ngx_str_t                   alone;        /* result for clients without
                                                 session, once one has asked */
    ngx_uint_t                  offered;      /* NGX_MCP_OFFERED_* */
    uint64_t                    changes;      /* number of changes of profiles
                                                 before the result was made */
    ngx_msec_t                  time;         /* when that was; 0: never */
    ngx_uint_t                  known;        /* profiles in the zone tell
                                                 info */
    uint64_t                    known_at;     /* 1 + number of changes when
                                                 "known" was set; 0: never */
    size_t                      tenant_len;
    u_char                      tenant[NGX_HTTP_MCP_RESULT_TENANT];
} ngx_http_mcp_result_t;


/* data of an endpoint in a worker; tenants share the places of results */

typedef struct {
    ngx_http_mcp_result_t       results[NGX_HTTP_MCP_RESULTS];
    ngx_pool_cleanup_t         *cleanup;       /* of the results */
    ngx_uint_t                  lists_logged;  /* the log says what
                                                  mcp_list_cache does */
    ngx_uint_t                  tools_hidden;  /* built-in tools, as logged,
                                                  that hide others */
} ngx_http_mcp_endpoint_worker_t;


/* directives in a location; bits */

#define NGX_HTTP_MCP_HOLDS_ENDPOINT  0x01
#define NGX_HTTP_MCP_HOLDS_PUBLISH   0x02
#define NGX_HTTP_MCP_HOLDS_STATUS    0x04


typedef struct ngx_http_mcp_loc_conf_s  ngx_http_mcp_loc_conf_t;

struct ngx_http_mcp_loc_conf_s {
    ngx_uint_t                  endpoint;     /* mcp_endpoint is here */
    ngx_uint_t                  holds;        /* NGX_HTTP_MCP_HOLDS_*: here or
                                                 in a location inside */
    ngx_uint_t                  warned;       /* of a directive without use */
    uint64_t                    written;      /* directives that are here; bits
                                                 by ngx_http_mcp_commands, which
                                                 has room for 64 */
    ngx_http_mcp_loc_conf_t    *outer;        /* location around this one */

    ngx_mcp_zone_t             *zone;
    ngx_str_t                   name;         /* the endpoint's identity */
    ngx_http_conf_ctx_t        *conf_ctx;     /* of this location */
    ngx_array_t                *names;        /* of the server, copied */
    ngx_http_mcp_server_t       server;       /* for requests of the module */

    ngx_array_t                *upstreams;    /* ngx_http_mcp_upstream_t */
    ngx_uint_t                  named;        /* name= was given */
    u_char                     *file;         /* of mcp_endpoint */
    ngx_uint_t                  line;
    ngx_msec_t                  upstream_timeout;   /* 0: not written */
    ngx_msec_t                  upstream_total;

    ngx_str_t                   server_name;
    ngx_str_t                   server_version;
    ngx_str_t                   server_title;
    ngx_str_t                   server_info;  /* the three above as raw JSON,
                                                 or empty */
    ngx_str_t                   instructions;
    ngx_uint_t                  capabilities; /* NGX_HTTP_MCP_CAP_* */
    ngx_uint_t                  versions;     /* NGX_HTTP_MCP_VERSION() */
    ngx_str_t                   state_key;    /* empty: the key of the zone */

    ngx_http_mcp_bridge_t       bridge;       /* completed at merge time */

    ngx_http_complex_value_t   *tenant;
    ngx_http_complex_value_t   *bind;
    ngx_array_t                *deny;         /* ngx_http_complex_value_t */

    ngx_msec_t                  session_timeout;
    ngx_uint_t                  session_limit;
    ngx_http_complex_value_t   *session_limit_key;
    ngx_uint_t                  stream_limit;
    ngx_flag_t                  batch;
    ngx_uint_t                  call_limit;
    ngx_uint_t                  subscription_limit;
    ngx_msec_t                  stream_after;
    ngx_msec_t                  stream_heartbeat;
    ngx_msec_t                  stream_retry;
    size_t                      stream_buffer;
    ngx_flag_t                  stream_park;
    ngx_uint_t                  event_max;
    size_t                      event_size;
    size_t                      message_limit;
    ngx_msec_t                  drain_time;
    ngx_array_t                *origins;      /* ngx_str_t; NULL: default */
    ngx_flag_t                  origins_any;
    ngx_flag_t                  cors;

    ngx_http_mcp_endpoint_worker_t  *worker;  /* own copy in each worker */

    ngx_http_mcp_publish_conf_t  *publish;    /* mcp_publish is here */
    ngx_mcp_zone_t             *status;       /* mcp_status is here */
};


/* mcp_versions; bits, by ngx_mcp_revision_e */

#define NGX_HTTP_MCP_VERSION(revision)  (1 << (revision))

#define NGX_HTTP_MCP_LEGACY_VERSIONS                                          \
    (NGX_HTTP_MCP_VERSION(NGX_MCP_2025_03_26)                                 \
     | NGX_HTTP_MCP_VERSION(NGX_MCP_2025_06_18)                               \
     | NGX_HTTP_MCP_VERSION(NGX_MCP_2025_11_25))

#define NGX_HTTP_MCP_MODERN_VERSIONS                                          \
    NGX_HTTP_MCP_VERSION(NGX_MCP_2026_07_28)


/* mcp_capabilities; 0: the upstreams' profiles tell them */

#define NGX_HTTP_MCP_CAP_TOOLS        0x01
#define NGX_HTTP_MCP_CAP_PROMPTS      0x02
#define NGX_HTTP_MCP_CAP_RESOURCES    0x04
#define NGX_HTTP_MCP_CAP_LOGGING      0x08
#define NGX_HTTP_MCP_CAP_COMPLETIONS  0x10


/* the types that "Accept" allows */

#define NGX_HTTP_MCP_ACCEPT_JSON      0x01
#define NGX_HTTP_MCP_ACCEPT_SSE       0x02


/*
 * The context of a request to an endpoint, or of a main request without a
 * client that the endpoint makes
 */

typedef struct {
    ngx_http_mcp_loc_conf_t    *conf;
    ngx_http_mcp_client_t      *client;       /* client manner */
    ngx_mcp_message_t          *message;      /* NULL before the scan */
    ngx_str_t                   body;         /* in one piece */

    /* header values, trimmed; empty when absent */
    ngx_str_t                   header_session;
    ngx_str_t                   header_version;
    ngx_str_t                   header_last_event;
    ngx_str_t                   header_origin;
    ngx_str_t                   header_method;
    ngx_str_t                   header_name;
    ngx_mcp_revision_e          header_revision;  /* by header_version */
    ngx_uint_t                  header_twice; /* Mcp-Method, Mcp-Name or
                                                 MCP-Protocol-Version came
                                                 twice */
    const char                 *header_differs;  /* a header that sessions use
                                                    and that came twice with
                                                    different values, or NULL */
    ngx_uint_t                  accept;       /* NGX_HTTP_MCP_ACCEPT_* */

    /* values of variables, decoded, without control characters */
    ngx_http_mcp_scope_t        scope;
    ngx_http_mcp_scope_t       *computed;     /* values for an upstream's URI,
                                                 while that is computed */
    ngx_str_t                   client_name;
    ngx_str_t                   client_version;
    ngx_mcp_caller_t            caller;
    ngx_str_t                   topic;
    ngx_str_t                   upstream;     /* name of the upstream that
                                                 answered */
    ngx_int_t                   error;        /* JSON-RPC code; 0: see
                                                 "failed" */
    ngx_uint_t                  events_sent;

    ngx_str_t                   principal;    /* of a caller without session,
                                                 for upstreams; or empty */
    ngx_str_t                   session_id;   /* $mcp_session_id for upstream
                                                 sessions that other callers
                                                 use as well, or empty */
    ngx_mcp_session_t           session;      /* set in the content phase */
    ngx_http_mcp_call_t        *call;
    ngx_http_mcp_stream_t      *stream;
    ngx_http_mcp_output_t      *output;       /* writes before the request is
                                                 finalized, or NULL */
    struct ngx_http_mcp_batch_s  *batch;

    ngx_str_t                   refusal;      /* body that the filters send */
    ngx_http_variable_value_t  *values;       /* room in which variables are
                                                 computed afresh, or NULL */

    /* fault found by the scan; refused in the content phase, after limits */
    ngx_uint_t                  scan_status;
    ngx_int_t                   scan_code;
    const char                 *scan_error;

    ngx_http_mcp_initialize_t  *initialize;   /* NULL: another message */
    ngx_str_t                   kind;          /* raw resultType of an
                                                  upstream's result that is
                                                  passed on */
    ngx_mcp_hint_t              hint;          /* how the client may keep the
                                                  list that is the answer */
    ngx_str_t                   listen;        /* acknowledgement at the begin
                                                  of the stream of
                                                  subscriptions/listen */

    unsigned                    encoded:1;      /* values are percent-encoded */
    unsigned                    scanned:1;      /* preaccess has run */
    unsigned                    session_checked:1;  /* the session was looked
                                                       up, or is not needed */
    unsigned                    evaluated:1;    /* tenant, identity, list_key */
    unsigned                    reading:1;      /* body is being read */
    unsigned                    responded:1;    /* the module has responded */
    unsigned                    refused:1;      /* body replaced by filters */
    unsigned                    failed:1;       /* an upstream answered with an
                                                   error of any code */
    unsigned                    origins_differ:1;  /* Origin came twice */
    unsigned                    cookies:1;      /* there is a Cookie header */
    unsigned                    origin_ok:1;
    unsigned                    tool_error:1;
    unsigned                    background:1;
    unsigned                    response:2;     /* 0 none, 1 json, 2 sse */
} ngx_http_mcp_ctx_t;


extern ngx_module_t  ngx_http_mcp_module;


#endif /* _NGX_HTTP_MCP_MODULE_H_INCLUDED_ */
