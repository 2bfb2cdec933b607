
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


/* an mcp_zone; "zone" must be the first member, as it is cast to this type */

typedef struct {
    ngx_mcp_zone_t              zone;
    ngx_cycle_t                *cycle;
    size_t                      size;         /* bytes of the zone; 0: the zone
                                                 is not declared */
    ngx_uint_t                  published;    /* an mcp_publish uses the zone */
    ngx_uint_t                  fresh;        /* the zone was just made */
    ngx_mcp_state_file_t        state;        /* name empty: no state file */
    ngx_msec_t                  interval;     /* ms between writes of the state
                                                 file; 0: it is written only
                                                 at exit */
    ngx_msec_t                  due;          /* time (ngx_current_msec) of the
                                                 next write */
    ngx_str_t                   directive;    /* the first directive that names
                                                 the zone; its file, line */
    u_char                     *file;
    ngx_uint_t                  line;
} ngx_http_mcp_zone_t;


/* a directive that is checked after the whole configuration is read */

typedef struct {
    ngx_str_t                   directive;    /* name of the directive; its file
                                                 and line */
    u_char                     *file;
    ngx_uint_t                  line;
    void                      **srv_conf;     /* configurations of its server */
    void                      **loc_conf;     /* configurations of its
                                                 location */
    ngx_http_handler_pt         handler;      /* content handler that the
                                                 directive sets, or NULL */
} ngx_http_mcp_directive_t;


typedef struct {
    ngx_array_t                 zones;        /* ngx_http_mcp_zone_t * */
    ngx_array_t                 endpoints;    /* ngx_http_mcp_loc_conf_t * */
    ngx_array_t                 used;         /* ngx_http_mcp_directive_t: all
                                                 directives in locations, to
                                                 warn of unused ones */
    ngx_array_t                 handlers;     /* ngx_http_mcp_directive_t: all
                                                 directives that set a content
                                                 handler */
    ngx_array_t                 bridges;      /* ngx_http_mcp_bridge_t * of all
                                                 endpoints */
    uint64_t                    epoch;        /* number of this configuration */
    ngx_uint_t                  batches;      /* mcp_batch is on somewhere */
} ngx_http_mcp_main_conf_t;


/* an initialize result, and the tenant for which it holds */

#define NGX_HTTP_MCP_RESULTS        16
#define NGX_HTTP_MCP_RESULT_TENANT  128

typedef struct {
    ngx_pool_t                 *pool;         /* memory of the result; NULL:
                                                 there is no result */
    ngx_str_t                   text;         /* members of the result behind
                                                 protocolVersion */
    ngx_str_t                   info;         /* raw serverInfo of the result */
    ngx_str_t                   discovered;   /* result of server/discover;
                                                 empty: no client has asked for
                                                 it */
    ngx_uint_t                  offered;      /* NGX_MCP_OFFERED_* */
    uint64_t                    changes;      /* number of changes of profiles
                                                 before the result was made */
    ngx_msec_t                  time;         /* time at which the result was
                                                 cached; 0: it is not cached */
    ngx_uint_t                  known;        /* info is from profiles in the
                                                 zone */
    uint64_t                    known_at;     /* 1 + number of changes when
                                                 "known" was set; 0: never */
    size_t                      tenant_len;
    u_char                      tenant[NGX_HTTP_MCP_RESULT_TENANT];
} ngx_http_mcp_result_t;


/* data of an endpoint in one worker; all tenants share the array of results */

typedef struct {
    ngx_http_mcp_result_t       results[NGX_HTTP_MCP_RESULTS];
    ngx_pool_cleanup_t         *cleanup;       /* frees the pools of results */
    ngx_uint_t                  lists_logged;  /* the effect of mcp_list_cache
                                                  was logged */
    ngx_uint_t                  tools_hidden;  /* bits of built-in tools that
                                                  were logged as hiding tools
                                                  of upstreams */
} ngx_http_mcp_endpoint_worker_t;


/* bits: which directives a location has */

#define NGX_HTTP_MCP_HOLDS_ENDPOINT  0x01
#define NGX_HTTP_MCP_HOLDS_PUBLISH   0x02
#define NGX_HTTP_MCP_HOLDS_STATUS    0x04


typedef struct ngx_http_mcp_loc_conf_s  ngx_http_mcp_loc_conf_t;

struct ngx_http_mcp_loc_conf_s {
    ngx_uint_t                  endpoint;     /* mcp_endpoint is here */
    ngx_uint_t                  holds;        /* NGX_HTTP_MCP_HOLDS_* of this
                                                 location and of all locations
                                                 within it */
    ngx_uint_t                  warned;       /* a directive without use was
                                                 logged */
    uint64_t                    written;      /* directives of this location:
                                                 bits by their numbers in
                                                 ngx_http_mcp_commands, which
                                                 has 64 at most */
    uint64_t                    alone;        /* those of "written" whose value
                                                 excludes others */
    ngx_http_mcp_loc_conf_t    *outer;        /* the location around this
                                                 location, or NULL */

    ngx_mcp_zone_t             *zone;
    ngx_str_t                   name;         /* the endpoint's identity */
    ngx_http_conf_ctx_t        *conf_ctx;     /* nginx's configurations of this
                                                 location */
    ngx_array_t                *names;        /* copy of the server's names */
    ngx_http_mcp_server_t       server;       /* address and name of the server
                                                 for background requests */

    ngx_array_t                *upstreams;    /* ngx_http_mcp_upstream_t */
    ngx_uint_t                  named;        /* mcp_endpoint has name= */
    u_char                     *file;         /* file and line of
                                                 mcp_endpoint */
    ngx_uint_t                  line;
    ngx_msec_t                  upstream_timeout;   /* 0: not configured */
    ngx_msec_t                  upstream_total;

    ngx_str_t                   server_name;
    ngx_str_t                   server_version;
    ngx_str_t                   server_title;
    ngx_str_t                   server_info;  /* raw serverInfo made of these
                                                 three, or empty */
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
    ngx_array_t                *origins;      /* ngx_str_t: allowed origins;
                                                 NULL: the default */
    ngx_flag_t                  origins_any;
    ngx_flag_t                  cors;

    ngx_http_mcp_endpoint_worker_t  *worker;  /* data of this worker */

    ngx_http_mcp_publish_conf_t  *publish;    /* mcp_publish of this location,
                                                 or NULL */
    ngx_mcp_zone_t             *status;       /* zone of mcp_status in this
                                                 location, or NULL */
};


/* bits of mcp_versions, each by its ngx_mcp_revision_e */

#define NGX_HTTP_MCP_VERSION(revision)  (1 << (revision))

#define NGX_HTTP_MCP_LEGACY_VERSIONS                                          \
    (NGX_HTTP_MCP_VERSION(NGX_MCP_2025_03_26)                                 \
     | NGX_HTTP_MCP_VERSION(NGX_MCP_2025_06_18)                               \
     | NGX_HTTP_MCP_VERSION(NGX_MCP_2025_11_25))

#define NGX_HTTP_MCP_MODERN_VERSIONS                                          \
    NGX_HTTP_MCP_VERSION(NGX_MCP_2026_07_28)


/* bits of mcp_capabilities; 0: profiles of upstreams tell the capabilities */

#define NGX_HTTP_MCP_CAP_TOOLS        0x01
#define NGX_HTTP_MCP_CAP_PROMPTS      0x02
#define NGX_HTTP_MCP_CAP_RESOURCES    0x04
#define NGX_HTTP_MCP_CAP_LOGGING      0x08
#define NGX_HTTP_MCP_CAP_COMPLETIONS  0x10


/* bits: the media types that "Accept" allows */

#define NGX_HTTP_MCP_ACCEPT_JSON      0x01
#define NGX_HTTP_MCP_ACCEPT_SSE       0x02


/*
 * The context of a request to an endpoint, or of a background request, a main
 * request without a client that the endpoint makes.
 */

typedef struct {
    ngx_http_mcp_loc_conf_t    *conf;
    ngx_http_mcp_client_t      *client;       /* manner of the client */
    ngx_mcp_message_t          *message;      /* the scanned message; NULL: it
                                                 is not scanned yet */
    ngx_str_t                   body;         /* request body in one piece */

    /* header values without white space around them; empty: no such header */
    ngx_str_t                   header_session;
    ngx_str_t                   header_version;
    ngx_str_t                   header_last_event;
    ngx_str_t                   header_origin;
    ngx_str_t                   header_method;
    ngx_str_t                   header_name;
    ngx_mcp_revision_e          header_revision;  /* revision that
                                                     header_version names */
    ngx_uint_t                  header_twice; /* the request has Mcp-Method,
                                                 Mcp-Name or
                                                 MCP-Protocol-Version twice */
    const char                 *header_differs;  /* name of a session's header
                                                    that the request has with
                                                    two values, or NULL */
    ngx_uint_t                  accept;       /* NGX_HTTP_MCP_ACCEPT_* */

    /* values of variables, decoded, without control characters */
    ngx_http_mcp_scope_t        scope;
    ngx_http_mcp_scope_t       *computed;     /* values for an upstream's URI,
                                                 while the URI is computed */
    ngx_str_t                   client_name;
    ngx_str_t                   client_version;
    ngx_mcp_caller_t            caller;
    ngx_str_t                   topic;
    ngx_str_t                   upstream;     /* name of the upstream that
                                                 answered */
    ngx_int_t                   error;        /* JSON-RPC code of the answer's
                                                 error; 0: no error or, if
                                                 "failed" is set, an error with
                                                 code 0 */
    ngx_uint_t                  events_sent;

    ngx_str_t                   principal;    /* principal of a caller without
                                                 session, for upstreams, or
                                                 empty */
    ngx_str_t                   session_id;   /* $mcp_session_id for an upstream
                                                 session that several callers
                                                 share, or empty */
    ngx_mcp_session_t           session;      /* set in the content phase */
    ngx_http_mcp_call_t        *call;
    ngx_http_mcp_stream_t      *stream;
    ngx_http_mcp_output_t      *output;       /* writer of the response before
                                                 the request is finalized, or
                                                 NULL */
    struct ngx_http_mcp_batch_s  *batch;

    ngx_str_t                   refusal;      /* body that the filters send in
                                                 place of nginx's */
    ngx_http_variable_value_t  *values;       /* memory in which variables are
                                                 computed afresh, or NULL */

    /*
     * A fault that the scan found.  The content handler refuses the request, so
     * that limits count it.  scan_error NULL: there is no fault.
     */
    ngx_uint_t                  scan_status;
    ngx_int_t                   scan_code;
    const char                 *scan_error;

    ngx_http_mcp_initialize_t  *initialize;   /* data of initialize or
                                                 server/discover; NULL: another
                                                 message */
    ngx_str_t                   kind;          /* raw resultType of an
                                                  upstream's result that is
                                                  passed on */
    ngx_mcp_hint_t              hint;          /* how the client may keep the
                                                  list that is the answer */
    ngx_str_t                   listen;        /* acknowledgement at the begin
                                                  of the stream of
                                                  subscriptions/listen */

    unsigned                    encoded:1;      /* values of variables are
                                                   percent-encoded */
    unsigned                    scanned:1;      /* preaccess has run */
    unsigned                    session_checked:1;  /* the session was looked
                                                       up, or is not needed */
    unsigned                    evaluated:1;    /* tenant, identity and list_key
                                                   of the caller are set */
    unsigned                    reading:1;      /* the body is being read */
    unsigned                    responded:1;    /* the module has responded */
    unsigned                    refused:1;      /* the filters replace the
                                                   body */
    unsigned                    failed:1;       /* the answer is an error, whose
                                                   code may be 0 */
    unsigned                    origins_differ:1;  /* the request has two
                                                   different Origin headers */
    unsigned                    cookies:1;      /* the request has Cookie */
    unsigned                    origin_ok:1;    /* the Origin is allowed */
    unsigned                    tool_error:1;   /* the result has isError */
    unsigned                    background:1;   /* a background request */
    unsigned                    response:2;     /* format of the response: 0:
                                                   none yet; 1: JSON; 2: SSE */
} ngx_http_mcp_ctx_t;


extern ngx_module_t  ngx_http_mcp_module;


#endif /* _NGX_HTTP_MCP_MODULE_H_INCLUDED_ */
