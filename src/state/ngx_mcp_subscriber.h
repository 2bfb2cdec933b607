
/*
 * Subscribers: who receives events, and which of them an event is for.  One is
 * a filter, a position in the logs of its group and endpoint, and the stream
 * that carries it now, or none.  A session has one; finding subscribers and
 * moving positions needs no session.
 *
 * An event of a shared log is for all of its readers, or only for those that
 * want one thing: an identity, the lists of one key, a resource or topic that
 * they subscribed to.  A worker knows what the streams it carries want; it is
 * told once that a log has news, reads from the log what these are about, and
 * looks only at streams that want it.
 */

#ifndef _NGX_MCP_SUBSCRIBER_H_INCLUDED_
#define _NGX_MCP_SUBSCRIBER_H_INCLUDED_


#include "ngx_mcp_log.h"


#define NGX_MCP_NEWS      64

/* every stream wants that */
#define NGX_MCP_FILTER_ALL  0

typedef struct {
    uint64_t                pos;
    uint64_t                want;         /* hash, or NGX_MCP_FILTER_ALL */
} ngx_mcp_news_t;


/*
 * The subjects of events in a group's, or endpoint's, log behind *seen, in
 * their order; *n of them, NGX_MCP_NEWS at most.  *seen is moved behind them;
 * behind one for all, whose readers go on to the end themselves, there are no
 * others.
 *
 *   NGX_OK        this is all: the worker will be told of the next event
 *   NGX_AGAIN     there are more
 *   NGX_BUSY      streams of this worker want something new: its doorbell,
 *                 which was rung, says which, and comes first
 *   NGX_DECLINED  the group is gone
 */
ngx_int_t ngx_mcp_group_news(ngx_mcp_zone_t *zone, ngx_mcp_ref_t group,
    uint64_t *seen, ngx_mcp_news_t *news, ngx_uint_t *n);

/*
 * The wishes of a stream beside what is for all; the number, of which no more
 * than max are stored.  When that changes, the stream that carries the general
 * line is woken with NGX_MCP_WAKE_FILTERS; so is one that another relieves of
 * the line, as it hears of no change then.
 */
ngx_uint_t ngx_mcp_stream_filters(ngx_mcp_zone_t *zone,
    ngx_mcp_stream_t *stream, uint64_t *wants, ngx_uint_t max);


#endif /* _NGX_MCP_SUBSCRIBER_H_INCLUDED_ */
