
#include "ngx_mcp_state_sh.h"


static size_t ngx_mcp_root_size(size_t size);
static void ngx_mcp_root_clear(ngx_mcp_zone_t *zone);
static void ngx_mcp_zone_outdated(ngx_mcp_zone_t *zone);
static void ngx_mcp_zone_broken(ngx_mcp_zone_t *zone);
static void ngx_mcp_zone_undone(ngx_mcp_zone_t *zone);


#define NGX_MCP_RECORD_HEAD(name, type, use)  sizeof(type),
#define NGX_MCP_RECORD_USE(name, type, use)   NGX_MCP_USE_ ## use,

static size_t  ngx_mcp_heads[] = {
    NGX_MCP_BLOCK_HEAD,
    NGX_MCP_RECORDS(NGX_MCP_RECORD_HEAD)
};

static u_char  ngx_mcp_uses[] = {
    NGX_MCP_USE_FREE,
    NGX_MCP_RECORDS(NGX_MCP_RECORD_USE)
};


static ngx_mcp_schema_t  ngx_mcp_schema = {
    NGX_MCP_STATE_VERSION,
    NGX_MCP_TYPE_MAX,
    ngx_mcp_heads,
    NGX_MCP_COUNTER_MAX,
    ngx_mcp_root_size,
    ngx_mcp_root_clear,
    ngx_mcp_zone_outdated,
    ngx_mcp_zone_broken,
    ngx_mcp_zone_undone,
    ngx_mcp_reserve_locked,
    ngx_mcp_account_full,
    ngx_mcp_account_of_locked,
    ngx_mcp_account_charge_locked,
    ngx_mcp_account_release_locked
};


ngx_int_t
ngx_mcp_state_init(ngx_mcp_zone_t *zone, ngx_uint_t workers, ngx_uint_t reuse)
{
    return ngx_mcp_zone_init(zone, &ngx_mcp_schema, workers, reuse);
}


static size_t
ngx_mcp_root_size(size_t size)
{
    return sizeof(ngx_mcp_root_sh_t)
           + ngx_min(size / NGX_MCP_METRIC_SHARE, NGX_MCP_METRICS)
             * sizeof(ngx_mcp_metric_sh_t);
}


/* numbers, and what was counted, go on */

static void
ngx_mcp_root_clear(ngx_mcp_zone_t *zone)
{
    ngx_atomic_t       *counters;
    ngx_mcp_root_sh_t  *root;

    root = zone->root;
    counters = ngx_mcp_counters(zone->sh);

    root->metrics = (uint32_t) ngx_min(zone->sh->size / NGX_MCP_METRIC_SHARE,
                                       NGX_MCP_METRICS);
    root->nleases = 0;
    root->oldest = 0;
    root->next = 0;

    ngx_memzero(root->idle, offsetof(ngx_mcp_root_sh_t, metric)
                            - offsetof(ngx_mcp_root_sh_t, idle));

    counters[NGX_MCP_COUNTER_SESSIONS_LIVE] = 0;
    counters[NGX_MCP_COUNTER_STREAMS_OPEN] = 0;
    counters[NGX_MCP_COUNTER_CALLS_RUNNING] = 0;
}


ngx_uint_t
ngx_mcp_zone_sessions(ngx_mcp_zone_sh_t *sh)
{
    if (sh == NULL || sh->magic != NGX_MCP_ZONE_MAGIC) {
        return 0;
    }

    return (ngx_uint_t) ngx_mcp_counters(sh)[NGX_MCP_COUNTER_SESSIONS_LIVE];
}


static void
ngx_mcp_zone_outdated(ngx_mcp_zone_t *zone)
{
    ngx_log_error(NGX_LOG_WARN, zone->log, 0,
                  "mcp zone \"%V\" has the layout of another version of "
                  "the module and is emptied, %ui sessions end",
                  &zone->name, ngx_mcp_zone_sessions(zone->sh));
}


static void
ngx_mcp_zone_broken(ngx_mcp_zone_t *zone)
{
    ngx_log_error(NGX_LOG_ALERT, zone->log, 0,
                  "mcp zone \"%V\" is emptied, as the update of a process "
                  "that died can not be undone, %ui sessions end",
                  &zone->name, ngx_mcp_zone_sessions(zone->sh));
}


static void
ngx_mcp_zone_undone(ngx_mcp_zone_t *zone)
{
    ngx_log_error(NGX_LOG_NOTICE, zone->log, 0,
                  "mcp zone \"%V\": the update of a process that died was "
                  "undone, %ui sessions", &zone->name,
                  ngx_mcp_zone_sessions(zone->sh));
}


void
ngx_mcp_zone_use(ngx_mcp_zone_t *zone, ngx_mcp_zone_use_t *use)
{
    ngx_uint_t          i, other;
    ngx_mcp_zone_sh_t  *sh;

    sh = zone->sh;

    ngx_memzero(use, sizeof(ngx_mcp_zone_use_t));

    use->blocks = sh->blocks - 1;
    use->block_size = NGX_MCP_BLOCK_SIZE;

    ngx_mcp_zone_lock(zone);

    use->used[NGX_MCP_USE_FREE] = ngx_mcp_free_blocks(sh);
    use->recoveries = sh->recoveries;

    other = use->blocks - use->used[NGX_MCP_USE_FREE];

    for (i = NGX_MCP_FREE + 1; i < NGX_MCP_TYPE_MAX; i++) {
        use->used[ngx_mcp_uses[i]] += sh->used[i];
        other -= sh->used[i];
    }

    for (i = 0; i < zone->sh->top; i++) {
        if (ngx_mcp_place(zone, i)->state == NGX_MCP_WORKER_LIVE) {
            use->workers++;
        }
    }

    ngx_mcp_zone_unlock(zone);

    /* texts that are being written */

    use->used[NGX_MCP_USE_OTHER] += other;
}
