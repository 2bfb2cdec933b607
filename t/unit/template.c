
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "tap.h"
#include "ngx_mcp_template.h"
#include <time.h>


static ngx_uint_t
matches(const char *template, const char *uri)
{
    ngx_str_t   t, u;
    ngx_uint_t  rc;

    t.len = strlen(template);
    t.data = core_copy(template, t.len);
    u.len = strlen(uri);
    u.data = core_copy(uri, u.len);

    rc = ngx_mcp_template_matches(&t, &u);

    free(t.data);
    free(u.data);

    return rc;
}


void
template_tests(void)
{
    char        *p;
    size_t       i;
    char         long_template[NGX_MCP_TEMPLATE_URI + 5];
    char         long_uri[NGX_MCP_TEMPLATE_URI + 2];
    clock_t      all, first;

    static struct {
        const char  *template;
        const char  *uri;
        ngx_uint_t   yes;
    } t[] = {
        { "a:/b", "a:/b", 1 },
        { "a:/b", "a:/bc", 0 },
        { "a:/b", "a:/", 0 },
        { "a:/{x}", "a:/1", 1 },
        { "a:/{x}", "a:/", 0 },
        { "a:/{x}", "a:/1/2", 0 },
        { "a:/{x}/y", "a:/1/y", 1 },
        { "a:/{x}/{y}", "a:/1/2", 1 },
        { "a:/{x}y{z}", "a:/1y2y3", 1 },
        { "a:/{x}y", "a:/y", 0 },
        { "a:/{x}y", "a:/yy", 1 },
        { "{+x}", "file:///etc/x", 1 },
        { "file:///{+x}", "file:///", 0 },
        { "file:///{path*}", "file:///a.c", 1 },
        { "a:{/x,y}", "a:/1/2", 1 },
        { "a:{/x,y}", "a:1", 0 },
        { "a:b{.x}", "a:b.c", 1 },
        { "a:b{.x}", "a:b", 0 },
        { "a:b{.x}", "a:b.c/d", 0 },
        { "a:b{?q,r}", "a:b?q=1&r=/", 1 },
        { "a:b{?q,r}", "a:b", 1 },
        { "a:b{?q}", "a:bc", 0 },
        { "a:b?c=1{&q}", "a:b?c=1&q=2", 1 },
        { "a:b{#x}", "a:b#c/d", 1 },
        { "a:{x", "a:1", 0 },
        { "a:{}", "a:1", 1 },
        { "", "", 1 },
        { "", "a", 0 }
    };

    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        ok(matches(t[i].template, t[i].uri) == t[i].yes, "%s %s %s",
           t[i].template, t[i].yes ? "matches" : "does not match", t[i].uri);
    }

    for (p = long_template, i = 0; i < 128; i++) {
        memcpy(p, "{+a}", 4);
        p += 4;
    }

    *p = '\0';

    memset(long_uri, 'a', sizeof(long_uri));
    long_uri[NGX_MCP_TEMPLATE_URI] = '\0';
    ok(matches(long_template, long_uri), "many expressions");
    long_uri[NGX_MCP_TEMPLATE_URI] = 'a';
    long_uri[NGX_MCP_TEMPLATE_URI + 1] = '\0';
    ok(!matches("{+a}", long_uri), "a URI that is too long");

    /* a template that fails in its first part costs no more than that part */

    for (p = long_template, i = 0; i < NGX_MCP_TEMPLATE_URI / 4; i++) {
        memcpy(p, "{?a}", 4);
        p += 4;
    }

    *p = '\0';

    memset(long_uri, '?', NGX_MCP_TEMPLATE_URI);
    long_uri[NGX_MCP_TEMPLATE_URI] = '\0';

    all = clock();
    ok(matches(long_template, long_uri), "as many expressions as there may be");
    all = clock() - all;

    long_uri[0] = 'a';

    memcpy(long_template, "b://", 4);

    first = clock();
    ok(!matches(long_template, long_uri), "another first part");
    first = clock() - first;

    ok(first < all / 4, "takes %ld us, and a match %ld us", (long) first,
       (long) all);

    memcpy(long_template, "{?a}", 4);
    strcpy(p, "{?a}");
    ok(!matches(long_template, "?a"), "a template that is too long");
}
