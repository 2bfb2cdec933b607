
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Subscribers receive events.  A subscriber is a set of wants, a position in
 * the logs of its group and endpoint, and the stream that carries it now, or
 * none.  Each session has a subscriber.
 *
 * An event of a shared log is for all readers of the log, or only for readers
 * that want one thing: an identity, the lists of one key, a resource or topic
 * to which they subscribed.  A want is the hash of such a thing.  A worker
 * knows the wants of its streams.  When it is notified that a log has new
 * events, it reads the wants of these events from the log, and examines only
 * streams that have these wants.
 *
 * The zone knows which workers have streams with a want: it has a table with a
 * set of workers in each place, and the last bits of a want are the number of
 * its place.  Workers change the sets without the lock.  An event for a want
 * wakes only the workers in the set of the want's place; one of NGX_MCP_NEWS
 * events wakes all.
 */

#ifndef _NGX_MCP_SUBSCRIBER_H_INCLUDED_
#define _NGX_MCP_SUBSCRIBER_H_INCLUDED_


#include "ngx_mcp_log.h"


#define NGX_MCP_NEWS      64

/* the want of an event for all readers; every stream has it */
#define NGX_MCP_WANT_ALL  0

typedef struct {
    uint64_t                pos;          /* position of the first event that
                                             the entry stands for */
    uint64_t                want;         /* hash, or NGX_MCP_WANT_ALL */
} ngx_mcp_news_t;


/*
 * Lists the wants of the events behind *seen in the log of a group or
 * endpoint, in the order of the events; *n becomes their number, NGX_MCP_NEWS
 * at most.  *seen is moved behind them.  As a reader of one event reads on to
 * the end of the log, several events in a row with the same want are listed
 * once, and the list ends with an event for all.
 *
 *   NGX_OK        this is all: the worker will be notified of the next event
 *   NGX_AGAIN     there are more
 *   NGX_BUSY      streams of this worker have new wants: its doorbell was rung
 *                 for them, and has to be handled first
 *   NGX_DECLINED  the group is gone
 */
ngx_int_t ngx_mcp_group_news(ngx_mcp_zone_t *zone, ngx_mcp_ref_t group,
    uint64_t *seen, ngx_mcp_news_t *news, ngx_uint_t *n);

/*
 * Lists the wants of a stream, beside NGX_MCP_WANT_ALL, that its session got
 * since the last call; all of them if stream->wanted is 0.  Returns their
 * number, and stores no more than max; if there are more, the next call lists
 * them again.  When a session gets a want, the stream that carries its general
 * channel is woken with NGX_MCP_WAKE_WANTS.  A stream is woken so, too, when
 * another stream carries the channel instead, as it gets no changes any more.
 * Streams are not notified of wants that their session has lost: the session
 * does not get events for these.
 */
ngx_uint_t ngx_mcp_stream_wants(ngx_mcp_zone_t *zone,
    ngx_mcp_stream_t *stream, uint64_t *wants, ngx_uint_t max);

/*
 * Has the processor load the records into its cache that the stream needs to
 * read an event for this want.  The first call loads records whose place is
 * known; the second one, with "again", those to which they refer.
 */
void ngx_mcp_stream_prefetch(ngx_mcp_zone_t *zone, ngx_mcp_stream_t *stream,
    uint64_t want, ngx_uint_t again);

/*
 * The wants of this worker (ngx_mcp_want.c).  make() allocates an array that
 * counts the wants that were added, by place; the caller frees it.  NULL: no
 * memory.  A stream whose wants were added has to read its channel
 * once more, as events before that did not wake this worker.
 */
uint32_t *ngx_mcp_wants_make(ngx_mcp_zone_t *zone);
void ngx_mcp_want_add(ngx_mcp_zone_t *zone, uint32_t *counts, uint64_t want);
void ngx_mcp_want_remove(ngx_mcp_zone_t *zone, uint32_t *counts,
    uint64_t want);


#endif /* _NGX_MCP_SUBSCRIBER_H_INCLUDED_ */
