
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_state_sh.h"
#include "ngx_mcp_load.h"


/*
 * Added to saved stamps and channel numbers, as higher ones may have been used
 * after the file was written.
 */
#define NGX_MCP_LOAD_STAMPS    0x100000000ULL
#define NGX_MCP_LOAD_CHANNELS  0x10000

/* blocks that loading an entity may need besides the blocks of its text */
#define NGX_MCP_LOAD_BLOCKS    128

#define NGX_MCP_LOAD_ANY       0xffffffff


/* an entity of the file; the entities of a list are sorted by "order" */

typedef struct {
    uint64_t                order;
    uint64_t                id;           /* number by which other entities
                                             name this one */
    ngx_str_t               text;
    ngx_mcp_ref_t           ref;          /* the record of this entity or, until
                                             that is made, of its owner */
} ngx_mcp_load_entity_t;


typedef struct {
    ngx_mcp_load_entity_t  *elts;
    size_t                  n;
    size_t                  max;
    size_t                  sorted;       /* number of elements when the list
                                             was sorted last */
} ngx_mcp_load_list_t;


typedef enum {
    NGX_MCP_LOAD_GROUPS = 0,
    NGX_MCP_LOAD_ENDPOINTS,
    NGX_MCP_LOAD_TOPICS,
    NGX_MCP_LOAD_SESSIONS,
    NGX_MCP_LOAD_UPSTREAMS,
    NGX_MCP_LOAD_SUBSCRIPTIONS,
    NGX_MCP_LOAD_CALLS,
    NGX_MCP_LOAD_LEASES,
    NGX_MCP_LOAD_EVENTS,
    NGX_MCP_LOAD_IDS,
    NGX_MCP_LOAD_OWNERS,                  /* copies of entities that have a
                                             record, sorted by id */
    NGX_MCP_LOAD_LISTS
} ngx_mcp_load_list_e;


typedef struct {
    ngx_uint_t              tag;
    ngx_uint_t              order;
} ngx_mcp_load_kind_t;


typedef struct {
    ngx_mcp_zone_t         *zone;
    ngx_mcp_saved_t        *saved;
    ngx_mcp_load_list_t     lists[NGX_MCP_LOAD_LISTS];
    uint64_t                key[2];
    uint64_t                stamp;
    uint32_t                generation;
    ngx_uint_t              failed;       /* 1: there was no memory */
} ngx_mcp_load_t;


/* loads an entity; a: its attributes */

typedef void (*ngx_mcp_load_pt)(ngx_mcp_load_t *load,
    ngx_mcp_load_entity_t *entity, ngx_str_t *a);


typedef struct {
    ngx_mcp_load_list_e     list;
    ngx_uint_t              locked;       /* the handler runs under the lock */
    ngx_mcp_load_pt         handler;      /* NULL: the entities of the list
                                             are added to the owners */
} ngx_mcp_load_step_t;


static void ngx_mcp_load_run(ngx_mcp_load_t *load);
static ngx_int_t ngx_mcp_load_scan(ngx_mcp_load_t *load);
static ngx_int_t ngx_mcp_load_zone(ngx_mcp_load_t *load, ngx_str_t *text);
static void ngx_mcp_load_push(ngx_mcp_load_t *load, ngx_uint_t n,
    ngx_mcp_load_entity_t *entity);
static void ngx_mcp_load_owners(ngx_mcp_load_t *load, ngx_uint_t n);
static int ngx_mcp_load_compare(const void *one, const void *two);
static size_t ngx_mcp_load_first(ngx_mcp_load_list_t *list, uint64_t order);
static void ngx_mcp_load_each(ngx_mcp_load_t *load,
    ngx_mcp_load_step_t *step);
static void ngx_mcp_load_parts(ngx_mcp_load_t *load, ngx_uint_t n,
    ngx_mcp_load_entity_t *owner, ngx_mcp_load_pt handler);
static ngx_uint_t ngx_mcp_load_room_locked(ngx_mcp_zone_t *zone, size_t len);
static ngx_mcp_load_entity_t *ngx_mcp_load_owner(ngx_mcp_load_t *load,
    ngx_str_t *a);
static ngx_mcp_group_sh_t *ngx_mcp_load_owner_group_locked(
    ngx_mcp_load_t *load, ngx_str_t *a);
static void ngx_mcp_load_group_locked(ngx_mcp_load_t *load,
    ngx_mcp_load_entity_t *entity, ngx_str_t *a);
static void ngx_mcp_load_endpoint_locked(ngx_mcp_load_t *load,
    ngx_mcp_load_entity_t *entity, ngx_str_t *a);
static void ngx_mcp_load_log_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_group_sh_t *g, ngx_str_t *a);
static void ngx_mcp_load_topic_locked(ngx_mcp_load_t *load,
    ngx_mcp_load_entity_t *entity, ngx_str_t *a);
static void ngx_mcp_load_topic_share_locked(ngx_mcp_load_t *load,
    ngx_mcp_load_entity_t *entity, ngx_str_t *a);
static void ngx_mcp_load_group_parts(ngx_mcp_load_t *load,
    ngx_mcp_load_entity_t *entity, ngx_str_t *a);
static void ngx_mcp_load_shared(ngx_mcp_load_t *load,
    ngx_mcp_load_entity_t *entity, ngx_str_t *a);
static void ngx_mcp_load_own(ngx_mcp_load_t *load,
    ngx_mcp_load_entity_t *entity, ngx_str_t *a);
static void ngx_mcp_load_upstream(ngx_mcp_load_t *load, ngx_mcp_ref_t owner,
    ngx_str_t *a);
static void ngx_mcp_load_session(ngx_mcp_load_t *load,
    ngx_mcp_load_entity_t *entity, ngx_str_t *a);
static ngx_int_t ngx_mcp_load_session_new(ngx_mcp_load_t *load, ngx_str_t *a,
    ngx_mcp_session_new_t *in);
static void ngx_mcp_load_session_more(ngx_mcp_load_t *load, ngx_str_t *a,
    ngx_mcp_ref_t ref);
static void ngx_mcp_load_subscription(ngx_mcp_load_t *load,
    ngx_mcp_load_entity_t *entity, ngx_str_t *a);
static void ngx_mcp_load_interest_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_interest_sh_t *in);
static void ngx_mcp_load_call(ngx_mcp_load_t *load,
    ngx_mcp_load_entity_t *entity, ngx_str_t *a);
static void ngx_mcp_load_call_end_locked(ngx_mcp_load_t *load,
    ngx_mcp_load_entity_t *entity, ngx_str_t *a);
static void ngx_mcp_load_event_locked(ngx_mcp_load_t *load,
    ngx_mcp_load_entity_t *entity, ngx_str_t *a);
static void *ngx_mcp_load_record_locked(ngx_mcp_zone_t *zone,
    ngx_mcp_ref_t ref);
static void ngx_mcp_load_counted_locked(ngx_mcp_zone_t *zone, void *owner,
    ngx_mcp_event_sh_t *e);
static void ngx_mcp_load_lease(ngx_mcp_load_t *load,
    ngx_mcp_load_entity_t *entity, ngx_str_t *a);
static void ngx_mcp_load_id_locked(ngx_mcp_load_t *load,
    ngx_mcp_load_entity_t *entity, ngx_str_t *a);
static void ngx_mcp_load_end_locked(ngx_mcp_load_t *load,
    ngx_mcp_load_entity_t *entity, ngx_str_t *a);


#define ngx_mcp_load_number(a, name)                                          \
    ngx_mcp_tlv_value(&(a)[NGX_MCP_TLV_ ## name])

#define ngx_mcp_load_text(a, name)  ((a)[NGX_MCP_TLV_ ## name])


/* for each list: the tag of its entities, and the attribute that sorts them */

static ngx_mcp_load_kind_t  ngx_mcp_load_kinds[] = {
    { NGX_MCP_TLV_GROUP, NGX_MCP_TLV_REF },
    { NGX_MCP_TLV_ALL_TENANTS, NGX_MCP_TLV_REF },
    { NGX_MCP_TLV_TOPIC, NGX_MCP_TLV_ORDER },
    { NGX_MCP_TLV_SESSION, NGX_MCP_TLV_IDLE },
    { NGX_MCP_TLV_UPSTREAM_SESSION, NGX_MCP_TLV_OWNER },
    { NGX_MCP_TLV_SUBSCRIPTION, NGX_MCP_TLV_OWNER },
    { NGX_MCP_TLV_CALL, NGX_MCP_TLV_OWNER },
    { NGX_MCP_TLV_LEASE, NGX_MCP_TLV_REF },
    { NGX_MCP_TLV_EVENT, NGX_MCP_TLV_STAMP },
    { NGX_MCP_TLV_EVENT_ID, NGX_MCP_TLV_REF }
};


/*
 * The order of loading.  Upstream sessions, subscriptions and calls are loaded
 * with the group or session that owns them.
 */

static ngx_mcp_load_step_t  ngx_mcp_load_steps[] = {
    { NGX_MCP_LOAD_GROUPS, 1, ngx_mcp_load_group_locked },
    { NGX_MCP_LOAD_ENDPOINTS, 1, ngx_mcp_load_endpoint_locked },
    { NGX_MCP_LOAD_GROUPS, 0, NULL },
    { NGX_MCP_LOAD_ENDPOINTS, 0, NULL },
    { NGX_MCP_LOAD_TOPICS, 1, ngx_mcp_load_topic_locked },
    { NGX_MCP_LOAD_GROUPS, 0, ngx_mcp_load_group_parts },
    { NGX_MCP_LOAD_SESSIONS, 0, ngx_mcp_load_session },
    { NGX_MCP_LOAD_TOPICS, 1, ngx_mcp_load_topic_share_locked },
    { NGX_MCP_LOAD_LEASES, 0, ngx_mcp_load_lease },
    { NGX_MCP_LOAD_TOPICS, 0, NULL },
    { NGX_MCP_LOAD_SESSIONS, 0, NULL },
    { NGX_MCP_LOAD_CALLS, 0, NULL },
    { NGX_MCP_LOAD_EVENTS, 1, ngx_mcp_load_event_locked },
    { NGX_MCP_LOAD_CALLS, 1, ngx_mcp_load_call_end_locked },
    { NGX_MCP_LOAD_IDS, 1, ngx_mcp_load_id_locked },
    { NGX_MCP_LOAD_ENDPOINTS, 1, ngx_mcp_load_end_locked },
    { NGX_MCP_LOAD_GROUPS, 1, ngx_mcp_load_end_locked }
};


ngx_int_t
ngx_mcp_load(ngx_mcp_zone_t *zone, ngx_mcp_saved_t *saved)
{
    ngx_int_t       rc;
    ngx_uint_t      i;
    ngx_mcp_load_t  load;

    ngx_memzero(&load, sizeof(ngx_mcp_load_t));

    load.zone = zone;
    load.saved = saved;

    saved->sessions = 0;
    saved->ended = 0;
    saved->lost = 0;

    rc = ngx_mcp_load_scan(&load);

    if (rc == NGX_OK) {
        ngx_mcp_load_run(&load);
    }

    for (i = 0; i < NGX_MCP_LOAD_LISTS; i++) {
        if (load.lists[i].elts) {
            ngx_free(load.lists[i].elts);
        }
    }

    return rc;
}


static void
ngx_mcp_load_run(ngx_mcp_load_t *load)
{
    ngx_uint_t            i;
    ngx_mcp_zone_t       *zone;
    ngx_mcp_load_step_t  *step;

    zone = load->zone;

    ngx_mcp_zone_lock(zone);

    /* the zone has no records yet whose hashes depend on the key */

    ngx_mcp_touch(zone, &zone->sh->key);
    ngx_memcpy(zone->sh->key, load->key, sizeof(load->key));
    zone->sh->stamp = load->stamp
                      + (load->saved->last ? 0 : NGX_MCP_LOAD_STAMPS);

    ngx_mcp_zone_unlock(zone);

    for (i = 0;
         i < sizeof(ngx_mcp_load_steps) / sizeof(ngx_mcp_load_step_t);
         i++)
    {
        step = &ngx_mcp_load_steps[i];

        if (step->handler) {
            ngx_mcp_load_each(load, step);

        } else {
            ngx_mcp_load_owners(load, step->list);
        }
    }

    /* ids of events contain this number: clients' ids of events stay valid */

    ngx_mcp_zone_lock(zone);

    if (load->generation) {
        ngx_mcp_touch(zone, &zone->sh->generation);
        zone->sh->generation = load->generation;
    }

    ngx_mcp_zone_unlock(zone);
}


static ngx_int_t
ngx_mcp_load_scan(ngx_mcp_load_t *load)
{
    ngx_int_t               rc;
    ngx_str_t               left, text, a[NGX_MCP_TLV_ATTRIBUTES];
    ngx_uint_t              i, tag;
    ngx_mcp_load_entity_t   entity;

    left = load->saved->text;

    if (ngx_mcp_tlv_next(&left, &tag, &text) != NGX_OK
        || tag != NGX_MCP_TLV_ZONE
        || ngx_mcp_load_zone(load, &text) != NGX_OK)
    {
        return NGX_DECLINED;
    }

    ngx_memzero(&entity, sizeof(ngx_mcp_load_entity_t));

    while ((rc = ngx_mcp_tlv_next(&left, &tag, &entity.text)) == NGX_OK) {

        for (i = 0; i < NGX_MCP_LOAD_OWNERS; i++) {

            if (ngx_mcp_load_kinds[i].tag != tag) {
                continue;
            }

            ngx_mcp_tlv_attributes(&entity.text, a);

            entity.id = ngx_mcp_load_number(a, REF);
            entity.order = ngx_mcp_tlv_value(&a[ngx_mcp_load_kinds[i].order]);

            if (tag == NGX_MCP_TLV_SESSION) {

                /* the session that is idle for longest comes first */

                entity.order = ~entity.order;
            }

            ngx_mcp_load_push(load, i, &entity);
        }
    }

    if (load->failed) {
        return NGX_ERROR;
    }

    return rc == NGX_DONE ? NGX_OK : NGX_DECLINED;
}


static ngx_int_t
ngx_mcp_load_zone(ngx_mcp_load_t *load, ngx_str_t *text)
{
    ngx_str_t  a[NGX_MCP_TLV_ATTRIBUTES];

    ngx_mcp_tlv_attributes(text, a);

    if (ngx_mcp_load_text(a, HASH_KEY).len != sizeof(load->key)) {
        return NGX_DECLINED;
    }

    ngx_memcpy(load->key, ngx_mcp_load_text(a, HASH_KEY).data,
               sizeof(load->key));
    load->generation = (uint32_t) ngx_mcp_load_number(a, GENERATION);
    load->stamp = ngx_mcp_load_number(a, STAMP);

    return NGX_OK;
}


static void
ngx_mcp_load_push(ngx_mcp_load_t *load, ngx_uint_t n,
    ngx_mcp_load_entity_t *entity)
{
    size_t                  max;
    ngx_mcp_load_list_t    *list;
    ngx_mcp_load_entity_t  *elts;

    list = &load->lists[n];

    if (list->n == list->max) {
        max = list->max ? list->max * 2 : 256;

        elts = ngx_alloc(max * sizeof(ngx_mcp_load_entity_t),
                         load->zone->log);
        if (elts == NULL) {
            load->failed = 1;
            return;
        }

        if (list->elts) {
            ngx_memcpy(elts, list->elts,
                       list->n * sizeof(ngx_mcp_load_entity_t));
            ngx_free(list->elts);
        }

        list->elts = elts;
        list->max = max;
    }

    list->elts[list->n++] = *entity;
}


/*
 * Adds the entities of list n that have a record to the list of owners, in
 * which ngx_mcp_load_owner() searches.
 */

static void
ngx_mcp_load_owners(ngx_mcp_load_t *load, ngx_uint_t n)
{
    size_t                 i;
    ngx_mcp_load_list_t   *list;
    ngx_mcp_load_entity_t  entity;

    list = &load->lists[n];

    for (i = 0; i < list->n; i++) {

        if (list->elts[i].ref.block) {
            entity = list->elts[i];
            entity.order = entity.id;
            ngx_mcp_load_push(load, NGX_MCP_LOAD_OWNERS, &entity);
        }
    }
}


static int
ngx_mcp_load_compare(const void *one, const void *two)
{
    const ngx_mcp_load_entity_t  *a, *b;

    a = one;
    b = two;

    if (a->order != b->order) {
        return a->order < b->order ? -1 : 1;
    }

    return a->text.data < b->text.data ? -1 : (a->text.data > b->text.data);
}


/* returns the index of the list's first entity whose order is not below this */

static size_t
ngx_mcp_load_first(ngx_mcp_load_list_t *list, uint64_t order)
{
    size_t  from, to, i;

    if (list->sorted != list->n) {
        qsort(list->elts, list->n, sizeof(ngx_mcp_load_entity_t),
              ngx_mcp_load_compare);
        list->sorted = list->n;
    }

    from = 0;
    to = list->n;

    while (from < to) {
        i = (from + to) / 2;

        if (list->elts[i].order < order) {
            from = i + 1;

        } else {
            to = i;
        }
    }

    return from;
}


static void
ngx_mcp_load_each(ngx_mcp_load_t *load, ngx_mcp_load_step_t *step)
{
    size_t                i;
    ngx_str_t             a[NGX_MCP_TLV_ATTRIBUTES];
    ngx_mcp_load_list_t  *list;

    list = &load->lists[step->list];

    for (i = ngx_mcp_load_first(list, 0); i < list->n; i++) {
        ngx_mcp_tlv_attributes(&list->elts[i].text, a);

        if (step->locked) {
            ngx_mcp_zone_lock(load->zone);
        }

        step->handler(load, &list->elts[i], a);

        if (step->locked) {
            ngx_mcp_zone_unlock(load->zone);
        }
    }
}


/*
 * Calls the handler for the entities of this owner in list n, which is sorted
 * by owner.
 */

static void
ngx_mcp_load_parts(ngx_mcp_load_t *load, ngx_uint_t n,
    ngx_mcp_load_entity_t *owner, ngx_mcp_load_pt handler)
{
    size_t                i;
    ngx_str_t             a[NGX_MCP_TLV_ATTRIBUTES];
    ngx_mcp_load_list_t  *list;

    if (owner->ref.block == 0 || owner->id == 0) {
        return;
    }

    list = &load->lists[n];

    for (i = ngx_mcp_load_first(list, owner->id);
         i < list->n && list->elts[i].order == owner->id;
         i++)
    {
        list->elts[i].ref = owner->ref;

        ngx_mcp_tlv_attributes(&list->elts[i].text, a);
        handler(load, &list->elts[i], a);
    }
}


/* returns whether there is room for a record with a text of this length */

static ngx_uint_t
ngx_mcp_load_room_locked(ngx_mcp_zone_t *zone, size_t len)
{
    ngx_mcp_zone_sh_t  *sh;

    sh = zone->sh;

    return len / NGX_MCP_BLOCK_DATA < NGX_MCP_BLOCKS_MAX / 2
           && ngx_mcp_free_blocks(sh) > len / NGX_MCP_BLOCK_DATA
                                        + NGX_MCP_LOAD_BLOCKS
                                        + sh->blocks / 16;
}


static ngx_mcp_load_entity_t *
ngx_mcp_load_owner(ngx_mcp_load_t *load, ngx_str_t *a)
{
    size_t                i;
    uint64_t              id;
    ngx_mcp_load_list_t  *list;

    id = ngx_mcp_load_number(a, OWNER);
    list = &load->lists[NGX_MCP_LOAD_OWNERS];

    i = ngx_mcp_load_first(list, id);

    return (id && i < list->n && list->elts[i].order == id) ? &list->elts[i]
                                                            : NULL;
}


static ngx_mcp_group_sh_t *
ngx_mcp_load_owner_group_locked(ngx_mcp_load_t *load, ngx_str_t *a)
{
    ngx_mcp_load_entity_t  *owner;

    owner = ngx_mcp_load_owner(load, a);

    return owner ? ngx_mcp_record(load->zone, owner->ref, NGX_MCP_GROUP)
                 : NULL;
}


static void
ngx_mcp_load_group_locked(ngx_mcp_load_t *load,
    ngx_mcp_load_entity_t *entity, ngx_str_t *a)
{
    ngx_str_t           *endpoint, *tenant;
    ngx_mcp_zone_t      *zone;
    ngx_mcp_group_sh_t  *g;

    zone = load->zone;

    endpoint = &ngx_mcp_load_text(a, ENDPOINT);
    tenant = &ngx_mcp_load_text(a, TENANT);

    if (ngx_mcp_load_room_locked(zone, entity->text.len)) {
        g = ngx_mcp_group_get_locked(zone, endpoint, tenant);
        ngx_mcp_load_log_locked(zone, g, a);

        entity->ref = ngx_mcp_ref(zone, g);
    }
}


/*
 * Loads the log of an endpoint.  The endpoint's record was made with its first
 * group; an endpoint without groups is not loaded.
 */

static void
ngx_mcp_load_endpoint_locked(ngx_mcp_load_t *load,
    ngx_mcp_load_entity_t *entity, ngx_str_t *a)
{
    ngx_mcp_zone_t      *zone;
    ngx_mcp_group_sh_t  *g;

    zone = load->zone;

    g = ngx_mcp_group_find_locked(zone, NGX_MCP_ENDPOINT,
                                  &ngx_mcp_load_text(a, ENDPOINT), NULL);

    if (g) {
        ngx_mcp_load_log_locked(zone, g, a);
        entity->ref = ngx_mcp_ref(zone, g);
    }
}


static void
ngx_mcp_load_log_locked(ngx_mcp_zone_t *zone, ngx_mcp_group_sh_t *g,
    ngx_str_t *a)
{
    ngx_str_t            *losses;
    ngx_mcp_losses_sh_t  *l;

    ngx_mcp_touch(zone, g);

    g->event_max = (uint32_t) ngx_mcp_load_number(a, EVENT_MAX);
    g->event_size = (uint32_t) ngx_mcp_load_number(a, EVENT_SIZE);
    g->log.last = ngx_mcp_load_number(a, LAST);

    /*
     * Saved losses of another size are ignored.  That does no harm, as all
     * subscribers of the group get a gap after loading.
     */

    losses = &ngx_mcp_load_text(a, LOSSES);
    l = ngx_mcp_block(zone, g->losses);

    if (losses->len == l->rec.len) {
        ngx_mcp_text_store(zone, l, 0, losses->data, losses->len);
    }
}


static void
ngx_mcp_load_topic_locked(ngx_mcp_load_t *load,
    ngx_mcp_load_entity_t *entity, ngx_str_t *a)
{
    uint64_t             idle;
    ngx_uint_t           flags;
    ngx_mcp_zone_t      *zone;
    ngx_mcp_topic_t      topic;
    ngx_mcp_group_sh_t  *g;
    ngx_mcp_topic_sh_t  *t;

    zone = load->zone;

    flags = ngx_mcp_load_number(a, FLAGS);
    idle = ngx_mcp_load_number(a, IDLE) + load->saved->elapsed;

    ngx_memzero(&topic, sizeof(ngx_mcp_topic_t));

    topic.uri = ngx_mcp_load_text(a, URI);
    topic.limit = NGX_MCP_LOAD_ANY;
    topic.other = (flags & NGX_MCP_TLV_OTHER) ? 1 : 0;

    g = ngx_mcp_load_owner_group_locked(load, a);
    t = NULL;

    if (g && topic.uri.len && topic.uri.len <= NGX_MCP_TOPIC_URI_MAX
        && ngx_mcp_load_room_locked(zone, entity->text.len))
    {
        t = ngx_mcp_topic_get_locked(zone, g, &topic, ngx_mcp_ref(zone, g));
    }

    if (t) {
        ngx_mcp_touch(zone, t);

        t->log.last = ngx_mcp_load_number(a, LAST);
        t->time = ngx_mcp_load_number(a, TIME);
        t->lost = load->saved->last ? ngx_mcp_load_number(a, LOST)
                                    : zone->sh->stamp;
        t->used = ngx_current_msec > idle ? ngx_current_msec - idle : 0;

        if (flags & NGX_MCP_TLV_ANNOUNCED) {
            t->rec.flags |= NGX_MCP_TOPIC_ANNOUNCED;
        }

        entity->ref = ngx_mcp_ref(zone, t);
    }
}


/* charges the topic to the session that paid for it when it was saved */

static void
ngx_mcp_load_topic_share_locked(ngx_mcp_load_t *load,
    ngx_mcp_load_entity_t *entity, ngx_str_t *a)
{
    ngx_mcp_zone_t        *zone;
    ngx_mcp_topic_sh_t    *t;
    ngx_mcp_session_sh_t  *s;

    zone = load->zone;

    t = ngx_mcp_record(zone, entity->ref, NGX_MCP_TOPIC);
    s = t ? ngx_mcp_session_lookup_locked(zone, &ngx_mcp_load_text(a, ID))
          : NULL;

    if (s && s->rec.owner.block == t->rec.owner.block) {
        ngx_mcp_topic_charge_locked(zone, t, s);
    }
}


static void
ngx_mcp_load_group_parts(ngx_mcp_load_t *load, ngx_mcp_load_entity_t *entity,
    ngx_str_t *a)
{
    ngx_mcp_load_parts(load, NGX_MCP_LOAD_UPSTREAMS, entity,
                       ngx_mcp_load_shared);
}


static void
ngx_mcp_load_shared(ngx_mcp_load_t *load, ngx_mcp_load_entity_t *entity,
    ngx_str_t *a)
{
    ngx_str_t               names[NGX_MCP_TLV_ATTRIBUTES];
    ngx_uint_t              room;
    ngx_mcp_ref_t           ref;
    ngx_mcp_zone_t         *zone;
    ngx_mcp_shared_t        in;
    ngx_mcp_load_entity_t  *group;

    zone = load->zone;

    ngx_memzero(&in, sizeof(ngx_mcp_shared_t));

    in.id = ngx_mcp_load_text(a, ID);
    in.upstream = ngx_mcp_load_text(a, NAME);
    in.audience = ngx_mcp_load_number(a, AUDIENCE);
    in.account = ngx_mcp_load_number(a, ACCOUNT);
    in.limit = ngx_mcp_load_number(a, LIMITED) ? NGX_MCP_LOAD_ANY : 0;

    group = ngx_mcp_load_owner(load, a);

    ngx_mcp_zone_lock(zone);
    room = ngx_mcp_load_room_locked(zone, entity->text.len);
    ngx_mcp_zone_unlock(zone);

    if (group == NULL || !room || in.audience == 0
        || in.id.len != NGX_MCP_UUID_LEN)
    {
        return;
    }

    ngx_mcp_tlv_attributes(&group->text, names);

    in.endpoint = ngx_mcp_load_text(names, ENDPOINT);
    in.tenant = ngx_mcp_load_text(names, TENANT);

    if (ngx_mcp_shared_get(zone, &in, &ref) == NGX_OK) {
        ngx_mcp_load_upstream(load, ref, a);
    }
}


static void
ngx_mcp_load_own(ngx_mcp_load_t *load, ngx_mcp_load_entity_t *entity,
    ngx_str_t *a)
{
    ngx_mcp_load_upstream(load, entity->ref, a);
}


/* makes an upstream session as a handshake does, and restores its serial */

static void
ngx_mcp_load_upstream(ngx_mcp_load_t *load, ngx_mcp_ref_t owner, ngx_str_t *a)
{
    ngx_str_t                      *name;
    ngx_mcp_ref_t                   none;
    ngx_mcp_zone_t                 *zone;
    ngx_mcp_upstream_session_t      made;
    ngx_mcp_upstream_session_sh_t  *us;

    zone = load->zone;
    name = &ngx_mcp_load_text(a, NAME);

    ngx_memzero(&none, sizeof(ngx_mcp_ref_t));

    if (ngx_mcp_upstream_session_get(zone, owner, name, none, &made)
        != NGX_DECLINED
        || ngx_mcp_upstream_session_made(zone, made.ref, name,
                                         &ngx_mcp_load_text(a, TEXT),
                                         ngx_mcp_load_number(a, REVISION),
                                         NULL)
           != NGX_OK)
    {
        return;
    }

    ngx_mcp_zone_lock(zone);

    us = ngx_mcp_upstream_session_locked(zone, made.ref);

    if (us) {
        ngx_mcp_touch(zone, us);

        us->serial = (uint32_t) ngx_mcp_load_number(a, SERIAL);
        us->level = (uint32_t) ngx_min(ngx_mcp_load_number(a, LEVEL),
                                       NGX_MCP_LEVEL_EMERGENCY);
        us->wanted = us->level;
        us->had_stream = ngx_mcp_load_number(a, FLAGS)
                         & NGX_MCP_TLV_CONNECTED ? 1 : 0;
    }

    ngx_mcp_zone_unlock(zone);
}


static void
ngx_mcp_load_session(ngx_mcp_load_t *load, ngx_mcp_load_entity_t *entity,
    ngx_str_t *a)
{
    ngx_uint_t             room;
    ngx_mcp_zone_t        *zone;
    ngx_mcp_session_new_t  in;

    zone = load->zone;

    ngx_mcp_zone_lock(zone);
    room = ngx_mcp_load_room_locked(zone, entity->text.len);
    ngx_mcp_zone_unlock(zone);

    if (!room || ngx_mcp_load_session_new(load, a, &in) != NGX_OK
        || ngx_mcp_session_create(zone, &in, &entity->ref) != NGX_OK)
    {
        load->saved->ended++;
        return;
    }

    load->saved->sessions++;

    ngx_mcp_load_session_more(load, a, entity->ref);

    ngx_mcp_load_parts(load, NGX_MCP_LOAD_UPSTREAMS, entity, ngx_mcp_load_own);
    ngx_mcp_load_parts(load, NGX_MCP_LOAD_SUBSCRIPTIONS, entity,
                       ngx_mcp_load_subscription);
    ngx_mcp_load_parts(load, NGX_MCP_LOAD_CALLS, entity, ngx_mcp_load_call);
}


static ngx_int_t
ngx_mcp_load_session_new(ngx_mcp_load_t *load, ngx_str_t *a,
    ngx_mcp_session_new_t *in)
{
    uint64_t  idle;

    ngx_memzero(in, sizeof(ngx_mcp_session_new_t));

    in->id = ngx_mcp_load_text(a, ID);
    in->endpoint = ngx_mcp_load_text(a, ENDPOINT);
    in->tenant = ngx_mcp_load_text(a, TENANT);
    in->identity = ngx_mcp_load_text(a, IDENTITY);
    in->account = ngx_mcp_load_number(a, ACCOUNT);
    in->initialize = ngx_mcp_load_text(a, INITIALIZE);
    in->client_name = ngx_mcp_load_text(a, CLIENT_NAME);
    in->client_version = ngx_mcp_load_text(a, CLIENT_VERSION);
    in->revision = ngx_mcp_load_number(a, REVISION);
    in->offered = ngx_mcp_load_number(a, OFFERED);
    in->list_key = ngx_mcp_load_text(a, LIST_KEY);
    in->own_lists = ngx_mcp_load_number(a, OWN_LISTS);

    if (in->list_key.len == 0) {
        ngx_str_set(&in->list_key, "a");
    }
    in->limit_key = ngx_mcp_load_text(a, LIMIT_KEY);
    in->limit = ngx_mcp_load_number(a, LIMITED) ? NGX_MCP_LOAD_ANY : 0;
    in->timeout = ngx_mcp_load_number(a, TIMEOUT);
    in->event_max = ngx_mcp_load_number(a, EVENT_MAX);
    in->event_size = ngx_mcp_load_number(a, EVENT_SIZE);

    idle = ngx_mcp_load_number(a, IDLE) + load->saved->elapsed;

    return (in->account == 0
            || in->revision == NGX_MCP_REVISION_UNKNOWN
            || in->revision > NGX_MCP_REVISION_LATEST_LEGACY
            || idle / NGX_MCP_IDLE_END >= in->timeout)
           ? NGX_DECLINED : NGX_OK;
}


static void
ngx_mcp_load_session_more(ngx_mcp_load_t *load, ngx_str_t *a,
    ngx_mcp_ref_t ref)
{
    uint64_t                  idle;
    ngx_mcp_zone_t           *zone;
    ngx_mcp_group_sh_t       *g;
    ngx_mcp_session_sh_t     *s;
    ngx_mcp_extension_sh_t   *e;
    ngx_mcp_subscriber_sh_t  *sb;

    zone = load->zone;
    idle = ngx_mcp_load_number(a, IDLE) + load->saved->elapsed;

    ngx_mcp_zone_lock(zone);

    s = ngx_mcp_session_locked(zone, ref);

    if (s == NULL) {
        ngx_mcp_zone_unlock(zone);
        return;
    }

    e = ngx_mcp_session_extension(zone, s);
    g = ngx_mcp_session_group(zone, s);

    ngx_mcp_idle_leave_locked(zone, s);

    ngx_mcp_touch(zone, s);

    s->used = ngx_mcp_load_number(a, USED) ? 1 : 0;
    s->touched = ngx_current_msec > idle ? ngx_current_msec - idle : 0;
    s->channel = (uint32_t) ngx_mcp_load_number(a, CHANNEL)
                 + (load->saved->last ? 0 : NGX_MCP_LOAD_CHANNELS);
    s->log.last = ngx_mcp_load_number(a, LAST);

    sb = &s->subscriber;
    sb->level = (u_char) ngx_min(ngx_mcp_load_number(a, LEVEL),
                                 NGX_MCP_LEVEL_EMERGENCY);

    /*
     * The group may have been saved before the session, when the last position
     * of its log was lower.
     */

    sb->delivered.own = ngx_min(ngx_mcp_load_number(a, READ_OWN), s->log.last);
    sb->delivered.group = ngx_min(ngx_mcp_load_number(a, READ_GROUP),
                                   g->log.last);
    sb->delivered.endpoint = ngx_min(ngx_mcp_load_number(a, READ_ENDPOINT),
                                 ngx_mcp_group_endpoint(zone, g)->log.last);
    s->log.nread = (uint32_t) ngx_mcp_load_number(a, TAKEN);

    ngx_mcp_idle_enter_locked(zone, s);

    ngx_mcp_touch(zone, e);

    e->created = ngx_mcp_load_number(a, CREATED);
    e->seen = ngx_mcp_load_number(a, SEEN);
    e->start = ngx_min(ngx_mcp_load_number(a, START), sb->delivered.group);
    e->start_endpoint = ngx_min(ngx_mcp_load_number(a, START_ENDPOINT),
                            sb->delivered.endpoint);
    e->begin = ngx_mcp_load_number(a, BEGIN);
    e->gap = ngx_mcp_load_number(a, GAP);
    e->calls = (uint32_t) ngx_mcp_load_number(a, COUNT);

    ngx_mcp_zone_unlock(zone);
}


static void
ngx_mcp_load_subscription(ngx_mcp_load_t *load, ngx_mcp_load_entity_t *entity,
    ngx_str_t *a)
{
    uint64_t                        upstream;
    ngx_str_t                      *uri;
    ngx_uint_t                      flags;
    ngx_mcp_ref_t                   shared, session;
    ngx_mcp_zone_t                 *zone;
    ngx_mcp_topic_sh_t             *t;
    ngx_mcp_session_sh_t           *s;
    ngx_mcp_interest_sh_t          *in;
    ngx_mcp_subscription_sh_t      *sub;
    ngx_mcp_upstream_session_sh_t  *us;

    zone = load->zone;
    session = entity->ref;

    uri = &ngx_mcp_load_text(a, URI);
    upstream = ngx_mcp_load_number(a, UPSTREAM);
    flags = ngx_mcp_load_number(a, FLAGS);

    ngx_mcp_zone_lock(zone);

    us = NULL;
    s = ngx_mcp_session_locked(zone, session);

    if (s && flags & NGX_MCP_TLV_INTEREST) {
        us = ngx_mcp_shared_locked(zone, ngx_mcp_session_group(zone, s),
                                   s->subscriber.audience, upstream);
    }

    ngx_memzero(&shared, sizeof(ngx_mcp_ref_t));

    if (us) {
        shared = ngx_mcp_ref(zone, us);
    }

    ngx_mcp_zone_unlock(zone);

    if (shared.block) {
        (void) ngx_mcp_interest_join(zone, shared, session, uri,
                                     NGX_MCP_LOAD_ANY);

    } else {
        (void) ngx_mcp_session_subscribe(zone, session, uri, NULL,
                                         NGX_MCP_LOAD_ANY);
    }

    ngx_mcp_zone_lock(zone);

    sub = ngx_mcp_subscription_find_locked(zone, session, uri);

    if (sub) {
        ngx_mcp_touch(zone, sub);
        sub->upstream = upstream;

        in = ngx_mcp_record(zone, sub->interest, NGX_MCP_INTEREST);

        if (in && flags & NGX_MCP_TLV_ACCEPTED) {
            ngx_mcp_load_interest_locked(zone, in);
        }

        s = ngx_mcp_session_locked(zone, session);
        t = (s && flags & NGX_MCP_TLV_TOPIC_KEPT)
            ? ngx_mcp_topic_lookup_locked(zone, ngx_mcp_session_group(zone, s),
                                          uri)
            : NULL;

        if (t) {
            ngx_mcp_touch(zone, t);
            sub->topic = ngx_mcp_ref(zone, t);
            t->subscribers++;
        }

    } else {
        load->saved->lost++;
    }

    ngx_mcp_zone_unlock(zone);
}


/*
 * Marks an interest as accepted by the upstream, and moves it to the end of
 * the list, where the interests without work to do are.
 */

static void
ngx_mcp_load_interest_locked(ngx_mcp_zone_t *zone, ngx_mcp_interest_sh_t *in)
{
    uint32_t                        n;
    ngx_mcp_upstream_session_sh_t  *us;

    us = ngx_mcp_block(zone, in->rec.owner.block);
    n = ngx_mcp_number(zone, in);

    ngx_mcp_touch(zone, in);
    in->state = NGX_MCP_INTEREST_MADE;
    in->serial = us->serial;

    ngx_mcp_list_remove(zone, &us->interests, n, NGX_MCP_LINKS);
    ngx_mcp_list_append(zone, &us->interests, n, NGX_MCP_LINKS);
}


static void
ngx_mcp_load_call(ngx_mcp_load_t *load, ngx_mcp_load_entity_t *entity,
    ngx_str_t *a)
{
    uint32_t               n;
    ngx_str_t             *id;
    ngx_uint_t             flags;
    ngx_mcp_ref_t          session;
    ngx_mcp_zone_t        *zone;
    ngx_mcp_stage_t        stage;
    ngx_mcp_call_sh_t     *c;
    ngx_mcp_session_sh_t  *s;

    zone = load->zone;

    session = entity->ref;
    ngx_memzero(&entity->ref, sizeof(ngx_mcp_ref_t));

    id = &ngx_mcp_load_text(a, ID);
    flags = ngx_mcp_load_number(a, FLAGS);

    ngx_mcp_stage_init(zone, &stage, NGX_MCP_CALL, id, 1);
    stage.payer = session;

    ngx_mcp_zone_lock(zone);

    s = ngx_mcp_session_locked(zone, session);

    if (s == NULL || id->len > NGX_MCP_ID_MAX
        || !ngx_mcp_load_room_locked(zone, entity->text.len))
    {
        ngx_mcp_zone_unlock(zone);
        return;
    }

    c = ngx_mcp_make_locked(zone, &stage);
    n = ngx_mcp_number(zone, c);

    c->task.rec.owner = session;
    c->task.rec.hash = ngx_mcp_call_hash(id);
    c->task.rec.worker = NGX_MCP_SLOT_NONE;
    c->task.rec.flags = NGX_MCP_CALL_STREAMED;
    c->id_len = (uint32_t) id->len;
    c->channel = (uint32_t) ngx_mcp_load_number(a, CHANNEL);
    c->log.last = ngx_mcp_load_number(a, LAST);
    c->delivered = ngx_min(ngx_mcp_load_number(a, READ_OWN), c->log.last);

    if (flags & NGX_MCP_TLV_ANSWERED) {
        c->task.rec.flags |= NGX_MCP_CALL_ANSWERED;
    }

    if (flags & NGX_MCP_TLV_RUNNING) {
        c->task.rec.flags |= NGX_MCP_CALL_RUNNING;
    }

    ngx_mcp_commit_locked(zone, c, NGX_MCP_CALL);

    ngx_mcp_touch_range(zone, s, streams, extension);

    if (flags & NGX_MCP_TLV_RUNNING) {
        ngx_mcp_list_append(zone, &s->calls, n, NGX_MCP_LINKS);
        s->ncalls++;

        ngx_mcp_gauge_locked(zone, NGX_MCP_COUNTER_CALLS_RUNNING, 1);

    } else {
        ngx_mcp_list_append(zone, &s->finished, n, NGX_MCP_LINKS);
    }

    entity->ref = ngx_mcp_ref(zone, c);

    ngx_mcp_zone_unlock(zone);
}


/*
 * Ends a call that was running, as its worker is gone.  This is done after the
 * call's events were loaded.  A finished call without events is dropped.
 */

static void
ngx_mcp_load_call_end_locked(ngx_mcp_load_t *load,
    ngx_mcp_load_entity_t *entity, ngx_str_t *a)
{
    ngx_mcp_zone_t     *zone;
    ngx_mcp_call_sh_t  *c;

    zone = load->zone;

    c = ngx_mcp_record(zone, entity->ref, NGX_MCP_CALL);

    if (c && c->task.rec.flags & NGX_MCP_CALL_RUNNING) {
        ngx_mcp_call_lost_locked(zone, c);

    } else if (c && c->log.count == 0) {
        ngx_mcp_channel_drop_locked(zone, c);
    }
}


static void
ngx_mcp_load_event_locked(ngx_mcp_load_t *load,
    ngx_mcp_load_entity_t *entity, ngx_str_t *a)
{
    void                   *owner;
    uint64_t                stamp, last, pos, hash[3 + NGX_MCP_EVENT_URIS];
    ngx_str_t              *text;
    ngx_uint_t              i;
    ngx_mcp_zone_t         *zone;
    ngx_mcp_event_t         event;
    ngx_mcp_stage_t         stage;
    ngx_mcp_log_sh_t       *log;
    ngx_mcp_event_sh_t     *e;
    ngx_mcp_target_sh_t     target;
    ngx_mcp_load_entity_t  *from;

    zone = load->zone;

    from = ngx_mcp_load_owner(load, a);

    if (from == NULL) {
        return;
    }

    text = &ngx_mcp_load_text(a, TEXT);
    pos = ngx_mcp_load_number(a, POSITION);

    ngx_memzero(&event, sizeof(ngx_mcp_event_t));
    ngx_memzero(hash, sizeof(hash));

    event.parts = text;
    event.nparts = 1;
    event.flags = ngx_mcp_load_number(a, FLAGS);
    event.level = ngx_min(ngx_mcp_load_number(a, LEVEL),
                          NGX_MCP_LEVEL_EMERGENCY);

    if (ngx_mcp_load_text(a, TARGET).len) {
        ngx_memcpy(hash, ngx_mcp_load_text(a, TARGET).data,
                   ngx_min(ngx_mcp_load_text(a, TARGET).len, sizeof(hash)));
    }

    target.identity = hash[0];
    target.audience = hash[1];
    target.flags = hash[2];

    for (i = 0; i < NGX_MCP_EVENT_URIS; i++) {
        target.uri[i] = hash[3 + i];
    }

    ngx_mcp_stage_init(zone, &stage, NGX_MCP_EVENT, text, 1);

    owner = ngx_mcp_load_record_locked(zone, from->ref);
    log = owner ? ngx_mcp_log_of(owner) : NULL;

    if (log && log->list.tail) {
        e = ngx_mcp_block(zone, log->list.tail);

        if (e->pos >= pos) {
            owner = NULL;
        }
    }

    if (owner == NULL || pos == 0
        || !ngx_mcp_load_room_locked(zone, text->len))
    {
        return;
    }

    /* adds the event to the log at its saved position, with its saved stamp */

    stamp = zone->sh->stamp;
    last = log->last;

    ngx_mcp_touch(zone, log);
    log->last = pos - 1;
    zone->sh->stamp = ngx_mcp_load_number(a, STAMP) - 1;

    e = ngx_mcp_log_add_locked(zone, owner, &event, &target, &stage);

    zone->sh->stamp = ngx_max(stamp, e->stamp);
    log->last = ngx_max(last, pos);

    ngx_mcp_load_counted_locked(zone, owner, e);
}


/*
 * Finds the record of a session that has not ended, a call, a topic or a
 * group.
 */

static void *
ngx_mcp_load_record_locked(ngx_mcp_zone_t *zone, ngx_mcp_ref_t ref)
{
    void  *rec;

    rec = ngx_mcp_session_locked(zone, ref);

    if (rec == NULL) {
        rec = ngx_mcp_record(zone, ref, NGX_MCP_CALL);
    }

    if (rec == NULL) {
        rec = ngx_mcp_record(zone, ref, NGX_MCP_TOPIC);
    }

    return rec ? rec : ngx_mcp_group_locked(zone, ref);
}


static void
ngx_mcp_load_counted_locked(ngx_mcp_zone_t *zone, void *owner,
    ngx_mcp_event_sh_t *e)
{
    ngx_mcp_topic_sh_t    *t;
    ngx_mcp_record_sh_t   *rec;
    ngx_mcp_session_sh_t  *s;

    rec = owner;

    switch (rec->block.type) {

    case NGX_MCP_TOPIC:
        t = owner;
        ngx_mcp_touch(zone, &t->bytes);
        t->bytes += e->rec.len;
        break;

    case NGX_MCP_SESSION:
    case NGX_MCP_CALL:
        s = (rec->block.type == NGX_MCP_CALL)
            ? ngx_mcp_block(zone, rec->owner.block) : owner;
        ngx_mcp_touch(zone, &s->events);
        s->events++;
        break;

    default:
        break;
    }
}


static void
ngx_mcp_load_lease(ngx_mcp_load_t *load, ngx_mcp_load_entity_t *entity,
    ngx_str_t *a)
{
    ngx_int_t              rc;
    ngx_str_t             *key, *id, *note;
    ngx_mcp_zone_t        *zone;
    ngx_mcp_group_sh_t    *g;
    ngx_mcp_lease_sh_t    *l;
    ngx_mcp_lease_share_t  share;

    zone = load->zone;

    key = &ngx_mcp_load_text(a, KEY);
    id = &ngx_mcp_load_text(a, ID);
    note = &ngx_mcp_load_text(a, NOTE);

    ngx_memzero(&share, sizeof(ngx_mcp_lease_share_t));

    share.user = (uint32_t) ngx_mcp_load_number(a, USER);
    share.user_max = NGX_MCP_LOAD_ANY;
    share.owner_max = NGX_MCP_LOAD_ANY;

    ngx_mcp_zone_lock(zone);

    g = ngx_mcp_load_owner_group_locked(load, a);

    if (g) {
        share.owner = ngx_mcp_ref(zone, g);
    }

    ngx_mcp_zone_unlock(zone);

    if (key->len == 0 || id->len > NGX_MCP_LEASE_ID_MAX
        || note->len > NGX_MCP_LEASE_NOTE_MAX)
    {
        return;
    }

    rc = (g && share.user) ? ngx_mcp_lease_ensure_shared(zone, key, &share)
                           : ngx_mcp_lease_ensure(zone, key);

    if (rc != NGX_OK) {
        return;
    }

    ngx_mcp_zone_lock(zone);

    /* the lease was made just now, so it is the last one */

    l = ngx_mcp_block(zone, zone->sh->leases.tail);

    if (ngx_mcp_text_equal(zone, l, 0, l->key_len, key)) {
        ngx_mcp_touch(zone, l);

        l->id_len = (uint32_t) id->len;
        l->note_len = (uint32_t) note->len;
        l->holder.fence = (uint32_t) ngx_mcp_load_number(a, FENCE);
        l->consumed = ngx_mcp_load_number(a, COUNT);

        /* without restored sessions, no client has missed an event */

        if (ngx_mcp_load_number(a, FLAGS) & NGX_MCP_TLV_CONNECTED
            && (g ? g->sessions : load->saved->sessions))
        {
            l->rec.flags |= NGX_MCP_LEASE_READ;
        }

        ngx_mcp_text_store(zone, l, l->key_len, id->data, id->len);
        ngx_mcp_text_store(zone, l, l->key_len + NGX_MCP_LEASE_ID_MAX,
                           note->data, note->len);
    }

    ngx_mcp_zone_unlock(zone);
}


static void
ngx_mcp_load_id_locked(ngx_mcp_load_t *load,
    ngx_mcp_load_entity_t *entity, ngx_str_t *a)
{
    if (ngx_mcp_load_number(a, KEY)) {
        (void) ngx_mcp_idempotency_add_locked(load->zone,
                                             ngx_mcp_load_number(a, KEY),
                                             ngx_mcp_load_number(a, COUNT));
    }
}


/*
 * For an endpoint: notes a gap in its log, which all of its subscribers get.
 * For a group: drops the group if it is not needed; the endpoint is dropped
 * with its last group.
 */

static void
ngx_mcp_load_end_locked(ngx_mcp_load_t *load,
    ngx_mcp_load_entity_t *entity, ngx_str_t *a)
{
    ngx_mcp_zone_t      *zone;
    ngx_mcp_group_sh_t  *g;

    zone = load->zone;

    g = ngx_mcp_group_locked(zone, entity->ref);

    if (g && g->rec.block.type == NGX_MCP_ENDPOINT) {
        (void) ngx_mcp_log_group_locked(zone, g, NULL, 0, 1);

    } else if (g) {
        ngx_mcp_group_drop_unused_locked(zone, g);
    }
}
