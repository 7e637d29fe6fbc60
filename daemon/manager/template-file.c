/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Most of a guest's memory is zero: that stays a hole, in memory as on disk. What is not is copied and hashed in one pass.
 */
#include "manager/template-file.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"

enum {
        PAGE = 4096,
        CHUNK = 256 * PAGE,
};

typedef struct Copy {
        int from, to;
        gcry_md_hd_t hash;
        uint64_t used;
        char *chunk; /* CHUNK bytes */
} Copy;

void template_files_done(TemplateFiles *files) {
        files->ram_fd = fd_close(files->ram_fd);
        files->state_fd = fd_close(files->state_fd);
}

int template_file_new(const char *name, uint64_t size, int *ret_fd) {
        _cleanup_(fd_closep) int fd = -EBADF;
        char title[32];

        (void) snprintf(title, sizeof(title), "ephemeral-%s", name);
        fd = memfd_create(title, MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (fd < 0 || ftruncate(fd, (off_t) size) < 0)
                return -errno;
        *ret_fd = TAKE_FD(fd);
        return 0;
}

int template_file_seal(int fd) {
        return fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0 ? -errno : 0;
}

int template_file_reopen(int fd, int *ret_fd) {
        char path[32];
        int r;

        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        r = open(path, O_RDONLY | O_CLOEXEC);
        if (r < 0)
                return -errno;
        *ret_fd = r;
        return 0;
}

static bool is_zero(const char *data, size_t size) {
        return data[0] == 0 && memcmp(data, data + 1, size - 1) == 0;
}

static int write_all_at(int fd, const char *data, size_t size, off_t at) {
        while (size > 0) {
                ssize_t n = pwrite(fd, data, size, at);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : -EIO;
                data += n;
                size -= (size_t) n;
                at += n;
        }
        return 0;
}

static int copy_pages(Copy *c, off_t at, size_t size) {
        for (size_t i = 0; i < size; i += PAGE) {
                size_t n = size - i < PAGE ? size - i : PAGE;
                uint64_t number = htole64((uint64_t) (at + (off_t) i) / PAGE);
                int r;

                if (is_zero(c->chunk + i, n))
                        continue;
                gcry_md_write(c->hash, &number, sizeof(number));
                gcry_md_write(c->hash, c->chunk + i, n);
                c->used += n;
                r = c->to < 0 ? 0 : write_all_at(c->to, c->chunk + i, n, at + (off_t) i);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* From page to page, also where the file system counts holes in other steps. */
static int copy_extent(Copy *c, off_t at, off_t end) {
        at -= at % PAGE;
        while (at < end) {
                size_t want = end - at < CHUNK ? (size_t) (end - at) : CHUNK;
                ssize_t n = pread(c->from, c->chunk, want, at);
                int r;

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : -EIO; /* it has become shorter */
                if ((size_t) n < want)
                        n -= n % PAGE;
                r = n > 0 ? copy_pages(c, at, (size_t) n) : -EIO;
                if (r < 0)
                        return r;
                at += n;
        }
        return 0;
}

static int copy_all(Copy *c, off_t size) {
        for (off_t at = 0; at < size;) {
                off_t data = lseek(c->from, at, SEEK_DATA), hole;
                int r;

                if (data < 0)
                        return errno == ENXIO ? 0 : -errno;
                hole = lseek(c->from, data, SEEK_HOLE);
                if (hole < 0)
                        return -errno;
                hole += (PAGE - hole % PAGE) % PAGE;
                if (hole > size)
                        hole = size;
                r = copy_extent(c, data, hole);
                if (r < 0)
                        return r;
                at = hole;
        }
        return 0;
}

int template_file_copy(int from, int to, char ret_digest[static DIGEST_SIZE], uint64_t *ret_used) {
        _cleanup_(freep) char *chunk = malloc(CHUNK);
        Copy c = {.from = from, .to = to, .chunk = chunk};
        struct stat st;
        int r;

        if (!chunk)
                return -ENOMEM;
        if (fstat(from, &st) < 0 || (to >= 0 && ftruncate(to, st.st_size) < 0))
                return -errno;
        r = digest_open(&c.hash);
        if (r < 0)
                return r;
        r = copy_all(&c, st.st_size);
        digest_close(c.hash, ret_digest);
        *ret_used = c.used;
        return r;
}
