
/*
 * Copyright (C) 2026 The ngx_http_mcp_module authors
 */


/*
 * Bytes on connections, some of them over TLS, and requests in HTTP/2 as
 * simple as it can be: each is the first of its connection, nothing is
 * compressed, and no window ends.
 */

#include "load.h"

#include <openssl/ssl.h>


#define FRAMES  2048


static SSL  *tls[65536];                     /* by descriptor */


static void
tls_start(int fd)
{
    static SSL_CTX  *ctx;

    if (ctx == NULL) {
        ctx = SSL_CTX_new(TLS_client_method());
        check(ctx != NULL, "no TLS", "");
        SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
    }

    check((size_t) fd < sizeof(tls) / sizeof(tls[0]), "many descriptors", "");

    tls[fd] = SSL_new(ctx);

    if (tls[fd] == NULL
        || SSL_set_fd(tls[fd], fd) != 1
        || (http2
            && SSL_set_alpn_protos(tls[fd], (u_char *) "\2h2", 3) != 0)
        || SSL_connect(tls[fd]) != 1)
    {
        check(0, "no TLS", "");
    }
}


int
dial_over(int source)
{
    int  fd;

    if (!secure && !http2) {
        return dial(source);
    }

    port += 2;
    fd = dial(source);
    port -= 2;

    if (secure) {
        tls_start(fd);
    }

    return fd;
}


void
put(int fd, const char *text, size_t len)
{
    ssize_t  n;

    while (len) {
        n = tls[fd] ? SSL_write(tls[fd], text, len)
                    : send(fd, text, len, MSG_NOSIGNAL);

        if (n <= 0) {
            die("send");
        }

        text += n;
        len -= n;
    }
}


ssize_t
take(int fd, char *buf, size_t size)
{
    int  n;

    if (tls[fd] == NULL) {
        return recv(fd, buf, size, 0);
    }

    n = SSL_read(tls[fd], buf, size);

    if (n <= 0 && SSL_get_error(tls[fd], n) == SSL_ERROR_WANT_READ) {
        errno = EAGAIN;
        return -1;
    }

    return n;
}


unsigned
take_more(int fd)
{
    return tls[fd] != NULL && SSL_pending(tls[fd]) > 0;
}


static char *
h2_frame(char *p, size_t len, int type, int flags)
{
    *p++ = 0;
    *p++ = len >> 8;
    *p++ = len;
    *p++ = type;
    *p++ = flags;
    memcpy(p, "\0\0\0\1", 4);

    return p + 4;
}


static char *
h2_string(char *p, const char *text, int len)
{
    check(len < 127, "too long for HTTP/2:", text);

    *p++ = len;
    memcpy(p, text, len);

    return p + len;
}


void
h2_put(int fd, const char *request, size_t len)
{
    int          n;
    char        *p, frames[FRAMES], name[128];
    const char  *line, *last, *end, *value;

    static const char  begin[] =
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        "\0\0\6\4\0\0\0\0\0" "\0\4\x7f\xff\xff\xff"     /* SETTINGS */
        "\0\0\4\x8\0\0\0\0\0" "\x7f\xff\0\0"            /* WINDOW_UPDATE */
        "\0\0\0\4\1\0\0\0\0";                           /* SETTINGS, ACK */

    check(len < FRAMES / 2, "too long for HTTP/2:", request);

    /* POST or GET, "http" or "https", the path, the host */

    p = frames + 9;
    *p++ = request[0] == 'P' ? 0x83 : 0x82;
    *p++ = secure ? 0x87 : 0x86;
    *p++ = 0x04;
    value = strchr(request, ' ') + 1;
    p = h2_string(p, value, strchr(value, ' ') - value);
    *p++ = 0x01;
    p = h2_string(p, "localhost", 9);

    line = strstr(request, "\r\n") + 2;
    last = request + len;

    for ( ;; ) {
        end = memmem(line, last - line, "\r\n", 2);

        if (end == line) {
            break;
        }

        value = strchr(line, ':');

        for (n = 0; line + n < value; n++) {
            name[n] = tolower((u_char) line[n]);
        }

        if (strncmp(name, "host", n) != 0) {
            *p++ = 0x00;
            p = h2_string(p, name, n);
            p = h2_string(p, value + 2, end - value - 2);
        }

        line = end + 2;
    }

    line += 2;
    n = last - line;

    /* END_HEADERS, and END_STREAM where there is no body */

    (void) h2_frame(frames, p - frames - 9, 1, n ? 4 : 5);

    if (n) {
        p = h2_frame(p, n, 0, 1);
        memcpy(p, line, n);
        p += n;
    }

    put(fd, begin, sizeof(begin) - 1);
    put(fd, frames, p - frames);
}


static void
take_all(int fd, char *buf, size_t size)
{
    ssize_t  n;

    while (size) {
        n = take(fd, buf, size);

        if (n <= 0) {
            die("no stream");
        }

        buf += n;
        size -= n;
    }
}


void
h2_take(int fd)
{
    char    head[9], text[FRAMES];
    size_t  len;

    do {
        take_all(fd, head, sizeof(head));
        len = (u_char) head[1] << 8 | (u_char) head[2];
        check(head[0] == 0 && len <= sizeof(text), "a long frame", "");
        take_all(fd, text, len);

    } while (head[3] != 1);

    /* ":status: 200" */

    check(len && (u_char) text[0] == 0x88, "HTTP/2 without 200", "");
}
