
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_modern.h"


#define NGX_MCP_MODERN_PREFIX  "io.modelcontextprotocol/"


typedef struct {
    ngx_uint_t              method;       /* method of the request that the
                                             result answers */
    ngx_uint_t              cut;          /* number of members removed from
                                             "_meta" */
} ngx_mcp_modern_plain_t;


static ngx_str_t ngx_mcp_modern_capabilities(ngx_pool_t *pool, ngx_str_t *raw,
    ngx_uint_t revision);
static ngx_uint_t ngx_mcp_modern_keep_result(ngx_str_t *name,
    ngx_str_t *value, void *data);
static ngx_uint_t ngx_mcp_modern_keep_params(ngx_str_t *name,
    ngx_str_t *value, void *data);
static ngx_uint_t ngx_mcp_modern_keep_meta(ngx_str_t *name, ngx_str_t *value,
    void *data);
static void ngx_mcp_modern_tools(ngx_str_t *array, ngx_uint_t *cut);
static ngx_uint_t ngx_mcp_modern_keep_tool(ngx_str_t *name, ngx_str_t *value,
    void *data);
static ngx_uint_t ngx_mcp_modern_object_schema(ngx_str_t *schema);
static ngx_uint_t ngx_mcp_modern_named(ngx_str_t *object, const char *member);


/* the members of params._meta that make up the envelope */

static ngx_str_t  ngx_mcp_modern_reserved[] = {
    ngx_string(NGX_MCP_MODERN_PREFIX "protocolVersion"),
    ngx_string(NGX_MCP_MODERN_PREFIX "clientInfo"),
    ngx_string(NGX_MCP_MODERN_PREFIX "clientCapabilities"),
    ngx_string(NGX_MCP_MODERN_PREFIX "logLevel"),
    ngx_null_string
};

/* members of "_meta" in messages of servers */

static ngx_str_t  ngx_mcp_modern_server_info =
    ngx_string(NGX_MCP_MODERN_PREFIX "serverInfo");
static ngx_str_t  ngx_mcp_modern_subscription =
    ngx_string(NGX_MCP_MODERN_PREFIX "subscriptionId");

static ngx_str_t  ngx_mcp_modern_members[] = {
    ngx_string("resultType"),
    ngx_string("ttlMs"),
    ngx_string("cacheScope"),
    ngx_null_string
};

static ngx_str_t  ngx_mcp_modern_meta = ngx_string("_meta");
static ngx_str_t  ngx_mcp_modern_tool_list = ngx_string("tools");
static ngx_str_t  ngx_mcp_modern_schema = ngx_string("outputSchema");
static ngx_str_t  ngx_mcp_modern_content = ngx_string("structuredContent");
static ngx_str_t  ngx_mcp_modern_elicitation = ngx_string("elicitation");
static ngx_str_t  ngx_mcp_modern_roots = ngx_string("roots");
static ngx_str_t  ngx_mcp_modern_tasks = ngx_string("tasks");


ngx_int_t
ngx_mcp_modern_client(ngx_pool_t *pool, ngx_str_t *initialize,
    ngx_mcp_modern_client_t *client)
{
    ngx_str_t   version, capabilities;
    ngx_uint_t  revision;

    version = ngx_mcp_json_get(initialize, "protocolVersion");
    capabilities = ngx_mcp_json_get(initialize, "capabilities");
    client->info = ngx_mcp_json_get(initialize, "clientInfo");

    revision = NGX_MCP_REVISION_UNKNOWN;

    if (version.len > 2) {
        version.data++;
        version.len -= 2;
        revision = ngx_mcp_revision_parse(&version);
    }

    client->capabilities = ngx_mcp_modern_capabilities(pool, &capabilities,
                                                       revision);

    return client->capabilities.data ? NGX_OK : NGX_ERROR;
}


/*
 * Copies the capabilities of a client as the revision writes them: without
 * "tasks", which the revision does not have, and without members of "roots", as
 * it has no notification of changed roots.  An "elicitation" that is empty, or
 * of a client before 2025-11-25, means forms.
 */

static ngx_str_t
ngx_mcp_modern_capabilities(ngx_pool_t *pool, ngx_str_t *raw,
    ngx_uint_t revision)
{
    u_char     *p, *last;
    ngx_str_t   out, rest, name, value, member, none;

    /*
     * A name may appear several times; no member becomes more than twice as
     * long.
     */

    out.len = 0;
    out.data = ngx_pnalloc(pool, 2 * raw->len + sizeof("{}"));

    if (out.data == NULL) {
        return out;
    }

    p = out.data;
    *p++ = '{';

    rest = *raw;

    while (rest.len && ngx_mcp_json_member(&rest, &name, &value) == NGX_OK) {

        if (ngx_mcp_json_is(&name, &ngx_mcp_modern_tasks)) {
            continue;
        }

        if (ngx_mcp_json_is(&name, &ngx_mcp_modern_roots)
            && value.data[0] == '{')
        {
            ngx_str_set(&value, "{}");

        } else if (ngx_mcp_json_is(&name, &ngx_mcp_modern_elicitation)
                   && value.data[0] == '{')
        {
            none = value;

            if (revision < NGX_MCP_2025_11_25
                || ngx_mcp_json_member(&none, &member, &member) != NGX_OK)
            {
                ngx_str_set(&value, "{\"form\":{}}");
            }
        }

        if (p[-1] != '{') {
            *p++ = ',';
        }

        last = ngx_cpymem(p, name.data, name.len);
        *last++ = ':';
        p = ngx_cpymem(last, value.data, value.len);
    }

    *p++ = '}';

    out.len = p - out.data;

    return out;
}


ngx_str_t
ngx_mcp_modern_envelope(ngx_pool_t *pool, ngx_mcp_modern_client_t *client)
{
    u_char     *p;
    ngx_str_t   out, *level;

    out.len = 0;
    out.data = ngx_pnalloc(pool, 256 + client->info.len
                                 + client->capabilities.len);

    if (out.data == NULL) {
        return out;
    }

    p = ngx_sprintf(out.data, "\"%V\":\"%V\"", &ngx_mcp_modern_reserved[0],
                    ngx_mcp_revision_name(NGX_MCP_2026_07_28));

    if (client->info.len) {
        p = ngx_sprintf(p, ",\"%V\":%V", &ngx_mcp_modern_reserved[1],
                        &client->info);
    }

    if (client->capabilities.len) {
        p = ngx_sprintf(p, ",\"%V\":%V", &ngx_mcp_modern_reserved[2],
                        &client->capabilities);

    } else {
        p = ngx_sprintf(p, ",\"%V\":{}", &ngx_mcp_modern_reserved[2]);
    }

    level = ngx_mcp_level_name(client->level);

    if (level) {
        p = ngx_sprintf(p, ",\"%V\":\"%V\"", &ngx_mcp_modern_reserved[3],
                        level);
    }

    out.len = p - out.data;

    return out;
}


ngx_str_t
ngx_mcp_modern_request(ngx_pool_t *pool, ngx_str_t *text, ngx_mcp_json_t *json,
    ngx_str_t *envelope, ngx_str_t *id, ngx_str_t *members)
{
    u_char          *p;
    size_t           at;
    ngx_str_t        none, meta, rest, member;
    ngx_uint_t       n;
    ngx_mcp_edit_t   edits[3];
    ngx_mcp_span_t  *params, *span;

    n = 0;
    params = &json->members[NGX_MCP_PATH_PARAMS];
    span = &json->members[NGX_MCP_PATH_META];

    if (id->len && json->members[NGX_MCP_PATH_ID].count) {
        edits[n].start = json->members[NGX_MCP_PATH_ID].start;
        edits[n].end = json->members[NGX_MCP_PATH_ID].end;
        edits[n++].text = *id;
    }

    ngx_str_null(&none);

    meta = (span->type == NGX_MCP_JSON_OBJECT)
           ? ngx_mcp_json_span(json, NGX_MCP_PATH_META, text->data) : none;

    meta = ngx_mcp_join(pool, envelope, &meta, ngx_mcp_modern_reserved);

    if (meta.data == NULL) {
        return meta;
    }

    if (span->count) {
        edits[n].start = span->start;
        edits[n].end = span->end;
        edits[n++].text = meta;

        if (members->len == 0) {
            return ngx_mcp_splice(pool, text, edits, n);
        }
    }

    /* "_meta" goes to the beginning of params; a request may have no params */

    p = ngx_pnalloc(pool, sizeof(",\"params\":{\"_meta\":,,}") + meta.len
                          + members->len);
    if (p == NULL) {
        return none;
    }

    edits[n].text.data = p;

    if (params->type == NGX_MCP_JSON_OBJECT) {
        at = params->start + 1;

    } else {
        for (at = text->len; text->data[at - 1] != '}'; at--) { /* void */ }

        at--;
        p = ngx_cpymem(p, ",\"params\":{", sizeof(",\"params\":{") - 1);
    }

    if (span->count == 0) {
        p = ngx_sprintf(p, "\"_meta\":%V", &meta);
    }

    if (members->len) {

        if (span->count == 0) {
            *p++ = ',';
        }

        p = ngx_cpymem(p, members->data, members->len);
    }

    if (params->type != NGX_MCP_JSON_OBJECT) {
        *p++ = '}';

    } else {
        rest = ngx_mcp_json_span(json, NGX_MCP_PATH_PARAMS, text->data);

        if (ngx_mcp_json_member(&rest, &member, &member) == NGX_OK) {
            *p++ = ',';
        }
    }

    edits[n].start = at;
    edits[n].end = at;
    edits[n].text.len = p - edits[n].text.data;
    n++;

    return ngx_mcp_splice(pool, text, edits, n);
}


ngx_uint_t
ngx_mcp_modern_plain(ngx_str_t *text, ngx_mcp_json_t *json, ngx_uint_t method)
{
    u_char                  *end;
    ngx_str_t                object;
    ngx_mcp_path_e           path;
    ngx_mcp_modern_plain_t   plain;

    plain.method = method;
    plain.cut = 0;

    if (json->members[NGX_MCP_PATH_RESULT].type == NGX_MCP_JSON_OBJECT) {
        path = NGX_MCP_PATH_RESULT;

    } else if (json->members[NGX_MCP_PATH_METHOD].count
               && json->members[NGX_MCP_PATH_META].type
                  == NGX_MCP_JSON_OBJECT)
    {
        path = NGX_MCP_PATH_PARAMS;

    } else {
        return 0;
    }

    object = ngx_mcp_json_span(json, path, text->data);
    end = object.data + object.len;

    if (path == NGX_MCP_PATH_RESULT) {
        (void) ngx_mcp_cut(&object, ngx_mcp_modern_keep_result, &plain);

    } else {
        (void) ngx_mcp_cut(&object, ngx_mcp_modern_keep_params, &plain);
    }

    ngx_memmove(object.data + object.len, end, text->data + text->len - end);

    text->len -= end - (object.data + object.len);

    return 1;
}


static ngx_uint_t
ngx_mcp_modern_keep_result(ngx_str_t *name, ngx_str_t *value, void *data)
{
    ngx_mcp_modern_plain_t *plain = data;

    ngx_uint_t  i;

    for (i = 0; ngx_mcp_modern_members[i].len; i++) {
        if (ngx_mcp_equal(&ngx_mcp_modern_members[i], name)) {
            return 0;
        }
    }

    if (ngx_mcp_equal(&ngx_mcp_modern_meta, name)) {
        return ngx_mcp_modern_keep_params(name, value, data);
    }

    /*
     * Some clients of legacy revisions refuse a structuredContent that is no
     * object.
     */

    if (plain->method == NGX_MCP_METHOD_TOOLS_CALL) {
        return value->data[0] == '{'
               || !ngx_mcp_equal(&ngx_mcp_modern_content, name);
    }

    if (plain->method == NGX_MCP_METHOD_TOOLS_LIST && value->data[0] == '['
        && ngx_mcp_equal(&ngx_mcp_modern_tool_list, name))
    {
        ngx_mcp_modern_tools(value, &plain->cut);
    }

    return 1;
}


/* a "_meta" is left out if all its members are removed */

static ngx_uint_t
ngx_mcp_modern_keep_params(ngx_str_t *name, ngx_str_t *value, void *data)
{
    ngx_mcp_modern_plain_t *plain = data;

    ngx_uint_t  n, left;

    if (!ngx_mcp_equal(&ngx_mcp_modern_meta, name) || value->data[0] != '{') {
        return 1;
    }

    n = plain->cut;
    left = ngx_mcp_cut(value, ngx_mcp_modern_keep_meta, data);

    return left || plain->cut == n;
}


static ngx_uint_t
ngx_mcp_modern_keep_meta(ngx_str_t *name, ngx_str_t *value, void *data)
{
    ngx_mcp_modern_plain_t *plain = data;

    if (ngx_mcp_equal(&ngx_mcp_modern_server_info, name)
        || ngx_mcp_equal(&ngx_mcp_modern_subscription, name))
    {
        plain->cut++;
        return 0;
    }

    return 1;
}


/* legacy revisions allow only output schemas of objects: others are removed */

static void
ngx_mcp_modern_tools(ngx_str_t *array, ngx_uint_t *cut)
{
    u_char     *p;
    ngx_str_t   rest, tool;

    rest = *array;
    p = array->data + 1;

    while (ngx_mcp_json_element(&rest, &tool) == NGX_OK) {

        if (tool.data[0] == '{') {
            (void) ngx_mcp_cut(&tool, ngx_mcp_modern_keep_tool, cut);
        }

        if (p != array->data + 1) {
            *p++ = ',';
        }

        ngx_memmove(p, tool.data, tool.len);
        p += tool.len;
    }

    *p++ = ']';

    array->len = p - array->data;
}


static ngx_uint_t
ngx_mcp_modern_keep_tool(ngx_str_t *name, ngx_str_t *value, void *data)
{
    return !ngx_mcp_equal(&ngx_mcp_modern_schema, name)
           || ngx_mcp_modern_object_schema(value);
}


static ngx_uint_t
ngx_mcp_modern_object_schema(ngx_str_t *schema)
{
    ngx_str_t         type;
    static ngx_str_t  object = ngx_string("object");

    type = ngx_mcp_json_get(schema, "type");

    return ngx_mcp_json_is(&type, &object);
}


ngx_str_t
ngx_mcp_modern_discovered(ngx_pool_t *pool, ngx_str_t *result)
{
    u_char     *p;
    ngx_str_t   out, capabilities, instructions, meta, info;

    ngx_str_null(&out);

    if (!ngx_mcp_modern_offered(result)) {
        return out;
    }

    instructions = ngx_mcp_json_get(result, "instructions");
    meta = ngx_mcp_json_get(result, "_meta");
    info = ngx_mcp_json_get(&meta, NGX_MCP_MODERN_PREFIX "serverInfo");
    capabilities = ngx_mcp_json_get(result, "capabilities");

    if (capabilities.len == 0 || capabilities.data[0] != '{') {
        ngx_str_set(&capabilities, "{}");
    }

    out.data = ngx_pnalloc(pool, 64 + capabilities.len + info.len
                                 + instructions.len);
    if (out.data == NULL) {
        return out;
    }

    p = ngx_sprintf(out.data, "{\"capabilities\":%V", &capabilities);

    if (info.len && info.data[0] == '{') {
        p = ngx_sprintf(p, ",\"serverInfo\":%V", &info);
    }

    if (instructions.len && instructions.data[0] == '"') {
        p = ngx_sprintf(p, ",\"instructions\":%V", &instructions);
    }

    *p++ = '}';

    out.len = p - out.data;

    return out;
}


ngx_uint_t
ngx_mcp_modern_offered(ngx_str_t *result)
{
    return ngx_mcp_modern_named(result, "supportedVersions");
}


ngx_uint_t
ngx_mcp_modern_supported(ngx_str_t *error)
{
    ngx_str_t  data;

    data = ngx_mcp_json_get(error, "data");

    return ngx_mcp_modern_named(&data, "supported");
}


/*
 * returns whether an array in a raw object has the revision's name as element
 */

static ngx_uint_t
ngx_mcp_modern_named(ngx_str_t *object, const char *member)
{
    ngx_str_t  rest, version;

    rest = ngx_mcp_json_get(object, member);

    while (ngx_mcp_json_element(&rest, &version) == NGX_OK) {
        if (ngx_mcp_json_is(&version,
                            ngx_mcp_revision_name(NGX_MCP_2026_07_28)))
        {
            return 1;
        }
    }

    return 0;
}
