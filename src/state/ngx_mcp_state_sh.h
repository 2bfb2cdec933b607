
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * The records of this module as they are in the zone, and its root, for the
 * files of this folder only.
 */

#ifndef _NGX_MCP_STATE_SH_H_INCLUDED_
#define _NGX_MCP_STATE_SH_H_INCLUDED_


#include "ngx_mcp_zone_sh.h"
#include "ngx_mcp_lease_sh.h"
#include "ngx_mcp_entry.h"
#include "ngx_mcp_schema.h"
#include "ngx_mcp_session.h"
#include "ngx_mcp_server_request.h"
#include "ngx_mcp_interest.h"
#include "ngx_mcp_log.h"
#include "ngx_mcp_profile.h"
#include "ngx_mcp_list.h"
#include "ngx_mcp_provider.h"
#include "ngx_mcp_outbox.h"
#include "ngx_mcp_metric.h"
#include "ngx_mcp_topic.h"


/* the layout of the records; a zone of another version is emptied */
#define NGX_MCP_STATE_VERSION 29

/*
 * Lists of idle sessions.  The timeouts of the sessions in list n have n
 * significant bits, in units of 1024 ms; those of sessions that were not used
 * yet are in list n + 24.  A session with streams is in no list, a session
 * with calls may be in one.
 */
#define NGX_MCP_IDLE_CLASSES  48
#define NGX_MCP_IDLE_UNUSED   24
#define NGX_MCP_IDLE_NONE     0xff

/* ms; a session may end after this if its client sent only initialize */
#define NGX_MCP_UNUSED_TIMEOUT  60000

/*
 * Most DELETE requests that a worker has under way at a time; pending DELETEs
 * may occupy 1/16 of the zone.
 */
#define NGX_MCP_PENDING_DELETES        32
#define NGX_MCP_PENDING_DELETES_SHARE  16

/* ms; s->touched of a session is renewed only if it is older than this */
#define ngx_mcp_idle_grain(s)  ((s)->timeout / 16)

/* a session that is idle for so many times its timeout ends in any case */
#define NGX_MCP_IDLE_END      24

/* ms; a session of subscriptions/listen without a stream ends after this */
#define NGX_MCP_LISTEN_TIMEOUT  96000

#define NGX_MCP_SERVER_REQUESTS_MAX  256

/* most finished calls whose channel is kept although it was read to the end */
#define NGX_MCP_FINISHED_MAX  8

/* longer progress tokens are not searched for */
#define NGX_MCP_TOKEN_MAX     NGX_MCP_ID_MAX

/* ms; if an upstream did not answer a probe until then, others may probe it */
#define NGX_MCP_PROBE_MAX     60000


/* type of a record, its structure, and its use (NGX_MCP_USES) in mcp_status */

#define NGX_MCP_RECORDS(_)                                                    \
    _(SESSION, ngx_mcp_session_sh_t, SESSIONS)                                \
    _(EXTENSION, ngx_mcp_extension_sh_t, SESSIONS)                            \
    _(GROUP, ngx_mcp_group_sh_t, SESSIONS)                                    \
    _(ENDPOINT, ngx_mcp_group_sh_t, SESSIONS)                                 \
    _(CALL, ngx_mcp_call_sh_t, CALLS)                                         \
    _(STREAM, ngx_mcp_stream_sh_t, STREAMS)                                   \
    _(EVENT, ngx_mcp_event_sh_t, EVENTS)                                      \
    _(UPSTREAM_SESSION, ngx_mcp_upstream_session_sh_t, UPSTREAMS)             \
    _(PENDING_DELETE, ngx_mcp_upstream_session_sh_t, UPSTREAMS)               \
    _(SERVER_REQUEST, ngx_mcp_server_request_sh_t, CALLS)                     \
    _(SUBSCRIPTION, ngx_mcp_subscription_sh_t, SUBSCRIPTIONS)                 \
    _(INTEREST, ngx_mcp_interest_sh_t, SUBSCRIPTIONS)                         \
    _(LIMIT, ngx_mcp_limit_sh_t, SESSIONS)                                    \
    _(PROFILE, ngx_mcp_profile_sh_t, UPSTREAMS)                               \
    _(TOPIC, ngx_mcp_topic_sh_t, TOPICS)                                      \
    _(AUDIENCE, ngx_mcp_audience_sh_t, LISTS)                                 \
    _(PART, ngx_mcp_part_sh_t, LISTS)                                         \
    _(LIST, ngx_mcp_content_sh_t, LISTS)                                      \
    _(ITEM, ngx_mcp_item_sh_t, COALESCED)                                     \
    _(ACCOUNT, ngx_mcp_account_sh_t, SESSIONS)                                \
    _(LOSSES, ngx_mcp_losses_sh_t, SESSIONS)

#define NGX_MCP_RECORD_ENUM(name, type, use)  NGX_MCP_ ## name,

typedef enum {
    NGX_MCP_RECORDS_FIRST = NGX_MCP_TYPE_FIRST - 1,
    NGX_MCP_RECORDS(NGX_MCP_RECORD_ENUM)
    NGX_MCP_TYPE_MAX
} ngx_mcp_type_e;


/*
 * An account counts the blocks that are charged to one client, to all sessions
 * of a tenant together, or to a tenant with a name.  Accounts of the first two
 * kinds are in turn charged to the account of their tenant, if the tenant has a
 * name.  An account is dropped with the last record that is charged to it.
 */

typedef struct {
    ngx_mcp_record_sh_t     rec;
    uint64_t                key;          /* hash */
    uint32_t                used;         /* blocks */
    uint32_t                event_blocks; /* blocks of events in "used" */
    ngx_mcp_list_sh_t       sessions;     /* extensions of sessions that the
                                             account pays for */
    ngx_mcp_list_sh_t       events;       /* events of sessions and calls */
    ngx_mcp_list_sh_t       common;       /* events of groups and topics,
                                             oldest first */
} ngx_mcp_account_sh_t;


/*
 * The losses of a group's log: positions of the last events that were lost.
 * Lost events for all readers have a position for each level (0: without a
 * level); lost events for some readers have one for each hash of their target.
 * Lost events for some kinds of sessions, and gaps of unknown size, have a
 * further position each.  Text: the positions.
 */

#define NGX_MCP_LOSSES_LEVELS  9
#define NGX_MCP_LOSSES_SOME    128
#define NGX_MCP_LOSSES_KINDS   (NGX_MCP_LOSSES_LEVELS + NGX_MCP_LOSSES_SOME)
#define NGX_MCP_LOSSES_GAP     (NGX_MCP_LOSSES_KINDS + 1)
#define NGX_MCP_LOSSES_ALL     (NGX_MCP_LOSSES_GAP + 1)

typedef struct {
    ngx_mcp_record_sh_t     rec;          /* owner: group */
    uint32_t                spare;
} ngx_mcp_losses_sh_t;


/* the id of an event that was consumed */

#define NGX_MCP_IDEMPOTENCY   1024

typedef struct {
    uint64_t                key;          /* hash of the id; 0: the place is
                                             not in use */
    ngx_mcp_ref_t           item;         /* item of the outbox that delivers
                                             the event; block 0: none */
    uint32_t                sessions;     /* number of sessions that the event
                                             was for */
    uint32_t                spare;
} ngx_mcp_idempotency_sh_t;


/* the addressees of an event, as hashes; 0: all */

typedef struct {
    uint64_t                uri[NGX_MCP_EVENT_URIS];
    uint64_t                identity;
    uint64_t                audience;
    uint64_t                flags;        /* those flags of the event
                                             (NGX_MCP_EVENT_*) that select
                                             sessions; in the upper half a hash
                                             of the event's "upstream", or 0 */
} ngx_mcp_target_sh_t;

#define NGX_MCP_EVENT_UPSTREAM  0xffffffff00000000ULL


/* begins as ngx_mcp_entry_sh_t */

typedef struct {
    ngx_mcp_record_sh_t     rec;          /* owner: session, call, group or
                                             topic */
    uint64_t                pos;
    uint32_t                skip;
    uint32_t                level;
    uint64_t                stamp;
    ngx_mcp_target_sh_t     target;
    ngx_mcp_links_sh_t      age;          /* in a list of its account */
} ngx_mcp_event_sh_t;


/*
 * A receiver of events: a filter, a position in the logs that it reads, and the
 * stream that carries it now.  A session has one.
 */

typedef struct {
    ngx_mcp_cursor_t        delivered;    /* behind the event that was
                                             delivered last */
    uint64_t                identity;     /* hash */
    uint64_t                audience;     /* hash of the list key */
    ngx_mcp_list_sh_t       subscriptions;
    uint32_t                nsubscriptions;
    uint32_t                group;        /* it reads the logs of the group and
                                             of its endpoint */
    uint32_t                active_stream;  /* 0: none */
    u_char                  level;
    u_char                  offered;      /* NGX_MCP_OFFERED_* */
    u_char                  own_lists;    /* its lists are not those of an
                                             audience */
    u_char                  listens;      /* it belongs to a subscriptions/
                                             listen request, and only has the
                                             stream of that request */
} ngx_mcp_subscriber_sh_t;


/*
 * An exclusive session is made by the module for calls of a client that has no
 * session.
 */

typedef enum {
    NGX_MCP_EXCLUSIVE_NONE = 0,           /* the session is a client's */
    NGX_MCP_EXCLUSIVE_CLEAN,
    NGX_MCP_EXCLUSIVE_ENDING              /* the session ends with its stream */
} ngx_mcp_exclusive_e;


/* owner: group */

typedef struct {
    ngx_mcp_record_sh_t     rec;          /* in the list of its idle class */
    u_char                  id[NGX_MCP_UUID_LEN];
    u_char                  ended;
    u_char                  used;         /* the client sent a request after
                                             initialize */
    u_char                  idle;         /* its list in root->idle, or
                                             NGX_MCP_IDLE_NONE */
    u_char                  exclusive;    /* ngx_mcp_exclusive_e */
    uint32_t                timeout;      /* ms */
    uint64_t                touched;      /* ngx_current_msec of its last use,
                                             accurate to ngx_mcp_idle_grain() */
    uint32_t                event_max;    /* most events stored for it */
    uint32_t                event_size;   /* most bytes of one event */
    ngx_mcp_log_sh_t        log;          /* log.nread: number of events that
                                             its streams have read */
    ngx_mcp_subscriber_sh_t subscriber;
    ngx_mcp_list_sh_t       streams;      /* newest first */
    ngx_mcp_list_sh_t       calls;        /* running calls */
    ngx_mcp_list_sh_t       finished;     /* finished calls, oldest first */
    uint32_t                nstreams;
    uint32_t                ngets;        /* number of GET streams */
    uint32_t                ncalls;
    uint32_t                channel;      /* number of its newest channel */
    uint32_t                extension;    /* block of ngx_mcp_extension_sh_t */
    uint32_t                events;       /* events stored in its channels */
} ngx_mcp_session_sh_t;


/*
 * The members of a session that are seldom needed.  Text: client name, client
 * version, list key, identity, initialize params.
 */

typedef struct {
    ngx_mcp_record_sh_t     rec;
    uint32_t                calls;        /* number of requests of its client
                                             so far */
    uint64_t                seen;         /* time of the last request, in ms
                                             since the epoch */
    uint64_t                created;      /* ms since the epoch */

    /* the last positions in the shared logs when the session began */
    uint64_t                start;        /* log of the group */
    uint64_t                start_endpoint;   /* log of the endpoint */

    uint64_t                begin;        /* zone's stamp when the session
                                             began */
    uint64_t                gap;          /* position of the last gap of
                                             unknown size in its log */
    ngx_mcp_ref_t           member_of;    /* audience whose lists the session
                                             gets; block 0: none */
    uint16_t                name_len;
    uint16_t                version_len;
    uint32_t                key_len;
    uint32_t                identity_len;
    uint32_t                revision;
    uint32_t                limit;        /* block of the ngx_mcp_limit_sh_t
                                             that counts the session; or 0 */
    ngx_mcp_links_sh_t      limited;      /* in the list of that limit */
    ngx_mcp_links_sh_t      charged;      /* in the list of its account */
    ngx_mcp_list_sh_t       upstreams;    /* upstream sessions */
    ngx_mcp_list_sh_t       server_requests;
    uint32_t                nserver_requests;
    uint16_t                ntopics[2];   /* number of topics, and of other
                                             resources, charged to it */
} ngx_mcp_extension_sh_t;


/*
 * The group of an endpoint and tenant, or (NGX_MCP_ENDPOINT) of an endpoint
 * and all tenants; it has the log of events for all of its sessions.  Text:
 * the names.
 */

typedef struct {
    ngx_mcp_record_sh_t     rec;          /* in the list of groups */
    uint64_t                number;
    ngx_mcp_log_sh_t        log;
    uint64_t                watch[NGX_MCP_WATCH_BITS / 64];  /* workers that
                                                                read the log */
    uint32_t                endpoint_len;
    uint32_t                event_max;    /* most events in the log */
    uint32_t                event_size;   /* most bytes of one event */
    uint32_t                sessions;     /* number of sessions, those of
                                             subscriptions/listen included */
    uint32_t                listens;      /* number of sessions of
                                             subscriptions/listen */
    uint32_t                gets;         /* number of sessions of clients that
                                             have a GET stream */
    uint32_t                pending_deletes;
    uint32_t                shared;       /* number of shared upstream sessions
                                             and exclusive sessions */
    uint32_t                removing;     /* 1: the group is in root->removals,
                                             as its log is being dropped */
    ngx_mcp_links_sh_t      removals;
    ngx_mcp_list_sh_t       topics[2];    /* topics, and other resources */
    uint32_t                ntopics[2];
    uint64_t                announced;    /* time of the last notification that
                                             topics changed */
    uint64_t                gone;         /* position of the last event that
                                             was dropped with its topic */
    uint64_t                gone_used;    /* last use of such a topic */
    uint32_t                losses;       /* block of ngx_mcp_losses_sh_t */
    uint32_t                dirty;        /* 1: topics changed, and the group is
                                             in root->dirty */
    ngx_mcp_links_sh_t      announce;     /* in root->dirty */
    uint32_t                endpoint;     /* block of the endpoint; 0: this is
                                             an endpoint */
    uint32_t                groups;       /* number of groups of an endpoint */
    uint64_t                rung;         /* position in the log up to which
                                             all watching workers were woken */
} ngx_mcp_group_sh_t;


#define NGX_MCP_TOPIC_OTHER      0x01     /* no topic */
#define NGX_MCP_TOPIC_ANNOUNCED  0x02

#define NGX_MCP_TOPIC_URIS       256

/* text: URI */

typedef struct {
    ngx_mcp_record_sh_t     rec;          /* owner: group */
    ngx_mcp_log_sh_t        log;
    uint64_t                watch[NGX_MCP_WATCH_BITS / 64];  /* workers that
                                                                wait for it */
    uint64_t                serial;
    uint64_t                used;         /* ngx_current_msec of the last use */
    uint64_t                order;        /* zone's stamp at the last use */
    uint64_t                time;         /* time of the last event */
    uint64_t                lost;         /* position of the last event that
                                             was dropped */
    ngx_mcp_ref_t           charged;      /* session in whose share of topics
                                             this one counts; block 0: none */
    ngx_mcp_links_sh_t      age;          /* in root->topics, the topic used
                                             last at the end */
    uint32_t                bytes;
    uint32_t                subscribers;  /* number of subscriptions */
    uint32_t                place;        /* index in root->uris */
} ngx_mcp_topic_sh_t;


/* beside NGX_MCP_CALL_STREAMED and NGX_MCP_CALL_PLAIN */
#define NGX_MCP_CALL_RUNNING   0x01
#define NGX_MCP_CALL_ANSWERED  0x04
#define NGX_MCP_CALL_FULL      0x10       /* it waits for the reader of its
                                             channel */

/*
 * Text: id, progress token.  A call of a caller without a session has no text,
 * is counted by a limit, and has a line only in an exclusive session.
 */

typedef struct {
    ngx_mcp_task_sh_t       task;           /* owner: session, or none */
    uint32_t                channel;        /* number of its channel */
    uint32_t                active_stream;  /* block of the stream that carries
                                               the channel; 0: none */
    ngx_mcp_log_sh_t        log;            /* events of the channel */
    uint64_t                delivered;      /* position of the event that was
                                               delivered last */
    uint32_t                id_len;
    uint32_t                token;          /* hash of the progress token */
    uint32_t                waits_for;      /* block of the upstream session
                                               whose handshake the call waits
                                               for; or 0 */
    uint32_t                upstream;       /* hash of the upstream that is
                                               asked; 0: not known */
    ngx_mcp_ref_t           interest;       /* interest that the call uses;
                                               block 0: none */
    uint32_t                limit;          /* block of the limit that counts
                                               the call; 0: its session does */
    uint32_t                round;          /* 0: the call was never parked */
    uint64_t                expires;        /* ngx_current_msec at which the
                                               parked call ends */
    uint32_t                lost;           /* ngx_mcp_call_lost_e */
} ngx_mcp_call_sh_t;


#define NGX_MCP_STREAM_CLOSING   0x01
#define NGX_MCP_STREAM_REPLACED  0x02
#define NGX_MCP_STREAM_RELIEVED  0x04     /* another stream carries its channel
                                             now */
#define NGX_MCP_STREAM_GET       0x08     /* the response of a GET, not of a
                                             POST */

typedef struct {
    ngx_mcp_task_sh_t       task;         /* task.rec.links: in the session's
                                             list of streams */
    uint32_t                channel;      /* number of the channel */
    uint32_t                spare;
    uint64_t                serial;       /* the newest stream has the highest
                                             one */
    ngx_mcp_ref_t           call;         /* call whose channel it is; block 0:
                                             the general channel */
    ngx_mcp_cursor_t        replay_end;   /* events up to this position are a
                                             replay after Last-Event-ID */
} ngx_mcp_stream_sh_t;


typedef enum {
    NGX_MCP_UPSTREAM_SESSION_NONE = 0,
    NGX_MCP_UPSTREAM_SESSION_MAKING,
    NGX_MCP_UPSTREAM_SESSION_MADE
} ngx_mcp_upstream_session_e;


/*
 * The GET stream of an upstream session, since a worker has claimed it
 * (ngx_mcp_upstream_session_stream_claim()).
 */

typedef enum {
    NGX_MCP_UPSTREAM_STREAM_UNTRIED = 0,
    NGX_MCP_UPSTREAM_STREAM_TRIED,
    NGX_MCP_UPSTREAM_STREAM_ABSENT        /* the upstream has no GET stream */
} ngx_mcp_upstream_stream_e;


/*
 * An upstream session.  Its owner is a client session, or, if an audience
 * shares the upstream session, a group.  Text: name of the upstream, id.  An
 * upstream session that has outlived its owner becomes a pending DELETE, a
 * record with the same structure.
 */

typedef struct {
    ngx_mcp_record_sh_t     rec;          /* rec.worker: the worker that makes
                                             the session at the upstream */
    ngx_mcp_ref_t           group;
    uint64_t                upstream;     /* hash of the upstream's name */
    uint64_t                since;        /* zone's stamp when its GET stream
                                             was opened; 0: none is open */
    uint32_t                upstream_len;
    uint32_t                state;        /* ngx_mcp_upstream_session_e */
    uint32_t                awaited;      /* 1: all workers are woken when the
                                             handshake has ended */
    uint32_t                revision;     /* negotiated with the upstream */
    uint32_t                serial;       /* number of the session at the
                                             upstream: a new one with each
                                             handshake */
    uint32_t                listener;     /* the worker that has the GET
                                             stream, + 1; 0: none has */
    uint32_t                had_stream;   /* 1: it had a GET stream, and no gap
                                             was reported since */
    uint32_t                stream;       /* ngx_mcp_upstream_stream_e */

    /* ngx_mcp_upstream_session_level() */

    uint32_t                level;        /* lowest log level that was set at
                                             the upstream */
    uint32_t                wanted;       /* lowest log level that a caller
                                             requested */

    /* only in shared upstream sessions */

    uint64_t                audience;     /* hash of the audience's list key */
    uint64_t                touched;      /* ngx_current_msec of the last use */
    ngx_mcp_list_sh_t       interests;    /* interests, first those for which
                                             the upstream has to be asked */
    uint32_t                moves;        /* how many interests were moved in
                                             that list */
    uint32_t                holder;       /* worker that holds the lease */
    uint32_t                fence;        /* fence of that lease */
    uint32_t                limit;        /* block of the limit that counts
                                             it, or 0 */

    u_char                  session[NGX_MCP_UUID_LEN];  /* id of the client
                                                           session; or an id
                                                           drawn for a shared
                                                           one */
} ngx_mcp_upstream_session_sh_t;


/*
 * A request of an upstream to a client.  Text: id for the client, name of the
 * upstream, id and progress token of the upstream.  If a call waits for the
 * response and the response has come: id for the client, response.
 */

typedef struct {
    ngx_mcp_record_sh_t     rec;
    uint32_t                upstream_len;
    uint32_t                id_len;       /* length of the upstream's id */
    uint32_t                serial;       /* serial of the upstream session */
    uint32_t                answered;     /* the text has the response */
    uint32_t                method;       /* ngx_mcp_method_e */
    ngx_mcp_ref_t           call;         /* call that waits for the response;
                                             block 0: none */
} ngx_mcp_server_request_sh_t;


/* a session's subscription to a resource; text: URI */

typedef struct {
    ngx_mcp_record_sh_t     rec;
    uint64_t                uri;          /* hash */
    uint64_t                upstream;     /* hash of the upstream's name; 0:
                                             the resource is the module's */
    uint64_t                stamp;        /* larger than that of the session's
                                             older subscriptions */
    ngx_mcp_ref_t           interest;     /* interest that it uses; block 0:
                                             the session asked the upstream */
    ngx_mcp_ref_t           topic;        /* topic that stays for it; block 0:
                                             none */
    uint32_t                paired;       /* number of the interest's updates
                                             for which the same update came on
                                             the session's own stream, or never
                                             will */
    uint32_t                delayed;      /* 1: a worker delays an update until
                                             it is known whether the shared
                                             session receives it as well */
} ngx_mcp_subscription_sh_t;


/* serial of an interest that no upstream session has subscribed to */
#define NGX_MCP_INTEREST_NEVER  0xffffffff

/*
 * The subscription of a shared upstream session to a resource, for all sessions
 * and calls that subscribe to the resource.  Owner: the shared upstream
 * session.  Text: URI.
 */

typedef struct {
    ngx_mcp_record_sh_t     rec;
    uint64_t                uri;          /* hash */
    uint32_t                count;        /* number of subscriptions and calls
                                             that use it */
    uint32_t                state;        /* ngx_mcp_interest_e */
    uint32_t                serial;       /* serial of the upstream session
                                             when it was subscribed */
    uint32_t                asker;        /* fence of the holder that has sent
                                             the upstream a request, which is
                                             not answered yet; 0: none */
    uint64_t                when;         /* time of the last update, ms */
    uint32_t                updates;      /* updates for all sessions */
    uint32_t                separate;     /* 1: the last update was for one
                                             session only */
} ngx_mcp_interest_sh_t;


/*
 * Counts the sessions, or calls without a session, of one client at an
 * endpoint, or the shared upstream sessions of the endpoint.  Text: endpoint,
 * key.
 */

typedef struct {
    ngx_mcp_record_sh_t     rec;
    uint32_t                endpoint_len;
    uint32_t                count;
    ngx_mcp_list_sh_t       list;         /* extensions of the sessions that
                                             are counted */
} ngx_mcp_limit_sh_t;


/* the profile of an upstream (ngx_mcp_profile.h); text: key, result, reason */

typedef struct {
    ngx_mcp_record_sh_t     rec;          /* rec.worker: the worker that asks
                                             the upstream */
    uint64_t                epoch;
    uint64_t                prober;       /* epoch of the worker that asks, or
                                             asked last */
    uint64_t                made;         /* ngx_current_msec */
    uint64_t                since;        /* ngx_current_msec at which its
                                             present state began */
    uint64_t                serial;
    uint32_t                key_len;
    uint32_t                result_len;
    uint32_t                what;
    uint32_t                revision;
    uint32_t                status;
    uint32_t                probing;      /* 1: a worker asks the upstream; the
                                             other members are still those of
                                             the last answer */
    uint32_t                stale;        /* 0, NGX_MCP_PROFILE_STALE or
                                             NGX_MCP_PROFILE_SUSPECT */
    uint32_t                kept;         /* 1: the upstream did not answer the
                                             last time: this is the profile of
                                             an earlier answer */
    uint32_t                failures;     /* attempts in a row that failed */
    uint32_t                spare;
} ngx_mcp_profile_sh_t;

#define NGX_MCP_PROFILE_STALE       1
#define NGX_MCP_PROFILE_SUSPECT     2


#define NGX_MCP_LIST_WANTED        0x01
#define NGX_MCP_LIST_PASS_THROUGH  0x02   /* the list cannot be kept */
#define NGX_MCP_LIST_ABSENT        0x04   /* the upstream has no such list */
#define NGX_MCP_LIST_LEFT_OUT      0x08   /* a client got the lists of other
                                             upstreams without this one */
#define NGX_MCP_LIST_NOTIFY          0x10   /* clients are notified after the
                                             next fetch in any case */
#define NGX_MCP_LIST_PUBLIC        0x20   /* the content is for all callers */

/* a list of one kind of an upstream */

typedef struct {
    uint64_t                due;          /* ngx_current_msec of the next
                                             refresh */
    uint64_t                until;        /* ngx_current_msec up to which the
                                             content is fresh by its hint */
    uint32_t                content;      /* block of ngx_mcp_content_sh_t, or
                                             0 */
    uint32_t                signals;      /* number of signals so far */
    uint32_t                seen;         /* number of signals when the last
                                             refresh began */
    uint16_t                failures;     /* failed refreshes in a row */
    uint16_t                flags;        /* NGX_MCP_LIST_WANTED and so on */
} ngx_mcp_list_state_sh_t;


/*
 * The lists of an audience have a part for each upstream.  While layout is 0,
 * parts are being made or dropped.  Text: endpoint, tenant, list key.
 */

typedef struct {
    ngx_mcp_record_sh_t      rec;         /* in the list of audiences */
    uint64_t                 number;
    uint64_t                 group;       /* hash of endpoint and tenant */
    uint64_t                 key;         /* hash of the list key */
    uint64_t                 used;        /* ngx_current_msec of the last use */

    /* the configuration that made the parts, and the digest of its upstreams */
    uint64_t                 epoch;
    uint64_t                 layout;

    uint64_t                 versions[NGX_MCP_LIST_KINDS];
    uint32_t                 endpoint_len;
    uint32_t                 tenant_len;
    uint32_t                 members;     /* number of sessions */
    uint32_t                 dirty;       /* bits of kinds that changed as a
                                             part was dropped */
    uint32_t                 kinds;       /* bits of kinds that are fetched */
    uint32_t                 spare;
    ngx_mcp_list_sh_t        parts;       /* in configured order */
} ngx_mcp_audience_sh_t;


/* the lists of one upstream for an audience; text: name of the upstream */

typedef struct {
    ngx_mcp_record_sh_t      rec;         /* owner: audience */
    uint64_t                 prefix;      /* hash of the prefix of names */
    uint32_t                 dirty;       /* bits of kinds that changed, of
                                             which no client was notified */
    ngx_mcp_list_state_sh_t  lists[NGX_MCP_LIST_KINDS];
} ngx_mcp_part_sh_t;


/* the content of a list; text: its entries */

typedef struct {
    ngx_mcp_record_sh_t     rec;          /* owner: part; flags: kind */
    uint64_t                filled;       /* ngx_current_msec at which it was
                                             stored or confirmed */
    uint32_t                entries;      /* number of entries */
    u_char                  digest[NGX_MCP_DIGEST_LEN];  /* of the entries in
                                                            any order */
    u_char                  order[NGX_MCP_DIGEST_LEN];   /* of the entries in
                                                            this order */
} ngx_mcp_content_sh_t;


/* flags of a delivery, in addition to the flags of its event */

#define NGX_MCP_SEND_ENDPOINT  0x01       /* for one endpoint */
#define NGX_MCP_SEND_TENANT    0x02       /* for one tenant */
#define NGX_MCP_SEND_CHANNEL   0x04       /* to a session or call */
#define NGX_MCP_SEND_TOPIC     0x08
#define NGX_MCP_SEND_OTHER     0x10       /* to a resource that is no topic */
#define NGX_MCP_SEND_UNANNOUNCED     0x20 /* a new topic is not announced */
#define NGX_MCP_SEND_GAP       0x40
#define NGX_MCP_SEND_COUNTED   0x80       /* the text has the count even if it
                                             is 1 */
#define NGX_MCP_SEND_EXISTING  0x100      /* to an existing topic only */

/* the flags that are equal in all deliveries of a window */
#define NGX_MCP_SEND_KEY                                                      \
    (NGX_MCP_SEND_ENDPOINT|NGX_MCP_SEND_TENANT|NGX_MCP_SEND_CHANNEL)

/* a delivery in an item; endpoint, tenant, URI of the topic and text follow */

typedef struct {
    ngx_mcp_target_sh_t     target;
    uint64_t                coalesce_key; /* hash of the delivery's key; 0: the
                                             event is sent at once */
    uint64_t                count;        /* number of events that this one
                                             stands for */
    ngx_mcp_ref_t           ref;          /* session or call; block 0: none */
    uint32_t                endpoint_len;
    uint32_t                tenant_len;
    uint32_t                uri_len;
    uint32_t                text_len;
    uint32_t                counts[NGX_MCP_SEND_COUNTS];
    uint32_t                time;         /* length of the window, ms */
    uint32_t                limit;        /* most topics in a group */
    uint32_t                flags;        /* NGX_MCP_EVENT_* */
    uint16_t                how;          /* NGX_MCP_SEND_* */
    uint16_t                level;        /* of notifications/message, or 0 */
} ngx_mcp_delivery_sh_t;


#define NGX_MCP_ITEM_WAITING    0x01      /* a window that is not empty */
#define NGX_MCP_ITEM_ATTENDED   0x02      /* the sender of the post calls
                                             ngx_mcp_outbox_run() */

/* the cursor of an item */

typedef struct {
    uint64_t                number;       /* ngx_mcp_groups_t.number */
    ngx_mcp_ref_t           group;        /* the group that got it last */
    uint32_t                delivery;     /* index of the next delivery */
    uint32_t                opened;       /* 1: the next delivery has been in a
                                             window, or needs none */
} ngx_mcp_progress_sh_t;


/* windows: by the logarithm of their length */
#define NGX_MCP_COALESCING_CLASSES  32
#define NGX_MCP_COALESCING_NONE     32

/*
 * An item of the outbox, or a coalescing window.  Text: its deliveries.  A
 * window has one, which has no text if no event waits.
 */

typedef struct {
    ngx_mcp_record_sh_t     rec;          /* in the list of its class, or of
                                             items */
    uint64_t                deadline;     /* ngx_current_msec */
    uint64_t                key;          /* of a window: hash that all its
                                             deliveries have in common */
    ngx_mcp_progress_sh_t   at;
    uint32_t                class;        /* list of the window in
                                             root->coalescing; or
                                             NGX_MCP_COALESCING_NONE */
    uint32_t                nonce;        /* nonce of the worker (rec.worker)
                                             that delivers the item */
    uint32_t                deliveries;   /* number of deliveries */
} ngx_mcp_item_sh_t;


typedef char  ngx_mcp_event_is_entry[
    (offsetof(ngx_mcp_event_sh_t, skip) == offsetof(ngx_mcp_entry_sh_t, skip))
    ? 1 : -1];


/* the largest records; each begins in one block */

typedef char  ngx_mcp_records_fit[
    (sizeof(ngx_mcp_extension_sh_t) <= NGX_MCP_BLOCK_SIZE
     && sizeof(ngx_mcp_group_sh_t) <= NGX_MCP_BLOCK_SIZE
     && sizeof(ngx_mcp_session_sh_t) <= NGX_MCP_BLOCK_SIZE) ? 1 : -1];


/* an event that only one reader of an overlap has read so far */

#define NGX_MCP_OVERLAPS      2048

typedef struct {
    uint64_t                text;         /* hash of the text and the reader;
                                             0: the place is not in use */
    uint64_t                when;         /* time at which it was read, ms */
} ngx_mcp_overlap_sh_t;


#define NGX_MCP_RING_PROFILES        0x01
#define NGX_MCP_RING_PENDING_DELETE  0x02
#define NGX_MCP_RING_LISTENERS       0x04
#define NGX_MCP_RING_INTERESTS       0x08
#define NGX_MCP_RING_LISTS           0x40

/* an upstream session that was being made is made, or not */
#define NGX_MCP_RING_UPSTREAM_SESSIONS  0x80

/* rings all workers for lists of the audience in this block */
#define ngx_mcp_list_ring_locked(zone, block)                                 \
    ngx_mcp_worker_ring_all_keys_locked(zone, NGX_MCP_RING_LISTS,             \
                                        NGX_MCP_RING_KEY(block))


/* the exchanges with an upstream by one method; never freed */

typedef struct {
    uint64_t                key;          /* hash of endpoint and upstream */
    uint32_t                method;
    uint32_t                used;         /* set when all members above and
                                             "text" are set */
    u_char                  endpoint_len;
    u_char                  upstream_len;
    u_char                  text[NGX_MCP_METRIC_TEXT];
    ngx_atomic_t            outcomes[NGX_MCP_METRIC_OUTCOMES];
    ngx_atomic_t            buckets[NGX_MCP_METRIC_BUCKETS];
    ngx_atomic_t            msec;
} ngx_mcp_metric_sh_t;


struct ngx_mcp_root_sh_s {
    uint64_t                numbers;          /* last number given to a group
                                                 or audience */
    uint64_t                profile_changes;  /* ngx_mcp_profile_changes() */
    uint64_t                lists_forgotten;  /* calls of ngx_mcp_list_forget()
                                                 */
    uint32_t                oldest;           /* place in "idempotency" */
    uint32_t                next;             /* place of the next overlap */
    uint32_t                metrics;          /* number of rows in "metric" */
    uint32_t                wanted;           /* number of places of wants; a
                                                 power of two */
    ngx_atomic_t            full;             /* ngx_current_msec of the last
                                                 log entry that the zone is
                                                 full */

    /* empty in a zone without records, up to idempotency and overlaps */

    ngx_mcp_list_sh_t       idle[NGX_MCP_IDLE_CLASSES];
    ngx_mcp_list_sh_t       groups;
    ngx_mcp_list_sh_t       endpoints;
    ngx_mcp_list_sh_t       removals;
    ngx_mcp_list_sh_t       dirty;        /* groups whose topics changed */
    ngx_mcp_list_sh_t       topics;
    ngx_mcp_list_sh_t       profiles;     /* oldest first */
    ngx_mcp_list_sh_t       shared;       /* touched last at the end */
    ngx_mcp_list_sh_t       pending_deletes;
    ngx_mcp_list_sh_t       audiences;    /* by number */
    ngx_mcp_list_sh_t       items;        /* of the outbox, oldest first */

    /* by deadline */
    ngx_mcp_list_sh_t       coalescing[NGX_MCP_COALESCING_CLASSES];

    ngx_mcp_idempotency_sh_t  idempotency[NGX_MCP_IDEMPOTENCY];
    ngx_mcp_overlap_sh_t      overlaps[NGX_MCP_OVERLAPS];

    /* written without the lock (ngx_mcp_provider.h) */
    uint64_t                  providers[NGX_MCP_PROVIDERS];

    /* counts of topics and other resources, by URI; read without the lock */
    uint32_t                  uris[NGX_MCP_TOPIC_URIS];

    ngx_mcp_metric_sh_t     metric[];

    /*
     * after the metrics: sets of workers, by place of a want (ngx_mcp_want.c)
     */
};


/* returns the session of a reference; NULL: it has ended */

static ngx_inline ngx_mcp_session_sh_t *
ngx_mcp_session_locked(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref)
{
    ngx_mcp_session_sh_t  *s;

    s = ngx_mcp_record(zone, ref, NGX_MCP_SESSION);

    return (s == NULL || s->ended) ? NULL : s;
}


#include "ngx_mcp_state.h"


#endif /* _NGX_MCP_STATE_SH_H_INCLUDED_ */
