
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_invalidate.h"
#include "ngx_mcp_splice.h"


#define ngx_mcp_field_char(ch)                                                \
    (((ch) >= 'a' && (ch) <= 'z') || ((ch) >= 'A' && (ch) <= 'Z')             \
     || ((ch) >= '0' && (ch) <= '9') || (ch) == '_')


/* the value of a rule has no $field, so it is used as it is */
#define ngx_mcp_rule_constant(value)                                          \
    (memchr((value)->data, '$', (value)->len) == NULL)


static const char *ngx_mcp_rule_template(ngx_str_t *value);
static ngx_uint_t ngx_mcp_rule_json(ngx_str_t *value);
static u_char *ngx_mcp_rule_quoted(u_char *p, u_char *last,
    ngx_uint_t *quoted);
static u_char *ngx_mcp_rule_field(u_char *p, u_char *last, ngx_str_t *name);
static ngx_int_t ngx_mcp_rule_expand(ngx_str_t *value,
    ngx_mcp_invalidate_t *event, ngx_pool_t *pool, ngx_str_t *out);
static ngx_int_t ngx_mcp_rule_splice(ngx_str_t *value,
    ngx_mcp_invalidate_t *event, ngx_pool_t *pool, ngx_str_t *out);
static size_t ngx_mcp_rule_splice_field(u_char *dst,
    ngx_mcp_invalidate_t *event, ngx_str_t *name, ngx_uint_t quoted);
static size_t ngx_mcp_rule_escape(u_char *dst, ngx_str_t *raw);
static ngx_uint_t ngx_mcp_event_field(ngx_mcp_invalidate_t *event,
    ngx_str_t *name, ngx_str_t *value);
static ngx_uint_t ngx_mcp_event_member(ngx_mcp_invalidate_t *event,
    ngx_str_t *name, ngx_str_t *value);
static ngx_uint_t ngx_mcp_payload_member(ngx_mcp_invalidate_t *event,
    ngx_str_t *name, ngx_str_t *value);
static ngx_uint_t ngx_mcp_member_find(ngx_str_t *text,
    ngx_mcp_members_t *members, ngx_str_t *name, ngx_str_t *value);
static ngx_int_t ngx_mcp_rule_message(ngx_mcp_rule_t *rule,
    ngx_mcp_invalidate_t *event, ngx_str_t *logger, ngx_pool_t *pool,
    ngx_mcp_notification_t *out);
static ngx_int_t ngx_mcp_rule_details(ngx_mcp_rule_t *rule,
    ngx_mcp_invalidate_t *event, ngx_pool_t *pool, ngx_str_t *out);
static u_char *ngx_mcp_rule_detail(u_char *p, u_char *start, ngx_str_t *name,
    ngx_str_t *value);
static ngx_uint_t ngx_mcp_rule_named(u_char *p, u_char *last,
    ngx_str_t *name);
static ngx_int_t ngx_mcp_rule_join(ngx_str_t *parts, ngx_uint_t n,
    ngx_pool_t *pool, ngx_str_t *out);
static ngx_int_t ngx_mcp_rule_quote(ngx_str_t *text, ngx_pool_t *pool,
    ngx_str_t *out);


#define ngx_mcp_default_rule(kind, data)                                      \
    { ngx_string(kind), NGX_MCP_RULE_MESSAGE, ngx_string("\"" data "\""),     \
      ngx_null_string, 1 }

ngx_mcp_rule_t  ngx_mcp_default_rules[NGX_MCP_DEFAULT_RULES] = {
    ngx_mcp_default_rule("episode", "memories_updated"),
    ngx_mcp_default_rule("document", "documents_updated"),
    ngx_mcp_default_rule("chunk", "documents_updated"),
    ngx_mcp_default_rule("cluster", "consolidation_updated"),
    ngx_mcp_default_rule("triple", "graph_updated"),
    ngx_mcp_default_rule("tenant", "tenant_updated"),
    ngx_mcp_default_rule("*", "memory_updated")
};


static struct {
    ngx_str_t               name;
    ngx_uint_t              action;
} ngx_mcp_actions[] = {
    { ngx_string("message="), NGX_MCP_RULE_MESSAGE },
    { ngx_string("list_changed="), NGX_MCP_RULE_LIST_CHANGED },
    { ngx_string("updated="), NGX_MCP_RULE_UPDATED },
    { ngx_string("notify="), NGX_MCP_RULE_NOTIFY },
    { ngx_string("level="), NGX_MCP_RULE_LEVEL },
    { ngx_null_string, 0 }
};


ngx_str_t  ngx_mcp_event_private[] = {
    ngx_string("session_id"),
    ngx_string("identity"),
    ngx_null_string
};

static ngx_str_t  ngx_mcp_event_counts[] = {
    ngx_string("session_id"),
    ngx_string("identity"),
    ngx_string("count"),
    ngx_null_string
};


#define NGX_MCP_DETAIL_COUNT  4

static ngx_str_t  ngx_mcp_event_details[] = {
    ngx_string("kind"),
    ngx_string("reason"),
    ngx_string("tenant_id"),
    ngx_string("ts_ms"),
    ngx_string("count"),
    ngx_null_string
};


const char *
ngx_mcp_rule_parse(ngx_mcp_rule_t *rule, ngx_str_t *text)
{
    ngx_str_t   *value, *name;
    ngx_uint_t   i;
    const char  *why;

    value = &rule->value;
    rule->json = 0;

    if (text->len == 4 && ngx_memcmp(text->data, "drop", 4) == 0) {
        rule->action = NGX_MCP_RULE_DROP;
        ngx_str_null(value);
        return NULL;
    }

    for (i = 0; ngx_mcp_actions[i].name.len; i++) {
        name = &ngx_mcp_actions[i].name;

        if (text->len >= name->len
            && ngx_memcmp(text->data, name->data, name->len) == 0)
        {
            break;
        }
    }

    if (ngx_mcp_actions[i].name.len == 0) {
        return "is not an action";
    }

    name = &ngx_mcp_actions[i].name;

    rule->action = ngx_mcp_actions[i].action;
    value->data = text->data + name->len;
    value->len = text->len - name->len;

    if (value->len == 0) {
        return "has no value";
    }

    switch (rule->action) {

    case NGX_MCP_RULE_LIST_CHANGED:

        if (value->len == 5 && ngx_memcmp(value->data, "tools", 5) == 0) {
            *value = *ngx_mcp_method_name(NGX_MCP_METHOD_TOOLS_CHANGED);

        } else if (value->len == 7
                   && ngx_memcmp(value->data, "prompts", 7) == 0)
        {
            *value = *ngx_mcp_method_name(NGX_MCP_METHOD_PROMPTS_CHANGED);

        } else if (value->len == 9
                   && ngx_memcmp(value->data, "resources", 9) == 0)
        {
            *value = *ngx_mcp_method_name(NGX_MCP_METHOD_RESOURCES_CHANGED);

        } else {
            return "names none of \"tools\", \"prompts\" and \"resources\"";
        }

        return NULL;

    case NGX_MCP_RULE_NOTIFY:

        if (ngx_mcp_method_parse(value) != NGX_MCP_METHOD_OTHER) {
            return "names a method of MCP; use \"message=\", "
                   "\"list_changed=\" or \"updated=\" for these";
        }

        for (i = 0; i < value->len; i++) {
            if (value->data[i] <= ' ' || value->data[i] == '$'
                || value->data[i] == 0x7f)
            {
                return "is not the name of a method";
            }
        }

        return NULL;

    default:
        why = ngx_mcp_rule_template(value);

        if (why == NULL && rule->action == NGX_MCP_RULE_MESSAGE) {
            rule->json = ngx_mcp_rule_json(value);
        }

        return why;
    }
}


static const char *
ngx_mcp_rule_template(ngx_str_t *value)
{
    u_char     *p, *last;
    ngx_str_t   name;

    last = value->data + value->len;

    for (p = value->data; p < last; /* void */ ) {

        if (*p != '$') {
            p++;
            continue;
        }

        p = ngx_mcp_rule_field(p, last, &name);

        if (name.len == 0) {
            return "has a \"$\" that does not begin a \"$field\" or "
                   "\"${field}\"";
        }
    }

    return NULL;
}


/*
 * Returns whether the value of a rule is a JSON object or array once values
 * are put in place of its $fields.
 */

static ngx_uint_t
ngx_mcp_rule_json(ngx_str_t *value)
{
    u_char          *p, *next, *last;
    ngx_str_t        name;
    ngx_uint_t       quoted;
    ngx_mcp_json_t   json;

    /*
     * Sample values of a field outside of strings, and within a string: if the
     * text is valid JSON with these, it is valid with any value.
     */

    static ngx_str_t  any[] = { ngx_string("[]"), ngx_string("z") };

    if (value->data[0] != '{' && value->data[0] != '[') {
        return 0;
    }

    quoted = 0;
    last = value->data + value->len;

    ngx_mcp_json_init(&json);

    for (p = value->data; p < last; p = next) {

        if (*p == '$') {
            next = ngx_mcp_rule_field(p, last, &name);

            if (ngx_mcp_json_feed(&json, any[quoted].data,
                                  any[quoted].data + any[quoted].len)
                == NGX_ERROR)
            {
                return 0;
            }

            continue;
        }

        next = ngx_mcp_rule_quoted(p, last, &quoted);

        if (ngx_mcp_json_feed(&json, p, next) == NGX_ERROR) {
            return 0;
        }
    }

    return ngx_mcp_json_end(&json) == NGX_OK;
}


/*
 * Returns the end of the character, or of the escape, at p; *quoted becomes
 * whether the end is within a string.
 */

static u_char *
ngx_mcp_rule_quoted(u_char *p, u_char *last, ngx_uint_t *quoted)
{
    if (*p == '"') {
        *quoted = !*quoted;
    }

    return (*p == '\\' && last - p > 1 && p[1] != '$') ? p + 2 : p + 1;
}


/*
 * Reads $name or ${name} from p, which is at the dollar.  Returns the end;
 * name->len 0: there is no field.
 */

static u_char *
ngx_mcp_rule_field(u_char *p, u_char *last, ngx_str_t *name)
{
    ngx_uint_t  brace;

    brace = 0;
    ngx_str_null(name);

    if (++p < last && *p == '{') {
        brace = 1;
        p++;
    }

    name->data = p;

    while (p < last && ngx_mcp_field_char(*p)) {
        p++;
    }

    name->len = p - name->data;

    if (brace) {

        if (p == last || *p != '}') {
            name->len = 0;
            return p;
        }

        p++;
    }

    return p;
}


ngx_mcp_rule_t *
ngx_mcp_rule_next(ngx_mcp_rule_t *rules, ngx_uint_t n, ngx_str_t *kind,
    ngx_mcp_rule_t *prev)
{
    ngx_uint_t         i;
    static ngx_str_t   any = ngx_string("*");

    if (prev) {
        kind = &prev->kind;
    }

    for (i = prev ? prev - rules + 1 : 0; i < n; i++) {
        if (ngx_mcp_equal(&rules[i].kind, kind)) {
            return &rules[i];
        }
    }

    if (prev || (kind->len == 1 && kind->data[0] == '*')) {
        return NULL;
    }

    return ngx_mcp_rule_next(rules, n, &any, NULL);
}


ngx_int_t
ngx_mcp_rule_apply(ngx_mcp_rule_t *rule, ngx_mcp_invalidate_t *event,
    ngx_str_t *logger, ngx_pool_t *pool, ngx_mcp_notification_t *out)
{
    ngx_int_t         rc;
    ngx_str_t         parts[5], *without;
    static ngx_str_t  none = ngx_string("");

    ngx_memzero(out, sizeof(ngx_mcp_notification_t));

    ngx_str_set(&parts[0], "{\"jsonrpc\":\"2.0\",\"method\":");

    switch (rule->action) {

    case NGX_MCP_RULE_MESSAGE:
        return ngx_mcp_rule_message(rule, event, logger, pool, out);

    case NGX_MCP_RULE_LIST_CHANGED:

        if (ngx_mcp_rule_quote(&rule->value, pool, &parts[1]) != NGX_OK) {
            return NGX_ERROR;
        }

        ngx_str_set(&parts[2], "}");

        return ngx_mcp_rule_join(parts, 3, pool, &out->text);

    case NGX_MCP_RULE_UPDATED:
    case NGX_MCP_RULE_RESOURCE:

        out->uri = rule->value;
        rc = NGX_OK;

        if (rule->action == NGX_MCP_RULE_UPDATED) {
            rc = ngx_mcp_rule_expand(&rule->value, event, pool, &out->uri);
        }

        if (rc != NGX_OK) {
            return rc;
        }

        if (out->uri.len == 0) {
            return NGX_DECLINED;
        }

        ngx_str_set(&parts[1], "\"notifications/resources/updated\","
                               "\"params\":{\"uri\":");

        if (ngx_mcp_rule_quote(&out->uri, pool, &parts[2]) != NGX_OK) {
            return NGX_ERROR;
        }

        ngx_str_set(&parts[3], "}}");

        return ngx_mcp_rule_join(parts, 4, pool, &out->text);

    case NGX_MCP_RULE_NOTIFY:

        without = event->coalescing ? ngx_mcp_event_counts
                                 : ngx_mcp_event_private;

        if (ngx_mcp_rule_quote(&rule->value, pool, &parts[1]) != NGX_OK) {
            return NGX_ERROR;
        }

        ngx_str_set(&parts[2], ",\"params\":");

        parts[3] = ngx_mcp_join(pool, &none, &event->text, without);

        if (parts[3].data == NULL) {
            return NGX_ERROR;
        }

        ngx_str_set(&parts[4], "}");

        if (ngx_mcp_rule_join(parts, 5, pool, &out->text) != NGX_OK) {
            return NGX_ERROR;
        }

        out->counts[0] = out->text.len - 2;

        return NGX_OK;

    default: /* NGX_MCP_RULE_DROP */
        return NGX_DECLINED;
    }
}


static ngx_int_t
ngx_mcp_rule_message(ngx_mcp_rule_t *rule, ngx_mcp_invalidate_t *event,
    ngx_str_t *logger, ngx_pool_t *pool, ngx_mcp_notification_t *out)
{
    ngx_str_t  data, level, parts[11];

    out->level = NGX_MCP_LEVEL_INFO;

    if (rule->level.len) {

        if (ngx_mcp_rule_expand(&rule->level, event, pool, &level) != NGX_OK) {
            return NGX_ERROR;
        }

        out->level = ngx_mcp_rule_level(&level);
    }

    if (rule->json) {

        if (ngx_mcp_rule_splice(&rule->value, event, pool, &parts[5])
            != NGX_OK)
        {
            return NGX_ERROR;
        }

    } else if (ngx_mcp_rule_expand(&rule->value, event, pool, &data) != NGX_OK
               || ngx_mcp_rule_quote(&data, pool, &parts[5]) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (ngx_mcp_rule_details(rule, event, pool, &parts[7]) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_str_set(&parts[0], "{\"jsonrpc\":\"2.0\","
                           "\"method\":\"notifications/message\","
                           "\"params\":{\"level\":\"");
    parts[1] = *ngx_mcp_level_name(out->level);
    ngx_str_set(&parts[2], "\",\"logger\":");
    parts[3] = *logger;
    ngx_str_set(&parts[4], ",\"data\":");
    ngx_str_set(&parts[6], ",\"details\":");
    ngx_str_set(&parts[8], ",\"_meta\":{\"nginx-mcp/details\":");
    parts[9] = parts[7];
    ngx_str_set(&parts[10], "}}}");

    if (ngx_mcp_rule_join(parts, 11, pool, &out->text) != NGX_OK) {
        return NGX_ERROR;
    }

    out->counts[1] = out->text.len - parts[10].len - 1;
    out->counts[0] = out->counts[1] - parts[9].len - parts[8].len;

    return NGX_OK;
}


ngx_uint_t
ngx_mcp_invalidate_count(ngx_mcp_invalidate_t *event, uint64_t *count)
{
    size_t            i;
    uint64_t          n;
    ngx_str_t         raw;
    static ngx_str_t  name = ngx_string("count");

    if (!ngx_mcp_event_member(event, &name, &raw)
        || raw.len > NGX_INT32_LEN)
    {
        return 0;
    }

    n = 0;

    for (i = 0; i < raw.len; i++) {

        if (raw.data[i] < '0' || raw.data[i] > '9') {
            return 0;
        }

        n = n * 10 + (raw.data[i] - '0');
    }

    *count = n;

    return 1;
}


ngx_uint_t
ngx_mcp_rule_level(ngx_str_t *text)
{
    ngx_uint_t  level;

    /* "healthy" of a health event is not a level of MCP, and means "info" */

    level = ngx_mcp_level_parse(text);

    return (level == NGX_MCP_LEVEL_UNSET) ? NGX_MCP_LEVEL_INFO : level;
}


/*
 * Makes an object of the usual members of the event, and of the members of its
 * payload that the rule names.
 */

static ngx_int_t
ngx_mcp_rule_details(ngx_mcp_rule_t *rule, ngx_mcp_invalidate_t *event,
    ngx_pool_t *pool, ngx_str_t *out)
{
    u_char      *p, *next, *last;
    size_t       len;
    ngx_str_t    value, *name, field;
    ngx_uint_t   i;

    len = 2 + event->text.len + event->payload.len + rule->value.len * 4;

    for (i = 0; ngx_mcp_event_details[i].len; i++) {
        len += ngx_mcp_event_details[i].len + 4;
    }

    p = ngx_pnalloc(pool, len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    out->data = p;
    *p++ = '{';

    for (i = 0; ngx_mcp_event_details[i].len; i++) {

        if (event->coalescing && i == NGX_MCP_DETAIL_COUNT) {
            break;
        }

        name = &ngx_mcp_event_details[i];

        if (ngx_mcp_event_member(event, name, &value)) {
            p = ngx_mcp_rule_detail(p, out->data, name, &value);
        }
    }

    last = rule->value.data + rule->value.len;
    next = event->payload.len ? rule->value.data : last;

    while (next < last) {

        if (*next != '$') {
            next++;
            continue;
        }

        value.data = next;
        next = ngx_mcp_rule_field(next, last, &field);

        for (i = 0; ngx_mcp_event_details[i].len; i++) {
            if (ngx_mcp_equal(&ngx_mcp_event_details[i], &field)) {
                break;
            }
        }

        /* a field that appears twice in the rule becomes one member */

        if (ngx_mcp_event_details[i].len == 0
            && !ngx_mcp_rule_named(rule->value.data, value.data, &field)
            && !ngx_mcp_event_member(event, &field, &value)
            && ngx_mcp_payload_member(event, &field, &value))
        {
            p = ngx_mcp_rule_detail(p, out->data, &field, &value);
        }
    }

    *p++ = '}';
    out->len = p - out->data;

    return NGX_OK;
}


static u_char *
ngx_mcp_rule_detail(u_char *p, u_char *start, ngx_str_t *name,
    ngx_str_t *value)
{
    if (p - start > 1) {
        *p++ = ',';
    }

    *p++ = '"';
    p = ngx_cpymem(p, name->data, name->len);
    *p++ = '"';
    *p++ = ':';

    return ngx_cpymem(p, value->data, value->len);
}


/* returns whether a rule's value has this $field between p and last */

static ngx_uint_t
ngx_mcp_rule_named(u_char *p, u_char *last, ngx_str_t *name)
{
    ngx_str_t  field;

    while (p < last) {

        if (*p != '$') {
            p++;
            continue;
        }

        p = ngx_mcp_rule_field(p, last, &field);

        if (ngx_mcp_equal(&field, name)) {
            return 1;
        }
    }

    return 0;
}


/*
 * Replaces the $fields of DATA that is JSON: outside of strings by their raw
 * values, within strings by their texts.
 */

static ngx_int_t
ngx_mcp_rule_splice(ngx_str_t *value, ngx_mcp_invalidate_t *event,
    ngx_pool_t *pool, ngx_str_t *out)
{
    u_char      *p, *next, *last, *dst;
    size_t       len;
    ngx_str_t    name;
    ngx_uint_t   quoted;

    if (ngx_mcp_rule_constant(value)) {
        *out = *value;
        return NGX_OK;
    }

    dst = NULL;
    last = value->data + value->len;

    for ( ;; ) {
        len = 0;
        quoted = 0;

        for (p = value->data; p < last; p = next) {

            if (*p == '$') {
                next = ngx_mcp_rule_field(p, last, &name);
                len += ngx_mcp_rule_splice_field(dst ? dst + len : NULL, event,
                                                 &name, quoted);
                continue;
            }

            next = ngx_mcp_rule_quoted(p, last, &quoted);

            if (dst) {
                ngx_memcpy(dst + len, p, next - p);
            }

            len += next - p;
        }

        if (dst) {
            break;
        }

        dst = ngx_pnalloc(pool, len);
        if (dst == NULL) {
            return NGX_ERROR;
        }
    }

    out->data = dst;
    out->len = len;

    return NGX_OK;
}


/*
 * Writes the value of a field to dst and returns its length; dst NULL: only the
 * length is wanted.  A field that the event lacks is null, or, within a string,
 * empty.
 */

static size_t
ngx_mcp_rule_splice_field(u_char *dst, ngx_mcp_invalidate_t *event,
    ngx_str_t *name, ngx_uint_t quoted)
{
    size_t     len, skip;
    ngx_str_t  raw;

    if (!ngx_mcp_event_field(event, name, &raw)) {
        ngx_str_set(&raw, "null");
    }

    skip = 0;
    len = raw.len;

    if (quoted) {

        if (raw.data[0] == 'n') {
            return 0;
        }

        if (raw.data[0] != '"') {
            return ngx_mcp_rule_escape(dst, &raw);
        }

        skip = 1;
        len -= 2;
    }

    if (dst) {
        ngx_memcpy(dst, raw.data + skip, len);
    }

    return len;
}


/*
 * Replaces the $fields of a text: a string by its decoded text, null by no
 * text, any other value by its raw text.
 */

static ngx_int_t
ngx_mcp_rule_expand(ngx_str_t *value, ngx_mcp_invalidate_t *event,
    ngx_pool_t *pool, ngx_str_t *out)
{
    u_char     *p, *last, *dst;
    size_t      len;
    ngx_str_t   name, raw;

    if (ngx_mcp_rule_constant(value)) {
        *out = *value;
        return NGX_OK;
    }

    len = value->len;
    last = value->data + value->len;

    for (p = value->data; p < last; /* void */ ) {

        if (*p != '$') {
            p++;
            continue;
        }

        p = ngx_mcp_rule_field(p, last, &name);

        if (ngx_mcp_event_field(event, &name, &raw)) {
            len += raw.len;
        }
    }

    dst = ngx_pnalloc(pool, len);
    if (dst == NULL) {
        return NGX_ERROR;
    }

    out->data = dst;

    for (p = value->data; p < last; /* void */ ) {

        if (*p != '$') {
            *dst++ = *p++;
            continue;
        }

        p = ngx_mcp_rule_field(p, last, &name);

        if (!ngx_mcp_event_field(event, &name, &raw)) {
            continue;
        }

        if (raw.data[0] == '"') {
            dst = ngx_mcp_json_unescape(dst, &raw);

        } else if (raw.data[0] != 'n') {
            dst = ngx_cpymem(dst, raw.data, raw.len);
        }
    }

    out->len = dst - out->data;

    return NGX_OK;
}


/*
 * Writes a raw value that is no string into a JSON string.  Returns the length;
 * dst NULL: only the length is wanted.
 */

static size_t
ngx_mcp_rule_escape(u_char *dst, ngx_str_t *raw)
{
    u_char  ch;
    size_t  i, len;

    len = 0;

    for (i = 0; i < raw->len; i++) {
        ch = raw->data[i];

        if (ch < ' ') {

            /* a control character is white space between tokens */

            ch = ' ';

        } else if (ch == '"' || ch == '\\') {

            if (dst) {
                dst[len] = '\\';
            }

            len++;
        }

        if (dst) {
            dst[len] = ch;
        }

        len++;
    }

    return len;
}


static ngx_uint_t
ngx_mcp_event_field(ngx_mcp_invalidate_t *event, ngx_str_t *name,
    ngx_str_t *value)
{
    return ngx_mcp_event_member(event, name, value)
           || ngx_mcp_payload_member(event, name, value);
}


static ngx_uint_t
ngx_mcp_event_member(ngx_mcp_invalidate_t *event, ngx_str_t *name,
    ngx_str_t *value)
{
    return ngx_mcp_member_find(&event->text, &event->members, name, value);
}


static ngx_uint_t
ngx_mcp_payload_member(ngx_mcp_invalidate_t *event, ngx_str_t *name,
    ngx_str_t *value)
{
    return ngx_mcp_member_find(&event->payload, &event->payload_members, name,
                               value);
}


/*
 * Finds a member of an object.  As rules search many names, *members stores the
 * members that were read so far, so that the text is read only once.
 */

static ngx_uint_t
ngx_mcp_member_find(ngx_str_t *text, ngx_mcp_members_t *members,
    ngx_str_t *name, ngx_str_t *value)
{
    ngx_str_t   rest, raw;
    ngx_uint_t  i;

    for (i = 0; i < members->n; i++) {
        if (ngx_mcp_json_is(&members->names[i], name)) {
            *value = members->values[i];
            return 1;
        }
    }

    rest = members->n ? members->rest : *text;

    while (ngx_mcp_json_member(&rest, &raw, value) == NGX_OK) {

        if (members->n < NGX_MCP_MEMBERS) {
            members->names[members->n] = raw;
            members->values[members->n++] = *value;
            members->rest = rest;
        }

        if (ngx_mcp_json_is(&raw, name)) {
            return 1;
        }
    }

    return 0;
}


static ngx_int_t
ngx_mcp_rule_join(ngx_str_t *parts, ngx_uint_t n, ngx_pool_t *pool,
    ngx_str_t *out)
{
    u_char      *p;
    size_t       len;
    ngx_uint_t   i;

    len = 0;

    for (i = 0; i < n; i++) {
        len += parts[i].len;
    }

    p = ngx_pnalloc(pool, len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    out->data = p;
    out->len = len;

    for (i = 0; i < n; i++) {
        p = ngx_cpymem(p, parts[i].data, parts[i].len);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_rule_quote(ngx_str_t *text, ngx_pool_t *pool, ngx_str_t *out)
{
    out->data = ngx_pnalloc(pool, ngx_mcp_json_escaped_len(text));
    if (out->data == NULL) {
        return NGX_ERROR;
    }

    out->len = ngx_mcp_json_escape(out->data, text) - out->data;

    return NGX_OK;
}
