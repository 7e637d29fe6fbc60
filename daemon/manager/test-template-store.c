/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * Claims about a frozen machine's files: sealed in memory, whole or not at all on disk, believed by their digests only.
 */
#undef NDEBUG
#include "manager/template-store.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"

enum {
        RAM_SIZE = 1024 * 1024,
        PAGE = 4096,
};

static char directory[] = "/tmp/test-template-store-XXXXXX";

static void expect_byte(int fd, off_t at, char wanted) {
        char got;

        assert(pread(fd, &got, 1, at) == 1 && got == wanted);
}

static TemplateFiles new_files(char fill) {
        TemplateFiles files = TEMPLATE_NO_FILES;

        assert(template_file_new("ram", RAM_SIZE, &files.ram_fd) == 0);
        assert(template_file_new("state", 0, &files.state_fd) == 0);
        assert(pwrite(files.ram_fd, &fill, 1, 3 * PAGE + 5) == 1);
        assert(pwrite(files.state_fd, "state", 5, 0) == 5);
        assert(template_file_seal(files.ram_fd) == 0 && template_file_seal(files.state_fd) == 0);
        return files;
}

static TemplateMeta new_meta(char key) {
        TemplateMeta meta = {.vcpus = 1, .memory_mib = 1, .disk_mib = 64, .tsc_khz = 2000000, .created_usec = 1};

        memset(meta.key, key, sizeof(meta.key) - 1);
        memset(meta.image_digest, 'd', sizeof(meta.image_digest) - 1);
        strcpy(meta.image, "default");
        strcpy(meta.kernel, "6.1.0-test");
        return meta;
}

static TemplateMeta save(char key) {
        TemplateFiles files = new_files(key);
        TemplateMeta meta = new_meta(key);

        assert(template_store_save(directory, &meta, &files) == 0);
        template_files_done(&files);
        return meta;
}

static int load(char key) {
        TemplateFiles files = TEMPLATE_NO_FILES;
        TemplateMeta meta = new_meta(key), loaded;
        int r = template_store_load(directory, meta.key, &loaded, &files);

        template_files_done(&files);
        return r;
}

static void a_sealed_file_cannot_be_changed(void) {
        TemplateFiles files = new_files('x');
        char path[64];
        int again;

        assert(pwrite(files.ram_fd, "y", 1, 0) < 0 && errno == EPERM);
        assert(ftruncate(files.ram_fd, 0) < 0 && ftruncate(files.ram_fd, 2L * RAM_SIZE) < 0);
        assert(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, files.ram_fd, 0) == MAP_FAILED);
        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", files.ram_fd);
        again = open(path, O_RDWR | O_CLOEXEC); /* by root */
        assert(again < 0 || pwrite(again, "y", 1, 0) < 0);
        fd_close(again);
        template_files_done(&files);
}

static void what_is_mapped_for_writing_is_not_sealed(void) {
        int fd;
        void *map;

        assert(template_file_new("ram", PAGE, &fd) == 0);
        map = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        assert(map != MAP_FAILED && template_file_seal(fd) == -EBUSY);
        assert(munmap(map, PAGE) == 0 && template_file_seal(fd) == 0);
        fd_close(fd);
}

static void what_was_saved_is_loaded(void) {
        TemplateMeta saved = save('a'), loaded;
        TemplateFiles files = TEMPLATE_NO_FILES;
        struct stat st;

        assert(saved.used_bytes == PAGE && strlen(saved.ram_digest) == DIGEST_SIZE - 1);
        assert(template_store_load(directory, saved.key, &loaded, &files) == 0);
        assert(strcmp(loaded.ram_digest, saved.ram_digest) == 0 && strcmp(loaded.kernel, "6.1.0-test") == 0);
        assert(loaded.tsc_khz == 2000000 && loaded.memory_mib == 1 && !loaded.kvm);
        assert(fstat(files.ram_fd, &st) == 0 && st.st_size == RAM_SIZE);
        expect_byte(files.ram_fd, 3 * PAGE + 5, 'a');
        expect_byte(files.ram_fd, 0, 0);
        expect_byte(files.state_fd, 4, 'e');
        assert(pwrite(files.ram_fd, "y", 1, 0) < 0 && errno == EPERM);
        template_files_done(&files);
        assert(load('b') == -ENOENT);
}

static void damage(const char *name, const char *data, off_t at) {
        TemplateMeta meta = save('a');
        char path[256];
        int fd;

        (void) snprintf(path, sizeof(path), "%s/%s/%s", directory, meta.key, name);
        fd = open(path, O_WRONLY | O_CLOEXEC);
        assert(fd >= 0);
        if (data)
                assert(pwrite(fd, data, strlen(data), at) == (ssize_t) strlen(data));
        else
                assert(ftruncate(fd, at) == 0);
        fd_close(fd);
        assert(load('a') == -EBADMSG);
}

static void what_is_damaged_is_not_believed(void) {
        damage("ram", "z", 3 * PAGE + 5); /* another byte */
        damage("ram", "z", 0);            /* where nothing was */
        damage("ram", NULL, PAGE);        /* cut */
        damage("ram", NULL, 2L * RAM_SIZE);
        damage("state", "S", 0);
        damage("state", NULL, 0);
        damage("meta.json", "evil", 1);
        damage("meta.json", NULL, 0);
        (void) save('a'); /* takes the place of the damaged one */
        assert(load('a') == 0);
}

static void the_newest_of_one_kind_stays(void) {
        TemplateMeta newest = new_meta('c'), other = new_meta('a');

        assert(template_meta_replaces(&newest, &other) && !template_meta_replaces(&newest, &newest));
        other.memory_mib = 2;
        assert(!template_meta_replaces(&newest, &other));
        (void) save('a');
        (void) save('c');
        template_store_trim(directory, &newest, 4);
        assert(load('a') == -ENOENT && load('c') == 0);
        assert(template_store_drop(directory, newest.key) == 0 && load('c') == -ENOENT);
        assert(template_store_drop(directory, newest.key) == -ENOENT);
}

int main(void) {
        assert(mkdtemp(directory));
        a_sealed_file_cannot_be_changed();
        what_is_mapped_for_writing_is_not_sealed();
        what_was_saved_is_loaded();
        what_is_damaged_is_not_believed();
        the_newest_of_one_kind_stays();
        assert(rmdir(directory) == 0);
        return 0;
}
