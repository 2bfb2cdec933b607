
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_access.h"


static ngx_uint_t ngx_http_mcp_access_rules(void *conf, void *outer);
static ngx_http_complex_value_t *ngx_http_mcp_access_realm(
    ngx_module_t *module, void *conf);


const char *
ngx_http_mcp_access(ngx_conf_t *cf, void **loc_conf, void **outer)
{
    ngx_str_t                 *uri, *other;
    ngx_module_t              *module;
    ngx_http_complex_value_t  *realm;

    module = ngx_http_mcp_access_module(cf, "ngx_http_access_module");

    if (module
        && ngx_http_mcp_access_rules(loc_conf[module->ctx_index],
                                     outer ? outer[module->ctx_index] : NULL))
    {
        return "allow\" and \"deny";
    }

    module = ngx_http_mcp_access_module(cf, "ngx_http_auth_basic_module");

    if (module) {
        realm = ngx_http_mcp_access_realm(module, loc_conf[module->ctx_index]);

        if (realm
            && (outer == NULL
                || realm != ngx_http_mcp_access_realm(module,
                                                 outer[module->ctx_index])))
        {
            return "auth_basic";
        }
    }

    module = ngx_http_mcp_access_module(cf, "ngx_http_auth_request_module");

    if (module) {

        /* the configuration of nginx's module begins with the URI */

        uri = loc_conf[module->ctx_index];
        other = outer ? outer[module->ctx_index] : NULL;

        if (uri->len && (other == NULL || uri->data != other->data)) {
            return "auth_request";
        }
    }

    return NULL;
}


ngx_module_t *
ngx_http_mcp_access_module(ngx_conf_t *cf, const char *name)
{
    ngx_uint_t  i;

    for (i = 0; cf->cycle->modules[i]; i++) {
        if (ngx_strcmp(cf->cycle->modules[i]->name, name) == 0) {
            return cf->cycle->modules[i];
        }
    }

    return NULL;
}


/*
 * The configuration of ngx_http_access_module has one array of rules for each
 * address family, and the last field of a rule is its "deny" flag.  Without a
 * "deny" rule all clients are allowed.
 */

static ngx_uint_t
ngx_http_mcp_access_rules(void *conf, void *outer)
{
    u_char        *deny;
    ngx_uint_t     i, j, n;
    ngx_array_t  **rules, **others;

    rules = conf;
    others = outer;
    n = 1;

#if (NGX_HAVE_INET6)
    n++;
#endif

#if (NGX_HAVE_UNIX_DOMAIN)
    n++;
#endif

    for (i = 0; i < n; i++) {
        if (rules[i] == NULL || (others && rules[i] == others[i])) {
            continue;
        }

        deny = (u_char *) rules[i]->elts - sizeof(ngx_uint_t);

        for (j = 0; j < rules[i]->nelts; j++) {
            deny += rules[i]->size;

            if (*(ngx_uint_t *) deny) {
                return 1;
            }
        }
    }

    return 0;
}


/* the realm is also NULL for "auth_basic off" */

static ngx_http_complex_value_t *
ngx_http_mcp_access_realm(ngx_module_t *module, void *conf)
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

        if (realm == NULL || realm == NGX_CONF_UNSET_PTR
            || (realm->lengths == NULL
                && ngx_strcmp(realm->value.data, "off") == 0))
        {
            return NULL;
        }

        return realm;
    }

    return NULL;
}
