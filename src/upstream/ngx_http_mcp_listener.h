
/*
 * The GET stream of a legacy upstream, on the upstream session of a session
 * here (a client's, or the module's own), which is made if there is none.  It
 * is opened again, with growing pauses, for as long as it is wanted; each
 * attempt has a request of its own.  A graceful quit does not end it: whoever
 * started it does.
 */

#ifndef _NGX_HTTP_MCP_LISTENER_H_INCLUDED_
#define _NGX_HTTP_MCP_LISTENER_H_INCLUDED_


#include "ngx_http_mcp_backoff.h"
#include "ngx_http_mcp_talk.h"


#define NGX_HTTP_MCP_LISTENER_ID_MAX  256


typedef struct ngx_http_mcp_listener_s  ngx_http_mcp_listener_t;

struct ngx_http_mcp_listener_s {
    /* in; it is the caller's memory, and zero else */
    ngx_http_mcp_upstream_t  *upstream;
    ngx_mcp_ref_t             session;
    ngx_http_mcp_audience_t   audience;
    ngx_http_headers_in_t    *headers;      /* that cross, or NULL */
    ngx_uint_t                serial;       /* of the link that the last event
                                               id belongs to; 0: any */

    /* asked before each attempt */
    ngx_uint_t              (*wanted)(ngx_http_mcp_listener_t *l);

    /* it is asked for, on the link with this serial; may be NULL */
    void                    (*linked)(ngx_http_mcp_listener_t *l,
                                ngx_uint_t serial);

    /* the stream stands, or has ended for now; may be NULL */
    void                    (*opened)(ngx_http_mcp_listener_t *l);
    void                    (*broken)(ngx_http_mcp_listener_t *l);

    void                    (*message)(ngx_http_mcp_listener_t *l,
                                ngx_http_mcp_talk_t *t, ngx_str_t *text);

    /*
     * It has stopped: it is not wanted, or the upstream offers no stream.  The
     * last call; l may be freed in it.
     */
    void                    (*closed)(ngx_http_mcp_listener_t *l);
    void                     *data;

    /* out */
    ngx_str_t                 last_event_id;
    ngx_uint_t                up;
    unsigned                  resumed:1;    /* it goes on behind the last event
                                               id */
    unsigned                  conflict:1;   /* broken: the upstream has another
                                               stream on the same session */
    unsigned                  lasting:1;    /* a new session did not help */
    unsigned                  told:1;       /* a refusal, in the log */

    /* private */
    u_char                    ids[NGX_HTTP_MCP_LISTENER_ID_MAX];
    ngx_msec_t                since;
    ngx_http_mcp_backoff_t    backoff;
    ngx_uint_t                conflicts;    /* one after the other */
    ngx_http_mcp_talk_t      *talk;         /* the attempt under way */
    ngx_event_t               retry;
};


/*
 * Begins in a later event, behind the event with this id if it is not empty;
 * NULL: behind the last one before it was stopped.
 */
void ngx_http_mcp_listener_start(ngx_http_mcp_listener_t *l, ngx_str_t *id);

/* breaks the stream, and opens it again */
void ngx_http_mcp_listener_again(ngx_http_mcp_listener_t *l);

/* ends it, without a call; from message() or opened() as well */
void ngx_http_mcp_listener_stop(ngx_http_mcp_listener_t *l);


/*
 * Holds the upstream's GET stream of a session for as long as the client holds
 * one of its own, in the first worker that asks; what arrives goes on the
 * session's general line.  from: the client's GET, whose headers cross.
 */
void ngx_http_mcp_listen(ngx_http_mcp_upstream_t *u, ngx_http_request_t *from,
    ngx_mcp_ref_t session, ngx_str_t *id, ngx_str_t *tenant);

/* the doorbell: a session that is listened for has ended or has no GET left */
void ngx_http_mcp_listen_doorbell(ngx_mcp_zone_t *zone);

/* the worker was told to quit */
void ngx_http_mcp_listen_quit(ngx_mcp_zone_t *zone);


#endif /* _NGX_HTTP_MCP_LISTENER_H_INCLUDED_ */
