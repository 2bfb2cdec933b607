
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_access.h"
#include "ngx_http_mcp_defaults.h"


/* bytes; enough for a response's header with a long session id */

#define NGX_HTTP_MCP_DEFAULTS_HEADER  8192


typedef struct {
    void                 **loc_conf;        /* configurations of all modules in
                                               the http block */
    ngx_array_t            assigned;        /* ngx_uint_t: indices of variables
                                               that any location sets */
} ngx_http_mcp_defaults_main_conf_t;


typedef struct {
    ngx_str_t                  uri;         /* URI without arguments */
    ngx_str_t                  directive;   /* name of the directive that has
                                               the URI */
    u_char                    *file;        /* file and line of the directive */
    ngx_uint_t                 line;
    ngx_http_core_loc_conf_t  *location;    /* location of the URI, or NULL */
} ngx_http_mcp_defaults_target_t;


typedef struct {
    ngx_array_t            targets;  /* ngx_http_mcp_defaults_target_t */
} ngx_http_mcp_defaults_srv_conf_t;


/* offsets of settings in the proxy module's location configuration */

typedef struct {
    ngx_module_t          *module;
    ngx_uint_t             http_version;
    ngx_uint_t             buffering;
    ngx_uint_t             read_timeout;
    ngx_uint_t             socket_keepalive;
    ngx_uint_t             buffer_size;
    ngx_uint_t             buffers;
    ngx_uint_t             busy_buffers;
    ngx_uint_t             headers;
} ngx_http_mcp_defaults_proxy_t;


/* the first fields of the configuration of ngx_http_auth_request_module */

typedef struct {
    ngx_str_t                  uri;
    ngx_array_t               *vars;
} ngx_http_mcp_defaults_auth_conf_t;


/* an element of vars */

typedef struct {
    ngx_int_t                  index;
    ngx_http_complex_value_t   value;
    ngx_http_set_variable_pt   set_handler;
} ngx_http_mcp_defaults_auth_var_t;


static void ngx_http_mcp_defaults_resolve(ngx_http_core_loc_conf_t *server,
    ngx_array_t *targets);
static ngx_http_core_loc_conf_t *ngx_http_mcp_defaults_find(
    ngx_http_core_loc_conf_t *parent, ngx_str_t *uri, ngx_uint_t *final);
static ngx_http_core_loc_conf_t *ngx_http_mcp_defaults_find_regex(
    ngx_http_core_loc_conf_t *parent, ngx_str_t *uri, ngx_uint_t *final);
static void ngx_http_mcp_defaults_note(ngx_http_mcp_defaults_loc_conf_t *conf,
    void **loc_conf);
static char *ngx_http_mcp_defaults_fill(ngx_conf_t *cf,
    ngx_http_mcp_defaults_loc_conf_t *conf);
static ngx_int_t ngx_http_mcp_defaults_host(ngx_conf_t *cf,
    ngx_http_mcp_defaults_loc_conf_t *conf, ngx_str_t *host);
static ngx_uint_t ngx_http_mcp_defaults_loopback(struct sockaddr *sockaddr);
static ngx_array_t *ngx_http_mcp_defaults_headers(ngx_conf_t *cf,
    ngx_array_t *source, ngx_str_t *host);
static ngx_uint_t ngx_http_mcp_defaults_header(ngx_array_t *source,
    ngx_str_t *name);
static ngx_int_t ngx_http_mcp_defaults_offset(char *name, ngx_uint_t *offset);
static ngx_int_t ngx_http_mcp_defaults_find_assigned(ngx_conf_t *cf,
    void **loc_conf, ngx_array_t *assigned);
static ngx_int_t ngx_http_mcp_defaults_assign(ngx_array_t *assigned,
    ngx_uint_t index);
static ngx_int_t ngx_http_mcp_defaults_preconfiguration(ngx_conf_t *cf);
static ngx_int_t ngx_http_mcp_defaults_postconfiguration(ngx_conf_t *cf);
static ngx_uint_t ngx_http_mcp_defaults_unanswered(ngx_conf_t *cf,
    ngx_http_core_loc_conf_t *clcf);
static ngx_int_t ngx_http_mcp_defaults_check(ngx_conf_t *cf,
    ngx_http_mcp_defaults_target_t *target, void **server);
static void ngx_http_mcp_defaults_warn(ngx_conf_t *cf,
    ngx_http_mcp_defaults_target_t *target, void **server);
static void *ngx_http_mcp_defaults_create_main_conf(ngx_conf_t *cf);
static void *ngx_http_mcp_defaults_create_srv_conf(ngx_conf_t *cf);
static char *ngx_http_mcp_defaults_merge_srv_conf(ngx_conf_t *cf,
    void *parent, void *child);
static void *ngx_http_mcp_defaults_create_loc_conf(ngx_conf_t *cf);
static char *ngx_http_mcp_defaults_merge_loc_conf(ngx_conf_t *cf,
    void *parent, void *child);


static ngx_http_module_t  ngx_http_mcp_defaults_module_ctx = {
    ngx_http_mcp_defaults_preconfiguration,  /* preconfiguration */
    ngx_http_mcp_defaults_postconfiguration, /* postconfiguration */

    ngx_http_mcp_defaults_create_main_conf,  /* create main configuration */
    NULL,                                    /* init main configuration */

    ngx_http_mcp_defaults_create_srv_conf,   /* create server configuration */
    ngx_http_mcp_defaults_merge_srv_conf,    /* merge server configuration */

    ngx_http_mcp_defaults_create_loc_conf,   /* create location configuration */
    ngx_http_mcp_defaults_merge_loc_conf     /* merge location configuration */
};


ngx_module_t  ngx_http_mcp_defaults_module = {
    NGX_MODULE_V1,
    &ngx_http_mcp_defaults_module_ctx,        /* module context */
    NULL,                                     /* module directives */
    NGX_HTTP_MODULE,                          /* module type */
    NULL,                                     /* init master */
    NULL,                                     /* init module */
    NULL,                                     /* init process */
    NULL,                                     /* init thread */
    NULL,                                     /* exit thread */
    NULL,                                     /* exit process */
    NULL,                                     /* exit master */
    NGX_MODULE_V1_PADDING
};


static ngx_http_mcp_defaults_proxy_t  ngx_http_mcp_defaults_proxy;


#define ngx_http_mcp_defaults_field(loc_conf, type, offset)                   \
    (*(type *) ((u_char *)                                                    \
        (loc_conf)[ngx_http_mcp_defaults_proxy.module->ctx_index] + (offset)))


/* the ngx_http_upstream_conf_t in the proxy module's configuration */

#define ngx_http_mcp_defaults_upstream(loc_conf)                              \
    ((ngx_http_upstream_conf_t *) ((u_char *)                                 \
        (loc_conf)[ngx_http_mcp_defaults_proxy.module->ctx_index]             \
        + ngx_http_mcp_defaults_proxy.read_timeout                            \
        - offsetof(ngx_http_upstream_conf_t, read_timeout)))


ngx_uint_t
ngx_http_mcp_defaults_is_proxy(ngx_http_request_t *r,
    ngx_http_upstream_conf_t *conf)
{
    if (ngx_http_mcp_defaults_proxy.module == NULL) {
        return 0;
    }

    return (u_char *) &conf->read_timeout
           == (u_char *) &ngx_http_mcp_defaults_field(r->loc_conf, ngx_msec_t,
                                     ngx_http_mcp_defaults_proxy.read_timeout);
}


ngx_uint_t
ngx_http_mcp_defaults_version(ngx_http_request_t *r)
{
    if (ngx_http_mcp_defaults_proxy.module == NULL) {
        return 0;
    }

    return ngx_http_mcp_defaults_field(r->loc_conf, ngx_uint_t,
                                     ngx_http_mcp_defaults_proxy.http_version);
}


ngx_array_t *
ngx_http_mcp_defaults_assigned(ngx_http_request_t *r)
{
    ngx_http_mcp_defaults_main_conf_t  *dmcf;

    dmcf = ngx_http_get_module_main_conf(r, ngx_http_mcp_defaults_module);

    return &dmcf->assigned;
}


/*
 * Adds to *assigned the indices of variables that a location sets by "set" or
 * "auth_request_set".
 */

static ngx_int_t
ngx_http_mcp_defaults_find_assigned(ngx_conf_t *cf, void **loc_conf,
    ngx_array_t *assigned)
{
    ngx_uint_t                          i, n;
    ngx_array_t                        *codes;
    ngx_module_t                       *module;
    ngx_http_script_code_pt            *code;
    ngx_http_mcp_defaults_auth_var_t   *av;
    ngx_http_mcp_defaults_auth_conf_t  *auth;

    module = ngx_http_mcp_access_module(cf, "ngx_http_rewrite_module");

    /* the first field is the array of codes, in which any word may be a code */

    codes = module ? *(ngx_array_t **) loc_conf[module->ctx_index] : NULL;

    if (codes) {
        code = codes->elts;
        n = codes->nelts / sizeof(ngx_http_script_code_pt);

        for (i = 0; i + 1 < n; i++) {
            if (code[i] == ngx_http_script_set_var_code
                && ngx_http_mcp_defaults_assign(assigned,
                                                (ngx_uint_t) code[i + 1])
                   != NGX_OK)
            {
                return NGX_ERROR;
            }
        }
    }

    module = ngx_http_mcp_access_module(cf, "ngx_http_auth_request_module");

    auth = module ? loc_conf[module->ctx_index] : NULL;

    if (auth == NULL || auth->vars == NULL || auth->vars == NGX_CONF_UNSET_PTR
        || auth->vars->size != sizeof(ngx_http_mcp_defaults_auth_var_t))
    {
        return NGX_OK;
    }

    av = auth->vars->elts;

    for (i = 0; i < auth->vars->nelts; i++) {
        if (av[i].set_handler == NULL
            && ngx_http_mcp_defaults_assign(assigned, av[i].index) != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_mcp_defaults_assign(ngx_array_t *assigned, ngx_uint_t index)
{
    ngx_uint_t  i, *p;

    p = assigned->elts;

    for (i = 0; i < assigned->nelts; i++) {
        if (p[i] == index) {
            return NGX_OK;
        }
    }

    p = ngx_array_push(assigned);
    if (p == NULL) {
        return NGX_ERROR;
    }

    *p = index;

    return NGX_OK;
}


ngx_int_t
ngx_http_mcp_defaults_target(ngx_conf_t *cf, ngx_str_t *uri)
{
    u_char                            *p;
    ngx_str_t                         *value;
    ngx_http_mcp_defaults_target_t    *target;
    ngx_http_mcp_defaults_srv_conf_t  *dscf;

    dscf = ngx_http_conf_get_module_srv_conf(cf, ngx_http_mcp_defaults_module);

    target = ngx_array_push(&dscf->targets);
    if (target == NULL) {
        return NGX_ERROR;
    }

    value = cf->args->elts;

    target->uri = *uri;
    target->directive = value[0];
    target->file = cf->conf_file->file.name.data;
    target->line = cf->conf_file->line;
    target->location = NULL;

    p = ngx_strlchr(uri->data, uri->data + uri->len, '?');

    if (p) {
        target->uri.len = p - uri->data;
    }

    return NGX_OK;
}


/* runs for each server, before configurations of its locations are merged */

static char *
ngx_http_mcp_defaults_merge_srv_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_mcp_defaults_srv_conf_t *prev = parent;
    ngx_http_mcp_defaults_srv_conf_t *conf = child;

    ngx_http_conf_ctx_t       *ctx;
    ngx_http_core_srv_conf_t  *cscf;
    ngx_http_core_loc_conf_t  *clcf;

    ctx = cf->ctx;

    cscf = ctx->srv_conf[ngx_http_core_module.ctx_index];
    clcf = cscf->ctx->loc_conf[ngx_http_core_module.ctx_index];

    ngx_http_mcp_defaults_resolve(clcf, &prev->targets);
    ngx_http_mcp_defaults_resolve(clcf, &conf->targets);

    return NGX_CONF_OK;
}


static void
ngx_http_mcp_defaults_resolve(ngx_http_core_loc_conf_t *server,
    ngx_array_t *targets)
{
    ngx_uint_t                         i, final;
    ngx_http_core_loc_conf_t          *clcf;
    ngx_http_mcp_defaults_target_t    *target;
    ngx_http_mcp_defaults_loc_conf_t  *dlcf;

    target = targets->elts;

    for (i = 0; i < targets->nelts; i++) {

        final = 0;

        clcf = ngx_http_mcp_defaults_find(server, &target[i].uri, &final);

        target[i].location = clcf;

        if (clcf == NULL) {
            continue;
        }

        dlcf = clcf->loc_conf[ngx_http_mcp_defaults_module.ctx_index];
        dlcf->target = 1;
    }
}


/*
 * Returns the location that ngx_http_core_find_location() will find at run
 * time.  Now the locations are still in the order of the configuration.
 */

static ngx_http_core_loc_conf_t *
ngx_http_mcp_defaults_find(ngx_http_core_loc_conf_t *parent, ngx_str_t *uri,
    ngx_uint_t *final)
{
    ngx_queue_t                *q;
    ngx_http_core_loc_conf_t   *clcf, *best, *nested;
    ngx_http_location_queue_t  *lq;

    if (parent->locations == NULL) {
        return NULL;
    }

    best = NULL;

    for (q = ngx_queue_head(parent->locations);
         q != ngx_queue_sentinel(parent->locations);
         q = ngx_queue_next(q))
    {
        lq = (ngx_http_location_queue_t *) q;
        clcf = lq->exact ? lq->exact : lq->inclusive;

        if (clcf->noname || clcf->named
#if (NGX_PCRE)
            || clcf->regex
#endif
            || uri->len < clcf->name.len
            || ngx_strncmp(uri->data, clcf->name.data, clcf->name.len) != 0)
        {
            continue;
        }

        if (clcf->exact_match) {

            if (uri->len == clcf->name.len) {
                *final = 1;
                return clcf;
            }

            continue;
        }

        if (best == NULL || clcf->name.len > best->name.len) {
            best = clcf;
        }
    }

    if (best) {
        nested = ngx_http_mcp_defaults_find(best, uri, final);

        if (*final) {
            return nested;
        }

        if (best->noregex) {
            return nested ? nested : best;
        }

        clcf = ngx_http_mcp_defaults_find_regex(parent, uri, final);
        if (clcf) {
            return clcf;
        }

        return nested ? nested : best;
    }

    return ngx_http_mcp_defaults_find_regex(parent, uri, final);
}


static ngx_http_core_loc_conf_t *
ngx_http_mcp_defaults_find_regex(ngx_http_core_loc_conf_t *parent,
    ngx_str_t *uri, ngx_uint_t *final)
{
#if (NGX_PCRE)
    ngx_queue_t                *q;
    ngx_http_core_loc_conf_t   *clcf, *nested;
    ngx_http_location_queue_t  *lq;

    for (q = ngx_queue_head(parent->locations);
         q != ngx_queue_sentinel(parent->locations);
         q = ngx_queue_next(q))
    {
        lq = (ngx_http_location_queue_t *) q;
        clcf = lq->exact ? lq->exact : lq->inclusive;

        if (clcf->regex == NULL
            || ngx_regex_exec(clcf->regex->regex, uri, NULL, 0) < 0)
        {
            continue;
        }

        nested = ngx_http_mcp_defaults_find(clcf, uri, final);

        *final = 1;

        return nested ? nested : clcf;
    }
#endif

    return NULL;
}


static char *
ngx_http_mcp_defaults_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_mcp_defaults_loc_conf_t *prev = parent;
    ngx_http_mcp_defaults_loc_conf_t *conf = child;

    ngx_http_conf_ctx_t                *ctx;
    ngx_http_core_loc_conf_t           *clcf;
    ngx_http_mcp_defaults_main_conf_t  *dmcf;

    ctx = cf->ctx;
    dmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_mcp_defaults_module);

    if (ngx_http_mcp_defaults_find_assigned(cf, ctx->loc_conf, &dmcf->assigned)
        != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    if (ngx_http_mcp_defaults_proxy.module == NULL) {
        return NGX_CONF_OK;
    }

    if (prev->loc_conf == NULL) {

        /* the http block */

        ngx_http_mcp_defaults_note(prev, dmcf->loc_conf);
    }

    conf->prev = prev;
    conf->http_version = prev->http_version;
    conf->buffering = prev->buffering;
    conf->read_timeout = prev->read_timeout;
    conf->no_keepalive = prev->no_keepalive;
    conf->buffers = prev->buffers;

    ngx_http_mcp_defaults_note(conf, ctx->loc_conf);

    clcf = ctx->loc_conf[ngx_http_core_module.ctx_index];

    if (clcf->noname && prev->target) {
        conf->target = 1;
    }

    if (!conf->target) {
        return NGX_CONF_OK;
    }

    return ngx_http_mcp_defaults_fill(cf, conf);
}


/* notes which directives of the proxy module the user wrote on this level */

static void
ngx_http_mcp_defaults_note(ngx_http_mcp_defaults_loc_conf_t *conf,
    void **loc_conf)
{
    ngx_bufs_t                     *bufs;
    ngx_flag_t                      keepalive;
    ngx_http_core_loc_conf_t       *clcf;
    ngx_http_mcp_defaults_proxy_t  *proxy;

    proxy = &ngx_http_mcp_defaults_proxy;

    conf->loc_conf = loc_conf;

    clcf = loc_conf[ngx_http_core_module.ctx_index];
    conf->body_size = clcf->client_max_body_size;

    if (ngx_http_mcp_defaults_field(loc_conf, ngx_uint_t, proxy->http_version)
        != NGX_CONF_UNSET_UINT)
    {
        conf->http_version = 1;
    }

    if (ngx_http_mcp_defaults_field(loc_conf, ngx_flag_t, proxy->buffering)
        != NGX_CONF_UNSET)
    {
        conf->buffering = 1;
    }

    if (ngx_http_mcp_defaults_field(loc_conf, ngx_msec_t, proxy->read_timeout)
        != NGX_CONF_UNSET_MSEC)
    {
        conf->read_timeout = 1;
    }

    bufs = &ngx_http_mcp_defaults_field(loc_conf, ngx_bufs_t, proxy->buffers);

    if (bufs->num
        || ngx_http_mcp_defaults_field(loc_conf, size_t, proxy->buffer_size)
           != NGX_CONF_UNSET_SIZE
        || ngx_http_mcp_defaults_field(loc_conf, size_t, proxy->busy_buffers)
           != NGX_CONF_UNSET_SIZE)
    {
        conf->buffers = 1;
    }

    keepalive = ngx_http_mcp_defaults_field(loc_conf, ngx_flag_t,
                                            proxy->socket_keepalive);

    if (keepalive != NGX_CONF_UNSET) {
        conf->no_keepalive = !keepalive;
    }
}


static char *
ngx_http_mcp_defaults_fill(ngx_conf_t *cf,
    ngx_http_mcp_defaults_loc_conf_t *conf)
{
    void                              **loc_conf;
    ngx_str_t                           host;
    ngx_array_t                        *source, *headers;
    ngx_http_core_loc_conf_t           *clcf;
    ngx_http_mcp_defaults_proxy_t      *proxy;
    ngx_http_mcp_defaults_loc_conf_t   *level;

    proxy = &ngx_http_mcp_defaults_proxy;
    loc_conf = conf->loc_conf;

    for (level = conf; level->prev && level->prev->target; level = level->prev)
    {
        /* finds the location itself, if this is an "if" inside it */
    }

    if (level->prev && conf->body_size == level->prev->body_size) {
        clcf = loc_conf[ngx_http_core_module.ctx_index];
        clcf->client_max_body_size = 0;
    }

    if (!conf->http_version) {
        ngx_http_mcp_defaults_field(loc_conf, ngx_uint_t, proxy->http_version)
            = NGX_HTTP_VERSION_11;
    }

    if (!conf->buffering) {
        ngx_http_mcp_defaults_field(loc_conf, ngx_flag_t, proxy->buffering)
            = 0;
    }

    if (!conf->buffers) {
        ngx_http_mcp_defaults_field(loc_conf, size_t, proxy->buffer_size)
            = ngx_max(ngx_pagesize, NGX_HTTP_MCP_DEFAULTS_HEADER);
    }

    source = NULL;

    for (level = conf; level; level = level->prev) {

        source = ngx_http_mcp_defaults_field(level->loc_conf, ngx_array_t *,
                                             proxy->headers);

        if (source && source != NGX_CONF_UNSET_PTR) {
            break;
        }

        source = NULL;
    }

    if (ngx_http_mcp_defaults_host(cf, conf, &host) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    headers = ngx_http_mcp_defaults_headers(cf, source, &host);
    if (headers == NULL) {
        return NGX_CONF_ERROR;
    }

    if (headers != source) {
        ngx_http_mcp_defaults_field(loc_conf, ngx_array_t *, proxy->headers)
            = headers;
    }

    return NGX_CONF_OK;
}


/*
 * Many servers that listen only on loopback addresses accept only the names of
 * these addresses as Host.  So, if all servers of an "upstream" block are on
 * loopback addresses, the name of the block is replaced by "localhost" and the
 * port.  A name with a dot may be that of a host and is not replaced.
 */

static ngx_int_t
ngx_http_mcp_defaults_host(ngx_conf_t *cf,
    ngx_http_mcp_defaults_loc_conf_t *conf, ngx_str_t *host)
{
    in_port_t                         port;
    ngx_uint_t                        i, j;
    ngx_http_core_loc_conf_t         *clcf;
    ngx_http_upstream_conf_t         *ucf;
    ngx_http_upstream_server_t       *server;
    ngx_http_upstream_srv_conf_t     *uscf;

    ngx_str_null(host);

    ucf = ngx_http_mcp_defaults_upstream(conf->loc_conf);
    clcf = conf->loc_conf[ngx_http_core_module.ctx_index];

    if (ucf->upstream == NULL && clcf->noname) {
        ucf = ngx_http_mcp_defaults_upstream(conf->prev->loc_conf);
    }

    uscf = ucf->upstream;

    if (uscf == NULL || uscf->servers == NULL || uscf->servers->nelts == 0
        || !(uscf->flags & NGX_HTTP_UPSTREAM_CREATE)
        || ngx_strlchr(uscf->host.data, uscf->host.data + uscf->host.len, '.'))
    {
        return NGX_OK;
    }

    server = uscf->servers->elts;

    for (i = 0; i < uscf->servers->nelts; i++) {

        if (server[i].naddrs == 0) {
            return NGX_OK;
        }

        for (j = 0; j < server[i].naddrs; j++) {
            if (!ngx_http_mcp_defaults_loopback(server[i].addrs[j].sockaddr))
            {
                return NGX_OK;
            }
        }
    }

    host->data = ngx_pnalloc(cf->pool, sizeof("localhost:65535") - 1);
    if (host->data == NULL) {
        return NGX_ERROR;
    }

    port = ngx_inet_get_port(server[0].addrs[0].sockaddr);

    if (port) {
        host->len = ngx_sprintf(host->data, "localhost:%ui", (ngx_uint_t) port)
                    - host->data;
    } else {
        host->len = ngx_sprintf(host->data, "localhost") - host->data;
    }

    return NGX_OK;
}


static ngx_uint_t
ngx_http_mcp_defaults_loopback(struct sockaddr *sockaddr)
{
    struct sockaddr_in   *sin;
#if (NGX_HAVE_INET6)
    struct sockaddr_in6  *sin6;
#endif

    switch (sockaddr->sa_family) {

#if (NGX_HAVE_INET6)
    case AF_INET6:
        sin6 = (struct sockaddr_in6 *) sockaddr;
        return IN6_IS_ADDR_LOOPBACK(&sin6->sin6_addr) ? 1 : 0;
#endif

#if (NGX_HAVE_UNIX_DOMAIN)
    case AF_UNIX:
        return 1;
#endif

    default: /* AF_INET */
        sin = (struct sockaddr_in *) sockaddr;
        return (ntohl(sin->sin_addr.s_addr) >> 24) == 127;
    }
}


static ngx_array_t *
ngx_http_mcp_defaults_headers(ngx_conf_t *cf, ngx_array_t *source,
    ngx_str_t *host)
{
    ngx_str_t      connection_name, host_name;
    ngx_uint_t     n, connection;
    ngx_array_t   *headers;
    ngx_keyval_t  *kv;

    ngx_str_set(&connection_name, "Connection");
    ngx_str_set(&host_name, "Host");

    connection = !ngx_http_mcp_defaults_header(source, &connection_name);

    if (host->len && ngx_http_mcp_defaults_header(source, &host_name)) {
        host->len = 0;
    }

    if (source && !connection && host->len == 0) {
        return source;
    }

    n = source ? source->nelts : 0;

    headers = ngx_array_create(cf->pool, n + 2, sizeof(ngx_keyval_t));
    if (headers == NULL) {
        return NULL;
    }

    if (n) {
        kv = ngx_array_push_n(headers, n);
        ngx_memcpy(kv, source->elts, n * sizeof(ngx_keyval_t));
    }

    if (connection) {
        kv = ngx_array_push(headers);

        kv->key = connection_name;
        ngx_str_set(&kv->value, "");
    }

    if (host->len) {
        kv = ngx_array_push(headers);

        kv->key = host_name;
        kv->value = *host;
    }

    return headers;
}


static ngx_uint_t
ngx_http_mcp_defaults_header(ngx_array_t *source, ngx_str_t *name)
{
    ngx_uint_t     i;
    ngx_keyval_t  *kv;

    if (source == NULL) {
        return 0;
    }

    kv = source->elts;

    for (i = 0; i < source->nelts; i++) {

        if (kv[i].key.len == name->len
            && ngx_strncasecmp(kv[i].key.data, name->data, name->len) == 0)
        {
            return 1;
        }
    }

    return 0;
}


static ngx_int_t
ngx_http_mcp_defaults_offset(char *name, ngx_uint_t *offset)
{
    size_t          len;
    ngx_command_t  *cmd;

    len = ngx_strlen(name);
    cmd = ngx_http_mcp_defaults_proxy.module->commands;

    for ( /* void */ ; cmd && cmd->name.len; cmd++) {

        if (cmd->name.len == len
            && ngx_strncmp(cmd->name.data, name, len) == 0)
        {
            if (cmd->conf != NGX_HTTP_LOC_CONF_OFFSET) {
                break;
            }

            *offset = cmd->offset;
            return NGX_OK;
        }
    }

    return NGX_DECLINED;
}


static ngx_int_t
ngx_http_mcp_defaults_preconfiguration(ngx_conf_t *cf)
{
    ngx_uint_t                          i;
    ngx_module_t                      **modules;
    ngx_http_conf_ctx_t                *ctx;
    ngx_http_mcp_defaults_proxy_t      *proxy;
    ngx_http_mcp_defaults_main_conf_t  *dmcf;

    ctx = cf->ctx;
    dmcf = ctx->main_conf[ngx_http_mcp_defaults_module.ctx_index];
    dmcf->loc_conf = ctx->loc_conf;

    proxy = &ngx_http_mcp_defaults_proxy;
    proxy->module = NULL;

    modules = cf->cycle->modules;

    for (i = 0; modules[i]; i++) {
        if (ngx_strcmp(modules[i]->name, "ngx_http_proxy_module") == 0) {
            proxy->module = modules[i];
            break;
        }
    }

    if (proxy->module == NULL) {
        return NGX_OK;
    }

    if (ngx_http_mcp_defaults_offset("proxy_http_version",
                                     &proxy->http_version)
        != NGX_OK
        || ngx_http_mcp_defaults_offset("proxy_buffering", &proxy->buffering)
           != NGX_OK
        || ngx_http_mcp_defaults_offset("proxy_read_timeout",
                                        &proxy->read_timeout)
           != NGX_OK
        || ngx_http_mcp_defaults_offset("proxy_socket_keepalive",
                                        &proxy->socket_keepalive)
           != NGX_OK
        || ngx_http_mcp_defaults_offset("proxy_buffer_size",
                                        &proxy->buffer_size)
           != NGX_OK
        || ngx_http_mcp_defaults_offset("proxy_buffers", &proxy->buffers)
           != NGX_OK
        || ngx_http_mcp_defaults_offset("proxy_busy_buffers_size",
                                        &proxy->busy_buffers)
           != NGX_OK
        || ngx_http_mcp_defaults_offset("proxy_set_header", &proxy->headers)
           != NGX_OK)
    {
        proxy->module = NULL;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_mcp_defaults_postconfiguration(ngx_conf_t *cf)
{
    ngx_uint_t                          i, j;
    ngx_http_core_srv_conf_t          **cscf;
    ngx_http_core_main_conf_t          *cmcf;
    ngx_http_mcp_defaults_target_t     *target;
    ngx_http_mcp_defaults_srv_conf_t   *dscf;
    ngx_http_mcp_defaults_main_conf_t  *dmcf;

    dmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_mcp_defaults_module);

    if (ngx_http_mcp_defaults_find_assigned(cf, dmcf->loc_conf, &dmcf->assigned)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);
    cscf = cmcf->servers.elts;

    /* for a URI of a directive in the "http" block, no location is required */

    for (i = 0; i < cmcf->servers.nelts; i++) {
        dscf = cscf[i]->ctx->srv_conf[ngx_http_mcp_defaults_module.ctx_index];
        target = dscf->targets.elts;

        for (j = 0; j < dscf->targets.nelts; j++) {
            if (ngx_http_mcp_defaults_check(cf, &target[j],
                                            cscf[i]->ctx->loc_conf)
                != NGX_OK)
            {
                return NGX_ERROR;
            }
        }
    }

    return NGX_OK;
}


/*
 * Whether a location can only serve files: it has no content handler, "return",
 * "rewrite", "if" or "try_files".  The configurations of the rewrite and
 * try_files modules begin with a pointer that is NULL without such directives.
 */

static ngx_uint_t
ngx_http_mcp_defaults_unanswered(ngx_conf_t *cf,
    ngx_http_core_loc_conf_t *clcf)
{
    void           **conf;
    ngx_uint_t       i;
    ngx_module_t   **modules;

    if (clcf->handler) {
        return 0;
    }

    modules = cf->cycle->modules;

    for (i = 0; modules[i]; i++) {

        if (ngx_strcmp(modules[i]->name, "ngx_http_rewrite_module") == 0
            || ngx_strcmp(modules[i]->name, "ngx_http_try_files_module") == 0)
        {
            conf = clcf->loc_conf[modules[i]->ctx_index];

            if (*conf) {
                return 0;
            }
        }
    }

    return 1;
}


static ngx_int_t
ngx_http_mcp_defaults_check(ngx_conf_t *cf,
    ngx_http_mcp_defaults_target_t *target, void **server)
{
    ngx_http_mcp_defaults_loc_conf_t  *dlcf;

    if (target->location == NULL) {
        ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                      "\"%V\" in %s:%ui names \"%V\", for which there is no "
                      "location; add \"location = %V { internal; ... }\"",
                      &target->directive, target->file, target->line,
                      &target->uri, &target->uri);
        return NGX_OK;
    }

    dlcf = target->location->loc_conf[ngx_http_mcp_defaults_module.ctx_index];

    if (dlcf->endpoint) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"%V\" in %s:%ui names \"%V\", which is an endpoint "
                      "itself; name a location of its own, with \"internal;\" "
                      "and the \"proxy_pass\" to the backend",
                      &target->directive, target->file, target->line,
                      &target->uri);
        return NGX_ERROR;
    }

    if (ngx_strcmp(target->directive.data, "mcp_upstream") == 0
        && ngx_http_mcp_defaults_unanswered(cf, target->location))
    {
        ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                      "\"%V\" in %s:%ui names \"%V\", and nothing answers in "
                      "its location \"%V\"; add a \"proxy_pass\" there",
                      &target->directive, target->file, target->line,
                      &target->uri, &target->location->name);
    }

    if (!target->location->internal) {
        ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                      "\"%V\" in %s:%ui names \"%V\", and its location \"%V\" "
                      "is not internal: clients can bypass the endpoint; add "
                      "\"internal;\" there, or a location for \"%V\"",
                      &target->directive, target->file,
                      target->line, &target->uri, &target->location->name,
                      &target->uri);
    }

    ngx_http_mcp_defaults_warn(cf, target, server);

    return NGX_OK;
}


/* warns about directives of the location that have no or a harmful effect */

static void
ngx_http_mcp_defaults_warn(ngx_conf_t *cf,
    ngx_http_mcp_defaults_target_t *target, void **server)
{
    const char                *access;
    ngx_http_core_loc_conf_t  *clcf;
    ngx_http_upstream_conf_t  *ucf;

    clcf = target->location;

    access = ngx_http_mcp_access(cf, clcf->loc_conf, server);

    if (access && clcf->internal) {
        ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                      "\"%V\" in %s:%ui names \"%V\", and \"%s\" in its "
                      "location \"%V\" has no effect: nginx checks access in "
                      "the location of the endpoint only; move it there",
                      &target->directive, target->file, target->line,
                      &target->uri, access, &clcf->name);
    }

    if (ngx_http_mcp_defaults_proxy.module == NULL) {
        return;
    }

    ucf = ngx_http_mcp_defaults_upstream(clcf->loc_conf);

    if (ucf->upstream == NULL) {
        return;
    }

    if (!ucf->pass_request_headers) {
        ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                      "\"%V\" in %s:%ui names \"%V\", and "
                      "\"proxy_pass_request_headers off\" in its location "
                      "\"%V\" keeps \"Content-Type\", \"Accept\" and "
                      "\"Mcp-Session-Id\" from the upstream; write "
                      "\"proxy_set_header NAME '';\" for each header that the "
                      "upstream must not get instead",
                      &target->directive, target->file, target->line,
                      &target->uri, &clcf->name);
    }

    if (!ucf->pass_request_body
        && ngx_strcmp(target->directive.data, "mcp_upstream") == 0)
    {
        ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                      "\"%V\" in %s:%ui names \"%V\", and "
                      "\"proxy_pass_request_body off\" in its location "
                      "\"%V\" keeps the messages from the upstream; remove it",
                      &target->directive, target->file, target->line,
                      &target->uri, &clcf->name);
    }
}


void
ngx_http_mcp_defaults_endpoint(ngx_conf_t *cf)
{
    ngx_http_mcp_defaults_loc_conf_t  *dlcf;

    dlcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_mcp_defaults_module);
    dlcf->endpoint = 1;
}


static void *
ngx_http_mcp_defaults_create_main_conf(ngx_conf_t *cf)
{
    ngx_http_mcp_defaults_main_conf_t  *dmcf;

    dmcf = ngx_pcalloc(cf->pool, sizeof(ngx_http_mcp_defaults_main_conf_t));

    if (dmcf == NULL
        || ngx_array_init(&dmcf->assigned, cf->pool, 8, sizeof(ngx_uint_t))
           != NGX_OK)
    {
        return NULL;
    }

    return dmcf;
}


static void *
ngx_http_mcp_defaults_create_srv_conf(ngx_conf_t *cf)
{
    ngx_http_mcp_defaults_srv_conf_t  *conf;

    conf = ngx_pcalloc(cf->pool, sizeof(ngx_http_mcp_defaults_srv_conf_t));
    if (conf == NULL) {
        return NULL;
    }

    if (ngx_array_init(&conf->targets, cf->pool, 2,
                       sizeof(ngx_http_mcp_defaults_target_t))
        != NGX_OK)
    {
        return NULL;
    }

    return conf;
}


static void *
ngx_http_mcp_defaults_create_loc_conf(ngx_conf_t *cf)
{
    return ngx_pcalloc(cf->pool, sizeof(ngx_http_mcp_defaults_loc_conf_t));
}
