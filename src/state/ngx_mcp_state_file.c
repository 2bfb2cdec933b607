
#include "ngx_mcp_state_file.h"
#include "ngx_mcp_save.h"
#include "ngx_mcp_load.h"
#include "ngx_mcp_schema.h"


#define NGX_MCP_STATE_FORMAT   1

/* the way in which a zone hashes: others cannot use its hashes */
#define NGX_MCP_STATE_HASHES   1

#define NGX_MCP_STATE_ENDIAN   0x01020304
#define NGX_MCP_STATE_BUFFER   (256 * 1024)
#define NGX_MCP_STATE_NAME     64         /* behind that of the file */

/* a zone fits into a file that is so many times as large */
#define NGX_MCP_STATE_FACTOR   8


typedef struct {
    u_char                  magic[8];
    uint32_t                endian;
    uint32_t                format;
    uint32_t                hashes;
    uint32_t                last;         /* nothing changed after that */
    uint64_t                started;
    uint64_t                written;      /* ms since the epoch */
    uint64_t                master;
} ngx_mcp_state_head_t;


typedef struct {
    ngx_mcp_zone_t         *zone;
    ngx_mcp_state_file_t   *file;
    u_char                 *name;
    ngx_fd_t                fd;
    uint64_t                sum;
    uint64_t                size;
    ngx_mcp_tlv_t           out;
    ngx_mcp_save_counts_t   counts;
} ngx_mcp_state_write_t;


static ngx_int_t ngx_mcp_state_foreign(ngx_mcp_zone_t *zone,
    ngx_mcp_state_file_t *file);
static ngx_int_t ngx_mcp_state_create(ngx_mcp_state_write_t *w,
    ngx_uint_t last);
static ngx_int_t ngx_mcp_state_body(ngx_mcp_state_write_t *w);
static ngx_int_t ngx_mcp_state_buffer(ngx_mcp_state_write_t *w, size_t size);
static ngx_int_t ngx_mcp_state_flush(ngx_mcp_state_write_t *w);
static ngx_int_t ngx_mcp_state_end(ngx_mcp_state_write_t *w);
static ngx_int_t ngx_mcp_state_replace(ngx_mcp_state_write_t *w);
static void ngx_mcp_state_failed(ngx_mcp_state_write_t *w, const char *what);
static void ngx_mcp_state_sync_folder(u_char *name);
static ngx_int_t ngx_mcp_state_slurp(ngx_mcp_zone_t *zone,
    ngx_mcp_state_file_t *file, ngx_str_t *text);
static const char *ngx_mcp_state_check(ngx_str_t *text,
    ngx_mcp_state_head_t *head);
static void ngx_mcp_state_ignored(ngx_mcp_zone_t *zone,
    ngx_mcp_state_file_t *file, const char *why);
static uint64_t ngx_mcp_state_sum(uint64_t sum, u_char *p, size_t len);


static u_char  ngx_mcp_state_magic[8] = "MCPSTATE";


ngx_int_t
ngx_mcp_state_write(ngx_mcp_zone_t *zone, ngx_mcp_state_file_t *file,
    ngx_uint_t last)
{
    ngx_int_t              rc;
    ngx_uint_t             level;
    ngx_mcp_state_write_t  w;

    if (ngx_mcp_state_foreign(zone, file) != NGX_OK) {
        return NGX_DECLINED;
    }

    ngx_memzero(&w, sizeof(ngx_mcp_state_write_t));

    w.zone = zone;
    w.file = file;
    w.fd = NGX_INVALID_FILE;

    if (ngx_mcp_state_create(&w, last) != NGX_OK) {
        rc = NGX_ERROR;

    } else if (ngx_mcp_state_body(&w) != NGX_OK
               || ngx_mcp_state_end(&w) != NGX_OK
               || ngx_mcp_state_replace(&w) != NGX_OK)
    {
        (void) ngx_delete_file(w.name);
        rc = NGX_ERROR;

    } else {
        level = last ? NGX_LOG_NOTICE : NGX_LOG_INFO;

        ngx_log_error(level, zone->log, 0,
                      "mcp zone \"%V\" was written to \"%V\", %ui sessions, "
                      "%uL bytes", &zone->name, &file->name,
                      w.counts.sessions, w.size);
        rc = NGX_OK;
    }

    if (w.fd != NGX_INVALID_FILE) {
        (void) ngx_close_file(w.fd);
    }

    if (w.out.start) {
        ngx_free(w.out.start);
    }

    if (w.name) {
        ngx_free(w.name);
    }

    return rc;
}


/* one that cannot be read is written over */

static ngx_int_t
ngx_mcp_state_foreign(ngx_mcp_zone_t *zone, ngx_mcp_state_file_t *file)
{
    ssize_t               n;
    ngx_fd_t              fd;
    ngx_mcp_state_head_t  head;

    fd = ngx_open_file(file->name.data, NGX_FILE_RDONLY|NGX_FILE_NONBLOCK,
                       NGX_FILE_OPEN, 0);

    if (fd == NGX_INVALID_FILE) {
        return NGX_OK;
    }

    n = read(fd, &head, sizeof(ngx_mcp_state_head_t));

    (void) ngx_close_file(fd);

    if (n != (ssize_t) sizeof(ngx_mcp_state_head_t)
        || ngx_memcmp(head.magic, ngx_mcp_state_magic, sizeof(head.magic)) != 0
        || head.endian != NGX_MCP_STATE_ENDIAN
        || head.started <= file->started
        || head.master == (uint64_t) file->master
        || (kill((ngx_pid_t) head.master, 0) == -1 && ngx_errno == ESRCH))
    {
        return NGX_OK;
    }

    ngx_log_error(NGX_LOG_NOTICE, zone->log, 0,
                  "mcp zone \"%V\" is not written to \"%V\", as the nginx with "
                  "process %uL was started later and writes it",
                  &zone->name, &file->name, head.master);

    return NGX_DECLINED;
}


static ngx_int_t
ngx_mcp_state_create(ngx_mcp_state_write_t *w, ngx_uint_t last)
{
    ngx_mcp_state_head_t  head;

    w->name = ngx_alloc(w->file->name.len + NGX_MCP_STATE_NAME, w->zone->log);

    if (w->name == NULL
        || ngx_mcp_state_buffer(w, NGX_MCP_STATE_BUFFER) != NGX_OK)
    {
        return NGX_ERROR;
    }

    (void) snprintf((char *) w->name, w->file->name.len + NGX_MCP_STATE_NAME,
                    "%s.%ld.tmp", (char *) w->file->name.data,
                    (long) getpid());

    /* one that a process with this number has left */

    (void) ngx_delete_file(w->name);

    w->fd = open((char *) w->name,
                 O_WRONLY|O_CREAT|O_EXCL|O_NOFOLLOW|O_CLOEXEC, 0600);

    if (w->fd == NGX_INVALID_FILE) {
        ngx_mcp_state_failed(w, "open()");
        return NGX_ERROR;
    }

    ngx_memzero(&head, sizeof(ngx_mcp_state_head_t));

    ngx_memcpy(head.magic, ngx_mcp_state_magic, sizeof(head.magic));
    head.endian = NGX_MCP_STATE_ENDIAN;
    head.format = NGX_MCP_STATE_FORMAT;
    head.hashes = NGX_MCP_STATE_HASHES;
    head.last = (uint32_t) last;
    head.started = w->file->started;
    head.written = ngx_mcp_now();
    head.master = (uint64_t) w->file->master;

    w->out.pos = ngx_cpymem(w->out.pos, &head, sizeof(ngx_mcp_state_head_t));

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_state_body(ngx_mcp_state_write_t *w)
{
    uint32_t   next;
    ngx_int_t  rc;

    next = 0;

    ngx_mcp_save_zone(w->zone, &w->out);

    do {
        if (ngx_mcp_state_flush(w) != NGX_OK) {
            return NGX_ERROR;
        }

        rc = ngx_mcp_save_slice(w->zone, &w->out, &next, &w->counts);

        if (rc == NGX_BUSY
            && ngx_mcp_state_buffer(w, 2 * (w->out.end - w->out.start))
               != NGX_OK)
        {
            return NGX_ERROR;
        }

    } while (rc != NGX_DONE);

    if (ngx_mcp_state_flush(w) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_mcp_save_event_ids(w->zone, &w->out);

    return ngx_mcp_state_flush(w);
}


/* another one, which is empty */

static ngx_int_t
ngx_mcp_state_buffer(ngx_mcp_state_write_t *w, size_t size)
{
    u_char  *p;

    p = ngx_alloc(size, w->zone->log);
    if (p == NULL) {
        return NGX_ERROR;
    }

    if (w->out.start) {
        ngx_free(w->out.start);
    }

    w->out.start = p;
    w->out.pos = p;
    w->out.end = p + size;

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_state_flush(ngx_mcp_state_write_t *w)
{
    u_char   *p;
    ssize_t   n;

    w->sum = ngx_mcp_state_sum(w->sum, w->out.start,
                               w->out.pos - w->out.start);

    for (p = w->out.start; p < w->out.pos; p += n) {
        n = write(w->fd, p, w->out.pos - p);

        if (n == -1 && ngx_errno == NGX_EINTR) {
            n = 0;
            continue;
        }

        if (n <= 0) {
            ngx_mcp_state_failed(w, "write()");
            return NGX_ERROR;
        }

        w->size += n;
    }

    w->out.pos = w->out.start;

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_state_end(ngx_mcp_state_write_t *w)
{
    size_t  begin;

    begin = ngx_mcp_tlv_begin(&w->out, NGX_MCP_TLV_END);
    ngx_mcp_tlv_data(&w->out, NGX_MCP_TLV_SUM, &w->sum, sizeof(uint64_t));
    ngx_mcp_tlv_end(&w->out, begin);

    return ngx_mcp_state_flush(w);
}


static ngx_int_t
ngx_mcp_state_replace(ngx_mcp_state_write_t *w)
{
    ngx_file_info_t  fi;

    if (fsync(w->fd) == -1) {
        ngx_mcp_state_failed(w, "fsync()");
        return NGX_ERROR;
    }

    if (ngx_fd_info(w->fd, &fi) == NGX_FILE_ERROR
        || (uint64_t) ngx_file_size(&fi) != w->size)
    {
        ngx_mcp_state_failed(w, "fstat()");
        return NGX_ERROR;
    }

    if (ngx_rename_file(w->name, w->file->name.data) == NGX_FILE_ERROR) {
        ngx_mcp_state_failed(w, "rename()");
        return NGX_ERROR;
    }

    ngx_mcp_state_sync_folder(w->name);

    return NGX_OK;
}


static void
ngx_mcp_state_failed(ngx_mcp_state_write_t *w, const char *what)
{
    ngx_log_error(NGX_LOG_ERR, w->zone->log, ngx_errno,
                  "mcp zone \"%V\" was not written to \"%V\": %s \"%s\" "
                  "failed; sessions end with nginx until this is possible "
                  "(\"state\" of \"mcp_zone\")",
                  &w->zone->name, &w->file->name, what, w->name);
}


/* the name, too, is on the disk then; the name of the file is cut */

static void
ngx_mcp_state_sync_folder(u_char *name)
{
    int    fd;
    char  *p;

    p = strrchr((char *) name, '/');

    if (p == NULL) {
        return;
    }

    p[1] = '\0';

    fd = open((char *) name, O_RDONLY|O_CLOEXEC);

    if (fd != -1) {
        (void) fsync(fd);
        (void) close(fd);
    }
}


ngx_int_t
ngx_mcp_state_read(ngx_mcp_zone_t *zone, ngx_mcp_state_file_t *file)
{
    uint64_t              now;
    ngx_int_t             rc;
    ngx_str_t             text;
    const char           *why;
    ngx_mcp_saved_t       saved;
    ngx_mcp_state_head_t  head;

    rc = ngx_mcp_state_slurp(zone, file, &text);

    if (rc != NGX_OK) {
        return rc;
    }

    saved.text = text;
    why = ngx_mcp_state_check(&saved.text, &head);

    if (why == NULL) {
        now = ngx_mcp_now();
        saved.away = now > head.written ? now - head.written : 0;
        saved.last = head.last;

        switch (ngx_mcp_load(zone, &saved)) {

        case NGX_OK:
            break;

        case NGX_DECLINED:
            why = "is of another zone; give each \"mcp_zone\" a file of its "
                  "own";
            break;

        default: /* NGX_ERROR */
            why = "needs more memory than there is";
            break;
        }
    }

    ngx_free(text.data);

    if (why) {
        ngx_mcp_state_ignored(zone, file, why);
        return NGX_ERROR;
    }

    ngx_log_error(NGX_LOG_NOTICE, zone->log, 0,
                  "mcp zone \"%V\" was read from \"%V\": %ui sessions go on, "
                  "%ui ended", &zone->name, &file->name, saved.sessions,
                  saved.ended);

    if (saved.lost) {
        ngx_log_error(NGX_LOG_WARN, zone->log, 0,
                      "mcp zone \"%V\" had no room for %ui subscriptions of "
                      "\"%V\"; give \"mcp_zone\" a larger size",
                      &zone->name, saved.lost, &file->name);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_mcp_state_slurp(ngx_mcp_zone_t *zone, ngx_mcp_state_file_t *file,
    ngx_str_t *text)
{
    size_t            size, len;
    ssize_t           n;
    ngx_fd_t          fd;
    ngx_err_t         err;
    ngx_file_info_t   fi;

    fd = ngx_open_file(file->name.data, NGX_FILE_RDONLY|NGX_FILE_NONBLOCK,
                       NGX_FILE_OPEN, 0);

    if (fd == NGX_INVALID_FILE) {
        err = ngx_errno;

        if (err == NGX_ENOENT) {
            return NGX_DECLINED;
        }

        ngx_log_error(NGX_LOG_ERR, zone->log, err,
                      "mcp zone \"%V\" starts empty: \"%V\" cannot be opened; "
                      "let the user that starts nginx read it",
                      &zone->name, &file->name);
        return NGX_ERROR;
    }

    if (ngx_fd_info(fd, &fi) == NGX_FILE_ERROR || !ngx_is_file(&fi)
        || (uint64_t) ngx_file_size(&fi)
           > NGX_MCP_STATE_FACTOR
             * (uint64_t) (zone->shpool->end - (u_char *) zone->shpool))
    {
        (void) ngx_close_file(fd);

        ngx_mcp_state_ignored(zone, file, "is no file of this module, or of a "
                              "much larger zone");
        return NGX_ERROR;
    }

    size = (size_t) ngx_file_size(&fi);

    text->len = 0;
    text->data = ngx_alloc(size + 1, zone->log);

    if (text->data == NULL) {
        (void) ngx_close_file(fd);
        ngx_mcp_state_ignored(zone, file, "needs more memory than there is");
        return NGX_ERROR;
    }

    for (len = 0; len < size; len += n) {
        n = read(fd, text->data + len, size - len);

        if (n <= 0) {
            break;
        }
    }

    text->len = len;

    (void) ngx_close_file(fd);

    return NGX_OK;
}


/* of the whole text the entities are left; NULL: it is as it was written */

static const char *
ngx_mcp_state_check(ngx_str_t *text, ngx_mcp_state_head_t *head)
{
    size_t      len;
    uint64_t    sum;
    ngx_str_t   left, value, a[NGX_MCP_TLV_ATTRIBUTES];
    ngx_uint_t  tag;

    if (text->len < sizeof(ngx_mcp_state_head_t)) {
        return text->len ? "is cut short" : "is empty";
    }

    ngx_memcpy(head, text->data, sizeof(ngx_mcp_state_head_t));

    if (ngx_memcmp(head->magic, ngx_mcp_state_magic, sizeof(head->magic)) != 0)
    {
        return "is no file of this module; name another one in \"state\" of "
               "\"mcp_zone\"";
    }

    if (head->endian != NGX_MCP_STATE_ENDIAN) {
        return "is of a machine of another kind";
    }

    if (head->format > NGX_MCP_STATE_FORMAT) {
        return "is of a newer version of the module; that one can read it";
    }

    if (head->format < NGX_MCP_STATE_FORMAT
        || head->hashes != NGX_MCP_STATE_HASHES)
    {
        return "is of a version of the module that this one does not know";
    }

    text->data += sizeof(ngx_mcp_state_head_t);
    text->len -= sizeof(ngx_mcp_state_head_t);

    left = *text;

    while (ngx_mcp_tlv_next(&left, &tag, &value) == NGX_OK) {

        if (tag != NGX_MCP_TLV_END) {
            continue;
        }

        len = value.data - NGX_MCP_TLV_HEAD - text->data;

        sum = ngx_mcp_state_sum(0, text->data - sizeof(ngx_mcp_state_head_t),
                                len + sizeof(ngx_mcp_state_head_t));

        ngx_mcp_tlv_attributes(&value, a);

        if (left.len || ngx_mcp_tlv_value(&a[NGX_MCP_TLV_SUM]) != sum) {
            return "is damaged (its checksum differs)";
        }

        text->len = len;

        return NULL;
    }

    return "is damaged or cut short";
}


static void
ngx_mcp_state_ignored(ngx_mcp_zone_t *zone, ngx_mcp_state_file_t *file,
    const char *why)
{
    ngx_log_error(NGX_LOG_ERR, zone->log, 0,
                  "mcp zone \"%V\" starts empty: \"%V\" %s",
                  &zone->name, &file->name, why);
}


/* FNV-1a, which begins with 0 and tells zeros apart */

static uint64_t
ngx_mcp_state_sum(uint64_t sum, u_char *p, size_t len)
{
    size_t  i;

    for (i = 0; i < len; i++) {
        sum = (sum ^ p[i]) * 0x100000001b3ULL + 1;
    }

    return sum;
}
