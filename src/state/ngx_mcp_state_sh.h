
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


/* another one is not misread but emptied */
#define NGX_MCP_STATE_VERSION 25

/*
 * Lists of idle sessions: the timeouts of list n < 24 have n significant bits,
 * in units of 1024 ms; the last list has sessions that were not used yet.  A
 * session that has streams is in none, and one that has calls need not be.
 */
#define NGX_MCP_IDLE_CLASSES  25
#define NGX_MCP_IDLE_UNUSED   24
#define NGX_MCP_IDLE_NONE     0xff

/* one whose client sent nothing after initialize may go after this, ms */
#define NGX_MCP_UNUSED_TIMEOUT  60000

/* DELETEs under way in a worker; waiting ones may take this part of a zone */
#define NGX_MCP_PENDING_DELETES        32
#define NGX_MCP_PENDING_DELETES_SHARE  16

/* s->touched is not renewed sooner, ms */
#define ngx_mcp_idle_grain(s)  ((s)->timeout / 16)

/* a session idle for this many of its timeouts ends, though there is room */
#define NGX_MCP_IDLE_END      24

#define NGX_MCP_SERVER_REQUESTS_MAX  256

/* channels of finished calls that a session keeps after all was read */
#define NGX_MCP_FINISHED_MAX  8

/* a longer token is not looked for */
#define NGX_MCP_TOKEN_MAX     NGX_MCP_ID_MAX

/* a prober that never came back, ms */
#define NGX_MCP_PROBE_MAX     60000


/* types of records, their structures, and what they count as in use */

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
 * Blocks that are charged to one client, or to what a tenant's sessions have
 * in common, or (owner of neither) to a tenant with a name, to whose account
 * the others are charged in turn.  It goes with the last record.
 */

typedef struct {
    ngx_mcp_record_sh_t     rec;
    uint64_t                key;          /* hash */
    uint32_t                used;         /* blocks */
    uint32_t                event_blocks; /* of these */
    ngx_mcp_list_sh_t       sessions;     /* extensions */
    ngx_mcp_list_sh_t       events;       /* of sessions and calls */
    ngx_mcp_list_sh_t       common;       /* of groups and topics, by age */
} ngx_mcp_account_sh_t;


/*
 * Up to which position a group's log lost events: those for all by level, 0
 * for those without one, then those for some by the hash of whom.  Of these,
 * those for some kinds of sessions, and gaps whose size is not known, are also
 * known by themselves.  Text: the positions.
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


/* the id of an event that was taken; those with the same rest are chained */

#define NGX_MCP_IDEMPOTENCY   1024

typedef struct {
    uint64_t                key;          /* hash, 0: none */
    ngx_mcp_ref_t           item;         /* that delivers it, if one does */
    uint32_t                sessions;     /* that it addressed */
    uint16_t                next;         /* place + 1 */
    uint16_t                spare;
} ngx_mcp_idempotency_sh_t;


/* the addressees of an event, as hashes; 0: all */

typedef struct {
    uint64_t                uri[NGX_MCP_EVENT_URIS];
    uint64_t                identity;
    uint64_t                audience;
    uint64_t                flags;        /* NGX_MCP_EVENT_LISTED, .._UNLISTED,
                                             .._OFFERED */
} ngx_mcp_target_sh_t;


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
    ngx_mcp_cursor_t        delivered;    /* position */
    uint64_t                identity;     /* hash */
    uint64_t                audience;     /* hash of the list key */
    uint64_t                bloom;        /* of subscriptions */
    ngx_mcp_list_sh_t       subscriptions;
    uint32_t                nsubscriptions;
    uint32_t                group;        /* it reads the logs of that */
    uint32_t                active_stream;  /* 0: none */
    u_char                  level;
    u_char                  offered;      /* NGX_MCP_OFFERED_* */
    u_char                  own_lists;    /* its lists are its own */
    u_char                  listens;      /* for the changes alone that it
                                             wants, by one stream */
} ngx_mcp_subscriber_sh_t;


/* sessions of calls that have none of their own, one call at a time */

typedef enum {
    NGX_MCP_EXCLUSIVE_NONE = 0,           /* it is a client's */
    NGX_MCP_EXCLUSIVE_CLEAN,
    NGX_MCP_EXCLUSIVE_SPENT               /* it ends with its stream */
} ngx_mcp_exclusive_e;


/* owner: group */

typedef struct {
    ngx_mcp_record_sh_t     rec;          /* in the list of its idle class */
    u_char                  id[NGX_MCP_UUID_LEN];
    u_char                  ended;
    u_char                  used;         /* seen after initialize */
    u_char                  idle;         /* class */
    u_char                  exclusive;    /* ngx_mcp_exclusive_e */
    uint32_t                timeout;
    uint64_t                touched;      /* ngx_current_msec of its last use,
                                             to ngx_mcp_idle_grain() */
    uint32_t                event_max;
    uint32_t                event_size;
    ngx_mcp_log_sh_t        log;          /* taken: events, by its streams */
    ngx_mcp_subscriber_sh_t subscriber;
    ngx_mcp_list_sh_t       streams;      /* newest first */
    ngx_mcp_list_sh_t       calls;        /* running */
    ngx_mcp_list_sh_t       finished;     /* calls, oldest first */
    uint32_t                nstreams;
    uint32_t                ngets;
    uint32_t                ncalls;
    uint32_t                channel;      /* used last */
    uint32_t                extension;
    uint32_t                events;
} ngx_mcp_session_sh_t;


/*
 * Members seldom needed.  Text: client name, version, list key, identity,
 * initialize.
 */

typedef struct {
    ngx_mcp_record_sh_t     rec;
    uint32_t                calls;        /* requests of its client */
    uint64_t                seen;         /* ms since the epoch */
    uint64_t                created;
    uint64_t                start;        /* in the group's log */
    uint64_t                start_endpoint;   /* in its endpoint's */
    uint64_t                begin;        /* stamp of the last event before */
    uint64_t                gap;          /* in its log, where the last one of
                                             unknown size is */
    ngx_mcp_ref_t           listed;       /* audience it is counted in */
    uint16_t                name_len;
    uint16_t                version_len;
    uint32_t                key_len;
    uint32_t                identity_len;
    uint32_t                revision;
    uint32_t                limit;
    ngx_mcp_links_sh_t      limited;
    ngx_mcp_links_sh_t      charged;      /* in the list of its account */
    ngx_mcp_list_sh_t       upstreams;    /* upstream sessions */
    ngx_mcp_list_sh_t       server_requests;
    uint32_t                nserver_requests;
    uint16_t                ntopics[2];   /* that are charged to it */
} ngx_mcp_extension_sh_t;


/*
 * Sessions of an endpoint and tenant, or (NGX_MCP_ENDPOINT) of an endpoint and
 * all tenants, that has the log of events for all of these.  Text: the names.
 */

typedef struct {
    ngx_mcp_record_sh_t     rec;          /* in the list of groups */
    uint64_t                number;
    ngx_mcp_log_sh_t        log;
    uint64_t                watch[NGX_MCP_WATCH_BITS / 64];  /* watchers */
    uint32_t                endpoint_len;
    uint32_t                event_max;
    uint32_t                event_size;
    uint32_t                sessions;     /* and subscribers that listen */
    uint32_t                listens;      /* these alone */
    uint32_t                gets;         /* sessions of clients with a GET
                                             stream */
    uint32_t                pending_deletes;
    uint32_t                shared;       /* upstream sessions, and sessions
                                             that are exclusive */
    uint32_t                removing;     /* in the list of these */
    ngx_mcp_links_sh_t      removals;
    ngx_mcp_list_sh_t       topics[2];    /* and other resources */
    uint32_t                ntopics[2];
    uint64_t                announced;    /* that topics changed, when last */
    uint64_t                gone;         /* the last event that went
                                             with its topic */
    uint64_t                gone_used;    /* when that was used last */
    uint32_t                losses;
    uint32_t                dirty;        /* its topics changed */
    ngx_mcp_links_sh_t      announce;
    uint32_t                endpoint;     /* that it belongs to */
    uint32_t                groups;       /* of an endpoint */
    uint64_t                rung;         /* of its log: all watchers were
                                             woken then */
} ngx_mcp_group_sh_t;


#define NGX_MCP_TOPIC_OTHER      0x01     /* no topic */
#define NGX_MCP_TOPIC_ANNOUNCED  0x02

#define NGX_MCP_TOPIC_URIS       256

/* text: URI */

typedef struct {
    ngx_mcp_record_sh_t     rec;          /* owner: group */
    ngx_mcp_log_sh_t        log;
    uint64_t                watch[NGX_MCP_WATCH_BITS / 64];  /* watchers */
    uint64_t                serial;
    uint64_t                used;         /* ngx_current_msec */
    uint64_t                order;        /* of uses */
    uint64_t                time;         /* of the last event */
    uint64_t                lost;         /* the last that was dropped */
    ngx_mcp_ref_t           charged;      /* session whose share it is */
    ngx_mcp_links_sh_t      age;          /* among all, used last at the end */
    uint32_t                bytes;
    uint32_t                subscribers;
    uint32_t                place;        /* in the counts of URIs */
} ngx_mcp_topic_sh_t;


/* beside NGX_MCP_CALL_STREAMED and NGX_MCP_CALL_PLAIN */
#define NGX_MCP_CALL_RUNNING   0x01
#define NGX_MCP_CALL_ANSWERED  0x04
#define NGX_MCP_CALL_FULL      0x10       /* it waits for the reader of its
                                             channel */

/*
 * Text: id, progress token.  One of a caller without a session has no text, is
 * counted by a limit, and has a line only while it is parked.
 */

typedef struct {
    ngx_mcp_task_sh_t       task;           /* owner: session, or none */
    uint32_t                channel;
    uint32_t                active_stream;  /* of its channel */
    ngx_mcp_log_sh_t        log;
    uint64_t                delivered;
    uint32_t                id_len;
    uint32_t                token;          /* hash */
    uint32_t                waits;          /* upstream session */
    uint32_t                upstream;       /* hash; 0: not known */
    ngx_mcp_ref_t           interest;       /* that it waits on */
    uint32_t                limit;          /* 0: a session has it */
    uint32_t                round;          /* of input, parked; 0: it is not */
    uint64_t                expires;        /* ngx_current_msec, parked */
    uint32_t                lost;           /* ngx_mcp_call_lost_e */
} ngx_mcp_call_sh_t;


#define NGX_MCP_STREAM_CLOSING   0x01
#define NGX_MCP_STREAM_REPLACED  0x02
#define NGX_MCP_STREAM_RELIEVED  0x04     /* another one carries its channel */
#define NGX_MCP_STREAM_GET       0x08     /* not a request's own */

typedef struct {
    ngx_mcp_task_sh_t       task;         /* in the session's streams */
    uint32_t                channel;
    uint32_t                spare;
    uint64_t                serial;       /* newest is highest */
    ngx_mcp_ref_t           call;         /* of the channel */
    ngx_mcp_cursor_t        replay_end;   /* the replay ends there */
} ngx_mcp_stream_sh_t;


typedef enum {
    NGX_MCP_UPSTREAM_SESSION_NONE = 0,
    NGX_MCP_UPSTREAM_SESSION_MAKING,
    NGX_MCP_UPSTREAM_SESSION_MADE
} ngx_mcp_upstream_session_e;


/* the GET stream of a session there, since a worker holds it */

typedef enum {
    NGX_MCP_UPSTREAM_STREAM_UNTRIED = 0,
    NGX_MCP_UPSTREAM_STREAM_TRIED,
    NGX_MCP_UPSTREAM_STREAM_ABSENT        /* the upstream offers none */
} ngx_mcp_upstream_stream_e;


/*
 * Owner: a client session, in whose list it is, or a group, if an audience
 * shares it.  Text: upstream, id.  A pending DELETE outlived its owner.
 */

typedef struct {
    ngx_mcp_record_sh_t     rec;          /* worker: that makes it */
    ngx_mcp_ref_t           group;
    uint64_t                upstream;     /* hash */
    uint64_t                since;        /* a GET stream receives events from
                                             this stamp on; 0: there is none */
    uint32_t                upstream_len;
    uint32_t                state;        /* ngx_mcp_upstream_session_e */
    uint32_t                awaited;      /* not by calls only */
    uint32_t                revision;
    uint32_t                serial;       /* of the session there */
    uint32_t                listener;     /* worker + 1 that has its stream */
    uint32_t                had_stream;   /* it had a GET stream, and no gap
                                             was reported since */
    uint32_t                stream;       /* ngx_mcp_upstream_stream_e */

    /* of a shared one */

    uint64_t                audience;     /* hash of the list key */
    uint64_t                touched;      /* ngx_current_msec */
    ngx_mcp_list_sh_t       interests;    /* those with work to do come first */
    uint32_t                holder;       /* worker */
    uint32_t                fence;        /* of its lease */
    uint32_t                limit;

    u_char                  session[NGX_MCP_UUID_LEN];
} ngx_mcp_upstream_session_sh_t;


/*
 * text: id, upstream, the upstream's id and progress token; or id and response
 * of one that a call waits for
 */

typedef struct {
    ngx_mcp_record_sh_t     rec;
    uint32_t                upstream_len;
    uint32_t                id_len;       /* of the upstream's */
    uint32_t                serial;       /* of the upstream session */
    uint32_t                answered;     /* the response is there */
    uint32_t                method;       /* ngx_mcp_method_e */
    ngx_mcp_ref_t           call;         /* block 0: none */
} ngx_mcp_server_request_sh_t;


/* text: URI */

typedef struct {
    ngx_mcp_record_sh_t     rec;
    uint64_t                uri;          /* hash */
    uint64_t                upstream;     /* hash; 0: none has it */
    ngx_mcp_ref_t           interest;     /* shared with others */
    ngx_mcp_ref_t           topic;        /* that it keeps */
    uint32_t                paired;       /* updates of the interest that the
                                             session's own streams had, too, or
                                             will not have */
    uint32_t                delayed;      /* a worker delays an update until
                                             the shared session may have it */
} ngx_mcp_subscription_sh_t;


/* never a session's */
#define NGX_MCP_INTEREST_NEVER  0xffffffff

/* owner: upstream session; text: URI */

typedef struct {
    ngx_mcp_record_sh_t     rec;
    uint64_t                uri;          /* hash */
    uint32_t                count;        /* of subscriptions and calls */
    uint32_t                state;        /* ngx_mcp_interest_e */
    uint32_t                serial;       /* of the session it is made on */
    uint32_t                asked;        /* fence of who asks now */
    uint64_t                when;         /* of the last update, ms */
    uint32_t                updates;      /* for all */
    uint32_t                separate;     /* the last update was for one
                                             session only */
} ngx_mcp_interest_sh_t;


/* text: endpoint, key */

typedef struct {
    ngx_mcp_record_sh_t     rec;
    uint32_t                endpoint_len;
    uint32_t                count;
    ngx_mcp_list_sh_t       list;         /* extensions */
} ngx_mcp_limit_sh_t;


/* text: key, result, reason */

typedef struct {
    ngx_mcp_record_sh_t     rec;          /* worker: asker */
    uint64_t                epoch;
    uint64_t                prober;       /* that asks, or asked last */
    uint64_t                own;          /* since this epoch it holds for one
                                             endpoint alone; 0: for others as
                                             well */
    uint64_t                made;         /* ngx_current_msec */
    uint64_t                since;        /* when it began to be as it is */
    uint64_t                serial;
    uint32_t                key_len;
    uint32_t                result_len;
    uint32_t                what;
    uint32_t                revision;
    uint32_t                status;
    uint32_t                probing;      /* the rest is as before */
    uint32_t                stale;        /* 0, or one of these */
    uint32_t                kept;         /* though asking in vain */
    uint32_t                failures;     /* of asking, one after another */
    uint32_t                spare;
} ngx_mcp_profile_sh_t;

#define NGX_MCP_PROFILE_STALE       1
#define NGX_MCP_PROFILE_SUSPECT     2


#define NGX_MCP_LIST_WANTED        0x01
#define NGX_MCP_LIST_PASS_THROUGH  0x02   /* it cannot be kept */
#define NGX_MCP_LIST_ABSENT        0x04   /* the upstream has none */
#define NGX_MCP_LIST_LEFT_OUT      0x08   /* others were served without it */
#define NGX_MCP_LIST_TELL          0x10   /* after the next fetch, whatever
                                             comes of it */
#define NGX_MCP_LIST_PUBLIC        0x20   /* the content, for all callers */

/* a list of an upstream */

typedef struct {
    uint64_t                due;          /* ngx_current_msec */
    uint64_t                until;        /* likewise: of the content's hint */
    uint32_t                content;
    uint32_t                signals;      /* that came */
    uint32_t                seen;         /* before the last refresh began */
    uint16_t                failures;
    uint16_t                flags;
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
    uint64_t                 asked;       /* ngx_current_msec */
    uint64_t                 epoch;       /* of the configuration and layout of
                                             the upstreams that have parts */
    uint64_t                 layout;
    uint64_t                 versions[NGX_MCP_LIST_KINDS];
    uint32_t                 endpoint_len;
    uint32_t                 tenant_len;
    uint32_t                 members;
    uint32_t                 dirty;       /* kinds that changed */
    uint32_t                 kinds;       /* that are fetched */
    uint32_t                 spare;
    ngx_mcp_list_sh_t        parts;       /* in configured order */
} ngx_mcp_audience_sh_t;


/* text: the upstream */

typedef struct {
    ngx_mcp_record_sh_t      rec;         /* owner: audience */
    uint64_t                 prefix;      /* hash */
    uint32_t                 dirty;       /* kinds that changed */
    ngx_mcp_list_state_sh_t  lists[NGX_MCP_LIST_KINDS];
} ngx_mcp_part_sh_t;


/* text: the list */

typedef struct {
    ngx_mcp_record_sh_t     rec;          /* owner: part; flags: kind */
    uint64_t                filled;       /* ngx_current_msec */
    uint32_t                entries;
    u_char                  digest[NGX_MCP_DIGEST_LEN];
    u_char                  order[NGX_MCP_DIGEST_LEN];
} ngx_mcp_content_sh_t;


/* how a delivery is made, beside the flags of its event */

#define NGX_MCP_SEND_ENDPOINT  0x01       /* these are given */
#define NGX_MCP_SEND_TENANT    0x02
#define NGX_MCP_SEND_CHANNEL   0x04       /* to a session or call */
#define NGX_MCP_SEND_TOPIC     0x08
#define NGX_MCP_SEND_OTHER     0x10       /* no topic but a resource */
#define NGX_MCP_SEND_UNANNOUNCED     0x20
#define NGX_MCP_SEND_GAP       0x40
#define NGX_MCP_SEND_COUNTED   0x80       /* the text has the count */
#define NGX_MCP_SEND_ASKED     0x100      /* to a topic that is there */

/* the flags that a window compares */
#define NGX_MCP_SEND_KEY                                                      \
    (NGX_MCP_SEND_ENDPOINT|NGX_MCP_SEND_TENANT|NGX_MCP_SEND_CHANNEL)

/* one of an item; behind it are endpoint, tenant, URI of the topic and text */

typedef struct {
    ngx_mcp_target_sh_t     target;
    uint64_t                what;         /* hash; 0: it is not joined */
    uint64_t                count;        /* events it stands for */
    ngx_mcp_ref_t           ref;
    uint32_t                endpoint_len;
    uint32_t                tenant_len;
    uint32_t                uri_len;
    uint32_t                text_len;
    uint32_t                counts[NGX_MCP_SEND_COUNTS];
    uint32_t                time;         /* of a window */
    uint32_t                limit;        /* of topics */
    uint32_t                flags;
    uint16_t                how;
    uint16_t                level;
} ngx_mcp_delivery_sh_t;


#define NGX_MCP_ITEM_WAITING    0x01      /* a window that has something */
#define NGX_MCP_ITEM_ATTENDED   0x02      /* its worker runs it by itself */

/* how far an item is delivered */

typedef struct {
    uint64_t                number;       /* of the group that got it last */
    ngx_mcp_ref_t           group;        /* likewise */
    uint32_t                delivery;     /* at hand */
    uint32_t                opened;       /* its window was looked for */
} ngx_mcp_progress_sh_t;


/* windows: by the logarithm of their length */
#define NGX_MCP_COALESCING_CLASSES  32
#define NGX_MCP_COALESCING_NONE     32

/* text: deliveries; of a window, one, without a text if nothing waits */

typedef struct {
    ngx_mcp_record_sh_t     rec;          /* in the list of its class, or of
                                             items */
    uint64_t                deadline;     /* ngx_current_msec */
    uint64_t                key;          /* of a window */
    ngx_mcp_progress_sh_t   at;
    uint32_t                class;
    uint32_t                nonce;        /* of the worker at work */
    uint32_t                deliveries;
} ngx_mcp_item_sh_t;


typedef char  ngx_mcp_event_is_entry[
    (offsetof(ngx_mcp_event_sh_t, skip) == offsetof(ngx_mcp_entry_sh_t, skip))
    ? 1 : -1];


/* the largest records; each begins in one block */

typedef char  ngx_mcp_records_fit[
    (sizeof(ngx_mcp_extension_sh_t) <= NGX_MCP_BLOCK_SIZE
     && sizeof(ngx_mcp_group_sh_t) <= NGX_MCP_BLOCK_SIZE
     && sizeof(ngx_mcp_session_sh_t) <= NGX_MCP_BLOCK_SIZE) ? 1 : -1];


/* an event that one reader of an overlap read first */

#define NGX_MCP_OVERLAPS      2048

typedef struct {
    uint64_t                text;         /* hash and reader, 0: none */
    uint64_t                when;         /* ms */
} ngx_mcp_overlap_sh_t;


#define NGX_MCP_RING_PROFILES        0x01
#define NGX_MCP_RING_PENDING_DELETE  0x02
#define NGX_MCP_RING_LISTENERS       0x04
#define NGX_MCP_RING_INTERESTS       0x08
#define NGX_MCP_RING_LISTS           0x40

/* one that was being made is made, or not */
#define NGX_MCP_RING_UPSTREAM_SESSIONS  0x80

/* lists of the audience in this block */
#define ngx_mcp_list_ring_locked(zone, block)                                 \
    ngx_mcp_worker_ring_all_keys_locked(zone, NGX_MCP_RING_LISTS,             \
                                        NGX_MCP_RING_KEY(block))


/* the exchanges with an upstream by one method; never freed */

typedef struct {
    uint64_t                key;          /* hash of endpoint and upstream */
    uint32_t                method;
    uint32_t                used;         /* set last */
    u_char                  endpoint_len;
    u_char                  upstream_len;
    u_char                  text[NGX_MCP_METRIC_TEXT];
    ngx_atomic_t            outcomes[NGX_MCP_METRIC_OUTCOMES];
    ngx_atomic_t            buckets[NGX_MCP_METRIC_BUCKETS];
    ngx_atomic_t            msec;
} ngx_mcp_metric_sh_t;


struct ngx_mcp_root_sh_s {
    uint64_t                numbers;          /* of groups */
    uint64_t                profile_changes;  /* grows with every change of
                                                 profiles */
    uint64_t                lists_forgotten;  /* calls of ngx_mcp_list_forget()
                                                 */
    uint32_t                oldest;           /* of idempotency */
    uint32_t                next;             /* place of the next overlap */
    uint32_t                metrics;
    uint32_t                wanted;           /* places, a power of two */
    ngx_atomic_t            full;             /* ngx_current_msec: when it was
                                                 logged last that it is full */

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

    /* slot + 1 of the first */
    uint16_t                  ids[NGX_MCP_IDEMPOTENCY];
    ngx_mcp_idempotency_sh_t  idempotency[NGX_MCP_IDEMPOTENCY];
    ngx_mcp_overlap_sh_t      overlaps[NGX_MCP_OVERLAPS];

    /* written without the lock (ngx_mcp_provider.h) */
    uint64_t                  providers[NGX_MCP_PROVIDERS];

    /* topics and other resources, by their URIs; read without the lock */
    uint32_t                  uris[NGX_MCP_TOPIC_URIS];

    ngx_mcp_metric_sh_t     metric[];

    /* behind the metrics: which workers have a want (ngx_mcp_want.h) */
};


/* one that has not ended */

static ngx_inline ngx_mcp_session_sh_t *
ngx_mcp_session_locked(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref)
{
    ngx_mcp_session_sh_t  *s;

    s = ngx_mcp_record(zone, ref, NGX_MCP_SESSION);

    return (s == NULL || s->ended) ? NULL : s;
}


#include "ngx_mcp_state.h"


#endif /* _NGX_MCP_STATE_SH_H_INCLUDED_ */
