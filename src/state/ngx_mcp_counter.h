
/*
 * The counters of mcp_status, one line each: enum, JSON path "object.member",
 * Prometheus name and labels, help, "g"auge or "c"ounter.
 *
 * The state layer counts sessions, streams, calls.running, .started and .lost,
 * events.out (what a stream took), .dropped (a place without a body) and
 * .lagged (lost to a reader); whoever acts counts the others.
 */

#ifndef _NGX_MCP_COUNTER_H_INCLUDED_
#define _NGX_MCP_COUNTER_H_INCLUDED_


#define NGX_MCP_COUNTERS(_)                                                   \
    _(SESSIONS_LIVE,      "sessions", "live",     "g")                        \
    _(SESSIONS_CREATED,   "sessions", "created",  "c")                        \
    _(SESSIONS_DELETED,   "sessions", "deleted",  "c")                        \
    _(SESSIONS_EXPIRED,   "sessions", "expired",  "c")                        \
    _(SESSIONS_EVICTED,   "sessions", "evicted",  "c")                        \
    _(SESSIONS_REFUSED,   "sessions", "refused",  "c")                        \
    _(STREAMS_OPEN,       "streams",  "open",     "g")                        \
    _(STREAMS_OPENED,     "streams",  "opened",   "c")                        \
    _(STREAMS_CLIENT,     "streams",  "closed_client",   "c")                 \
    _(STREAMS_DONE,       "streams",  "closed_done",     "c")                 \
    _(STREAMS_SLOW,       "streams",  "closed_slow",     "c")                 \
    _(STREAMS_REPLACED,   "streams",  "closed_replaced", "c")                 \
    _(STREAMS_SESSION,    "streams",  "closed_session",  "c")                 \
    _(STREAMS_DRAINED,    "streams",  "closed_drain",    "c")                 \
    _(STREAMS_LOST,       "streams",  "closed_worker",   "c")                 \
    _(EVENTS_IN,          "events",   "in",       "c")                        \
    _(EVENTS_PUBLISHED,   "events",   "published", "c")                       \
    _(EVENTS_OUT,         "events",   "out",      "c")                        \
    _(EVENTS_DROPPED,     "events",   "dropped",  "c")                        \
    _(EVENTS_LAGGED,      "events",   "lagged",   "c")                        \
    _(CALLS_RUNNING,      "calls",    "running",  "g")                        \
    _(CALLS_STARTED,      "calls",    "started",  "c")                        \
    _(CALLS_REFUSED,      "calls",    "refused",  "c")                        \
    _(CALLS_CANCELLED,    "calls",    "cancelled", "c")                       \
    _(CALLS_LOST,         "calls",    "lost",     "c")                        \
    _(EXCHANGES_STARTED,  "exchanges", "started", "c")                        \
    _(EXCHANGES_OK,       "exchanges", "ok",      "c")                        \
    _(EXCHANGES_REFUSED,  "exchanges", "refused", "c")                        \
    _(EXCHANGES_UNREACHABLE, "exchanges", "unreachable", "c")                 \
    _(EXCHANGES_TIMEOUT,  "exchanges", "timeout", "c")                        \
    _(EXCHANGES_BAD,      "exchanges", "bad",     "c")                        \
    _(EXCHANGES_ABORTED,  "exchanges", "aborted", "c")


#define NGX_MCP_COUNTER_ENUM(name, group, member, kind)                       \
    NGX_MCP_COUNTER_ ## name,

typedef enum {
    NGX_MCP_COUNTERS(NGX_MCP_COUNTER_ENUM)
    NGX_MCP_COUNTER_MAX
} ngx_mcp_counter_e;


#endif /* _NGX_MCP_COUNTER_H_INCLUDED_ */
