
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


#include "ngx_mcp_state_file.h"
#include "ngx_mcp_save.h"
#include "ngx_mcp_load.h"
#include "ngx_mcp_schema.h"


#define NGX_MCP_STATE_FORMAT   2

/* number of the zone's hash function; a file with another number is refused */
#define NGX_MCP_STATE_HASHES   1

#define NGX_MCP_STATE_ENDIAN   0x01020304
#define NGX_MCP_STATE_BUFFER   (256 * 1024)
#define NGX_MCP_STATE_NAME     64         /* bytes that a temporary name may be
                                             longer than the file's name */

/* the size of a file is at most this many times that of its zone */
#define NGX_MCP_STATE_FACTOR   8


typedef enum {
    NGX_MCP_STATE_LIVE = 0,
    NGX_MCP_STATE_LAST = 1,               /* written after the last change of
                                             the zone */
    NGX_MCP_STATE_USED = 2                /* an nginx has read the file and has
                                             not written it again: there are no
                                             sessions in it */
} ngx_mcp_state_kind_e;


typedef struct {
    u_char                  magic[8];
    uint32_t                endian;
    uint32_t                format;
    uint32_t                hashes;
    uint32_t                kind;
    uint64_t                started;
    uint64_t                written;      /* ms since the epoch */
    uint64_t                master;
    uint64_t                zone;         /* sum of the zone's name */
} ngx_mcp_state_head_t;


typedef struct {
    ngx_fd_t                fd;
    ngx_err_t               err;
    const char             *why;          /* why the file must be left alone;
                                             or NULL */
    ngx_file_info_t         fi;
    ngx_mcp_state_head_t    head;
} ngx_mcp_state_open_t;


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


static ngx_int_t ngx_mcp_state_open(ngx_mcp_zone_t *zone,
    ngx_mcp_state_file_t *file, int mode, ngx_mcp_state_open_t *o);
static ngx_int_t ngx_mcp_state_inspect(ngx_mcp_zone_t *zone,
    ngx_mcp_state_file_t *file, ngx_mcp_state_open_t *o);
static ngx_uint_t ngx_mcp_state_alive(ngx_mcp_state_file_t *file,
    ngx_mcp_state_head_t *head);
static ngx_uint_t ngx_mcp_state_newer(ngx_mcp_state_file_t *file,
    ngx_mcp_state_head_t *head);
static void ngx_mcp_state_head(ngx_mcp_zone_t *zone,
    ngx_mcp_state_file_t *file, ngx_mcp_state_head_t *head, ngx_uint_t kind);
static void ngx_mcp_state_refused(ngx_mcp_zone_t *zone,
    ngx_mcp_state_file_t *file, ngx_mcp_state_open_t *o, ngx_uint_t level);
static ngx_int_t ngx_mcp_state_writable(ngx_mcp_zone_t *zone,
    ngx_mcp_state_file_t *file);
static ngx_int_t ngx_mcp_state_create(ngx_mcp_state_write_t *w,
    ngx_uint_t last);
static ngx_int_t ngx_mcp_state_body(ngx_mcp_state_write_t *w);
static ngx_int_t ngx_mcp_state_buffer(ngx_mcp_state_write_t *w, size_t size);
static ngx_int_t ngx_mcp_state_flush(ngx_mcp_state_write_t *w);
static ngx_int_t ngx_mcp_state_end(ngx_mcp_state_write_t *w);
static ngx_int_t ngx_mcp_state_replace(ngx_mcp_state_write_t *w);
static void ngx_mcp_state_failed(ngx_mcp_state_write_t *w, const char *call);
static void ngx_mcp_state_sync_folder(u_char *name);
static void ngx_mcp_state_temp_name(ngx_mcp_state_file_t *file, u_char *name,
    long pid);
static size_t ngx_mcp_state_folder(u_char *name);
static const char *ngx_mcp_state_load(ngx_mcp_zone_t *zone,
    ngx_mcp_state_open_t *o, ngx_mcp_saved_t *saved);
static const char *ngx_mcp_state_used(ngx_mcp_state_file_t *file,
    ngx_mcp_state_head_t *head);
static const char *ngx_mcp_state_check(ngx_str_t *text,
    ngx_mcp_state_head_t *head);
static uint64_t ngx_mcp_state_sum(uint64_t sum, u_char *p, size_t len);


static u_char  ngx_mcp_state_magic[8] = "MCPSTATE";


ngx_int_t
ngx_mcp_state_write(ngx_mcp_zone_t *zone, ngx_mcp_state_file_t *file,
    ngx_uint_t last)
{
    ngx_int_t              rc;
    ngx_uint_t             level;
    ngx_mcp_state_write_t  w;

    rc = ngx_mcp_state_writable(zone, file);

    if (rc != NGX_OK) {
        return rc;
    }

    ngx_memzero(&w, sizeof(ngx_mcp_state_write_t));

    w.zone = zone;
    w.file = file;
    w.fd = NGX_INVALID_FILE;

    if (ngx_mcp_state_create(&w, last) != NGX_OK) {
        rc = NGX_ERROR;

    } else if (ngx_mcp_state_body(&w) != NGX_OK
               || ngx_mcp_state_end(&w) != NGX_OK)
    {
        rc = NGX_ERROR;

    } else {
        rc = ngx_mcp_state_replace(&w);
    }

    if (rc == NGX_OK) {
        level = last ? NGX_LOG_NOTICE : NGX_LOG_INFO;

        ngx_log_error(level, zone->log, 0,
                      "mcp zone \"%V\" was written to \"%V\", %ui sessions, "
                      "%uL bytes", &zone->name, &file->name,
                      w.counts.sessions, w.size);

    } else if (w.fd != NGX_INVALID_FILE) {
        (void) ngx_delete_file(w.name);
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


/*
 * Opens and examines the file.  NGX_OK: the file is this zone's and may be
 * overwritten; NGX_DECLINED: there is no file, or the file is empty; NGX_ERROR:
 * the file must be left alone, for the reason o->why.
 */

static ngx_int_t
ngx_mcp_state_open(ngx_mcp_zone_t *zone, ngx_mcp_state_file_t *file,
    int mode, ngx_mcp_state_open_t *o)
{
    ngx_int_t  rc;

    ngx_memzero(o, sizeof(ngx_mcp_state_open_t));

    o->fd = open((char *) file->name.data,
                 mode|O_NOFOLLOW|O_NONBLOCK|O_CLOEXEC, 0600);

    if (o->fd == NGX_INVALID_FILE) {
        o->err = ngx_errno;

        if (o->err == NGX_ENOENT && !(mode & O_CREAT)) {
            return NGX_DECLINED;
        }

        o->why = (o->err == NGX_ELOOP || o->err == EMLINK)
                 ? "is a symbolic link; name the file itself"
                 : "cannot be opened; let the users of nginx and of its "
                   "workers read and write it";
        return NGX_ERROR;
    }

    rc = ngx_mcp_state_inspect(zone, file, o);

    if (rc == NGX_ERROR) {
        (void) ngx_close_file(o->fd);
        o->fd = NGX_INVALID_FILE;
    }

    return rc;
}


static ngx_int_t
ngx_mcp_state_inspect(ngx_mcp_zone_t *zone, ngx_mcp_state_file_t *file,
    ngx_mcp_state_open_t *o)
{
    ssize_t  n;

    if (ngx_fd_info(o->fd, &o->fi) == NGX_FILE_ERROR || !ngx_is_file(&o->fi)) {
        o->why = "is no file of this module; name another one in \"state\" of "
                 "\"mcp_zone\"";
        return NGX_ERROR;
    }

    if (o->fi.st_uid != 0 && o->fi.st_uid != geteuid()
        && o->fi.st_uid != file->user)
    {
        o->why = "belongs to a user that is neither root nor one of nginx; "
                 "change its owner or remove it";
        return NGX_ERROR;
    }

    if (o->fi.st_mode & (S_IWGRP|S_IWOTH)) {
        o->why = "can be written by other users; set its mode to 0600 or "
                 "remove it";
        return NGX_ERROR;
    }

    if (o->fi.st_nlink > 1) {
        o->why = "has other names (hard links); remove them";
        return NGX_ERROR;
    }

    n = pread(o->fd, &o->head, sizeof(ngx_mcp_state_head_t), 0);

    if (n == 0) {
        return NGX_DECLINED;
    }

    if (n < (ssize_t) sizeof(o->head.magic)
        || ngx_memcmp(o->head.magic, ngx_mcp_state_magic,
                      sizeof(o->head.magic)) != 0)
    {
        o->why = "is no file of this module, and is left alone; name another "
                 "one in \"state\" of \"mcp_zone\"";
        return NGX_ERROR;
    }

    if (o->head.endian == NGX_MCP_STATE_ENDIAN
        && o->head.format > NGX_MCP_STATE_FORMAT)
    {
        o->why = "is of a newer version of the module, and is left alone; use "
                 "that version, name another file, or remove this one";
        return NGX_ERROR;
    }

    if (o->head.endian == NGX_MCP_STATE_ENDIAN
        && o->head.format == NGX_MCP_STATE_FORMAT
        && n == (ssize_t) sizeof(ngx_mcp_state_head_t)
        && o->head.zone != ngx_mcp_state_sum(0, zone->name.data,
                                             zone->name.len))
    {
        o->why = "is of another zone, and is left alone; name another file, or "
                 "remove this one";
        return NGX_ERROR;
    }

    return NGX_OK;
}


/*
 * Returns whether the file was written by another nginx than this one, and that
 * nginx still runs.
 */

static ngx_uint_t
ngx_mcp_state_alive(ngx_mcp_state_file_t *file, ngx_mcp_state_head_t *head)
{
    return head->master != (uint64_t) file->master
           && (kill((ngx_pid_t) head->master, 0) == 0
               || ngx_errno != NGX_ESRCH);
}


static ngx_uint_t
ngx_mcp_state_newer(ngx_mcp_state_file_t *file, ngx_mcp_state_head_t *head)
{
    return head->endian == NGX_MCP_STATE_ENDIAN
           && head->started > file->started
           && ngx_mcp_state_alive(file, head);
}


static void
ngx_mcp_state_head(ngx_mcp_zone_t *zone, ngx_mcp_state_file_t *file,
    ngx_mcp_state_head_t *head, ngx_uint_t kind)
{
    ngx_memzero(head, sizeof(ngx_mcp_state_head_t));

    ngx_memcpy(head->magic, ngx_mcp_state_magic, sizeof(head->magic));
    head->endian = NGX_MCP_STATE_ENDIAN;
    head->format = NGX_MCP_STATE_FORMAT;
    head->hashes = NGX_MCP_STATE_HASHES;
    head->kind = (uint32_t) kind;
    head->started = file->started;
    head->written = ngx_mcp_now();
    head->master = (uint64_t) file->master;
    head->zone = ngx_mcp_state_sum(0, zone->name.data, zone->name.len);
}


/* logs why the file is not written, unless this reason was logged last time */

static void
ngx_mcp_state_refused(ngx_mcp_zone_t *zone, ngx_mcp_state_file_t *file,
    ngx_mcp_state_open_t *o, ngx_uint_t level)
{
    if (file->reported != o->why) {
        ngx_log_error(level, zone->log, o->err,
                      "mcp zone \"%V\" is not written to \"%V\", which %s",
                      &zone->name, &file->name, o->why);
    }

    file->reported = o->why;
}


static ngx_int_t
ngx_mcp_state_writable(ngx_mcp_zone_t *zone, ngx_mcp_state_file_t *file)
{
    ngx_int_t             rc;
    ngx_mcp_state_open_t  o;

    rc = ngx_mcp_state_open(zone, file, O_RDONLY, &o);

    if (o.fd != NGX_INVALID_FILE) {
        (void) ngx_close_file(o.fd);
    }

    if (rc == NGX_ERROR) {
        ngx_mcp_state_refused(zone, file, &o, NGX_LOG_ERR);
        return NGX_ERROR;
    }

    file->reported = NULL;

    if (rc == NGX_OK && ngx_mcp_state_newer(file, &o.head)) {
        ngx_log_error(NGX_LOG_NOTICE, zone->log, 0,
                      "mcp zone \"%V\" is not written to \"%V\", as the nginx "
                      "with process %uL was started later and writes it",
                      &zone->name, &file->name, o.head.master);

        return NGX_DECLINED;
    }

    return NGX_OK;
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

    ngx_mcp_state_temp_name(w->file, w->name, (long) getpid());

    /* removes a file that an earlier process with the same id has left */

    (void) ngx_delete_file(w->name);

    w->fd = open((char *) w->name,
                 O_WRONLY|O_CREAT|O_EXCL|O_NOFOLLOW|O_CLOEXEC, 0600);

    if (w->fd == NGX_INVALID_FILE) {
        ngx_mcp_state_failed(w, "open()");
        return NGX_ERROR;
    }

    /*
     * The cache manager runs as the user of the workers, and has to be able to
     * replace the file, also in a folder like /tmp.
     */

    if (geteuid() == 0 && fchown(w->fd, w->file->user, (gid_t) -1) == -1) {
        ngx_mcp_state_failed(w, "fchown()");
        return NGX_ERROR;
    }

    ngx_mcp_state_head(w->zone, w->file, &head,
                       last ? NGX_MCP_STATE_LAST : NGX_MCP_STATE_LIVE);

    w->out.pos = ngx_cpymem(w->out.pos, &head, sizeof(ngx_mcp_state_head_t));

    if (ngx_mcp_state_flush(w) != NGX_OK) {
        return NGX_ERROR;
    }

    /* the sum does not cover the header, which the next nginx changes */

    w->sum = 0;

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


/*
 * Replaces the buffer by an empty one of this size, in bytes.  NGX_OK;
 * NGX_ERROR: there is no memory.
 */

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
    ngx_int_t        rc;
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

    /* another nginx may have been started since the file was checked */

    rc = ngx_mcp_state_writable(w->zone, w->file);

    if (rc != NGX_OK) {
        return rc;
    }

    if (ngx_rename_file(w->name, w->file->name.data) == NGX_FILE_ERROR) {
        ngx_mcp_state_failed(w, "rename()");
        return NGX_ERROR;
    }

    ngx_mcp_state_sync_folder(w->name);

    return NGX_OK;
}


static void
ngx_mcp_state_failed(ngx_mcp_state_write_t *w, const char *call)
{
    ngx_log_error(NGX_LOG_ERR, w->zone->log, ngx_errno,
                  "mcp zone \"%V\" was not written to \"%V\": %s \"%s\" "
                  "failed; sessions end with nginx until this is possible "
                  "(\"state\" of \"mcp_zone\")",
                  &w->zone->name, &w->file->name, call, w->name);
}


/*
 * Syncs the folder of the file, so that the file's new name is on the disk.
 * Cuts "name" to the name of the folder.
 */

static void
ngx_mcp_state_sync_folder(u_char *name)
{
    int  fd;

    if (ngx_mcp_state_folder(name) == 0) {
        return;
    }

    fd = open((char *) name, O_RDONLY|O_CLOEXEC);

    if (fd != -1) {
        (void) fsync(fd);
        (void) close(fd);
    }
}


void
ngx_mcp_state_sweep(ngx_mcp_zone_t *zone, ngx_mcp_state_file_t *file)
{
    DIR            *dir;
    long            pid;
    u_char         *name;
    size_t          folder;
    struct dirent  *de;

    name = ngx_alloc(file->name.len + NGX_MCP_STATE_NAME, zone->log);
    if (name == NULL) {
        return;
    }

    ngx_memcpy(name, file->name.data, file->name.len + 1);

    folder = ngx_mcp_state_folder(name);
    dir = folder ? opendir((char *) name) : NULL;

    while (dir && (de = readdir(dir)) != NULL) {

        if (ngx_strncmp(de->d_name, file->name.data + folder,
                        file->name.len - folder)
            != 0)
        {
            continue;
        }

        pid = strtol(de->d_name + file->name.len - folder
                     + (de->d_name[file->name.len - folder] == '.'),
                     NULL, 10);

        ngx_mcp_state_temp_name(file, name, pid);

        if (pid > 0 && ngx_strcmp(name + folder, de->d_name) == 0
            && kill((ngx_pid_t) pid, 0) == -1 && ngx_errno == NGX_ESRCH)
        {
            (void) ngx_delete_file(name);
        }
    }

    if (dir) {
        (void) closedir(dir);
    }

    ngx_free(name);
}


/*
 * Makes the temporary name under which the process "pid" writes the file.  The
 * buffer "name" has NGX_MCP_STATE_NAME bytes more than the file's name.
 */

static void
ngx_mcp_state_temp_name(ngx_mcp_state_file_t *file, u_char *name, long pid)
{
    (void) snprintf((char *) name, file->name.len + NGX_MCP_STATE_NAME,
                    "%s.%ld.tmp", (char *) file->name.data, pid);
}


/*
 * Cuts a file's name to the name of its folder, and returns the length of that.
 * 0: the name has no folder, and is unchanged.
 */

static size_t
ngx_mcp_state_folder(u_char *name)
{
    char  *p;

    p = strrchr((char *) name, '/');

    if (p == NULL) {
        return 0;
    }

    p[1] = '\0';

    return (u_char *) p + 1 - name;
}


ngx_int_t
ngx_mcp_state_read(ngx_mcp_zone_t *zone, ngx_mcp_state_file_t *file)
{
    ngx_int_t             rc;
    ngx_uint_t            level;
    const char           *why;
    ngx_mcp_saved_t       saved;
    ngx_mcp_state_open_t  o;

    rc = ngx_mcp_state_open(zone, file, O_RDONLY, &o);
    level = NGX_LOG_ERR;
    why = o.why;

    if (rc == NGX_OK && o.head.kind == NGX_MCP_STATE_USED
        && o.head.endian == NGX_MCP_STATE_ENDIAN)
    {
        why = ngx_mcp_state_used(file, &o.head);
        level = NGX_LOG_WARN;
        rc = NGX_DECLINED;

    } else if (rc == NGX_OK) {
        why = ngx_mcp_state_load(zone, &o, &saved);
        rc = why ? NGX_ERROR : NGX_OK;
    }

    if (o.fd != NGX_INVALID_FILE) {
        (void) ngx_close_file(o.fd);
    }

    if (why) {
        file->reported = o.why;

        ngx_log_error(level, zone->log, o.err,
                      "mcp zone \"%V\" starts empty: \"%V\" %s",
                      &zone->name, &file->name, why);
    }

    if (rc != NGX_OK) {
        return rc;
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


/* loads the state from an open file; returns NULL, or a reason of failure */

static const char *
ngx_mcp_state_load(ngx_mcp_zone_t *zone, ngx_mcp_state_open_t *o,
    ngx_mcp_saved_t *saved)
{
    size_t                 size;
    ssize_t                n;
    uint64_t               now;
    ngx_str_t              text;
    const char            *why;
    ngx_mcp_state_head_t  *head;

    if ((uint64_t) ngx_file_size(&o->fi)
        > NGX_MCP_STATE_FACTOR
          * (uint64_t) (zone->shpool->end - (u_char *) zone->shpool))
    {
        return "is of a much larger zone";
    }

    size = (size_t) ngx_file_size(&o->fi);

    text.len = 0;
    text.data = ngx_alloc(size + 1, zone->log);

    if (text.data == NULL) {
        return "needs more memory than there is";
    }

    do {
        n = pread(o->fd, text.data + text.len, size - text.len, text.len);
        text.len += ngx_max(n, 0);

    } while (n > 0);

    head = &o->head;
    saved->text = text;

    why = ngx_mcp_state_check(&saved->text, head);

    if (why == NULL) {
        now = ngx_mcp_now();
        saved->elapsed = now > head->written ? now - head->written : 0;
        saved->last = (head->kind == NGX_MCP_STATE_LAST);

        switch (ngx_mcp_load(zone, saved)) {

        case NGX_OK:
            break;

        case NGX_DECLINED:
            why = "is damaged";
            break;

        default: /* NGX_ERROR */
            why = "needs more memory than there is";
            break;
        }
    }

    ngx_free(text.data);

    return why;
}


static const char *
ngx_mcp_state_used(ngx_mcp_state_file_t *file, ngx_mcp_state_head_t *head)
{
    if (ngx_mcp_state_alive(file, head)) {
        return "has no sessions yet, as an nginx that still runs writes them "
               "when it exits; start nginx after its end, or use \"interval\" "
               "of \"mcp_zone\"";
    }

    if (head->started == file->started) {
        return NULL;
    }

    return "was read by an nginx that was killed before it could write it; "
           "\"interval\" of \"mcp_zone\" keeps the sessions then";
}


void
ngx_mcp_state_test(ngx_mcp_zone_t *zone, ngx_mcp_state_file_t *file)
{
    ngx_mcp_state_open_t  o;

    if (ngx_mcp_state_open(zone, file, O_RDONLY, &o) == NGX_ERROR) {
        ngx_mcp_state_refused(zone, file, &o, NGX_LOG_WARN);
    }

    if (o.fd != NGX_INVALID_FILE) {
        (void) ngx_close_file(o.fd);
    }
}


void
ngx_mcp_state_hold(ngx_mcp_zone_t *zone, ngx_mcp_state_file_t *file,
    ngx_uint_t claim)
{
    ngx_int_t             rc;
    ngx_mcp_state_open_t  o;

    rc = ngx_mcp_state_open(zone, file, O_RDWR|O_CREAT, &o);

    if (rc == NGX_ERROR) {
        ngx_mcp_state_refused(zone, file, &o, NGX_LOG_ERR);
        return;
    }

    if (rc == NGX_OK && ngx_mcp_state_newer(file, &o.head)) {
        (void) ngx_close_file(o.fd);
        return;
    }

    if (geteuid() == 0 && o.fi.st_uid != file->user
        && fchown(o.fd, file->user, (gid_t) -1) == -1)
    {
        ngx_log_error(NGX_LOG_WARN, zone->log, ngx_errno,
                      "fchown() of \"%V\" failed; let its user be that of the "
                      "workers", &file->name);
    }

    if (claim) {
        file->fd = o.fd;

    } else {
        (void) ngx_close_file(o.fd);
    }
}


void
ngx_mcp_state_claim(ngx_mcp_zone_t *zone, ngx_mcp_state_file_t *file,
    ngx_uint_t keep)
{
    ngx_int_t             rc;
    ngx_file_info_t       fi;
    ngx_mcp_state_head_t  head;
    ngx_mcp_state_open_t  o;

    ngx_memzero(&o, sizeof(ngx_mcp_state_open_t));

    o.fd = file->fd;
    file->fd = NGX_INVALID_FILE;

    rc = ngx_mcp_state_inspect(zone, file, &o);

    /* another nginx may have replaced the file since file->fd was opened */

    if (lstat((char *) file->name.data, &fi) == 0
        && (fi.st_ino != o.fi.st_ino || fi.st_dev != o.fi.st_dev))
    {
        (void) ngx_close_file(o.fd);
        rc = ngx_mcp_state_open(zone, file, O_RDWR|O_CREAT, &o);
    }

    if (rc == NGX_ERROR) {
        ngx_mcp_state_refused(zone, file, &o, NGX_LOG_ERR);

    } else if (rc == NGX_DECLINED || !ngx_mcp_state_newer(file, &o.head)) {

        ngx_mcp_state_head(zone, file, &head, NGX_MCP_STATE_USED);

        if (rc == NGX_OK && keep && o.head.kind != NGX_MCP_STATE_USED) {
            head.kind = NGX_MCP_STATE_LIVE;
            head.written = o.head.written;
        }

        if (pwrite(o.fd, &head, sizeof(ngx_mcp_state_head_t), 0)
            != (ssize_t) sizeof(ngx_mcp_state_head_t)
            || (head.kind == NGX_MCP_STATE_USED
                && ftruncate(o.fd, sizeof(ngx_mcp_state_head_t)) == -1))
        {
            ngx_log_error(NGX_LOG_ERR, zone->log, ngx_errno,
                          "mcp zone \"%V\" cannot mark \"%V\" as read; see "
                          "that there is space", &zone->name, &file->name);
        }
    }

    if (o.fd != NGX_INVALID_FILE) {
        (void) ngx_close_file(o.fd);
    }
}


/*
 * Checks the header and the sum of the file's text, and cuts the text to the
 * entities.  Returns NULL if the text is unchanged since it was written, and
 * otherwise a reason to refuse it.
 */

static const char *
ngx_mcp_state_check(ngx_str_t *text, ngx_mcp_state_head_t *head)
{
    size_t      len;
    uint64_t    sum;
    ngx_str_t   left, value, a[NGX_MCP_TLV_ATTRIBUTES];
    ngx_uint_t  tag;

    if (text->len < sizeof(ngx_mcp_state_head_t)) {
        return "is cut short";
    }

    ngx_memcpy(head, text->data, sizeof(ngx_mcp_state_head_t));

    if (head->endian != NGX_MCP_STATE_ENDIAN) {
        return "is of a machine of another kind";
    }

    if (head->format != NGX_MCP_STATE_FORMAT
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
        sum = ngx_mcp_state_sum(0, text->data, len);

        ngx_mcp_tlv_attributes(&value, a);

        if (left.len || ngx_mcp_tlv_value(&a[NGX_MCP_TLV_SUM]) != sum) {
            return "is damaged (its checksum differs)";
        }

        text->len = len;

        return NULL;
    }

    return "is damaged or cut short";
}


/*
 * A variant of FNV-1a that begins with 0.  It adds 1 for each byte, so that
 * zeros change the sum, too.
 */

static uint64_t
ngx_mcp_state_sum(uint64_t sum, u_char *p, size_t len)
{
    size_t  i;

    for (i = 0; i < len; i++) {
        sum = (sum ^ p[i]) * 0x100000001b3ULL + 1;
    }

    return sum;
}
