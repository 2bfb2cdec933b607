
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "tap.h"
#include "ngx_mcp_invalidate.h"


static ngx_mcp_rule_t  rule;


static ngx_str_t
invalidate_str(const char *text)
{
    ngx_str_t  s;

    s.data = (u_char *) text;
    s.len = strlen(text);

    return s;
}


/* whether an action is accepted, and its value in that case */

static int
invalidate_parse(const char *text, ngx_uint_t action, const char *value)
{
    ngx_str_t  s;

    s = invalidate_str(text);
    memset(&rule, 0, sizeof(rule));

    return ngx_mcp_rule_parse(&rule, &s) == NULL && rule.action == action
           && rule.value.len == strlen(value)
           && (rule.value.len == 0
               || memcmp(rule.value.data, value, rule.value.len) == 0);
}


static int
invalidate_refuses(const char *text)
{
    ngx_str_t  s;

    s = invalidate_str(text);
    memset(&rule, 0, sizeof(rule));

    return ngx_mcp_rule_parse(&rule, &s) != NULL;
}


/* checks the result of an action for an event; "": none */

static int
invalidate_is(const char *action, const char *level, const char *text,
    const char *payload, ngx_uint_t out_level, const char *uri,
    const char *expected)
{
    int                      good;
    u_char                  *copy, *load;
    ngx_int_t                rc;
    ngx_str_t                s, logger, empty;
    ngx_pool_t              *pool;
    ngx_mcp_json_t           json;
    ngx_mcp_invalidate_t     event;
    ngx_mcp_notification_t   out;

    s = invalidate_str(action);
    memset(&rule, 0, sizeof(rule));
    ngx_mcp_invalidate_init(&event);

    if (ngx_mcp_rule_parse(&rule, &s) != NULL) {
        return 0;
    }

    rule.level = invalidate_str(level);
    logger = invalidate_str("\"a \\\"logger\\\"\"");
    ngx_str_set(&empty, "");

    copy = core_copy(text, strlen(text));
    load = core_copy(payload, strlen(payload));

    event.text.data = copy;
    event.text.len = strlen(text);
    event.payload = empty;

    if (*payload) {
        event.payload.data = load;
        event.payload.len = strlen(payload);
    }

    pool = ngx_create_pool(0, NULL);

    core_no_memory = 1;
    rc = ngx_mcp_rule_apply(&rule, &event, &logger, pool, &out);
    core_no_memory = 0;

    good = (rc == NGX_ERROR || rule.action == NGX_MCP_RULE_DROP);

    rc = ngx_mcp_rule_apply(&rule, &event, &logger, pool, &out);

    if (*expected == '\0') {
        good = good && rc == NGX_DECLINED;

    } else {
        good = good && rc == NGX_OK && out.level == out_level
               && out.uri.len == strlen(uri)
               && (out.uri.len == 0
                   || memcmp(out.uri.data, uri, out.uri.len) == 0)
               && tap_is(&out.text, expected)
               && ngx_mcp_json_scan(&json, &out.text) == NGX_OK;
    }

    ngx_destroy_pool(pool);
    free(copy);
    free(load);

    return good;
}


/* checks the data of the default rule of a kind */

static int
invalidate_default(const char *kind, const char *data)
{
    ngx_str_t        s;
    ngx_mcp_rule_t  *r;

    s = invalidate_str(kind);

    r = ngx_mcp_rule_next(ngx_mcp_default_rules, NGX_MCP_DEFAULT_RULES, &s,
                          NULL);

    return r && r->action == NGX_MCP_RULE_MESSAGE && r->json
           && tap_is(&r->value, data)
           && ngx_mcp_rule_next(ngx_mcp_default_rules, NGX_MCP_DEFAULT_RULES,
                                &s, r)
              == NULL;
}


static void
invalidate_rules(void)
{
    ngx_str_t        s;
    ngx_mcp_rule_t  *r, rules[4];

    memset(rules, 0, sizeof(rules));

    rules[0].kind = invalidate_str("a");
    rules[1].kind = invalidate_str("*");
    rules[2].kind = invalidate_str("a");
    rules[3].kind = invalidate_str("*");

    s = invalidate_str("a");
    r = ngx_mcp_rule_next(rules, 4, &s, NULL);
    ok(r == &rules[0], "the first rule of a kind");
    r = ngx_mcp_rule_next(rules, 4, &s, r);
    ok(r == &rules[2], "its second one");
    ok(ngx_mcp_rule_next(rules, 4, &s, r) == NULL, "and no more");

    s = invalidate_str("b");
    r = ngx_mcp_rule_next(rules, 4, &s, NULL);
    ok(r == &rules[1], "those of \"*\" for others");
    r = ngx_mcp_rule_next(rules, 4, &s, r);
    ok(r == &rules[3] && ngx_mcp_rule_next(rules, 4, &s, r) == NULL,
       "all of them");

    ok(ngx_mcp_rule_next(rules, 1, &s, NULL) == NULL, "no rule");

    s = invalidate_str("*");
    ok(ngx_mcp_rule_next(rules, 1, &s, NULL) == NULL, "nor for that kind");
    ok(ngx_mcp_rule_next(rules, 0, &s, NULL) == NULL, "of none");
}


void
invalidate_tests(void)
{
    ngx_str_t  s;

    ok(invalidate_parse("message=x $a ${b}c", NGX_MCP_RULE_MESSAGE,
                        "x $a ${b}c"), "message");
    ok(invalidate_parse("updated=file:///$a", NGX_MCP_RULE_UPDATED,
                        "file:///$a"), "updated");
    ok(invalidate_parse("level=$status", NGX_MCP_RULE_LEVEL, "$status"),
       "level");
    ok(invalidate_parse("notify=notifications/x", NGX_MCP_RULE_NOTIFY,
                        "notifications/x"), "notify");
    ok(invalidate_parse("drop", NGX_MCP_RULE_DROP, ""), "drop");
    ok(invalidate_parse("list_changed=tools", NGX_MCP_RULE_LIST_CHANGED,
                        "notifications/tools/list_changed"), "tools");
    ok(invalidate_parse("list_changed=prompts", NGX_MCP_RULE_LIST_CHANGED,
                        "notifications/prompts/list_changed"), "prompts");
    ok(invalidate_parse("list_changed=resources", NGX_MCP_RULE_LIST_CHANGED,
                        "notifications/resources/list_changed"), "resources");

    ok(invalidate_refuses(""), "nothing is no action");
    ok(invalidate_refuses("drops"), "nor is what begins like one");
    ok(invalidate_refuses("Message=x"), "nor another case");
    ok(invalidate_refuses("message="), "no value");
    ok(invalidate_refuses("message=$"), "a dollar at the end");
    ok(invalidate_refuses("message=a$ b"), "a dollar alone");
    ok(invalidate_refuses("message=${a"), "an open brace");
    ok(invalidate_refuses("message=${}"), "an empty name");
    ok(invalidate_refuses("list_changed=roots"), "no list of a server");
    ok(invalidate_refuses("notify=notifications/message"), "a known method");
    ok(invalidate_refuses("notify=a b"), "a method with a blank");
    ok(invalidate_refuses("notify=$a"), "a method of the event");

    ok(invalidate_default("episode", "\"memories_updated\""), "episode");
    ok(invalidate_default("document", "\"documents_updated\""), "document");
    ok(invalidate_default("chunk", "\"documents_updated\""), "chunk");
    ok(invalidate_default("cluster", "\"consolidation_updated\""), "cluster");
    ok(invalidate_default("triple", "\"graph_updated\""), "triple");
    ok(invalidate_default("tenant", "\"tenant_updated\""), "tenant");
    ok(invalidate_default("", "\"memory_updated\""), "the empty kind");
    ok(invalidate_default("documents", "\"memory_updated\""), "any other");

    invalidate_rules();

    ok(invalidate_is("message=x", "",
                     "{ \"kind\" : \"document\", \"other\":1,\n\"ts_ms\":"
                     "9007199254740993,\"reason\":\"a\\u0062\",\"session_id\":"
                     "\"s\",\"tenant_id\":\"t\"}", "", NGX_MCP_LEVEL_INFO, "",
                     "{\"jsonrpc\":\"2.0\",\"method\":"
                     "\"notifications/message\",\"params\":{\"level\":\"info\","
                     "\"logger\":\"a \\\"logger\\\"\",\"data\":\"x\","
                     "\"details\":{\"kind\":\"document\",\"reason\":"
                     "\"a\\u0062\",\"tenant_id\":\"t\",\"ts_ms\":"
                     "9007199254740993},\"_meta\":{\"nginx-mcp/details\":"
                     "{\"kind\":\"document\",\"reason\":\"a\\u0062\","
                     "\"tenant_id\":\"t\",\"ts_ms\":9007199254740993}}}}"),
       "a message with details");

    ok(invalidate_is("message=$a|$b|$c|$d|${e}f|$none.", "$s",
                     "{\"a\":\"x\\\"\\u00e9\",\"b\":-1.50,\"c\":null,"
                     "\"d\":{\"y\":[1]},\"\\u0065\":true,\"s\":\"error\"}",
                     "", NGX_MCP_LEVEL_ERROR, "",
                     "{\"jsonrpc\":\"2.0\",\"method\":"
                     "\"notifications/message\",\"params\":{\"level\":"
                     "\"error\",\"logger\":\"a \\\"logger\\\"\",\"data\":"
                     "\"x\\\"\xc3\xa9|-1.50||{\\\"y\\\":[1]}|truef|.\","
                     "\"details\":{},\"_meta\":{\"nginx-mcp/details\":{}}}}"),
       "fields of all types");

    ok(invalidate_is("message=$a$b", "$a", "{\"a\":\"x\"}",
                     "{\"a\":\"y\",\"b\":\"z\"}", NGX_MCP_LEVEL_INFO, "",
                     "{\"jsonrpc\":\"2.0\",\"method\":"
                     "\"notifications/message\",\"params\":{\"level\":\"info\","
                     "\"logger\":\"a \\\"logger\\\"\",\"data\":\"xz\","
                     "\"details\":{\"b\":\"z\"},\"_meta\":"
                     "{\"nginx-mcp/details\":{\"b\":\"z\"}}}}"),
       "fields of a payload behind those of the event");

    ok(invalidate_is("message={\"t\":\"o\",\"p\":$p,\"at\":$ts_ms,\"no\":$x}",
                     "",
                     "{\"ts_ms\":17.50,\"p\":{\"a\":[1, \"b\"]}}",
                     "",
                     NGX_MCP_LEVEL_INFO, "",
                     "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/me"
                     "ssage\",\"params\":{\"level\":\"info\",\"logger\":"
                     "\"a \\\"logger\\\"\",\"data\":{\"t\":\"o\",\"p\":{"
                     "\"a\":[1, \"b\"]},\"at\":17.50,\"no\":null},\"deta"
                     "ils\":{\"ts_ms\":17.50},\"_meta\":{\"nginx-mcp/det"
                     "ails\":{\"ts_ms\":17.50}}}}"),
       "JSON as data, fields as they are written");
    ok(invalidate_is("message=[\"is $a, $b; $c$x\\\\\",$a]",
                     "",
                     "{\"a\":\"q\\\"\\u0041\",\"b\":{\"k\":\"v\\\\\"},"
                     "\"c\":null}",
                     "",
                     NGX_MCP_LEVEL_INFO, "",
                     "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/me"
                     "ssage\",\"params\":{\"level\":\"info\",\"logger\":"
                     "\"a \\\"logger\\\"\",\"data\":[\"is q\\\"\\u0041, "
                     "{\\\"k\\\":\\\"v\\\\\\\\\\\"}; \\\\\",\"q\\\"\\u00"
                     "41\"],\"details\":{},\"_meta\":{\"nginx-mcp/detail"
                     "s\":{}}}}"),
       "fields in its strings");
    ok(invalidate_is("message={$a}",
                     "",
                     "{\"a\":1}",
                     "",
                     NGX_MCP_LEVEL_INFO, "",
                     "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/me"
                     "ssage\",\"params\":{\"level\":\"info\",\"logger\":"
                     "\"a \\\"logger\\\"\",\"data\":\"{1}\",\"details\":"
                     "{},\"_meta\":{\"nginx-mcp/details\":{}}}}"),
       "text that only looks like it");
    ok(invalidate_is("message=[$a$b]",
                     "",
                     "{\"a\":1,\"b\":2}",
                     "",
                     NGX_MCP_LEVEL_INFO, "",
                     "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/me"
                     "ssage\",\"params\":{\"level\":\"info\",\"logger\":"
                     "\"a \\\"logger\\\"\",\"data\":\"[12]\",\"details\""
                     ":{},\"_meta\":{\"nginx-mcp/details\":{}}}}"),
       "two fields are no value");
    ok(invalidate_is("message=[1$a]",
                     "",
                     "{\"a\":\"q\"}",
                     "",
                     NGX_MCP_LEVEL_INFO, "",
                     "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/me"
                     "ssage\",\"params\":{\"level\":\"info\",\"logger\":"
                     "\"a \\\"logger\\\"\",\"data\":\"[1q]\",\"details\""
                     ":{},\"_meta\":{\"nginx-mcp/details\":{}}}}"),
       "nor is one behind a digit");
    ok(invalidate_is("message=[\"\\u12${a}f\"]",
                     "",
                     "{\"a\":\"q\"}",
                     "",
                     NGX_MCP_LEVEL_INFO, "",
                     "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/me"
                     "ssage\",\"params\":{\"level\":\"info\",\"logger\":"
                     "\"a \\\"logger\\\"\",\"data\":\"[\\\"\\\\u12qf"
                     "\\\"]\",\"details\":{},\"_meta\":"
                     "{\"nginx-mcp/details\":{}}}}"),
       "nor is one within an escape");
    ok(invalidate_is("message=$s $o $s $kind",
                     "",
                     "{\"kind\":\"k\",\"s\":1}",
                     "{\"o\":{\"n\":2},\"s\":3,\"kind\":\"x\"}",
                     NGX_MCP_LEVEL_INFO, "",
                     "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/me"
                     "ssage\",\"params\":{\"level\":\"info\",\"logger\":"
                     "\"a \\\"logger\\\"\",\"data\":\"1 {\\\"n\\\":2} 1 "
                     "k\",\"details\":{\"kind\":\"k\",\"o\":{\"n\":2}},"
                     "\"_meta\":{\"nginx-mcp/details\":{\"kind\":\"k\","
                     "\"o\":{\"n\":2}}}}}"),
       "members of a payload that are named, as details");

    ok(invalidate_is("updated=file:///$a", "", "{\"a\":\"b\\\"c\"}", "", 0,
                     "file:///b\"c",
                     "{\"jsonrpc\":\"2.0\",\"method\":"
                     "\"notifications/resources/updated\",\"params\":{\"uri\":"
                     "\"file:///b\\\"c\"}}"), "an update");
    ok(invalidate_is("updated=$a", "", "{\"a\":null}", "", 0, "", ""),
       "an update of nothing");
    ok(invalidate_is("list_changed=tools", "", "{}", "", 0, "",
                     "{\"jsonrpc\":\"2.0\",\"method\":"
                     "\"notifications/tools/list_changed\"}"), "a change");
    ok(invalidate_is("notify=n/x", "",
                     "{\"identity\":\"i\", \"a\" : 1,\"session_id\":\"s\","
                     "\"kind\":\"k\"}", "", 0, "",
                     "{\"jsonrpc\":\"2.0\",\"method\":\"n/x\",\"params\":"
                     "{\"a\":1,\"kind\":\"k\"}}"),
       "an own notification, without whom it addresses");
    ok(invalidate_is("notify=n", "", "{\"sessio\\u006e_id\":1}", "", 0, "",
                     "{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":{}}"),
       "however that is written");
    ok(invalidate_is("drop", "", "{}", "", 0, "", ""), "nothing");

    s = invalidate_str("healthy");
    ok(ngx_mcp_rule_level(&s) == NGX_MCP_LEVEL_INFO, "healthy");
    s = invalidate_str("warning");
    ok(ngx_mcp_rule_level(&s) == NGX_MCP_LEVEL_WARNING, "warning");
    s = invalidate_str("");
    ok(ngx_mcp_rule_level(&s) == NGX_MCP_LEVEL_INFO, "no level");
}
