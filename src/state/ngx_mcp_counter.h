
/*
 * The counters of mcp_status, one line each: enum, group, family, the label
 * and its value that distinguish it in its family, or "", the name in the
 * group in JSON, "g"auge or "c"ounter.  Counters of a family follow each other;
 * a name without a counter of its own is their sum.
 *
 * The state layer counts sessions, streams, calls.running, .started and .lost,
 * events.out (read by a stream), .dropped_large and .dropped_full (a position
 * without a body) and .lagged (lost to a reader); the layers above count the
 * others.  Sources are counted where an event was read; an event that is read
 * twice is .dropped_repeated, one of a reader without its lease .dropped_stale.
 */

#ifndef _NGX_MCP_COUNTER_H_INCLUDED_
#define _NGX_MCP_COUNTER_H_INCLUDED_


#define NGX_MCP_COUNTERS(_)                                                   \
    _(SESSIONS_LIVE, "sessions", "live", "", "", "live", "g")                 \
    _(SESSIONS_CREATED, "sessions", "created", "", "", "created", "c")        \
    _(SESSIONS_DELETED, "sessions", "deleted", "", "", "deleted", "c")        \
    _(SESSIONS_EXPIRED, "sessions", "expired", "", "", "expired", "c")        \
    _(SESSIONS_EVICTED, "sessions", "evicted", "", "", "evicted", "c")        \
    _(SESSIONS_REFUSED, "sessions", "refused", "", "", "refused", "c")        \
    _(LISTENS_OPEN, "listens", "open", "", "", "open", "g")                   \
    _(LISTENS_OPENED, "listens", "opened", "", "", "opened", "c")             \
    _(STREAMS_OPEN, "streams", "open", "", "", "open", "g")                   \
    _(STREAMS_OPENED, "streams", "opened", "", "", "opened", "c")             \
    _(STREAMS_CLIENT, "streams", "closed", "reason", "client",                \
      "closed_client", "c")                                                   \
    _(STREAMS_DONE, "streams", "closed", "reason", "done",                    \
      "closed_done", "c")                                                     \
    _(STREAMS_SLOW, "streams", "closed", "reason", "slow",                    \
      "closed_slow", "c")                                                     \
    _(STREAMS_REPLACED, "streams", "closed", "reason", "replaced",            \
      "closed_replaced", "c")                                                 \
    _(STREAMS_SESSION, "streams", "closed", "reason", "session",              \
      "closed_session", "c")                                                  \
    _(STREAMS_DRAINED, "streams", "closed", "reason", "drain",                \
      "closed_drain", "c")                                                    \
    _(STREAMS_LOST, "streams", "closed", "reason", "worker",                  \
      "closed_worker", "c")                                                   \
    _(EVENTS_PUBLISHED, "events", "in", "source", "publish",                  \
      "published", "c")                                                       \
    _(EVENTS_FEED, "events", "in", "source", "feed", "feed", "c")             \
    _(EVENTS_UPSTREAM, "events", "in", "source", "upstream",                  \
      "upstream", "c")                                                        \
    _(EVENTS_OUT, "events", "out", "", "", "out", "c")                        \
    _(EVENTS_COALESCED, "events", "coalesced", "", "", "coalesced", "c")      \
    _(EVENTS_LARGE, "events", "dropped", "reason", "large",                   \
      "dropped_large", "c")                                                   \
    _(EVENTS_FULL, "events", "dropped", "reason", "full",                     \
      "dropped_full", "c")                                                    \
    _(EVENTS_UNSENT, "events", "dropped", "reason", "unsent",                 \
      "dropped_unsent", "c")                                                  \
    _(EVENTS_REPEATED, "events", "dropped", "reason", "repeated",             \
      "dropped_repeated", "c")                                                \
    _(EVENTS_STALE, "events", "dropped", "reason", "stale",                   \
      "dropped_stale", "c")                                                   \
    _(EVENTS_INVALID, "events", "dropped", "reason", "invalid",               \
      "dropped_invalid", "c")                                                 \
    _(EVENTS_LAGGED, "events", "lagged", "", "", "lagged", "c")               \
    _(LISTS_REFRESHES, "lists", "refreshes", "", "", "refreshes", "c")        \
    _(LISTS_CHANGED, "lists", "changed", "", "", "changed", "c")              \
    _(LISTS_UNCHANGED, "lists", "unchanged", "", "", "unchanged", "c")        \
    _(LISTS_FAILED, "lists", "failed", "", "", "failed", "c")                 \
    _(CALLS_RUNNING, "calls", "running", "", "", "running", "g")              \
    _(CALLS_LEGACY, "calls", "started", "era", "legacy",                      \
      "started_legacy", "c")                                                  \
    _(CALLS_MODERN, "calls", "started", "era", "modern",                      \
      "started_modern", "c")                                                  \
    _(CALLS_REFUSED, "calls", "refused", "", "", "refused", "c")              \
    _(CALLS_CANCELLED, "calls", "cancelled", "", "", "cancelled", "c")        \
    _(CALLS_LOST, "calls", "lost", "", "", "lost", "c")                       \
    _(CALLS_ABANDONED, "calls", "abandoned", "", "", "abandoned", "c")        \
    _(EXCHANGES_STARTED, "exchanges", "started", "", "", "started", "c")      \
    _(EXCHANGES_OK, "exchanges", "ended", "outcome", "ok", "ok", "c")         \
    _(EXCHANGES_REFUSED, "exchanges", "ended", "outcome", "refused",          \
      "refused", "c")                                                         \
    _(EXCHANGES_UNREACHABLE, "exchanges", "ended", "outcome", "unreachable",  \
      "unreachable", "c")                                                     \
    _(EXCHANGES_TIMEOUT, "exchanges", "ended", "outcome", "timeout",          \
      "timeout", "c")                                                         \
    _(EXCHANGES_BAD, "exchanges", "ended", "outcome", "bad", "bad", "c")      \
    _(EXCHANGES_ABORTED, "exchanges", "ended", "outcome", "aborted",          \
      "aborted", "c")


#define NGX_MCP_COUNTER_ENUM(name, group, family, label, value, member,       \
    kind)                                                                     \
    NGX_MCP_COUNTER_ ## name,

typedef enum {
    NGX_MCP_COUNTERS(NGX_MCP_COUNTER_ENUM)
    NGX_MCP_COUNTER_MAX
} ngx_mcp_counter_e;


#endif /* _NGX_MCP_COUNTER_H_INCLUDED_ */
