
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * The counters of mcp_status: enum, group, family, gauge or counter, and the
 * help text.  OF() is one of several counters of a family, which follow each
 * other; the family is their sum.  It has also a label with a value, and a
 * name in JSON.  Only the first counter of a family has the help text.
 *
 * The state layer counts sessions, streams, calls.running, .started and .lost,
 * events.out (read by a stream), .dropped_large and .dropped_full (a position
 * without a body) and .lagged (lost to a reader); the layers above count the
 * others.  Each event that is read is counted by its source.  An event that is
 * read twice is .dropped_repeated, too; an event that is read by a reader that
 * has lost its lease is .dropped_stale, too.
 */

#ifndef _NGX_MCP_COUNTER_H_INCLUDED_
#define _NGX_MCP_COUNTER_H_INCLUDED_


#define NGX_MCP_COUNTERS(_, OF)                                               \
    _(SESSIONS_LIVE, "sessions", "live", g, "Sessions that exist now.")       \
    _(SESSIONS_CREATED, "sessions", "created", c, "Sessions created.")        \
    _(SESSIONS_DELETED, "sessions", "deleted", c,                             \
      "Sessions ended by their client.")                                      \
    _(SESSIONS_EXPIRED, "sessions", "expired", c,                             \
      "Sessions ended after mcp_session_timeout.")                            \
    _(SESSIONS_EVICTED, "sessions", "evicted", c,                             \
      "Idle sessions removed to make room.")                                  \
    _(SESSIONS_REFUSED, "sessions", "refused", c,                             \
      "Sessions refused for lack of room.")                                   \
    _(LISTENS_OPEN, "listens", "open", g,                                     \
      "Listening clients of 2026-07-28 now.")                                 \
    _(LISTENS_OPENED, "listens", "opened", c,                                 \
      "Requests subscriptions/listen accepted.")                              \
    _(STREAMS_OPEN, "streams", "open", g, "Event streams that are open now.") \
    _(STREAMS_OPENED, "streams", "opened", c, "Event streams opened.")        \
    OF(STREAMS_CLIENT, "streams", "closed", c, "reason",                      \
       "client", "closed_client", "Event streams closed, by reason.")         \
    OF(STREAMS_DONE, "streams", "closed", c, "reason",                        \
       "done", "closed_done", "")                                             \
    OF(STREAMS_SLOW, "streams", "closed", c, "reason",                        \
       "slow", "closed_slow", "")                                             \
    OF(STREAMS_REPLACED, "streams", "closed", c, "reason",                    \
       "replaced", "closed_replaced", "")                                     \
    OF(STREAMS_SESSION, "streams", "closed", c, "reason",                     \
       "session", "closed_session", "")                                       \
    OF(STREAMS_DRAINED, "streams", "closed", c, "reason",                     \
       "drain", "closed_drain", "")                                           \
    OF(STREAMS_LOST, "streams", "closed", c, "reason",                        \
       "worker", "closed_worker", "")                                         \
    OF(EVENTS_PUBLISHED, "events", "in", c, "source",                         \
       "publish", "published", "Events received, by source.")                 \
    OF(EVENTS_FEED, "events", "in", c, "source", "feed", "feed", "")          \
    OF(EVENTS_UPSTREAM, "events", "in", c, "source",                          \
       "upstream", "upstream", "")                                            \
    _(EVENTS_OUT, "events", "out", c, "Messages written to streams.")         \
    _(EVENTS_COALESCED, "events", "coalesced", c,                             \
      "Notifications merged into others.")                                    \
    OF(EVENTS_LARGE, "events", "dropped", c, "reason",                        \
       "large", "dropped_large", "Events not delivered, by reason.")          \
    OF(EVENTS_FULL, "events", "dropped", c, "reason",                         \
       "full", "dropped_full", "")                                            \
    OF(EVENTS_UNSENT, "events", "dropped", c, "reason",                       \
       "unsent", "dropped_unsent", "")                                        \
    OF(EVENTS_REPEATED, "events", "dropped", c, "reason",                     \
       "repeated", "dropped_repeated", "")                                    \
    OF(EVENTS_STALE, "events", "dropped", c, "reason",                        \
       "stale", "dropped_stale", "")                                          \
    OF(EVENTS_INVALID, "events", "dropped", c, "reason",                      \
       "invalid", "dropped_invalid", "")                                      \
    _(EVENTS_LAGGED, "events", "lagged", c, "Events that clients missed.")    \
    _(LISTS_REFRESHES, "lists", "refreshes", c,                               \
      "Lists fetched from upstreams.")                                        \
    _(LISTS_CHANGED, "lists", "changed", c,                                   \
      "Fetched lists that had changed.")                                      \
    _(LISTS_UNCHANGED, "lists", "unchanged", c,                               \
      "Fetched lists that had not changed.")                                  \
    _(LISTS_FAILED, "lists", "failed", c, "Failed fetches of lists.")         \
    _(CALLS_RUNNING, "calls", "running", g,                                   \
      "Requests of clients that run now.")                                    \
    OF(CALLS_LEGACY, "calls", "started", c, "era",                            \
       "legacy", "started_legacy", "Requests of clients started, by era.")    \
    OF(CALLS_MODERN, "calls", "started", c, "era",                            \
       "modern", "started_modern", "")                                        \
    _(CALLS_REFUSED, "calls", "refused", c,                                   \
      "Requests refused over mcp_call_limit.")                                \
    _(CALLS_CANCELLED, "calls", "cancelled", c,                               \
      "Requests cancelled by their client.")                                  \
    _(CALLS_LOST, "calls", "lost", c,                                         \
      "Requests lost because their worker died.")                             \
    _(CALLS_ABANDONED, "calls", "abandoned", c,                               \
      "Requests cancelled after their client left.")                          \
    _(EXCHANGES_STARTED, "exchanges", "started", c,                           \
      "Messages sent to upstreams.")                                          \
    OF(EXCHANGES_OK, "exchanges", "ended", c, "outcome",                      \
       "ok", "ok", "Exchanges with upstreams ended, by outcome.")             \
    OF(EXCHANGES_REFUSED, "exchanges", "ended", c, "outcome",                 \
       "refused", "refused", "")                                              \
    OF(EXCHANGES_UNREACHABLE, "exchanges", "ended", c, "outcome",             \
       "unreachable", "unreachable", "")                                      \
    OF(EXCHANGES_TIMEOUT, "exchanges", "ended", c, "outcome",                 \
       "timeout", "timeout", "")                                              \
    OF(EXCHANGES_BAD, "exchanges", "ended", c, "outcome", "bad", "bad", "")   \
    OF(EXCHANGES_ABORTED, "exchanges", "ended", c, "outcome",                 \
       "aborted", "aborted", "")


#define NGX_MCP_COUNTER_ENUM(name, ...)  NGX_MCP_COUNTER_ ## name,

typedef enum {
    NGX_MCP_COUNTERS(NGX_MCP_COUNTER_ENUM, NGX_MCP_COUNTER_ENUM)
    NGX_MCP_COUNTER_MAX
} ngx_mcp_counter_e;


#endif /* _NGX_MCP_COUNTER_H_INCLUDED_ */
