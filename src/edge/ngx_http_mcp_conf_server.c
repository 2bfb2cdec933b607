
#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>
#include "ngx_http_mcp_module.h"
#include "ngx_http_mcp_conf.h"


static ngx_http_conf_addr_t *ngx_http_mcp_conf_server_addr(
    ngx_http_core_main_conf_t *cmcf, ngx_http_core_srv_conf_t *cscf);
static ngx_int_t ngx_http_mcp_conf_server_sockaddr(ngx_conf_t *cf,
    ngx_http_mcp_server_t *server, ngx_http_conf_addr_t *addr);
static ngx_uint_t ngx_http_mcp_conf_server_name(ngx_array_t *names,
    ngx_str_t *name);


ngx_int_t
ngx_http_mcp_conf_server(ngx_conf_t *cf, ngx_http_mcp_loc_conf_t *mlcf)
{
    u_char                     *p;
    ngx_http_conf_addr_t       *addr;
    ngx_http_mcp_server_t      *server;
    ngx_http_core_srv_conf_t   *cscf;
    ngx_http_core_main_conf_t  *cmcf;

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);
    cscf = mlcf->conf_ctx->srv_conf[ngx_http_core_module.ctx_index];

    server = &mlcf->server;

    addr = ngx_http_mcp_conf_server_addr(cmcf, cscf);

    if (addr) {
        server->ssl = addr->opt.ssl;
    }

    if (ngx_http_mcp_conf_server_sockaddr(cf, server, addr) != NGX_OK) {
        return NGX_ERROR;
    }

    if (ngx_http_mcp_conf_server_name(mlcf->names, &server->name)) {
        server->host = server->name;
        return NGX_OK;
    }

    if (server->sockaddr->sa_family == AF_UNIX) {
        ngx_str_set(&server->name, "localhost");
        server->host = server->name;
        return NGX_OK;
    }

    p = ngx_pnalloc(cf->pool, NGX_SOCKADDR_STRLEN);
    if (p == NULL) {
        return NGX_ERROR;
    }

    server->host.data = p;
    server->host.len = ngx_sock_ntop(server->sockaddr, server->socklen, p,
                                     NGX_SOCKADDR_STRLEN, 1);

    server->name = server->host;

    while (server->name.len && server->name.data[--server->name.len] != ':') {
        /* void */
    }

    return NGX_OK;
}


/* the first that the server listens on, by TLS if it does anywhere */

static ngx_http_conf_addr_t *
ngx_http_mcp_conf_server_addr(ngx_http_core_main_conf_t *cmcf,
    ngx_http_core_srv_conf_t *cscf)
{
    ngx_uint_t                  i, j, n;
    ngx_http_conf_addr_t       *addr, *first;
    ngx_http_conf_port_t       *port;
    ngx_http_core_srv_conf_t  **servers;

    first = NULL;

    if (cmcf->ports == NULL) {
        return NULL;
    }

    port = cmcf->ports->elts;

    for (i = 0; i < cmcf->ports->nelts; i++) {
        addr = port[i].addrs.elts;

        for (j = 0; j < port[i].addrs.nelts; j++) {
            servers = addr[j].servers.elts;

            for (n = 0; n < addr[j].servers.nelts; n++) {

                if (servers[n] != cscf) {
                    continue;
                }

                if (addr[j].opt.ssl) {
                    return &addr[j];
                }

                if (first == NULL) {
                    first = &addr[j];
                }
            }
        }
    }

    return first;
}


/* one on which a request can have come in: no wildcard */

static ngx_int_t
ngx_http_mcp_conf_server_sockaddr(ngx_conf_t *cf,
    ngx_http_mcp_server_t *server, ngx_http_conf_addr_t *addr)
{
    struct sockaddr_in   *sin;
#if (NGX_HAVE_INET6)
    struct sockaddr_in6  *sin6;
#endif

    server->sockaddr = ngx_pcalloc(cf->pool, sizeof(ngx_sockaddr_t));
    if (server->sockaddr == NULL) {
        return NGX_ERROR;
    }

    if (addr) {
        ngx_memcpy(server->sockaddr, addr->opt.sockaddr, addr->opt.socklen);
        server->socklen = addr->opt.socklen;

    } else {
        server->sockaddr->sa_family = AF_INET;
        server->socklen = sizeof(struct sockaddr_in);
    }

    switch (server->sockaddr->sa_family) {

    case AF_INET:
        sin = (struct sockaddr_in *) server->sockaddr;

        if (sin->sin_addr.s_addr == INADDR_ANY) {
            sin->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        }

        break;

#if (NGX_HAVE_INET6)
    case AF_INET6:
        sin6 = (struct sockaddr_in6 *) server->sockaddr;

        if (IN6_IS_ADDR_UNSPECIFIED(&sin6->sin6_addr)) {
            sin6->sin6_addr.s6_addr[15] = 1;
        }

        break;
#endif
    }

    return NGX_OK;
}


/* the first "server_name" that a client can have said */

static ngx_uint_t
ngx_http_mcp_conf_server_name(ngx_array_t *names, ngx_str_t *name)
{
    ngx_uint_t               i;
    ngx_http_server_name_t  *sn;

    sn = names->elts;

    for (i = 0; i < names->nelts; i++) {
        *name = sn[i].name;

#if (NGX_PCRE)
        if (sn[i].regex) {
            continue;
        }
#endif

        if (name->len == 0
            || ngx_strlchr(name->data, name->data + name->len, '*')
            || (name->len == 1 && name->data[0] == '_'))
        {
            continue;
        }

        if (name->data[0] == '.') {
            name->data++;
            name->len--;
        }

        return 1;
    }

    return 0;
}
