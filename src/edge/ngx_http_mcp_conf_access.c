
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_conf.h"


static ngx_uint_t ngx_http_mcp_conf_protected(ngx_conf_t *cf,
    ngx_http_mcp_guarded_t *g);
static ngx_uint_t ngx_http_mcp_conf_unix(ngx_conf_t *cf,
    ngx_http_core_srv_conf_t *server);
static ngx_module_t *ngx_http_mcp_conf_module(ngx_conf_t *cf,
    const char *name);
static ngx_uint_t ngx_http_mcp_conf_has_rules(void *conf);
static ngx_uint_t ngx_http_mcp_conf_has_realm(ngx_module_t *module,
    void *conf);


ngx_int_t
ngx_http_mcp_conf_guarded(ngx_conf_t *cf)
{
    ngx_str_t                 *value;
    ngx_http_conf_ctx_t       *ctx;
    ngx_http_mcp_guarded_t    *g;
    ngx_http_mcp_main_conf_t  *mmcf;

    ctx = cf->ctx;
    value = cf->args->elts;
    mmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_mcp_module);

    g = ngx_array_push(&mmcf->guarded);
    if (g == NULL) {
        return NGX_ERROR;
    }

    g->directive = value[0];
    g->file = cf->conf_file->file.name.data;
    g->line = cf->conf_file->line;
    g->loc_conf = ctx->loc_conf;
    g->srv_conf = ctx->srv_conf;

    return NGX_OK;
}


void
ngx_http_mcp_conf_warn_access(ngx_conf_t *cf, ngx_http_mcp_main_conf_t *mmcf)
{
    ngx_uint_t               i;
    ngx_http_mcp_guarded_t  *g;

    g = mmcf->guarded.elts;

    for (i = 0; i < mmcf->guarded.nelts; i++) {

        if (ngx_http_mcp_conf_protected(cf, &g[i])) {
            continue;
        }

        ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                      "\"%V\" in %s:%ui accepts requests of all clients: none "
                      "of \"allow\" and \"deny\", \"auth_basic\", "
                      "\"auth_request\" and \"ssl_verify_client on\" applies "
                      "to its location; add for example \"allow 127.0.0.1; "
                      "deny all;\"",
                      &g[i].directive, g[i].file, g[i].line);
    }
}


/* rules that cannot be seen, such as those of other modules, count as none */

static ngx_uint_t
ngx_http_mcp_conf_protected(ngx_conf_t *cf, ngx_http_mcp_guarded_t *g)
{
    ngx_str_t                 *uri;
    ngx_module_t              *module;
    ngx_http_core_loc_conf_t  *clcf;
#if (NGX_HTTP_SSL)
    ngx_http_ssl_srv_conf_t   *sscf;
#endif

    clcf = g->loc_conf[ngx_http_core_module.ctx_index];

    if (clcf->internal
        || ngx_http_mcp_conf_unix(cf,
                                 g->srv_conf[ngx_http_core_module.ctx_index]))
    {
        return 1;
    }

    module = ngx_http_mcp_conf_module(cf, "ngx_http_access_module");

    if (module
        && ngx_http_mcp_conf_has_rules(g->loc_conf[module->ctx_index]))
    {
        return 1;
    }

    module = ngx_http_mcp_conf_module(cf, "ngx_http_auth_basic_module");

    if (module
        && ngx_http_mcp_conf_has_realm(module,
                                       g->loc_conf[module->ctx_index]))
    {
        return 1;
    }

    module = ngx_http_mcp_conf_module(cf, "ngx_http_auth_request_module");

    if (module) {

        /* its configuration begins with the URI */

        uri = g->loc_conf[module->ctx_index];

        if (uri->len) {
            return 1;
        }
    }

#if (NGX_HTTP_SSL)

    module = ngx_http_mcp_conf_module(cf, "ngx_http_ssl_module");

    if (module) {
        sscf = g->srv_conf[module->ctx_index];

        if (sscf->verify == 1) {
            return 1;
        }
    }

#endif

    return 0;
}


/* whether the server listens on sockets of files alone */

static ngx_uint_t
ngx_http_mcp_conf_unix(ngx_conf_t *cf, ngx_http_core_srv_conf_t *server)
{
    ngx_uint_t                   p, a, s, found;
    ngx_http_conf_port_t        *port;
    ngx_http_conf_addr_t        *addr;
    ngx_http_core_srv_conf_t   **servers;
    ngx_http_core_main_conf_t   *cmcf;

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    if (cmcf->ports == NULL) {
        return 0;
    }

    found = 0;
    port = cmcf->ports->elts;

    for (p = 0; p < cmcf->ports->nelts; p++) {

        addr = port[p].addrs.elts;

        for (a = 0; a < port[p].addrs.nelts; a++) {

            servers = addr[a].servers.elts;

            for (s = 0; s < addr[a].servers.nelts; s++) {

                if (servers[s] != server) {
                    continue;
                }

                if (port[p].family != AF_UNIX) {
                    return 0;
                }

                found = 1;
            }
        }
    }

    return found;
}


static ngx_module_t *
ngx_http_mcp_conf_module(ngx_conf_t *cf, const char *name)
{
    ngx_uint_t  i;

    for (i = 0; cf->cycle->modules[i]; i++) {
        if (ngx_strcmp(cf->cycle->modules[i]->name, name) == 0) {
            return cf->cycle->modules[i];
        }
    }

    return NULL;
}


/* a list of rules for each family of addresses is all that is in it */

static ngx_uint_t
ngx_http_mcp_conf_has_rules(void *conf)
{
    ngx_uint_t     i, n;
    ngx_array_t  **rules;

    rules = conf;
    n = 1;

#if (NGX_HAVE_INET6)
    n++;
#endif

#if (NGX_HAVE_UNIX_DOMAIN)
    n++;
#endif

    for (i = 0; i < n; i++) {
        if (rules[i]) {
            return 1;
        }
    }

    return 0;
}


static ngx_uint_t
ngx_http_mcp_conf_has_realm(ngx_module_t *module, void *conf)
{
    ngx_command_t             *cmd;
    ngx_http_complex_value_t  *realm;

    for (cmd = module->commands; cmd->name.len; cmd++) {

        if (ngx_strcmp(cmd->name.data, "auth_basic") != 0
            || cmd->set != ngx_http_set_complex_value_slot)
        {
            continue;
        }

        realm = *(ngx_http_complex_value_t **) ((u_char *) conf + cmd->offset);

        return realm && realm != NGX_CONF_UNSET_PTR
               && (realm->lengths
                   || ngx_strcmp(realm->value.data, "off") != 0);
    }

    return 0;
}
